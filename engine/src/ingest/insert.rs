//! One insert: checked, logged, durable, visible, acknowledged; all of it or nothing.

use crate::Engine;
use arrow::array::RecordBatch;
use ebb_storage::{
    Error, Result,
    ids::{SchemaVersion, Sn, StreamId},
};

/// How to insert.
#[derive(Debug, Clone, Default)]
pub struct InsertOptions {
    /// The version that the batches' `row_schema` is of.
    pub schema_version: SchemaVersion,
    /// A second insert with the same key is answered as the first was, and adds nothing.
    pub key: Option<String>,
}

/// What an insert did: durable and visible.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Inserted {
    pub sn: Sn,
    pub rows: u64,
}

impl Engine {
    /// Adds complete rows (defaults filled, `_tp_time` given) as one record. Small ones go through the log, large ones into parts first.
    ///
    /// # Errors
    /// `NotFound` without such a stream, `Conflict` where its columns changed since `schema_version`, `Invalid` for rows that do not
    /// fit, `Full` where the disk or the partition takes no more. Nothing of it is visible then.
    pub async fn insert(&self, stream: StreamId, batches: Vec<RecordBatch>, options: InsertOptions) -> Result<Inserted> {
        let _ = (stream, batches, options);
        Err(Error::internal("insert is not built yet"))
    }
}
