//! Arrays in PostgreSQL's brace form and its binary form; lists of lists, maps and structs as JSON.

use super::{binary, cell::Column, set_length, text, time::Zone};
use arrow::{
    array::{Array, ArrayRef, AsArray, ListArray},
    datatypes::{DataType, Field},
};
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
        put_quoted(out, &element);
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

/// Dimensions, then elements with their lengths.
pub fn write_array_binary(out: &mut BytesMut, list: &ListArray, inner: &Column, row: usize) {
    let (start, end) = bounds(list, row);
    let nulls = (start..end).any(|i| inner.is_null(i));
    out.put_i32(i32::from(end > start));
    out.put_i32(i32::from(nulls));
    out.put_u32(inner.pg.oid());
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
        binary::write_binary(out, inner, i);
        set_length(out, at);
    }
}

fn bounds(list: &ListArray, row: usize) -> (usize, usize) {
    let offsets = list.value_offsets();
    (offsets[row] as usize, offsets[row + 1] as usize)
}

/// Lists as arrays, a map as an object with its keys as text, a struct as an object. Numbers and booleans are themselves, anything else
/// is its text; no digit is lost.
pub fn write_json(out: &mut BytesMut, array: &ArrayRef, row: usize, zone: &Zone) {
    if array.is_null(row) {
        return out.put_slice(b"null");
    }
    match array.data_type() {
        DataType::Map(..) => {
            let entries = array.as_map().value(row);
            let (keys, values) = (entries.column(0), entries.column(1));
            let members = (0..entries.len()).map(|i| (plain_text(keys, i, zone), values, i));
            write_object(out, members, zone);
        }
        DataType::Struct(fields) => {
            let s = array.as_struct();
            write_object(out, fields.iter().enumerate().map(|(i, f)| (f.name().as_bytes().to_vec(), s.column(i), row)), zone);
        }
        DataType::List(_) => {
            let items = array.as_list::<i32>().value(row);
            out.put_u8(b'[');
            for i in 0..items.len() {
                if i > 0 {
                    out.put_u8(b',');
                }
                write_json(out, &items, i, zone);
            }
            out.put_u8(b']');
        }
        DataType::Boolean => out.put_slice(if array.as_boolean().value(row) { b"true" } else { b"false" }),
        t => {
            let text = plain_text(array, row, zone);
            // What a float has beside numbers is no number in JSON.
            let number = t.is_numeric() && text.first().is_some_and(|b| b.is_ascii_digit() || *b == b'-') && !text.ends_with(b"y");
            if number { out.put_slice(&text) } else { put_json_text(out, &text) }
        }
    }
}

fn write_object<'a>(out: &mut BytesMut, members: impl Iterator<Item = (Vec<u8>, &'a ArrayRef, usize)>, zone: &Zone) {
    out.put_u8(b'{');
    for (n, (key, values, row)) in members.enumerate() {
        if n > 0 {
            out.put_u8(b',');
        }
        put_json_text(out, &key);
        out.put_u8(b':');
        write_json(out, values, row, zone);
    }
    out.put_u8(b'}');
}

fn put_json_text(out: &mut BytesMut, text: &[u8]) {
    // Text of a column is UTF-8.
    out.put_slice(serde_json::Value::from(String::from_utf8_lossy(text).into_owned()).to_string().as_bytes());
}

/// As the value would be sent alone; nothing where it cannot be.
fn plain_text(array: &ArrayRef, row: usize, zone: &Zone) -> Vec<u8> {
    let one = array.slice(row, 1);
    let mut text = BytesMut::new();
    if let Ok(column) = Column::new(&Field::new("", one.data_type().clone(), true), &one)
        && !column.is_null(0)
    {
        text::write_text(&mut text, &column, 0, zone);
    }
    text.to_vec()
}
