//! Which rows anything that can be read still needs. Pure.
//!
//! A row may go from a file when no readable cut, ref, reader or lease sees it. A cut sees it by its lineage, unless a deletion that the
//! cut sees takes it, or an expiry up to the cut's horizon. Cuts of one branch between two edits of its lineage see alike but for how
//! far: they are one group, of which the greatest that does not see a deletion decides. Guards I8 and I10.

use super::{Reader, RefKind, resolve::horizon_of};
use crate::{
    ids::{BranchId, CommitNo, Sn},
    lineage::{Cut, Lineage, SnRange, SnSet},
    manifest::StreamState,
    part::{
        PartMeta,
        meta::{Deletion, ExpiredRows, Origin},
    },
};
use std::collections::BTreeMap;

/// How much of some rows is needed, by lineages alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Needed {
    All,
    None,
    /// Of each branch these sns.
    Some(Vec<(BranchId, SnSet)>),
}

/// A ref that keeps rows in their part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PinnedBy {
    pub kind: RefKind,
    pub name: String,
}

/// Cuts that see by one lineage and count removals by rules up to one commit.
#[derive(Debug, Clone)]
struct Group {
    sees: Vec<(BranchId, SnSet)>,
    cuts: SnSet,
    horizon: CommitNo,
    /// Main's own cuts, not those that a tag names.
    of_main: bool,
    /// The ref that these cuts are read through.
    of: Option<PinnedBy>,
}

pub struct Needs {
    groups: Vec<Group>,
    /// What is seen through any ref: most parts are of none, and that is told at once.
    pinned: Vec<(BranchId, SnSet)>,
}

impl Needs {
    /// `pins` are cuts that must stay whatever the readable list says: those of leases and of readers within their lag.
    pub fn of(state: &StreamState, pins: &[Cut]) -> Self {
        let mut by_branch: BTreeMap<BranchId, Vec<SnRange>> = BTreeMap::new();
        for r in state.records.values() {
            by_branch.entry(r.branch).or_default().extend(r.sns());
        }
        let (mut groups, branches) = (Vec::new(), state.branches());
        for (branch, lineages) in state.lineages.iter() {
            let written = by_branch.remove(branch).unwrap_or_default();
            let mut cuts = state.readable.intersection(&SnSet::new(written));
            let r = branches.get(branch);
            // A branch without a ref has no head: what is left of it are snapshots.
            if *branch == BranchId::MAIN || r.is_some() {
                cuts.insert(SnRange { after: Sn(u64::MAX - 1), to: Sn(u64::MAX) });
            }
            let pinned = pins.iter().filter(|c| c.branch == *branch).map(|c| c.sn);
            pinned.for_each(|sn| cuts.insert(SnRange { after: Sn(sn.0.saturating_sub(1)), to: sn }));
            let of = r.map(|r| PinnedBy { kind: r.kind, name: r.name.clone() });
            let horizon = horizon_of(r.copied());
            for (i, lineage) in lineages.iter().enumerate() {
                let next = lineages.get(i + 1).map_or(Sn(u64::MAX), |l| Sn(l.from.0.saturating_sub(1)));
                let in_force = SnSet::new([SnRange { after: Sn(lineage.from.0.saturating_sub(1)), to: next }]);
                let cuts = cuts.intersection(&in_force);
                let of_main = *branch == BranchId::MAIN;
                groups.extend(Group::new(lineage, cuts, horizon, of.clone()).map(|g| Group { of_main, ..g }));
            }
        }
        for r in state.refs.values().filter(|r| r.kind == RefKind::Tag) {
            let Some(lineage) = state.lineage(r.cut.branch, r.cut.sn) else { continue };
            let of = Some(PinnedBy { kind: r.kind, name: r.name.clone() });
            groups.extend(Group::new(lineage, SnSet::one(r.cut.sn), r.cut.horizon, of));
        }
        let mut pinned: BTreeMap<BranchId, Vec<SnRange>> = BTreeMap::new();
        for group in groups.iter().filter(|g| g.of.is_some()) {
            for (branch, set) in &group.sees {
                pinned.entry(*branch).or_default().extend(set.ranges());
            }
        }
        Self { groups, pinned: pinned.into_iter().map(|(b, ranges)| (b, SnSet::new(ranges))).collect() }
    }

    /// Up to `upto`: the cuts that are read, and the bounds of what they see.
    pub fn bounds(&self, upto: Sn) -> (SnSet, Vec<Sn>) {
        let cuts = self.groups.iter().map(|g| g.cuts.clipped(upto)).fold(SnSet::default(), |a, b| a.union(&b));
        let ranges = self.groups.iter().flat_map(|g| g.sees.iter().flat_map(|(_, set)| set.ranges()));
        let mut bounds: Vec<Sn> = ranges.flat_map(|r| [r.after, r.to]).filter(|b| *b <= upto).collect();
        bounds.sort_unstable();
        bounds.dedup();
        (cuts, bounds)
    }

    /// Sns of `branch` whose rows are needed though these deletions and these expiries name them.
    pub fn alive(&self, branch: BranchId, deleted: &[(BranchId, Sn)], expired: &[CommitNo]) -> SnSet {
        let mut alive = Vec::new();
        for group in self.groups.iter().filter(|g| expired.iter().all(|c| *c > g.horizon)) {
            let Some(set) = group.sees_of(branch) else { continue };
            // The first deletion that the group's later cuts see.
            let first = deleted.iter().filter(|(b, sn)| group.sees_of(*b).is_some_and(|s| s.contains(*sn))).map(|(_, sn)| *sn).min();
            let newest = match first {
                None => group.cuts.last(),
                Some(first) => before(&group.cuts, first),
            };
            if let Some(newest) = newest {
                alive.extend(set.ranges().iter().map(|r| SnRange { after: r.after, to: r.to.min(newest) }));
            }
        }
        SnSet::new(alive)
    }

    /// Whether a row written by record `sn` of `branch`, with these removals, is needed.
    pub fn row(&self, branch: BranchId, sn: Sn, deleted: &[(BranchId, Sn)], expired: &[CommitNo]) -> bool {
        self.alive(branch, deleted, expired).contains(sn)
    }

    /// How much of rows of these origins is needed while nothing removes them.
    pub fn rows(&self, origins: &[Origin]) -> Needed {
        let mut of_branch: BTreeMap<BranchId, SnSet> = BTreeMap::new();
        let (mut all, mut none) = (true, true);
        for origin in origins {
            let alive = of_branch.entry(origin.branch).or_insert_with(|| self.alive(origin.branch, &[], &[]));
            all &= alive.covers(origin.sns);
            none &= !alive.touches(origin.sns);
        }
        match (all, none) {
            (_, true) => Needed::None,
            (true, _) => Needed::All,
            _ => Needed::Some(of_branch.into_iter().collect()),
        }
    }

    fn any(&self, part: &PartMeta, deleted: &[(BranchId, Sn)], expired: &[CommitNo]) -> bool {
        let mut of_branch: BTreeMap<BranchId, SnSet> = BTreeMap::new();
        part.origins.iter().any(|o| of_branch.entry(o.branch).or_insert_with(|| self.alive(o.branch, deleted, expired)).touches(o.sns))
    }

    /// Whether every row that the deletion names may go.
    pub fn deletion_is_dead(&self, part: &PartMeta, d: &Deletion) -> bool {
        !self.any(part, &[(d.branch, d.sn)], &[])
    }

    /// Whether every row that was expired then may go.
    pub fn expired_is_dead(&self, part: &PartMeta, e: &ExpiredRows) -> bool {
        !self.any(part, &[], &[e.commit])
    }

    /// Whether nothing needs any row of the part: by its lineages, or because all its rows are deleted or expired everywhere.
    pub fn part_is_dead(&self, part: &PartMeta) -> bool {
        let whole = |rows: &crate::part::meta::RowsAt| rows.count(part.rows) >= part.rows;
        let deleted: Vec<_> = part.deletions.iter().filter(|d| whole(&d.rows)).map(|d| (d.branch, d.sn)).collect();
        let expired: Vec<_> = part.expired.iter().filter(|e| whole(&e.rows)).map(|e| e.commit).collect();
        !self.any(part, &deleted, &expired)
    }

    /// Rows of the part that nothing needs; where only their number is known, in proportion.
    pub fn unneeded_rows(&self, part: &PartMeta) -> u64 {
        let mut of_branch: BTreeMap<BranchId, SnSet> = BTreeMap::new();
        let mut rows = 0;
        for o in &part.origins {
            let alive = of_branch.entry(o.branch).or_insert_with(|| self.alive(o.branch, &[], &[]));
            if !alive.covers(o.sns) {
                let (all, left) = (o.sns.to.0 - o.sns.after.0, alive.intersection(&SnSet::new([o.sns])));
                let left = left.count();
                rows += u64::try_from(u128::from(o.rows) * u128::from(all - left) / u128::from(all.max(1))).unwrap_or(u64::MAX);
            }
        }
        let deleted = part.deletions.iter().filter(|d| self.deletion_is_dead(part, d)).map(|d| d.rows.count(part.rows));
        let expired = part.expired.iter().filter(|e| self.expired_is_dead(part, e)).map(|e| e.rows.count(part.rows));
        deleted.chain(expired).fold(rows, u64::saturating_add).min(part.rows)
    }

    /// What would be needed if main and its past were not there.
    pub fn without_main(&self) -> Self {
        Self { groups: self.groups.iter().filter(|g| !g.of_main).cloned().collect(), pinned: Vec::new() }
    }

    /// A ref that sees rows of the part: a tag, or a branch by what it stands on or wrote.
    pub fn pinned_by(&self, part: &PartMeta) -> Option<&PinnedBy> {
        let touched = |sees: &[(BranchId, SnSet)]| {
            let set = |b: BranchId| sees.iter().find(|(x, _)| *x == b).map(|(_, s)| s);
            part.origins.iter().any(|o| set(o.branch).is_some_and(|s| s.touches(o.sns)))
        };
        if !touched(&self.pinned) {
            return None;
        }
        self.groups.iter().filter(|g| touched(&g.sees)).find_map(|g| g.of.as_ref())
    }
}

impl Group {
    fn new(lineage: &Lineage, cuts: SnSet, horizon: CommitNo, of: Option<PinnedBy>) -> Option<Self> {
        let newest = cuts.last()?;
        Some(Self { sees: lineage.clipped(newest), cuts, horizon, of_main: false, of })
    }

    fn sees_of(&self, branch: BranchId) -> Option<&SnSet> {
        self.sees.iter().find(|(b, _)| *b == branch).map(|(_, s)| s)
    }
}

/// The greatest sn of the set below `sn`.
fn before(set: &SnSet, sn: Sn) -> Option<Sn> {
    let i = set.ranges().partition_point(|r| r.after.0 + 1 < sn.0);
    let run = set.ranges().get(i.checked_sub(1)?)?;
    Some(run.to.min(Sn(sn.0 - 1)))
}

impl Reader {
    /// The cut that it stands at.
    pub fn cut(&self) -> Cut {
        Cut { branch: BranchId::MAIN, sn: self.sn, horizon: CommitNo(u64::MAX) }
    }
}

#[cfg(test)]
pub(super) mod tests;
