//! Inserts of any size in bounded memory: parts are written as rows come, then one record names them all.
//!
//! Guards: until that record is durable nothing is visible; a dropped insert leaves only objects that vacuum sweeps, and while it runs
//! vacuum leaves them alone (I9).

use crate::{
    Engine,
    ingest::{InsertOptions, Inserted},
};
use arrow::array::RecordBatch;
use ebb_storage::{Error, Result, ids::StreamId};

/// A running insert of many batches. Dropping it aborts it.
pub struct StagedInsert {}

impl StagedInsert {
    /// Takes complete rows in `row_schema` of the version that the insert was begun with.
    pub async fn push(&mut self, batch: RecordBatch) -> Result<()> {
        let _ = batch;
        Err(Error::internal("staged inserts are not built yet"))
    }

    /// Makes all of it durable and visible.
    pub async fn finish(self) -> Result<Inserted> {
        Err(Error::internal("staged inserts are not built yet"))
    }
}

impl Engine {
    pub async fn stage(&self, stream: StreamId, options: InsertOptions) -> Result<StagedInsert> {
        let _ = (stream, options);
        Err(Error::internal("staged inserts are not built yet"))
    }
}
