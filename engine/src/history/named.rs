//! CREATE, REPLACE and DROP of tags and branches.
//!
//! The tail is flushed first, so that what a ref names is committed before the ref is. CREATE OR REPLACE of a ref that exists makes it
//! anew, as CREATE would; REPLACE changes only what it says, keeps the cut where it says none, and in both the age starts again. A ref
//! whose age is over is as good as gone: its name is free. A branch that is cut anew is another branch, with an id of its own.

use crate::{Engine, core::Core, ddl::not_system, ingest::flush, limits, settings::StreamSettings};
use ebb_storage::{
    Error, ErrorKind, Result, Timestamp,
    ids::{BranchId, CommitNo, Sn, StreamId},
    lineage::{Cut, Lineage},
    manifest::{Edit, Manifest, StreamState},
    refs::{AsOf, Ref, RefKind, resolve::MAIN},
};
use std::sync::Arc;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefMode {
    Create,
    CreateOrReplace,
    Replace,
}

/// A ref as a statement asks for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewRef {
    pub kind: RefKind,
    pub mode: RefMode,
    pub if_not_exists: bool,
    pub name: String,
    /// Main's head where there is none.
    pub as_of: Option<AsOf>,
    /// RETAIN: counted from the creation of the ref.
    pub retain_ms: Option<i64>,
    /// WITH SNAPSHOT RETENTION, of a branch.
    pub min_snapshots: Option<u64>,
    pub max_snapshot_age_ms: Option<i64>,
}

/// What became of a statement that makes a ref.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RefMade {
    /// A ref was made or changed.
    pub made: bool,
    /// Records that only the branch held whose name the new one took: they cannot be read any more.
    pub forgotten: u64,
}

impl Engine {
    /// Makes a ref, or changes it.
    ///
    /// # Errors
    /// `Invalid` for a name that is none, `Conflict` where it is taken, `NotFound` without the stream, the snapshot, or what is replaced.
    pub async fn create_ref(&self, stream: StreamId, new: NewRef) -> Result<RefMade> {
        checked(&new)?;
        let core = &self.core;
        not_system(&core.stream(stream)?.def.database)?;
        let one = core.change_lock(stream);
        let _one = one.lock().await;
        flush::flush(core, stream).await?;
        let before = core.stream(stream)?;
        let mut made = true;
        let edits = |m: &Manifest, (no, time): (CommitNo, Timestamp)| {
            let state = m.stream(stream).ok_or_else(|| core.is_gone(stream))?;
            let edits = edits(core, state, &new, no, time)?;
            made = edits.is_some();
            edits.ok_or_else(|| Error::conflict("the ref exists already"))
        };
        let done = core.committer.commit_with(Vec::new(), edits, core.shows()).await;
        match done {
            Err(e) if e.kind() == ErrorKind::Conflict && !made => Ok(RefMade::default()),
            Err(e) => Err(e),
            Ok(_) => {
                // Nobody else forgets records meanwhile: that is a change of the stream, too.
                let gone = before.readable.minus(&core.stream(stream)?.readable);
                Ok(RefMade { made: true, forgotten: gone.count() })
            }
        }
    }

    /// Whether it was there. What only it held goes with it.
    ///
    /// # Errors
    /// `NotFound` without the stream, or the ref where `if_exists` is not said; `Conflict` where it is of the other kind.
    pub async fn drop_ref(&self, stream: StreamId, kind: RefKind, name: &str, if_exists: bool) -> Result<bool> {
        let core = &self.core;
        let one = core.change_lock(stream);
        let _one = one.lock().await;
        // Main may stand on records of the branch that are still in the tail. Else a full disk keeps nobody from making room.
        if let Err(e) = flush::flush(core, stream).await {
            let tail = core.live.read().tail(stream);
            let id = core.stream(stream)?.refs.get(name).map(|r| r.cut.branch);
            let matters = kind == RefKind::Branch && (!tail.lineages().is_empty() || tail.records().any(|r| Some(r.branch) == id));
            if e.kind() != ErrorKind::Full || matters {
                return Err(e);
            }
        }
        let edits = |m: &Manifest, _| {
            let state = m.stream(stream).ok_or_else(|| core.is_gone(stream))?;
            match state.refs.get(name) {
                Some(r) if r.kind != kind => Err(wrong_kind(state, r)),
                Some(_) => Ok(vec![Edit::DropRef { stream, name: name.to_owned() }]),
                None if name == MAIN => Err(Error::invalid("main is the branch that every stream has: it cannot be dropped")),
                None => state.live_ref(name, Timestamp::MIN, None).map(|_| Vec::new()),
            }
        };
        let done = core.committer.commit_with(Vec::new(), edits, core.shows()).await;
        match done {
            Err(e) if e.kind() == ErrorKind::NotFound && if_exists && core.stream(stream).is_ok() => Ok(false),
            other => other.map(|_| true),
        }
    }
}

fn wrong_kind(state: &StreamState, found: &Ref) -> Error {
    let (kind, name) = (found.kind.word(), &found.name);
    let stream = state.def.full_name();
    Error::conflict(format!("'{name}' of {stream} is a {kind}: tags and branches share their names; say {} '{name}'", kind.to_uppercase()))
}

/// What can be said of the request alone.
fn checked(new: &NewRef) -> Result<()> {
    let name = &new.name;
    if name.is_empty() || name == MAIN || name.chars().all(|c| c.is_ascii_digit()) {
        let why = if name == MAIN { "is the branch that every stream has" } else { "could be taken for a snapshot's number" };
        let why = if name.is_empty() { "says nothing" } else { why };
        return Err(Error::invalid(format!("'{name}' cannot be the name of a {}: it {why}", new.kind.word())));
    }
    if new.kind == RefKind::Tag && (new.min_snapshots.is_some() || new.max_snapshot_age_ms.is_some()) {
        return Err(Error::invalid(format!("tag '{name}' names one snapshot: SNAPSHOT RETENTION is for branches")));
    }
    if new.retain_ms.is_some_and(|ms| ms < 1) || new.max_snapshot_age_ms.is_some_and(|ms| ms < 0) {
        return Err(Error::invalid(format!("{} '{name}': how long it is kept must be more than nothing", new.kind.word())));
    }
    Ok(())
}

/// `None` where the ref exists and nothing is to be done.
fn edits(core: &Core, state: &StreamState, new: &NewRef, no: CommitNo, time: Timestamp) -> Result<Option<Vec<Edit>>> {
    let keep = StreamSettings::of(&state.def, &core.server()).keep;
    let stream = state.def.id;
    let existing = state.refs.get(&new.name);
    let over = existing.filter(|r| r.is_over(keep.max_ref_age_ms, time));
    let existing = existing.filter(|_| over.is_none());
    let mut edits: Vec<Edit> = over.map(|r| Edit::DropRef { stream, name: r.name.clone() }).into_iter().collect();
    let name = || format!("{} '{}' of {}", new.kind.word(), new.name, state.def.full_name());
    if let Some(r) = existing.filter(|r| r.kind != new.kind) {
        return Err(wrong_kind(state, r));
    }
    let before = match (new.mode, existing) {
        (RefMode::Create, Some(_)) if new.if_not_exists => return Ok(None),
        (RefMode::Create, Some(_)) => return Err(Error::conflict(format!("{} exists already: REPLACE or DROP it", name()))),
        (RefMode::Replace, None) => return state.live_ref(&new.name, time, keep.max_ref_age_ms).map(|_| None),
        (RefMode::Replace, Some(r)) => Some(r),
        (RefMode::Create | RefMode::CreateOrReplace, _) => None,
    };
    if existing.is_none() && state.refs.size() >= limits::REFS_OF_A_STREAM {
        return Err(Error::invalid(format!(
            "{} has {} tags and branches, the most there may be",
            state.def.full_name(),
            state.refs.size()
        )));
    }
    let kept = |r: &Arc<Ref>| Ref {
        created_at: time,
        max_ref_age_ms: new.retain_ms.or(r.max_ref_age_ms),
        min_snapshots: new.min_snapshots.or(r.min_snapshots),
        max_snapshot_age_ms: new.max_snapshot_age_ms.or(r.max_snapshot_age_ms),
        ..r.as_ref().clone()
    };
    if let (Some(r), None) = (before, &new.as_of) {
        edits.push(Edit::SetRef { stream, r: Box::new(kept(r)), lineage: None });
        return Ok(Some(edits));
    }
    let at = new.as_of.clone().unwrap_or_else(|| AsOf::Name(MAIN.to_owned()));
    let at = state.resolve(&at, time, keep.max_ref_age_ms)?;
    if at.sn == Sn(0) && new.kind == RefKind::Tag {
        return Err(Error::invalid(format!("{} has no snapshot yet that a tag could name", state.def.full_name())));
    }
    let of = state.line_of(at.sn).map_or(BranchId::MAIN, |line| line.branch);
    let (cut, lineage) = match new.kind {
        RefKind::Tag => (Cut { branch: of, sn: at.sn, horizon: no }, None),
        RefKind::Branch => {
            let id = state.next_branch;
            let parent = state.lineage(of, at.sn).ok_or_else(|| Error::internal(format!("branch {of} of {stream} sees nothing")))?;
            (Cut { branch: id, sn: Sn(u64::MAX), horizon: no }, Some(Lineage::forked(parent, at.sn, id)))
        }
    };
    let settings = Ref {
        name: new.name.clone(),
        kind: new.kind,
        cut,
        fork: at.sn,
        created_at: time,
        max_ref_age_ms: new.retain_ms,
        min_snapshots: new.min_snapshots,
        max_snapshot_age_ms: new.max_snapshot_age_ms,
        schema_version: state.def.schema_version,
    };
    let r = match before {
        Some(r) => Ref { cut, fork: at.sn, schema_version: state.def.schema_version, ..kept(r) },
        None => settings,
    };
    edits.push(Edit::SetRef { stream, r: Box::new(r), lineage });
    Ok(Some(edits))
}
