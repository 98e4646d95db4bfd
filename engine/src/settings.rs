//! Every setting there is: name, scope, kind, default, meaning; and typed views of those the engine reads.
//!
//! Unknown names are refused with the nearest known one, values out of range with the range. Nothing is silently ignored.

mod table;
mod views;

pub use table::{Default, Kind, SETTINGS, Scope, Setting};
pub use views::{ServerSettings, StreamSettings, max_ref_age_ms};

use crate::nearest;
use ebb_storage::{Error, Result, stream_def::SettingValue};

/// The setting of that name in that scope.
///
/// # Errors
/// `Invalid` naming the nearest known one.
pub fn find(scope: Scope, name: &str) -> Result<&'static Setting> {
    let lower = name.to_ascii_lowercase();
    if let Some(found) = SETTINGS.iter().find(|s| s.scope == scope && s.name.eq_ignore_ascii_case(&lower)) {
        return Ok(found);
    }
    if let Some(other) = SETTINGS.iter().find(|s| s.name.eq_ignore_ascii_case(&lower)) {
        return Err(Error::invalid(format!("'{name}' is a setting of {}, not of {}", other.scope, scope)));
    }
    let names = SETTINGS.iter().filter(|s| s.scope == scope).map(|s| s.name);
    let near = nearest::nearest(&lower, names).map(|n| format!(": did you mean '{n}'?")).unwrap_or_default();
    Err(Error::invalid(format!("unknown {scope} setting '{name}'{near}")))
}

/// `value` as the setting keeps it.
///
/// # Errors
/// `Invalid` for an unknown name, a wrong type or a value out of range.
pub fn check(scope: Scope, name: &str, value: &SettingValue) -> Result<SettingValue> {
    let setting = find(scope, name)?;
    setting.accept(value)
}

#[cfg(test)]
mod tests;

/// A stream with default settings, for tests of the files that take one.
#[cfg(test)]
pub(crate) fn tests_def() -> ebb_storage::stream_def::StreamDef {
    use ebb_storage::{Timestamp, ids::*, stream_def::StreamDef};
    StreamDef {
        id: StreamId(1),
        database: "default".into(),
        name: "s".into(),
        columns: vec![],
        next_column: ColumnId(1),
        schema_version: SchemaVersion(1),
        policy_version: 1,
        partition_by: vec![],
        order_by: vec![],
        primary_key: vec![],
        series_key: vec![],
        indexes: vec![],
        policy: std::default::Default::default(),
        settings: std::default::Default::default(),
        comment: String::new(),
        created_at: Timestamp(0),
    }
}
