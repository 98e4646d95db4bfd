//! A disk: one object store with its marker. Without its own marker a disk is unavailable, so that an unmounted path, which looks
//! like an empty folder, is neither written nor swept.

use super::{
    connect::{Connect, Real},
    marker::{MARKER, Marker},
    s3::Endpoint,
    secret::Secret,
    space::{Source, Space},
};
use crate::{
    Error, ErrorKind, Result,
    ids::{DatabaseId, DiskId},
};
use object_store::{ObjectStore, ObjectStoreExt, PutMode, path::Path};
use serde::{Deserialize, Serialize};
use std::{
    path::{Path as FsPath, PathBuf},
    sync::Arc,
};

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
    Local {
        path: PathBuf,
    },
    S3 {
        endpoint: String,
        region: Option<String>,
        access_key_id: Option<String>,
        #[serde(default)]
        secret_access_key: Option<Secret>,
        use_environment_credentials: bool,
    },
}

impl DiskDef {
    pub fn is_remote(&self) -> bool {
        matches!(self.kind, DiskKind::S3 { .. })
    }

    /// Name and place, for messages.
    pub fn place(&self) -> String {
        match &self.kind {
            DiskKind::Local { path } => format!("disk '{}', {}", self.name, path.display()),
            DiskKind::S3 { endpoint, .. } => format!("disk '{}', {endpoint}", self.name),
        }
    }

    /// Where an object lies, as people write it: an absolute file path or s3://bucket/key.
    pub fn address(&self, key: &str) -> String {
        match &self.kind {
            DiskKind::Local { path } => path.join(key).display().to_string(),
            DiskKind::S3 { endpoint, .. } => Endpoint::parse(endpoint).map_or_else(|_| key.to_owned(), |e| e.address(key)),
        }
    }

    /// Whether one of the two places lies in the other. Local paths must be canonical.
    pub fn overlaps(&self, other: &Self) -> bool {
        match (&self.kind, &other.kind) {
            (DiskKind::Local { path: a }, DiskKind::Local { path: b }) => a.starts_with(b) || b.starts_with(a),
            (DiskKind::S3 { endpoint: a, .. }, DiskKind::S3 { endpoint: b, .. }) => {
                matches!((Endpoint::parse(a), Endpoint::parse(b)), (Ok(a), Ok(b)) if a.overlaps(&b))
            }
            _ => false,
        }
    }

    pub fn space(&self) -> Arc<Space> {
        let source = match (&self.kind, self.capacity_bytes) {
            (_, Some(capacity)) => Source::Declared(capacity),
            (DiskKind::Local { path }, None) => Source::FileSystem(path.clone()),
            (DiskKind::S3 { .. }, None) => Source::Unlimited,
        };
        Space::new(&self.name, source, self.max_usage_pct)
    }
}

/// The disk that the data directory is.
pub fn default_disk(root: &FsPath) -> DiskDef {
    DiskDef {
        id: DiskId::DEFAULT,
        name: "default".to_owned(),
        kind: DiskKind::Local { path: root.to_path_buf() },
        capacity_bytes: None,
        max_usage_pct: 100,
    }
}

#[derive(Debug, Clone)]
pub struct Disk {
    pub id: DiskId,
    pub name: String,
    pub def: DiskDef,
    pub store: Arc<dyn ObjectStore>,
    pub space: Arc<Space>,
}

impl Disk {
    /// A disk over a store that the caller built.
    pub fn over(def: DiskDef, store: Arc<dyn ObjectStore>) -> Self {
        Self { id: def.id, name: def.name.clone(), space: def.space(), def, store }
    }

    /// A local disk that is known: its folder and marker must be there.
    pub async fn open(def: DiskDef, database: &DatabaseId) -> Result<Self> {
        let store = Real.connect(&def, false)?;
        check(&def, &store, database).await?;
        Ok(Self::over(def, store))
    }
}

/// Writes the marker of a disk that is being created. One of ours from an earlier try is fine; one of a disk of ours that is no more
/// (`is_gone`) is replaced.
///
/// # Errors
/// `Conflict` where the place is another's.
pub async fn mark(def: &DiskDef, store: &Arc<dyn ObjectStore>, database: &DatabaseId, is_gone: impl Fn(DiskId) -> bool) -> Result<()> {
    let (ours, place, path) = (Marker::new(def.id, database), def.place(), Path::from(MARKER));
    let taken = |found: &Marker| {
        let whose = if found.database == *database { "this database".to_owned() } else { format!("database {}", found.database) };
        let way_out = format!("a place belongs to one disk only: name another one, or remove {MARKER} if nothing needs it");
        Error::conflict(format!("{place} is disk {} of {whose}: {way_out}", found.disk))
    };
    if let Some(found) = read(store, &place).await? {
        if found == ours {
            return Ok(());
        }
        if found.database != *database || found.disk == def.id || !is_gone(found.disk) {
            return Err(taken(&found));
        }
        store.delete(&path).await.map_err(|e| Error::from(e).context(&place))?;
    }
    match store.put_opts(&path, ours.encode()?.into(), PutMode::Create.into()).await {
        Ok(_) => Ok(()),
        // Another was quicker, or an answer was lost.
        Err(object_store::Error::AlreadyExists { .. }) => match read(store, &place).await? {
            Some(found) if found != ours => Err(taken(&found)),
            _ => Ok(()),
        },
        Err(e) => Err(Error::from(e).context(place)),
    }
}

/// That the marker is there and ours; to be asked before anything is written, moved or swept.
///
/// # Errors
/// `Unavailable`, naming the disk and what is wrong.
pub async fn check(def: &DiskDef, store: &Arc<dyn ObjectStore>, database: &DatabaseId) -> Result<()> {
    let (ours, place) = (Marker::new(def.id, database), def.place());
    match read(store, &place).await? {
        Some(found) => ours.expect(&found, &place),
        None => Err(ours.missing(&place)),
    }
}

async fn read(store: &Arc<dyn ObjectStore>, place: &str) -> Result<Option<Marker>> {
    let read = async { store.get(&Path::from(MARKER)).await?.bytes().await };
    match read.await {
        Ok(bytes) => Marker::decode(&bytes, place).map(Some),
        Err(object_store::Error::NotFound { .. }) => Ok(None),
        Err(e) => Err(Error::new(ErrorKind::Unavailable, e.to_string()).context(place)),
    }
}

#[cfg(test)]
mod tests;
