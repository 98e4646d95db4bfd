//! Rows as they come in: checked against the stream's columns, and holding no more memory than they need.

use arrow::{
    array::{Array, ArrayRef, AsArray, RecordBatch, RecordBatchOptions},
    compute::{cast, concat_batches, take},
    datatypes::{DataType, FieldRef, Schema, SchemaRef},
    error::ArrowError,
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

/// The batch under `schema`, if it has these columns. Texts may come as dictionaries; they leave as texts.
///
/// # Errors
/// As [`gather`].
pub fn fit(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
    fitted(batch, schema, |_| false)
}

/// As [`fit`], but dictionaries of texts stay: what is to be sorted and written is cheaper so.
///
/// # Errors
/// As [`gather`].
pub fn fit_coded(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
    let plain = |t: &DataType| matches!(t, DataType::Dictionary(k, v) if **k == DataType::Int32 && matches!(**v, DataType::Utf8 | DataType::Utf8View));
    fitted(batch, schema, |c| plain(c.data_type()) && c.as_any_dictionary().values().null_count() == 0)
}

fn fitted(batch: &RecordBatch, schema: &SchemaRef, stays: impl Fn(&ArrayRef) -> bool) -> Result<RecordBatch> {
    let same = |a: &DataType, s: &DataType| match a {
        DataType::Dictionary(_, values) => *s == DataType::Utf8View && matches!(**values, DataType::Utf8 | DataType::Utf8View),
        a => a == s,
    };
    let fits = batch.num_columns() == schema.fields().len()
        && batch.schema_ref().fields().iter().zip(schema.fields()).all(|(a, s)| a.name() == s.name() && same(a.data_type(), s.data_type()));
    if !fits {
        let names = |s: &SchemaRef| s.fields().iter().map(|f| format!("{} {}", f.name(), f.data_type())).collect::<Vec<_>>().join(", ");
        return Err(Error::invalid(format!(
            "rows have the columns ({}) where the stream has ({})",
            names(batch.schema_ref()),
            names(schema)
        )));
    }
    let column = |(c, f): (&ArrayRef, &FieldRef)| match c.as_any_dictionary_opt() {
        Some(d) if !stays(c) => {
            // A cast would make texts of a dictionary's NULLs.
            let values = take(d.values(), d.keys(), None)?;
            cast(&values, f.data_type())
        }
        _ => Ok(c.clone()),
    };
    let columns = batch.columns().iter().zip(schema.fields()).map(column).collect::<Result<Vec<_>, ArrowError>>()?;
    let typed = |(f, c): (&FieldRef, &ArrayRef)| match f.data_type() == c.data_type() {
        true => f.clone(),
        false => Arc::new(f.as_ref().clone().with_data_type(c.data_type().clone())),
    };
    let schema = match columns.iter().zip(schema.fields()).all(|(c, f)| c.data_type() == f.data_type()) {
        true => schema.clone(),
        false => Arc::new(Schema::new(schema.fields().iter().zip(&columns).map(typed).collect::<Vec<_>>())),
    };
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    let nullable = schema.fields().iter().map(|f| Arc::new(f.as_ref().clone().with_nullable(true))).collect::<Vec<_>>();
    dress(&RecordBatch::try_new_with_options(Arc::new(Schema::new(nullable)), columns, &options)?, &schema)
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
