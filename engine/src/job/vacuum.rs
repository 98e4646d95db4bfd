//! Deleting the objects of removed parts that no reader holds, and of parts that were given up (I8, I9).

use crate::{
    core::{Core, busy},
    disks::Disk,
    job::told::{Told, part_row},
};
use ebb_storage::{
    Error, Result,
    disk::durable_fs::LeftOver,
    ids::DiskId,
    manifest::{Edit, edit::PartEvent},
    part::key,
    pins::PinKey,
    vacuum::{liveness::is_of, sweep},
};

/// Deletes what may go; how many objects of removed parts went. What lies on a disk that is away waits until it is back; an error of one
/// disk keeps nothing on another, and the first is told.
pub async fn run(core: &Core) -> Result<usize> {
    let _one = core.vacuuming.lock().await;
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

async fn delete_abandoned(core: &Core, failed: &mut Option<Error>) {
    let given_up = std::mem::take(&mut *core.abandoned.lock());
    for object in given_up {
        let deleted = match core.disks.disk(object.disk) {
            Ok(disk) => sweep::delete(&disk.store, &object.path).await,
            // Of a disk that was dropped.
            Err(_) if core.disks.known(object.disk).is_none() => continue,
            Err(_) => {
                core.abandoned.lock().push(object);
                continue;
            }
        };
        match deleted {
            Ok(()) => core.disks.deleted(object.disk, object.bytes),
            Err(e) => {
                core.abandoned.lock().push(object);
                failed.get_or_insert(e);
            }
        }
    }
}

async fn delete_removed(core: &Core, failed: &mut Option<Error>) -> Result<usize> {
    // The manifest first, then who reads: whoever begins to read later reads a state that names none of the removed.
    let manifest = core.committer.current();
    if manifest.graveyard.is_empty() {
        return Ok(0);
    }
    let mut gone = Vec::new();
    let sets = core.disks.disk(DiskId::DEFAULT)?.store.clone();
    for disk in core.disks.all().iter().filter(|d| d.away().is_none()) {
        let (place, held) = ((disk.id, &disk.store), |key: &PinKey| is_held(core, key));
        let on_disk = sweep::delete_removed(&core.disks.database, &manifest, place, &sets, held, &mut gone);
        if let Err(e) = on_disk.await {
            failed.get_or_insert(e);
        }
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

/// Whether a reader may still open the file: one whose cut names the part, or one of the transaction that wrote it.
fn is_held(core: &Core, key: &PinKey) -> bool {
    core.live.is_held(key) || core.inflight.contains(key.0, key.1)
}

/// Whether there is anything that could be deleted now.
pub fn is_due(core: &Core) -> bool {
    let live = core.live.read();
    let given_up = core.abandoned.lock().iter().any(|o| is_here(core, o.disk));
    let removed = live.manifest.graveyard.iter().any(|(key, grave)| is_here(core, grave.part.placement.disk) && !is_held(core, key));
    given_up || removed || core.disks.all().iter().any(|d| d.is_unswept() && d.away().is_none())
}
