//! What may be forgotten: which snapshots are neither young enough nor within a count, and which refs have lived out their age. Pure.
//!
//! Age counts from when a snapshot was superseded. The count runs along the ancestry, records before a fork included. Of main every
//! record may be kept by its age, those too that a rollback left aside; of a branch its own, and what it stands on by when it went on
//! from there. A ref's head is always kept, main's too. Guards I8: a reader within its lag and a lease keep what they name.

use super::{Reader, Ref, RefKind, ancestry::Ancestry, lag};
use crate::{
    clock::Timestamp,
    ids::{BranchId, Sn},
    lineage::{SnRange, SnSet},
    manifest::StreamState,
};
use std::collections::BTreeSet;

/// What a stream says of its history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keep {
    pub max_age_ms: i64,
    pub min_snapshots: u64,
    /// Of refs that set none.
    pub max_ref_age_ms: Option<i64>,
}

/// What one call says instead, for main and for what branches do not set themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Overrides {
    /// Snapshots superseded before this are old.
    pub older_than: Option<Timestamp>,
    pub retain_last: Option<u64>,
}

/// Who needs more than the policy keeps.
#[derive(Debug, Clone, Copy, Default)]
pub struct Pinning<'a> {
    /// Of this stream. Those past their lag pin nothing.
    pub readers: &'a [&'a Reader],
    /// Snapshots that are leased.
    pub leased: &'a [Sn],
}

/// What is due.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Expiry {
    pub forget: Vec<SnRange>,
    /// Refs whose age is over.
    pub drop_refs: Vec<String>,
    /// Readers that fell behind their MAX LAG.
    pub cut_off: Vec<String>,
    /// How many snapshots are forgotten.
    pub snapshots: u64,
    /// When the next thing comes due by the clock alone, if nothing is written meanwhile.
    pub next_at: Option<Timestamp>,
}

impl Expiry {
    pub fn is_empty(&self) -> bool {
        self.forget.is_empty() && self.drop_refs.is_empty() && self.cut_off.is_empty()
    }
}

/// How old a snapshot may be: kept while what superseded it is at or after `cutoff`.
#[derive(Clone, Copy)]
struct Age {
    cutoff: Timestamp,
    /// Where it is an age and not a moment.
    max_age_ms: Option<i64>,
}

impl Age {
    fn of_ms(ms: i64, now: Timestamp) -> Self {
        Self { cutoff: Timestamp(now.0.saturating_sub(ms.saturating_mul(1000))), max_age_ms: Some(ms) }
    }
    /// The first moment at which something superseded then is too old.
    fn ends(&self, superseded_at: Timestamp) -> Timestamp {
        let Some(ms) = self.max_age_ms else { return Timestamp::MAX };
        Timestamp(superseded_at.0.saturating_add(ms.saturating_mul(1000)).saturating_add(1))
    }
}

/// What must stay, found in two passes: what stays whatever the time, then what its age keeps.
struct Kept<'a> {
    state: &'a StreamState,
    ancestry: &'a Ancestry,
    ranges: Vec<SnRange>,
    /// What stays for ever, as far as the clock can tell.
    firm: SnSet,
    next_at: Timestamp,
}

pub fn expiry(state: &StreamState, keep: &Keep, overrides: &Overrides, pinning: &Pinning<'_>, now: Timestamp) -> Expiry {
    let ancestry = Ancestry::of(state);
    let over = |r: &Ref| r.is_over(keep.max_ref_age_ms, now);
    let (ended, live): (Vec<&Ref>, Vec<&Ref>) = state.refs.values().map(|r| r.as_ref()).partition(|r| over(r));
    let count = overrides.retain_last.unwrap_or(keep.min_snapshots);
    let age = match overrides.older_than {
        Some(cutoff) => Age { cutoff, max_age_ms: None },
        None => Age::of_ms(keep.max_age_ms, now),
    };
    let mut branches = vec![(BranchId::MAIN, count, age)];
    for r in live.iter().filter(|r| r.kind == RefKind::Branch) {
        let own_age = r.max_snapshot_age_ms.map_or(age, |ms| Age::of_ms(ms, now));
        branches.push((r.cut.branch, r.min_snapshots.unwrap_or(count), own_age));
    }

    let mut kept = Kept { state, ancestry: &ancestry, ranges: Vec::new(), firm: SnSet::default(), next_at: Timestamp::MAX };
    for (branch, count, _) in &branches {
        kept.by_count(state.head_of(*branch), *count);
    }
    let tags = live.iter().filter(|r| r.kind == RefKind::Tag).map(|r| r.cut.sn);
    kept.ranges.extend(tags.chain(pinning.leased.iter().copied()).map(one));
    let mut cut_off = BTreeSet::new();
    for reader in pinning.readers {
        match lag::keeps_up_until(state, reader) {
            Some(until) if until < now => _ = reader.cut_off_at.is_none().then(|| cut_off.insert(reader.name.clone())),
            Some(until) if reader.cut_off_at.is_none() => {
                kept.by_reader(reader.sn);
                kept.next_at = kept.next_at.min(Timestamp(until.0.saturating_add(1)));
            }
            _ => {}
        }
    }
    kept.firm = SnSet::new(kept.ranges.iter().copied());
    for (branch, _, age) in &branches {
        kept.by_age(*branch, *age);
    }

    let listed = state.readable.clipped(state.applied_sn);
    let forget = listed.minus(&SnSet::new(kept.ranges));
    let ends = live.iter().filter_map(|r| r.ends_at(keep.max_ref_age_ms));
    let next_at = ends.fold(kept.next_at, Timestamp::min);
    Expiry {
        snapshots: forget.count(),
        forget: forget.ranges().to_vec(),
        drop_refs: ended.iter().map(|r| r.name.clone()).collect(),
        cut_off: cut_off.into_iter().collect(),
        next_at: (next_at != Timestamp::MAX).then_some(next_at),
    }
}

impl Kept<'_> {
    /// The newest `count` readable records of an ancestry, and its head whatever the count.
    fn by_count(&mut self, head: Sn, count: u64) {
        let mut left = count.max(1);
        for step in self.ancestry.walk(head) {
            let readable = SnSet::new(step.ranges()).intersection(&self.state.readable);
            for run in readable.ranges().iter().rev() {
                let taken = left.min(run.to.0 - run.after.0);
                self.push(SnRange { after: Sn(run.to.0 - taken), to: run.to });
                left -= taken;
            }
            if left == 0 {
                break;
            }
        }
    }

    /// A reader's position and all of main from there on: it may be moved to any of them.
    fn by_reader(&mut self, position: Sn) {
        let from = SnRange { after: Sn(position.0.saturating_sub(1)), to: Sn(u64::MAX) };
        for line in self.ancestry.lines().iter().rev().take_while(|l| l.sns.to > from.after) {
            if line.branch == BranchId::MAIN || line.contains(position) {
                line.ranges().rev().for_each(|r| self.push(SnRange { after: r.after.max(from.after), to: r.to }));
            }
        }
    }

    fn by_age(&mut self, branch: BranchId, age: Age) {
        let ancestry = self.ancestry;
        for line in ancestry.lines().iter().rev().filter(|l| l.branch == branch) {
            // Times do not rise on the way back, but for the first step.
            if line.superseded_at < age.cutoff && line.time < age.cutoff {
                break;
            }
            self.while_young(one(line.sns.to), line.superseded_at, age);
            but_last(line.ranges()).for_each(|r| self.while_young(r, line.time, age));
        }
        let mut went_on = Timestamp::MAX;
        for step in ancestry.walk(self.state.head_of(branch)) {
            if went_on < age.cutoff {
                break;
            }
            if step.line.branch != branch {
                let within = if step.sns.to == step.line.sns.to { step.line.time } else { step.line.time.min(went_on) };
                self.while_young(one(step.sns.to), went_on, age);
                but_last(step.ranges()).for_each(|r| self.while_young(r, within, age));
            }
            went_on = step.line.time;
        }
    }

    fn while_young(&mut self, sns: SnRange, superseded_at: Timestamp, age: Age) {
        if sns.is_empty() || superseded_at < age.cutoff {
            return;
        }
        // What no clock ends needs no waking up.
        if superseded_at != Timestamp::MAX && !self.firm.covers(sns) && self.state.readable.touches(sns) {
            self.next_at = self.next_at.min(age.ends(superseded_at));
        }
        self.push(sns);
    }

    /// Walks go down: neighbours join.
    fn push(&mut self, sns: SnRange) {
        match self.ranges.last_mut() {
            Some(last) if sns.to == last.after && sns.after < last.after => last.after = sns.after,
            _ if sns.is_empty() => {}
            _ => self.ranges.push(sns),
        }
    }
}

fn one(sn: Sn) -> SnRange {
    SnRange { after: Sn(sn.0.saturating_sub(1)), to: sn }
}

/// Without the last record, newest first.
fn but_last(ranges: impl DoubleEndedIterator<Item = SnRange>) -> impl Iterator<Item = SnRange> {
    ranges.rev().enumerate().map(|(i, r)| if i == 0 { SnRange { to: Sn(r.to.0 - 1), ..r } } else { r })
}

#[cfg(test)]
mod tests;
