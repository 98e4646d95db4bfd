//! COPY as callers see it: data in pieces of any size, in and out. What the pieces mean is decided in `execute::copy`.

mod write;

pub use write::CopyWriter;

use crate::{
    Error, Result,
    session::{Block, Limit},
    statement::CopyOptions,
};
use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use bytes::Bytes;
use datafusion::execution::SendableRecordBatchStream;
use std::sync::Arc;

/// Takes the rows of a COPY FROM. Nothing is visible before [`CopyIn::finish`]; dropping it drops all of it.
pub struct CopyIn {
    pub(crate) options: CopyOptions,
    pub(crate) columns: usize,
    pub(crate) sink: Box<dyn CopySink>,
    /// The block that fails with it.
    pub(crate) block: Option<Arc<Block>>,
    /// What ends it before its time; among the running statements as long as this lives.
    pub(crate) limit: Option<Limit>,
}

/// What stands behind a [`CopyIn`].
#[async_trait]
pub(crate) trait CopySink: Send {
    async fn data(&mut self, bytes: Bytes) -> Result<()>;
    async fn finish(self: Box<Self>) -> Result<u64>;
}

impl CopyIn {
    pub fn options(&self) -> &CopyOptions {
        &self.options
    }
    /// How many columns each row has.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Takes the next piece, which may end anywhere, in the middle of a character too.
    ///
    /// # Errors
    /// Names the line; `57014` where it was cancelled or its time is over. The COPY has failed then and takes no more.
    pub async fn data(&mut self, bytes: Bytes) -> Result<()> {
        let taken = self.sink.data(bytes);
        let done = match &self.limit {
            Some(limit) => limit.run(taken).await,
            None => taken.await,
        };
        if done.is_err() {
            self.fail();
        }
        done
    }

    /// Makes all rows durable and visible; how many there were.
    pub async fn finish(self) -> Result<u64> {
        let Self { sink, block, limit, .. } = self;
        let done = match &limit {
            Some(limit) => limit.run(sink.finish()).await,
            None => sink.finish().await,
        };
        if let (Err(_), Some(block)) = (&done, block) {
            block.fail();
        }
        done
    }

    fn fail(&self) {
        if let Some(block) = &self.block {
            block.fail();
        }
    }

    /// The client gave up; the error to answer with.
    pub fn abort(self, why: &str) -> Error {
        self.fail();
        Error::cancelled(format!("COPY from stdin failed: {why}"))
    }
}

/// The rows of a COPY TO, to be written in the format of `options`.
pub struct CopyOut {
    pub schema: SchemaRef,
    pub options: CopyOptions,
    pub stream: SendableRecordBatchStream,
}
