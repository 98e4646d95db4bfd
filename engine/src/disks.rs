//! Where parts lie: the stores behind disk ids.

use ebb_storage::{
    Error, Result,
    ids::{DatabaseId, DiskId, Generation, PartId, StreamId},
    part::key,
};
use object_store::{ObjectStore, path::Path};
use std::sync::Arc;

#[derive(Clone)]
pub struct Disk {
    pub id: DiskId,
    pub name: Arc<str>,
    pub store: Arc<dyn ObjectStore>,
}

/// All disks of the database.
#[derive(Clone)]
pub struct Disks {
    pub database: DatabaseId,
    disks: Arc<[Disk]>,
}

impl Disks {
    pub fn new(database: DatabaseId, disks: Vec<Disk>) -> Self {
        Self { database, disks: disks.into() }
    }

    pub fn all(&self) -> &[Disk] {
        &self.disks
    }

    /// # Errors
    /// `Unavailable` where the disk is not attached.
    pub fn disk(&self, id: DiskId) -> Result<&Disk> {
        let found = self.disks.iter().find(|d| d.id == id);
        found.ok_or_else(|| Error::unavailable(format!("disk {id} is not attached")))
    }

    /// The disk, or one that answers every call with "not attached".
    pub fn disk_or_away(&self, id: DiskId) -> Disk {
        let away = || Disk { id, name: format!("disk {id}").into(), store: Arc::new(object_store::memory::InMemory::new()) };
        self.disk(id).cloned().unwrap_or_else(|_| away())
    }

    pub fn key(&self, stream: StreamId, part: PartId, generation: Generation) -> Path {
        key::part(&self.database, stream, part, generation)
    }
}
