//! The binary format. What a client was told (`Column::pg`) decides the width.

use super::{
    cell::{Column, Values},
    nested, numeric, text,
    time::{PG_EPOCH_DAYS, PG_EPOCH_MICROS, Zone},
};
use bytes::{BufMut, BytesMut};
use pgwire::api::Type;
use std::net::IpAddr;

/// Writes row `row`, which is not NULL.
pub fn write_binary(out: &mut BytesMut, column: &Column, row: usize) {
    match &column.values {
        Values::Null => {}
        Values::Bool(a) => out.put_u8(u8::from(a.value(row))),
        Values::Int8(a) => out.put_i16(i16::from(a.value(row))),
        Values::UInt8(a) => out.put_i16(i16::from(a.value(row))),
        Values::Int16(a) => out.put_i16(a.value(row)),
        Values::UInt16(a) => out.put_i32(i32::from(a.value(row))),
        Values::Int32(a) => out.put_i32(a.value(row)),
        Values::UInt32(a) => out.put_i64(i64::from(a.value(row))),
        Values::Int64(a) if column.pg == Type::OID => out.put_u32(a.value(row) as u32),
        Values::Int64(a) => out.put_i64(a.value(row)),
        Values::UInt64(a) => numeric::write_decimal_binary(out, &a.value(row).to_string()),
        Values::Float32(a) => out.put_f32(a.value(row)),
        Values::Float64(a) => out.put_f64(a.value(row)),
        Values::Decimal(..) | Values::WideDecimal(_) => {
            let mut digits = BytesMut::new();
            text::write_text(&mut digits, column, row, &Zone::Utc);
            numeric::write_decimal_binary(out, std::str::from_utf8(&digits).unwrap_or("0"));
        }
        Values::Text(_) | Values::TextView(_) | Values::TextDictionary(..) => write_declared_text(out, column, row),
        Values::Bytes(a) => out.put_slice(a.value(row)),
        Values::BytesView(a) => out.put_slice(a.value(row)),
        Values::Date(a) => out.put_i32(a.value(row).saturating_sub(PG_EPOCH_DAYS)),
        Values::Time(a) => out.put_i64(a.value(row)),
        Values::Timestamp(a, _) => out.put_i64(a.value(row).saturating_sub(PG_EPOCH_MICROS)),
        Values::TimestampNanos(a, _) => out.put_i64(a.value(row).div_euclid(1000).saturating_sub(PG_EPOCH_MICROS)),
        Values::Interval(a) => {
            let v = a.value(row);
            out.put_i64(v.nanoseconds / 1000);
            out.put_i32(v.days);
            out.put_i32(v.months);
        }
        Values::List(list, inner) => nested::write_array_binary(out, list, inner, row),
        Values::Json(array) => nested::write_json(out, array, row, &Zone::Utc),
    }
}

/// Text, or the binary form of the type that the text stands for.
fn write_declared_text(out: &mut BytesMut, column: &Column, row: usize) {
    if column.pg == Type::CHAR {
        // One byte, always: nothing is zero.
        let mut value = BytesMut::new();
        text::write_text(&mut value, column, row, &Zone::Utc);
        return out.put_u8(value.first().copied().unwrap_or(0));
    }
    if column.pg != Type::UUID && column.pg != Type::INET {
        return text::write_text(out, column, row, &Zone::Utc);
    }
    let mut value = BytesMut::new();
    text::write_text(&mut value, column, row, &Zone::Utc);
    let value = std::str::from_utf8(&value).unwrap_or_default();
    if column.pg == Type::UUID {
        out.put_slice(uuid::Uuid::parse_str(value).unwrap_or_default().as_bytes());
        return;
    }
    // Family (2: v4, 3: v6), prefix bits, "is cidr", length, address.
    match value.parse() {
        Ok(IpAddr::V6(ip)) => {
            out.put_slice(&[3, 128, 0, 16]);
            out.put_slice(&ip.octets());
        }
        parsed => {
            let octets = if let Ok(IpAddr::V4(ip)) = parsed { ip.octets() } else { [0; 4] };
            out.put_slice(&[2, 32, 0, 4]);
            out.put_slice(&octets);
        }
    }
}
