//! Carrying out what `liveness` allows, on one disk at a time.

use crate::{
    Result,
    ids::{DatabaseId, DiskId, PartId, StreamId},
    manifest::state::Manifest,
    part::key,
    pins::PinKey,
    vacuum::liveness,
};
use futures::TryStreamExt;
use object_store::{ObjectStore, ObjectStoreExt, path::Path};
use std::sync::Arc;

/// An object that no truth names.
#[derive(Debug, Clone, PartialEq)]
pub struct Orphan {
    pub path: Path,
    pub bytes: u64,
}

/// Deletes the objects of removed parts on `disk` that `held` does not protect, and their row sets, which lie in `sets`; what was deleted
/// joins `gone`, for the commit that forgets them, also where another could not be.
pub async fn delete_removed(
    database: &DatabaseId,
    m: &Manifest,
    (disk, store): (DiskId, &Arc<dyn ObjectStore>),
    sets: &Arc<dyn ObjectStore>,
    held: impl Fn(&PinKey) -> bool,
    gone: &mut Vec<PinKey>,
) -> Result<()> {
    for (key, grave) in liveness::deletable(m, held) {
        if grave.part.placement.disk != disk {
            continue;
        }
        for path in liveness::sets_of(database, m, &grave.part, gone) {
            delete(sets, &path).await?;
        }
        delete(store, &liveness::object_of(database, &grave.part)).await?;
        gone.push(key);
    }
    Ok(())
}

/// Objects in the database's own key space on `disk` that neither the manifest names nor `spared` (unapplied records, running work).
/// Keys that Ebb did not build are left alone and not listed.
pub async fn orphans(
    database: &DatabaseId,
    m: &Manifest,
    disk: DiskId,
    store: &Arc<dyn ObjectStore>,
    spared: impl Fn(StreamId, PartId) -> bool,
) -> Result<Vec<Orphan>> {
    let listed = listed(database, store).await?;
    Ok(unnamed(listed, database, m, disk, spared))
}

/// Everything below the database's parts on a disk.
pub async fn listed(database: &DatabaseId, store: &Arc<dyn ObjectStore>) -> Result<Vec<Orphan>> {
    let listed = store.list(Some(&key::parts_prefix(database))).map_ok(|o| Orphan { path: o.location, bytes: o.size });
    Ok(listed.try_collect().await?)
}

/// Those that Ebb built and nothing names.
pub fn unnamed(
    listed: Vec<Orphan>,
    database: &DatabaseId,
    m: &Manifest,
    disk: DiskId,
    spared: impl Fn(StreamId, PartId) -> bool,
) -> Vec<Orphan> {
    let named = liveness::named(database, m, disk);
    let known = |path: &Path| liveness::parse_key(path).is_none_or(|(stream, part, _)| named.contains(path) || spared(stream, part));
    listed.into_iter().filter(|o| !known(&o.path)).collect()
}

/// Objects that showed whether a disk can be written, where a crash left one.
pub async fn delete_probes(database: &DatabaseId, store: &Arc<dyn ObjectStore>) -> Result<()> {
    let left: Vec<_> = store.list(Some(&key::probes_prefix(database))).try_collect().await?;
    for probe in left {
        delete(store, &probe.location).await?;
    }
    Ok(())
}

/// Deletes an orphan or a removed part's object; one that is gone already is fine.
pub async fn delete(store: &Arc<dyn ObjectStore>, path: &Path) -> Result<()> {
    match store.delete(path).await {
        Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
        Err(e) => Err(e.into()),
    }
}
