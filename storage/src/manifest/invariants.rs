//! What must hold of every manifest, as one function for tests, for `ebb check` and, in debug builds, for every commit.

use crate::{
    ids::{BranchId, Sn},
    manifest::state::{Manifest, StreamState},
    refs::RefKind,
};

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
        found.extend(history(state).into_iter().map(|what| format!("I8: {name}: {what}")));
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

/// What is wrong with refs, heads, lineages and the list of what can be read.
fn history(state: &StreamState) -> Vec<String> {
    let mut found = Vec::new();
    for r in state.refs.values() {
        let (kind, name) = (r.kind.word(), &r.name);
        if !state.lineages.contains_key(&r.cut.branch) {
            found.push(format!("{kind} '{name}' is of branch {}, which sees nothing", r.cut.branch));
        }
        let at = if r.kind == RefKind::Tag { r.cut.sn } else { state.head_of(r.cut.branch) };
        if at > Sn(0) && (!state.readable.contains(at) || state.line_of(at).is_none()) {
            found.push(format!("{kind} '{name}' stands at {at}, which cannot be read"));
        }
        if r.kind == RefKind::Branch && r.cut.branch >= state.next_branch {
            found.push(format!("{kind} '{name}' has the id {}, which is still to be given", r.cut.branch));
        }
    }
    for (branch, lineages) in state.lineages.iter() {
        let written = state.records.values().any(|r| r.branch == *branch);
        if *branch != BranchId::MAIN && state.branch(*branch).is_none() && !written {
            found.push(format!("branch {branch} has a lineage, and neither a ref nor a record"));
        }
        if lineages.is_empty() || lineages.windows(2).any(|pair| pair[0].from >= pair[1].from) {
            found.push(format!("the lineages of branch {branch} do not follow each other"));
        }
    }
    for r in state.records.values() {
        if state.heads.get(&r.branch).is_none_or(|head| *head < r.sn) {
            found.push(format!("record {} is newer than the head of branch {}", r.sn, r.branch));
        }
        if !r.sns().any(|sns| state.readable.touches(sns)) {
            found.push(format!("record {} is listed and cannot be read", r.sn));
        }
    }
    if let Some(newest) = state.readable.last().filter(|sn| *sn > state.applied_sn) {
        found.push(format!("{newest} can be read, and applied is {}", state.applied_sn));
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
