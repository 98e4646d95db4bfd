//! What all parts of an open engine share. Owned by the engine and by running work; when the last of them goes, the directory is
//! released.

use crate::{
    append::Appender,
    disks::Disks,
    history::{self, Leases},
    ingest::keys::Keys,
    job::{fate::Judge, registry::Jobs, vacuum::Vacuum},
    limits,
    live::LiveCell,
    open::OpenOptions,
    schedule::{
        Stop,
        quiet::{Ground, Quiet},
        tails::TailDue,
    },
    sets::RowSets,
    settings::ServerSettings,
    stream::{Compiled, CompiledCache},
};
use ebb_storage::{
    Error, Result, Timestamp,
    disk::DataDir,
    ids::{DiskId, Epoch, Generation, PartId, StreamId},
    lineage::Cut,
    manifest::{Committer, Manifest, StreamState},
    refs::Needs,
    stream_def::StreamDef,
    vacuum::InFlight,
};
use object_store::path::Path;
use parking_lot::Mutex;
use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};

/// A lock for each stream that needed one.
pub type Locks = Mutex<HashMap<StreamId, Arc<tokio::sync::Mutex<()>>>>;

/// An object that nothing names and nothing will.
pub struct Abandoned {
    pub disk: DiskId,
    pub path: Path,
    pub bytes: u64,
}

pub struct Core {
    pub options: OpenOptions,
    pub disks: Arc<Disks>,
    pub committer: Committer,
    pub live: Arc<LiveCell>,
    pub inflight: InFlight,
    pub compiled: CompiledCache,
    pub appender: Appender,
    pub keys: Keys,
    pub jobs: Jobs,
    pub stops: Mutex<BTreeSet<(Stop, Option<StreamId>)>>,
    /// SYSTEM STOP MERGES ON VOLUME: policy and volume.
    pub volume_stops: Mutex<BTreeSet<(String, String)>>,
    /// Of each tail: looked at up to this sn, and when the first row comes due.
    pub tail_due: Mutex<HashMap<StreamId, TailDue>>,
    pub part_counter: AtomicU32,
    pub generation_counter: AtomicU32,
    /// Objects of parts that were given up before anything named them.
    pub abandoned: Mutex<Vec<Abandoned>>,
    pub last_error: Mutex<Option<Error>>,
    /// Names of streams that were dropped, the newest of them.
    pub dropped: Mutex<BTreeMap<StreamId, String>>,
    /// The lock on the directory, where there is one.
    pub dir: Option<Arc<DataDir>>,
    /// One move of log rows into their streams at a time.
    pub moving: tokio::sync::Mutex<()>,
    /// One vacuum at a time: what two delete, both would count as room.
    pub vacuum: Vacuum,
    /// One flush of a stream at a time.
    pub flushing: Locks,
    /// One DELETE, change of lineage or of refs of a stream at a time.
    pub changing: Locks,
    /// Held while a record is appended that names parts, and while a commit replaces parts.
    pub layouts: Locks,
    pub sets: Arc<RowSets>,
    pub leases: Leases,
    pub quiet: Quiet,
}

impl Core {
    pub fn now(&self) -> Timestamp {
        self.options.clock.now()
    }

    pub fn epoch(&self) -> Epoch {
        self.committer.epoch()
    }

    /// An id that no part had or will have (I2).
    pub fn next_part(&self) -> Result<PartId> {
        next(&self.part_counter, "part ids").map(|n| PartId::new(self.epoch(), n))
    }

    /// A generation that no object of any part had or will have (I2): what an attempt left behind, in this opening or an earlier one, is
    /// deleted later, by its key.
    pub fn next_generation(&self) -> Result<Generation> {
        next(&self.generation_counter, "generations of parts").map(|n| Generation::new(self.epoch(), n))
    }

    /// What becomes of a stream's rows when its parts are rewritten.
    pub fn judge(&self, state: &StreamState) -> Judge {
        // With what the tail says: a rollback that is not flushed yet needs what it goes back to.
        let whole = history::whole(&self.live.read(), state.def.id);
        let whole = whole.as_deref().unwrap_or(state);
        Judge::new(whole, Needs::of(whole, &self.pins_of(whole)), self.sets.clone())
    }

    /// Cuts that must stay beside those that the history keeps: of readers within their lag, and those that sessions lease.
    pub fn pins_of(&self, state: &StreamState) -> Vec<Cut> {
        let (live, now) = (self.live.read(), self.now());
        let readers = live.manifest.readers.values().filter(|r| r.stream == state.def.id && r.protects(state, now));
        readers.map(|r| r.cut()).chain(self.leases.cuts(state.def.id, now)).collect()
    }

    /// What plans made from now on stand on, beside their streams.
    pub fn ground(&self) -> Ground {
        Ground { changes: *self.jobs.changes().borrow(), leases: self.leases.changes(), server: self.server() }
    }

    /// # Errors
    /// `NotFound` without such a stream.
    pub fn stream(&self, id: StreamId) -> Result<Arc<StreamState>> {
        let live = self.live.read();
        live.manifest.stream(id).cloned().ok_or_else(|| self.is_gone(id))
    }

    /// What to say of a stream that is not there: its name, where this opening has seen it dropped.
    pub fn is_gone(&self, id: StreamId) -> Error {
        Error::not_found(match self.dropped.lock().get(&id) {
            Some(name) => format!("stream {name} was dropped meanwhile"),
            None => "the stream does not exist (any more)".to_owned(),
        })
    }

    /// Before a stream goes: whoever still works with it is told its name.
    pub fn remember_name(&self, def: &StreamDef) {
        let mut dropped = self.dropped.lock();
        dropped.insert(def.id, def.full_name());
        while dropped.len() > limits::DROPPED_NAMES {
            dropped.pop_first();
        }
    }

    pub fn compiled(&self, def: &Arc<StreamDef>) -> Result<Arc<Compiled>> {
        self.compiled.get(def, &self.server(), self.options.compiler.as_ref())
    }

    /// Server settings in force: those of the manifest, and over them those of this opening.
    pub fn server(&self) -> ServerSettings {
        ServerSettings::of(&self.with_overrides(&self.live.read().manifest))
    }

    fn with_overrides(&self, manifest: &Arc<Manifest>) -> Manifest {
        let mut m = manifest.as_ref().clone();
        for (name, value) in &self.options.settings {
            m.server_settings.insert_mut(name.clone(), value.clone());
        }
        m
    }

    /// Keeps an error of work that nobody waits for, to be seen in the status.
    pub fn note(&self, error: &Error) {
        *self.last_error.lock() = Some(error.clone());
    }

    pub fn flush_lock(&self, stream: StreamId) -> Arc<tokio::sync::Mutex<()>> {
        self.flushing.lock().entry(stream).or_default().clone()
    }

    pub fn change_lock(&self, stream: StreamId) -> Arc<tokio::sync::Mutex<()>> {
        self.changing.lock().entry(stream).or_default().clone()
    }

    pub fn layout_lock(&self, stream: StreamId) -> Arc<tokio::sync::Mutex<()>> {
        self.layouts.lock().entry(stream).or_default().clone()
    }
}

fn next(counter: &AtomicU32, what: &str) -> Result<u32> {
    let n = counter.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_add(1));
    n.map_err(|_| Error::internal(format!("this opening has used up its {what}: open the database again")))
}

/// Runs work that keeps a processor busy where it holds up nobody.
pub async fn busy<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    match tokio::task::spawn_blocking(work).await {
        Ok(answer) => answer,
        Err(e) => Err(Error::internal(format!("work was cut off: {e}"))),
    }
}
