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

/// Deletes the objects of removed parts on `disk` that `held` does not protect; what was deleted, for the commit that forgets them.
pub async fn delete_removed(
    database: &DatabaseId,
    m: &Manifest,
    disk: DiskId,
    store: &Arc<dyn ObjectStore>,
    held: impl Fn(&PinKey) -> bool,
) -> Result<Vec<PinKey>> {
    let mut gone = Vec::new();
    for (key, grave) in liveness::deletable(m, held) {
        if grave.part.placement.disk != disk {
            continue;
        }
        for path in liveness::objects_of(database, m, &grave.part) {
            delete(store, &path).await?;
        }
        gone.push(key);
    }
    Ok(gone)
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
    let named = liveness::named(database, m, disk);
    let listed: Vec<_> = store.list(Some(&key::parts_prefix(database))).try_collect().await?;
    let orphan = |path: &Path| match liveness::parse_key(path) {
        Some((stream, part, _)) => !named.contains(path) && !spared(stream, part),
        None => false,
    };
    Ok(listed.into_iter().filter(|o| orphan(&o.location)).map(|o| Orphan { path: o.location, bytes: o.size }).collect())
}

/// Deletes an orphan or a removed part's object; one that is gone already is fine.
pub async fn delete(store: &Arc<dyn ObjectStore>, path: &Path) -> Result<()> {
    match store.delete(path).await {
        Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
        Err(e) => Err(e.into()),
    }
}
