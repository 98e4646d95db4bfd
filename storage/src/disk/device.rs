//! A disk: one object store with its marker. Without its own marker a disk is unavailable, so that an unmounted path, which looks
//! like an empty folder, is neither written nor swept.

use super::{
    durable_fs::DurableFs,
    space::{Source, Space},
};
use crate::{
    Error, ErrorKind, Result,
    ids::{DatabaseId, DiskId, Epoch},
};
use object_store::{ObjectStore, ObjectStoreExt, PutMode, path::Path};
use serde::{Deserialize, Serialize};
use std::{path::PathBuf, sync::Arc};

pub const MARKER: &str = "EBB-DISK";

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskDef {
    pub id: DiskId,
    pub name: String,
    pub kind: DiskKind,
    pub capacity_bytes: Option<u64>,
    pub max_usage_pct: u8,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum DiskKind {
    Local { path: PathBuf },
    S3 { endpoint: String, region: Option<String>, access_key_id: Option<String>, use_environment_credentials: bool },
}

#[derive(Debug, Clone)]
pub struct Disk {
    pub id: DiskId,
    pub name: String,
    pub def: DiskDef,
    pub store: Arc<dyn ObjectStore>,
    pub space: Arc<Space>,
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Marker {
    version: u32,
    disk: DiskId,
    database: DatabaseId,
}

impl Disk {
    /// A disk over a store that the caller built.
    pub fn over(def: DiskDef, store: Arc<dyn ObjectStore>) -> Self {
        let source = match (&def.kind, def.capacity_bytes) {
            (_, Some(capacity)) => Source::Declared(capacity),
            (DiskKind::Local { path }, None) => Source::FileSystem(path.clone()),
            (DiskKind::S3 { .. }, None) => Source::Unlimited,
        };
        let space = Space::new(&def.name, source, def.max_usage_pct);
        Self { id: def.id, name: def.name.clone(), def, store, space }
    }

    /// A new local disk: makes its folder and writes its marker.
    pub async fn create(def: DiskDef, database: &DatabaseId) -> Result<Self> {
        let disk = Self::over(def.clone(), local(&def, true)?);
        disk.mark(database).await?;
        Ok(disk)
    }

    /// A local disk that the manifest knows: its folder and marker must be there.
    pub async fn open(def: DiskDef, database: &DatabaseId) -> Result<Self> {
        let disk = Self::over(def.clone(), local(&def, false)?);
        disk.check(database).await?;
        Ok(disk)
    }

    /// Writes the marker, once. A marker of ours from an earlier try is fine.
    pub async fn mark(&self, database: &DatabaseId) -> Result<()> {
        let ours = || async { self.check(database).await.map_err(|e| Error::new(ErrorKind::Conflict, e.message())) };
        match self.store.head(&Path::from(MARKER)).await {
            // Every opening comes by here: what is there is not written again, so that a full disk can be opened.
            Ok(_) => return ours().await,
            Err(object_store::Error::NotFound { .. }) => {}
            Err(e) => return Err(Error::from(e).context(format!("disk '{}', {MARKER}", self.name))),
        }
        let marker = Marker { version: 1, disk: self.id, database: database.clone() };
        let text = serde_json::to_vec(&marker).map_err(|e| Error::internal(e.to_string()))?;
        match self.store.put_opts(&Path::from(MARKER), text.into(), PutMode::Create.into()).await {
            Ok(_) => Ok(()),
            Err(object_store::Error::AlreadyExists { .. }) => ours().await,
            Err(e) => Err(Error::from(e).context(format!("disk '{}'", self.name))),
        }
    }

    /// That the marker is there and ours; to be asked before anything is written, moved or swept.
    pub async fn check(&self, database: &DatabaseId) -> Result<()> {
        let place = match &self.def.kind {
            DiskKind::Local { path } => format!("disk '{}', {}", self.name, path.display()),
            DiskKind::S3 { endpoint, .. } => format!("disk '{}', {endpoint}", self.name),
        };
        let expected = format!("expected disk {} of database {database}", self.id);
        let read = async { self.store.get(&Path::from(MARKER)).await?.bytes().await };
        let bytes = match read.await {
            Ok(bytes) => bytes,
            Err(object_store::Error::NotFound { .. }) => {
                return Err(Error::unavailable(format!("{place}: no marker {MARKER}, {expected}: is it mounted?")));
            }
            Err(e) => return Err(Error::from(e).context(place)),
        };
        let marker: Marker = serde_json::from_slice(&bytes)
            .map_err(|e| Error::unavailable(format!("{place}: the marker {MARKER} is unreadable, {expected}: {e}")))?;
        if marker.disk != self.id || &marker.database != database || marker.version != 1 {
            return Err(Error::unavailable(format!(
                "{place}: the marker {MARKER} is of disk {} of database {}, {expected}",
                marker.disk, marker.database
            )));
        }
        Ok(())
    }
}

/// On a remote disk each opening creates this; writers and vacuum stop when a higher one exists.
pub fn epoch_key(database: &DatabaseId, epoch: Epoch) -> Path {
    Path::from(format!("{database}/epoch/{:010}", epoch.0))
}

fn local(def: &DiskDef, create: bool) -> Result<Arc<dyn ObjectStore>> {
    let DiskKind::Local { path } = &def.kind else {
        return Err(Error::invalid(format!("disk '{}' is remote: this program has local disks only", def.name)));
    };
    let fs = if create { DurableFs::create(path) } else { DurableFs::open(path) };
    fs.map(|fs| Arc::new(fs) as _).map_err(|e| Error::unavailable(format!("disk '{}', {}: {e}", def.name, path.display())))
}

#[cfg(test)]
mod tests;
