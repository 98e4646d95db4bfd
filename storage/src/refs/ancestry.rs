//! Who came after whom: the record list as an array that can be walked from a record to those it stands on.
//!
//! Follows `parent`, and where a parent's line is forgotten, the gap that the forgetting left. Sns fall on every step, so each walk ends.
//! Of a line of many records each stands on the one before; records of other branches may lie between them.

use crate::{
    clock::Timestamp,
    ids::{BranchId, Sn},
    lineage::SnRange,
    manifest::{StreamState, edit::sns, runs::Runs},
};
use std::collections::BTreeMap;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    pub branch: BranchId,
    /// From its first record to its last.
    pub sns: SnRange,
    runs: Option<Runs>,
    /// The nearest record that is still listed below its first one; 0 where there is none.
    pub parent: Sn,
    /// Of its first record.
    since: Timestamp,
    /// Of its last record.
    pub time: Timestamp,
    /// When the branch it was written to went on from its last record; MAX where it has not.
    pub superseded_at: Timestamp,
    /// The branch's next record is forgotten.
    pub gap_behind: bool,
}

impl Line {
    /// When the record `sn` of the line was superseded on its own branch, or a little later: inside a line only the last time is known.
    pub fn superseded(&self, sn: Sn) -> Timestamp {
        if sn == self.sns.to { self.superseded_at } else { self.time }
    }

    /// Its records.
    pub fn ranges(&self) -> impl DoubleEndedIterator<Item = SnRange> {
        sns(self.sns, self.runs.as_ref())
    }

    pub fn contains(&self, sn: Sn) -> bool {
        self.sns.contains(sn) && self.runs.as_ref().is_none_or(|r| r.contains(sn))
    }
}

/// The record list, rising by sn.
pub struct Ancestry {
    lines: Vec<Line>,
    /// Of each branch the places of its lines, which do not overlap.
    of_branch: BTreeMap<BranchId, Vec<usize>>,
}

/// Records of one line that a walk passes.
#[derive(Debug, Clone, Copy)]
pub struct Step<'a> {
    pub line: &'a Line,
    /// From the first to where the walk came in, which may be inside the line.
    pub sns: SnRange,
}

impl Step<'_> {
    /// The records that are passed.
    pub fn ranges(&self) -> impl DoubleEndedIterator<Item = SnRange> {
        let to = self.sns.to;
        self.line.ranges().filter(move |r| r.after < to).map(move |r| SnRange { to: r.to.min(to), ..r })
    }

    pub fn contains(&self, sn: Sn) -> bool {
        self.sns.contains(sn) && self.line.contains(sn)
    }
}

impl Ancestry {
    pub fn of(state: &StreamState) -> Self {
        let mut lines: Vec<Line> = Vec::with_capacity(state.records.size());
        let mut of_branch: BTreeMap<BranchId, Vec<usize>> = BTreeMap::new();
        for r in state.records.values() {
            let gap = state.gaps.get(&r.sn).copied().unwrap_or_default();
            let i = lines.len();
            let own = of_branch.entry(r.branch).or_default();
            if let Some(before) = own.last().map(|i| &mut lines[*i]).filter(|l| !l.gap_behind) {
                before.superseded_at = r.time;
            }
            own.push(i);
            lines.push(Line {
                branch: r.branch,
                sns: r.hull(),
                runs: r.runs.clone(),
                parent: gap.parent.unwrap_or(r.parent),
                since: r.first().1,
                time: r.time,
                superseded_at: gap.superseded_at.unwrap_or(Timestamp::MAX),
                gap_behind: gap.superseded_at.is_some(),
            });
        }
        Self { lines, of_branch }
    }

    pub fn lines(&self) -> &[Line] {
        &self.lines
    }

    /// The line that a record is in.
    pub fn line_of(&self, sn: Sn) -> Option<&Line> {
        self.of_branch.values().find_map(|own| self.among(own, sn))
    }

    fn among(&self, own: &[usize], sn: Sn) -> Option<&Line> {
        let i = own.partition_point(|i| self.lines[*i].sns.to < sn);
        own.get(i).map(|i| &self.lines[*i]).filter(|l| l.contains(sn))
    }

    /// Most often the line before is of the same branch.
    fn near(&self, sn: Sn, branch: Option<BranchId>) -> Option<&Line> {
        let own = branch.and_then(|b| self.of_branch.get(&b));
        own.and_then(|own| self.among(own, sn)).or_else(|| self.line_of(sn))
    }

    /// `sn` and what it stands on, newest first.
    pub fn walk(&self, sn: Sn) -> impl Iterator<Item = Step<'_>> {
        let (mut at, mut branch) = (sn, None);
        std::iter::from_fn(move || {
            let line = self.near(at, branch)?;
            branch = Some(line.branch);
            let sns = SnRange { after: line.sns.after, to: at };
            // A parent that is not below its child is damage: the walk ends.
            at = if line.parent <= line.sns.after { line.parent } else { Sn(0) };
            Some(Step { line, sns })
        })
    }

    /// Whether `of` is `sn` or stands on it. The empty stream is below everything.
    pub fn is_ancestor(&self, sn: Sn, of: Sn) -> bool {
        sn == Sn(0) || sn == of || self.walk(of).take_while(|s| s.sns.to >= sn).any(|s| s.contains(sn))
    }

    /// The newest record that both stand on; 0 where they have nothing in common.
    pub fn common(&self, a: Sn, b: Sn) -> Sn {
        let (mut left, mut right) = (self.walk(a).peekable(), self.walk(b).peekable());
        while let (Some(x), Some(y)) = (left.peek(), right.peek()) {
            if x.sns.after == y.sns.after {
                return x.sns.to.min(y.sns.to);
            }
            // What starts later is above all that the other stands on, but for its own line.
            if x.sns.after > y.sns.after {
                left.next()
            } else {
                right.next()
            };
        }
        Sn(0)
    }

    /// Records of `of`'s ancestry that `below` does not stand on, newest first, `most` of them.
    pub fn between(&self, below: Sn, of: Sn, most: usize) -> Vec<Sn> {
        let common = self.common(below, of);
        let above = self.walk(of).flat_map(|s| s.ranges().rev().collect::<Vec<_>>()).flat_map(|r| (r.after.0 + 1..=r.to.0).rev());
        above.take_while(|sn| *sn > common.0).take(most).map(Sn).collect()
    }

    /// The start of main's unbroken readable run, and the time by which that record was there.
    pub fn history_from(&self, state: &StreamState) -> Option<(Sn, Timestamp)> {
        let mut from = None;
        for line in self.lines.iter().rev().filter(|l| l.branch == BranchId::MAIN) {
            if line.gap_behind {
                break;
            }
            for own in line.ranges().rev() {
                let i = state.readable.ranges().partition_point(|r| r.to < own.to);
                let Some(run) = state.readable.ranges().get(i).filter(|r| r.contains(own.to)) else { return from };
                let first = run.after.max(own.after).next();
                from = Some((first, if first == line.sns.after.next() { line.since } else { line.time }));
                if run.after > own.after {
                    return from;
                }
            }
        }
        from
    }
}

impl StreamState {
    /// Main's oldest record from which on everything can be read, with its time; `None` while there is nothing.
    pub fn oldest_available(&self) -> Option<(Sn, Timestamp)> {
        Ancestry::of(self).history_from(self)
    }
}

#[cfg(test)]
mod tests;
