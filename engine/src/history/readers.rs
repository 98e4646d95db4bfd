//! Registered readers: names that remember how far main was consumed.
//!
//! A reader with MAX LAG keeps what it has not read, as long as it keeps up; then it is cut off, and every use of it says so until it is
//! moved to what there is. One without pins nothing. A position is always a snapshot that can be read, or 0, the empty stream.

use crate::{Engine, ddl::not_system, nearest::did_you_mean, read::ReadView};
use ebb_storage::{
    Error, Result, Timestamp,
    ids::{BranchId, Sn, StreamId},
    manifest::{Edit, Manifest, StreamState},
    refs::{Ancestry, Reader},
};
use std::sync::Arc;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReaderFrom {
    /// 0: everything there is.
    Earliest,
    /// Main's head.
    Latest,
    Sn(Sn),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewReader {
    pub name: String,
    pub stream: StreamId,
    pub from: ReaderFrom,
    pub max_lag_ms: Option<i64>,
    pub if_not_exists: bool,
}

/// A line of system.readers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReaderInfo {
    pub name: String,
    pub database: String,
    pub stream: String,
    pub sn: Sn,
    pub lag_rows: u64,
    pub lag_ms: u64,
    pub max_lag_ms: Option<i64>,
    /// `ok`, `cut_off`, `rolled_back` or `expired`.
    pub state: &'static str,
}

/// What is wrong with where a reader stands.
enum Trouble {
    CutOff,
    RolledBack,
    Expired,
}

impl Engine {
    /// Whether it was made.
    ///
    /// # Errors
    /// `Conflict` where the name is taken, `NotFound` for a position that cannot be read, `Invalid` for one that main does not stand on.
    pub async fn create_reader(&self, new: NewReader) -> Result<bool> {
        let core = &self.core;
        if new.name.is_empty() || new.max_lag_ms.is_some_and(|ms| ms < 1) {
            return Err(Error::invalid("a reader needs a name, and a MAX LAG that is longer than nothing"));
        }
        let one = core.change_lock(new.stream);
        let _one = one.lock().await;
        let state = self.read().state(new.stream).ok_or_else(|| core.is_gone(new.stream))?;
        not_system(&state.def.database)?;
        let sn = match new.from {
            ReaderFrom::Earliest => Sn(0),
            ReaderFrom::Latest => state.head_of(BranchId::MAIN),
            ReaderFrom::Sn(sn) => readable(&state, sn)?,
        };
        let mut exists = false;
        let edits = |m: &Manifest, (_, created_at): (_, Timestamp)| {
            exists = m.readers.contains_key(&new.name);
            if exists {
                return Err(Error::conflict(format!("reader '{}' exists already", new.name)));
            }
            let NewReader { name, stream, max_lag_ms, .. } = new.clone();
            let reader = Reader { name, stream, sn, max_lag_ms, created_at, cut_off_at: None };
            // One that would be cut off before it began is told at once.
            match reader.is_cut_off(&state, created_at) {
                true => Err(trouble(&state, &reader, &Trouble::CutOff)),
                false => Ok(vec![Edit::SetReader(Box::new(reader))]),
            }
        };
        let done = core.committer.commit_with(Vec::new(), edits, core.shows()).await;
        // Parts that are due wait for it from now on, and until its lag is over.
        core.jobs.wake();
        match done {
            Err(_) if exists && new.if_not_exists => Ok(false),
            other => other.map(|_| true),
        }
    }

    /// What is consumed: up to `sn` of main. Forward or back; where a rollback took main away from under the reader, to the rollback or
    /// later.
    ///
    /// # Errors
    /// `NotFound` without the reader or where the position cannot be read, `Invalid` where main does not stand on it.
    pub async fn advance_reader(&self, name: &str, sn: Sn) -> Result<()> {
        let core = &self.core;
        let reader = reader_of(&self.manifest(), name)?;
        let one = core.change_lock(reader.stream);
        let _one = one.lock().await;
        let state = self.read().state(reader.stream).ok_or_else(|| core.is_gone(reader.stream))?;
        let sn = readable(&state, sn)?;
        let edits = |m: &Manifest, _| {
            let reader = reader_of(m, name)?;
            Ok(vec![Edit::SetReader(Box::new(Reader { sn, cut_off_at: None, ..reader.as_ref().clone() }))])
        };
        core.committer.commit_with(Vec::new(), edits, core.shows()).await?;
        // What it kept rules from may go.
        core.jobs.wake();
        Ok(())
    }

    /// Whether it was there.
    ///
    /// # Errors
    /// `NotFound` without it, where `if_exists` is not said.
    pub async fn drop_reader(&self, name: &str, if_exists: bool) -> Result<bool> {
        let core = &self.core;
        if reader_of(&self.manifest(), name).is_err() && if_exists {
            return Ok(false);
        }
        let edits = |m: &Manifest, _| reader_of(m, name).map(|_| vec![Edit::DropReader { name: name.to_owned() }]);
        core.committer.commit_with(Vec::new(), edits, core.shows()).await?;
        // What it kept rules from may go.
        core.jobs.wake();
        Ok(true)
    }

    pub fn readers(&self) -> Vec<ReaderInfo> {
        let (view, now) = (self.read(), self.core.now());
        let info = |r: &Arc<Reader>| {
            let state = view.state(r.stream)?;
            let lag = r.lag(&state, now);
            // Forgotten records do not say any more how many rows they brought: the parts do.
            let rows = view.changes(r.stream, r.sn, None).map_or(lag.rows, |c| c.added.rows_about());
            Some(ReaderInfo {
                name: r.name.clone(),
                database: state.def.database.clone(),
                stream: state.def.name.clone(),
                sn: r.sn,
                lag_rows: rows,
                lag_ms: lag.ms,
                max_lag_ms: r.max_lag_ms,
                state: match position(&state, r, now) {
                    Ok(()) => "ok",
                    Err(Trouble::CutOff) => "cut_off",
                    Err(Trouble::RolledBack) => "rolled_back",
                    Err(Trouble::Expired) => "expired",
                },
            })
        };
        view.manifest().readers.values().filter_map(info).collect()
    }

    /// The stream that a reader follows, and up to where it has read.
    ///
    /// # Errors
    /// `NotFound` without it or where its position is not kept any more, `Conflict` where it was cut off or a rollback passed it.
    pub fn reader(&self, view: &ReadView, name: &str) -> Result<(StreamId, Sn)> {
        let reader = reader_of(view.manifest(), name)?;
        let state = view.state(reader.stream).ok_or_else(|| self.core.is_gone(reader.stream))?;
        match position(&state, &reader, self.core.now()) {
            Ok(()) => Ok((reader.stream, reader.sn)),
            Err(why) => Err(trouble(&state, &reader, &why)),
        }
    }
}

fn reader_of(m: &Manifest, name: &str) -> Result<Arc<Reader>> {
    let names = || did_you_mean(name, m.readers.keys().map(String::as_str));
    m.readers.get(name).cloned().ok_or_else(|| Error::not_found(format!("reader '{name}' does not exist{}", names())))
}

/// A position that can be taken: 0, or a readable snapshot that main stands on.
fn readable(state: &StreamState, sn: Sn) -> Result<Sn> {
    if sn == Sn(0) {
        return Ok(sn);
    }
    state.resolve(&ebb_storage::refs::AsOf::Sn(sn), Timestamp::MAX, None)?;
    match Ancestry::of(state).is_ancestor(sn, state.head_of(BranchId::MAIN)) {
        true => Ok(sn),
        false => Err(Error::invalid(format!("main of {} does not stand on snapshot {sn}: a reader follows main", state.def.full_name()))),
    }
}

fn position(state: &StreamState, r: &Reader, now: Timestamp) -> Result<(), Trouble> {
    if r.is_cut_off(state, now) {
        return Err(Trouble::CutOff);
    }
    if r.sn == Sn(0) {
        return Ok(());
    }
    match Ancestry::of(state).is_ancestor(r.sn, state.head_of(BranchId::MAIN)) {
        false if state.readable.contains(r.sn) => Err(Trouble::RolledBack),
        true if state.readable.contains(r.sn) => Ok(()),
        _ => Err(Trouble::Expired),
    }
}

fn trouble(state: &StreamState, r: &Reader, why: &Trouble) -> Error {
    let (name, stream, sn) = (&r.name, state.def.full_name(), r.sn);
    let oldest = state.oldest();
    match why {
        Trouble::CutOff => Error::conflict(format!(
            "reader '{name}' of {stream} was cut off at sn {sn}: it fell behind its MAX LAG, and rows it has not read may be gone; {oldest}; advance_reader('{name}', n) goes on from there"
        )),
        Trouble::RolledBack => {
            let head = state.head_of(BranchId::MAIN);
            let ancestry = Ancestry::of(state);
            let common = ancestry.common(sn, head);
            let by = ancestry.walk(head).map(|s| s.line.sns.to).filter(|at| *at > sn).last().unwrap_or(head);
            Error::conflict(format!(
                "reader '{name}' of {stream} stands at sn {sn}, which the rollback {by} cut off; both go back to sn {common}: advance_reader('{name}', {by}) or later goes on"
            ))
        }
        Trouble::Expired => Error::not_found(format!(
            "reader '{name}' of {stream} stands at sn {sn}, which is not kept any more: {oldest}; advance_reader moves it"
        )),
    }
}
