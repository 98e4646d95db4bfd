//! Disks and a log folder in memory that lose power together, and what is left of them.
//!
//! Objects are durable when the call returns (as with `DurableFs`); bytes of log files only when they were synced.

use super::power::{Power, off};
use crate::log::file::{LogDir, LogFile};
use async_trait::async_trait;
use bytes::Bytes;
use futures::{StreamExt, stream::BoxStream};
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore, PutMultipartOptions, PutOptions, PutPayload,
    PutResult, Result, UploadPart, memory::InMemory, path::Path,
};
use parking_lot::Mutex;
use std::{collections::BTreeMap, fmt, io, ops::Range, sync::Arc};

/// What becomes of bytes of the log that were written but not synced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unsynced {
    Lost,
    /// The first half of what was added arrives.
    Torn,
    Kept,
}

/// One machine's storage.
#[derive(Debug, Clone, Default)]
pub struct CrashDisk {
    pub power: Power,
    stores: Arc<Mutex<BTreeMap<String, Arc<InMemory>>>>,
    files: Arc<Mutex<BTreeMap<String, Content>>>,
}

#[derive(Debug, Clone, Default)]
struct Content {
    durable: Vec<u8>,
    current: Vec<u8>,
}

impl CrashDisk {
    pub fn store(&self, disk: &str) -> Arc<dyn ObjectStore> {
        let inner = self.stores.lock().entry(disk.into()).or_default().clone();
        Arc::new(CrashStore { inner, power: self.power.clone() })
    }

    pub fn log(&self) -> Arc<dyn LogDir> {
        Arc::new(self.clone())
    }

    /// Turns this machine off and returns one with what is durable.
    pub fn reopen(&self, unsynced: Unsynced) -> Self {
        self.power.turn_off();
        let stores = self.stores.lock().iter().map(|(k, s)| (k.clone(), Arc::new(s.fork()))).collect();
        let survive = |c: &Content| match unsynced {
            Unsynced::Lost => c.durable.clone(),
            Unsynced::Kept => c.current.clone(),
            Unsynced::Torn => {
                let added = c.current.len().saturating_sub(c.durable.len());
                c.current[..c.current.len().min(c.durable.len() + added / 2)].to_vec()
            }
        };
        let held = self.files.lock();
        let files = held.iter().map(|(k, c)| (k.clone(), survive(c)));
        let files = files.map(|(k, b)| (k, Content { durable: b.clone(), current: b })).collect();
        Self { power: Power::default(), stores: Arc::new(Mutex::new(stores)), files: Arc::new(Mutex::new(files)) }
    }

    /// The bytes of a log file, to be damaged.
    pub fn edit_file(&self, name: &str, edit: impl FnOnce(&mut Vec<u8>)) {
        let mut files = self.files.lock();
        let content = files.entry(name.into()).or_default();
        edit(&mut content.current);
        content.durable = content.current.clone();
    }

    fn change<T>(&self, apply: impl FnOnce(&mut BTreeMap<String, Content>) -> io::Result<T>) -> io::Result<T> {
        let acknowledge = self.power.changing()?;
        let done = apply(&mut self.files.lock())?;
        if acknowledge { Ok(done) } else { Err(off()) }
    }
}

impl LogDir for CrashDisk {
    fn create(&self, name: &str) -> io::Result<Box<dyn LogFile>> {
        self.change(|files| {
            if files.contains_key(name) {
                return Err(io::ErrorKind::AlreadyExists.into());
            }
            files.insert(name.into(), Content::default());
            Ok(Box::new(CrashFile { disk: self.clone(), name: name.into() }) as Box<dyn LogFile>)
        })
    }
    fn open(&self, name: &str) -> io::Result<Box<dyn LogFile>> {
        self.power.reading()?;
        if !self.files.lock().contains_key(name) {
            return Err(io::ErrorKind::NotFound.into());
        }
        Ok(Box::new(CrashFile { disk: self.clone(), name: name.into() }))
    }
    fn list(&self) -> io::Result<Vec<String>> {
        self.power.reading()?;
        Ok(self.files.lock().keys().cloned().collect())
    }
    fn remove(&self, name: &str) -> io::Result<()> {
        self.change(|files| files.remove(name).map(drop).ok_or_else(|| io::ErrorKind::NotFound.into()))
    }
}

#[derive(Debug)]
struct CrashFile {
    disk: CrashDisk,
    name: String,
}

impl CrashFile {
    fn change(&self, apply: impl FnOnce(&mut Content)) -> io::Result<()> {
        self.disk.change(|files| files.get_mut(&self.name).map(apply).ok_or_else(|| io::ErrorKind::NotFound.into()))
    }
}

impl LogFile for CrashFile {
    fn read_all(&self) -> io::Result<Vec<u8>> {
        self.disk.power.reading()?;
        self.disk.files.lock().get(&self.name).map(|c| c.current.clone()).ok_or_else(|| io::ErrorKind::NotFound.into())
    }
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let offset = offset as usize;
        self.change(|c| {
            let end = offset + bytes.len();
            if c.current.len() < end {
                c.current.resize(end, 0);
            }
            c.current[offset..end].copy_from_slice(bytes);
        })
    }
    fn truncate(&self, length: u64) -> io::Result<()> {
        self.change(|c| c.current.resize(length as usize, 0))
    }
    fn sync(&self) -> io::Result<()> {
        self.change(|c| c.durable = c.current.clone())
    }
}

struct CrashStore {
    inner: Arc<InMemory>,
    power: Power,
}

fn generic(e: io::Error) -> object_store::Error {
    object_store::Error::Generic { store: "CrashStore", source: Box::new(e) }
}

impl CrashStore {
    async fn change<T>(power: &Power, apply: impl Future<Output = Result<T>>) -> Result<T> {
        let acknowledge = power.changing().map_err(generic)?;
        let done = apply.await?;
        if acknowledge { Ok(done) } else { Err(generic(off())) }
    }
}

impl fmt::Display for CrashStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CrashStore")
    }
}

impl fmt::Debug for CrashStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CrashStore")
    }
}

#[async_trait]
impl ObjectStore for CrashStore {
    async fn put_opts(&self, location: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        Self::change(&self.power, self.inner.put_opts(location, payload, options)).await
    }
    async fn put_multipart_opts(&self, location: &Path, options: PutMultipartOptions) -> Result<Box<dyn MultipartUpload>> {
        self.power.reading().map_err(generic)?;
        let inner = self.inner.put_multipart_opts(location, options).await?;
        Ok(Box::new(CrashUpload { inner, power: self.power.clone() }))
    }
    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        self.power.reading().map_err(generic)?;
        self.inner.get_opts(location, options).await
    }
    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        self.power.reading().map_err(generic)?;
        self.inner.get_ranges(location, ranges).await
    }
    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        let (inner, power) = (self.inner.clone(), self.power.clone());
        let delete = move |location: Result<Path>| {
            let (inner, power) = (inner.clone(), power.clone());
            async move {
                let location = location?;
                Self::change(&power, object_store::ObjectStoreExt::delete(&*inner, &location)).await?;
                Ok(location)
            }
        };
        locations.then(delete).boxed()
    }
    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        match self.power.reading() {
            Ok(()) => self.inner.list(prefix),
            Err(e) => futures::stream::iter([Err(generic(e))]).boxed(),
        }
    }
    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.power.reading().map_err(generic)?;
        self.inner.list_with_delimiter(prefix).await
    }
    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        Self::change(&self.power, self.inner.copy_opts(from, to, options)).await
    }
}

#[derive(Debug)]
struct CrashUpload {
    inner: Box<dyn MultipartUpload>,
    power: Power,
}

/// Only completion changes what anyone can see.
#[async_trait]
impl MultipartUpload for CrashUpload {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        self.inner.put_part(data)
    }
    async fn complete(&mut self) -> Result<PutResult> {
        CrashStore::change(&self.power, self.inner.complete()).await
    }
    async fn abort(&mut self) -> Result<()> {
        self.inner.abort().await
    }
}
