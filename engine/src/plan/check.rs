//! What every round of plans must satisfy; asked by tests, by the simulator and, in debug builds, by the driver before anything is started.

use super::{
    view::{PartView, StreamView},
    work::{MoveWhy, Plan, Target},
};
use ebb_storage::{ids::PartId, part::MAX_ROWS};
use std::collections::HashMap;

/// What is wrong with the plans; empty where nothing is.
pub fn violations(stream: &StreamView, plans: &[Plan]) -> Vec<String> {
    let parts: HashMap<PartId, (&str, &PartView)> =
        stream.partitions.iter().flat_map(|p| p.parts.iter().map(move |part| (part.id, (&*p.value, part)))).collect();
    let mut taken: HashMap<PartId, &Plan> = HashMap::new();
    let mut found = Vec::new();
    for plan in plans {
        if plan.parts().is_empty() {
            found.push(format!("{} plan without parts", plan.kind()));
        }
        if plan.makes_one() && plan.parts().len() < 2 {
            found.push(format!("{} of one part", plan.kind()));
        }
        let rows = plan.parts().iter().filter_map(|id| parts.get(id)).fold(0u64, |rows, (_, p)| rows.saturating_add(p.rows));
        if plan.makes_one() && rows > MAX_ROWS {
            found.push(format!("{} makes a part of {rows} rows, more than can be numbered", plan.kind()));
        }
        if matches!(plan, Plan::Prune { .. } | Plan::Recompress { .. }) && plan.targets().len() != plan.parts().len() {
            found.push(format!("{} of {} parts with {} targets", plan.kind(), plan.parts().len(), plan.targets().len()));
        }
        for (i, id) in plan.parts().iter().enumerate() {
            let Some((partition, part)) = parts.get(id) else {
                found.push(format!("{} takes part {id}, which is not there", plan.kind()));
                continue;
            };
            if part.busy {
                found.push(format!("I6: {} takes part {id}, which a job has", plan.kind()));
            }
            if let Plan::Merge { partition: own, .. }
            | Plan::Fold { partition: own, .. }
            | Plan::Prune { partition: own, .. }
            | Plan::Recompress { partition: own, .. } = plan
                && **own != **partition
            {
                found.push(format!("{} of partition {own} takes part {id} of partition {partition}", plan.kind()));
            }
            if let Some(other) = taken.insert(*id, plan) {
                found.push(format!("I6: part {id} is in a {} and a {}", other.kind(), plan.kind()));
            }
            let target = if plan.makes_one() { plan.targets().first() } else { plan.targets().get(i) };
            if let Some(target) = target {
                found.extend(misplaced(stream, plan, part, target));
            }
        }
    }
    found
}

/// What is wrong with where a part's rows go.
fn misplaced(stream: &StreamView, plan: &Plan, part: &PartView, target: &Target) -> Option<String> {
    let (from, to) = (stream.tiers.volume_of(part.disk), stream.tiers.volume_of(target.disk));
    let asked = target.moved_by.is_some() || matches!(plan, Plan::Move { why: MoveWhy::Statement, .. });
    if to.is_none() && from.is_some() {
        return Some(format!("{} puts part {} on a disk outside the policy", plan.kind(), part.id));
    }
    if to < from && !asked {
        return Some(format!("{} brings part {} to a hotter volume, which nobody asked for", plan.kind(), part.id));
    }
    match plan {
        Plan::Move { .. } if part.disk == target.disk => Some(format!("part {} moves to where it is", part.id)),
        Plan::Forget { .. } if (part.disk, part.codec) != (target.disk, target.codec) => {
            Some(format!("part {} moves or is recompressed while it forgets", part.id))
        }
        Plan::Forget { .. } if !part.forgets => Some(format!("part {} has nothing to forget", part.id)),
        Plan::Recompress { .. } if part.disk != target.disk => Some(format!("part {} moves while it is recompressed", part.id)),
        Plan::Recompress { .. } if part.codec == target.codec => Some(format!("part {} is recompressed as it is", part.id)),
        Plan::Prune { .. } | Plan::Move { .. } | Plan::Recompress { .. } if part.codec != target.codec => {
            let too_large = stream.tiers.sized(target.disk, part.bytes_in(target.codec), part.bytes).err();
            too_large.map(|why| format!("{} of part {}: {why}", plan.kind(), part.id))
        }
        _ => None,
    }
}
