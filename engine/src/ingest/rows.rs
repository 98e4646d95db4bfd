//! Rows as they come in: checked against the stream's columns, and holding no more memory than they need.

use arrow::{
    array::{Array, ArrayRef, AsArray, RecordBatch, RecordBatchOptions},
    compute::concat_batches,
    datatypes::{DataType, SchemaRef},
};
use ebb_storage::{Error, Result};
use std::sync::Arc;

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
        return Err(Error::invalid(format!(
            "rows have the columns ({}) where the stream has ({})",
            names(batch.schema_ref()),
            names(schema)
        )));
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

#[cfg(test)]
mod tests;
