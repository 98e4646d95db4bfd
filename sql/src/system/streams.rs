//! `system.streams`: a row for each stream.

use super::sheet::{self, Cell, Column, Type::*};
use crate::{Result, database::Shared, provider::Cut};
use arrow::{array::RecordBatch, datatypes::SchemaRef};
use ebb_engine::{LivePart, StreamView};
use ebb_storage::{Timestamp, ids::Sn, lineage::SnSet, manifest::Manifest, part::meta::Origin};

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
    let seen: u64 = view.parts.iter().map(seen_rows).sum();
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
        view.parts.iter().map(|p| share(p.meta.placement.bytes, seen_rows(p), p.meta.rows)).sum::<u64>().into(),
        tail.into(),
        view.parts.len().into(),
        view.head_sn.0.into(),
        view.applied_sn.0.into(),
        from.map(|sn| sn.0).into(),
        from.and_then(|sn| time_of(view, sn)).into(),
        def.created_at.into(),
    ]
}

/// Rows of the part that main's head sees; of records that it sees in part, their share.
fn seen_rows(part: &LivePart) -> u64 {
    let of_records = |o: &Origin| match &part.sns {
        None => o.rows,
        Some(sns) => {
            let seen = sns.intersection(&SnSet::new([o.sns]));
            let count = seen.ranges().iter().map(|r| r.to.0 - r.after.0).sum();
            share(o.rows, count, o.sns.to.0.saturating_sub(o.sns.after.0))
        }
    };
    let rows: u64 = part.meta.origins.iter().map(of_records).sum();
    rows.saturating_sub(part.hidden.as_ref().map_or(0, |h| h.len()))
}

/// `part` of `whole`, of `all`, rounded.
fn share(all: u64, part: u64, whole: u64) -> u64 {
    let whole = u128::from(whole.max(1));
    let share = (u128::from(all) * u128::from(part) + whole / 2) / whole;
    u64::try_from(share).unwrap_or(all)
}

/// When the record of `sn` was made; of records that were summed up, but the first, when the last of them was.
fn time_of(view: &StreamView, sn: Sn) -> Option<Timestamp> {
    view.state.line_of(sn).map(|r| r.time_of(sn))
}
