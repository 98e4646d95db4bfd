//! PREVIEW: what rules or OPTIMIZE would do, by doing it aside.
//!
//! The planner and the jobs work on a copy of the stream's place in the manifest, on a clock that stands at the moment asked for. They
//! read the real parts and write into a folder of their own that is gone afterwards; their commits and their log go nowhere. So a
//! preview says what the work will say, and cannot disagree with it: parts that wait for a partner are merged first, and what is merged
//! anyway is merged. Timers hold nothing up: once nothing else is left to do, what they still hold goes on, a lone part whose grace is not
//! over as well. Stops hold up what OPTIMIZE would leave out, and no rules.
//! Guards: nothing that anybody reads is changed, whatever becomes of the preview.

mod overlay;

use crate::{
    Engine,
    append::Appender,
    core::Core,
    deduplicate::Copies,
    disks::{Disk, Disks, Opening},
    ingest::keys::Keys,
    job::registry::Jobs,
    live::{Live, LiveCell},
    nowhere::Nowhere,
    open::OpenOptions,
    schedule::{Optimized, quiet::Quiet},
    stream::{Compiled, CompiledCache},
};
use ebb_storage::{
    Clock, Error, Result, Timestamp,
    disk::{Space, space::Source},
    ids::{DiskId, Lsn, StreamId, unique},
    log::{Limits, Replayed, StartLog},
    manifest::{Committer, Manifest, edit::PartEvent},
    stream_def::{SettingValue, StreamDef},
    vacuum::InFlight,
    verb::Verb,
};
use object_store::{ObjectStore, local::LocalFileSystem, memory::InMemory};
use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    sync::{Arc, atomic::AtomicU32},
};

/// The folder of the data directory below which previews write; emptied at opening.
pub const FOLDER: &str = "preview";

/// What is tried.
#[derive(Debug, Clone)]
pub enum Trial {
    /// What the scheduler does by the rules of this definition until nothing is left to do.
    Rules(Box<StreamDef>),
    Optimize {
        partition: Option<String>,
        final_: bool,
        copies: Option<Copies>,
    },
}

/// A line of PREVIEW.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Previewed {
    /// Canonical SQL; empty for merges.
    pub rule: String,
    /// drop, delete, group_by, reset, recompress, move, merge, deduplicate
    pub action: String,
    pub parts: u64,
    /// Rows that are removed, folded, changed, re-coded, moved or merged.
    pub rows: u64,
    pub bytes_before: u64,
    pub bytes_after: u64,
}

impl Engine {
    /// Tries work on a stream at a moment; at present for one that has passed.
    ///
    /// # Errors
    /// `NotFound` without the stream; what keeps the work from being done.
    pub async fn preview(&self, stream: StreamId, trial: Trial, at: Timestamp) -> Result<Vec<Previewed>> {
        let core = &self.core;
        // Whoever asked for now read the clock a moment ago.
        let at = at.max(core.now());
        let folder = Folder::new(core)?;
        let aside = Engine { core: copy(core, stream, &trial, at, &folder)?, stop: Default::default(), driver: Default::default() };
        let done = match &trial {
            Trial::Rules(_) => {
                aside.settle(Some(stream)).await?;
                aside.alter_stream(stream, without_timers).await?;
                aside.settle(Some(stream)).await?;
                Optimized::default()
            }
            Trial::Optimize { partition, final_, copies } => {
                aside.optimize_without(stream, partition.as_deref(), *final_, copies.as_ref()).await?
            }
        };
        if let Some(e) = aside.core.last_error.lock().take() {
            return Err(e.context("PREVIEW"));
        }
        let mut lines = told(&aside.manifest());
        if done.copies.rows > 0 {
            let (parts, bytes) = done.copies_in;
            let (rule, action) = (String::new(), Verb::Deduplicate.to_string());
            // The record takes nothing off a disk; what the merge after it saves is the merge's.
            lines.insert(0, Previewed { rule, action, parts, rows: done.copies.rows, bytes_before: bytes, bytes_after: bytes });
        }
        Ok(lines)
    }
}

/// How long due work may be held up by time alone.
const TIMERS: [&str; 3] = ["merge_with_ttl_timeout", "merge_with_recompression_ttl_timeout", "ttl_move_grace_seconds"];

fn without_timers(def: &StreamDef) -> Result<StreamDef> {
    let mut def = def.clone();
    def.settings.extend(TIMERS.map(|timer| (timer.to_owned(), SettingValue::Int(0))));
    Ok(def)
}

/// What the logs of the copy say was done, by rule and action.
fn told(m: &Manifest) -> Vec<Previewed> {
    let mut lines: BTreeMap<(String, String), Previewed> = BTreeMap::new();
    let mut add = |rule: &str, action: &str, parts: u64, rows: u64, bytes: (u64, u64)| {
        let empty = || Previewed { rule: rule.to_owned(), action: action.to_owned(), parts: 0, rows: 0, bytes_before: 0, bytes_after: 0 };
        let line = lines.entry((rule.to_owned(), action.to_owned())).or_insert_with(empty);
        line.parts += parts;
        line.rows += rows;
        line.bytes_before += bytes.0;
        line.bytes_after += bytes.1;
    };
    for row in m.lifecycle_log.iter() {
        let rows = match row.action.as_str() {
            "drop" | "delete" => row.rows_before.saturating_sub(row.rows_after),
            // How many were due stands first in what is told.
            "group_by" | "reset" => row.reason.split(' ').next().and_then(|n| n.parse().ok()).unwrap_or(row.rows_before),
            // What other rules leave.
            _ => row.rows_after,
        };
        add(&row.rule, &row.action, row.part.split(',').count() as u64, rows, (row.bytes_before, row.bytes_after));
    }
    for row in m.part_log.iter().filter(|r| r.event == PartEvent::MergeParts) {
        add("", "merge", row.source_parts.len() as u64, row.rows_read, (row.bytes_read, row.bytes));
    }
    lines.into_values().collect()
}

/// An engine over a copy of the stream.
fn copy(core: &Core, stream: StreamId, trial: &Trial, at: Timestamp, folder: &Folder) -> Result<Arc<Core>> {
    let live = core.live.read();
    let state = live.manifest.stream(stream).ok_or_else(|| core.is_gone(stream))?;
    let def = match trial {
        Trial::Optimize { .. } => None,
        Trial::Rules(def) => {
            let mut def = def.as_ref().clone();
            (def.id, def.schema_version, def.policy_version) = (stream, state.def.schema_version, state.def.policy_version + 1);
            Compiled::new(&Arc::new(def.clone()), &core.server(), core.options.compiler.as_ref())?;
            Some(def)
        }
    };
    let clock = Clock::simulated(at);
    let manifest = live.manifest.aside(stream, def)?;
    let epoch = manifest.epoch;
    let committer = Committer::aside(manifest, clock.clone());
    let mut copied = Live::new(committer.current());
    copied.set_tail(stream, live.tail(stream).as_ref().clone());
    let copied = Arc::new(LiveCell::new(copied));
    let database = core.disks.database.clone();
    let replayed = Replayed { next_lsn: Lsn(1), files: Vec::new(), records: 0, torn: None };
    let log = StartLog { dir: Arc::new(Nowhere), database: database.clone(), epoch, replayed, limits: Limits::default() };
    let appender = Appender::start(log, copied.clone(), at)?;
    // OPTIMIZE keeps to stops; what rules do is told as if there were none.
    let kept = matches!(trial, Trial::Optimize { .. });
    fn stops_of<T: Clone + Ord>(kept: bool, of: &parking_lot::Mutex<BTreeSet<T>>) -> BTreeSet<T> {
        if kept { of.lock().clone() } else { BTreeSet::new() }
    }
    let disks = core.disks.all().iter().map(|d| laid_over(d, folder)).collect::<Result<Vec<_>>>()?;
    let opening = Opening { database, epoch, nonce: unique().into() };
    Ok(Arc::new(Core {
        options: OpenOptions { clock, background: false, ..core.options.clone() },
        disks: Arc::new(Disks::new(opening, core.disks.connect.clone(), disks)),
        committer,
        live: copied,
        inflight: InFlight::default(),
        compiled: CompiledCache::default(),
        appender,
        keys: Keys::default(),
        part_counter: AtomicU32::new(1),
        jobs: Jobs::default(),
        stops: parking_lot::Mutex::new(stops_of(kept, &core.stops)),
        volume_stops: parking_lot::Mutex::new(stops_of(kept, &core.volume_stops)),
        tail_due: Default::default(),
        generation_counter: AtomicU32::new(1),
        abandoned: Default::default(),
        last_error: Default::default(),
        dropped: Default::default(),
        dir: None,
        moving: Default::default(),
        vacuum: Default::default(),
        flushing: Default::default(),
        changing: Default::default(),
        layouts: Default::default(),
        sets: Arc::new(core.sets.copy()),
        leases: core.leases.clone(),
        quiet: Quiet::default(),
    }))
}

/// The disk as the preview has it: its parts are read, what is written lies elsewhere, its room is as it is now.
fn laid_over(disk: &Disk, folder: &Folder) -> Result<Disk> {
    // One that is away is away for the preview as well.
    if disk.away().is_some() {
        return Ok(disk.clone());
    }
    let store = overlay::Overlay { below: disk.store.clone(), above: folder.store(disk.id)? };
    let over = Disk::new(disk.id, &disk.name, Arc::new(store));
    let over = match &disk.def {
        Some(def) => over.with_def(def.as_ref().clone()),
        None => over,
    };
    let Some((total, available)) = disk.space.as_ref().map(|s| Ok::<_, Error>((s.total_and_free()?.0, s.available()?))).transpose()? else {
        return Ok(over);
    };
    if total == u64::MAX {
        return Ok(over);
    }
    let space = Space::new(disk.name.as_ref(), Source::Declared(total), 100);
    space.set_placed(total.saturating_sub(available));
    Ok(over.with_space(space))
}

/// Where a preview writes; gone with it.
struct Folder(Option<PathBuf>);

impl Folder {
    fn new(core: &Core) -> Result<Self> {
        let Some(dir) = &core.dir else { return Ok(Self(None)) };
        let path = dir.root().join(FOLDER).join(unique());
        std::fs::create_dir_all(&path).map_err(|e| Error::from(e).context(path.display()))?;
        Ok(Self(Some(path)))
    }

    fn store(&self, disk: DiskId) -> Result<Arc<dyn ObjectStore>> {
        let Some(path) = &self.0 else { return Ok(Arc::new(InMemory::new())) };
        let path = path.join(disk.to_string());
        std::fs::create_dir_all(&path).map_err(|e| Error::from(e).context(path.display()))?;
        Ok(Arc::new(LocalFileSystem::new_with_prefix(path)?))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if let Some(path) = &self.0 {
            // What stays is gone at the next opening.
            let _ = std::fs::remove_dir_all(path);
        }
    }
}

/// Removes what previews of an earlier opening left.
pub(crate) fn sweep(root: &Path) {
    let _ = std::fs::remove_dir_all(root.join(FOLDER));
}
