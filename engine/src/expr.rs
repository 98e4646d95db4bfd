//! Expressions as the engine needs them: compiled elsewhere, evaluated over batches of rows.

use arrow::array::{ArrayRef, RecordBatch};
use ebb_storage::{Result, stream_def::StreamDef};
use std::sync::Arc;

/// A compiled expression over a stream's rows.
pub trait RowExpr: Send + Sync {
    /// One value for each row of `rows`, which are in `row_schema`.
    fn evaluate(&self, rows: &RecordBatch) -> Result<ArrayRef>;
}

/// Compiles canonical SQL texts.
pub trait ExprCompiler: Send + Sync {
    fn compile(&self, text: &str, def: &StreamDef) -> Result<Arc<dyn RowExpr>>;
}
