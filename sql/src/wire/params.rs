//! Parameters of a prepared statement, from PostgreSQL's bytes to values.
//!
//! The client says how a parameter is encoded (its type if it named one, else the type it was told); the statement says what it needs.
//! A value that does not fit is an error that names the parameter, never a guess.

use arrow::datatypes::DataType;
use chrono::{DateTime, NaiveDate};
use datafusion::common::ScalarValue;
use pgwire::api::{Type, results::FieldFormat};

use super::{
    encode::{PG_EPOCH_DAYS, PG_EPOCH_MICROS},
    types::{arrow_of, element_of},
};
use crate::{
    functions::in_zone,
    types::{of_arrow, parse_text, text::unhex},
};
use ebb_storage::column_type::ColumnType;

const DAY_MICROS: i64 = 86_400_000_000;

/// What went wrong, with its SQLSTATE.
#[derive(Debug, PartialEq)]
pub struct BadParameter {
    pub sqlstate: &'static str,
    pub message: String,
}

/// A value that no text of the type could say.
fn out_of_range(n: usize, what: &str) -> BadParameter {
    BadParameter { sqlstate: "22008", message: format!("parameter ${n}: {what} out of range") }
}

fn bad(n: usize, why: impl std::fmt::Display) -> BadParameter {
    BadParameter { sqlstate: "22P02", message: format!("parameter ${n}: {why}") }
}

/// Parameter `n` (from 1), encoded as `pg`, as a value of type `target` where the statement knows it. A time that names no zone is read
/// on the clocks of `zone` where the statement needs a moment.
pub fn decode(
    n: usize,
    bytes: Option<&[u8]>,
    format: FieldFormat,
    pg: &Type,
    target: Option<&DataType>,
    zone: &str,
) -> Result<ScalarValue, BadParameter> {
    let Some(bytes) = bytes else {
        return match target {
            Some(t) => ScalarValue::try_from(t).map_err(|e| bad(n, e)),
            None => Ok(ScalarValue::Null),
        };
    };
    let value = match format {
        FieldFormat::Text => from_text(n, bytes, pg)?,
        FieldFormat::Binary => from_binary(n, bytes, pg)?,
    };
    match target {
        Some(t) if *t != value.data_type() && *t != DataType::Null => {
            let read = cast(n, &value, t)?;
            match t {
                DataType::Timestamp(_, Some(_)) if zone != "UTC" => moment(&value, &read, zone).map_err(|e| bad(n, e.strip_backtrace())),
                _ => Ok(read),
            }
        }
        _ => Ok(value),
    }
}

fn moment(given: &ScalarValue, read: &ScalarValue, zone: &str) -> datafusion::common::Result<ScalarValue> {
    ScalarValue::try_from_array(&in_zone(zone, &given.to_array()?, &read.to_array()?)?, 0)
}

/// A value in the binary form of `pg`, whose message names no parameter.
pub fn value(bytes: &[u8], pg: &Type) -> Result<ScalarValue, BadParameter> {
    from_binary(0, bytes, pg).map_err(|bad| {
        let message = bad.message.trim_start_matches("parameter $0: ").replace("parameter $0 ", "the text ");
        BadParameter { message, ..bad }
    })
}

fn cast(n: usize, value: &ScalarValue, target: &DataType) -> Result<ScalarValue, BadParameter> {
    // Arrow would make a list of one text, and knows no exponents in decimals.
    if let (Some(Some(text)), true) = (value.try_as_str(), target.is_nested() || matches!(target, DataType::Decimal128(..))) {
        return nested(n, text, target);
    }
    value.cast_to(target).map_err(|e| {
        let text = value.to_string();
        let shown: String = text.chars().take(80).collect();
        bad(n, format_args!("'{shown}' is no {target}: {}", e.strip_backtrace()))
    })
}

/// An array or map from its text.
fn nested(n: usize, text: &str, target: &DataType) -> Result<ScalarValue, BadParameter> {
    let Some(ty) = of_arrow(target) else { return Err(bad(n, format_args!("a text is no {target}"))) };
    nested_of(n, text, target, ty)
}

fn nested_of(n: usize, text: &str, target: &DataType, ty: ColumnType) -> Result<ScalarValue, BadParameter> {
    let read = parse_text(std::iter::once(Some(text)), &ty, "").map_err(|r| {
        let r = r.of_value();
        BadParameter { sqlstate: r.sqlstate, message: format!("parameter ${n}: {}", r.message) }
    })?;
    let read = arrow::compute::cast(&read, target).map_err(|e| bad(n, e))?;
    ScalarValue::try_from_array(&read, 0).map_err(|e| bad(n, e.strip_backtrace()))
}

/// Text stays text until it is cast to what the statement needs; only forms that a cast does not know are read here.
fn from_text(n: usize, bytes: &[u8], pg: &Type) -> Result<ScalarValue, BadParameter> {
    let text =
        std::str::from_utf8(bytes).map_err(|e| BadParameter { sqlstate: "22021", message: format!("parameter ${n} is not UTF-8: {e}") })?;
    // Clients take it for the end of the text.
    if text.contains('\0') {
        return Err(BadParameter { sqlstate: "22021", message: format!("parameter ${n} has a zero byte, which no text can hold") });
    }
    match *pg {
        Type::BOOL => match text.trim().to_ascii_lowercase().as_str() {
            "t" | "true" | "y" | "yes" | "on" | "1" => Ok(ScalarValue::Boolean(Some(true))),
            "f" | "false" | "n" | "no" | "off" | "0" => Ok(ScalarValue::Boolean(Some(false))),
            _ => Err(bad(n, format_args!("'{text}' is no boolean"))),
        },
        Type::BYTEA => match text.strip_prefix("\\x") {
            Some(hex) => unhex(hex).map(|b| ScalarValue::Binary(Some(b))).ok_or_else(|| bad(n, "bad hexadecimal digits")),
            None => Ok(ScalarValue::Binary(Some(bytes.to_vec()))),
        },
        Type::INT2 | Type::INT4 | Type::INT8 => {
            text.trim().parse().map(|v| ScalarValue::Int64(Some(v))).map_err(|_| bad(n, format_args!("'{text}' is no integer")))
        }
        Type::FLOAT4 | Type::FLOAT8 => {
            text.trim().parse().map(|v| ScalarValue::Float64(Some(v))).map_err(|_| bad(n, format_args!("'{text}' is no number")))
        }
        _ => match arrow_of(pg).filter(|_| element_of(pg).is_some()) {
            // However they are written, uuids are compared as they are kept.
            Some(array) if *pg == Type::UUID_ARRAY => nested_of(n, text, &array, ColumnType::Array(Box::new(ColumnType::Uuid), true)),
            Some(array) => nested(n, text, &array),
            None => Ok(ScalarValue::Utf8(Some(text.to_owned()))),
        },
    }
}

fn from_binary(n: usize, bytes: &[u8], pg: &Type) -> Result<ScalarValue, BadParameter> {
    fn fixed<const W: usize>(n: usize, bytes: &[u8], pg: &Type) -> Result<[u8; W], BadParameter> {
        bytes.try_into().map_err(|_| bad(n, format_args!("{} bytes where {pg} has {W}", bytes.len())))
    }
    let moment = |since_pg: i64| {
        let micros = since_pg.checked_add(PG_EPOCH_MICROS).filter(|m| DateTime::from_timestamp_micros(*m).is_some());
        micros.ok_or_else(|| out_of_range(n, "timestamp"))
    };
    Ok(match *pg {
        Type::BOOL => ScalarValue::Boolean(Some(fixed::<1>(n, bytes, pg)? != [0])),
        Type::INT2 => ScalarValue::Int16(Some(i16::from_be_bytes(fixed(n, bytes, pg)?))),
        Type::INT4 => ScalarValue::Int32(Some(i32::from_be_bytes(fixed(n, bytes, pg)?))),
        Type::INT8 => ScalarValue::Int64(Some(i64::from_be_bytes(fixed(n, bytes, pg)?))),
        Type::OID => ScalarValue::Int64(Some(i64::from(u32::from_be_bytes(fixed(n, bytes, pg)?)))),
        Type::FLOAT4 => ScalarValue::Float32(Some(f32::from_be_bytes(fixed(n, bytes, pg)?))),
        Type::FLOAT8 => ScalarValue::Float64(Some(f64::from_be_bytes(fixed(n, bytes, pg)?))),
        Type::DATE => {
            let days = i32::from_be_bytes(fixed(n, bytes, pg)?);
            let days = days.checked_add(PG_EPOCH_DAYS).filter(|d| NaiveDate::from_epoch_days(*d).is_some());
            ScalarValue::Date32(Some(days.ok_or_else(|| out_of_range(n, "date"))?))
        }
        Type::TIME => {
            let micros = i64::from_be_bytes(fixed(n, bytes, pg)?);
            if !(0..DAY_MICROS).contains(&micros) {
                return Err(out_of_range(n, "time"));
            }
            ScalarValue::Time64Microsecond(Some(micros))
        }
        Type::TIMESTAMP => ScalarValue::TimestampMicrosecond(Some(moment(i64::from_be_bytes(fixed(n, bytes, pg)?))?), None),
        Type::TIMESTAMPTZ => ScalarValue::TimestampMicrosecond(Some(moment(i64::from_be_bytes(fixed(n, bytes, pg)?))?), Some("UTC".into())),
        Type::INTERVAL => {
            let [micros, rest] = [&bytes[..8.min(bytes.len())], &bytes[8.min(bytes.len())..]];
            let micros = i64::from_be_bytes(fixed(n, micros, pg)?);
            let rest: [u8; 8] = fixed(n, rest, pg)?;
            let [days, months] = [&rest[..4], &rest[4..]].map(|b| i32::from_be_bytes([b[0], b[1], b[2], b[3]]));
            let nanos = micros.checked_mul(1000).ok_or_else(|| out_of_range(n, "interval"))?;
            ScalarValue::new_interval_mdn(months, days, nanos)
        }
        Type::NUMERIC => ScalarValue::Utf8(Some(numeric_text(bytes).ok_or_else(|| bad(n, "damaged numeric"))?)),
        Type::UUID => ScalarValue::Utf8(Some(uuid::Uuid::from_bytes(fixed(n, bytes, pg)?).to_string())),
        Type::INET => ScalarValue::Utf8(Some(address(bytes).ok_or_else(|| bad(n, "damaged address"))?)),
        Type::BYTEA => ScalarValue::Binary(Some(bytes.to_vec())),
        Type::JSONB => {
            let text = bytes.strip_prefix(&[1]).ok_or_else(|| bad(n, "a binary jsonb begins with its version, 1"))?;
            return from_text(n, text, &Type::TEXT);
        }
        Type::TEXT | Type::VARCHAR | Type::BPCHAR | Type::NAME | Type::UNKNOWN | Type::JSON | Type::CHAR => {
            return from_text(n, bytes, &Type::TEXT);
        }
        _ if element_of(pg).is_some() => array(n, bytes, pg)?,
        _ => {
            return Err(BadParameter {
                sqlstate: "0A000",
                message: format!("parameter ${n}: binary {pg} is not understood; send it as text"),
            });
        }
    })
}

/// Family, bits of the network, a flag, the length, the address; only whole addresses are one.
fn address(bytes: &[u8]) -> Option<String> {
    match bytes {
        [2, 32, _, 4, rest @ ..] => Some(std::net::Ipv4Addr::from(<[u8; 4]>::try_from(rest).ok()?).to_string()),
        [3, 128, _, 16, rest @ ..] => Some(std::net::Ipv6Addr::from(<[u8; 16]>::try_from(rest).ok()?).to_string()),
        _ => None,
    }
}

/// Dimensions, a flag, the elements' type; for each dimension its length and first index; each element with its length, -1 for NULL.
fn array(n: usize, bytes: &[u8], pg: &Type) -> Result<ScalarValue, BadParameter> {
    let damaged = || bad(n, "damaged array");
    let (Some(element), Some(DataType::List(item))) = (element_of(pg), arrow_of(pg)) else { return Err(damaged()) };
    let word = |at: usize| Some(i32::from_be_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?));
    let dimensions = word(0).ok_or_else(damaged)?;
    let length = match dimensions {
        0 => 0,
        1 => usize::try_from(word(12).ok_or_else(damaged)?).map_err(|_| damaged())?,
        _ => return Err(bad(n, "an array of arrays is not understood; send it as text")),
    };
    // The client says what it sends; that decides.
    let told = word(8).and_then(|oid| Type::from_oid(oid as u32)).unwrap_or(element);
    // Elements that are arrays again could go on so as deep as the message is long.
    if element_of(&told).is_some() {
        return Err(bad(n, "an array of arrays is not understood; send it as text"));
    }
    let mut values = Vec::new();
    let mut at = 20;
    for _ in 0..length {
        let size = word(at).ok_or_else(damaged)?;
        at += 4;
        let Ok(size) = usize::try_from(size) else {
            values.push(ScalarValue::try_from(item.data_type()).map_err(|e| bad(n, e))?);
            continue;
        };
        let end = at.checked_add(size).ok_or_else(damaged)?;
        let value = from_binary(n, bytes.get(at..end).ok_or_else(damaged)?, &told)?;
        values.push(if value.data_type() == *item.data_type() { value } else { cast(n, &value, item.data_type())? });
        at = end;
    }
    Ok(ScalarValue::List(ScalarValue::new_list(&values, item.data_type(), true)))
}

/// The digits of a binary numeric; `None` where the bytes are not one.
fn numeric_text(bytes: &[u8]) -> Option<String> {
    let word = |i: usize| Some(u16::from_be_bytes([*bytes.get(2 * i)?, *bytes.get(2 * i + 1)?]));
    let (groups, weight, sign, scale) = (usize::from(word(0)?), i32::from(word(1)? as i16), word(2)?, usize::from(word(3)?));
    match sign {
        0xC000 => return Some("NaN".to_owned()),
        0xD000 => return Some("Infinity".to_owned()),
        0xF000 => return Some("-Infinity".to_owned()),
        0 | 0x4000 if bytes.len() == 8 + 2 * groups && scale <= 16_383 => {}
        _ => return None,
    }
    let group = |position: i32| {
        let i = weight - position;
        if (0..groups as i32).contains(&i) { word(4 + i as usize).filter(|digits| *digits < 10_000) } else { Some(0) }
    };
    let mut whole = String::new();
    for position in (0..=weight.max(0)).rev() {
        whole.push_str(&format!("{:04}", group(position)?));
    }
    let mut fraction = String::new();
    for position in 1..=scale.div_ceil(4) as i32 {
        fraction.push_str(&format!("{:04}", group(-position)?));
    }
    fraction.truncate(scale);
    let whole = whole.trim_start_matches('0');
    let sign = if sign == 0x4000 { "-" } else { "" };
    let whole = if whole.is_empty() { "0" } else { whole };
    Some(if fraction.is_empty() { format!("{sign}{whole}") } else { format!("{sign}{whole}.{fraction}") })
}

#[cfg(test)]
mod tests;
