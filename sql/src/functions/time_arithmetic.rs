//! Adding to times and counting between them. Months clamp to the end of the month; what cannot be represented is an error.

use super::{
    scalar::{arity, pure},
    times::{
        DAY, HOUR, MINUTE, SECOND, Zone, date_of, datetime_of, days_of, from_local, local_micros, time_type, timestamps, to_local,
        utc_micros, zone_of,
    },
};
use arrow::{
    array::{Array, ArrayRef, AsArray, Int64Array, IntervalMonthDayNanoArray, PrimitiveArray},
    compute::cast,
    datatypes::{DataType, Date32Type, Int64Type, IntervalMonthDayNano, IntervalMonthDayNanoType, IntervalUnit, TimeUnit},
};
use chrono::{Datelike, Months};
use datafusion::{
    common::{Result, exec_datafusion_err, plan_err},
    logical_expr::ScalarUDF,
};
use std::sync::Arc;

/// Months, or microseconds.
#[derive(Clone, Copy)]
enum Unit {
    Months(i64),
    Days(i64),
    Micros(i64),
}

const UNITS: [(&str, Unit); 8] = [
    ("second", Unit::Micros(SECOND)),
    ("minute", Unit::Micros(MINUTE)),
    ("hour", Unit::Micros(HOUR)),
    ("day", Unit::Days(1)),
    ("week", Unit::Days(7)),
    ("month", Unit::Months(1)),
    ("quarter", Unit::Months(3)),
    ("year", Unit::Months(12)),
];

fn unit(name: &str) -> Option<Unit> {
    let name = name.to_ascii_lowercase();
    let singular = name.strip_suffix('s').unwrap_or(&name);
    UNITS.iter().find(|(n, _)| *n == singular).map(|(_, u)| *u)
}

/// `moment` and `n` units more. Hours and shorter are counted in real time, days and longer on the zone's wall clock.
fn later(moment: i64, n: i64, unit: Unit, zone: Zone) -> Option<i64> {
    match (unit, zone) {
        (_, _) if n == 0 => Some(moment),
        (Unit::Days(_) | Unit::Months(_), Some(tz)) => from_local(add(to_local(moment, tz)?, n, unit)?, zone),
        _ => add(moment, n, unit),
    }
}

/// `local` plus `n` units on its own clock.
fn add(local: i64, n: i64, unit: Unit) -> Option<i64> {
    match unit {
        Unit::Micros(size) => local.checked_add(n.checked_mul(size)?),
        Unit::Days(size) => local.checked_add(n.checked_mul(size)?.checked_mul(DAY)?),
        Unit::Months(size) => {
            let months = n.checked_mul(size)?;
            let by = Months::new(u32::try_from(months.unsigned_abs()).ok()?);
            let date = date_of(local)?;
            let date = if months < 0 { date.checked_sub_months(by)? } else { date.checked_add_months(by)? };
            Some(i64::from(days_of(date)) * DAY + local.rem_euclid(DAY))
        }
    }
}

/// A date stays a date where whole days are added.
fn sum_type(t: &DataType, unit: Unit) -> DataType {
    match (t, unit) {
        (DataType::Date32, Unit::Days(_) | Unit::Months(_)) => DataType::Date32,
        (DataType::Date32, Unit::Micros(_)) => DataType::Timestamp(TimeUnit::Microsecond, None),
        (t, _) => t.clone(),
    }
}

fn shift(name: &str, times: &ArrayRef, amounts: &Int64Array, unit: Unit, returns: &DataType) -> Result<ArrayRef> {
    let (zone, moments) = (zone_of(times.data_type())?, utc_micros(times)?);
    let nanos = match times.data_type() {
        DataType::Timestamp(TimeUnit::Nanosecond, _) => Some(times.as_primitive::<arrow::datatypes::TimestampNanosecondType>()),
        _ => None,
    };
    let fails = || exec_datafusion_err!("{name}: the time is out of range");
    let out = (0..moments.len()).map(|i| {
        if moments.is_null(i) || amounts.is_null(i) {
            return Ok(None);
        }
        later(moments.value(i), amounts.value(i), unit, zone).map(Some).ok_or_else(fails)
    });
    let out: Int64Array = out.collect::<Result<_>>()?;
    match (returns, nanos) {
        (DataType::Date32, _) => {
            let dates: PrimitiveArray<Date32Type> = out.unary_opt(|v| i32::try_from(v.div_euclid(DAY)).ok());
            Ok(Arc::new(dates))
        }
        (t, Some(before)) => {
            let whole = timestamps(out, t)?;
            let whole = whole.as_primitive::<arrow::datatypes::TimestampNanosecondType>();
            let rest = whole.iter().zip(before).map(|(w, b)| Some(w? + b?.rem_euclid(1000)));
            let sum: PrimitiveArray<arrow::datatypes::TimestampNanosecondType> = rest.collect();
            let DataType::Timestamp(_, zone) = t else { return Ok(Arc::new(sum)) };
            Ok(Arc::new(sum.with_timezone_opt(zone.clone())))
        }
        (t, None) => timestamps(out, t),
    }
}

/// `add_days(t, n)`, `subtract_months(t, n)`
fn step(name: String, unit: Unit, sign: i64) -> ScalarUDF {
    let (a, b) = (name.clone(), name.clone());
    pure(
        &name,
        move |types| {
            arity(&a, types, 2..=2)?;
            Ok(vec![time_type(&a, &types[0])?, DataType::Int64])
        },
        move |types| Ok(sum_type(&types[0], unit)),
        move |args, call| {
            let n: Int64Array = args[1].as_primitive::<Int64Type>().unary_opt(|n| n.checked_mul(sign));
            shift(&b, &args[0], &n, unit, call.returns)
        },
    )
}

/// `to_interval_day(n)`: n may be a column.
fn interval(name: String, unit: Unit) -> ScalarUDF {
    let a = name.clone();
    let b = name.clone();
    pure(
        &name,
        move |types| arity(&a, types, 1..=1).map(|()| vec![DataType::Int64]),
        |_| Ok(DataType::Interval(IntervalUnit::MonthDayNano)),
        move |args, _| {
            let made = args[0].as_primitive::<Int64Type>().iter().map(|n| {
                let Some(n) = n else { return Ok(None) };
                let value = match unit {
                    Unit::Months(m) => n.checked_mul(m).and_then(|m| i32::try_from(m).ok()).map(|m| IntervalMonthDayNano::new(m, 0, 0)),
                    Unit::Days(d) => n.checked_mul(d).and_then(|d| i32::try_from(d).ok()).map(|d| IntervalMonthDayNano::new(0, d, 0)),
                    Unit::Micros(u) => n.checked_mul(u).and_then(|u| u.checked_mul(1000)).map(|n| IntervalMonthDayNano::new(0, 0, n)),
                };
                value.map(Some).ok_or_else(|| exec_datafusion_err!("{b}: {n} is out of range"))
            });
            let made: IntervalMonthDayNanoArray = made.collect::<Result<_>>()?;
            Ok(Arc::new(made) as ArrayRef)
        },
    )
}

/// Borders of `unit` between two times: date_diff('day', a, b) counts midnights.
fn between(name: &'static str) -> ScalarUDF {
    pure(
        name,
        move |types| {
            arity(name, types, 3..=3)?;
            Ok(vec![DataType::Utf8, time_type(name, &types[1])?, time_type(name, &types[2])?])
        },
        |_| Ok(DataType::Int64),
        move |args, _| {
            let units = cast(&args[0], &DataType::Utf8)?;
            let units = units.as_string::<i32>();
            let (a, b) = (local_micros(&args[1])?, local_micros(&args[2])?);
            let out = (0..a.len()).map(|i| {
                if a.is_null(i) || b.is_null(i) || units.is_null(i) {
                    return Ok(None);
                }
                let u = unit(units.value(i)).ok_or_else(|| exec_datafusion_err!("{name}: unknown unit '{}'", units.value(i)))?;
                let index = |l: i64| match u {
                    Unit::Micros(size) => Some(l.div_euclid(size)),
                    // Weeks begin on Monday: day 4 of 1970 was one.
                    Unit::Days(7) => Some((l.div_euclid(DAY) + 3).div_euclid(7)),
                    Unit::Days(_) => Some(l.div_euclid(DAY)),
                    Unit::Months(size) => datetime_of(l).map(|t| (i64::from(t.year()) * 12 + i64::from(t.month0())).div_euclid(size)),
                };
                Ok(index(b.value(i)).zip(index(a.value(i))).map(|(b, a)| b - a))
            });
            let out: Int64Array = out.collect::<Result<_>>()?;
            Ok(Arc::new(out) as ArrayRef)
        },
    )
}

/// `date_add(t, interval)`, `date_add('day', n, t)`; `date_sub` likewise.
fn general(name: &'static str, sign: i64) -> ScalarUDF {
    pure(
        name,
        move |types| match types {
            [t, DataType::Interval(_)] => Ok(vec![time_type(name, t)?, DataType::Interval(IntervalUnit::MonthDayNano)]),
            [_, _, t] => Ok(vec![DataType::Utf8, DataType::Int64, time_type(name, t)?]),
            _ => plan_err!("{name} takes (time, interval) or (unit, number, time)"),
        },
        move |types| match types {
            [DataType::Date32, _] => Ok(DataType::Timestamp(TimeUnit::Microsecond, None)),
            [t, _] => Ok(t.clone()),
            [.., DataType::Date32] => Ok(DataType::Timestamp(TimeUnit::Microsecond, None)),
            _ => Ok(types[types.len() - 1].clone()),
        },
        move |args, call| {
            if let [unit_names, amounts, times] = args {
                let units = cast(unit_names, &DataType::Utf8)?;
                let units = units.as_string::<i32>();
                if units.null_count() == units.len() {
                    return Ok(arrow::array::new_null_array(call.returns, units.len()));
                }
                if units.iter().any(|u| u != Some(units.value(0))) {
                    return datafusion::common::exec_err!("the unit of {name} must be a constant");
                }
                let u = unit(units.value(0)).ok_or_else(|| exec_datafusion_err!("{name}: unknown unit '{}'", units.value(0)))?;
                let n: Int64Array = amounts.as_primitive::<Int64Type>().unary_opt(|n| n.checked_mul(sign));
                let times = cast(times, call.returns)?;
                return shift(name, &times, &n, u, call.returns);
            }
            plus(name, &cast(&args[0], call.returns)?, &args[1], sign)
        },
    )
}

/// Times and intervals (months, days, nanoseconds) as their sums, or with a `sign` of -1 their differences: months first, then days on the
/// clocks of the times' zone, then real time. What a clock skips is the moment after it, what it shows twice the earlier.
pub fn plus(name: &str, times: &ArrayRef, intervals: &ArrayRef, sign: i64) -> Result<ArrayRef> {
    let (widths, ty) = (intervals.as_primitive::<IntervalMonthDayNanoType>(), times.data_type());
    let of = |f: fn(IntervalMonthDayNano) -> i64| -> Int64Array { widths.iter().map(|w| w.and_then(|w| f(w).checked_mul(sign))).collect() };
    let moved = shift(name, times, &of(|w| i64::from(w.months)), Unit::Months(1), ty)?;
    let moved = shift(name, &moved, &of(|w| i64::from(w.days)), Unit::Days(1), ty)?;
    shift(name, &moved, &of(|w| w.nanoseconds / 1000), Unit::Micros(1), ty)
}

pub fn functions() -> Vec<ScalarUDF> {
    let mut all = vec![between("date_diff"), general("date_add", 1), general("date_sub", -1)];
    for (name, unit) in UNITS {
        all.push(step(format!("add_{name}s"), unit, 1));
        all.push(step(format!("subtract_{name}s"), unit, -1));
        all.push(interval(format!("to_interval_{name}"), unit));
    }
    all
}
