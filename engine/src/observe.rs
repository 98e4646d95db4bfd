//! What people ask about the engine: its state, its running jobs, why parts are as they are. Plain values, made on request.

use crate::Engine;
use ebb_storage::{
    Clock, Timestamp,
    ids::{CommitNo, Epoch, JobId, Lsn},
    part::PartMeta,
};
use std::time::Duration;

/// A row of `system.merges`.
#[derive(Debug, Clone, PartialEq)]
pub struct RunningJob {
    pub id: JobId,
    pub database: String,
    pub stream: String,
    /// As [`crate::plan::Plan::kind`] says.
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

/// Where a part lies and who still reads it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartPlace {
    /// The disk's name.
    pub disk: std::sync::Arc<str>,
    /// Of the stream's policy; `None` for a disk outside of it, or without the stream.
    pub volume: Option<String>,
    /// An absolute file path, or s3://bucket/key.
    pub address: String,
    /// On that disk.
    pub key: object_store::path::Path,
    /// Earlier states that are still read and name the part.
    pub readers: usize,
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
    pub running_jobs: usize,
    pub stopped: Vec<String>,
    /// Why the log takes no more records, if it does not.
    pub log_error: Option<String>,
    pub last_error: Option<String>,
}

impl Engine {
    pub fn place_of(&self, part: &PartMeta) -> PartPlace {
        let (disks, generation) = (&self.core.disks, part.placement.generation);
        let (disk, key) = (disks.disk_or_away(part.placement.disk).name, disks.key(part.stream, part.id, generation));
        let manifest = self.manifest();
        let policy = manifest.stream(part.stream).and_then(|s| manifest.policy_of(&s.def).ok());
        PartPlace {
            volume: policy.and_then(|p| p.volume_of_disk(&disk).map(|v| v.name.clone())),
            address: disks.address(part.placement.disk, &key),
            disk,
            key,
            readers: self.core.live.holders(&(part.stream, part.id, generation)),
        }
    }

    /// A look at the engine as it is now.
    pub fn status(&self) -> Status {
        let core = &self.core;
        let live = core.live.read();
        let stops = core.stops.lock().clone();
        let stopped = stops.iter().map(|(what, stream)| {
            let on = stream.map(|s| live.manifest.stream(s).map_or(s.to_string(), |s| s.def.full_name()));
            let what = match what {
                crate::Stop::Merges => "MERGES",
                crate::Stop::TtlMerges => "TTL MERGES",
                crate::Stop::Moves => "MOVES",
            };
            on.map_or(what.to_owned(), |on| format!("{what} {on}"))
        });
        let volume_stops = core.volume_stops.lock().clone();
        let volumes = volume_stops.iter().map(|(policy, volume)| format!("MERGES ON VOLUME {policy}.{volume}"));
        Status {
            directory: core.options.dir.display().to_string(),
            now: core.now(),
            simulated_clock: matches!(core.options.clock, Clock::Simulated(_)),
            epoch: core.epoch(),
            commit: live.manifest.no,
            lsn: core.appender.published(),
            streams: live.manifest.user_streams().count(),
            parts: live.manifest.user_streams().map(|s| s.parts.size()).sum(),
            tail_rows: live.tails().map(|(_, t)| t.rows()).sum(),
            tail_bytes: live.tails().map(|(_, t)| t.bytes()).sum(),
            running_jobs: core.jobs.counts().all,
            stopped: stopped.chain(volumes).collect(),
            log_error: core.appender.poisoned().map(|e| e.to_string()),
            last_error: core.last_error.lock().as_ref().map(ToString::to_string),
        }
    }
}
