//! From a disk's definition to the store behind it. The one place that tells local from remote; tests bring their own.

use super::{
    device::{DiskDef, DiskKind},
    durable_fs::{DurableFs, LeftOver},
    s3,
};
use crate::{Error, Result};
use object_store::{ObjectStore, path::Path};
use std::sync::Arc;

pub trait Connect: Send + Sync {
    /// The store of `def`; `make` its folder where that is missing. Says nothing of whether anybody answers there.
    ///
    /// # Errors
    /// `Unavailable` where a folder cannot be opened, `Invalid` for a definition that leads nowhere.
    fn connect(&self, def: &DiskDef, make: bool) -> Result<Arc<dyn ObjectStore>>;

    /// Temporary files below `prefix`, which no listing shows; for a thread that may block.
    ///
    /// # Errors
    /// `Unavailable` where a folder cannot be read.
    fn left_over(&self, _def: &DiskDef, _prefix: &Path) -> Result<Vec<LeftOver>> {
        Ok(Vec::new())
    }
}

/// Folders and S3.
#[derive(Debug, Clone, Copy, Default)]
pub struct Real;

impl Connect for Real {
    fn connect(&self, def: &DiskDef, make: bool) -> Result<Arc<dyn ObjectStore>> {
        match &def.kind {
            DiskKind::Local { path } => {
                let fs = if make { DurableFs::create(path) } else { DurableFs::open(path) };
                fs.map(|fs| Arc::new(fs) as _).map_err(|e| Error::unavailable(format!("{}: {e}", def.place())))
            }
            DiskKind::S3 { .. } => s3::connect(&def.kind).map_err(|e| e.context(def.place())),
        }
    }

    fn left_over(&self, def: &DiskDef, prefix: &Path) -> Result<Vec<LeftOver>> {
        match &def.kind {
            DiskKind::Local { path } => {
                let found = DurableFs::open(path).and_then(|fs| fs.staged(prefix));
                found.map_err(|e| Error::unavailable(format!("{}: {e}", def.place())))
            }
            DiskKind::S3 { .. } => Ok(Vec::new()),
        }
    }
}
