//! Times from and to texts in a given format, dates, seconds.

use super::{
    scalar::{arity, build, pure},
    times::{SECOND, datetime_of, from_local, local_micros, time_type},
};
use arrow::{
    array::{Array, ArrayRef, AsArray, Int64Array, StringViewArray, TimestampMicrosecondArray},
    compute::cast,
    datatypes::{DataType, Int64Type, TimeUnit, TimestampMicrosecondType},
};
use chrono::{NaiveDate, NaiveDateTime};
use datafusion::{
    common::{Result, exec_datafusion_err, exec_err},
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
                DataType::Int64 => args[0].as_primitive::<Int64Type>().try_unary(|d| {
                    let day = i32::try_from(d).ok().filter(|d| NaiveDate::from_epoch_days(*d).is_some());
                    day.ok_or_else(|| {
                        exec_datafusion_err!("{NAME}: {d} days are out of range: to_date(to_datetime(seconds)) takes seconds")
                    })
                })?,
                _ => local_micros(&args[0])?.unary_opt(|l| super::times::date_of(l).map(super::times::days_of)),
            };
            Ok(Arc::new(days) as ArrayRef)
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
    vec![format_datetime(), parse_datetime(), to_date(), from_unix_timestamp()]
}
