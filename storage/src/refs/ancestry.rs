//! Who came after whom: the record list as an array that can be walked from a record to those it stands on.
//!
//! Follows `parent`, and where a parent's line is forgotten, the gap that the forgetting left. Sns fall on every step, so each walk ends.
//! A line of many records is a run: each of them stands on the one before.

use crate::{
    clock::Timestamp,
    ids::{BranchId, Sn},
    lineage::SnRange,
    manifest::StreamState,
};
use std::collections::BTreeMap;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line {
    pub branch: BranchId,
    pub sns: SnRange,
    /// The nearest record that is still listed below its first one; 0 where there is none.
    pub parent: Sn,
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
}

/// The record list, rising by sn.
pub struct Ancestry {
    lines: Vec<Line>,
}

/// Records of one line that a walk passes.
#[derive(Debug, Clone, Copy)]
pub struct Step<'a> {
    pub line: &'a Line,
    /// Ends where the walk came in, which may be inside the line.
    pub sns: SnRange,
}

impl Ancestry {
    pub fn of(state: &StreamState) -> Self {
        let mut lines: Vec<Line> = Vec::with_capacity(state.records.size());
        let mut newest: BTreeMap<BranchId, usize> = BTreeMap::new();
        for r in state.records.values() {
            let gap = state.gaps.get(&r.sn).copied().unwrap_or_default();
            let i = lines.len();
            if let Some(before) = newest.insert(r.branch, i)
                && !lines[before].gap_behind
            {
                lines[before].superseded_at = r.time;
            }
            lines.push(Line {
                branch: r.branch,
                sns: r.sns(),
                parent: gap.parent.unwrap_or(r.parent),
                time: r.time,
                superseded_at: gap.superseded_at.unwrap_or(Timestamp::MAX),
                gap_behind: gap.superseded_at.is_some(),
            });
        }
        Self { lines }
    }

    pub fn lines(&self) -> &[Line] {
        &self.lines
    }

    /// The line that a record is in.
    pub fn line_of(&self, sn: Sn) -> Option<&Line> {
        let i = self.lines.partition_point(|l| l.sns.to < sn);
        self.lines.get(i).filter(|l| l.sns.contains(sn))
    }

    /// `sn` and what it stands on, newest first.
    pub fn walk(&self, sn: Sn) -> impl Iterator<Item = Step<'_>> {
        let mut at = sn;
        std::iter::from_fn(move || {
            let line = self.line_of(at)?;
            let sns = SnRange { after: line.sns.after, to: at };
            // A parent that is not below its child is damage: the walk ends.
            at = if line.parent <= line.sns.after { line.parent } else { Sn(0) };
            Some(Step { line, sns })
        })
    }

    /// Whether `of` is `sn` or stands on it. The empty stream is below everything.
    pub fn is_ancestor(&self, sn: Sn, of: Sn) -> bool {
        sn == Sn(0) || sn == of || self.walk(of).take_while(|s| s.sns.to >= sn).any(|s| s.sns.contains(sn))
    }

    /// The newest record that both stand on; 0 where they have nothing in common.
    pub fn common(&self, a: Sn, b: Sn) -> Sn {
        let (mut left, mut right) = (self.walk(a).peekable(), self.walk(b).peekable());
        while let (Some(x), Some(y)) = (left.peek(), right.peek()) {
            if x.sns.after == y.sns.after {
                return x.sns.to.min(y.sns.to);
            }
            if x.sns.to > y.sns.to {
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
        let above = self.walk(of).flat_map(|s| (s.sns.after.0 + 1..=s.sns.to.0).rev());
        above.take_while(|sn| *sn > common.0).take(most).map(Sn).collect()
    }

    /// The start of main's unbroken readable run, and the time by which that record was there.
    pub fn history_from(&self, state: &StreamState) -> Option<(Sn, Timestamp)> {
        let mut from = None;
        for line in self.lines.iter().rev().filter(|l| l.branch == BranchId::MAIN) {
            if line.gap_behind {
                break;
            }
            let i = state.readable.ranges().partition_point(|r| r.to < line.sns.to);
            let Some(run) = state.readable.ranges().get(i).filter(|r| r.contains(line.sns.to)) else { break };
            from = Some((run.after.max(line.sns.after).next(), line.time));
            if run.after > line.sns.after {
                break;
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
