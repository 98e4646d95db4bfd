//! Who writes on a remote disk: each opening of the database leaves `<database id>/epoch/{n}` there.
//!
//! A data directory is locked, but a copy of it is not: two that share a bucket must not both write and sweep there (I7). Whoever finds
//! a higher number than its own stops.

use crate::{
    Error, Result,
    ids::{DatabaseId, Epoch},
};
use futures::TryStreamExt;
use object_store::{ObjectStore, ObjectStoreExt, PutMode, path::Path};
use std::sync::Arc;

pub fn key(database: &DatabaseId, epoch: Epoch) -> Path {
    Path::from(format!("{database}/epoch/{:010}", epoch.0))
}

/// Says that `epoch` writes here. `nonce` tells ours from another's of the same number; to say it twice is fine.
///
/// # Errors
/// `Fenced` where another opening said so.
pub async fn begin(store: &Arc<dyn ObjectStore>, database: &DatabaseId, epoch: Epoch, nonce: &str) -> Result<()> {
    let key = key(database, epoch);
    match store.put_opts(&key, nonce.to_owned().into_bytes().into(), PutMode::Create.into()).await {
        Ok(_) => Ok(()),
        Err(object_store::Error::AlreadyExists { .. }) => {
            let found = store.get(&key).await?.bytes().await?;
            match found == nonce.as_bytes() {
                true => Ok(()),
                false => Err(taken(database, epoch)),
            }
        }
        Err(e) => Err(e.into()),
    }
}

/// # Errors
/// `Fenced` where a later opening than `epoch` writes here.
pub async fn is_newest(store: &Arc<dyn ObjectStore>, database: &DatabaseId, epoch: Epoch) -> Result<()> {
    let folder = Path::from(format!("{database}/epoch"));
    let above = store.list_with_offset(Some(&folder), &key(database, epoch)).try_next().await?;
    match above.and_then(|o| number(&o.location)) {
        Some(newer) if newer > epoch => Err(taken(database, newer)),
        _ => Ok(()),
    }
}

/// Deletes the numbers of earlier openings: who finds a higher one than its own need not know them.
pub async fn forget_older(store: &Arc<dyn ObjectStore>, database: &DatabaseId, epoch: Epoch) -> Result<()> {
    let folder = Path::from(format!("{database}/epoch"));
    let all: Vec<_> = store.list(Some(&folder)).try_collect().await?;
    for old in all.into_iter().filter(|o| number(&o.location).is_some_and(|n| n < epoch)) {
        match store.delete(&old.location).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => {}
            Err(e) => return Err(e.into()),
        }
    }
    Ok(())
}

fn number(path: &Path) -> Option<Epoch> {
    path.filename().and_then(|n| n.parse().ok()).map(Epoch)
}

fn taken(database: &DatabaseId, epoch: Epoch) -> Error {
    Error::fenced(format!(
        "another opening of this database (epoch {epoch}, of a copy of the data directory?) writes there: only one may; if that one is no \
         more, delete {} there",
        key(database, epoch)
    ))
}
