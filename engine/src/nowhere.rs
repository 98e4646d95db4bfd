//! Places that leave nothing behind: a log that keeps nothing, since what a preview or a simulation appends is never read again, and a
//! database whose disks are memory, whatever they are said to be.

use crate::{Disk, Places};
use ebb_storage::{
    Result,
    disk::{Connect, DiskDef, policy},
    ids::{DatabaseId, DiskId},
    log::file::{LogDir, LogFile},
};
use object_store::{ObjectStore, memory::InMemory};
use parking_lot::Mutex;
use std::{collections::HashMap, io, sync::Arc};

#[derive(Debug, Clone, Copy)]
pub struct Nowhere;

impl LogDir for Nowhere {
    fn create(&self, _: &str) -> io::Result<Box<dyn LogFile>> {
        Ok(Box::new(*self))
    }
    fn open(&self, _: &str) -> io::Result<Box<dyn LogFile>> {
        Ok(Box::new(*self))
    }
    fn list(&self) -> io::Result<Vec<String>> {
        Ok(Vec::new())
    }
    fn remove(&self, _: &str) -> io::Result<()> {
        Ok(())
    }
}

impl LogFile for Nowhere {
    fn read_all(&self) -> io::Result<Vec<u8>> {
        Ok(Vec::new())
    }
    fn write_at(&self, _: &[u8], _: u64) -> io::Result<()> {
        Ok(())
    }
    fn truncate(&self, _: u64) -> io::Result<()> {
        Ok(())
    }
    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}

/// Disks of the manifest, each a memory of its own: neither folder nor server is asked.
#[derive(Default)]
struct Memories(Mutex<HashMap<DiskId, Arc<InMemory>>>);

impl Connect for Memories {
    fn connect(&self, def: &DiskDef, _: bool) -> Result<Arc<dyn ObjectStore>> {
        Ok(self.0.lock().entry(def.id).or_default().clone())
    }
}

impl Places {
    /// A database in memory, gone with its engine. Streams, disks and policies can be defined; rows are not kept in its log.
    pub fn nowhere() -> Self {
        Self {
            database: DatabaseId::random(),
            meta: Arc::new(InMemory::new()),
            log: Arc::new(Nowhere),
            disks: vec![Disk::new(DiskId::DEFAULT, policy::DEFAULT, Arc::new(InMemory::new()))],
            connect: Arc::new(Memories::default()),
            dir: None,
        }
    }
}
