//! What must hold of every manifest, as one function for tests, for `ebb check` and, in debug builds, for every commit.

use crate::manifest::state::Manifest;

/// What is violated, with the invariant's id; empty where all is well.
pub fn violations(m: &Manifest) -> Vec<String> {
    let mut found = Vec::new();
    for state in m.streams() {
        let name = state.def.full_name();
        let mut listed = 0;
        for (value, partition) in state.partitions.iter() {
            listed += partition.parts.size();
            for id in partition.parts.iter() {
                match state.parts.get(id) {
                    None => found.push(format!("I1: {name}: partition {value} lists part {id}, which has no placement")),
                    Some(p) if p.partition != *value => found.push(format!("I1: {name}: part {} stands in partition {value}", p.name)),
                    Some(_) => {}
                }
            }
            if partition.parts.is_empty() {
                found.push(format!("I1: {name}: partition {value} is empty and still listed"));
            }
        }
        if listed != state.parts.size() {
            found.push(format!("I1: {name}: {} parts, {listed} of them in partitions", state.parts.size()));
        }
        for part in state.parts.values() {
            if m.disk_name(part.placement.disk).is_none() {
                found.push(format!("I1: {name}: part {} lies on disk {}, which is unknown", part.name, part.placement.disk));
            }
            if m.graveyard.contains_key(&(part.stream, part.id, part.placement.generation)) {
                found.push(format!("I1: {name}: part {} is both listed and removed", part.name));
            }
            if part.max_sn() > state.applied_sn {
                found.push(format!("I3: {name}: part {} holds sn {}, applied is {}", part.name, part.max_sn(), state.applied_sn));
            }
            let (in_groups, in_origins) = (part.row_groups.iter().sum::<u64>(), part.origins.iter().map(|o| o.rows).sum::<u64>());
            if in_groups != part.rows || in_origins != part.rows || part.rows == 0 {
                found.push(format!(
                    "I4: {name}: part {} has {} rows, {in_groups} in row groups, {in_origins} in origins",
                    part.name, part.rows
                ));
            }
        }
        if m.policy_of(&state.def).is_err() {
            found.push(format!("{name}: storage policy '{}' does not exist", Manifest::policy_name(&state.def)));
        }
        if m.stream_named(&state.def.database, &state.def.name).map(|s| s.def.id) != Some(state.def.id) {
            found.push(format!("I2: {name}: the name leads to another stream"));
        }
        if state.def.id >= m.next_stream {
            found.push(format!("I2: {name}: id {} is still to be given", state.def.id));
        }
    }
    for grave in m.graveyard.values().filter(|g| m.disk_name(g.part.placement.disk).is_none()) {
        found.push(format!("I1: removed part {} lies on disk {}, which is unknown", grave.part.name, grave.part.placement.disk));
    }
    for policy in m.policies.values() {
        if policy.volumes.is_empty() || policy.volumes.iter().any(|v| v.disks.is_empty()) {
            found.push(format!("storage policy '{}' has an empty volume, or none", policy.name));
        }
        for disk in policy.volumes.iter().flat_map(|v| &v.disks).filter(|d| m.disk_id(d).is_none()) {
            found.push(format!("storage policy '{}' names disk '{disk}', which is unknown", policy.name));
        }
    }
    for (id, disk) in m.disks.iter() {
        if *id != disk.id || *id >= m.next_disk || *id == crate::ids::DiskId::DEFAULT {
            found.push(format!("I2: disk '{}' has id {id}, which is still to be given or another's", disk.name));
        }
    }
    found
}

/// The part of [`violations`] that a commit can have broken, at a cost that follows the commit and not the manifest.
pub fn quick(m: &Manifest, commit: &super::edit::Commit) -> Vec<String> {
    use super::edit::Edit;
    let mut found = Vec::new();
    for edit in &commit.edits {
        let Edit::AddPart(part) = edit else { continue };
        let Some(state) = m.stream(part.stream) else { continue };
        if part.max_sn() > state.applied_sn {
            found.push(format!("I3: part {} holds sn {}, applied is {}", part.name, part.max_sn(), state.applied_sn));
        }
        if part.rows == 0 || part.row_groups.iter().sum::<u64>() != part.rows {
            found.push(format!("I4: part {} has {} rows", part.name, part.rows));
        }
    }
    found
}
