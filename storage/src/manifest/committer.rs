//! The one writer of the manifest.
//!
//! A commit is true once its object exists, and not before. The order is: check what the caller stood on, build the next value,
//! create the object, publish. Guards I7: a newer epoch's commit ends this writer for good; a create that timed out is read back by its
//! nonce; a create below the boundary was no commit.

use crate::{
    Clock, Error, ErrorKind, Result, Timestamp,
    clock::pause,
    decision,
    ids::{CommitNo, Epoch, unique},
    manifest::{
        commit_log::{CommitLog, Loaded},
        edit::{Commit, Edit, Expect},
        state::Manifest,
    },
};
use object_store::ObjectStore;
use parking_lot::RwLock;
use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::sync::Mutex;

/// Commits between two checkpoints.
pub const CHECKPOINT_EVERY: u64 = 256;

/// How often it is asked what became of a commit, and the time between.
const LOOKS: usize = 4;
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(50);

/// Gives up the reserved space of a full disk; false where nothing was left to give.
pub type OnFull = Arc<dyn Fn() -> bool + Send + Sync>;

pub struct Committer {
    log: Arc<CommitLog>,
    clock: Clock,
    epoch: Epoch,
    on_full: OnFull,
    /// Held while a commit is made; `Some` once this writer must not write any more.
    writing: Arc<Mutex<Option<Error>>>,
    current: Arc<RwLock<Arc<Manifest>>>,
    checkpointed: AtomicU64,
    checkpointing: Mutex<()>,
}

/// A manifest as it was left. Nothing is written before [`Left::begin`].
pub struct Left {
    log: Arc<CommitLog>,
    pub manifest: Manifest,
    checkpointed: CommitNo,
    passed_over: Vec<String>,
}

/// What opening has to tell.
pub struct Opened {
    pub committer: Committer,
    /// The manifest with this opening's epoch.
    pub manifest: Arc<Manifest>,
    pub passed_over: Vec<String>,
}

impl Left {
    /// Takes a new epoch: from here on this opening is the one that writes.
    ///
    /// # Errors
    /// `Invalid` where a simulated clock is behind the newest commit; as [`Committer::commit`].
    pub async fn begin(self, clock: Clock, on_full: OnFull) -> Result<Opened> {
        not_before(&clock, self.manifest.time, "commit")?;
        let epoch = self.manifest.epoch.next();
        let committer = Committer {
            log: self.log,
            clock,
            epoch,
            on_full,
            writing: Arc::default(),
            current: Arc::new(RwLock::new(Arc::new(self.manifest))),
            checkpointed: AtomicU64::new(self.checkpointed.0),
            checkpointing: Mutex::new(()),
        };
        let manifest = committer.commit(vec![Edit::TakeEpoch(epoch)], Vec::new(), |_| {}).await?;
        Ok(Opened { committer, manifest, passed_over: self.passed_over })
    }
}

impl Committer {
    /// Loads the manifest from the meta folder.
    ///
    /// # Errors
    /// `Corrupt` where objects are damaged or missing.
    pub async fn read(meta: Arc<dyn ObjectStore>) -> Result<Left> {
        let log = Arc::new(CommitLog::new(meta));
        let Loaded { manifest, replayed, passed_over } = log.load().await?;
        Ok(Left { log, checkpointed: CommitNo(manifest.no.0 - replayed), manifest, passed_over })
    }

    /// Loads the manifest from the meta folder and takes a new epoch.
    ///
    /// # Errors
    /// As [`Self::read`] and [`Left::begin`].
    pub async fn open(meta: Arc<dyn ObjectStore>, clock: Clock, on_full: OnFull) -> Result<Opened> {
        Self::read(meta).await?.begin(clock, on_full).await
    }

    /// A writer of commits that are kept in memory: for work that is tried and not done.
    pub fn aside(manifest: Manifest, clock: Clock) -> Self {
        Self {
            log: Arc::new(CommitLog::new(Arc::new(object_store::memory::InMemory::new()))),
            clock,
            epoch: manifest.epoch,
            on_full: Arc::new(|| false),
            writing: Arc::default(),
            checkpointed: AtomicU64::new(manifest.no.0),
            current: Arc::new(RwLock::new(Arc::new(manifest))),
            checkpointing: Mutex::new(()),
        }
    }

    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    pub fn current(&self) -> Arc<Manifest> {
        self.current.read().clone()
    }

    /// Makes one commit of `edits`, if what `expect` names still holds. `publish` sees the new manifest after it is durable and before
    /// any later commit begins.
    ///
    /// # Errors
    /// `Conflict` where an expectation failed, `Full`, `Unavailable` where it could not be written, `Fenced` once another opening has
    /// taken over: nothing happened. `Internal` where it is not known whether the commit will be there: the next opening tells, and until
    /// then nothing more is written.
    pub async fn commit(
        &self,
        edits: Vec<Edit>,
        expect: Vec<Expect>,
        publish: impl FnOnce(&Arc<Manifest>) + Send + 'static,
    ) -> Result<Arc<Manifest>> {
        self.commit_with(expect, |_, _| Ok(edits), publish).await
    }

    /// [`Self::commit`] with edits made from the manifest they will change and the commit's number and time. Who stops waiting for it,
    /// as a statement that is cancelled does, stops no commit that has begun: what has landed is published.
    pub async fn commit_with(
        &self,
        expect: Vec<Expect>,
        edits: impl FnOnce(&Manifest, (CommitNo, Timestamp)) -> Result<Vec<Edit>> + Send,
        publish: impl FnOnce(&Arc<Manifest>) + Send + 'static,
    ) -> Result<Arc<Manifest>> {
        let mut stopped = self.writing.clone().lock_owned().await;
        if let Some(why) = stopped.as_ref() {
            return Err(why.clone());
        }
        let current = self.current();
        for e in &expect {
            check(&current, e)?;
        }
        let (no, time) = (current.no.next(), self.clock.now().max(current.time));
        let edits = edits(&current, (no, time))?;
        let commit = Commit { no, epoch: self.epoch, nonce: unique(), time, edits };
        let next = Arc::new(current.apply(&commit)?);
        debug_assert_eq!(super::invariants::quick(&next, &commit), Vec::<String>::new(), "after commit {no}");
        decision::decide()?;
        let landing = Landing { log: self.log.clone(), epoch: self.epoch, on_full: self.on_full.clone() };
        let current = self.current.clone();
        let landed = tokio::spawn(async move {
            if let Err(e) = landing.create(&commit).await {
                if e.kind() == ErrorKind::Fenced || e.kind() == ErrorKind::Internal {
                    *stopped = Some(e.clone());
                }
                return Err(e);
            }
            *current.write() = next.clone();
            publish(&next);
            Ok(next)
        });
        landed.await.unwrap_or_else(|e| Err(Error::internal(format!("a commit was cut off: {e}"))))
    }

    pub fn checkpoint_due(&self) -> bool {
        self.current().no.0 >= self.checkpointed.load(Ordering::Relaxed) + CHECKPOINT_EVERY
    }

    /// Writes a checkpoint of the present manifest; commits go on meanwhile.
    pub async fn checkpoint(&self) -> Result<()> {
        let _one = self.checkpointing.lock().await;
        let manifest = self.current();
        if manifest.no.0 > self.checkpointed.load(Ordering::Relaxed) {
            let no = manifest.no;
            self.log.checkpoint(manifest).await?;
            self.checkpointed.store(no.0, Ordering::Relaxed);
        }
        Ok(())
    }
}

/// Makes a commit's object, whoever waits for it.
struct Landing {
    log: Arc<CommitLog>,
    epoch: Epoch,
    on_full: OnFull,
}

impl Landing {
    async fn create(&self, commit: &Commit) -> Result<()> {
        let mut outcome = self.log.create(commit).await;
        let tells = |e: &Edit| matches!(e, Edit::PartLog(_) | Edit::LifecycleLog(_));
        // Rows that only tell of something are not worth the reserve.
        let frees = commit.edits.iter().all(needs_no_room) && !commit.edits.iter().all(tells);
        if frees && outcome.as_ref().is_err_and(|e| e.kind() == ErrorKind::Full) && (self.on_full)() {
            outcome = self.log.create(commit).await;
        }
        let Err(error) = outcome else { return self.above_boundary(commit.no).await };
        let unknown = |why: &dyn std::fmt::Display| {
            Err(Error::internal(format!("commit {} may or may not have been written ({why}): open the database again", commit.no)))
        };
        // What can be read back then need not be durable.
        if error.is_unsynced() {
            return unknown(&error);
        }
        // The create may have landed although its answer did not arrive.
        match look(|| self.log.read(commit.no)).await {
            Ok(Some(found)) if found.nonce == commit.nonce => self.above_boundary(commit.no).await,
            Ok(Some(found)) if found.epoch > self.epoch => Err(Error::fenced(format!(
                "another process has opened this database (epoch {} after {}): this one stops writing",
                found.epoch, self.epoch
            ))),
            Ok(Some(found)) => Err(Error::internal(format!(
                "commit {} exists with epoch {} and is not ours: nothing more is written until the database is opened again",
                commit.no, found.epoch
            ))),
            Ok(None) => Err(error),
            // Going on could fork the history.
            Err(e) if matches!(error.kind(), ErrorKind::Unavailable | ErrorKind::Conflict) => {
                unknown(&format_args!("{error}; reading it back: {e}"))
            }
            Err(_) => Err(error),
        }
    }

    /// The commit has landed; whether it counts.
    async fn above_boundary(&self, no: CommitNo) -> Result<()> {
        let boundary = look(|| self.log.boundary()).await.map_err(|e| {
            Error::internal(format!(
                "commit {no} was written, and may or may not count (looking for a boundary: {e}): open the database again"
            ))
        })?;
        match no > boundary {
            true => Ok(()),
            false => Err(Error::fenced(format!("commit {no} lies below the boundary {boundary}: another process has taken over"))),
        }
    }
}

/// What a commit became is worth asking for more than once: until it is known nothing goes on.
async fn look<T, F: Future<Output = Result<T>>>(ask: impl Fn() -> F) -> Result<T> {
    for _ in 1..LOOKS {
        match ask().await {
            Err(e) if e.kind() == ErrorKind::Unavailable => pause(LOOK_AGAIN_AFTER).await,
            known => return known,
        }
    }
    ask().await
}

/// A simulated clock cannot start before what it has seen: `newest` is the time of the newest `what`. The system's clock may be set back;
/// commits then repeat the last time.
///
/// # Errors
/// `Invalid`, naming both times.
pub fn not_before(clock: &Clock, newest: Timestamp, what: &str) -> Result<()> {
    let now = clock.now();
    match clock {
        Clock::Simulated(_) if now < newest => Err(Error::invalid(format!(
            "the simulated clock would start at {now}, before the newest {what} of this database, which is of {newest}: start it there or later"
        ))),
        _ => Ok(()),
    }
}

/// Whether an edit needs no new object but its commit's: such commits may use the reserved space.
fn needs_no_room(edit: &Edit) -> bool {
    matches!(
        edit,
        Edit::RemovePart { .. }
            | Edit::DropStream(_)
            | Edit::DropDatabase { .. }
            | Edit::DropDisk(_)
            | Edit::DropPolicy { .. }
            | Edit::Vacuumed { .. }
            | Edit::PartLog(_)
            | Edit::LifecycleLog(_)
            | Edit::LogsMoved { .. }
            | Edit::TimerArmed { .. }
            | Edit::Apply { .. }
            | Edit::LogApplied { .. }
            | Edit::SetLineage { .. }
            | Edit::DropRef { .. }
            | Edit::Forget { .. }
            | Edit::DropReader { .. }
            | Edit::TakeEpoch(_)
    )
}

fn check(m: &Manifest, expect: &Expect) -> Result<()> {
    let stream = |id| m.stream(id).ok_or_else(|| Error::conflict("the stream was dropped meanwhile"));
    let hold = |ok: bool, what: &dyn Fn() -> String| if ok { Ok(()) } else { Err(Error::conflict(what())) };
    match expect {
        Expect::Part { stream: id, part, generation } => {
            let found = stream(*id)?.parts.get(part);
            hold(found.is_some_and(|p| p.placement.generation == *generation), &|| format!("part {part} changed meanwhile"))
        }
        Expect::Policy { stream: id, version } => {
            let s = stream(*id)?;
            hold(s.def.policy_version == *version, &|| format!("the rules of {} changed meanwhile", s.def.full_name()))
        }
        Expect::Schema { stream: id, version } => {
            let s = stream(*id)?;
            hold(s.def.schema_version == *version, &|| format!("the columns of {} changed meanwhile", s.def.full_name()))
        }
        Expect::Definition { stream: id, schema, policy } => {
            let s = stream(*id)?;
            let same = s.def.schema_version == *schema && s.def.policy_version == *policy;
            hold(same, &|| format!("{} was altered meanwhile", s.def.full_name()))
        }
        Expect::Lineage { stream: id, branch, from } => {
            let s = stream(*id)?;
            let newest = s.lineages.get(branch).and_then(|l| l.last().map(|l| l.from));
            hold(newest == Some(*from), &|| format!("branch {branch} of {} was moved meanwhile", s.def.full_name()))
        }
        Expect::Applied { stream: id, sn } => {
            let s = stream(*id)?;
            hold(s.applied_sn == *sn, &|| format!("{} was flushed meanwhile", s.def.full_name()))
        }
        Expect::Refs { stream: id, version } => {
            let s = stream(*id)?;
            hold(s.refs_version == *version, &|| format!("tags or branches of {} changed meanwhile", s.def.full_name()))
        }
        Expect::NoStreamNamed { database, name } => {
            hold(m.stream_named(database, name).is_none(), &|| format!("stream {database}.{name} exists already"))
        }
        Expect::StoragePolicy { name, version } => {
            let now = m.policy(name).map(|p| p.version);
            hold(now == Some(*version), &|| format!("storage policy '{name}' changed meanwhile"))
        }
        Expect::Database { name } => hold(m.databases.contains(name), &|| format!("database '{name}' does not exist")),
    }
}
