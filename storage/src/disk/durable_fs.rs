//! A local folder as an object store whose writes survive power loss.
//!
//! `object_store`'s own `LocalFileSystem` never syncs, so it only reads and lists here. A write goes to `<name>#<n>` beside its
//! destination (a name that listings skip), is synced, linked or renamed into place, and the directory is synced before the call
//! returns; so are the parents of directories made on the way. What a crash leaves is such a temporary file, which
//! [`DurableFs::sweep_staged`] removes.
//!
//! Multipart uploads never overwrite (I2): completing one whose object exists is `AlreadyExists`.
//! This file must never answer Ok before the bytes and their name are durable. A name that was given and could not be synced is told
//! apart ([`NotSynced`]): it can be read back, and a later sync that succeeds does not tell that it is durable.

use async_trait::async_trait;
use bytes::Bytes;
use futures::{FutureExt, StreamExt, TryFutureExt, stream::BoxStream};
use object_store::{
    CopyMode, CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore, PutMode, PutMultipartOptions,
    PutOptions, PutPayload, PutResult, Result, local::LocalFileSystem, path::Path,
};
use parking_lot::Mutex;
use std::{
    collections::HashSet,
    fmt,
    fs::{self, File, OpenOptions},
    io,
    ops::Range,
    os::unix::fs::FileExt,
    path::{Path as FsPath, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};
use tokio::task::JoinHandle;

/// Deletions in flight of one `delete_stream`.
const DELETES_AT_ONCE: usize = 8;

/// How many names of temporary files are tried before giving up.
const STAGED_NAMES: u32 = 10_000;

#[derive(Debug, Clone)]
pub struct DurableFs {
    local: LocalFileSystem,
    dirs: Arc<Dirs>,
}

impl DurableFs {
    /// The folder `root`, made (durably, with its parents) if it is missing.
    pub fn create(root: &FsPath) -> io::Result<Self> {
        let root = std::path::absolute(root)?;
        make_durable(&root)?;
        Self::open(&root)
    }

    /// The folder `root`, which must exist.
    pub fn open(root: &FsPath) -> io::Result<Self> {
        let root = fs::canonicalize(root)?;
        let local = LocalFileSystem::new_with_prefix(&root).map_err(io::Error::from)?;
        let known = Mutex::new(HashSet::from([root.clone()]));
        Ok(Self { local, dirs: Arc::new(Dirs { root, known, doubtful: Mutex::default(), sync: sync_dir }) })
    }

    pub fn root(&self) -> &FsPath {
        &self.dirs.root
    }

    /// Removes the temporary files that a crash left below `prefix`. Only while nobody writes there. Returns how many went.
    pub fn sweep_staged(&self, prefix: &Path) -> io::Result<u64> {
        let left = self.staged(prefix)?;
        left.iter().try_for_each(LeftOver::remove)?;
        Ok(left.len() as u64)
    }

    /// The temporary files below `prefix`: of writes that are on their way, or that a crash left.
    pub fn staged(&self, prefix: &Path) -> io::Result<Vec<LeftOver>> {
        let mut todo: Vec<PathBuf> = vec![prefix.parts().fold(self.dirs.root.clone(), |dir, part| dir.join(part.as_ref()))];
        let mut found = Vec::new();
        while let Some(dir) = todo.pop() {
            let entries = match fs::read_dir(&dir) {
                Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
                entries => entries?,
            };
            for entry in entries {
                let entry = entry?;
                let kind = entry.file_type()?;
                if kind.is_dir() {
                    todo.push(entry.path());
                } else if let (true, Some(object)) = (kind.is_file(), self.staged_for(&entry.path())) {
                    found.push(LeftOver { file: entry.path(), object });
                }
            }
        }
        Ok(found)
    }

    /// The object that a file is to become; `None` where it is no temporary one.
    fn staged_for(&self, file: &FsPath) -> Option<Path> {
        let below = file.strip_prefix(&self.dirs.root).ok()?.to_str()?;
        let (object, n) = below.rsplit_once('#')?;
        let is_number = !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit());
        is_number.then(|| Path::from(object))
    }

    fn file_of(&self, location: &Path) -> Result<PathBuf> {
        self.local.path_to_filesystem(location)
    }
}

/// A temporary file and the object that it was to become.
#[derive(Debug, Clone, PartialEq)]
pub struct LeftOver {
    pub file: PathBuf,
    pub object: Path,
}

impl LeftOver {
    pub fn remove(&self) -> io::Result<()> {
        match fs::remove_file(&self.file) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed,
        }
    }
}

/// Directories whose entry in their parent is known to be durable.
#[derive(Debug)]
struct Dirs {
    root: PathBuf,
    known: Mutex<HashSet<PathBuf>>,
    /// Objects whose names were given and could not be synced.
    doubtful: Mutex<HashSet<PathBuf>>,
    /// [`sync_dir`], but for tests.
    sync: fn(&FsPath) -> io::Result<()>,
}

impl Dirs {
    /// Makes the name of `dest` durable, whoever gave it.
    fn sync_name(&self, dir: &FsPath, dest: &FsPath) -> io::Result<()> {
        let not_synced = |kind, why: String| Err(io::Error::new(kind, NotSynced(why)));
        if self.doubtful.lock().contains(dest) {
            return not_synced(io::ErrorKind::Other, "it could not be made durable before".to_owned());
        }
        let Err(e) = (self.sync)(dir) else { return Ok(()) };
        self.doubtful.lock().insert(dest.to_path_buf());
        let full = matches!(e.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded);
        not_synced(if full { e.kind() } else { io::ErrorKind::Other }, e.to_string())
    }

    /// Makes `dir` and its missing parents below the root. Also syncs the parents of directories that exist but were not made by
    /// this process: another one may have died between making and syncing.
    fn ensure(&self, dir: &FsPath) -> io::Result<()> {
        if self.known.lock().contains(dir) {
            return Ok(());
        }
        let parent = dir.parent().ok_or_else(|| io::Error::other("no directory above"))?;
        if !dir.starts_with(&self.root) {
            return Err(io::Error::other(format!("{} is outside {}", dir.display(), self.root.display())));
        }
        self.ensure(parent)?;
        make_dir(dir)?;
        sync_dir(parent)?;
        self.known.lock().insert(dir.to_path_buf());
        Ok(())
    }

    /// A new temporary file beside `dest`.
    fn stage(&self, dest: &FsPath) -> io::Result<Staged> {
        let dir = dest.parent().ok_or_else(|| io::Error::other("no directory above"))?;
        self.ensure(dir)?;
        for n in 1..=STAGED_NAMES {
            let mut path = dest.as_os_str().to_owned();
            path.push(format!("#{n}"));
            let path = PathBuf::from(path);
            match OpenOptions::new().read(true).write(true).create_new(true).open(&path) {
                Ok(file) => return Ok(Staged { file, temporary: Some(path), dest: dest.to_path_buf() }),
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
                Err(e) if e.kind() == io::ErrorKind::NotFound && n < STAGED_NAMES => {
                    // Someone removed the directory behind our back: make it again.
                    self.known.lock().retain(|known| !dir.starts_with(known) || *known == self.root);
                    self.ensure(dir)?;
                }
                Err(e) => return Err(e),
            }
        }
        Err(io::Error::new(io::ErrorKind::AlreadyExists, "too many temporary files beside it: remove those that end in '#' and digits"))
    }
}

fn make_dir(dir: &FsPath) -> io::Result<()> {
    match fs::create_dir(dir) {
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists && dir.is_dir() => Ok(()),
        made => made,
    }
}

/// Makes `dir` and its parents, syncing the parent of each that was missing.
pub fn make_durable(dir: &FsPath) -> io::Result<()> {
    if dir.is_dir() {
        return Ok(());
    }
    if let Some(parent) = dir.parent().filter(|p| !p.as_os_str().is_empty()) {
        make_durable(parent)?;
        make_dir(dir)?;
        sync_dir(parent)
    } else {
        make_dir(dir)
    }
}

/// Makes the names in `dir` durable.
pub fn sync_dir(dir: &FsPath) -> io::Result<()> {
    File::open(dir)?.sync_all()
}

/// A temporary file; removed on drop while it still has that name.
#[derive(Debug)]
struct Staged {
    file: File,
    temporary: Option<PathBuf>,
    dest: PathBuf,
}

impl Staged {
    /// Syncs the bytes and gives them their name.
    fn publish(mut self, create: bool, dirs: &Dirs) -> io::Result<PutResult> {
        self.file.sync_data()?;
        let dir = self.dest.parent().ok_or_else(|| io::Error::other("no directory above"))?;
        let temporary = self.temporary.as_deref().ok_or_else(|| io::Error::other("published already"))?;
        if create {
            match fs::hard_link(temporary, &self.dest) {
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {
                    // The caller will rely on what is there: make its name durable, whoever wrote it.
                    dirs.sync_name(dir, &self.dest)?;
                    return Err(e);
                }
                linked => linked?,
            }
            // Left over, it is garbage that the next sweep finds.
            let _ = fs::remove_file(temporary);
        } else {
            fs::rename(temporary, &self.dest)?;
        }
        // From here another writer may use the temporary name.
        self.temporary = None;
        dirs.sync_name(dir, &self.dest)?;
        Ok(PutResult { e_tag: None, version: None })
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        if let Some(path) = &self.temporary {
            let _ = fs::remove_file(path);
        }
    }
}

/// The object is there, but its name may not survive a loss of power: neither created nor not created.
#[derive(Debug, Clone)]
pub struct NotSynced(pub String);

impl fmt::Display for NotSynced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "its name may not survive a loss of power: {}", self.0)
    }
}

impl std::error::Error for NotSynced {}

/// What failed on which path. The cause stays reachable, so that a full disk is recognised.
#[derive(Debug)]
struct Failed {
    path: PathBuf,
    source: io::Error,
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.source)
    }
}

impl std::error::Error for Failed {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}

fn failed(location: &Path, path: &FsPath, source: io::Error) -> object_store::Error {
    let kind = source.kind();
    let source = Box::new(Failed { path: path.to_path_buf(), source });
    match kind {
        io::ErrorKind::NotFound => object_store::Error::NotFound { path: location.to_string(), source },
        io::ErrorKind::AlreadyExists => object_store::Error::AlreadyExists { path: location.to_string(), source },
        io::ErrorKind::PermissionDenied => object_store::Error::PermissionDenied { path: location.to_string(), source },
        _ => object_store::Error::Generic { store: "DurableFs", source },
    }
}

/// Runs `f` where blocking is allowed.
async fn blocking<T: Send + 'static>(f: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    match tokio::runtime::Handle::try_current() {
        Ok(runtime) => runtime.spawn_blocking(f).map_err(|source| object_store::Error::JoinError { source }).await?,
        Err(_) => f(),
    }
}

impl fmt::Display for DurableFs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DurableFs({})", self.dirs.root.display())
    }
}

fn not_implemented(operation: &str) -> object_store::Error {
    object_store::Error::NotImplemented { operation: operation.into(), implementer: "DurableFs".into() }
}

#[async_trait]
impl ObjectStore for DurableFs {
    async fn put_opts(&self, location: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        let create = match options.mode {
            PutMode::Create => true,
            PutMode::Overwrite => false,
            PutMode::Update(_) => return Err(not_implemented("a conditional overwrite")),
        };
        let (path, location, dirs) = (self.file_of(location)?, location.clone(), self.dirs.clone());
        blocking(move || {
            let write = || {
                let staged = dirs.stage(&path)?;
                let mut offset = 0;
                for chunk in payload.iter() {
                    staged.file.write_all_at(chunk, offset)?;
                    offset += chunk.len() as u64;
                }
                staged.publish(create, &dirs)
            };
            write().map_err(|e| failed(&location, &path, e))
        })
        .await
    }

    async fn put_multipart_opts(&self, location: &Path, _options: PutMultipartOptions) -> Result<Box<dyn MultipartUpload>> {
        let (path, location, dirs) = (self.file_of(location)?, location.clone(), self.dirs.clone());
        blocking(move || {
            let staged = dirs.stage(&path).map_err(|e| failed(&location, &path, e))?;
            let upload = Upload { location, dirs, staged: Some(Arc::new(staged)), end: 0, progress: Arc::default() };
            Ok(Box::new(upload) as Box<dyn MultipartUpload>)
        })
        .await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        self.local.get_opts(location, options).await
    }

    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        self.local.get_ranges(location, ranges).await
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        let this = self.clone();
        locations
            .map(move |location| {
                let this = this.clone();
                async move {
                    let location = location?;
                    let path = this.file_of(&location)?;
                    blocking(move || {
                        fs::remove_file(&path)
                            .and_then(|()| path.parent().map_or(Ok(()), sync_dir))
                            .map_err(|e| failed(&location, &path, e))?;
                        Ok(location)
                    })
                    .await
                }
            })
            .buffered(DELETES_AT_ONCE)
            .boxed()
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.local.list(prefix)
    }

    fn list_with_offset(&self, prefix: Option<&Path>, offset: &Path) -> BoxStream<'static, Result<ObjectMeta>> {
        self.local.list_with_offset(prefix, offset)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.local.list_with_delimiter(prefix).await
    }

    /// By a link: the source is durable already, and objects never change.
    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        if !matches!(options.mode, CopyMode::Create) {
            return Err(not_implemented("a copy over an existing object"));
        }
        let (source, dest, location, dirs) = (self.file_of(from)?, self.file_of(to)?, to.clone(), self.dirs.clone());
        blocking(move || {
            let link = || {
                let dir = dest.parent().ok_or_else(|| io::Error::other("no directory above"))?;
                dirs.ensure(dir)?;
                fs::hard_link(&source, &dest)?;
                dirs.sync_name(dir, &dest)
            };
            link().map_err(|e| failed(&location, &dest, e))
        })
        .await
    }
}

/// Parts are written at their place in one temporary file, in any order.
#[derive(Debug)]
struct Upload {
    location: Path,
    dirs: Arc<Dirs>,
    staged: Option<Arc<Staged>>,
    end: u64,
    progress: Arc<Progress>,
}

/// What became of an upload's parts.
#[derive(Debug, Default)]
struct Progress {
    /// Bytes that reached the file: less than the upload's end at completion means that a part failed or was never polled.
    written: AtomicU64,
    syncing: Mutex<Option<JoinHandle<()>>>,
    /// Of a sync on the way. The file tells an error once, so it is kept for the completion.
    failed: Mutex<Option<io::Error>>,
}

impl Progress {
    /// Sends what is written on its way to the disk, while the next parts are still being made. One sync at a time.
    fn sync_ahead(self: &Arc<Self>, staged: &Arc<Staged>) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let mut syncing = self.syncing.lock();
        if syncing.as_ref().is_some_and(|s| !s.is_finished()) {
            return;
        }
        let (progress, staged) = (self.clone(), staged.clone());
        *syncing = Some(runtime.spawn_blocking(move || {
            if let Err(e) = staged.file.sync_data() {
                progress.failed.lock().get_or_insert(e);
            }
        }));
    }

    /// Nothing holds the file any more.
    async fn sync_ended(&self) -> io::Result<()> {
        let syncing = self.syncing.lock().take();
        if let Some(syncing) = syncing {
            syncing.await.map_err(io::Error::other)?;
        }
        self.failed.lock().take().map_or(Ok(()), Err)
    }
}

fn aborted(location: &Path) -> object_store::Error {
    object_store::Error::Generic { store: "DurableFs", source: format!("the upload of {location} has ended").into() }
}

#[async_trait]
impl MultipartUpload for Upload {
    fn put_part(&mut self, data: PutPayload) -> object_store::UploadPart {
        let (offset, length) = (self.end, data.content_length() as u64);
        self.end += length;
        let (staged, progress, location) = (self.staged.clone(), self.progress.clone(), self.location.clone());
        async move {
            let staged = staged.ok_or_else(|| aborted(&location))?;
            blocking(move || {
                let mut at = offset;
                for chunk in data.iter() {
                    staged.file.write_all_at(chunk, at).map_err(|e| failed(&location, &staged.dest, e))?;
                    at += chunk.len() as u64;
                }
                progress.written.fetch_add(length, Ordering::SeqCst);
                progress.sync_ahead(&staged);
                Ok(())
            })
            .await
        }
        .boxed()
    }

    async fn complete(&mut self) -> Result<PutResult> {
        let location = self.location.clone();
        let staged = self.staged.take().ok_or_else(|| aborted(&location))?;
        self.progress.sync_ended().await.map_err(|e| failed(&location, &staged.dest, e))?;
        let staged = Arc::into_inner(staged).ok_or_else(|| aborted(&location))?;
        if self.progress.written.load(Ordering::SeqCst) != self.end {
            return Err(object_store::Error::Generic {
                store: "DurableFs",
                source: format!("a part of the upload of {location} was not written").into(),
            });
        }
        let dirs = self.dirs.clone();
        blocking(move || {
            let path = staged.dest.clone();
            staged.publish(true, &dirs).map_err(|e| failed(&location, &path, e))
        })
        .await
    }

    async fn abort(&mut self) -> Result<()> {
        let staged = self.staged.take().ok_or_else(|| aborted(&self.location))?;
        // What could not be synced is removed all the same.
        let _ = self.progress.sync_ended().await;
        drop(staged);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
