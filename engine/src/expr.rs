//! Expressions as the engine needs them: compiled elsewhere, evaluated over batches of rows.

use arrow::array::{ArrayRef, RecordBatch};
use ebb_storage::{Result, ids::ColumnId, stream_def::StreamDef};
use std::sync::Arc;

/// A compiled expression over a stream's rows.
pub trait RowExpr: Send + Sync {
    /// One value for each row of `rows`, which hold at least the columns that it names.
    fn evaluate(&self, rows: &RecordBatch) -> Result<ArrayRef>;
    /// The columns that it reads.
    fn columns(&self) -> &[ColumnId];
    /// The one column in which the value never falls as the column's value rises, if it is so.
    fn monotone_in(&self) -> Option<ColumnId>;
}

/// Compiles canonical SQL texts.
pub trait ExprCompiler: Send + Sync {
    fn compile(&self, text: &str, def: &StreamDef) -> Result<Arc<dyn RowExpr>>;
}
