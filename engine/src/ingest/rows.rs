//! Rows as a log record carries them: one Arrow IPC record batch without its schema, which the record's schema version names.
//!
//! Layout: length of the message header (u32, little endian), header, padding to 64 bytes from the start, body. The frame around it
//! has the checksum; bytes that do not decode are `Corrupt`, never a panic.

use arrow::{
    array::{Array, ArrayRef, AsArray, RecordBatch, RecordBatchOptions},
    buffer::Buffer,
    compute::concat_batches,
    datatypes::{DataType, SchemaRef},
    ipc::{
        CompressionType,
        reader::read_record_batch,
        root_as_message,
        writer::{DictionaryTracker, IpcDataGenerator, IpcWriteContext, IpcWriteOptions},
    },
};
use bytes::Bytes;
use ebb_storage::{Error, Result};
use std::{collections::HashMap, sync::Arc};

/// Bodies above this are compressed.
const COMPRESS_BYTES: usize = 32 * 1024;
const ALIGN: usize = 64;

/// All rows as one batch of `schema`: checked against it, and owning no more memory than they need.
///
/// # Errors
/// `Invalid` where a batch has other columns, or NULLs where the schema has none.
pub fn gather(batches: &[RecordBatch], schema: &SchemaRef) -> Result<RecordBatch> {
    let mut dressed = batches.iter().map(|b| fit(b, schema)).collect::<Result<Vec<_>>>()?;
    let rows = match dressed.len() {
        1 => dressed.swap_remove(0),
        _ => concat_batches(schema, &dressed)?,
    };
    compact(&rows)
}

/// The batch under `schema`, if it has these columns.
///
/// # Errors
/// As [`gather`].
pub fn fit(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
    let fits = batch.num_columns() == schema.fields().len()
        && batch.schema_ref().fields().iter().zip(schema.fields()).all(|(a, s)| a.name() == s.name() && a.data_type() == s.data_type());
    if !fits {
        let names = |s: &SchemaRef| s.fields().iter().map(|f| format!("{} {}", f.name(), f.data_type())).collect::<Vec<_>>().join(", ");
        return Err(Error::invalid(format!("rows have the columns ({}) where the stream has ({})", names(batch.schema_ref()), names(schema))));
    }
    dress(batch, schema)
}

/// The same columns under `schema`.
pub fn dress(rows: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
    for (field, column) in schema.fields().iter().zip(rows.columns()) {
        if !field.is_nullable() && column.null_count() > 0 {
            return Err(Error::invalid(format!("column '{}' takes no NULL, but a row has one", field.name())));
        }
    }
    let options = RecordBatchOptions::new().with_row_count(Some(rows.num_rows()));
    Ok(RecordBatch::try_new_with_options(schema.clone(), rows.columns().to_vec(), &options)?)
}

/// Text and bytes columns may be views into much larger buffers: these are let go.
pub fn compact(rows: &RecordBatch) -> Result<RecordBatch> {
    let column = |c: &ArrayRef| -> ArrayRef {
        match c.data_type() {
            DataType::Utf8View => {
                let a = c.as_string_view();
                if a.data_buffers().is_empty() { c.clone() } else { Arc::new(a.gc()) }
            }
            DataType::BinaryView => {
                let a = c.as_binary_view();
                if a.data_buffers().is_empty() { c.clone() } else { Arc::new(a.gc()) }
            }
            _ => c.clone(),
        }
    };
    let options = RecordBatchOptions::new().with_row_count(Some(rows.num_rows()));
    Ok(RecordBatch::try_new_with_options(rows.schema(), rows.columns().iter().map(column).collect(), &options)?)
}

/// # Errors
/// `Invalid` for types that IPC cannot carry; no column type is such.
pub fn encode(rows: &RecordBatch) -> Result<Bytes> {
    let mut options = IpcWriteOptions::default();
    if rows.get_array_memory_size() > COMPRESS_BYTES {
        options = options.try_with_compression(Some(CompressionType::LZ4_FRAME))?;
    }
    let mut dictionaries = DictionaryTracker::new(true);
    let (_, data) = IpcDataGenerator::default().encode(rows, &mut dictionaries, &options, &mut IpcWriteContext::default())?;
    let header = data.ipc_message.len();
    let body_at = (4 + header).next_multiple_of(ALIGN);
    let mut out = Vec::with_capacity(body_at + data.arrow_data.len());
    out.extend_from_slice(&u32::try_from(header).map_err(|_| Error::invalid("a row's header is too long for a record"))?.to_le_bytes());
    out.extend_from_slice(&data.ipc_message);
    out.resize(body_at, 0);
    out.extend_from_slice(&data.arrow_data);
    Ok(out.into())
}

/// # Errors
/// `Corrupt` where the bytes are not rows of `schema`.
pub fn decode(bytes: &Bytes, schema: &SchemaRef) -> Result<RecordBatch> {
    let bad = |why: &dyn std::fmt::Display| Error::corrupt(format!("the rows of a log record do not decode: {why}"));
    let header = bytes.first_chunk::<4>().map(|l| u32::from_le_bytes(*l) as usize).ok_or_else(|| bad(&"too short"))?;
    let end = header.checked_add(4).filter(|end| *end <= bytes.len()).ok_or_else(|| bad(&"its header is cut off"))?;
    let body_at = end.next_multiple_of(ALIGN);
    if body_at > bytes.len() {
        return Err(bad(&"its body is cut off"));
    }
    let message = root_as_message(&bytes[4..end]).map_err(|e| bad(&e))?;
    let batch = message.header_as_record_batch().ok_or_else(|| bad(&"not a record batch"))?;
    let body = Buffer::from(bytes.slice(body_at..));
    // The decoder slices without asking.
    let inside = |b: &arrow::ipc::Buffer| {
        b.offset() >= 0 && b.length() >= 0 && b.offset().checked_add(b.length()).is_some_and(|end| end as usize <= body.len())
    };
    if !batch.buffers().is_some_and(|all| all.iter().all(inside)) {
        return Err(bad(&"its body is cut off"));
    }
    read_record_batch(&body, batch, schema.clone(), &HashMap::new(), None, &message.version()).map_err(|e| bad(&e))
}

#[cfg(test)]
mod tests;
