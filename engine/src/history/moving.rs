//! Rollback, fast-forward and cherry-pick: records that change what a branch sees.
//!
//! What lies in the way of a fast-forward is named; a snapshot is picked once; a rollback goes to what main was, or to a tag. Inserts go
//! on meanwhile: those that come before the record of a rollback are rolled back, those that come before a fast-forward refuse it.

use crate::{
    Engine,
    append::NewRecord,
    ddl::not_system,
    delete::seen_rows,
    ingest::{content::NewLineage, flush},
    limits,
    settings::max_ref_age_ms,
};
use ebb_storage::{
    Error, ErrorKind, Result, Timestamp,
    ids::{BranchId, Sn, StreamId},
    lineage::{SnRange, SnSet},
    manifest::StreamState,
    refs::{Ancestry, AsOf, Ref, RefKind, resolve::MAIN},
    verb::Verb,
};
use std::sync::Arc;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RollbackTo {
    Sn(Sn),
    Time(Timestamp),
}

/// The row that these calls answer with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Changed {
    /// The branch's head before.
    pub previous_sn: Sn,
    pub target_sn: Sn,
    /// This record; the head itself where there was nothing to do.
    pub current_sn: Sn,
}

/// Snapshots named where a fast-forward is refused.
const BETWEEN_NAMED: usize = 10;

impl Engine {
    /// Main as it was at a snapshot of its own, one that an earlier rollback cut off too, or at a tag's.
    ///
    /// # Errors
    /// `NotFound` for what is not kept, `Invalid` for another branch's snapshot.
    pub async fn rollback(&self, stream: StreamId, to: RollbackTo) -> Result<Changed> {
        let core = &self.core;
        let one = core.change_lock(stream);
        let _one = one.lock().await;
        let state = self.history_of(stream)?;
        let at = match to {
            RollbackTo::Sn(sn) => AsOf::Sn(sn),
            RollbackTo::Time(t) => AsOf::Time(t),
        };
        let target = state.resolve(&at, core.now(), max_ref_age_ms(&state.def))?;
        let ancestry = Ancestry::of(&state);
        let was_main = target.cut.branch == BranchId::MAIN || ancestry.is_ancestor(target.sn, state.head_of(BranchId::MAIN));
        let tagged = |r: &Arc<Ref>| r.kind == RefKind::Tag && r.cut.sn == target.sn && !r.is_over(max_ref_age_ms(&state.def), core.now());
        if !was_main && !state.refs.values().any(tagged) {
            let of = state.branch(target.cut.branch).map_or("another branch".to_owned(), |r| format!("branch '{}'", r.name));
            let name = state.def.full_name();
            return Err(Error::invalid(format!(
                "snapshot {} of {name} was written to {of} and never was main: fast_forward or cherrypick_snapshot bring it there",
                target.sn
            )));
        }
        let base = state.lineage(target.cut.branch, target.sn).map(|l| l.clipped(target.sn)).unwrap_or_default();
        let new = NewLineage { base, parent: Some(target.sn), ..NewLineage::default() };
        self.edit_lineage(&state, BranchId::MAIN, Verb::Rollback, target.sn, new, None).await
    }

    /// `branch` as far as `to`, which must stand on it.
    ///
    /// # Errors
    /// `NotFound` without one of them, `Conflict` where `branch` went its own way, naming what it wrote.
    pub async fn fast_forward(&self, stream: StreamId, branch: &str, to: &str) -> Result<Changed> {
        let core = &self.core;
        let one = core.change_lock(stream);
        let _one = one.lock().await;
        for _ in 0..limits::ALTER_ATTEMPTS {
            let state = self.history_of(stream)?;
            let (now, max_age) = (core.now(), max_ref_age_ms(&state.def));
            let moved = match branch {
                MAIN => None,
                name => Some(state.live_ref(name, now, max_age)?.clone()),
            };
            if let Some(r) = moved.as_ref().filter(|r| r.kind == RefKind::Tag) {
                return Err(Error::invalid(format!("tag '{}' cannot be moved: REPLACE TAG makes it name another snapshot", r.name)));
            }
            let id = moved.as_ref().map_or(BranchId::MAIN, |r| r.cut.branch);
            let target = state.resolve(&AsOf::Name(to.to_owned()), now, max_age)?;
            let (head, ancestry) = (state.head_of(id), Ancestry::of(&state));
            let only_moved = |sn: &Sn| state.line_of(*sn).is_some_and(|l| l.verb == Verb::FastForward);
            let above = || ancestry.between(target.sn, head, BETWEEN_NAMED);
            if ancestry.is_ancestor(target.sn, head) && above().iter().all(only_moved) {
                return Ok(Changed { previous_sn: head, target_sn: target.sn, current_sn: head });
            }
            if !ancestry.is_ancestor(head, target.sn) {
                return Err(in_between(&state, &ancestry, (branch, head), (to, target.sn)));
            }
            let base = state.lineage(target.cut.branch, target.sn).map(|l| l.clipped(target.sn)).unwrap_or_default();
            let new = NewLineage { base, parent: Some(target.sn), ..NewLineage::default() };
            match self.edit_lineage(&state, id, Verb::FastForward, target.sn, new, Some(head)).await {
                // An insert came first: looked at again, it is what lies between.
                Err(e) if e.kind() == ErrorKind::Conflict => continue,
                Err(e) => return Err(e),
                Ok(changed) => {
                    // Its horizon is the commit that applies the record: now, if that can be.
                    if moved.is_some()
                        && let Err(e) = flush::flush(core, stream).await
                    {
                        core.note(&e);
                    }
                    return Ok(changed);
                }
            }
        }
        Err(Error::conflict(format!("'{branch}' is written to all the time")))
    }

    /// What one append or delete of another branch did, or one that a rollback cut off, once more on main.
    ///
    /// # Errors
    /// `NotFound` for what is not kept, `Invalid` for other records, `Conflict` for what main has.
    pub async fn cherrypick(&self, stream: StreamId, sn: Sn) -> Result<Changed> {
        let core = &self.core;
        let one = core.change_lock(stream);
        let _one = one.lock().await;
        let state = self.history_of(stream)?;
        let picked = state.resolve(&AsOf::Sn(sn), core.now(), max_ref_age_ms(&state.def))?;
        let line = state.line_of(sn).ok_or_else(|| Error::internal("a readable snapshot has no line"))?;
        let name = state.def.full_name();
        if !matches!(line.verb, Verb::Insert | Verb::InsertStaged | Verb::Delete) {
            return Err(Error::invalid(format!("snapshot {sn} of {name} is a {}: appends and deletes can be picked", line.verb)));
        }
        let newest = state.lineage(BranchId::MAIN, Sn(u64::MAX)).ok_or_else(|| Error::internal("main sees nothing"))?;
        if newest.sees(picked.cut.branch, sn, Sn(u64::MAX)) {
            return Err(Error::conflict(format!("main of {name} has snapshot {sn} already: nothing is picked twice")));
        }
        if line.verb == Verb::Delete && !self.deletes_here(&state, picked.cut.branch, sn).await? {
            // Picked later, the rows would be gone from the start.
            return Err(Error::conflict(format!("snapshot {sn} deletes rows that main of {name} does not have: pick the append first")));
        }
        // What main sees stays open: an insert that comes before the record is none of its business.
        let mut base = newest.sees.clone();
        let one_record = SnRange { after: Sn(sn.0 - 1), to: sn };
        match base.iter_mut().find(|(b, _)| *b == picked.cut.branch) {
            Some((_, set)) => set.insert(one_record),
            None => base.push((picked.cut.branch, SnSet::new([one_record]))),
        }
        // A line of several appends does not tell what each of them brought.
        let (rows_added, rows_deleted) = if line.count == 1 { (line.rows_added, line.rows_deleted) } else { (0, 0) };
        let new = NewLineage { base, parent: None, rows_added, rows_deleted };
        self.edit_lineage(&state, BranchId::MAIN, Verb::CherryPick, sn, new, None).await
    }

    /// Whether main has a row that the record of `branch` deleted there.
    async fn deletes_here(&self, state: &StreamState, branch: BranchId, sn: Sn) -> Result<bool> {
        let view = self.read().stream(state.def.id).ok_or_else(|| self.core.is_gone(state.def.id))?;
        for part in &view.parts {
            for deletion in part.meta.deletions.iter().filter(|d| (d.branch, d.sn) == (branch, sn)) {
                let named = self.core.sets.rows(&part.meta, &deletion.rows)?;
                let seen = match seen_rows(&self.core, &view, part).await? {
                    Some(seen) => !named.0.is_disjoint(&seen.0),
                    None => part.hidden.as_ref().is_none_or(|hidden| !named.0.is_subset(&hidden.0)),
                };
                if seen {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// With what is in the tail.
    fn history_of(&self, stream: StreamId) -> Result<Arc<StreamState>> {
        let state = self.read().state(stream).ok_or_else(|| self.core.is_gone(stream))?;
        not_system(&state.def.database)?;
        Ok(state)
    }

    async fn edit_lineage(
        &self,
        state: &StreamState,
        branch: BranchId,
        verb: Verb,
        target_sn: Sn,
        new: NewLineage,
        expects_head: Option<Sn>,
    ) -> Result<Changed> {
        let (core, stream) = (&self.core, state.def.id);
        let record = NewRecord { expects_head, ..NewRecord::of_lineage(state, branch, verb, new)? };
        let sns = core.appender.append(core, vec![record]).await?;
        let current_sn = sns.first().copied().unwrap_or_default();
        // What was written between the look and the record was the head before it.
        let after = self.read().state(stream).ok_or_else(|| core.is_gone(stream))?;
        let own = after.records.range(..current_sn).rev().map(|(_, r)| r).find(|r| r.branch == branch);
        let previous_sn = own.map_or_else(|| state.head_of(branch), |r| r.sn);
        Ok(Changed { previous_sn, target_sn, current_sn })
    }
}

fn in_between(state: &StreamState, ancestry: &Ancestry, (branch, head): (&str, Sn), (to, target): (&str, Sn)) -> Error {
    let between = ancestry.between(target, head, BETWEEN_NAMED + 1);
    let mut named: Vec<String> = between.iter().take(BETWEEN_NAMED).map(ToString::to_string).collect();
    if between.len() > BETWEEN_NAMED {
        named.push("more".to_owned());
    }
    let (name, named) = (state.def.full_name(), named.join(", "));
    Error::conflict(format!("'{branch}' of {name} (head {head}) has snapshots that '{to}' (head {target}) does not stand on: {named}"))
}
