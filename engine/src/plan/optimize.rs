//! OPTIMIZE: one round chosen eagerly, or with FINAL one part a partition; everything due applied, whatever the timers say.

use super::{
    compact,
    due::is_due,
    round::Plan,
    view::{PartView, StreamView},
};
use ebb_storage::{Timestamp, ids::PartId};

/// Work of one OPTIMIZE over partition `only`, or all of them. Busy parts are left to their jobs: the caller waits for them first.
pub fn optimize(stream: &StreamView, only: Option<&str>, whole: bool, now: Timestamp) -> Vec<Plan> {
    let mut plans = Vec::new();
    let mut drops = Vec::new();
    let delete_due = !stream.stops.ttl_merges;
    for partition in stream.partitions.iter().filter(|p| only.is_none_or(|o| o == &*p.value)) {
        let (gone, left): (Vec<&PartView>, Vec<&PartView>) =
            partition.parts.iter().filter(|p| !p.busy).partition(|p| delete_due && is_due(p.whole_due, now));
        drops.extend(gone.iter().map(|p| p.id));
        let left: Vec<PartView> = left.into_iter().map(|p| PartView { failure: None, ..p.clone() }).collect();
        let mut parts: Vec<PartId> = match whole {
            true => left.iter().map(|p| p.id).collect(),
            false => compact::choose(&left, stream, true, now),
        };
        parts.sort_unstable();
        let due = |p: &&PartView| delete_due && (is_due(p.first_due, now) || p.unmeasured);
        if parts.len() > 1 {
            let reason = if whole { "OPTIMIZE FINAL" } else { "OPTIMIZE" }.to_owned();
            let alone: Vec<PartId> = left.iter().filter(due).map(|p| p.id).filter(|id| parts.binary_search(id).is_err()).collect();
            plans.push(Plan::Merge { stream: stream.id, partition: partition.value.clone(), parts, cutoff: now, delete_due, reason });
            if !alone.is_empty() {
                plans.push(Plan::Prune { stream: stream.id, partition: partition.value.clone(), parts: alone, cutoff: now });
            }
        } else {
            let mut due: Vec<PartId> = left.iter().filter(due).map(|p| p.id).collect();
            due.sort_unstable();
            if !due.is_empty() {
                plans.push(Plan::Prune { stream: stream.id, partition: partition.value.clone(), parts: due, cutoff: now });
            }
        }
    }
    if !drops.is_empty() {
        drops.sort_unstable();
        plans.insert(0, Plan::Drop { stream: stream.id, parts: drops, cutoff: now });
    }
    plans
}
