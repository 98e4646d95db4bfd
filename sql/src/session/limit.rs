//! What ends a statement before its time: a cancel request and `statement_timeout`, for its rows as for its work.

use super::{Block, Listed};
use crate::{Error, Outcome, Result, sqlstate};
use arrow::datatypes::SchemaRef;
use datafusion::{error::DataFusionError, execution::SendableRecordBatchStream, physical_plan::stream::RecordBatchStreamAdapter};
use ebb_storage::{clock::pause, decision};
use futures::StreamExt;
use parking_lot::Mutex;
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio_util::sync::{CancellationToken, DropGuard};

pub(crate) struct Limit {
    watch: Watching,
    listed: Listed,
}

/// What looks at the time and for a request to end. It rests while nobody wants the statement's rows.
pub(crate) struct Watch {
    /// Ends the statement.
    cancel: CancellationToken,
    timed_out: AtomicBool,
    timeout: Option<Duration>,
    /// Ends the looking.
    looks: Mutex<Option<DropGuard>>,
}

impl Watch {
    /// Until [`Self::rest`]: `request` ends the statement, and the whole of `statement_timeout` from now on.
    pub fn look(self: &Arc<Self>, request: CancellationToken) {
        let ended = CancellationToken::new();
        *self.looks.lock() = Some(ended.clone().drop_guard());
        let watch = self.clone();
        let late = async move {
            match watch.timeout {
                Some(after) => pause(after).await,
                None => std::future::pending().await,
            }
        };
        let watch = self.clone();
        tokio::spawn(async move {
            tokio::select! {
                () = ended.cancelled() => {}
                () = request.cancelled() => watch.cancel.cancel(),
                () = late => {
                    watch.timed_out.store(true, Ordering::Release);
                    watch.cancel.cancel();
                }
            }
        });
    }

    pub fn rest(&self) {
        *self.looks.lock() = None;
    }

    fn error(&self) -> Error {
        let e = match self.timeout {
            Some(after) if self.timed_out.load(Ordering::Acquire) => {
                Error::cancelled(format!("the statement ran longer than statement_timeout ({} ms)", after.as_millis()))
            }
            _ => Error::cancelled("the statement was cancelled on request"),
        };
        e.with_sqlstate(sqlstate::QUERY_CANCELED)
    }
}

/// A watch that rests once this is gone.
struct Watching(Arc<Watch>);

impl Drop for Watching {
    fn drop(&mut self) {
        self.0.rest();
    }
}

impl Limit {
    pub fn start(request: CancellationToken, timeout: Option<Duration>, listed: Listed) -> Self {
        let cancel = request.child_token();
        let watch = Arc::new(Watch { cancel, timed_out: AtomicBool::new(false), timeout, looks: Mutex::new(None) });
        if timeout.is_some() {
            watch.look(request);
        }
        Self { watch: Watching(watch), listed }
    }

    /// What goes on looking while the statement's rows are read.
    pub fn watch(&self) -> Arc<Watch> {
        self.watch.0.clone()
    }

    pub async fn run<T>(&self, work: impl Future<Output = Result<T>>) -> Result<T> {
        let watch = &self.watch.0;
        decision::unless(watch.cancel.cancelled(), work).await.unwrap_or_else(|| Err(watch.error()))
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
        let Self { watch, listed } = self;
        let of_end = watch.0.clone();
        let stop = async move {
            let watch = watch;
            watch.0.cancel.cancelled().await;
        };
        let last = futures::stream::once(async move {
            drop(listed);
            of_end.cancel.is_cancelled().then(|| Err(DataFusionError::External(Box::new(of_end.error()))))
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
