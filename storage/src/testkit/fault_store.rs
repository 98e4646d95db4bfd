//! An object store that fails, fails after having done it, is full, or stalls, by operation, path and countdown.

use crate::disk::durable_fs::NotSynced;
use async_trait::async_trait;
use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream::BoxStream};
use object_store::{
    CopyOptions, GetOptions, GetResult, GetResultPayload, ListResult, MultipartUpload, ObjectMeta, ObjectStore, ObjectStoreExt,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result, UploadPart, path::Path,
};
use parking_lot::Mutex;
use std::{
    fmt, io,
    ops::Range,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
};
use tokio::sync::watch;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op {
    Put,
    /// Completing an upload.
    Complete,
    Get,
    Delete,
    List,
    Copy,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    Fail,
    AppliedNotAcknowledged,
    /// Done, and what it wrote may not survive a loss of power: a local folder whose sync failed.
    AppliedNotSynced,
    DiskFull,
    /// Waits for [`FaultStore::release`], then goes on.
    Stall,
}

#[derive(Debug)]
struct Injection {
    op: Op,
    path_contains: String,
    skip: u64,
    times: u64,
    fault: Fault,
}

#[derive(Debug, Clone)]
pub struct FaultStore {
    inner: Arc<dyn ObjectStore>,
    faults: Arc<Faults>,
}

#[derive(Debug)]
struct Faults {
    injections: Mutex<Vec<Injection>>,
    body_bytes: AtomicU64,
    uploads: AtomicUsize,
    released: watch::Sender<u64>,
    stalled: watch::Sender<u64>,
}

impl FaultStore {
    pub fn over(inner: Arc<dyn ObjectStore>) -> Self {
        let faults = Faults {
            injections: Mutex::default(),
            body_bytes: AtomicU64::new(u64::MAX),
            uploads: AtomicUsize::new(0),
            released: watch::Sender::new(0),
            stalled: watch::Sender::new(0),
        };
        Self { inner, faults: Arc::new(faults) }
    }
    /// Of the calls of `op` on paths that contain `path`, lets `skip` pass, then makes `times` fail.
    pub fn inject(&self, op: Op, path: &str, skip: u64, times: u64, fault: Fault) {
        self.faults.injections.lock().push(Injection { op, path_contains: path.into(), skip, times, fault });
    }
    /// Answers end with an error after so many bytes, as they do where a request takes too long.
    pub fn cut_bodies_at(&self, bytes: u64) {
        self.faults.body_bytes.store(bytes, Ordering::Relaxed);
    }
    /// Uploads that were begun and neither completed nor aborted: a server keeps their pieces for ever.
    pub fn open_uploads(&self) -> usize {
        self.faults.uploads.load(Ordering::Relaxed)
    }
    pub fn clear(&self) {
        self.faults.injections.lock().clear();
    }
    /// Returns once a call has stalled.
    pub async fn stalled(&self) {
        // The sender lives in self.
        let _ = self.faults.stalled.subscribe().wait_for(|n| *n > 0).await;
    }
    /// Lets all stalled calls go on.
    pub fn release(&self) {
        self.faults.released.send_modify(|n| *n += 1);
    }
}

fn failure(what: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> object_store::Error {
    object_store::Error::Generic { store: "FaultStore", source: what.into() }
}

impl Faults {
    fn due(&self, op: Op, path: &str) -> Option<Fault> {
        let mut all = self.injections.lock();
        let i = all.iter_mut().find(|i| i.op == op && i.times > 0 && path.contains(&i.path_contains))?;
        if i.skip > 0 {
            i.skip -= 1;
            return None;
        }
        i.times -= 1;
        Some(i.fault)
    }

    async fn run<T>(&self, op: Op, path: &str, call: impl Future<Output = Result<T>>) -> Result<T> {
        // Before the look, so that a release right after it is not missed.
        let mut released = self.released.subscribe();
        match self.due(op, path) {
            None => call.await,
            Some(Fault::Fail) => Err(failure("an injected fault")),
            Some(Fault::DiskFull) => Err(failure(io::Error::from(io::ErrorKind::StorageFull))),
            Some(Fault::AppliedNotAcknowledged) => {
                call.await?;
                Err(failure("an injected fault after the call"))
            }
            Some(Fault::AppliedNotSynced) => {
                call.await?;
                Err(failure(NotSynced("an injected fault".to_owned())))
            }
            Some(Fault::Stall) => {
                self.stalled.send_modify(|n| *n += 1);
                // Its sender is in `self`.
                let _ = released.changed().await;
                call.await
            }
        }
    }
}

impl fmt::Display for FaultStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FaultStore({})", self.inner)
    }
}

#[async_trait]
impl ObjectStore for FaultStore {
    async fn put_opts(&self, location: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        self.faults.run(Op::Put, location.as_ref(), self.inner.put_opts(location, payload, options)).await
    }
    async fn put_multipart_opts(&self, location: &Path, options: PutMultipartOptions) -> Result<Box<dyn MultipartUpload>> {
        let inner = self.inner.put_multipart_opts(location, options).await?;
        self.faults.uploads.fetch_add(1, Ordering::Relaxed);
        Ok(Box::new(FaultUpload { inner, faults: self.faults.clone(), location: location.clone(), ended: false }))
    }
    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        let mut found = self.faults.run(Op::Get, location.as_ref(), self.inner.get_opts(location, options)).await?;
        let limit = self.faults.body_bytes.load(Ordering::Relaxed);
        if let (GetResultPayload::Stream(body), true) = (&mut found.payload, found.range.end - found.range.start > limit) {
            let whole = std::mem::replace(body, futures::stream::empty().boxed());
            let first = whole.map_ok(move |b| b.slice(..b.len().min(limit as usize))).take(1);
            *body = first.chain(futures::stream::iter([Err(failure("the answer took too long"))])).boxed();
        }
        Ok(found)
    }
    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        self.faults.run(Op::Get, location.as_ref(), self.inner.get_ranges(location, ranges)).await
    }
    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        let this = self.clone();
        let delete = move |location: Result<Path>| {
            let this = this.clone();
            async move {
                let location = location?;
                this.faults.run(Op::Delete, location.as_ref(), this.inner.delete(&location)).await?;
                Ok(location)
            }
        };
        locations.then(delete).boxed()
    }
    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        let (this, prefix) = (self.clone(), prefix.cloned());
        let listed = async move {
            let path = prefix.as_ref().map(ToString::to_string).unwrap_or_default();
            match this.faults.run(Op::List, &path, async { Ok(()) }).await {
                Ok(()) => this.inner.list(prefix.as_ref()),
                Err(e) => futures::stream::iter([Err(e)]).boxed(),
            }
        };
        futures::stream::once(listed).flatten().boxed()
    }
    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        let path = prefix.map(ToString::to_string).unwrap_or_default();
        self.faults.run(Op::List, &path, self.inner.list_with_delimiter(prefix)).await
    }
    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.faults.run(Op::Copy, to.as_ref(), self.inner.copy_opts(from, to, options)).await
    }
}

#[derive(Debug)]
struct FaultUpload {
    inner: Box<dyn MultipartUpload>,
    faults: Arc<Faults>,
    location: Path,
    ended: bool,
}

impl FaultUpload {
    fn end(&mut self) {
        if !std::mem::replace(&mut self.ended, true) {
            self.faults.uploads.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

#[async_trait]
impl MultipartUpload for FaultUpload {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        self.inner.put_part(data)
    }
    async fn complete(&mut self) -> Result<PutResult> {
        let completed = self.faults.run(Op::Complete, self.location.as_ref(), self.inner.complete()).await;
        if completed.is_ok() {
            self.end();
        }
        completed
    }
    async fn abort(&mut self) -> Result<()> {
        self.end();
        self.inner.abort().await
    }
}
