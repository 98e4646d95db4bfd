//! Times of a given precision and zone: to_datetime, to_datetime64, now64, to_timezone, AT TIME ZONE.
//!
//! Digits and zone are part of the result's type, so they must be constants. A zone never moves a moment: it says how local times are
//! read and shown.

use super::{
    clock::statement_time,
    scalar::{TypeOf, arity, typed},
    times::{SECOND, Zone, from_local, named_zone, time_type, to_local, utc_micros},
};
use crate::{Error, sqlstate, types::parse_text};
use arrow::{
    array::{Array, ArrayRef, AsArray, Int64Array, TimestampMicrosecondArray, TimestampNanosecondArray},
    datatypes::{DataType, Float64Type, Int64Type, TimeUnit, TimestampMicrosecondType, TimestampNanosecondType},
};
use datafusion::{
    common::{Result, ScalarValue, exec_datafusion_err, exec_err, plan_err},
    logical_expr::{ScalarUDF, Volatility},
};
use ebb_storage::column_type::ColumnType;
use std::sync::Arc;

type Constants<'a> = &'a [Option<&'a ScalarValue>];

/// Fraction digits, given as the argument at `at`.
fn digits(name: &str, constants: Constants<'_>, at: usize) -> Result<i64> {
    let Some(value) = constants.get(at).copied().flatten() else {
        return plan_err!("the number of digits of {name} must be a constant");
    };
    match value.cast_to(&DataType::Int64)? {
        ScalarValue::Int64(Some(n)) if (0..=9).contains(&n) => Ok(n),
        other => plan_err!("{name} takes 0 to 9 digits, not {other}"),
    }
}

/// The zone given as the argument at `at`, with its name as the IANA database has it.
fn zone(name: &str, constants: Constants<'_>, at: usize) -> Result<(Zone, Arc<str>)> {
    match constants.get(at).copied().flatten().and_then(|v| v.try_as_str().flatten()) {
        Some(text) => {
            let zone = named_zone(text).map_err(|e| match text.contains('%') {
                true => exec_datafusion_err!("{name} takes a time zone, not a format: parse_datetime(text, '{text}') takes one"),
                false => e,
            })?;
            Ok((zone, zone.map_or("UTC".into(), |tz| tz.name().into())))
        }
        None => plan_err!("the time zone of {name} must be a constant text"),
    }
}

fn unit(digits: i64) -> TimeUnit {
    if digits > 6 { TimeUnit::Nanosecond } else { TimeUnit::Microsecond }
}

/// Without what lies below `digits` fraction digits.
pub fn cut(array: &ArrayRef, digits: i64) -> ArrayRef {
    match array.data_type() {
        DataType::Timestamp(TimeUnit::Microsecond, zone) if digits < 6 => {
            let unit = 10i64.pow(6 - digits.max(0) as u32);
            let out: TimestampMicrosecondArray =
                array.as_primitive::<TimestampMicrosecondType>().unary(|v| v.div_euclid(unit).saturating_mul(unit));
            Arc::new(out.with_timezone_opt(zone.clone()))
        }
        DataType::Timestamp(TimeUnit::Nanosecond, zone) if digits < 9 => {
            let unit = 10i64.pow(9 - digits.max(0) as u32);
            let out: TimestampNanosecondArray =
                array.as_primitive::<TimestampNanosecondType>().unary(|v| v.div_euclid(unit).saturating_mul(unit));
            Arc::new(out.with_timezone_opt(zone.clone()))
        }
        _ => array.clone(),
    }
}

/// Moments in UTC, in the unit and with the zone of `returns`.
fn moments(array: &ArrayRef, returns: &DataType) -> Result<ArrayRef> {
    let DataType::Timestamp(unit, zone) = returns else { return exec_err!("{returns} is no timestamp") };
    let nanos = matches!(array.data_type(), DataType::Timestamp(TimeUnit::Nanosecond, _));
    match unit {
        TimeUnit::Nanosecond if nanos => {
            Ok(Arc::new(array.as_primitive::<TimestampNanosecondType>().clone().with_timezone_opt(zone.clone())))
        }
        TimeUnit::Nanosecond => {
            let fails = || exec_datafusion_err!("the time is out of range of nanoseconds, which reach from 1677 to 2262");
            let out: Int64Array = utc_micros(array)?.try_unary(|v| v.checked_mul(1000).ok_or_else(fails))?;
            Ok(Arc::new(out.reinterpret_cast::<TimestampNanosecondType>().with_timezone_opt(zone.clone())))
        }
        _ => Ok(Arc::new(utc_micros(array)?.reinterpret_cast::<TimestampMicrosecondType>().with_timezone_opt(zone.clone()))),
    }
}

/// Texts as times of type `returns`: those without an offset on the clocks of the zone that is named.
///
/// # Errors
/// For the first text that is no time, and for a name that is no zone's.
pub fn read_times(texts: &ArrayRef, returns: &DataType, zone: Option<&str>) -> Result<ArrayRef> {
    let zone = match zone {
        Some(name) => named_zone(name)?,
        None => None,
    };
    let DataType::Timestamp(unit @ (TimeUnit::Second | TimeUnit::Millisecond), named) = returns else {
        return of_texts(texts, returns, zone);
    };
    let micros = of_texts(texts, &DataType::Timestamp(TimeUnit::Microsecond, named.clone()), zone)?;
    let digits = if *unit == TimeUnit::Second { 0 } else { 3 };
    Ok(arrow::compute::cast(&cut(&micros, digits), returns)?)
}

/// Texts as moments: in `zone` where they name no offset.
fn of_texts(array: &ArrayRef, returns: &DataType, zone: Zone) -> Result<ArrayRef> {
    let DataType::Timestamp(unit, _) = returns else { return exec_err!("{returns} is no timestamp") };
    let ty = ColumnType::DateTime64(if *unit == TimeUnit::Nanosecond { 9 } else { 6 }, None);
    let texts = array.as_string::<i32>();
    let read = parse_text(texts.iter(), &ty, "").map_err(|r| Error::from(r.of_value()))?;
    match zone {
        None => moments(&read, returns),
        Some(_) => moments(&on_clocks(&read, zone, |row| texts.is_valid(row) && has_offset(texts.value(row)))?, returns),
    }
}

/// Moments that `read` took from `given` as if they were UTC's, on the clocks of the zone that is named: times without a zone, dates, and texts
/// that say no offset.
///
/// # Errors
/// For a name that is no zone's, and for times out of range.
pub fn in_zone(named: &str, given: &ArrayRef, read: &ArrayRef) -> Result<ArrayRef> {
    let zone = named_zone(named)?;
    match given.data_type() {
        _ if zone.is_none() => Ok(read.clone()),
        DataType::Timestamp(_, None) | DataType::Date32 | DataType::Date64 => on_clocks(read, zone, |_| false),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Dictionary(..) => {
            let texts = arrow::compute::cast(given, &DataType::Utf8)?;
            let texts = texts.as_string::<i32>();
            on_clocks(read, zone, |row| texts.is_valid(row) && has_offset(texts.value(row)))
        }
        _ => Ok(read.clone()),
    }
}

/// What the clocks of `zone` showed, as moments; rows that `stays` names are moments already.
fn on_clocks(read: &ArrayRef, zone: Zone, stays: impl Fn(usize) -> bool) -> Result<ArrayRef> {
    let fails = || exec_datafusion_err!("the time is out of range");
    let micros = utc_micros(read)?;
    let shift = |row: usize| -> Result<i64> {
        if micros.is_null(row) || stays(row) {
            return Ok(0);
        }
        let local = micros.value(row);
        from_local(local, zone).and_then(|moment| moment.checked_sub(local)).ok_or_else(fails)
    };
    let moved = |value: Option<i64>, row: usize, scale: i64| match value {
        None => Ok(None),
        Some(v) => shift(row)?.checked_mul(scale).and_then(|s| v.checked_add(s)).map(Some).ok_or_else(fails),
    };
    match read.data_type() {
        DataType::Timestamp(TimeUnit::Nanosecond, named) => {
            let values = read.as_primitive::<TimestampNanosecondType>();
            let out: TimestampNanosecondArray = values.iter().enumerate().map(|(row, v)| moved(v, row, 1000)).collect::<Result<_>>()?;
            Ok(Arc::new(out.with_timezone_opt(named.clone())))
        }
        DataType::Timestamp(TimeUnit::Microsecond, named) => {
            let values = read.as_primitive::<TimestampMicrosecondType>();
            let out: TimestampMicrosecondArray = values.iter().enumerate().map(|(row, v)| moved(v, row, 1)).collect::<Result<_>>()?;
            Ok(Arc::new(out.with_timezone_opt(named.clone())))
        }
        other => exec_err!("{other} is no timestamp"),
    }
}

/// `...Z`, `...+02`, `...-05:30`: a sign behind the time of day.
fn has_offset(text: &str) -> bool {
    let text = text.trim();
    text.ends_with(['Z', 'z']) || text.find(':').is_some_and(|at| text[at..].contains(['+', '-']))
}

/// Numbers are seconds; texts and times as they read.
fn to_datetime(name: &'static str, takes_digits: bool) -> ScalarUDF {
    let zone_at = 1 + usize::from(takes_digits);
    let coerce = move |types: &[DataType]| -> Result<Vec<DataType>> {
        if takes_digits && types.len() == 1 {
            return plan_err!("{name} takes a number of digits, like {name}(t, 3)");
        }
        arity(name, types, 1..=zone_at + 1)?;
        let first = match &types[0] {
            t if t.is_integer() => DataType::Int64,
            t if t.is_floating() || matches!(t, DataType::Decimal128(..) | DataType::Decimal256(..)) => DataType::Float64,
            DataType::Utf8 | DataType::Utf8View | DataType::LargeUtf8 => DataType::Utf8,
            t => time_type(name, t)?,
        };
        let rest = (1..types.len()).map(|i| if takes_digits && i == 1 { DataType::Int64 } else { DataType::Utf8 });
        Ok(std::iter::once(first).chain(rest).collect())
    };
    let returns: TypeOf = Arc::new(move |types, constants| {
        let unit = if takes_digits { unit(digits(name, constants, 1)?) } else { TimeUnit::Microsecond };
        let named = match (types.get(zone_at), &types[0]) {
            (Some(_), _) => Some(zone(name, constants, zone_at)?.1),
            (None, DataType::Timestamp(_, zone)) => zone.clone(),
            (None, _) => None,
        };
        Ok(DataType::Timestamp(unit, named))
    });
    let eval = move |args: &[ArrayRef], call: &super::scalar::Call<'_>| {
        let first = |i: usize| args.get(i).filter(|a| !a.is_empty()).map(|a| ScalarValue::try_from_array(a, 0)).transpose();
        let (given, zone_given) = (first(1)?, first(zone_at)?);
        let digits = if takes_digits { digits(name, &[None, given.as_ref()], 1).unwrap_or(0) } else { 0 };
        let zone = match &zone_given {
            Some(z) => zone(name, &[Some(z)], 0)?.0,
            None => None,
        };
        let fails = || exec_datafusion_err!("{name}: the number of seconds is out of range");
        let out = match args[0].data_type() {
            DataType::Int64 => {
                let micros: Int64Array = args[0].as_primitive::<Int64Type>().try_unary(|s| s.checked_mul(SECOND).ok_or_else(fails))?;
                moments(&(Arc::new(micros.reinterpret_cast::<TimestampMicrosecondType>()) as ArrayRef), call.returns)?
            }
            DataType::Float64 => {
                let seconds = args[0].as_primitive::<Float64Type>();
                let micros: Int64Array = seconds.try_unary(|s| {
                    let micros = (s * 1e6).floor();
                    // The bounds of an i64 are themselves floats; NaN is in no range.
                    if (-9.2e18..9.2e18).contains(&micros) { Ok(micros as i64) } else { Err(fails()) }
                })?;
                moments(&(Arc::new(micros.reinterpret_cast::<TimestampMicrosecondType>()) as ArrayRef), call.returns)?
            }
            DataType::Utf8 => of_texts(&args[0], call.returns, zone)?,
            _ => moments(&args[0], call.returns)?,
        };
        Ok(cut(&out, digits))
    };
    typed(name, &[], Volatility::Immutable, (Arc::new(coerce), returns, Arc::new(eval)))
}

fn now64() -> ScalarUDF {
    const NAME: &str = "now64";
    let digits_of = |types: &[DataType], constants: Constants<'_>| if types.is_empty() { Ok(3) } else { digits(NAME, constants, 0) };
    typed(
        NAME,
        &[],
        Volatility::Stable,
        (
            Arc::new(|types| arity(NAME, types, 0..=1).map(|()| vec![DataType::Int64; types.len()])),
            Arc::new(move |types, constants| Ok(DataType::Timestamp(unit(digits_of(types, constants)?), Some("UTC".into())))),
            Arc::new(move |args, call| {
                let given = args.first().filter(|a| !a.is_empty()).map(|a| ScalarValue::try_from_array(a, 0)).transpose()?;
                let digits = given.as_ref().map_or(Ok(3), |d| digits(NAME, &[Some(d)], 0))?;
                let now: ArrayRef = Arc::new(TimestampMicrosecondArray::from_value(statement_time(call.config)?.0, call.rows));
                Ok(cut(&moments(&now, call.returns)?, digits))
            }),
        ),
    )
}

/// The same moment in another zone.
fn to_timezone() -> ScalarUDF {
    const NAME: &str = "to_timezone";
    typed(
        NAME,
        &[],
        Volatility::Immutable,
        (
            Arc::new(|types| {
                arity(NAME, types, 2..=2)?;
                let time = match time_type(NAME, &types[0])? {
                    DataType::Date32 => DataType::Timestamp(TimeUnit::Microsecond, None),
                    other => other,
                };
                Ok(vec![time, DataType::Utf8])
            }),
            Arc::new(|types, constants| match &types[0] {
                DataType::Timestamp(unit, _) => Ok(DataType::Timestamp(*unit, Some(zone(NAME, constants, 1)?.1))),
                other => plan_err!("{NAME} takes a time, not {other}"),
            }),
            Arc::new(|args, call| moments(&args[0], call.returns)),
        ),
    )
}

/// `t AT TIME ZONE z`, which PostgreSQL also writes `timezone(z, t)`: a moment becomes what the zone's clocks show then, what clocks
/// show becomes the moment.
fn timezone() -> ScalarUDF {
    const NAME: &str = "timezone";
    typed(
        NAME,
        &[],
        Volatility::Immutable,
        (
            Arc::new(|types| {
                arity(NAME, types, 2..=2)?;
                let moment = || DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
                let time = match &types[1] {
                    DataType::Timestamp(..) => time_type(NAME, &types[1])?,
                    other => time_type(NAME, other).map(|_| moment())?,
                };
                Ok(vec![DataType::Utf8, time])
            }),
            Arc::new(|types, _| match &types[1] {
                DataType::Timestamp(_, Some(_)) => Ok(DataType::Timestamp(TimeUnit::Microsecond, None)),
                _ => Ok(DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))),
            }),
            Arc::new(|args, call| {
                let zones = args[0].as_string::<i32>();
                let shows = matches!(call.returns, DataType::Timestamp(_, None));
                let micros = utc_micros(&args[1])?;
                let mut last: Option<(&str, Zone)> = None;
                let mut out = Vec::with_capacity(micros.len());
                for (row, value) in micros.iter().enumerate() {
                    let (Some(value), true) = (value, zones.is_valid(row)) else {
                        out.push(None);
                        continue;
                    };
                    let name = zones.value(row);
                    let zone = match last {
                        Some((known, zone)) if known == name => zone,
                        _ => named_zone(name).map_err(|e| Error::from(e).with_sqlstate(sqlstate::INVALID_PARAMETER_VALUE))?,
                    };
                    last = Some((name, zone));
                    let moved = if shows { to_wall(value, zone) } else { from_local(value, zone) };
                    out.push(Some(moved.ok_or_else(|| exec_datafusion_err!("{NAME}: the time is out of range"))?));
                }
                let DataType::Timestamp(_, zone) = call.returns else { return exec_err!("{} is no timestamp", call.returns) };
                let out = Int64Array::from(out).reinterpret_cast::<TimestampMicrosecondType>();
                Ok(Arc::new(out.with_timezone_opt(zone.clone())) as ArrayRef)
            }),
        ),
    )
}

/// What the zone's clocks show at a moment.
fn to_wall(micros: i64, zone: Zone) -> Option<i64> {
    let Some(tz) = zone else { return Some(micros) };
    to_local(micros, tz)
}

pub fn functions() -> Vec<ScalarUDF> {
    vec![to_datetime("to_datetime", false), to_datetime("to_datetime64", true), now64(), to_timezone(), timezone()]
}
