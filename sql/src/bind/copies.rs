//! DEDUPLICATE [BY c, ...]: the columns in which rows are the same.

use crate::{Error, Result, nearest, sqlstate, statement::Deduplicate};
use ebb_engine::Copies;
use ebb_storage::{
    ids::ColumnId,
    stream_def::{StreamDef, TP_SN, TP_TIME},
};

/// # Errors
/// `42703` with the nearest name; `42P10` for a column that no row stores, and for the sn.
pub fn bind(of: &Deduplicate, def: &StreamDef) -> Result<Copies> {
    let schema_version = def.schema_version;
    let Deduplicate::By(names) = of else { return Ok(Copies { by: None, schema_version }) };
    let mut by = Vec::with_capacity(names.len());
    for name in names {
        let refused = |why: String| Error::invalid(why).with_sqlstate("42P10").at(name.position);
        let id = match (name.as_str(), def.column(name.as_str())) {
            (_, Some(c)) if c.is_alias() => {
                let computed = c.default.as_ref().map_or("", |d| d.expr.as_str());
                return Err(refused(format!("column '{}' is computed when it is read: name the columns of {computed}", c.name)));
            }
            (_, Some(c)) => c.id,
            (TP_TIME, None) => ColumnId::TP_TIME,
            (TP_SN, None) => return Err(refused("_tp_sn is another one for every record: no rows would be the same".to_owned())),
            (unknown, None) => {
                let known = def.stored().map(|c| c.name.as_str()).chain([TP_TIME]);
                let near = nearest::did_you_mean(unknown, known);
                let message = format!("column '{unknown}' does not exist in {}{near}", def.full_name());
                return Err(Error::invalid(message).with_sqlstate(sqlstate::UNDEFINED_COLUMN).at(name.position));
            }
        };
        if !by.contains(&id) {
            by.push(id);
        }
    }
    Ok(Copies { by: Some(by), schema_version })
}
