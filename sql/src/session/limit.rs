//! What ends a statement before its time: a cancel request and `statement_timeout`, for its rows as for its work.

use super::{Block, Listed};
use crate::{Error, Outcome, Result, sqlstate};
use arrow::datatypes::SchemaRef;
use datafusion::{error::DataFusionError, execution::SendableRecordBatchStream, physical_plan::stream::RecordBatchStreamAdapter};
use ebb_storage::{clock::pause, decision};
use futures::StreamExt;
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio_util::sync::{CancellationToken, DropGuard};

pub(crate) struct Limit {
    cancel: CancellationToken,
    timed_out: Arc<AtomicBool>,
    timeout: Option<Duration>,
    /// Ends the watch of the time.
    watch: Option<DropGuard>,
    listed: Listed,
}

impl Limit {
    pub fn start(cancel: CancellationToken, timeout: Option<Duration>, listed: Listed) -> Self {
        let (cancel, timed_out) = (cancel.child_token(), Arc::new(AtomicBool::new(false)));
        let watch = timeout.map(|after| {
            let (cancel, timed_out, ended) = (cancel.clone(), timed_out.clone(), CancellationToken::new());
            let guard = ended.clone().drop_guard();
            tokio::spawn(async move {
                tokio::select! {
                    () = ended.cancelled() => {}
                    () = pause(after) => {
                        timed_out.store(true, Ordering::Release);
                        cancel.cancel();
                    }
                }
            });
            guard
        });
        Self { cancel, timed_out, timeout, watch, listed }
    }

    fn error(&self) -> Error {
        error(self.timed_out.load(Ordering::Acquire), self.timeout)
    }

    pub async fn run<T>(&self, work: impl Future<Output = Result<T>>) -> Result<T> {
        decision::unless(self.cancel.cancelled(), work).await.unwrap_or_else(|| Err(self.error()))
    }

    /// The rows of `outcome` end with an error where the limit is reached, and fail their block.
    pub fn over(self, outcome: Outcome, block: Option<Arc<Block>>) -> Outcome {
        match outcome {
            Outcome::Rows { schema, stream, tag } => {
                let stream = self.rows(schema.clone(), stream, block);
                Outcome::Rows { schema, stream, tag }
            }
            Outcome::CopyOut(mut copy) => {
                copy.stream = self.rows(copy.schema.clone(), copy.stream, block);
                Outcome::CopyOut(copy)
            }
            Outcome::CopyIn(mut copy) => {
                copy.limit = Some(self);
                Outcome::CopyIn(copy)
            }
            other => other,
        }
    }

    fn rows(self, schema: SchemaRef, stream: SendableRecordBatchStream, block: Option<Arc<Block>>) -> SendableRecordBatchStream {
        let Self { cancel, timed_out, timeout, watch, listed } = self;
        let ended = cancel.clone();
        let stop = async move {
            let _watch = watch;
            cancel.cancelled().await;
        };
        let last = futures::stream::once(async move {
            drop(listed);
            ended.is_cancelled().then(|| Err(DataFusionError::External(Box::new(error(timed_out.load(Ordering::Acquire), timeout)))))
        });
        let rows = stream.take_until(stop).chain(last.filter_map(std::future::ready)).inspect(move |row| {
            if row.is_err()
                && let Some(block) = &block
            {
                block.fail();
            }
        });
        Box::pin(RecordBatchStreamAdapter::new(schema, rows))
    }
}

fn error(timed_out: bool, timeout: Option<Duration>) -> Error {
    match (timed_out, timeout) {
        (true, Some(after)) => Error::cancelled(format!("the statement ran longer than statement_timeout ({} ms)", after.as_millis())),
        _ => Error::cancelled("the statement was cancelled on request"),
    }
    .with_sqlstate(sqlstate::QUERY_CANCELED)
}
