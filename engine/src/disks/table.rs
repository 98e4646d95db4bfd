//! All disks of the database. They come and go while it runs.

use super::{
    disk::Disk,
    link::{Link, Opening},
    store::Watched,
};
use crate::limits;
use ebb_storage::{
    Error, Result,
    disk::{Connect, DiskDef, DiskKind, Space},
    ids::{DatabaseId, DiskId, Generation, PartId, StreamId},
    part::key,
};
use futures::StreamExt;
use object_store::{ObjectStore, path::Path};
use parking_lot::RwLock;
use std::sync::Arc;

pub struct Disks {
    pub database: DatabaseId,
    pub(crate) opening: Opening,
    pub(crate) connect: Arc<dyn Connect>,
    /// Rising by id.
    disks: RwLock<Arc<[Disk]>>,
    /// One statement on disks and policies at a time.
    pub(super) defining: tokio::sync::Mutex<()>,
}

impl Disks {
    pub(crate) fn new(opening: Opening, connect: Arc<dyn Connect>, disks: Vec<Disk>) -> Self {
        let database = opening.database.clone();
        Self { database, opening, connect, disks: RwLock::new(disks.into()), defining: tokio::sync::Mutex::default() }
    }

    pub fn all(&self) -> Arc<[Disk]> {
        self.disks.read().clone()
    }

    /// The disk, there or not.
    pub fn known(&self, id: DiskId) -> Option<Disk> {
        self.disks.read().iter().find(|d| d.id == id).cloned()
    }

    /// # Errors
    /// `Unavailable` where there is no such disk, or it is known not to be there.
    pub fn disk(&self, id: DiskId) -> Result<Disk> {
        let disk = self.known(id).ok_or_else(|| unknown(id))?;
        match disk.away() {
            Some(why) => Err(why),
            None => Ok(disk),
        }
    }

    /// The disk, or one that answers every call with what is wrong.
    pub fn disk_or_away(&self, id: DiskId) -> Disk {
        self.known(id).unwrap_or_else(|| Disk::new(id, &format!("disk {id}"), self.failing(id, unknown(id))))
    }

    /// A store that answers everything with an error.
    pub(crate) fn failing(&self, id: DiskId, e: Error) -> Arc<dyn ObjectStore> {
        let kind = DiskKind::Local { path: Default::default() };
        let def = Arc::new(DiskDef { id, name: format!("disk {id}"), kind, capacity_bytes: None, max_usage_pct: 100 });
        Arc::new(Watched(Arc::new(Link::new(def, Arc::new(Never(e)), self.opening.clone()))))
    }

    pub(crate) fn attach(&self, def: Arc<DiskDef>) -> Disk {
        let disk = Disk::attach(def, self.connect.clone(), self.opening.clone());
        let mut disks = self.disks.write();
        let mut all: Vec<Disk> = disks.iter().filter(|d| d.id != disk.id).cloned().collect();
        all.push(disk.clone());
        all.sort_by_key(|d| d.id);
        *disks = all.into();
        disk
    }

    pub(crate) fn detach(&self, id: DiskId) {
        let mut disks = self.disks.write();
        *disks = disks.iter().filter(|d| d.id != id).cloned().collect();
    }

    /// Looks at those that `which` says; true where one is there.
    pub(super) async fn look(&self, which: impl Fn(&Disk) -> bool) -> bool {
        let chosen: Vec<Disk> = self.all().iter().filter(|d| which(d)).cloned().collect();
        let looks = futures::stream::iter(chosen).map(|disk| async move { disk.check().await.is_ok() });
        looks.buffer_unordered(limits::DISKS_AT_ONCE).fold(false, |any, there| std::future::ready(any || there)).await
    }

    /// Looks whether disks that were away are back; true where one is.
    pub async fn look_for_the_lost(&self) -> bool {
        self.look(|disk| disk.away().is_some()).await
    }

    /// Counts an object that was placed on a disk.
    pub fn placed(&self, disk: DiskId, bytes: u64) {
        self.space(disk).inspect(|s| s.add_placed(bytes));
    }

    /// Counts an object that was deleted from a disk.
    pub fn deleted(&self, disk: DiskId, bytes: u64) {
        self.space(disk).inspect(|s| s.remove_placed(bytes));
    }

    fn space(&self, disk: DiskId) -> Option<Arc<Space>> {
        self.known(disk)?.space
    }

    pub fn key(&self, stream: StreamId, part: PartId, generation: Generation) -> Path {
        key::part(&self.database, stream, part, generation)
    }

    /// Where an object lies, as people write it.
    pub fn address(&self, disk: DiskId, key: &Path) -> String {
        self.known(disk).and_then(|d| d.def).map_or_else(|| key.to_string(), |def| def.address(key.as_ref()))
    }
}

fn unknown(id: DiskId) -> Error {
    Error::unavailable(format!("disk {id} is not attached"))
}

/// Leads nowhere.
struct Never(Error);

impl Connect for Never {
    fn connect(&self, _: &DiskDef, _: bool) -> Result<Arc<dyn ObjectStore>> {
        Err(self.0.clone())
    }
}
