//! `system.queries`: the statements that run at this moment, of all sessions, whatever the cut.

use super::sheet::{self, Cell, Column, Type::*};
use crate::{Result, database::Shared, provider::Cut};
use arrow::{array::RecordBatch, datatypes::SchemaRef};

const COLUMNS: [Column; 8] = [
    ("id", Int),
    ("session_id", Int),
    ("user_name", Text),
    ("application_name", Text),
    ("database", Text),
    ("started_at", Time),
    ("elapsed_ms", Int),
    ("query", Text),
];

pub(super) fn schema() -> SchemaRef {
    sheet::schema(&COLUMNS)
}

pub(super) fn rows(shared: &Shared, _: &Cut) -> Result<RecordBatch> {
    let running = shared.running.all();
    let row = |s: &std::sync::Arc<crate::session::Entry>| -> [Cell; COLUMNS.len()] {
        [
            s.id.into(),
            s.session.into(),
            s.user.as_str().into(),
            s.application_name.as_str().into(),
            s.database.as_str().into(),
            s.started_at.into(),
            s.elapsed_ms().into(),
            s.text.as_str().into(),
        ]
    };
    let rows: Vec<[Cell; COLUMNS.len()]> = running.iter().map(row).collect();
    sheet::batch(&COLUMNS, &rows)
}
