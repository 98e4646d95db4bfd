//! Deleting the objects of removed parts that no reader holds, and of parts that were given up (I8, I9).

use crate::{
    core::Core,
    job::told::{Told, part_row},
};
use ebb_storage::{
    Result,
    manifest::{Edit, edit::PartEvent},
    pins::PinKey,
    vacuum::sweep,
};

/// Deletes what may go; how many objects of removed parts went.
pub async fn run(core: &Core) -> Result<usize> {
    loop {
        let Some(given_up) = core.abandoned.lock().pop() else { break };
        let deleted = match core.disks.disk(given_up.disk) {
            Ok(disk) => sweep::delete(&disk.store, &given_up.path).await,
            Err(e) => Err(e),
        };
        if let Err(e) = deleted {
            core.abandoned.lock().push(given_up);
            return Err(e);
        }
        core.disks.deleted(given_up.disk, given_up.bytes);
    }
    // The manifest first, then who reads: whoever begins to read later reads a state that names none of the removed.
    let manifest = core.committer.current();
    if manifest.graveyard.is_empty() {
        return Ok(0);
    }
    let mut gone = Vec::new();
    for disk in core.disks.all() {
        gone.extend(sweep::delete_removed(&core.disks.database, &manifest, disk.id, &disk.store, |key| is_held(core, key)).await?);
    }
    if gone.is_empty() {
        return Ok(0);
    }
    let count = gone.len();
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
    core.committer.commit_with(Vec::new(), edits, |m| core.show(m)).await?;
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
    !core.abandoned.lock().is_empty() || live.manifest.graveyard.keys().any(|key| !is_held(core, key))
}
