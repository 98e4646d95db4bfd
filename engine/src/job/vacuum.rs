//! Deleting the objects of removed parts that no reader holds, and of parts that were given up (I8, I9).
//!
//! What cannot be deleted is put off, with growing waits, and keeps nothing else.

use crate::{
    core::{Abandoned, Core, busy},
    disks::Disk,
    job::told::{Told, part_row},
    plan::Failure,
};
use ebb_storage::{
    Error, Result, Timestamp,
    clock::Stopwatch,
    disk::durable_fs::LeftOver,
    ids::DiskId,
    manifest::{Edit, edit::PartEvent},
    part::key,
    pins::PinKey,
    vacuum::{
        liveness::is_of,
        sweep::{self, Deleted},
    },
};
use object_store::path::Path;
use parking_lot::Mutex;
use std::{collections::HashMap, hash::Hash, time::Duration};

/// Of the machine's time, a look for what could be deleted that found nothing takes at most one part in so many: with many removed parts
/// that are still read it takes long, and rounds are many.
const LOOKS_ARE_ONE_IN: u32 = 20;

/// What vacuum remembers between its rounds.
#[derive(Default)]
pub struct Vacuum {
    one: tokio::sync::Mutex<()>,
    removed: Mutex<PutOff<PinKey>>,
    abandoned: Mutex<PutOff<Path>>,
    /// When a look found nothing last, and how long it took.
    looked: Mutex<Option<(Stopwatch, Duration)>>,
}

/// Objects that could not be deleted, until they are.
struct PutOff<K>(HashMap<K, Failure>);

impl<K> Default for PutOff<K> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<K: Hash + Eq> PutOff<K> {
    fn waits(&self, object: &K, now: Timestamp) -> bool {
        self.0.get(object).is_some_and(|f| now < f.retry_at())
    }

    fn failed(&mut self, object: K, now: Timestamp, error: &Error) {
        let count = self.0.get(&object).map_or(0, |f| f.count).saturating_add(1);
        self.0.insert(object, Failure { count, last_at: now, error: error.to_string() });
    }
}

/// Deletes what may go; how many objects of removed parts went. What lies on a disk that is away waits until it is back, and what could
/// not be deleted until it is tried again; an error of one object or disk keeps no other, and the first is told.
pub async fn run(core: &Core) -> Result<usize> {
    let _one = core.vacuum.one.lock().await;
    let mut failed = None;
    sweep_what_is_back(core, &mut failed).await;
    delete_abandoned(core, &mut failed).await;
    let count = delete_removed(core, &mut failed).await?;
    match failed {
        Some(e) => Err(e),
        None => Ok(count),
    }
}

fn is_here(core: &Core, disk: DiskId) -> bool {
    core.disks.known(disk).is_some_and(|d| d.away().is_none())
}

/// Disks that were away at the opening have not been swept yet.
async fn sweep_what_is_back(core: &Core, failed: &mut Option<Error>) {
    for disk in core.disks.all().iter().filter(|d| d.is_unswept() && d.away().is_none()) {
        if let Err(e) = sweep_running(core, disk).await {
            failed.get_or_insert(e);
        }
    }
}

/// Deletes the orphans of a disk while others write there. The order matters: first what lies there, then who is writing, then what is
/// named; so what is being written is in one of the last two.
async fn sweep_running(core: &Core, disk: &Disk) -> Result<()> {
    let database = &core.disks.database;
    let listed = sweep::listed(database, &disk.store).await?;
    let candidates: Vec<_> = listed.into_iter().filter(|o| !is_of(&o.path, |stream, part| core.inflight.contains(stream, part))).collect();
    let live = core.live.read();
    for orphan in sweep::unnamed(candidates, database, &live.manifest, disk.id, |s, p| live.stages(s, p)) {
        sweep::delete(&disk.store, &orphan.path).await?;
    }
    sweep_left_over(core, disk).await?;
    disk.tidy(&core.disks.opening).await?;
    disk.set_swept();
    Ok(())
}

/// Removes the temporary files that a crash left on a disk beside the data directory, but for those of what is being written.
pub async fn sweep_left_over(core: &Core, disk: &Disk) -> Result<()> {
    let Some(def) = disk.def.clone().filter(|d| d.id != DiskId::DEFAULT) else { return Ok(()) };
    let (connect, prefix) = (core.disks.connect.clone(), key::parts_prefix(&core.disks.database));
    let found = busy(move || connect.left_over(&def, &prefix)).await?;
    // As with objects: first what lies there, then who is writing. No key is given out twice.
    let left: Vec<_> = found.into_iter().filter(|l| !is_of(&l.object, |stream, part| core.inflight.contains(stream, part))).collect();
    busy(move || Ok(left.iter().try_for_each(LeftOver::remove)?)).await
}

/// Given up, and not yet deleted; what is left is kept, also where the round is cut off.
struct GivenUp<'a> {
    core: &'a Core,
    left: Vec<Abandoned>,
}

impl Drop for GivenUp<'_> {
    fn drop(&mut self) {
        self.core.abandoned.lock().append(&mut self.left);
    }
}

async fn delete_abandoned(core: &Core, failed: &mut Option<Error>) {
    let now = core.now();
    let waits = |o: &Abandoned| !is_deletable(core, o, now);
    let (left, mut wanted): (Vec<_>, Vec<_>) = std::mem::take(&mut *core.abandoned.lock()).into_iter().partition(waits);
    core.abandoned.lock().extend(left);
    let mut failures = 0;
    wanted.reverse();
    let mut given_up = GivenUp { core, left: wanted };
    while let Some(object) = given_up.left.last().filter(|_| failures < sweep::FAILURES_AT_ONCE) {
        let deleted = match core.disks.disk(object.disk) {
            Ok(disk) => sweep::delete(&disk.store, &object.path).await,
            Err(e) => Err(e),
        };
        let Some(object) = given_up.left.pop() else { return };
        match deleted {
            Ok(()) => {
                core.vacuum.abandoned.lock().0.remove(&object.path);
                core.disks.deleted(object.disk, object.bytes);
            }
            // Of a disk that was dropped.
            Err(_) if core.disks.known(object.disk).is_none() => {}
            Err(e) => {
                failures += 1;
                core.vacuum.abandoned.lock().failed(object.path.clone(), now, &e);
                core.abandoned.lock().push(object);
                failed.get_or_insert(e);
            }
        }
    }
}

fn is_deletable(core: &Core, object: &Abandoned, now: Timestamp) -> bool {
    let dropped = core.disks.known(object.disk).is_none();
    dropped || is_here(core, object.disk) && !core.vacuum.abandoned.lock().waits(&object.path, now)
}

async fn delete_removed(core: &Core, failed: &mut Option<Error>) -> Result<usize> {
    // The manifest first, then who reads: whoever begins to read later reads a state that names none of the removed.
    let manifest = core.committer.current();
    if manifest.graveyard.is_empty() {
        return Ok(0);
    }
    let (now, mut done) = (core.now(), Deleted::default());
    let sets = core.disks.disk(DiskId::DEFAULT)?.store.clone();
    let is_held = is_held(core, now);
    for disk in core.disks.all().iter().filter(|d| d.away().is_none()) {
        sweep::delete_removed(&core.disks.database, &manifest, (disk.id, &disk.store), &sets, &is_held, &mut done).await;
    }
    let Deleted { gone, failed: put_off } = done;
    {
        let mut removed = core.vacuum.removed.lock();
        gone.iter().for_each(|key| _ = removed.0.remove(key));
        for (key, e) in put_off {
            removed.failed(key, now, &e);
            failed.get_or_insert(e);
        }
        // Of a disk that was dropped meanwhile.
        removed.0.retain(|key, _| manifest.graveyard.contains_key(key));
    }
    if gone.is_empty() {
        return Ok(0);
    }
    let (count, removed) = (gone.len(), gone.clone());
    let freed: Vec<_> = gone.iter().filter_map(|key| manifest.graveyard.get(key)).map(|g| g.part.placement.clone()).collect();
    let edits = |m: &ebb_storage::manifest::Manifest, (_, time)| {
        let mut edits = Vec::with_capacity(gone.len() + 1);
        for key in &gone {
            if let (Some(grave), Some(state)) = (m.graveyard.get(key), m.stream(key.0)) {
                edits.extend(part_row(core, state, time, PartEvent::RemovePart, &grave.part, Told::default()));
            }
        }
        edits.push(Edit::Vacuumed { parts: gone });
        Ok(edits)
    };
    let now = core.committer.commit_with(Vec::new(), edits, core.shows()).await?;
    let is_left = |(stream, part, _): &PinKey| {
        now.stream(*stream).is_some_and(|s| s.parts.contains_key(part)) || now.graves_of(*stream, *part).next().is_some()
    };
    removed.iter().filter(|key| !is_left(key)).for_each(|(_, part, _)| core.sets.forget(*part));
    freed.iter().for_each(|p| core.disks.deleted(p.disk, p.bytes));
    Ok(count)
}

/// Whether an object has to stay for now: a reader may open it (one whose cut names the part, or one of the transaction that wrote it), or
/// deleting it failed a short while ago.
fn is_held(core: &Core, now: Timestamp) -> impl Fn(&PinKey) -> bool {
    let read = core.live.held();
    move |key| read.names(key) || core.inflight.contains(key.0, key.1) || core.vacuum.removed.lock().waits(key, now)
}

/// Whether there is anything that could be deleted now. Where there was nothing a moment ago it is not looked again.
pub fn is_due(core: &Core) -> bool {
    let mut looked = core.vacuum.looked.lock();
    if looked.as_ref().is_some_and(|(since, took)| since.elapsed() < took.saturating_mul(LOOKS_ARE_ONE_IN)) {
        return false;
    }
    let look = Stopwatch::start();
    let due = could_delete(core);
    *looked = (!due).then(|| (Stopwatch::start(), look.elapsed()));
    due
}

fn could_delete(core: &Core) -> bool {
    let now = core.now();
    let manifest = core.live.read().manifest.clone();
    let is_held = is_held(core, now);
    let given_up = core.abandoned.lock().iter().any(|o| is_deletable(core, o, now));
    let removed = manifest.graveyard.iter().any(|(key, grave)| is_here(core, grave.part.placement.disk) && !is_held(key));
    given_up || removed || core.disks.all().iter().any(|d| d.is_unswept() && d.away().is_none())
}
