//! The start of the unit that a time lies in. Weeks begin on Monday. Years to weeks give dates, days and shorter units times.

use super::{
    scalar::{arity, pure},
    times::{DAY, HOUR, MINUTE, SECOND, date_of, days_of, from_local, local_micros, time_type, timestamps, zone_of},
};
use arrow::{
    array::{Array, ArrayRef, AsArray, Int64Array, PrimitiveArray},
    datatypes::{DataType, Date32Type, IntervalMonthDayNanoType, IntervalUnit, TimeUnit},
};
use chrono::{Datelike, NaiveDate};
use datafusion::{
    common::{Result, exec_err},
    logical_expr::ScalarUDF,
};
use std::sync::Arc;

fn to_date(name: &'static str, of: fn(NaiveDate) -> Option<NaiveDate>) -> ScalarUDF {
    pure(
        name,
        move |types| {
            arity(name, types, 1..=1)?;
            Ok(vec![time_type(name, &types[0])?])
        },
        |_| Ok(DataType::Date32),
        move |args, _| {
            let out: PrimitiveArray<Date32Type> = local_micros(&args[0])?.unary_opt(|l| date_of(l).and_then(of).map(days_of));
            Ok(Arc::new(out) as ArrayRef)
        },
    )
}

/// A time of the same precision and zone; of a date, a time.
fn start_type(types: &[DataType]) -> DataType {
    match &types[0] {
        t @ DataType::Timestamp(..) => t.clone(),
        _ => DataType::Timestamp(TimeUnit::Microsecond, None),
    }
}

fn to_time(name: &'static str, unit: i64) -> ScalarUDF {
    pure(
        name,
        move |types| {
            arity(name, types, 1..=1)?;
            Ok(vec![time_type(name, &types[0])?])
        },
        |types| Ok(start_type(types)),
        move |args, call| floor(&args[0], call.returns, |l| Some(l.div_euclid(unit) * unit)),
    )
}

/// `f` on the wall clock, back to moments.
fn floor(array: &ArrayRef, returns: &DataType, f: impl Fn(i64) -> Option<i64>) -> Result<ArrayRef> {
    let zone = zone_of(array.data_type())?;
    let local = local_micros(array)?;
    let out: Int64Array = match zone {
        None => local.unary_opt(f),
        Some(_) => local.unary_opt(|l| from_local(f(l)?, zone)),
    };
    timestamps(out, returns)
}

/// Buckets of an interval, counted from 1970 (months: from January 1970; weeks of days: from Monday, 1969-12-29).
pub fn bucket(local: i64, months: i32, days: i32, micros: i64) -> Option<i64> {
    if months != 0 {
        let d = date_of(local)?;
        let index = (d.year() - 1970) * 12 + d.month0() as i32;
        let start = index.div_euclid(months) * months;
        let first = NaiveDate::from_ymd_opt(1970 + start.div_euclid(12), start.rem_euclid(12) as u32 + 1, 1)?;
        return Some(i64::from(days_of(first)) * DAY);
    }
    let width = i64::from(days).checked_mul(DAY)?.checked_add(micros)?;
    let origin = if days != 0 && days % 7 == 0 && micros == 0 { -3 * DAY } else { 0 };
    Some((local - origin).div_euclid(width) * width + origin)
}

/// (interval, time) or (time, interval), as `width_first` says.
fn by_interval(name: &'static str, width_first: bool) -> ScalarUDF {
    let (w, t) = if width_first { (0, 1) } else { (1, 0) };
    pure(
        name,
        move |types| {
            arity(name, types, 2..=2)?;
            let mut out = vec![DataType::Interval(IntervalUnit::MonthDayNano); 2];
            out[t] = time_type(name, &types[t])?;
            Ok(out)
        },
        move |types| Ok(start_type(&types[t..])),
        move |args, call| {
            let widths = args[w].as_primitive::<IntervalMonthDayNanoType>();
            if widths.null_count() == widths.len() {
                return Ok(arrow::array::new_null_array(call.returns, widths.len()));
            }
            let Some(i) = widths.iter().flatten().next() else { return exec_err!("{name} needs an interval") };
            if widths.iter().any(|v| v != Some(i)) {
                return exec_err!("the interval of {name} must be a constant");
            }
            let positive = i.months >= 0 && i.days >= 0 && i.nanoseconds >= 0 && (i.months > 0) != (i.days > 0 || i.nanoseconds >= 1000);
            if !positive {
                return exec_err!("{name} takes a positive interval, of months or of shorter units");
            }
            floor(&args[t], call.returns, |l| bucket(l, i.months, i.days, i.nanoseconds / 1000))
        },
    )
}

pub fn functions() -> Vec<ScalarUDF> {
    let monday = |d: NaiveDate| d.checked_sub_days(chrono::Days::new(u64::from(d.weekday().num_days_from_monday())));
    vec![
        to_date("to_start_of_year", |d| d.with_ordinal(1)),
        to_date("to_start_of_quarter", |d| NaiveDate::from_ymd_opt(d.year(), d.month0() / 3 * 3 + 1, 1)),
        to_date("to_start_of_month", |d| d.with_day(1)),
        to_date("to_start_of_week", monday),
        to_date("to_monday", monday),
        to_time("to_start_of_day", DAY),
        to_time("to_start_of_hour", HOUR),
        to_time("to_start_of_minute", MINUTE),
        to_time("to_start_of_second", SECOND),
        to_time("to_start_of_five_minutes", 5 * MINUTE),
        to_time("to_start_of_ten_minutes", 10 * MINUTE),
        to_time("to_start_of_fifteen_minutes", 15 * MINUTE),
        by_interval("to_start_of_interval", false),
        by_interval("time_bucket", true),
    ]
}
