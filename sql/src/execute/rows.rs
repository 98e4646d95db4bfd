//! Rows made here rather than by a query.

use crate::{Outcome, Result, RowTag};
use arrow::{
    array::{ArrayRef, RecordBatch, RecordBatchOptions, StringArray},
    datatypes::{DataType, Field, Schema, SchemaRef},
};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use std::sync::Arc;

pub(super) fn of(batch: RecordBatch, tag: RowTag) -> Outcome {
    let schema = batch.schema();
    let stream = RecordBatchStreamAdapter::new(schema.clone(), futures::stream::iter([Ok(batch)]));
    Outcome::Rows { schema, stream: Box::pin(stream), tag }
}

pub(super) fn texts_schema(names: &[&str]) -> SchemaRef {
    Arc::new(Schema::new(names.iter().map(|n| Field::new(*n, DataType::Utf8, true)).collect::<Vec<_>>()))
}

/// Rows of texts.
pub(super) fn texts(names: &[&str], rows: &[Vec<Option<String>>], tag: RowTag) -> Result<Outcome> {
    let column = |i: usize| Arc::new(rows.iter().map(|r| r.get(i).cloned().flatten()).collect::<StringArray>()) as ArrayRef;
    let columns = (0..names.len()).map(column).collect();
    let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
    Ok(of(RecordBatch::try_new_with_options(texts_schema(names), columns, &options)?, tag))
}
