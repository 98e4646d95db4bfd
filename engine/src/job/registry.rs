//! What runs, on which parts, how far it is; and what failed, until it succeeds.
//!
//! Guards I6: a part is in at most one job.

use crate::{
    limits,
    observe::RunningJob,
    plan::{Failure, PartView, Plan, Pools},
    settings::ServerSettings,
};
use ebb_storage::{
    Error, Timestamp,
    clock::Stopwatch,
    codec::Codec,
    ids::{DiskId, Epoch, JobId, PartId, StreamId},
    manifest::StreamState,
    part::PartMeta,
};
use parking_lot::Mutex;
use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};
use tokio::sync::watch;

#[derive(Clone)]
pub struct Jobs {
    state: Arc<Mutex<State>>,
    changed: watch::Sender<u64>,
}

#[derive(Default)]
struct State {
    running: BTreeMap<JobId, Arc<Running>>,
    busy: HashSet<PartId>,
    failures: HashMap<PartId, Failure>,
    tried: HashMap<PartId, (Codec, u64)>,
    started: u32,
}

/// Running jobs by what they take.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    pub all: usize,
    pub merges: usize,
    /// And measurements.
    pub prunes: usize,
    pub recompressions: usize,
    pub moves: usize,
}

impl Counts {
    /// Whether one more such job may start. Drops read nothing and wait for no place, moves have places of their own; recompressions
    /// never take the last place for what rules ask, so that no deletion waits for them.
    pub fn admit(&self, plan: &Plan, server: &ServerSettings) -> bool {
        let pools = self.pools(server);
        match plan {
            Plan::Drop { .. } | Plan::Release { .. } => true,
            Plan::Move { .. } => pools.moves,
            Plan::Recompress { .. } => pools.recompressions,
            Plan::Prune { .. } | Plan::Fold { .. } | Plan::Expire { .. } | Plan::Measure { .. } => pools.prunes,
            Plan::Merge { .. } | Plan::Forget { .. } => self.merges + self.prunes + self.recompressions < server.pool_size.max(1),
        }
    }

    pub fn pools(&self, server: &ServerSettings) -> Pools {
        let (places, for_rules) = (server.pool_size.max(1), server.ttl_jobs_max.max(1));
        let recompressions = (places.min(for_rules) - 1).max(1);
        Pools {
            prunes: self.merges + self.prunes < places && self.prunes < for_rules,
            recompressions: self.merges + self.prunes + self.recompressions < places && self.recompressions < recompressions,
            moves: self.moves < limits::MOVES_AT_ONCE,
        }
    }
}

pub struct Running {
    id: JobId,
    plan: Plan,
    database: String,
    stream: String,
    parts: Vec<String>,
    /// The part that is being written; of a prune of several parts one after the other.
    result: Mutex<String>,
    /// Rows in the sources.
    rows: u64,
    /// Of a move: the disk it leaves, and with how many bytes.
    leaves: Option<(DiskId, u64)>,
    since: Stopwatch,
    pub rows_read: AtomicU64,
    pub rows_written: AtomicU64,
    pub bytes_read: AtomicU64,
    pub bytes_written: AtomicU64,
}

/// A running job; its parts are free again when this is dropped.
pub struct JobGuard {
    jobs: Jobs,
    pub running: Arc<Running>,
}

impl Default for Jobs {
    fn default() -> Self {
        Self { state: Arc::default(), changed: watch::Sender::new(0) }
    }
}

impl Jobs {
    /// Takes the plan's parts; `None` where one of them is in a job or gone.
    pub fn begin(&self, epoch: Epoch, plan: &Plan, stream: &StreamState) -> Option<JobGuard> {
        let metas = plan.parts().iter().map(|p| stream.parts.get(p)).collect::<Option<Vec<_>>>()?;
        let mut state = self.state.lock();
        if plan.parts().iter().any(|p| state.busy.contains(p)) {
            return None;
        }
        state.busy.extend(plan.parts());
        state.started += 1;
        let running = Arc::new(Running {
            id: JobId::new(epoch, state.started),
            plan: plan.clone(),
            database: stream.def.database.clone(),
            stream: stream.def.name.clone(),
            parts: metas.iter().map(|m| m.name.clone()).collect(),
            result: Mutex::default(),
            rows: metas.iter().map(|m| m.rows).sum(),
            leaves: metas.first().filter(|_| matches!(plan, Plan::Move { .. })).map(|m| (m.placement.disk, m.placement.bytes)),
            since: Stopwatch::start(),
            rows_read: AtomicU64::new(0),
            rows_written: AtomicU64::new(0),
            bytes_read: AtomicU64::new(0),
            bytes_written: AtomicU64::new(0),
        });
        state.running.insert(running.id, running.clone());
        drop(state);
        self.tell();
        Some(JobGuard { jobs: self.clone(), running })
    }

    pub fn is_busy(&self, part: PartId) -> bool {
        self.state.lock().busy.contains(&part)
    }

    /// Busy parts and failures, to make views from.
    pub fn marks(&self) -> (HashSet<PartId>, HashMap<PartId, Failure>) {
        let state = self.state.lock();
        (state.busy.clone(), state.failures.clone())
    }

    /// That a part comes out at so many bytes in a codec, where that was too much for its place; whether that is news.
    pub fn came_out(&self, part: PartId, codec: Codec, bytes: u64) -> bool {
        let mut state = self.state.lock();
        if state.tried.len() >= limits::TRIED_CODECS {
            state.tried.clear();
        }
        state.tried.insert(part, (codec, bytes)) != Some((codec, bytes))
    }

    /// What came of parts in other codecs, to make views from.
    pub fn tried(&self) -> HashMap<PartId, (Codec, u64)> {
        self.state.lock().tried.clone()
    }

    /// What the part is reckoned to take in a codec, as [`crate::plan::PartView::bytes_in`] tells the planner.
    pub fn bytes_in(&self, part: &PartMeta, codec: Codec) -> u64 {
        let tried = self.state.lock().tried.get(&part.id).copied().map(Box::new);
        PartView { tried, ..PartView::of(part, &[]) }.bytes_in(codec)
    }

    /// How many run of each kind.
    pub fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        for job in self.state.lock().running.values() {
            counts.all += 1;
            match &job.plan {
                Plan::Drop { .. } | Plan::Release { .. } => {}
                Plan::Move { .. } => counts.moves += 1,
                Plan::Merge { .. } | Plan::Forget { .. } => counts.merges += 1,
                Plan::Recompress { .. } => counts.recompressions += 1,
                Plan::Prune { .. } | Plan::Fold { .. } | Plan::Expire { .. } | Plan::Measure { .. } => counts.prunes += 1,
            }
        }
        counts
    }

    /// Bytes that running moves take off their disks.
    pub fn leaving(&self) -> Vec<(DiskId, u64)> {
        self.state.lock().running.values().filter_map(|r| r.leaves).collect()
    }

    pub fn works_on(&self, stream: Option<StreamId>) -> bool {
        self.state.lock().running.values().any(|r| stream.is_none_or(|s| r.plan.stream() == s))
    }

    pub fn failed(&self, parts: &[PartId], now: Timestamp, error: &Error) {
        let mut state = self.state.lock();
        for part in parts {
            let count = state.failures.get(part).map_or(0, |f| f.count).saturating_add(1);
            state.failures.insert(*part, Failure { count, last_at: now, error: error.to_string() });
        }
    }

    /// What went wrong with one of these parts, if anything did since it last went well.
    pub fn failure_of(&self, parts: &[PartId]) -> Option<String> {
        let state = self.state.lock();
        parts.iter().find_map(|p| state.failures.get(p)).map(|f| f.error.clone())
    }

    pub fn succeeded(&self, parts: &[PartId]) {
        let mut state = self.state.lock();
        for part in parts {
            state.failures.remove(part);
        }
    }

    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    fn tell(&self) {
        self.changed.send_modify(|n| *n = n.wrapping_add(1));
    }

    /// Something beside jobs changed what may run.
    pub fn wake(&self) {
        self.tell();
    }

    /// Returns when no job runs, of this stream or of all.
    pub async fn wait(&self, stream: Option<StreamId>) {
        let mut changes = self.changes();
        while self.works_on(stream) {
            // The sender lives in self.
            let _ = changes.changed().await;
        }
    }

    pub async fn wait_idle(&self) {
        self.wait(None).await;
    }

    pub fn running(&self) -> Vec<RunningJob> {
        self.state.lock().running.values().map(|r| r.shown()).collect()
    }
}

impl Running {
    pub fn writes(&self, name: String) {
        *self.result.lock() = name;
    }

    fn shown(&self) -> RunningJob {
        let n = |a: &AtomicU64| a.load(Ordering::Relaxed);
        RunningJob {
            id: self.id,
            database: self.database.clone(),
            stream: self.stream.clone(),
            kind: self.plan.kind(),
            parts: self.parts.clone(),
            result_part: self.result.lock().clone(),
            elapsed: self.since.elapsed(),
            progress: n(&self.rows_read) as f64 / self.rows.max(1) as f64,
            rows_read: n(&self.rows_read),
            rows_written: n(&self.rows_written),
            bytes_read: n(&self.bytes_read),
            bytes_written: n(&self.bytes_written),
        }
    }
}

impl Drop for JobGuard {
    fn drop(&mut self) {
        let mut state = self.jobs.state.lock();
        state.running.remove(&self.running.id);
        for part in self.running.plan.parts() {
            state.busy.remove(part);
        }
        drop(state);
        self.jobs.tell();
    }
}

#[cfg(test)]
mod tests;
