//! What goes from a stream's record list with the snapshots that go, and what the rest must remember of it.
//!
//! Nothing becomes readable again. Lines of which nothing is readable leave the list; those that stood next to them remember when they
//! were superseded and on what they now stand. A branch that is dropped takes its records along, but for those that main or another ref
//! stands on; the lineage of a branch lasts as long as a readable record of it.

use super::{Ref, RefKind, ancestry::Ancestry};
use crate::{
    Error, Result,
    clock::Timestamp,
    ids::{BranchId, CommitNo, Sn},
    lineage::{Cut, Lineage, SnRange, SnSet},
    manifest::{StreamState, edit::RecordInfo},
};
use serde::{Deserialize, Serialize};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// What a line remembers of forgotten neighbours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Gap {
    /// The nearest listed record that its first one stands on, where that is not the parent; 0 where none is listed.
    pub parent: Option<Sn>,
    /// When its last record was superseded, by one that is forgotten.
    pub superseded_at: Option<Timestamp>,
}

impl StreamState {
    /// Takes these sns from what can be read.
    pub fn forget(&mut self, sns: &[SnRange]) {
        sns.iter().for_each(|range| self.readable.remove(*range));
        let gone = self.unreadable(&SnSet::new(sns.iter().copied()));
        if !gone.is_empty() {
            self.take_lines(&gone);
        }
        self.tidy_lineages();
    }

    /// Lines that have one of these sns and none that is readable.
    fn unreadable(&self, sns: &SnSet) -> BTreeSet<Sn> {
        let Some(first) = sns.ranges().first() else { return BTreeSet::new() };
        let lines = self.records.range(first.after.next()..).map(|(_, r)| r).filter(|r| sns.touches(r.hull()));
        let has = |r: &RecordInfo, set: &SnSet| r.sns().any(|range| set.touches(range));
        lines.filter(|r| has(r, sns) && !has(r, &self.readable)).map(|r| r.sn).collect()
    }

    fn take_lines(&mut self, gone: &BTreeSet<Sn>) {
        let ancestry = Ancestry::of(self);
        // Of each branch, the newest line so far that stays, if nothing of the branch lies between.
        let mut before: BTreeMap<BranchId, Sn> = BTreeMap::new();
        let mut gaps: Vec<(Sn, Gap)> = Vec::new();
        for line in ancestry.lines() {
            let sn = line.sns.to;
            if gone.contains(&sn) {
                if let Some(before) = before.remove(&line.branch) {
                    let gap = self.gaps.get(&before).copied().unwrap_or_default();
                    let superseded_at = gap.superseded_at.or(Some(line.time));
                    gaps.push((before, Gap { superseded_at, ..gap }));
                }
                continue;
            }
            before.insert(line.branch, sn);
        }
        for (sn, gap) in gaps {
            self.gaps.insert_mut(sn, gap);
        }
        for line in ancestry.lines().iter().filter(|l| !gone.contains(&l.sns.to)) {
            let lost = |sn: Sn| ancestry.line_of(sn).filter(|l| gone.contains(&l.sns.to));
            let Some(mut parent) = lost(line.parent) else { continue };
            let stands_on = loop {
                match lost(parent.parent) {
                    Some(next) if next.sns.to < parent.sns.to => parent = next,
                    _ => break parent.parent,
                }
            };
            let gap = self.gaps.get(&line.sns.to).copied().unwrap_or_default();
            self.gaps.insert_mut(line.sns.to, Gap { parent: Some(stands_on), ..gap });
        }
        for sn in gone {
            self.records.remove_mut(sn);
            self.gaps.remove_mut(sn);
        }
    }

    /// Without lineages that no readable cut is read by.
    fn tidy_lineages(&mut self) {
        let mut written: BTreeMap<BranchId, Vec<SnRange>> = BTreeMap::new();
        for r in self.records.values() {
            written.entry(r.branch).or_default().extend(r.sns());
        }
        let refs = self.branches();
        let has_head = |branch: &BranchId| *branch == BranchId::MAIN || refs.contains_key(branch);
        let branches: Vec<_> = self.lineages.iter().map(|(b, l)| (*b, l.clone(), has_head(b))).collect();
        for (branch, lineages, has_head) in branches {
            let written = SnSet::new(written.remove(&branch).unwrap_or_default());
            if !has_head && written.is_empty() {
                self.lineages.remove_mut(&branch);
                self.heads.remove_mut(&branch);
                continue;
            }
            let in_force = |i: usize| SnRange {
                after: Sn(lineages[i].from.0.saturating_sub(1)),
                to: lineages.get(i + 1).map_or(Sn(u64::MAX), |next| Sn(next.from.0.saturating_sub(1))),
            };
            let read = |i: usize| {
                let newest = i + 1 == lineages.len();
                newest || !SnSet::new([in_force(i)]).intersection(&written).intersection(&self.readable).is_empty()
            };
            let kept: Vec<Lineage> = (0..lineages.len()).filter(|i| read(*i)).map(|i| lineages[i].clone()).collect();
            if kept.len() < lineages.len() {
                self.lineages.insert_mut(branch, Arc::new(kept));
            }
        }
    }

    /// A new ref, or other words for a known one; a new branch comes with what it sees.
    ///
    /// # Errors
    /// `Conflict` where its cut cannot be read (any more), or the branch's id was given before (I2).
    pub(crate) fn set_ref(&mut self, r: &Ref, lineage: Option<&Lineage>) -> Result<()> {
        let name = self.def.full_name();
        match lineage {
            Some(_) if r.cut.branch < self.next_branch => {
                return Err(Error::conflict(format!("branch {} of {name} exists already (I2)", r.cut.branch)));
            }
            Some(lineage) => {
                self.next_branch = r.cut.branch.next();
                self.lineages.insert_mut(r.cut.branch, Arc::new(vec![lineage.clone()]));
            }
            None if !self.lineages.contains_key(&r.cut.branch) => {
                return Err(Error::conflict(format!("{} '{}' of {name}: what it names is not there any more", r.kind.word(), r.name)));
            }
            None => {}
        }
        if (r.kind == RefKind::Tag || lineage.is_some()) && r.fork > Sn(0) && !self.readable.contains(r.fork) {
            return Err(Error::conflict(format!("snapshot {} of {name} was forgotten meanwhile", r.fork)));
        }
        let before = self.refs.get(&r.name).cloned();
        self.refs_version += 1;
        self.refs.insert_mut(r.name.clone(), Arc::new(r.clone()));
        if let Some(before) = before.filter(|b| b.kind == RefKind::Branch && b.cut.branch != r.cut.branch) {
            self.leave_branch(before.cut.branch);
        }
        Ok(())
    }

    /// Up to which commit removals by rules count for a branch.
    pub fn set_horizon(&mut self, branch: BranchId, horizon: CommitNo) {
        let Some(r) = self.branch(branch).map(|r| r.as_ref().clone()) else { return };
        self.refs_version += 1;
        self.refs.insert_mut(r.name.clone(), Arc::new(Ref { cut: Cut { horizon, ..r.cut }, ..r }));
    }

    /// # Errors
    /// `NotFound` without it.
    pub(crate) fn drop_ref(&mut self, name: &str) -> Result<()> {
        let Some(r) = self.refs.get(name).cloned() else {
            return Err(Error::not_found(format!("{} has no tag or branch '{name}'", self.def.full_name())));
        };
        self.refs.remove_mut(name);
        self.refs_version += 1;
        if r.kind == RefKind::Branch {
            self.leave_branch(r.cut.branch);
        }
        Ok(())
    }

    /// A branch without a ref: its records go, but for those that main, a branch or a tag stands on.
    fn leave_branch(&mut self, branch: BranchId) {
        let ancestry = Ancestry::of(self);
        let own = SnSet::new(ancestry.lines().iter().filter(|l| l.branch == branch).flat_map(|l| l.ranges()));
        let mut heads = BTreeSet::from([self.head_of(BranchId::MAIN)]);
        heads.extend(self.refs.values().map(|r| match r.kind {
            RefKind::Tag => r.cut.sn,
            RefKind::Branch => self.heads.get(&r.cut.branch).copied().unwrap_or(r.fork),
        }));
        let oldest = own.ranges().first().map(|r| r.after);
        let mut stays: Vec<SnRange> = Vec::new();
        for head in heads {
            for step in ancestry.walk(head).take_while(|s| oldest.is_some_and(|o| s.sns.to > o)) {
                if step.line.branch == branch {
                    stays.extend(step.ranges());
                }
            }
        }
        self.forget(own.minus(&SnSet::new(stays)).ranges());
    }
}

#[cfg(test)]
mod tests;
