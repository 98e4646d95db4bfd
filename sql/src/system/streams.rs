//! `system.streams`: a row for each stream.

use super::sheet::{self, Cell, Column, Type::*};
use crate::{Result, database::Shared, provider::Cut};
use arrow::{array::RecordBatch, datatypes::SchemaRef};
use ebb_engine::StreamView;
use ebb_storage::{Timestamp, ids::Sn, manifest::Manifest};

const COLUMNS: [Column; 15] = [
    ("database", Text),
    ("name", Text),
    ("create_query", Text),
    ("partition_key", Text),
    ("sorting_key", Text),
    ("storage_policy", Text),
    ("total_rows", Int),
    ("live_bytes", Int),
    ("tail_rows", Int),
    ("parts", Int),
    ("head_sn", Int),
    ("applied_sn", Int),
    ("history_from_sn", Int),
    ("history_from_time", Time),
    ("created_at", Time),
];

pub(super) fn schema() -> SchemaRef {
    sheet::schema(&COLUMNS)
}

pub(super) fn rows(_: &Shared, cut: &Cut) -> Result<RecordBatch> {
    let views = cut.view.streams().filter_map(|s| cut.view.stream(s.def.id));
    let rows: Vec<_> = views.map(|v| row(&v)).collect();
    sheet::batch(&COLUMNS, &rows)
}

fn row(view: &StreamView) -> [Cell; COLUMNS.len()] {
    let def = &view.def;
    let seen: u64 = view.parts.iter().map(|p| p.meta.rows - p.hidden.as_ref().map_or(0, |h| h.len()).min(p.meta.rows)).sum();
    let tail: u64 = view.tail.iter().map(|t| t.rows.num_rows() as u64).sum();
    let policy = Manifest::policy_name(def);
    let from = view.state.history_from();
    [
        def.database.as_str().into(),
        def.name.as_str().into(),
        crate::format::create_stream(def).into(),
        def.partition_by.join(", ").into(),
        def.order_by.join(", ").into(),
        policy.into(),
        (seen + tail).into(),
        view.parts.iter().map(|p| p.meta.placement.bytes).sum::<u64>().into(),
        tail.into(),
        view.parts.len().into(),
        view.head_sn.0.into(),
        view.applied_sn.0.into(),
        from.map(|sn| sn.0).into(),
        from.and_then(|sn| time_of(view, sn)).into(),
        def.created_at.into(),
    ]
}

/// When the record of `sn` was made; records that were summed up share their line's time.
fn time_of(view: &StreamView, sn: Sn) -> Option<Timestamp> {
    view.state.records.range(sn..).next().map(|(_, r)| r.time)
}
