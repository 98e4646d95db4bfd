//! What every round of plans must satisfy; used by tests and, before anything is started, by the driver.

use super::{round::Plan, view::StreamView};
use ebb_storage::ids::PartId;
use std::collections::HashMap;

/// What is wrong with the plans; empty where nothing is.
pub fn violations(stream: &StreamView, plans: &[Plan]) -> Vec<String> {
    let parts: HashMap<PartId, (&str, bool)> =
        stream.partitions.iter().flat_map(|p| p.parts.iter().map(move |part| (part.id, (&*p.value, part.busy)))).collect();
    let mut taken: HashMap<PartId, &Plan> = HashMap::new();
    let mut found = Vec::new();
    for plan in plans {
        if plan.parts().is_empty() {
            found.push(format!("{} plan without parts", plan.kind()));
        }
        if matches!(plan, Plan::Merge { parts, .. } if parts.len() < 2) {
            found.push("merge of one part".to_owned());
        }
        for id in plan.parts() {
            let Some((partition, busy)) = parts.get(id) else {
                found.push(format!("{} takes part {id}, which is not there", plan.kind()));
                continue;
            };
            if *busy {
                found.push(format!("I6: {} takes part {id}, which a job has", plan.kind()));
            }
            if let Plan::Merge { partition: own, .. } | Plan::Prune { partition: own, .. } = plan
                && **own != **partition
            {
                found.push(format!("{} of partition {own} takes part {id} of partition {partition}", plan.kind()));
            }
            if let Some(other) = taken.insert(*id, plan) {
                found.push(format!("I6: part {id} is in a {} and a {}", other.kind(), plan.kind()));
            }
        }
    }
    found
}
