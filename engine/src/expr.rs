//! Expressions as the engine needs them: compiled elsewhere, evaluated over batches of rows.

use arrow::array::{ArrayRef, RecordBatch};
use ebb_storage::{
    Error, Result,
    ids::ColumnId,
    stream_def::{ColumnDef, StreamDef},
};
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

/// Rows, some at a time.
pub type Batches = Box<dyn Iterator<Item = Result<RecordBatch>> + Send>;

/// Rows of one key made one, as a GROUP BY rule asks.
pub trait Folder: Send + Sync {
    /// One row for each key of `rows`, which are in the stream's `part_schema`, as the result is. Blocks. What is neither a key nor SET
    /// comes from the row with the greatest `_tp_time`, among equals the highest `_tp_sn`, among those the last; `_tp_sn` is the lowest.
    fn fold(&self, rows: Batches) -> Result<Vec<RecordBatch>>;
}

/// Compiles canonical SQL texts.
pub trait ExprCompiler: Send + Sync {
    fn compile(&self, text: &str, def: &StreamDef) -> Result<Arc<dyn RowExpr>>;

    /// `text`, a default of `column`: its values are the column's, and what does not fit is refused.
    fn compile_default(&self, text: &str, column: &ColumnDef, def: &StreamDef) -> Result<Arc<dyn RowExpr>> {
        let _ = column;
        self.compile(text, def)
    }

    /// `keys` are expressions of the row, `set` columns with what they become, aggregates over the rows of a key.
    fn folder(&self, keys: &[String], set: &[(String, String)], def: &StreamDef) -> Result<Arc<dyn Folder>> {
        let (keys, set) = (keys.len(), set.len());
        Err(Error::internal(format!("{}: nothing here folds rows by {keys} keys into {set} values", def.full_name())))
    }
}
