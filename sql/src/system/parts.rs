//! `system.parts`: a row for each part: active ones, and removed ones whose objects are not deleted yet.

use super::sheet::{self, Cell, Column, Type::*};
use crate::{Result, database::Shared, provider::Cut};
use arrow::{array::RecordBatch, datatypes::SchemaRef};
use ebb_engine::{ErrorKind, Explained, PartRows, StreamView};
use ebb_storage::{Timestamp, ids::StreamId, manifest::state::StreamState, part::PartMeta};
use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

const COLUMNS: [Column; 34] = [
    ("database", Text),
    ("stream", Text),
    ("name", Text),
    ("partition", Text),
    ("active", Flag),
    ("rows", Int),
    ("deleted_rows", Int),
    ("expired_rows", Int),
    ("bytes_on_disk", Int),
    ("uncompressed_bytes", Int),
    ("disk_name", Text),
    ("volume_name", Text),
    ("path", Text),
    ("compression_codec", Text),
    ("part_type", Text),
    ("level", Int),
    ("branch", Text),
    ("min_sn", Int),
    ("max_sn", Int),
    ("min_time", Time),
    ("max_time", Time),
    ("created_at", Time),
    ("modified_at", Time),
    ("removed_at", Time),
    ("refcount", Int),
    ("due_rows", Int),
    ("due_min", Time),
    ("due_max", Time),
    ("never_due_rows", Int),
    ("retention_marker", Text),
    ("lifecycle_state", Text),
    ("lifecycle_reason", Text),
    ("next_action", Text),
    ("next_action_at", Time),
];

pub(super) fn schema() -> SchemaRef {
    sheet::schema(&COLUMNS)
}

pub(super) fn rows(shared: &Shared, cut: &Cut) -> Result<RecordBatch> {
    listed(shared, cut, None)
}

pub(super) fn of_stream(shared: &Shared, cut: &Cut, stream: StreamId) -> Result<RecordBatch> {
    listed(shared, cut, Some(stream))
}

fn listed(shared: &Shared, cut: &Cut, only: Option<StreamId>) -> Result<RecordBatch> {
    let wanted = |id: StreamId| only.is_none_or(|only| only == id);
    let mut rows = Vec::new();
    for view in cut.view.streams().filter(|s| wanted(s.def.id)).filter_map(|s| cut.view.stream(s.def.id)) {
        let explained = match shared.engine.explain_lifecycle(view.def.id, cut.now) {
            // Dropped since the cut was made.
            Err(e) if e.kind() == ErrorKind::NotFound => Vec::new(),
            other => other?,
        };
        let next = most_urgent(explained);
        for meta in active(&view) {
            let fate = next.get(&meta.name);
            rows.push(row(shared, Some(&view.state), &meta, None, fate));
        }
    }
    for grave in cut.view.manifest().graveyard.values() {
        let state = cut.view.manifest().stream(grave.part.stream);
        if !wanted(grave.part.stream) || state.is_some_and(|s| s.def.is_internal()) {
            continue;
        }
        rows.push(row(shared, state.map(|s| &**s), &grave.part, Some(grave.removed_at), None));
    }
    sheet::batch(&COLUMNS, &rows)
}

/// Listed parts, and those that records of the tail name.
fn active(view: &StreamView) -> Vec<Arc<PartMeta>> {
    let mut parts: Vec<Arc<PartMeta>> = view.state.parts.values().cloned().collect();
    let listed: HashSet<_> = parts.iter().map(|p| p.id).collect();
    parts.extend(view.parts.iter().filter(|p| !listed.contains(&p.meta.id)).map(|p| p.meta.clone()));
    parts
}

/// Of each part the line of the rule that acts first.
fn most_urgent(lines: Vec<Explained>) -> HashMap<String, Explained> {
    let rank = |e: &Explained| match e.state.as_str() {
        // Done, or nothing that will ever be.
        "not_due" if e.action == "none" => 3,
        "not_due" => 1,
        // Other rules are in force.
        "superseded_rule" | "rule_inert" => 2,
        _ => 0,
    };
    let at = |e: &Explained| (rank(e), e.next_attempt_at.or(e.due_at).unwrap_or(Timestamp::MAX));
    let mut next: HashMap<String, Explained> = HashMap::new();
    for line in lines {
        match next.get(&line.part) {
            Some(known) if at(known) <= at(&line) => {}
            _ => _ = next.insert(line.part.clone(), line),
        }
    }
    next
}

/// What the stream's present rules know of the part: rows concerned (of several rules the most), first, last, never.
fn due(state: Option<&StreamState>, meta: &PartMeta) -> [Cell; 4] {
    let rules = state.map(|s| s.def.rules()).unwrap_or_default();
    let facts: Vec<_> = rules.iter().filter_map(|r| meta.facts_of(r.fingerprint)).collect();
    [
        facts.iter().map(|f| f.rows).max().into(),
        facts.iter().filter_map(|f| f.earliest).min().into(),
        facts.iter().filter_map(|f| f.latest).max().into(),
        facts.iter().map(|f| f.never).min().into(),
    ]
}

fn row(
    shared: &Shared,
    state: Option<&StreamState>,
    meta: &PartMeta,
    removed_at: Option<Timestamp>,
    fate: Option<&Explained>,
) -> [Cell; COLUMNS.len()] {
    let place = shared.engine.place_of(meta);
    // Without its stream nobody sees anything of it.
    let of_main = state.map_or(PartRows { seen: 0, deleted: meta.rows, expired: 0 }, |s| shared.engine.part_rows(s, meta));
    let branch = branches(state, meta);
    let [due_rows, due_min, due_max, never] = due(state, meta);
    let known = |cell: &str| (!cell.is_empty()).then(|| cell.to_owned());
    [
        state.map(|s| s.def.database.as_str()).into(),
        state.map(|s| s.def.name.as_str()).into(),
        meta.name.as_str().into(),
        meta.partition.as_ref().into(),
        removed_at.is_none().into(),
        meta.rows.into(),
        of_main.deleted.into(),
        of_main.expired.into(),
        meta.placement.bytes.into(),
        meta.uncompressed_bytes.into(),
        place.disk.as_ref().into(),
        place.volume.into(),
        place.address.into(),
        meta.placement.codec.to_string().into(),
        "Wide".into(),
        u64::from(meta.level).into(),
        branch.into(),
        meta.min_sn().0.into(),
        meta.max_sn().0.into(),
        meta.min_time.into(),
        meta.max_time.into(),
        meta.written_at.into(),
        meta.modified_at.into(),
        removed_at.into(),
        place.readers.into(),
        due_rows,
        due_min,
        due_max,
        never,
        meta.retention_marker.map(|m| format!("{m:016x}")).into(),
        fate.map(|f| f.state.as_str()).into(),
        fate.and_then(|f| known(&f.reason)).into(),
        fate.map(|f| f.action.as_str()).filter(|a| *a != "none").into(),
        fate.filter(|f| f.action != "none").and_then(|f| f.next_attempt_at.or(f.due_at)).into(),
    ]
}

/// Those that wrote rows of it.
fn branches(state: Option<&StreamState>, meta: &PartMeta) -> String {
    let ids: std::collections::BTreeSet<_> = meta.origins.iter().map(|o| o.branch).collect();
    let name = |id| state.map_or_else(|| format!("branch {id}"), |s| crate::relation::branch_name(s, id));
    ids.into_iter().map(name).collect::<Vec<_>>().join(", ")
}
