//! A log folder whose next writes, syncs or truncations fail, once each.

use crate::log::file::{LogDir, LogFile};
use parking_lot::Mutex;
use std::{collections::VecDeque, io, sync::Arc};

#[derive(Debug, Default)]
struct Faults {
    write: VecDeque<io::ErrorKind>,
    sync: VecDeque<io::ErrorKind>,
    truncate: VecDeque<io::ErrorKind>,
}

#[derive(Debug, Clone)]
pub struct FaultLog {
    inner: Arc<dyn LogDir>,
    faults: Arc<Mutex<Faults>>,
}

impl FaultLog {
    pub fn over(inner: Arc<dyn LogDir>) -> Self {
        Self { inner, faults: Arc::default() }
    }
    /// The next write writes half of its bytes, then fails so.
    pub fn fail_write(&self, kind: io::ErrorKind) {
        self.faults.lock().write.push_back(kind);
    }
    pub fn fail_sync(&self, kind: io::ErrorKind) {
        self.faults.lock().sync.push_back(kind);
    }
    pub fn fail_truncate(&self, kind: io::ErrorKind) {
        self.faults.lock().truncate.push_back(kind);
    }
    fn wrap(&self, inner: Box<dyn LogFile>) -> Box<dyn LogFile> {
        Box::new(FaultFile { inner, faults: self.faults.clone() })
    }
}

impl LogDir for FaultLog {
    fn create(&self, name: &str) -> io::Result<Box<dyn LogFile>> {
        self.inner.create(name).map(|f| self.wrap(f))
    }
    fn open(&self, name: &str) -> io::Result<Box<dyn LogFile>> {
        self.inner.open(name).map(|f| self.wrap(f))
    }
    fn list(&self) -> io::Result<Vec<String>> {
        self.inner.list()
    }
    fn remove(&self, name: &str) -> io::Result<()> {
        self.inner.remove(name)
    }
}

#[derive(Debug)]
struct FaultFile {
    inner: Box<dyn LogFile>,
    faults: Arc<Mutex<Faults>>,
}

impl LogFile for FaultFile {
    fn read_all(&self) -> io::Result<Vec<u8>> {
        self.inner.read_all()
    }
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let fault = self.faults.lock().write.pop_front();
        if let Some(kind) = fault {
            self.inner.write_at(&bytes[..bytes.len() / 2], offset)?;
            return Err(kind.into());
        }
        self.inner.write_at(bytes, offset)
    }
    fn truncate(&self, length: u64) -> io::Result<()> {
        let fault = self.faults.lock().truncate.pop_front();
        fault.map_or_else(|| self.inner.truncate(length), |kind| Err(kind.into()))
    }
    fn sync(&self) -> io::Result<()> {
        let fault = self.faults.lock().sync.pop_front();
        fault.map_or_else(|| self.inner.sync(), |kind| Err(kind.into()))
    }
}
