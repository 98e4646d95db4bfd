//! Carrying out what `liveness` allows, on one disk at a time.

use crate::{
    Error, Result,
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

/// Deletions that may fail on one disk before the others are left for another time: one that answers nothing is waited for at each.
pub const FAILURES_AT_ONCE: usize = 8;

/// What became of removed parts.
#[derive(Debug, Default)]
pub struct Deleted {
    /// For the commit that forgets them.
    pub gone: Vec<PinKey>,
    pub failed: Vec<(PinKey, Error)>,
}

/// Deletes the objects of removed parts on `disk` that `held` does not protect, and their row sets, which lie in `sets`. One that cannot be
/// deleted keeps no other.
pub async fn delete_removed(
    database: &DatabaseId,
    m: &Manifest,
    (disk, store): (DiskId, &Arc<dyn ObjectStore>),
    sets: &Arc<dyn ObjectStore>,
    held: impl Fn(&PinKey) -> bool,
    done: &mut Deleted,
) {
    let mut failures = 0;
    for (key, grave) in liveness::deletable(m, disk, held) {
        let objects = async {
            for path in liveness::sets_of(database, m, &grave.part, &done.gone) {
                delete(sets, &path).await?;
            }
            delete(store, &liveness::object_of(database, &grave.part)).await
        };
        match objects.await {
            Ok(()) => done.gone.push(key),
            Err(e) => {
                done.failed.push((key, e));
                failures += 1;
                if failures == FAILURES_AT_ONCE {
                    return;
                }
            }
        }
    }
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

/// Objects that showed whether a disk can be written, where a crash left one; those whose names begin so are in use.
pub async fn delete_probes(database: &DatabaseId, store: &Arc<dyn ObjectStore>, in_use: &str) -> Result<()> {
    let left: Vec<_> = store.list(Some(&key::probes_prefix(database))).try_collect().await?;
    let is_left = |p: &&object_store::ObjectMeta| !p.location.filename().is_some_and(|name| name.starts_with(in_use));
    for probe in left.iter().filter(is_left) {
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
