//! One round of planning over one stream: what should be done now, most urgent first, and when to look again.
//!
//! Priority: whole parts out (they cost nothing), due rows out, facts measured, parts merged. Prunes and measurements may use only as
//! many places as rules have; merges use the rest, so neither starves the other.

use super::{
    compact,
    decide::{Action, State, decide, waits_until},
    due::WakeUp,
    view::{PartitionView, StreamView},
};
use ebb_storage::{
    Timestamp,
    ids::{PartId, StreamId},
};
use std::sync::Arc;

/// Parts that one commit drops at the most.
pub const DROP_BATCH: usize = 10_000;

/// Work to be done together. A value: two rounds over the same facts make equal plans.
#[derive(Debug, Clone, PartialEq)]
pub enum Plan {
    /// Take parts out whole: every row of each is due.
    Drop { stream: StreamId, parts: Vec<PartId>, cutoff: Timestamp },
    /// Rewrite each part without the rows that are due at `cutoff`.
    Prune { stream: StreamId, partition: Arc<str>, parts: Vec<PartId>, cutoff: Timestamp },
    /// Make one part of several, without the rows due at `cutoff` where `delete_due`.
    Merge { stream: StreamId, partition: Arc<str>, parts: Vec<PartId>, cutoff: Timestamp, delete_due: bool, reason: String },
    /// Count when rows come due, for rules that have no facts of the part.
    Measure { stream: StreamId, parts: Vec<PartId> },
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Planned {
    /// Most urgent first; no part in two of them.
    pub plans: Vec<Plan>,
    /// When something becomes due that is not yet.
    pub wake_at: Option<Timestamp>,
}

impl Plan {
    pub fn stream(&self) -> StreamId {
        match self {
            Self::Drop { stream, .. } | Self::Prune { stream, .. } | Self::Merge { stream, .. } | Self::Measure { stream, .. } => *stream,
        }
    }
    pub fn parts(&self) -> &[PartId] {
        match self {
            Self::Drop { parts, .. } | Self::Prune { parts, .. } | Self::Merge { parts, .. } | Self::Measure { parts, .. } => parts,
        }
    }
    /// Whether a rule asked for it, rather than the number of parts.
    pub fn is_for_rules(&self) -> bool {
        matches!(self, Self::Prune { .. } | Self::Measure { .. })
    }
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Drop { .. } => "drop",
            Self::Prune { .. } => "prune",
            Self::Merge { .. } => "merge",
            Self::Measure { .. } => "measure",
        }
    }
}

/// All that is to be done at `now`, whatever places are free.
pub fn plan(stream: &StreamView, now: Timestamp) -> Planned {
    let mut wake = WakeUp::after(now);
    let (mut drops, mut prunes, mut measures, mut merges) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for partition in &stream.partitions {
        let mut due = Vec::new();
        for part in &partition.parts {
            // What failed may be merged again from then on, whatever its rules say.
            if let Some(at) = part.backing_off(now) {
                wake.consider(at);
            }
            // The common case first: nothing of the part is due and nothing is unknown.
            if !part.unmeasured && part.first_due > now && part.whole_due > now {
                wake.consider(if stream.settings.only_drop_parts { part.whole_due } else { part.first_due });
                wake.consider(part.whole_due);
                continue;
            }
            let decision = decide(part, partition, stream, now);
            if let Some(at) = decision.next_attempt_at {
                wake.consider(at);
            }
            // What is still to come for a part that waits now.
            wake.consider(part.whole_due);
            match (decision.state, decision.action) {
                (State::DueQueued, Action::Drop) => drops.push(part.id),
                (State::DueQueued, Action::Delete) => due.push(part.id),
                (State::Measuring, _) => measures.push(part.id),
                _ => {}
            }
        }
        if !due.is_empty() {
            due.sort_unstable();
            prunes.push(Plan::Prune { stream: stream.id, partition: partition.value.clone(), parts: due.clone(), cutoff: now });
        }
        merges.extend(merge(stream, partition, &due, now));
    }
    drops.sort_unstable();
    measures.sort_unstable();
    let sort = |plans: &mut Vec<Plan>| plans.sort_by(|a, b| a.parts().cmp(b.parts()));
    sort(&mut prunes);
    sort(&mut merges);
    let mut plans: Vec<Plan> = drops.chunks(DROP_BATCH).map(|c| Plan::Drop { stream: stream.id, parts: c.to_vec(), cutoff: now }).collect();
    plans.extend(prunes);
    if !measures.is_empty() {
        plans.push(Plan::Measure { stream: stream.id, parts: measures });
    }
    plans.extend(merges);
    Planned { plans, wake_at: wake.at() }
}

/// A merge of the partition's parts that no prune takes.
fn merge(stream: &StreamView, partition: &PartitionView, pruned: &[PartId], now: Timestamp) -> Option<Plan> {
    if stream.stops.merges || partition.parts.len() < 2 {
        return None;
    }
    let left: Vec<_> = partition.parts.iter().filter(|p| !p.unmeasured && pruned.binary_search(&p.id).is_err()).cloned().collect();
    let parts = compact::choose(&left, stream, false, now);
    let delete_due = deletes_due(stream);
    (!parts.is_empty()).then(|| {
        let reason = format!("{} parts of like size", parts.len());
        Plan::Merge { stream: stream.id, partition: partition.value.clone(), parts, cutoff: now, delete_due, reason }
    })
}

/// Whether a scheduled merge takes due rows out on its way.
pub fn deletes_due(stream: &StreamView) -> bool {
    !stream.stops.ttl_merges && !stream.settings.only_drop_parts
}

/// Whether nothing more is to be done at `now`: what waits for a time, a stop or a retry is not due.
pub fn is_settled(stream: &StreamView, now: Timestamp) -> bool {
    plan(stream, now).plans.is_empty() && stream.partitions.iter().all(|p| p.parts.iter().all(|part| !part.busy))
}

/// Until when the partition's prunes wait, for status.
pub fn prune_wait(stream: &StreamView, partition: &PartitionView, now: Timestamp) -> Option<Timestamp> {
    waits_until(partition, stream, now)
}
