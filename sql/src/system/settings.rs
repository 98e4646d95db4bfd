//! `system.settings`: every setting there is, with the value that holds; of streams and sessions, the one they begin with.

use super::sheet::{self, Cell, Column, Type::*};
use crate::{Result, database::Shared, provider::Cut};
use arrow::{array::RecordBatch, datatypes::SchemaRef};
use ebb_engine::settings::{SETTINGS, Scope, Setting};
use ebb_storage::stream_def::SettingValue;

const COLUMNS: [Column; 5] = [("name", Text), ("value", Text), ("default", Text), ("scope", Text), ("description", Text)];

pub(super) fn schema() -> SchemaRef {
    sheet::schema(&COLUMNS)
}

pub(super) fn rows(shared: &Shared, _: &Cut) -> Result<RecordBatch> {
    let row = |s: &Setting| {
        let own = (s.scope == Scope::Server).then(|| shared.engine.server_setting(s.name)).flatten().as_ref().map(text);
        let default = s.default_text();
        [s.name.into(), own.or_else(|| default.clone()).into(), default.into(), s.scope.to_string().into(), s.description.into()]
    };
    let rows: Vec<[Cell; COLUMNS.len()]> = SETTINGS.iter().map(row).collect();
    sheet::batch(&COLUMNS, &rows)
}

/// As SHOW prints it: flags are 0 and 1.
pub(super) fn text(value: &SettingValue) -> String {
    match value {
        SettingValue::Bool(b) => i32::from(*b).to_string(),
        SettingValue::Int(i) => i.to_string(),
        SettingValue::Text(t) => t.clone(),
    }
}
