//! One disk, as whoever reads and writes parts has it. Cheap to clone.

use super::link::{Lease, Link, Opening};
use crate::disks::store::Watched;
use ebb_storage::{
    Error, Result,
    disk::{Connect, DiskDef, Reservation, Space, epoch},
    ids::DiskId,
    part::store,
    vacuum::sweep,
};
use object_store::ObjectStore;
use std::sync::Arc;

#[derive(Clone)]
pub struct Disk {
    pub id: DiskId,
    pub name: Arc<str>,
    pub store: Arc<dyn ObjectStore>,
    /// Room on it, and who reserved how much; `None` where nobody can tell.
    pub space: Option<Arc<Space>>,
    pub def: Option<Arc<DiskDef>>,
    /// `None` for the data directory: while the database is open, it is there.
    pub(super) link: Option<Arc<Link>>,
}

/// A row of system.disks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiskInfo {
    pub name: String,
    /// local, s3
    pub kind: &'static str,
    pub path: String,
    /// `None` where it is not limited, or not known.
    pub total: Option<u64>,
    pub free: Option<u64>,
    pub unreserved: Option<u64>,
    pub max_usage_pct: u8,
    /// Why it cannot be used.
    pub unavailable: Option<String>,
}

impl Disk {
    /// A disk that is always there, and always has room.
    pub fn new(id: DiskId, name: &str, store: Arc<dyn ObjectStore>) -> Self {
        Self { id, name: name.into(), store, space: None, def: None, link: None }
    }

    pub fn with_space(self, space: Arc<Space>) -> Self {
        Self { space: Some(space), ..self }
    }

    pub fn with_def(self, def: DiskDef) -> Self {
        Self { def: Some(Arc::new(def)), ..self }
    }

    /// A disk of the manifest; whether it is there shows when it is used or checked.
    pub(crate) fn attach(def: Arc<DiskDef>, connect: Arc<dyn Connect>, opening: Opening) -> Self {
        let link = Arc::new(Link::new(def.clone(), connect, opening));
        Self {
            id: def.id,
            name: def.name.as_str().into(),
            store: Arc::new(Watched(link.clone())),
            space: Some(def.space()),
            def: Some(def),
            link: Some(link),
        }
    }

    /// Bytes that a file of about `expected` is handed to it at a time.
    pub fn piece_bytes(&self, expected: u64) -> usize {
        store::piece_bytes(self.def.as_ref().is_some_and(|d| d.is_remote()), expected)
    }

    /// Looks whether it is there.
    ///
    /// # Errors
    /// `Unavailable` or `Fenced`, naming the disk and what is wrong.
    pub async fn check(&self) -> Result<()> {
        match &self.link {
            Some(link) => link.check().await.map(|_| ()),
            None => Ok(()),
        }
    }

    /// What is known to be wrong with it.
    pub fn away(&self) -> Option<Error> {
        self.link.as_ref()?.away()
    }

    /// Deletes what earlier openings left beside the parts: their numbers, and objects that showed whether the disk can be written.
    pub(crate) async fn tidy(&self, opening: &Opening) -> Result<()> {
        sweep::delete_probes(&opening.database, &self.store, &opening.nonce).await?;
        match self.def.as_ref().is_some_and(|d| d.is_remote()) {
            true => epoch::forget_older(&self.store, &opening.database, opening.epoch).await,
            false => Ok(()),
        }
    }

    /// What a crash left there was not swept yet.
    pub(crate) fn is_unswept(&self) -> bool {
        self.link.as_ref().is_some_and(|l| !l.swept())
    }

    pub(crate) fn set_swept(&self) {
        self.link.as_ref().inspect(|l| l.set_swept());
    }

    /// Keeps the disk from being dropped.
    pub fn lease(&self) -> Result<Option<Lease>> {
        self.link.as_ref().map(Link::lease).transpose()
    }

    /// # Errors
    /// `Full`, naming the disk, where it has not that much left after what others reserved.
    pub fn reserve(&self, bytes: u64) -> Result<Option<Reservation>> {
        self.space.as_ref().map(|s| s.reserve(bytes)).transpose()
    }

    pub fn info(&self) -> DiskInfo {
        let known = |n: u64| (n != u64::MAX).then_some(n);
        let room = self.space.as_ref().and_then(|s| s.total_and_free().ok());
        let reserved = self.space.as_ref().map_or(0, |s| s.reserved_bytes());
        let remote = self.def.as_ref().is_some_and(|d| d.is_remote());
        DiskInfo {
            name: self.name.to_string(),
            kind: if remote { "s3" } else { "local" },
            path: self.def.as_ref().map_or_else(String::new, |d| d.address("").trim_end_matches('/').to_owned()),
            total: room.and_then(|(total, _)| known(total)),
            free: room.and_then(|(_, free)| known(free)),
            unreserved: room.and_then(|(_, free)| known(free).map(|f| f.saturating_sub(reserved))),
            max_usage_pct: self.def.as_ref().map_or(100, |d| d.max_usage_pct),
            unavailable: self.away().map(|e| e.to_string()),
        }
    }
}
