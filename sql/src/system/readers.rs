//! `system.readers`: a row for each registered reader, with how far it is behind.

use super::sheet::{self, Cell, Column, Type::*};
use crate::{Result, database::Shared, provider::Cut};
use arrow::{array::RecordBatch, datatypes::SchemaRef};

const COLUMNS: [Column; 8] = [
    ("name", Text),
    ("database", Text),
    ("stream", Text),
    ("sn", Int),
    ("lag_rows", Int),
    ("lag_ms", Int),
    ("max_lag_ms", Int),
    ("state", Text),
];

pub(super) fn schema() -> SchemaRef {
    sheet::schema(&COLUMNS)
}

pub(super) fn rows(shared: &Shared, _: &Cut) -> Result<RecordBatch> {
    let mut rows: Vec<[Cell; 8]> = Vec::new();
    for r in shared.engine.readers() {
        rows.push([
            r.name.into(),
            r.database.into(),
            r.stream.into(),
            r.sn.0.into(),
            r.lag_rows.into(),
            r.lag_ms.into(),
            r.max_lag_ms.map_or(Cell::Null, Cell::Int),
            r.state.into(),
        ]);
    }
    sheet::batch(&COLUMNS, &rows)
}
