//! Times from and to texts and numbers.

use super::{
    scalar::{arity, build, pure},
    times::{SECOND, datetime_of, from_local, local_micros, named_zone, time_type},
};
use arrow::{
    array::{Array, ArrayRef, AsArray, Int64Array, StringViewArray, TimestampMicrosecondArray, TimestampNanosecondArray},
    compute::cast,
    datatypes::{DataType, Int64Type, TimeUnit, TimestampMicrosecondType},
};
use chrono::{NaiveDate, NaiveDateTime};
use datafusion::{
    common::{Result, exec_datafusion_err, exec_err, plan_err},
    logical_expr::{ScalarUDF, Volatility},
};
use std::{fmt::Write, sync::Arc};

/// MySQL's letters, as format_datetime takes them, in chrono's.
fn chrono_format(name: &str, format: &str) -> Result<String> {
    let mut out = String::new();
    let mut chars = format.chars();
    while let Some(c) = chars.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        let letter = chars.next();
        out.push_str(match letter {
            Some('Y') => "%Y",
            Some('y') => "%y",
            Some('m') => "%m",
            Some('d') => "%d",
            Some('e') => "%e",
            Some('H') => "%H",
            Some('I' | 'h') => "%I",
            Some('i' | 'M') => "%M",
            Some('S' | 's') => "%S",
            Some('f') => "%6f",
            Some('j') => "%j",
            Some('p') => "%p",
            Some('a') => "%a",
            Some('W') => "%A",
            Some('b') => "%b",
            Some('F') => "%Y-%m-%d",
            Some('T') => "%H:%M:%S",
            Some('D') => "%m/%d/%y",
            Some('R') => "%H:%M",
            Some('V') => "%V",
            Some('u') => "%u",
            Some('w') => "%w",
            Some('%') => "%%",
            Some(other) => return exec_err!("{name}: %{other} is not known"),
            None => return exec_err!("{name}: the format ends in %"),
        });
    }
    Ok(out)
}

fn constant_text(name: &str, array: &ArrayRef) -> Result<Option<String>> {
    let texts = cast(array, &DataType::Utf8)?;
    let texts = texts.as_string::<i32>();
    let first = (!texts.is_empty() && texts.is_valid(0)).then(|| texts.value(0).to_owned());
    if texts.iter().any(|t| t != first.as_deref()) {
        return exec_err!("{name} takes one format for all rows");
    }
    Ok(first)
}

fn format_datetime() -> ScalarUDF {
    const NAME: &str = "format_datetime";
    pure(
        NAME,
        |types| {
            arity(NAME, types, 2..=2)?;
            Ok(vec![time_type(NAME, &types[0])?, DataType::Utf8])
        },
        |_| Ok(DataType::Utf8View),
        |args, call| {
            let Some(format) = constant_text(NAME, &args[1])? else { return Ok(arrow::array::new_null_array(call.returns, call.rows)) };
            let format = chrono_format(NAME, &format)?;
            let local = local_micros(&args[0])?;
            let shown = local.iter().map(|l| -> Result<Option<String>> {
                let Some(time) = l.and_then(datetime_of) else { return Ok(None) };
                let mut text = String::new();
                write!(text, "{}", time.format(&format)).map_err(|_| exec_datafusion_err!("{NAME}: the format cannot be used"))?;
                Ok(Some(text))
            });
            Ok(Arc::new(shown.collect::<Result<StringViewArray>>()?) as ArrayRef)
        },
    )
}

fn parse_datetime() -> ScalarUDF {
    const NAME: &str = "parse_datetime";
    pure(
        NAME,
        |types| arity(NAME, types, 2..=2).map(|()| vec![DataType::Utf8; 2]),
        |_| Ok(DataType::Timestamp(TimeUnit::Microsecond, None)),
        |args, call| {
            let Some(format) = constant_text(NAME, &args[1])? else { return Ok(arrow::array::new_null_array(call.returns, call.rows)) };
            let format = chrono_format(NAME, &format)?;
            let parsed = args[0].as_string::<i32>().iter().map(|t| {
                let Some(t) = t else { return Ok(None) };
                let time = NaiveDateTime::parse_from_str(t, &format).ok();
                let time = time.or_else(|| NaiveDate::parse_from_str(t, &format).ok().map(|d| d.and_time(chrono::NaiveTime::MIN)));
                time.map(|t| Some(t.and_utc().timestamp_micros()))
                    .ok_or_else(|| exec_datafusion_err!("{NAME}: '{t}' does not fit the format"))
            });
            Ok(Arc::new(parsed.collect::<Result<TimestampMicrosecondArray>>()?) as ArrayRef)
        },
    )
}

/// Numbers are seconds; texts and times as they read.
fn to_datetime(name: &'static str, takes_digits: bool) -> ScalarUDF {
    let is_number = |t: &DataType| t.is_integer() || t.is_floating();
    let coerce = move |types: &[DataType]| -> Result<Vec<DataType>> {
        arity(name, types, 1..=3)?;
        let first = match &types[0] {
            t if t.is_integer() => DataType::Int64,
            t if is_number(t) => DataType::Float64,
            t => time_type(name, t)?,
        };
        let rest = types[1..].iter().map(|t| if t.is_integer() { DataType::Int64 } else { DataType::Utf8 });
        Ok(std::iter::once(first).chain(rest).collect())
    };
    pure(
        name,
        coerce,
        move |types| {
            if takes_digits && types.len() == 1 {
                return plan_err!("{name} takes a number of digits, like {name}(t, 3)");
            }
            match &types[0] {
                t @ DataType::Timestamp(..) if types.len() < 3 => Ok(t.clone()),
                _ => Ok(DataType::Timestamp(TimeUnit::Microsecond, None)),
            }
        },
        move |args, call| {
            let digits = match (takes_digits, args.get(1)) {
                (true, Some(d)) if *d.data_type() == DataType::Int64 => {
                    let d = d.as_primitive::<Int64Type>();
                    let first = d.iter().next().flatten();
                    if d.iter().any(|v| v != first) {
                        return exec_err!("the number of digits of {name} must be a constant");
                    }
                    first.unwrap_or(0)
                }
                _ => 0,
            };
            if !(0..=9).contains(&digits) {
                return exec_err!("{name} takes 0 to 9 digits, not {digits}");
            }
            let fails = || exec_datafusion_err!("{name}: the number of seconds is out of range");
            let micros: Int64Array = match args[0].data_type() {
                DataType::Int64 => args[0].as_primitive::<Int64Type>().try_unary(|s| s.checked_mul(SECOND).ok_or_else(fails))?,
                DataType::Float64 => {
                    let seconds = args[0].as_primitive::<arrow::datatypes::Float64Type>();
                    seconds.iter().map(|s| s.map(|s| (s * 1e6).floor() as i64)).collect()
                }
                _ => {
                    let t = cast(&args[0], call.returns)?;
                    return cut(&t, digits);
                }
            };
            let out: ArrayRef = Arc::new(micros.reinterpret_cast::<TimestampMicrosecondType>());
            cut(&cast(&out, call.returns)?, digits)
        },
    )
}

/// Without what lies below `digits` fraction digits.
pub fn cut(array: &ArrayRef, digits: i64) -> Result<ArrayRef> {
    Ok(match array.data_type() {
        DataType::Timestamp(TimeUnit::Microsecond, zone) if digits < 6 => {
            let unit = 10i64.pow(6 - digits as u32);
            let out: TimestampMicrosecondArray = array.as_primitive::<TimestampMicrosecondType>().unary(|v| v.div_euclid(unit) * unit);
            Arc::new(out.with_timezone_opt(zone.clone()))
        }
        DataType::Timestamp(TimeUnit::Nanosecond, zone) if digits < 9 => {
            let unit = 10i64.pow(9 - digits as u32);
            let nanos = array.as_primitive::<arrow::datatypes::TimestampNanosecondType>();
            let out: TimestampNanosecondArray = nanos.unary(|v| v.div_euclid(unit) * unit);
            Arc::new(out.with_timezone_opt(zone.clone()))
        }
        _ => array.clone(),
    })
}

fn to_date() -> ScalarUDF {
    const NAME: &str = "to_date";
    pure(
        NAME,
        |types| {
            arity(NAME, types, 1..=1)?;
            Ok(vec![if types[0].is_integer() { DataType::Int64 } else { time_type(NAME, &types[0])? }])
        },
        |_| Ok(DataType::Date32),
        |args, _| {
            let days: arrow::array::Date32Array = match args[0].data_type() {
                DataType::Int64 => args[0].as_primitive::<Int64Type>().unary_opt(|d| i32::try_from(d).ok()),
                _ => local_micros(&args[0])?.unary_opt(|l| super::times::date_of(l).map(super::times::days_of)),
            };
            Ok(Arc::new(days) as ArrayRef)
        },
    )
}

/// The same moment in another zone, which must be a constant.
fn to_timezone() -> ScalarUDF {
    const NAME: &str = "to_timezone";
    // The zone is part of the type and is not known from the argument's type: times are shown as local times without a zone.
    pure(
        NAME,
        |types| {
            arity(NAME, types, 2..=2)?;
            Ok(vec![time_type(NAME, &types[0])?, DataType::Utf8])
        },
        |_| Ok(DataType::Timestamp(TimeUnit::Microsecond, None)),
        |args, call| {
            let Some(zone) = constant_text(NAME, &args[1])? else { return Ok(arrow::array::new_null_array(call.returns, call.rows)) };
            let tz: Arc<str> = named_zone(&zone)?.map_or("UTC".into(), |tz| tz.name().into());
            let moments = cast(&args[0], &DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())))?;
            let shown = moments.as_primitive::<TimestampMicrosecondType>().clone().with_timezone(tz);
            let local = local_micros(&(Arc::new(shown) as ArrayRef))?;
            Ok(Arc::new(local.reinterpret_cast::<TimestampMicrosecondType>()) as ArrayRef)
        },
    )
}

fn from_unix_timestamp() -> ScalarUDF {
    const NAME: &str = "from_unix_timestamp";
    build(
        NAME,
        &["from_unixtime"],
        Volatility::Immutable,
        (
            Arc::new(|types| arity(NAME, types, 1..=1).map(|()| vec![DataType::Int64])),
            Arc::new(|_| Ok(DataType::Timestamp(TimeUnit::Microsecond, None))),
            Arc::new(|args: &[ArrayRef], _: &super::scalar::Call<'_>| {
                let seconds = args[0].as_primitive::<Int64Type>();
                let fails = || exec_datafusion_err!("{NAME}: the number of seconds is out of range");
                let micros: Int64Array =
                    seconds.try_unary(|s| s.checked_mul(SECOND).and_then(|m| from_local(m, None)).ok_or_else(fails))?;
                Ok(Arc::new(micros.reinterpret_cast::<TimestampMicrosecondType>()) as ArrayRef)
            }),
        ),
    )
}

pub fn functions() -> Vec<ScalarUDF> {
    vec![
        format_datetime(),
        parse_datetime(),
        to_datetime("to_datetime", false),
        to_datetime("to_datetime64", true),
        to_date(),
        to_timezone(),
        from_unix_timestamp(),
    ]
}
