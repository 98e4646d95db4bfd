//! Stream settings of CREATE and ALTER.

use crate::{
    Error, Result,
    expr::Compiler,
    sqlstate,
    statement::{Name, Setting},
};
use ebb_engine::settings::{self, Scope};
use ebb_storage::{
    disk::StoragePolicy,
    manifest::Manifest,
    stream_def::{SettingValue, StreamDef},
};
use std::sync::Arc;

pub fn set(def: &mut StreamDef, given: &[Setting], creating: bool, manifest: &Manifest) -> Result<()> {
    for setting in given {
        let known = find(&setting.name)?;
        if known.fixed && !creating {
            return Err(Error::invalid(format!("setting {} is fixed at CREATE", known.name)).at(setting.name.position));
        }
        let value = settings::check(Scope::Stream, known.name, &setting.value).map_err(|e| Error::from(e).at(setting.name.position))?;
        if let ("storage_policy", SettingValue::Text(name)) = (known.name, &value) {
            find_policy(manifest, name).map_err(|e| e.at(setting.name.position))?;
        }
        if value == SettingValue::Text("none".to_owned()) {
            def.settings.remove(known.name);
        } else {
            def.settings.insert(known.name.to_owned(), value);
        }
    }
    Ok(())
}

/// # Errors
/// `NotFound`, with the nearest name.
pub fn find_policy(manifest: &Manifest, name: &str) -> Result<Arc<StoragePolicy>> {
    manifest.policy(name).ok_or_else(|| ebb_engine::disks::no_policy(manifest, name).into())
}

pub fn reset(def: &mut StreamDef, names: &[Name]) -> Result<()> {
    for name in names {
        let known = find(name)?;
        if known.fixed {
            return Err(Error::invalid(format!("setting {} is fixed at CREATE", known.name)).at(name.position));
        }
        def.settings.remove(known.name);
    }
    Ok(())
}

fn find(name: &Name) -> Result<&'static settings::Setting> {
    settings::find(Scope::Stream, name.as_str()).map_err(|e| Error::from(e).with_sqlstate(sqlstate::UNDEFINED_OBJECT).at(name.position))
}

/// `event_time_column` must give a time on every row.
pub fn check_event_time(def: &StreamDef, compiler: &Compiler) -> Result<()> {
    let Some(SettingValue::Text(text)) = def.settings.get("event_time_column") else { return Ok(()) };
    let bound = compiler.bind(text, def).map_err(|e| e.context("setting event_time_column"))?;
    if !bound.ty.is_temporal() || matches!(bound.ty, arrow::datatypes::DataType::Interval(_) | arrow::datatypes::DataType::Duration(_)) {
        return Err(Error::invalid(format!("setting event_time_column: '{text}' is a {}, not a time", bound.ty))
            .with_sqlstate(sqlstate::DATATYPE_MISMATCH));
    }
    if bound.has_aggregate || bound.has_window || bound.has_subquery {
        return Err(Error::invalid(format!("setting event_time_column: '{text}' must be a function of the row")));
    }
    Ok(())
}
