//! Several inserts over several streams as one frame of the log: durable together, visible together.

use crate::{
    Engine,
    ingest::{InsertOptions, Inserted},
};
use arrow::array::RecordBatch;
use ebb_storage::{Error, Result, ids::StreamId};

/// Inserts that wait for their commit. Dropping it forgets them.
pub struct Transaction {}

impl Transaction {
    /// Checks the rows and keeps them; the answer to a read of the block's own writes is [`Self::pending`].
    pub async fn insert(&mut self, stream: StreamId, batches: Vec<RecordBatch>, options: InsertOptions) -> Result<u64> {
        let _ = (stream, batches, options);
        Err(Error::internal("transactions are not built yet"))
    }

    /// Rows that this transaction inserted into `stream`, in `row_schema` of the version they were inserted with.
    pub fn pending(&self, stream: StreamId) -> Vec<RecordBatch> {
        let _ = stream;
        Vec::new()
    }

    /// One answer for each insert, in order.
    pub async fn commit(self) -> Result<Vec<Inserted>> {
        Err(Error::internal("transactions are not built yet"))
    }
}

impl Engine {
    pub fn transaction(&self) -> Transaction {
        Transaction {}
    }
}
