//! Sns that nothing can tell apart become one, so that old rows pay nothing for history. Pure.
//!
//! Below the start of main's unbroken readable run, two records are alike when no cut that can be read and no bound of what a branch sees
//! lies between them. A row of the one may then say that it is of the other. A record that can be read stands for itself alone: it may be
//! picked by its number. Guards I10: no cut's answer changes.

use super::Needs;
use crate::{
    ids::{BranchId, Sn},
    lineage::{Cut, SnSet},
    manifest::StreamState,
    part::PartMeta,
};

/// Of one rewrite.
#[derive(Debug, Clone, Default)]
pub struct Rounding {
    /// Nothing from here on is rounded.
    mark: Sn,
    /// Records that can be read.
    cuts: SnSet,
    /// Records up to one of them are told from those behind it; rising.
    bounds: Vec<Sn>,
    /// Records of main that may stand for others; rising.
    known: Vec<Sn>,
}

impl Rounding {
    /// Of a stream without refs whose only lineage is main's first: nothing below its oldest readable record is told from another, but by
    /// cuts that are pinned.
    pub fn of_plain(state: &StreamState, pins: &[Cut]) -> Self {
        // What can be read may all be in the tail yet.
        let oldest = state.readable.ranges().first().map_or(state.applied_sn, |r| r.after).next();
        let pinned = pins.iter().map(|c| c.sn).min().unwrap_or(Sn(u64::MAX));
        Self { mark: oldest.min(pinned), ..Self::default() }
    }

    pub fn of(state: &StreamState, needs: &Needs) -> Self {
        let Some((mark, _)) = state.oldest_available() else { return Self::default() };
        let (cuts, bounds) = needs.bounds(mark);
        Self { mark, cuts, bounds, known: Vec::new() }
    }

    /// With these records of main, of those that the rewrite has rows of, to stand for their like.
    pub fn among(&self, known: impl IntoIterator<Item = Sn>) -> Self {
        let mut known: Vec<Sn> = known.into_iter().filter(|sn| *sn < self.mark).collect();
        known.sort_unstable();
        known.dedup();
        Self { known, ..self.clone() }
    }

    pub fn changes_nothing(&self) -> bool {
        self.known.is_empty()
    }

    /// The record that may stand for all rows of a part, which are of several; `None` where some are told apart, or are of one.
    pub fn for_all(&self, part: &PartMeta) -> Option<Sn> {
        let (first, last) = (part.min_sn(), part.max_sn());
        let of_main = part.origins.iter().all(|o| o.branch == BranchId::MAIN);
        if !of_main || part.sn_in_meta || first >= last || last >= self.mark {
            return None;
        }
        let among = self.among(part.origins.iter().flat_map(|o| [o.sns.after.next(), o.sns.to]));
        (among.of_row(first) == last && among.of_row(last) == last).then_some(last)
    }

    /// The record of main that stands for `sn`, which is one of main.
    pub fn of_row(&self, sn: Sn) -> Sn {
        if sn >= self.mark || self.cuts.contains(sn) {
            return sn;
        }
        let i = self.cuts.ranges().partition_point(|r| r.to < sn);
        let next_cut = self.cuts.ranges().get(i).map_or(self.mark, |r| r.after.next());
        let last_cut = i.checked_sub(1).map_or(Sn(0), |i| self.cuts.ranges()[i].to);
        let i = self.bounds.partition_point(|b| *b < sn);
        let next_bound = self.bounds.get(i).copied().unwrap_or(self.mark);
        let last_bound = i.checked_sub(1).map_or(Sn(0), |i| self.bounds[i]);
        // Alike are the records behind the last of both, up to the bound, below the cut.
        let last = next_bound.0.min(next_cut.0.saturating_sub(1));
        let newest = self.known.partition_point(|k| k.0 <= last).checked_sub(1).map(|i| self.known[i]);
        newest.filter(|k| *k > last_cut.max(last_bound)).unwrap_or(sn)
    }
}

#[cfg(test)]
mod tests;
