//! A stream at a cut, and the head of a branch.

use super::{About, HIDDEN, Relation, reference, table::Described};
use crate::{
    Error, Result,
    bind::argument,
    provider::{StreamTable, query_schema},
    sqlstate,
    statement::{StreamName, quote_text},
};
use arrow::datatypes::FieldRef;
use datafusion::{
    catalog::TableProvider,
    common::ScalarValue,
    sql::sqlparser::ast::{Expr, TableVersion, Value},
};
use ebb_engine::StreamView;
use ebb_storage::refs::AsOf;
use std::sync::Arc;

/// The head of `branch` of `stream`.
pub(super) fn branch(about: &About, name: &StreamName, stream: &StreamName, branch: &str) -> Result<Relation> {
    let state = about.stream(stream)?;
    let view = about.cut.branch(&state, branch)?;
    let (view, own) = about.cut.with_own(view);
    let provider = StreamTable::new(about.session.shared.clone(), view, own, about.hidden_columns, about.cut.now);
    let scanned = format!("{} branch {branch}", state.def.full_name());
    Ok(Relation { reference: reference(name), scanned, provider: Arc::new(provider), hidden: HIDDEN })
}

/// A stream with `VERSION AS OF` or `TIMESTAMP AS OF` behind it.
pub(super) fn versioned(about: &About, name: &StreamName, version: &TableVersion, open: &mut Vec<(Expr, FieldRef)>) -> Result<Relation> {
    if let Some((stream, branch)) = crate::bind::names::branch_of(name) {
        let message = format!("'{name}' is the head of a branch: write {stream} VERSION AS OF n, or {stream} VERSION AS OF '{branch}'");
        return Err(Error::invalid(message).with_sqlstate(sqlstate::WRONG_OBJECT_TYPE));
    }
    let (what, expr, ty) = match version {
        TableVersion::VersionAsOf(e) => ("VERSION AS OF", e, argument::version_field()),
        TableVersion::TimestampAsOf(e) | TableVersion::ForSystemTimeAsOf(e) => {
            ("TIMESTAMP AS OF", e, argument::plain(argument::moment_type()))
        }
        TableVersion::Function(_) | TableVersion::Changes { .. } => {
            return Err(Error::unsupported("AT, BEFORE and CHANGES: write VERSION AS OF n or TIMESTAMP AS OF t"));
        }
    };
    let state = about.stream(name)?;
    let full = state.def.full_name();
    let (scanned, provider): (String, Arc<dyn TableProvider>) = match about.value(what, expr)? {
        Some(value) => {
            let at = match argument::is_version(&ty) {
                true => as_of(&value, is_written(expr))?,
                false => AsOf::Time(argument::moment(what, &value)?),
            };
            let scanned = match &at {
                AsOf::Sn(sn) => format!("{full} VERSION AS OF {sn}"),
                AsOf::Name(name) => format!("{full} VERSION AS OF {}", quote_text(name)),
                AsOf::Time(t) => format!("{full} TIMESTAMP AS OF '{t}'"),
            };
            let view = of(about, &state, &at)?;
            about.session.lease(state.def.id, &at)?;
            let table = StreamTable::new(about.session.shared.clone(), view, Vec::new(), about.hidden_columns, about.cut.now);
            (scanned, Arc::new(table))
        }
        None => {
            open.push((expr.clone(), ty));
            (format!("{full} {what} {expr}"), Arc::new(Described(query_schema(&state.def, about.hidden_columns))))
        }
    };
    Ok(Relation { reference: reference(name), scanned, provider, hidden: HIDDEN })
}

fn of(about: &About, state: &ebb_storage::manifest::StreamState, at: &AsOf) -> Result<StreamView> {
    Ok(about.cut.view.stream_as_of(state.def.id, at, about.cut.now)?)
}

/// A text that is written or cast to is always a name; one that a client gave for a bare parameter may be the digits of an sn, since no
/// ref is called so.
fn as_of(value: &ScalarValue, written: bool) -> Result<AsOf> {
    let what = "VERSION AS OF";
    match value.try_as_str() {
        Some(Some(name)) if written || argument::digits(value).is_none() => Ok(AsOf::Name(name.to_owned())),
        Some(Some(_)) => argument::sn(what, value).map(AsOf::Sn),
        _ if value.data_type().is_integer() && !value.is_null() => argument::sn(what, value).map(AsOf::Sn),
        _ => {
            let found = if value.is_null() { "NULL".to_owned() } else { format!("a {}", crate::functions::type_name(&value.data_type())) };
            let message = format!("{what} takes an sn (a number) or the name of a tag or branch (a text), not {found}");
            Err(Error::invalid(message).with_sqlstate(sqlstate::DATATYPE_MISMATCH))
        }
    }
}

fn is_written(expr: &Expr) -> bool {
    !matches!(expr, Expr::Value(v) if matches!(v.value, Value::Placeholder(_)))
}
