//! The text format.

use super::{
    cell::{Column, Values},
    nested, numeric,
    time::{self, Zone},
};
use bytes::{BufMut, BytesMut};
use std::fmt::Write;

/// Writes row `row`, which is not NULL.
pub fn write_text(out: &mut BytesMut, column: &Column, row: usize, zone: &Zone) {
    match &column.values {
        Values::Null => {}
        Values::Bool(a) => out.put_u8(if a.value(row) { b't' } else { b'f' }),
        Values::Int8(a) => put(out, a.value(row)),
        Values::Int16(a) => put(out, a.value(row)),
        Values::Int32(a) => put(out, a.value(row)),
        Values::Int64(a) => put(out, a.value(row)),
        Values::UInt8(a) => put(out, a.value(row)),
        Values::UInt16(a) => put(out, a.value(row)),
        Values::UInt32(a) => put(out, a.value(row)),
        Values::UInt64(a) => put(out, a.value(row)),
        Values::Float32(a) => numeric::write_float(out, &format!("{:e}", a.value(row)), 6),
        Values::Float64(a) => numeric::write_float(out, &format!("{:e}", a.value(row)), 15),
        Values::Decimal(a, scale) => numeric::write_decimal_text(out, a.value(row), *scale),
        Values::WideDecimal(a) | Values::Text(a) => out.put_slice(a.value(row).as_bytes()),
        Values::TextView(a) => out.put_slice(a.value(row).as_bytes()),
        Values::TextDictionary(a, words) => out.put_slice(a.key(row).map_or("", |k| words.value(k)).as_bytes()),
        Values::Bytes(a) => write_hex(out, a.value(row)),
        Values::BytesView(a) => write_hex(out, a.value(row)),
        Values::Date(a) => time::write_date(out, a.value(row)),
        Values::Time(a) => time::write_time(out, a.value(row)),
        Values::Timestamp(a, moment) => time::write_timestamp(out, a.value(row), 0, moment.then_some(zone)),
        Values::TimestampNanos(a, moment) => {
            let nanos = a.value(row);
            time::write_timestamp(out, nanos.div_euclid(1000), nanos.rem_euclid(1000), moment.then_some(zone));
        }
        Values::Interval(a) => {
            let v = a.value(row);
            time::write_interval(out, v.months, v.days, v.nanoseconds);
        }
        Values::List(list, inner) => nested::write_array(out, list, inner, row, zone),
        Values::Json(array) => nested::write_json(out, array, row, zone),
    }
}

fn put(out: &mut BytesMut, value: impl std::fmt::Display) {
    // Writing to memory cannot fail.
    let _ = write!(out, "{value}");
}

fn write_hex(out: &mut BytesMut, bytes: &[u8]) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    out.put_slice(b"\\x");
    for b in bytes {
        out.put_u8(DIGITS[usize::from(b >> 4)]);
        out.put_u8(DIGITS[usize::from(b & 15)]);
    }
}
