//! `system.stream_settings`: every setting of every stream, with the value that holds.

use super::sheet::{self, Cell, Column, Type::*};
use crate::{Result, database::Shared, provider::Cut};
use arrow::{array::RecordBatch, datatypes::SchemaRef};
use ebb_engine::settings::{SETTINGS, Scope};

const COLUMNS: [Column; 5] = [("database", Text), ("stream", Text), ("name", Text), ("value", Text), ("default", Text)];

pub(super) fn schema() -> SchemaRef {
    sheet::schema(&COLUMNS)
}

pub(super) fn rows(_: &Shared, cut: &Cut) -> Result<RecordBatch> {
    let mut rows: Vec<[Cell; COLUMNS.len()]> = Vec::new();
    for stream in cut.view.streams() {
        for setting in SETTINGS.iter().filter(|s| s.scope == Scope::Stream) {
            let default = setting.default_text();
            let value = stream.def.settings.get(setting.name).map(super::settings::text).or_else(|| default.clone());
            let def = &stream.def;
            rows.push([def.database.as_str().into(), def.name.as_str().into(), setting.name.into(), value.into(), default.into()]);
        }
    }
    sheet::batch(&COLUMNS, &rows)
}
