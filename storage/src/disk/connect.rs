//! From a disk's definition to the store behind it. The one place that tells local from remote; tests bring their own.

use super::{
    device::{DiskDef, DiskKind},
    durable_fs::DurableFs,
    s3,
};
use crate::{Error, Result};
use object_store::ObjectStore;
use std::sync::Arc;

pub trait Connect: Send + Sync {
    /// The store of `def`; `make` its folder where that is missing. Says nothing of whether anybody answers there.
    ///
    /// # Errors
    /// `Unavailable` where a folder cannot be opened, `Invalid` for a definition that leads nowhere.
    fn connect(&self, def: &DiskDef, make: bool) -> Result<Arc<dyn ObjectStore>>;
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
}
