//! `system.part_log`: what happened to parts, oldest first.

use super::sheet::{self, Cell, Column, Type::*};
use crate::{Result, database::Shared, provider::Cut};
use arrow::{array::RecordBatch, datatypes::SchemaRef};
use ebb_storage::manifest::edit::PartLogRow;

const COLUMNS: [Column; 15] = [
    ("event_time", Time),
    ("event_type", Text),
    ("database", Text),
    ("stream", Text),
    ("part", Text),
    ("source_parts", Text),
    ("partition", Text),
    ("disk_name", Text),
    ("rows", Int),
    ("bytes", Int),
    ("rows_read", Int),
    ("bytes_read", Int),
    ("duration_ms", Int),
    ("reason", Text),
    ("error", Text),
];

pub(super) fn schema() -> SchemaRef {
    sheet::schema(&COLUMNS)
}

pub(super) fn rows(_: &Shared, cut: &Cut) -> Result<RecordBatch> {
    // The names of events are those of the variants.
    let row = |r: &PartLogRow| {
        [
            r.time.into(),
            format!("{:?}", r.event).into(),
            r.database.as_str().into(),
            r.stream.as_str().into(),
            r.part.as_str().into(),
            r.source_parts.join(", ").into(),
            r.partition.as_str().into(),
            r.disk.as_str().into(),
            r.rows.into(),
            r.bytes.into(),
            r.rows_read.into(),
            r.bytes_read.into(),
            r.duration_ms.into(),
            r.reason.as_str().into(),
            r.error.as_str().into(),
        ]
    };
    let rows: Vec<[Cell; COLUMNS.len()]> = cut.view.manifest().part_log.iter().map(|r| row(r)).collect();
    sheet::batch(&COLUMNS, &rows)
}
