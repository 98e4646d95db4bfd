//! `system.columns`: a row for each column of each stream.

use super::sheet::{self, Cell, Column, Type::*};
use crate::{Result, database::Shared, provider::Cut};
use arrow::{array::RecordBatch, datatypes::SchemaRef};
use ebb_storage::stream_def::{ColumnDef, DefaultKind, StreamDef};

const COLUMNS: [Column; 10] = [
    ("database", Text),
    ("stream", Text),
    ("name", Text),
    ("position", Int),
    ("type", Text),
    ("default_kind", Text),
    ("default_expression", Text),
    ("codec", Text),
    ("ttl", Text),
    ("comment", Text),
];

pub(super) fn schema() -> SchemaRef {
    sheet::schema(&COLUMNS)
}

pub(super) fn rows(_: &Shared, cut: &Cut) -> Result<RecordBatch> {
    let of = |def: &StreamDef| def.columns.iter().enumerate().map(|(i, c)| row(def, i, c)).collect::<Vec<_>>();
    let rows: Vec<_> = cut.view.streams().flat_map(|s| of(&s.def)).collect();
    sheet::batch(&COLUMNS, &rows)
}

fn row(def: &StreamDef, index: usize, column: &ColumnDef) -> [Cell; COLUMNS.len()] {
    let kind = column.default.as_ref().map(|d| match d.kind {
        DefaultKind::Default => "DEFAULT",
        DefaultKind::Materialized => "MATERIALIZED",
        DefaultKind::Alias => "ALIAS",
    });
    let ty = if column.nullable { format!("nullable({})", column.ty) } else { column.ty.to_string() };
    [
        def.database.as_str().into(),
        def.name.as_str().into(),
        column.name.as_str().into(),
        (index + 1).into(),
        ty.into(),
        kind.unwrap_or("").into(),
        column.default.as_ref().map_or("", |d| d.expr.as_str()).into(),
        column.codec.map(|c| c.to_string()).unwrap_or_default().into(),
        column.ttl.as_ref().map_or("", |t| &t.when).into(),
        column.comment.as_str().into(),
    ]
}
