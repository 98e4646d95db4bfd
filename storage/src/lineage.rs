//! Sets of sequence numbers, lineages and cuts: the algebra of what a reader sees. Pure.

use crate::ids::{BranchId, CommitNo, Sn};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Sns from `after` (excluded) to `to` (included).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SnRange {
    pub after: Sn,
    pub to: Sn,
}

impl SnRange {
    pub fn is_empty(&self) -> bool {
        self.after >= self.to
    }
    pub fn contains(&self, sn: Sn) -> bool {
        self.after < sn && sn <= self.to
    }
}

/// Disjoint ranges in rising order, no two of them touching.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SnSet {
    /// Shared: a state of a stream is cloned for every edit of it.
    ranges: Arc<Vec<SnRange>>,
}

impl SnSet {
    /// All of `ranges`, in any order, overlapping or not.
    pub fn new(ranges: impl IntoIterator<Item = SnRange>) -> Self {
        let mut all: Vec<SnRange> = ranges.into_iter().filter(|r| !r.is_empty()).collect();
        all.sort_by_key(|r| (r.after, r.to));
        let mut merged: Vec<SnRange> = Vec::with_capacity(all.len());
        for r in all {
            match merged.last_mut() {
                Some(last) if r.after <= last.to => last.to = last.to.max(r.to),
                _ => merged.push(r),
            }
        }
        Self { ranges: Arc::new(merged) }
    }
    pub fn ranges(&self) -> &[SnRange] {
        &self.ranges
    }
    /// How many sns are in it.
    pub fn count(&self) -> u64 {
        self.ranges.iter().map(|r| r.to.0 - r.after.0).sum()
    }
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }
    pub fn contains(&self, sn: Sn) -> bool {
        let i = self.ranges.partition_point(|r| r.to < sn);
        self.ranges.get(i).is_some_and(|r| r.contains(sn))
    }
    /// Whether every sn of `range` is in the set.
    pub fn covers(&self, range: SnRange) -> bool {
        let i = self.ranges.partition_point(|r| r.to < range.to);
        range.is_empty() || self.ranges.get(i).is_some_and(|r| r.after <= range.after)
    }
    pub fn insert(&mut self, range: SnRange) {
        // Most that come are behind all others.
        match self.ranges.last().map(|last| (range.after >= last.after, range.after <= last.to)) {
            _ if range.is_empty() => {}
            Some((true, touches)) => {
                let ranges = Arc::make_mut(&mut self.ranges);
                match ranges.last_mut().filter(|_| touches) {
                    Some(last) => last.to = last.to.max(range.to),
                    None => ranges.push(range),
                }
            }
            _ => *self = Self::new(self.ranges.iter().copied().chain([range])),
        }
    }
    /// Every sn above `after`, for ever.
    pub fn above(after: Sn) -> Self {
        Self::new([SnRange { after, to: Sn(u64::MAX) }])
    }
    pub fn one(sn: Sn) -> Self {
        Self::new([SnRange { after: Sn(sn.0.saturating_sub(1)), to: sn }])
    }
    /// The sns that are in both.
    pub fn intersection(&self, other: &Self) -> Self {
        let both = |a: &SnRange| {
            let a = *a;
            let from = other.ranges.partition_point(|b| b.to <= a.after);
            let touched = other.ranges[from..].iter().take_while(move |b| b.after < a.to);
            touched.map(move |b| SnRange { after: a.after.max(b.after), to: a.to.min(b.to) })
        };
        Self { ranges: Arc::new(self.ranges.iter().flat_map(both).collect()) }
    }
    /// The sns that are not in the other.
    pub fn minus(&self, other: &Self) -> Self {
        let starts = [Sn(0)].into_iter().chain(other.ranges.iter().map(|r| r.to));
        let ends = other.ranges.iter().map(|r| r.after).chain([Sn(u64::MAX)]);
        self.intersection(&Self::new(starts.zip(ends).map(|(after, to)| SnRange { after, to })))
    }
    pub fn union(&self, other: &Self) -> Self {
        Self::new(self.ranges.iter().chain(other.ranges.iter()).copied())
    }
    /// Only the sns up to `to`.
    pub fn clipped(&self, to: Sn) -> Self {
        self.intersection(&Self::new([SnRange { after: Sn(0), to }]))
    }
    /// Whether any sn of `range` is in the set.
    pub fn touches(&self, range: SnRange) -> bool {
        let i = self.ranges.partition_point(|r| r.to <= range.after);
        !range.is_empty() && self.ranges.get(i).is_some_and(|r| r.after < range.to)
    }
    /// The greatest sn of the set.
    pub fn last(&self) -> Option<Sn> {
        self.ranges.last().map(|r| r.to)
    }
    /// Without the sns of `range`.
    pub fn remove(&mut self, range: SnRange) {
        let split =
            |r: &SnRange| [SnRange { after: r.after, to: r.to.min(range.after) }, SnRange { after: r.after.max(range.to), to: r.to }];
        if !range.is_empty() {
            *self = Self::new(self.ranges.iter().flat_map(split));
        }
    }
}

/// What a branch sees: of each branch, these sns. In force from its own sn until the branch's next edit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lineage {
    pub from: Sn,
    pub sees: Vec<(BranchId, SnSet)>,
}

impl Lineage {
    /// A branch that sees all that it ever wrote: main of a new stream.
    pub fn whole(branch: BranchId) -> Self {
        Self { from: Sn(0), sees: vec![(branch, SnSet::new([SnRange { after: Sn(0), to: Sn(u64::MAX) }]))] }
    }
    /// What `branch` sees from its record `at` on, where that record says what stays visible below it.
    pub fn edited(branch: BranchId, at: Sn, base: &[(BranchId, SnSet)]) -> Self {
        let mut sees: Vec<(BranchId, SnSet)> = base.iter().map(|(b, set)| (*b, set.clipped(at))).filter(|(_, s)| !s.is_empty()).collect();
        match sees.iter_mut().find(|(b, _)| *b == branch) {
            Some((_, own)) => own.insert(SnRange { after: at, to: Sn(u64::MAX) }),
            None => sees.push((branch, SnSet::above(at))),
        }
        sees.sort_by_key(|(b, _)| *b);
        Self { from: at, sees }
    }
    /// Of a new branch: what `parent` saw at `fork`, and all that will be written to it.
    pub fn forked(parent: &Self, fork: Sn, branch: BranchId) -> Self {
        let mut sees = parent.clipped(fork);
        sees.push((branch, SnSet::above(Sn(0))));
        Self { from: Sn(0), sees }
    }
    /// What it sees of each branch up to `to`.
    pub fn clipped(&self, to: Sn) -> Vec<(BranchId, SnSet)> {
        self.sees.iter().map(|(b, set)| (*b, set.clipped(to))).filter(|(_, set)| !set.is_empty()).collect()
    }
    /// Whether a record with `sn`, written to `branch`, is seen at a cut at `at`.
    pub fn sees(&self, branch: BranchId, sn: Sn, at: Sn) -> bool {
        sn <= at && self.sees.iter().any(|(b, set)| *b == branch && set.contains(sn))
    }
}

/// What a cut sees of each branch, lineage and position together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    pub sets: Vec<(BranchId, SnSet)>,
    /// Removals by rules count up to this commit.
    pub horizon: CommitNo,
}

/// How much of a part a cut sees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Visibility {
    All,
    None,
    /// Rows with these sns: those of the part's branches do not overlap.
    Some(SnSet),
}

impl Seen {
    pub fn of(lineage: &Lineage, cut: &Cut) -> Self {
        Self { sets: lineage.clipped(cut.sn), horizon: cut.horizon }
    }
    fn set(&self, branch: BranchId) -> Option<&SnSet> {
        self.sets.iter().find(|(b, _)| *b == branch).map(|(_, set)| set)
    }
    /// Whether it sees the record `sn` of `branch`.
    pub fn contains(&self, branch: BranchId, sn: Sn) -> bool {
        self.set(branch).is_some_and(|set| set.contains(sn))
    }
    /// The sns that it sees of rows of these branches and sns.
    pub fn sns_of(&self, rows: impl Iterator<Item = (BranchId, SnRange)>) -> SnSet {
        let seen = |(branch, sns): (BranchId, SnRange)| self.set(branch).map(|s| s.intersection(&SnSet::new([sns]))).unwrap_or_default();
        rows.map(seen).fold(SnSet::default(), |a, b| a.union(&b))
    }
    /// How much it sees of rows of these branches and sns.
    pub fn of_rows(&self, rows: impl Iterator<Item = (BranchId, SnRange)> + Clone) -> Visibility {
        let (mut all, mut none) = (true, true);
        for (branch, sns) in rows.clone() {
            let set = self.set(branch);
            all &= set.is_some_and(|s| s.covers(sns));
            none &= !set.is_some_and(|s| s.touches(sns));
        }
        match (all, none) {
            (_, true) => Visibility::None,
            (true, _) => Visibility::All,
            _ => Visibility::Some(self.sns_of(rows)),
        }
    }
}

/// A point to read at. The horizon is the commit up to which removals by rules count: for main the newest one, always.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Cut {
    pub branch: BranchId,
    pub sn: Sn,
    pub horizon: CommitNo,
}

/// The sns of a stream that may be read or named. Only an expiry takes away; nothing gives back.
pub type Readable = SnSet;

#[cfg(test)]
mod tests;
