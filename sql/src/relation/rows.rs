//! The rows of `snapshots('s')`, `refs('s')` and `history('s')`: what the statement's cut knows of the stream's records and refs.

use crate::{
    Result,
    database::Shared,
    provider::Cut,
    system::sheet::{self, Cell, Column, Type::*},
};
use arrow::{array::RecordBatch, datatypes::SchemaRef};
use ebb_storage::{
    ids::{BranchId, Sn},
    manifest::{StreamState, edit::RecordInfo},
    refs::{Ancestry, RefKind},
};
use std::{collections::HashSet, sync::Arc};

const SNAPSHOTS: [Column; 7] = [
    ("sn", Int),
    ("parent_sn", Int),
    ("branch", Text),
    ("committed_at", Time),
    ("operation", Text),
    ("rows_added", Int),
    ("rows_deleted", Int),
];

pub(super) fn snapshots_schema() -> SchemaRef {
    sheet::schema(&SNAPSHOTS)
}

/// The state of the stream with the records that are in no part yet.
fn state(cut: &Cut, stream: &Arc<StreamState>) -> Arc<StreamState> {
    cut.view.state(stream.def.id).unwrap_or_else(|| stream.clone())
}

fn listed(state: &StreamState) -> impl Iterator<Item = &Arc<RecordInfo>> {
    state.records.values().filter(|r| state.readable.contains(r.sn))
}

pub(super) fn snapshots(cut: &Cut, stream: &Arc<StreamState>) -> Result<RecordBatch> {
    let state = state(cut, stream);
    let mut rows: Vec<[Cell; 7]> = Vec::new();
    for record in listed(&state) {
        rows.push([
            record.sn.0.into(),
            parent(record.parent),
            branch_name(&state, record.branch).into(),
            record.time.into(),
            record.verb.to_string().into(),
            record.rows_added.into(),
            record.rows_deleted.into(),
        ]);
    }
    sheet::batch(&SNAPSHOTS, &rows)
}

/// The first record of all has none.
fn parent(sn: Sn) -> Cell {
    (sn > Sn(0)).then_some(sn.0).into()
}

/// Of a branch that is gone its number is left.
pub(crate) fn branch_name(state: &StreamState, id: BranchId) -> String {
    if id == BranchId::MAIN {
        return "main".to_owned();
    }
    let named = state.refs.values().find(|r| r.kind == RefKind::Branch && r.cut.branch == id);
    named.map_or_else(|| format!("branch {id}"), |r| r.name.clone())
}

const HISTORY: [Column; 4] = [("made_current_at", Time), ("sn", Int), ("parent_sn", Int), ("is_current_ancestor", Flag)];

pub(super) fn history_schema() -> SchemaRef {
    sheet::schema(&HISTORY)
}

pub(super) fn history(cut: &Cut, stream: &Arc<StreamState>) -> Result<RecordBatch> {
    let state = state(cut, stream);
    let ancestry = Ancestry::of(&state);
    let head = state.head_of(BranchId::MAIN);
    let ancestors: HashSet<Sn> = ancestry.walk(head).map(|step| step.sns.to).collect();
    let mut rows: Vec<[Cell; 4]> = Vec::new();
    for record in listed(&state).filter(|r| r.branch == BranchId::MAIN) {
        rows.push([record.time.into(), record.sn.0.into(), parent(record.parent), ancestors.contains(&record.sn).into()]);
    }
    sheet::batch(&HISTORY, &rows)
}

const REFS: [Column; 8] = [
    ("name", Text),
    ("type", Text),
    ("sn", Int),
    ("created_at", Time),
    ("max_ref_age_ms", Int),
    ("min_snapshots_to_keep", Int),
    ("max_snapshot_age_ms", Int),
    ("held_bytes", Int),
];

pub(super) fn refs_schema() -> SchemaRef {
    sheet::schema(&REFS)
}

pub(super) fn refs(shared: &Shared, cut: &Cut, stream: &Arc<StreamState>) -> Result<RecordBatch> {
    let ms = |age: Option<i64>| age.map_or(Cell::Null, Cell::Int);
    let mut rows: Vec<[Cell; 8]> = Vec::new();
    for r in shared.engine.refs(&cut.view, stream.def.id) {
        rows.push([
            r.name.into(),
            if r.kind == RefKind::Tag { "TAG" } else { "BRANCH" }.into(),
            r.sn.0.into(),
            r.created_at.into(),
            ms(r.max_ref_age_ms),
            r.min_snapshots_to_keep.into(),
            ms(r.max_snapshot_age_ms),
            r.held_bytes.into(),
        ]);
    }
    sheet::batch(&REFS, &rows)
}
