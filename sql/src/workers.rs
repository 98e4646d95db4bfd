//! Threads of their own for the work of queries.
//!
//! A join may compute for minutes between two rows, and planning for seconds without a pause. On the threads that accept, insert, cancel and stop, it would keep all of that
//! waiting; here it keeps other queries waiting, and not for long: joins yield, and their conditions notice that nobody waits any more.

mod interruptible;

use crate::{Error, Result};
use arrow::datatypes::SchemaRef;
use datafusion::{
    arrow::record_batch::RecordBatch,
    common::tree_node::{Transformed, TreeNode},
    error::DataFusionError,
    execution::{SendableRecordBatchStream, TaskContext},
    physical_plan::{ExecutionPlan, coop::CooperativeExec, execute_stream, joins::NestedLoopJoinExec, stream::RecordBatchStreamAdapter},
};
use futures::{StreamExt, stream};
use interruptible::Interruptible;
use std::sync::Arc;
use tokio::{
    runtime::{Builder, Runtime},
    sync::mpsc,
    task::{AbortHandle, JoinHandle},
};
use tokio_util::{
    sync::{CancellationToken, DropGuard},
    task::AbortOnDropHandle,
};

/// Batches between the query and who reads its rows.
const QUEUED_BATCHES: usize = 2;

/// Plans nest as queries do.
const STACK_BYTES: usize = 16 << 20;
const THREADS_PER_CORE: usize = 2;
const THREADS_MIN: usize = 4;

pub(crate) struct Workers(Option<Runtime>);

impl Workers {
    /// More threads than cores: where a join has one for long, the system still shares the cores out.
    ///
    /// # Errors
    /// Where threads cannot be started.
    pub fn new() -> Result<Self> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let threads = (cores * THREADS_PER_CORE).max(THREADS_MIN);
        let runtime = Builder::new_multi_thread()
            .worker_threads(threads)
            .thread_stack_size(STACK_BYTES)
            .enable_all()
            .thread_name("ebb-query")
            .build();
        runtime.map(|r| Self(Some(r))).map_err(|e| Error::internal(format!("threads for queries do not start: {e}")))
    }

    /// What computes long without waiting for anything, as planning does. Whoever waits can give it up at any time; it then ends at its
    /// next pause.
    ///
    /// # Errors
    /// Where it panicked.
    pub async fn think<T: Send + 'static>(&self, work: impl Future<Output = T> + Send + 'static) -> Result<T> {
        let runtime = self.0.as_ref().ok_or_else(|| Error::internal("the database is closed"))?;
        let task = AbortOnDropHandle::new(runtime.spawn(work));
        task.await.map_err(|e| Error::internal(format!("a statement's planning was cut off: {e}")))
    }

    /// Runs `plan`. Dropping the rows ends it.
    ///
    /// # Errors
    /// Where the plan does not begin.
    pub fn run(&self, plan: Arc<dyn ExecutionPlan>, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let runtime = self.0.as_ref().ok_or_else(|| Error::internal("the database is closed"))?;
        let stop = CancellationToken::new();
        let plan = interruptible(plan, &stop)?;
        let schema = plan.schema();
        let (send, receive) = mpsc::channel(QUEUED_BATCHES);
        let work = runtime.spawn(async move {
            let mut rows = match execute_stream(plan, context) {
                Ok(rows) => rows,
                Err(e) => {
                    let _ = send.send(Err(e)).await;
                    return;
                }
            };
            while let Some(batch) = rows.next().await {
                if send.send(batch).await.is_err() {
                    return;
                }
            }
        });
        let running = Running { receive, abort: work.abort_handle(), work: Some(work), _stop: stop.drop_guard() };
        Ok(rows_of(schema, running))
    }
}

/// Not from within an asynchronous context, where a runtime must not wait for its threads.
impl Drop for Workers {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

/// Ends the query when it is dropped.
struct Running {
    receive: mpsc::Receiver<datafusion::error::Result<RecordBatch>>,
    work: Option<JoinHandle<()>>,
    abort: AbortHandle,
    _stop: DropGuard,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.abort.abort();
    }
}

fn rows_of(schema: SchemaRef, running: Running) -> SendableRecordBatchStream {
    let rows = stream::unfold(running, |mut running| async move {
        if let Some(batch) = running.receive.recv().await {
            return Some((batch, running));
        }
        // The end, or the end of the task that was to bring it.
        let ended = running.work.take()?.await;
        ended.err().map(|e| (Err(DataFusionError::Internal(format!("a query's work was cut off: {e}"))), running))
    });
    Box::pin(RecordBatchStreamAdapter::new(schema, rows))
}

/// Joins yield between batches, and the condition of one that compares all with all fails once `stop` is.
fn interruptible(plan: Arc<dyn ExecutionPlan>, stop: &CancellationToken) -> Result<Arc<dyn ExecutionPlan>> {
    let of_node = |node: Arc<dyn ExecutionPlan>| -> datafusion::error::Result<Transformed<Arc<dyn ExecutionPlan>>> {
        if !node.name().ends_with("JoinExec") {
            return Ok(Transformed::no(node));
        }
        let join = match node.downcast_ref::<NestedLoopJoinExec>() {
            Some(join) if join.filter().is_some() => Arc::new(Interruptible::condition_of(join, stop)?),
            _ => node,
        };
        Ok(Transformed::yes(Arc::new(CooperativeExec::new(join))))
    };
    Ok(plan.transform_up(of_node)?.data)
}
