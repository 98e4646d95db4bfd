//! What changed between two snapshots: rows that the later one sees and the earlier one does not, and the other way round.
//!
//! The earlier must be one that the later stands on, so that nothing is missed or told twice; where a rollback has cut it off, the refusal
//! says so. Rows that rules removed or made are no changes: for main they are gone, or as they are, in all its history.

use crate::read::{LivePart, ReadView, StreamView, TailRows, hidden_rows};
use ebb_storage::{
    Error, Result,
    ids::{BranchId, CommitNo, Sn, StreamId},
    lineage::{Cut, Seen, SnRange, SnSet},
    manifest::StreamState,
    part::{PartMeta, RowSet},
    refs::{Ancestry, AsOf},
    verb::Verb,
};
use std::sync::Arc;

/// The difference of two snapshots.
#[derive(Clone)]
pub struct Changes {
    /// Rows that `to` sees and `from` does not.
    pub added: StreamView,
    /// Rows that `from` sees and `to` does not.
    pub removed: StreamView,
    pub from: Sn,
    pub to: Sn,
}

impl ReadView {
    /// What lies between two snapshots of a stream; `to` is main's head where it is not said, `from` 0 the empty stream.
    ///
    /// # Errors
    /// `NotFound` without the stream, or for a snapshot that is not kept, naming the oldest; `Conflict` where `to` does not stand on
    /// `from`, naming what cut it off and what both stand on.
    pub fn changes(&self, id: StreamId, from: Sn, to: Option<Sn>) -> Result<Changes> {
        let state = self.state(id).ok_or_else(|| Error::not_found("the stream does not exist (any more)"))?;
        let to_cut = match to {
            // Nothing to nothing.
            Some(Sn(0)) if from == Sn(0) => Cut { sn: Sn(0), ..state.head() },
            Some(to) => state.resolve(&AsOf::Sn(to), self.live.manifest.time, None)?.cut,
            None => state.head(),
        };
        let to = to.unwrap_or_else(|| state.head_of(BranchId::MAIN));
        let from_cut = match from {
            Sn(0) => None,
            _ => Some(state.resolve(&AsOf::Sn(from), self.live.manifest.time, None)?.cut),
        };
        stands_on(&state, from, to)?;
        let later = state.seen(&to_cut);
        let earlier = match from_cut {
            None => Seen { sets: Vec::new(), horizon: CommitNo(u64::MAX) },
            // On the branch it was written to; what rules removed is no difference.
            Some(cut) => state.seen(&Cut { horizon: to_cut.horizon, ..cut }),
        };
        let between = |a: &Seen, b: &Seen| self.between(&state, a, b, (to_cut, to));
        Ok(Changes { added: between(&later, &earlier)?, removed: between(&earlier, &later)?, from, to })
    }

    /// Rows that `a` sees and `b` does not.
    fn between(&self, state: &Arc<StreamState>, a: &Seen, b: &Seen, (cut, sn): (Cut, Sn)) -> Result<StreamView> {
        let mut between = self.at(state, cut, sn);
        let mut parts = Vec::new();
        for part in self.all_parts(state) {
            let rows = || part.meta.origins.iter().map(|o| (o.branch, o.sns));
            let (in_a, in_b) = (a.sns_of(rows()), b.sns_of(rows()));
            if in_a.is_empty() {
                continue;
            }
            let hidden = |seen: &Seen| Ok::<_, Error>(hidden_rows(&self.sets, &part.meta, seen)?.unwrap_or_default());
            let (gone_a, gone_b) = (hidden(a)?, hidden(b)?);
            parts.extend(piece(&part, in_a.minus(&in_b), gone_a.clone()));
            // Rows that both lineages see and only `b` has deleted.
            let back = RowSet(&gone_b.0 - &gone_a.0);
            if !back.is_empty() {
                let mut others = RowSet::default();
                others.0.insert_range(0..u32::try_from(part.meta.rows).unwrap_or(u32::MAX));
                others.0 -= &back.0;
                parts.extend(piece(&part, in_a.intersection(&in_b), others));
            }
        }
        let tail = self.live.tail(state.def.id);
        let of_chunk = |c: &TailRows| {
            let own = || std::iter::once((c.branch, SnRange { after: Sn(0), to: c.sn }));
            let only = a.sns_of(own()).minus(&b.sns_of(own()));
            c.with(|sn| only.contains(sn))
        };
        between.tail = tail.chunks().iter().filter_map(|c| of_chunk(c)).collect();
        between.parts = parts;
        // Nothing is hidden from who reads along.
        between.of_main = false;
        Ok(between)
    }
}

/// The rows of a part with these sns but for `hidden`; `None` where there are none.
fn piece(part: &LivePart, sns: SnSet, hidden: RowSet) -> Option<LivePart> {
    if sns.is_empty() || hidden.len() >= part.meta.rows {
        return None;
    }
    let all = |meta: &PartMeta| meta.origins.iter().all(|o| sns.covers(o.sns));
    let sns = (!all(&part.meta)).then_some(sns);
    Some(LivePart { sns, hidden: (!hidden.is_empty()).then(|| Arc::new(hidden)), ..part.clone() })
}

/// # Errors
/// `Conflict` where `to` does not stand on `from`.
fn stands_on(state: &StreamState, from: Sn, to: Sn) -> Result<()> {
    let ancestry = Ancestry::of(state);
    if ancestry.is_ancestor(from, to) {
        return Ok(());
    }
    let name = state.def.full_name();
    if from > to {
        return Err(Error::conflict(format!("changes of {name}: sn {from} is newer than sn {to}: read from the older to the newer")));
    }
    let common = ancestry.common(from, to);
    let cut_off = state.records.range(from.next()..).map(|(_, r)| r).find(|r| r.verb == Verb::Rollback && r.parent < from);
    let why = match cut_off {
        Some(r) => format!("the rollback of record {} to {} cut it off", r.sn, r.parent),
        None => "it is on another branch".to_owned(),
    };
    Err(Error::conflict(format!(
        "changes of {name}: sn {to} does not stand on sn {from}: {why}; both stand on sn {common}: read from there"
    )))
}
