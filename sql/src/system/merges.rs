//! `system.merges`: the jobs that run at this moment, whatever the cut.

use super::sheet::{self, Cell, Column, Type::*};
use crate::{Result, database::Shared, provider::Cut};
use arrow::{array::RecordBatch, datatypes::SchemaRef};

const COLUMNS: [Column; 11] = [
    ("database", Text),
    ("stream", Text),
    ("kind", Text),
    ("parts", Text),
    ("result_part", Text),
    ("elapsed_ms", Int),
    ("progress", Float),
    ("rows_read", Int),
    ("rows_written", Int),
    ("bytes_read", Int),
    ("bytes_written", Int),
];

pub(super) fn schema() -> SchemaRef {
    sheet::schema(&COLUMNS)
}

pub(super) fn rows(shared: &Shared, _: &Cut) -> Result<RecordBatch> {
    let row = |job: ebb_engine::RunningJob| {
        [
            job.database.into(),
            job.stream.into(),
            job.kind.into(),
            job.parts.join(", ").into(),
            job.result_part.into(),
            u64::try_from(job.elapsed.as_millis()).ok().into(),
            Cell::Float(job.progress),
            job.rows_read.into(),
            job.rows_written.into(),
            job.bytes_read.into(),
            job.bytes_written.into(),
        ]
    };
    let rows: Vec<[Cell; COLUMNS.len()]> = shared.engine.running().into_iter().map(row).collect();
    sheet::batch(&COLUMNS, &rows)
}
