//! The manifest's objects: `commits/{no}`, `checkpoints/{no}`, `boundary/{no}` below the meta folder. Created, never overwritten.
//!
//! A boundary at N says that commits up to N may have been deleted: whoever creates a commit at or below it was asleep too long and
//! has committed nothing.

use crate::{
    Error, ErrorKind, Result,
    ids::CommitNo,
    manifest::{
        codec::{self, Kind},
        edit::Commit,
        image::Image,
        state::Manifest,
    },
};
use futures::{StreamExt, TryStreamExt};
use object_store::{ObjectStore, ObjectStoreExt, PutMode, PutOptions, path::Path};
use std::sync::Arc;

/// Checkpoints that are kept, so that a damaged newest one is no loss.
const CHECKPOINTS_KEPT: usize = 2;
/// Commits read at once while opening.
const READ_AHEAD: usize = 16;

/// Runs work that takes long where it holds up nobody.
async fn apart<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|e| Err(Error::internal(format!("a checkpoint was cut off: {e}"))))
}

#[derive(Clone)]
pub struct CommitLog {
    store: Arc<dyn ObjectStore>,
}

/// What opening found.
pub struct Loaded {
    pub manifest: Manifest,
    /// Commits that were read after the checkpoint.
    pub replayed: u64,
    /// Damaged checkpoints that were passed over, with the reason.
    pub passed_over: Vec<String>,
}

impl CommitLog {
    /// `store` is the meta folder.
    pub fn new(store: Arc<dyn ObjectStore>) -> Self {
        Self { store }
    }

    pub fn commit_path(no: CommitNo) -> Path {
        Path::from(format!("commits/{no:020}"))
    }
    pub fn checkpoint_path(no: CommitNo) -> Path {
        Path::from(format!("checkpoints/{no:020}"))
    }
    fn boundary_path(no: CommitNo) -> Path {
        Path::from(format!("boundary/{no:020}"))
    }

    /// # Errors
    /// `Conflict` where a commit of that number exists; anything else leaves open whether it landed.
    pub async fn create(&self, commit: &Commit) -> Result<()> {
        self.put(&Self::commit_path(commit.no), codec::encode(Kind::Commit, commit)?).await
    }

    async fn put(&self, path: &Path, bytes: Vec<u8>) -> Result<()> {
        let options = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
        self.store.put_opts(path, bytes.into(), options).await.map_err(|e| Error::from(e).context(path))?;
        Ok(())
    }

    /// `None` where there is no such commit.
    pub async fn read(&self, no: CommitNo) -> Result<Option<Commit>> {
        let path = Self::commit_path(no);
        let bytes = match self.store.get(&path).await {
            Ok(found) => found.bytes().await?,
            Err(object_store::Error::NotFound { .. }) => return Ok(None),
            Err(e) => return Err(Error::from(e).context(&path)),
        };
        let commit: Commit = codec::decode(Kind::Commit, path.as_ref(), &bytes)?;
        match commit.no == no {
            true => Ok(Some(commit)),
            false => Err(Error::corrupt(format!("{path} holds commit {}", commit.no))),
        }
    }

    async fn read_checkpoint(&self, no: CommitNo) -> Result<Manifest> {
        let path = Self::checkpoint_path(no);
        let bytes = self.store.get(&path).await?.bytes().await?;
        let image: Image = codec::decode(Kind::Checkpoint, path.as_ref(), &bytes)?;
        let manifest = image.into_manifest()?;
        match manifest.no == no {
            true => Ok(manifest),
            false => Err(Error::corrupt(format!("{path} holds the manifest at commit {}", manifest.no))),
        }
    }

    /// Numbers of the objects in a folder, rising.
    async fn numbers(&self, folder: &str) -> Result<Vec<CommitNo>> {
        let listed: Vec<_> = self.store.list(Some(&Path::from(folder))).try_collect().await?;
        let mut numbers: Vec<CommitNo> = listed.iter().filter_map(|o| o.location.filename()?.parse().ok().map(CommitNo)).collect();
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// The highest boundary; 0 where there is none.
    pub async fn boundary(&self) -> Result<CommitNo> {
        Ok(self.numbers("boundary").await?.last().copied().unwrap_or_default())
    }

    /// The manifest as the objects tell it: the newest readable checkpoint and the commits after it.
    ///
    /// # Errors
    /// `Corrupt` for a damaged or missing commit, naming it.
    pub async fn load(&self) -> Result<Loaded> {
        // First, so that it is not above what is read while another writes.
        let boundary = self.boundary().await?;
        let commits = self.numbers("commits").await?;
        let mut passed_over = Vec::new();
        let mut start = None;
        for no in self.numbers("checkpoints").await?.into_iter().rev() {
            match self.read_checkpoint(no).await {
                Ok(manifest) => {
                    start = Some(manifest);
                    break;
                }
                Err(e) if matches!(e.kind(), ErrorKind::Corrupt) => passed_over.push(e.to_string()),
                Err(e) => return Err(e),
            }
        }
        let mut manifest = start.unwrap_or_else(Manifest::empty);
        let after: Vec<CommitNo> = commits.into_iter().filter(|no| *no > manifest.no).collect();
        let expected = (manifest.no.0 + 1..).map(CommitNo);
        if let Some((found, missing)) = after.iter().zip(expected).find(|(found, expected)| *found != expected) {
            let why = passed_over.first().map(|w| format!(" ({w})")).unwrap_or_default();
            return Err(Error::corrupt(format!(
                "commit {missing} is missing before commit {found}{why}: restore meta/{}",
                Self::commit_path(missing)
            )));
        }
        let replayed = after.len() as u64;
        let mut commits = futures::stream::iter(after).map(|no| async move { (no, self.read(no).await) }).buffered(READ_AHEAD);
        while let Some((no, commit)) = commits.next().await {
            let commit = commit?.ok_or_else(|| Error::corrupt(format!("commit {no} vanished while it was read")))?;
            manifest = manifest.apply(&commit).map_err(|e| Error::corrupt(format!("commit {no} does not apply: {e}")))?;
        }
        if manifest.no < boundary {
            let why = passed_over.first().map(|w| format!(" ({w})")).unwrap_or_default();
            return Err(Error::corrupt(format!(
                "the manifest ends at commit {}, but there were {boundary} and more{why}: restore meta/",
                manifest.no
            )));
        }
        Ok(Loaded { manifest, replayed, passed_over })
    }

    /// Writes a checkpoint, then deletes what the one before the last makes superfluous, boundary first.
    pub async fn checkpoint(&self, manifest: Arc<Manifest>) -> Result<()> {
        let path = Self::checkpoint_path(manifest.no);
        // As large as the database has parts.
        let bytes = apart(move || codec::encode(Kind::Checkpoint, &Image::of(&manifest))).await?;
        match self.put(&path, bytes).await {
            Err(e) if e.kind() == ErrorKind::Conflict => {}
            other => other?,
        }
        let checkpoints = self.numbers("checkpoints").await?;
        let Some(keep_from) = checkpoints.len().checked_sub(CHECKPOINTS_KEPT).map(|i| checkpoints[i]) else { return Ok(()) };
        // Only what a checkpoint that can be read stands for may go.
        let kept = Self::checkpoint_path(keep_from);
        let bytes = self.store.get(&kept).await?.bytes().await?;
        apart(move || codec::verify(Kind::Checkpoint, kept.as_ref(), &bytes).map(|_| ())).await?;
        let old_boundaries: Vec<CommitNo> = self.numbers("boundary").await?;
        match self.put(&Self::boundary_path(keep_from), codec::encode(Kind::Boundary, &keep_from)?).await {
            Err(e) if e.kind() == ErrorKind::Conflict => {}
            other => other?,
        }
        let commits = self.numbers("commits").await?.into_iter().filter(|no| *no <= keep_from).map(Self::commit_path);
        let checkpoints = checkpoints.into_iter().filter(|no| *no < keep_from).map(Self::checkpoint_path);
        let boundaries = old_boundaries.into_iter().filter(|no| *no < keep_from).map(Self::boundary_path);
        for path in commits.chain(checkpoints).chain(boundaries) {
            match self.store.delete(&path).await {
                Ok(()) | Err(object_store::Error::NotFound { .. }) => {}
                Err(e) => return Err(e.into()),
            }
        }
        Ok(())
    }

    pub(super) async fn checkpoint_numbers(&self) -> Result<Vec<CommitNo>> {
        self.numbers("checkpoints").await
    }
    pub(super) async fn verify_checkpoint(&self, no: CommitNo) -> Result<()> {
        self.read_checkpoint(no).await.map(|_| ())
    }
}
