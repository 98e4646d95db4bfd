//! Texts as PostgreSQL writes values, into the array that a column carries: COPY, literals, parameters.

pub(crate) mod decimal;
pub(crate) mod json;

use super::{Refused, coerce::cut, shown};
use arrow::{
    array::{ArrayRef, BinaryViewBuilder, BooleanBuilder, Decimal128Array, PrimitiveBuilder, StringViewBuilder},
    compute::kernels::cast_utils::{string_to_datetime, string_to_timestamp_nanos},
    datatypes::{
        ArrowPrimitiveType, DataType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
        TimeUnit, TimestampMicrosecondType, TimestampNanosecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
    },
};
use chrono::NaiveDate;
use ebb_storage::column_type::ColumnType;
use std::{str::FromStr, sync::Arc};

/// One value a text; `None` is NULL.
///
/// # Errors
/// The first text that is no value of the type.
pub fn parse_text<'a>(texts: impl Iterator<Item = Option<&'a str>>, ty: &ColumnType, name: &str) -> Result<ArrayRef, Refused> {
    let ty = ty.plain();
    let array: ArrayRef = match ty {
        ColumnType::Int8 => whole::<Int8Type>(texts, ty, name)?,
        ColumnType::Int16 => whole::<Int16Type>(texts, ty, name)?,
        ColumnType::Int32 => whole::<Int32Type>(texts, ty, name)?,
        ColumnType::Int64 => whole::<Int64Type>(texts, ty, name)?,
        ColumnType::UInt8 => whole::<UInt8Type>(texts, ty, name)?,
        ColumnType::UInt16 => whole::<UInt16Type>(texts, ty, name)?,
        ColumnType::UInt32 => whole::<UInt32Type>(texts, ty, name)?,
        ColumnType::UInt64 => whole::<UInt64Type>(texts, ty, name)?,
        // Rust reads NaN, inf, Infinity and exponents in any case, as PostgreSQL does.
        ColumnType::Float32 => each::<Float32Type>(texts, name, ty, |t| t.trim().parse().ok())?,
        ColumnType::Float64 => each::<Float64Type>(texts, name, ty, |t| t.trim().parse().ok())?,
        ColumnType::Decimal(p, s) => decimals(texts, *p, *s, ty, name)?,
        ColumnType::Bool => booleans(texts, ty, name)?,
        ColumnType::Bytes => bytes(texts, ty, name)?,
        ColumnType::Date => each::<Date32Type>(texts, name, ty, date)?,
        ColumnType::DateTime(_) | ColumnType::DateTime64(..) => times(texts, ty, name)?,
        ColumnType::Array(..) | ColumnType::Map(..) => nested(texts, ty, name)?,
        _ => words(texts, ty, name)?,
    };
    Ok(cut(array, ty))
}

fn each<'a, T: ArrowPrimitiveType>(
    texts: impl Iterator<Item = Option<&'a str>>,
    name: &str,
    ty: &ColumnType,
    parse: impl Fn(&str) -> Option<T::Native>,
) -> Result<ArrayRef, Refused> {
    let mut out = PrimitiveBuilder::<T>::with_capacity(texts.size_hint().0);
    for (row, text) in texts.enumerate() {
        match text {
            None => out.append_null(),
            Some(t) => out.append_value(parse(t).ok_or_else(|| Refused::value(row, name, t, ty))?),
        }
    }
    Ok(Arc::new(out.finish()))
}

fn whole<'a, T: ArrowPrimitiveType>(texts: impl Iterator<Item = Option<&'a str>>, ty: &ColumnType, name: &str) -> Result<ArrayRef, Refused>
where
    T::Native: FromStr,
{
    let mut out = PrimitiveBuilder::<T>::with_capacity(texts.size_hint().0);
    for (row, text) in texts.enumerate() {
        let Some(t) = text else {
            out.append_null();
            continue;
        };
        match t.trim().parse() {
            Ok(v) => out.append_value(v),
            // A number that does not fit is told from what is no number.
            Err(_) if is_number(t.trim()) => return Err(Refused::range(row, name, t, ty)),
            Err(_) => return Err(Refused::value(row, name, t, ty)),
        }
    }
    Ok(Arc::new(out.finish()))
}

fn is_number(t: &str) -> bool {
    let digits = t.strip_prefix(['-', '+']).unwrap_or(t);
    !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())
}

fn decimals<'a>(texts: impl Iterator<Item = Option<&'a str>>, p: u8, s: i8, ty: &ColumnType, name: &str) -> Result<ArrayRef, Refused> {
    let mut out = PrimitiveBuilder::<Decimal128Type>::new();
    for (row, text) in texts.enumerate() {
        match text.map(str::trim) {
            None => out.append_null(),
            Some(t) => match decimal::parse(t, p, s) {
                Ok(v) => out.append_value(v),
                Err(decimal::Bad::OutOfRange) => return Err(Refused::range(row, name, t, ty)),
                Err(decimal::Bad::NoNumber) => return Err(Refused::value(row, name, t, ty)),
            },
        }
    }
    let made: Decimal128Array = out.finish();
    let typed = made.with_precision_and_scale(p, s).map_err(|e| Refused::value(0, name, "decimal", e))?;
    Ok(Arc::new(typed))
}

fn booleans<'a>(texts: impl Iterator<Item = Option<&'a str>>, ty: &ColumnType, name: &str) -> Result<ArrayRef, Refused> {
    let mut out = BooleanBuilder::new();
    for (row, text) in texts.enumerate() {
        let Some(t) = text else {
            out.append_null();
            continue;
        };
        out.append_value(match t.trim().to_ascii_lowercase().as_str() {
            "t" | "true" | "y" | "yes" | "on" | "1" => true,
            "f" | "false" | "n" | "no" | "off" | "0" => false,
            _ => return Err(Refused::value(row, name, t, ty)),
        });
    }
    Ok(Arc::new(out.finish()))
}

/// `\x6162`, or the text's own bytes.
fn bytes<'a>(texts: impl Iterator<Item = Option<&'a str>>, ty: &ColumnType, name: &str) -> Result<ArrayRef, Refused> {
    let mut out = BinaryViewBuilder::new();
    for (row, text) in texts.enumerate() {
        match text {
            None => out.append_null(),
            Some(t) => match t.strip_prefix("\\x") {
                None => out.append_value(t.as_bytes()),
                Some(hex) => out.append_value(unhex(hex).ok_or_else(|| Refused::value(row, name, t, ty))?),
            },
        }
    }
    Ok(Arc::new(out.finish()))
}

/// The bytes of hexadecimal digits, two each; blanks between are passed over.
pub(crate) fn unhex(hex: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> = hex.chars().filter(|c| !c.is_ascii_whitespace()).map(|c| c.to_digit(16).map(|d| d as u8)).collect();
    let digits = digits.filter(|d| d.len() % 2 == 0)?;
    Some(digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect())
}

fn date(t: &str) -> Option<i32> {
    let t = t.trim();
    // A time's day is its date, as written: an offset moves no day.
    let day = t.get(..10).filter(|_| t.len() > 10 && matches!(t.as_bytes()[10], b' ' | b'T') && micros(t).is_some()).unwrap_or(t);
    NaiveDate::parse_from_str(day, "%Y-%m-%d").ok().map(|d| d.to_epoch_days())
}

fn times<'a>(texts: impl Iterator<Item = Option<&'a str>>, ty: &ColumnType, name: &str) -> Result<ArrayRef, Refused> {
    let DataType::Timestamp(unit, zone) = ty.arrow() else { return Err(Refused::value(0, name, "time", ty)) };
    Ok(match unit {
        TimeUnit::Nanosecond => {
            let array = each::<TimestampNanosecondType>(texts, name, ty, |t| string_to_timestamp_nanos(t.trim()).ok())?;
            let array = arrow::array::AsArray::as_primitive::<TimestampNanosecondType>(&array).clone();
            Arc::new(array.with_timezone_opt(zone))
        }
        _ => {
            let array = each::<TimestampMicrosecondType>(texts, name, ty, micros)?;
            let array = arrow::array::AsArray::as_primitive::<TimestampMicrosecondType>(&array).clone();
            Arc::new(array.with_timezone_opt(zone))
        }
    })
}

/// `2026-01-31 12:00:00[.ffffff][+02]`, also with `T`, or a date alone; without an offset in UTC.
pub fn micros(t: &str) -> Option<i64> {
    let t = t.trim();
    if let Some(fast) = plain_micros(t.as_bytes()) {
        return Some(fast);
    }
    if let Ok(parsed) = t.parse::<ebb_storage::Timestamp>() {
        return Some(parsed.0);
    }
    // PostgreSQL shortens offsets to hours.
    if let Some((body, hours)) = t.rsplit_once(['+', '-']).filter(|(body, h)| body.contains(':') && (1..=2).contains(&h.len())) {
        let sign = t.as_bytes()[body.len()] as char;
        if let Ok(parsed) = format!("{body}{sign}{hours:0>2}:00").parse::<ebb_storage::Timestamp>() {
            return Some(parsed.0);
        }
    }
    string_to_datetime(&chrono::Utc, t).ok().map(|t| t.timestamp_micros())
}

/// The common form, `YYYY-MM-DD HH:MM:SS` with up to six digits of a fraction and perhaps `Z`, without going through a parser.
fn plain_micros(b: &[u8]) -> Option<i64> {
    if b.len() < 19 || b[4] != b'-' || b[7] != b'-' || !matches!(b[10], b' ' | b'T') || b[13] != b':' || b[16] != b':' {
        return None;
    }
    let number =
        |range: std::ops::Range<usize>| b[range].iter().try_fold(0u32, |n, d| d.is_ascii_digit().then(|| n * 10 + u32::from(d - b'0')));
    let date = NaiveDate::from_ymd_opt(number(0..4)? as i32, number(5..7)?, number(8..10)?)?;
    let (h, m, s) = (number(11..13)?, number(14..16)?, number(17..19)?);
    if h > 23 || m > 59 || s > 59 {
        return None;
    }
    let rest = &b[19..];
    let rest = rest.strip_suffix(b"Z").unwrap_or(rest);
    let fraction = match rest {
        [] => 0,
        [b'.', digits @ ..] if (1..=6).contains(&digits.len()) => {
            let n = digits.iter().try_fold(0i64, |n, d| d.is_ascii_digit().then(|| n * 10 + i64::from(d - b'0')))?;
            n * 10i64.pow(6 - digits.len() as u32)
        }
        _ => return None,
    };
    let seconds = i64::from(date.to_epoch_days()) * 86_400 + i64::from(h * 3600 + m * 60 + s);
    Some(seconds * 1_000_000 + fraction)
}

/// Types that are carried as text, each in its canonical form.
fn words<'a>(texts: impl Iterator<Item = Option<&'a str>>, ty: &ColumnType, name: &str) -> Result<ArrayRef, Refused> {
    let mut out = StringViewBuilder::new();
    for (row, text) in texts.enumerate() {
        let Some(t) = text else {
            out.append_null();
            continue;
        };
        let bad = || Refused::value(row, name, t, ty);
        match ty {
            ColumnType::Uuid => out.append_value(uuid::Uuid::parse_str(t.trim()).map_err(|_| bad())?.to_string()),
            ColumnType::Ipv4 => out.append_value(t.trim().parse::<std::net::Ipv4Addr>().map_err(|_| bad())?.to_string()),
            ColumnType::Ipv6 => out.append_value(t.trim().parse::<std::net::Ipv6Addr>().map_err(|_| bad())?.to_string()),
            ColumnType::Json => {
                serde_json::from_str::<serde::de::IgnoredAny>(t).map_err(|_| bad())?;
                out.append_value(t);
            }
            ColumnType::FixedString(n) if t.len() > *n as usize => {
                let message = format!("column '{name}': '{}' has {} bytes, {ty} takes {n}", shown(t), t.len());
                return Err(Refused::new(row, "22001", message));
            }
            ColumnType::Enum { labels, .. } => {
                let label = labels.iter().find(|(l, _)| **l == *t).ok_or_else(|| {
                    let known = labels.iter().map(|(l, _)| format!("'{l}'")).collect::<Vec<_>>().join(", ");
                    Refused::value(row, name, t, format_args!("label of the enum: labels are {known}"))
                })?;
                out.append_value(&label.0);
            }
            // Clients take it for the end of the text.
            _ if t.contains('\0') => {
                return Err(Refused::new(row, "22021", format!("column '{name}': a text cannot hold a zero byte")));
            }
            _ => out.append_value(t),
        }
    }
    Ok(Arc::new(out.finish()))
}

/// Arrays as `{a,"b c",NULL}`, or both kinds as JSON.
fn nested<'a>(texts: impl Iterator<Item = Option<&'a str>>, ty: &ColumnType, name: &str) -> Result<ArrayRef, Refused> {
    use arrow::{array::ListArray, array::MapArray, array::StructArray, buffer::NullBuffer, buffer::OffsetBuffer};
    let (mut keys, mut items, mut lengths, mut valid): (Vec<String>, Vec<Option<String>>, Vec<usize>, Vec<bool>) = Default::default();
    for (row, text) in texts.enumerate() {
        let Some(t) = text else {
            lengths.push(0);
            valid.push(false);
            continue;
        };
        let bad = || Refused::value(row, name, t, ty);
        let before = items.len();
        let t = t.trim();
        match ty {
            ColumnType::Map(..) => {
                for (key, value) in json::members(t).ok_or_else(bad)? {
                    keys.push(key);
                    items.push(value);
                }
            }
            _ if t.starts_with('[') => {
                items.extend(json::elements(t).ok_or_else(bad)?);
            }
            _ => items.extend(braces(t).ok_or_else(bad)?),
        }
        lengths.push(items.len() - before);
        valid.push(true);
    }
    let nulls = valid.contains(&false).then(|| NullBuffer::from(valid));
    let offsets = OffsetBuffer::<i32>::from_lengths(lengths);
    // An element is refused by the row that it is in.
    let row_of = |item: usize| offsets.partition_point(|start| usize::try_from(*start).is_ok_and(|start| start <= item)).saturating_sub(1);
    // Boxed, so that nesting does not make ever new types of iterators.
    let inner_texts = |ty: &ColumnType, texts: Box<dyn Iterator<Item = Option<&str>> + '_>| {
        parse_text(texts, ty, name).map_err(|r| Refused { row: row_of(r.row), ..r })
    };
    let element = |ty: &ColumnType| inner_texts(ty, Box::new(items.iter().map(Option::as_deref)));
    match (ty, ty.arrow()) {
        (ColumnType::Array(inner, null), DataType::List(field)) => {
            if !null && let Some(row) = items.iter().position(Option::is_none) {
                return Err(Refused::null_inside(row_of(row), name));
            }
            let elements = element(inner)?;
            Ok(Arc::new(ListArray::new(field, offsets, elements, nulls)))
        }
        (ColumnType::Map(key, value, null), DataType::Map(field, sorted)) => {
            if !null && let Some(row) = items.iter().position(Option::is_none) {
                return Err(Refused::null_inside(row_of(row), name));
            }
            let DataType::Struct(fields) = field.data_type().clone() else { return Err(Refused::value(0, name, "map", ty)) };
            let keys = inner_texts(key, Box::new(keys.iter().map(|k| Some(k.as_str()))))?;
            let entries = StructArray::new(fields, vec![keys, element(value)?], None);
            Ok(Arc::new(MapArray::new(field, offsets, entries, nulls, sorted)))
        }
        _ => Err(Refused::value(0, name, "value", ty)),
    }
}

/// Elements of PostgreSQL's brace form; those of inner arrays stay in braces.
fn braces(t: &str) -> Option<Vec<Option<String>>> {
    let inside = t.strip_prefix('{')?.strip_suffix('}')?;
    let mut out = Vec::new();
    let mut chars = inside.chars().peekable();
    if chars.peek().is_none() {
        return Some(out);
    }
    loop {
        let (mut element, mut quoted, mut depth) = (String::new(), false, 0usize);
        loop {
            match chars.next() {
                Some('"') if depth == 0 => {
                    quoted = true;
                    loop {
                        match chars.next()? {
                            '"' => break,
                            '\\' => element.push(chars.next()?),
                            c => element.push(c),
                        }
                    }
                }
                Some(',') if depth == 0 => break,
                Some(c) => {
                    depth = match c {
                        '{' => depth + 1,
                        '}' => depth.checked_sub(1)?,
                        _ => depth,
                    };
                    element.push(c);
                }
                None if depth == 0 => {
                    out.push(finish(element, quoted)?);
                    return Some(out);
                }
                None => return None,
            }
        }
        out.push(finish(element, quoted)?);
    }
}

/// An element without quotes is trimmed; NULL without quotes is NULL, nothing without quotes is no element.
fn finish(element: String, quoted: bool) -> Option<Option<String>> {
    if quoted {
        return Some(Some(element));
    }
    let t = element.trim();
    match t {
        "" => None,
        _ if t.eq_ignore_ascii_case("null") => Some(None),
        _ => Some(Some(t.to_owned())),
    }
}
