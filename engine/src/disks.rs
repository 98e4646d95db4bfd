//! Where parts lie: the stores behind disk ids.

use ebb_storage::{
    Error, Result,
    disk::{Reservation, Space},
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
    /// Room on it, and who reserved how much; `None` where nobody can tell.
    pub space: Option<Arc<Space>>,
}

impl Disk {
    /// A disk that always has room.
    pub fn new(id: DiskId, name: &str, store: Arc<dyn ObjectStore>) -> Self {
        Self { id, name: name.into(), store, space: None }
    }

    pub fn with_space(self, space: Arc<Space>) -> Self {
        Self { space: Some(space), ..self }
    }

    /// # Errors
    /// `Full`, naming the disk, where it has not that much left after what others reserved.
    pub fn reserve(&self, bytes: u64) -> Result<Option<Reservation>> {
        self.space.as_ref().map(|s| s.reserve(bytes)).transpose()
    }
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
        let away = || Disk::new(id, &format!("disk {id}"), Arc::new(object_store::memory::InMemory::new()));
        self.disk(id).cloned().unwrap_or_else(|_| away())
    }

    /// Counts an object that was placed on a disk.
    pub fn placed(&self, disk: DiskId, bytes: u64) {
        self.space(disk).inspect(|s| s.add_placed(bytes));
    }

    /// Counts an object that was deleted from a disk.
    pub fn deleted(&self, disk: DiskId, bytes: u64) {
        self.space(disk).inspect(|s| s.remove_placed(bytes));
    }

    fn space(&self, disk: DiskId) -> Option<&Arc<Space>> {
        self.disk(disk).ok()?.space.as_ref()
    }

    pub fn key(&self, stream: StreamId, part: PartId, generation: Generation) -> Path {
        key::part(&self.database, stream, part, generation)
    }
}
