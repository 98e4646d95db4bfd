//! `system.lifecycle_log`: what rules did to rows, oldest first.

use super::sheet::{self, Cell, Column, Type::*};
use crate::{Result, database::Shared, provider::Cut};
use arrow::{array::RecordBatch, datatypes::SchemaRef};

const COLUMNS: [Column; 14] = [
    ("event_time", Time),
    ("database", Text),
    ("stream", Text),
    ("rule", Text),
    ("rule_fingerprint", Text),
    ("action", Text),
    ("part", Text),
    ("rows_before", Int),
    ("rows_after", Int),
    ("bytes_before", Int),
    ("bytes_after", Int),
    ("reason", Text),
    ("duration_ms", Int),
    ("error", Text),
];

pub(super) fn schema() -> SchemaRef {
    sheet::schema(&COLUMNS)
}

pub(super) fn rows(_: &Shared, cut: &Cut) -> Result<RecordBatch> {
    let row = |r: &ebb_storage::manifest::edit::LifecycleLogRow| {
        [
            r.time.into(),
            r.database.as_str().into(),
            r.stream.as_str().into(),
            r.rule.as_str().into(),
            r.fingerprint.to_string().into(),
            r.action.as_str().into(),
            r.part.as_str().into(),
            r.rows_before.into(),
            r.rows_after.into(),
            r.bytes_before.into(),
            r.bytes_after.into(),
            r.reason.as_str().into(),
            r.duration_ms.into(),
            r.error.as_str().into(),
        ]
    };
    let rows: Vec<[Cell; COLUMNS.len()]> = cut.view.manifest().lifecycle_log.iter().map(|r| row(r)).collect();
    sheet::batch(&COLUMNS, &rows)
}
