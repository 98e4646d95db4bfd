//! Arrays in PostgreSQL's brace form and its binary form; maps and structs as JSON.

use super::{binary, cell::Column, cell::Values, set_length, text, time::Zone};
use arrow::array::{ArrayRef, ListArray};
use bytes::{BufMut, BytesMut};

/// `{1,2,NULL,"a b"}`
pub fn write_array(out: &mut BytesMut, list: &ListArray, inner: &Column, row: usize, zone: &Zone) {
    let (start, end) = bounds(list, row);
    out.put_u8(b'{');
    let mut element = BytesMut::new();
    for i in start..end {
        if i > start {
            out.put_u8(b',');
        }
        if inner.is_null(i) {
            out.put_slice(b"NULL");
            continue;
        }
        element.clear();
        text::write_text(&mut element, inner, i, zone);
        match inner.values {
            Values::List(..) => out.put_slice(&element),
            _ => put_quoted(out, &element),
        }
    }
    out.put_u8(b'}');
}

/// An element in double quotes where it would be misread without them.
fn put_quoted(out: &mut BytesMut, element: &[u8]) {
    let special = |b: &u8| b"{}\",\\".contains(b) || b.is_ascii_whitespace();
    if !element.is_empty() && !element.iter().any(special) && !element.eq_ignore_ascii_case(b"null") {
        out.put_slice(element);
        return;
    }
    out.put_u8(b'"');
    for b in element {
        if matches!(b, b'"' | b'\\') {
            out.put_u8(b'\\');
        }
        out.put_u8(*b);
    }
    out.put_u8(b'"');
}

/// Dimensions, then elements with their lengths. Arrays of arrays, which may be ragged, are sent as arrays of texts.
pub fn write_array_binary(out: &mut BytesMut, list: &ListArray, inner: &Column, row: usize) {
    let (start, end) = bounds(list, row);
    let as_text = matches!(inner.values, Values::List(..) | Values::Json(_));
    let nulls = (start..end).any(|i| inner.is_null(i));
    out.put_i32(i32::from(end > start));
    out.put_i32(i32::from(nulls));
    let element = if as_text && !matches!(inner.values, Values::Json(_)) { pgwire::api::Type::TEXT } else { inner.pg.clone() };
    out.put_u32(element.oid());
    if end > start {
        out.put_i32((end - start) as i32);
        out.put_i32(1);
    }
    for i in start..end {
        if inner.is_null(i) {
            out.put_i32(-1);
            continue;
        }
        let at = out.len();
        out.put_i32(0);
        if as_text {
            text::write_text(out, inner, i, &Zone::Utc);
        } else {
            binary::write_binary(out, inner, i);
        }
        set_length(out, at);
    }
}

fn bounds(list: &ListArray, row: usize) -> (usize, usize) {
    let offsets = list.value_offsets();
    (offsets[row] as usize, offsets[row + 1] as usize)
}

/// A map as an object with its keys as text, a struct as an object, anything unprintable as null.
pub fn write_json(out: &mut BytesMut, array: &ArrayRef, row: usize) {
    let value = crate::wire::encode::nested::json::value(array.as_ref(), row);
    out.put_slice(value.to_string().as_bytes());
}

mod json {
    use arrow::{
        array::{Array, AsArray},
        datatypes::DataType,
        util::display::{ArrayFormatter, FormatOptions},
    };
    use serde_json::{Map, Value};

    pub fn value(array: &dyn Array, row: usize) -> Value {
        if array.is_null(row) {
            return Value::Null;
        }
        match array.data_type() {
            DataType::Map(..) => {
                let entries = array.as_map().value(row);
                let (keys, values) = (entries.column(0), entries.column(1));
                Value::Object((0..entries.len()).map(|i| (text(keys, i), value(values, i))).collect())
            }
            DataType::Struct(fields) => {
                let s = array.as_struct();
                let members = fields.iter().enumerate().map(|(i, f)| (f.name().clone(), value(s.column(i), row)));
                Value::Object(members.collect::<Map<_, _>>())
            }
            DataType::List(_) => {
                let items = array.as_list::<i32>().value(row);
                Value::Array((0..items.len()).map(|i| value(&items, i)).collect())
            }
            DataType::Boolean => Value::Bool(array.as_boolean().value(row)),
            t if t.is_numeric() => serde_json::from_str(&text(array, row)).unwrap_or_else(|_| Value::String(text(array, row))),
            _ => Value::String(text(array, row)),
        }
    }

    fn text(array: &dyn Array, row: usize) -> String {
        let options = FormatOptions::default();
        ArrayFormatter::try_new(array, &options).map_or_else(|_| String::new(), |f| f.value(row).to_string())
    }
}
