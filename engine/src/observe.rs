//! What people ask about the engine: its state, its running jobs, why parts are as they are. Plain values, made on request.

use ebb_storage::{
    Timestamp,
    ids::{CommitNo, Epoch, JobId, Lsn},
};
use std::time::Duration;

/// A row of `system.merges`.
#[derive(Debug, Clone, PartialEq)]
pub struct RunningJob {
    pub id: JobId,
    pub database: String,
    pub stream: String,
    /// merge, prune, drop, measure.
    pub kind: &'static str,
    /// Names of the source parts.
    pub parts: Vec<String>,
    pub result_part: String,
    pub elapsed: Duration,
    /// 0 to 1.
    pub progress: f64,
    pub rows_read: u64,
    pub rows_written: u64,
    pub bytes_read: u64,
    pub bytes_written: u64,
}

/// A line of EXPLAIN LIFECYCLE.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explained {
    pub part: String,
    pub rule: String,
    pub action: String,
    pub due_at: Option<Timestamp>,
    /// One of the closed set of reason codes.
    pub state: String,
    pub reason: String,
    pub blocked_by: Option<String>,
    pub since: Option<Timestamp>,
    pub unblock_with: Option<String>,
    pub next_attempt_at: Option<Timestamp>,
    pub rows: u64,
    pub bytes: u64,
}

/// What SYSTEM STATUS shows.
#[derive(Debug, Clone, PartialEq)]
pub struct Status {
    pub directory: String,
    pub now: Timestamp,
    pub simulated_clock: bool,
    pub epoch: Epoch,
    pub commit: CommitNo,
    pub lsn: Lsn,
    pub streams: usize,
    pub parts: usize,
    pub tail_rows: u64,
    pub tail_bytes: u64,
    pub log_bytes: u64,
    pub running_jobs: usize,
    pub stopped: Vec<String>,
    /// Why the log takes no more records, if it does not.
    pub log_error: Option<String>,
    /// When the scheduler wakes next, on the database's clock.
    pub wakes_at: Option<Timestamp>,
    pub last_error: Option<String>,
}
