//! Sets of sequence numbers, lineages and cuts: the algebra of what a reader sees. Pure.

use crate::ids::{BranchId, CommitNo, Sn};
use serde::{Deserialize, Serialize};

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
    ranges: Vec<SnRange>,
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
        Self { ranges: merged }
    }
    pub fn ranges(&self) -> &[SnRange] {
        &self.ranges
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
        range.is_empty() || self.ranges.iter().any(|r| r.after <= range.after && range.to <= r.to)
    }
    pub fn insert(&mut self, range: SnRange) {
        *self = Self::new(self.ranges.iter().copied().chain([range]));
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
    /// Whether a record with `sn`, written to `branch`, is seen at a cut at `at`.
    pub fn sees(&self, branch: BranchId, sn: Sn, at: Sn) -> bool {
        sn <= at && self.sees.iter().any(|(b, set)| *b == branch && set.contains(sn))
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
