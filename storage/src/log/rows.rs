//! The body of an INSERT record: rows without their schema, which the reader brings along.
//!
//! Small inserts must cost few bytes: values lie column by column as Arrow buffers cut to length, with no alignment and no message
//! around them; above [`COMPRESS_FROM`] LZ4 goes over all, if it helps. Text is a run of varint lengths, then the bytes.
//! Decoding is checked: any bytes give rows or an error, never a panic, never more memory than the limit. What replay would refuse is not
//! encoded: rows are measured by the code that writes them, before anything is written.
//!
//! Layout: form u8 (0 plain, 1 LZ4), [size varint], rows varint, then per column: nulls u8 (0 none, 1 bitmap follows), values.

use super::record::{Input, put_varint, short};
use crate::{Error, Result};
use arrow::{
    array::{Array, ArrayData, ArrayRef, AsArray, BinaryViewBuilder, RecordBatch, RecordBatchOptions, StringViewBuilder, make_array},
    buffer::{BooleanBuffer, Buffer, NullBuffer},
    compute::{cast, take},
    datatypes::{DataType, Field, SchemaRef},
};
use bytes::Bytes;

/// Bodies below are not compressed.
pub const COMPRESS_FROM: usize = 512;
/// A body may unpack to this much.
pub const MAX_UNPACKED: usize = 1 << 30;

/// # Errors
/// `Invalid` for rows that [`decode`] would refuse: more than [`MAX_UNPACKED`].
pub fn encode(rows: &RecordBatch) -> Result<Bytes> {
    encode_within(rows, MAX_UNPACKED)
}

fn encode_within(rows: &RecordBatch, max: usize) -> Result<Bytes> {
    let size = size(rows)?;
    if size > max || u32::try_from(rows.num_rows()).is_err() {
        return Err(Error::invalid(format!(
            "{} rows of {size} bytes are above the limit of {max} for one change of the log: write them staged (COPY or a larger append)",
            rows.num_rows()
        )));
    }
    let mut plain = Vec::with_capacity(1 + size);
    plain.push(0);
    put_rows(&mut plain, rows)?;
    if plain.len() < COMPRESS_FROM {
        return Ok(plain.into());
    }
    let mut packed = vec![1];
    put_varint(&mut packed, plain.len() as u64 - 1);
    packed.extend(lz4_flex::block::compress(&plain[1..]));
    Ok(if packed.len() < plain.len() { packed.into() } else { plain.into() })
}

/// Bytes of the rows before compression, whatever they share or repeat in memory.
///
/// # Errors
/// `Internal` for a type that has no form in the log.
pub fn size(rows: &RecordBatch) -> Result<usize> {
    let mut counted = Counted(0);
    put_rows(&mut counted, rows)?;
    Ok(counted.0)
}

pub fn decode(body: &Bytes, schema: SchemaRef) -> Result<RecordBatch> {
    decode_within(body, schema, MAX_UNPACKED)
}

fn decode_within(body: &Bytes, schema: SchemaRef, max: usize) -> Result<RecordBatch> {
    let mut head = Input { bytes: body, at: 0 };
    let plain = match head.byte()? {
        0 => body.slice(1..),
        1 => {
            let size = usize::try_from(head.varint()?).ok().filter(|n| *n <= max);
            let size = size.ok_or_else(|| Error::corrupt("rows of a record unpack to too much"))?;
            let packed = &body[head.at..];
            // LZ4 cannot expand further than this: what claims more is damaged.
            if size > packed.len().saturating_mul(256) {
                return Err(Error::corrupt("rows of a record claim more than their bytes can hold"));
            }
            lz4_flex::block::decompress(packed, size).map_err(|e| Error::corrupt(format!("rows of a record: {e}")))?.into()
        }
        form => return Err(Error::corrupt(format!("rows of a record have the unknown form {form}"))),
    };
    let mut input = Input { bytes: &plain, at: 0 };
    let rows = count(&mut input)?;
    let mut columns = Vec::with_capacity(schema.fields().len());
    for field in schema.fields() {
        columns.push(array(&mut input, field, rows).map_err(|e| e.context(format!("column {}", field.name())))?);
    }
    if input.at != plain.len() {
        return Err(Error::corrupt("a record holds more than its rows"));
    }
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(schema, columns, &options).map_err(damaged)
}

fn damaged(e: arrow::error::ArrowError) -> Error {
    Error::corrupt(format!("rows of a record: {e}"))
}

fn count(input: &mut Input<'_>) -> Result<usize> {
    u32::try_from(input.varint()?).map(|n| n as usize).map_err(|_| Error::corrupt("a record claims too many rows"))
}

/// Where the form of rows goes.
trait Sink {
    fn varint(&mut self, n: u64);
    fn bytes(&mut self, bytes: &[u8]);
}

impl Sink for Vec<u8> {
    fn varint(&mut self, n: u64) {
        put_varint(self, n);
    }
    fn bytes(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}

/// How many bytes went there.
struct Counted(usize);

impl Sink for Counted {
    fn varint(&mut self, n: u64) {
        self.0 = self.0.saturating_add((u64::BITS - (n | 1).leading_zeros()).div_ceil(7) as usize);
    }
    fn bytes(&mut self, bytes: &[u8]) {
        self.0 = self.0.saturating_add(bytes.len());
    }
}

fn put_rows(out: &mut impl Sink, rows: &RecordBatch) -> Result<()> {
    out.varint(rows.num_rows() as u64);
    for (column, field) in rows.columns().iter().zip(rows.schema_ref().fields()) {
        put_array(out, column).map_err(|e| e.context(format!("column {}", field.name())))?;
    }
    Ok(())
}

fn put_bits(out: &mut impl Sink, bits: &BooleanBuffer) {
    out.bytes(&bits.sliced().as_slice()[..bits.len().div_ceil(8)]);
}

fn put_array(out: &mut impl Sink, array: &ArrayRef) -> Result<()> {
    if let Some(dictionary) = array.as_any_dictionary_opt() {
        // Written as what it stands for, which is how it is read.
        let values = match dictionary.values().data_type() {
            DataType::Utf8 => cast(dictionary.values(), &DataType::Utf8View)?,
            _ => dictionary.values().clone(),
        };
        return put_array(out, &take(&values, dictionary.keys(), None)?);
    }
    match array.nulls().filter(|n| n.null_count() > 0) {
        None => out.bytes(&[0]),
        Some(nulls) => {
            out.bytes(&[1]);
            put_bits(out, nulls.inner());
        }
    }
    match array.data_type() {
        DataType::Null => {}
        DataType::Boolean => put_bits(out, array.as_boolean().values()),
        DataType::Utf8View => {
            let a = array.as_string_view();
            put_texts(out, (0..a.len()).map(|i| if a.is_null(i) { &[] } else { a.value(i).as_bytes() }));
        }
        DataType::BinaryView => {
            let a = array.as_binary_view();
            put_texts(out, (0..a.len()).map(|i| if a.is_null(i) { &[] as &[u8] } else { a.value(i) }));
        }
        DataType::List(_) => {
            let a = array.as_list::<i32>();
            put_lists(out, a.offsets(), a.values())?;
        }
        DataType::Map(..) => {
            let a = array.as_map();
            let entries: ArrayRef = std::sync::Arc::new(a.entries().clone());
            put_lists(out, a.offsets(), &entries)?;
        }
        DataType::Struct(_) => {
            for column in array.as_struct().columns() {
                put_array(out, column)?;
            }
        }
        other => {
            let width = other.primitive_width().ok_or_else(|| Error::internal(format!("type {other} has no form in the log")))?;
            let data = array.to_data();
            let bytes = data.buffers()[0].as_slice();
            out.bytes(&bytes[data.offset() * width..(data.offset() + data.len()) * width]);
        }
    }
    Ok(())
}

fn put_texts<'a>(out: &mut impl Sink, values: impl Iterator<Item = &'a [u8]> + Clone) {
    for value in values.clone() {
        out.varint(value.len() as u64);
    }
    for value in values {
        out.bytes(value);
    }
}

fn put_lists(out: &mut impl Sink, offsets: &[i32], values: &ArrayRef) -> Result<()> {
    for w in offsets.windows(2) {
        out.varint((w[1] - w[0]) as u64);
    }
    let (first, last) = (offsets[0] as usize, offsets[offsets.len() - 1] as usize);
    put_array(out, &values.slice(first, last - first))
}

fn bits(input: &mut Input<'_>, rows: usize) -> Result<BooleanBuffer> {
    Ok(BooleanBuffer::new(Buffer::from(&input.take(rows.div_ceil(8))?[..]), 0, rows))
}

fn array(input: &mut Input<'_>, field: &Field, rows: usize) -> Result<ArrayRef> {
    let nulls = match input.byte()? {
        0 => None,
        1 => Some(NullBuffer::new(bits(input, rows)?)),
        n => return Err(Error::corrupt(format!("unknown mark of nulls {n}"))),
    };
    let null = |i: usize| nulls.as_ref().is_some_and(|n| n.is_null(i));
    let builder = ArrayData::builder(field.data_type().clone()).len(rows);
    let data = match field.data_type() {
        // A row must cost at least a bit, or a few bytes could claim billions of them; no stream is made of nulls alone.
        DataType::Null => return Err(Error::corrupt("a column of nulls alone")),
        DataType::Boolean => builder.add_buffer(bits(input, rows)?.into_inner()),
        DataType::Utf8View => {
            let lengths = lengths(input, rows)?;
            let mut b = StringViewBuilder::with_capacity(rows);
            for (i, n) in lengths.into_iter().enumerate() {
                let text = input.take(n)?;
                match std::str::from_utf8(&text) {
                    _ if null(i) => b.append_null(),
                    Ok(text) => b.append_value(text),
                    Err(_) => return Err(Error::corrupt("a text is not UTF-8")),
                }
            }
            return Ok(std::sync::Arc::new(b.finish()));
        }
        DataType::BinaryView => {
            let lengths = lengths(input, rows)?;
            let mut b = BinaryViewBuilder::with_capacity(rows);
            for (i, n) in lengths.into_iter().enumerate() {
                let value = input.take(n)?;
                if null(i) { b.append_null() } else { b.append_value(&value) }
            }
            return Ok(std::sync::Arc::new(b.finish()));
        }
        DataType::List(item) | DataType::Map(item, _) => {
            let mut offsets = vec![0i32];
            let mut total = 0i32;
            for n in lengths(input, rows)? {
                total = i32::try_from(n).ok().and_then(|n| total.checked_add(n)).ok_or_else(short)?;
                offsets.push(total);
            }
            let child = array(input, item, total as usize)?;
            builder.add_buffer(Buffer::from_vec(offsets)).add_child_data(child.to_data())
        }
        DataType::Struct(fields) => {
            let children = fields.iter().map(|f| array(input, f, rows).map(|a| a.to_data())).collect::<Result<Vec<_>>>()?;
            builder.child_data(children)
        }
        other => {
            let width = other.primitive_width().ok_or_else(|| Error::internal(format!("type {other} has no form in the log")))?;
            let size = rows.checked_mul(width).ok_or_else(short)?;
            // Copied: values lie unaligned in the record.
            builder.add_buffer(Buffer::from(&input.take(size)?[..]))
        }
    };
    let data = data.nulls(nulls).align_buffers(true).build().map_err(damaged)?;
    Ok(make_array(data))
}

fn lengths(input: &mut Input<'_>, rows: usize) -> Result<Vec<usize>> {
    if rows > input.bytes.len() - input.at {
        return Err(short());
    }
    (0..rows).map(|_| usize::try_from(input.varint()?).map_err(|_| short())).collect()
}

#[cfg(test)]
mod tests;
