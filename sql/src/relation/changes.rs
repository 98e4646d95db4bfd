//! `changes('s', from, to)` and `read('r')`: rows that the later of two cuts sees and the earlier does not, and with deletes the reverse.

use super::{About, table::Described};
use crate::{
    Error, Result,
    bind::argument,
    execute::append,
    provider::{Change, ChangesTable, StreamTable},
};
use datafusion::{catalog::TableProvider, common::ScalarValue};
use ebb_engine::StreamView;
use ebb_storage::{
    ids::{Sn, StreamId},
    stream_def::TP_TIME,
};
use std::sync::Arc;

/// `_tp_sn` is shown: it says which record brought a row.
pub(super) const HIDDEN: &[&str] = &[TP_TIME];

/// Values by place: stream, from, to, deletes.
pub(super) fn changes(about: &About, values: &[Option<ScalarValue>], unknown: bool) -> Result<Arc<dyn TableProvider>> {
    let known = |i: usize| values.get(i).and_then(Option::as_ref);
    let name = argument::text("stream of changes", known(0).unwrap_or(&ScalarValue::Null))?;
    let state = about.stream(&append::stream_name(&name)?)?;
    let deletes = known(3).map(|v| argument::flag("deletes of changes", v)).transpose()?.unwrap_or(false);
    match (known(1), known(2), unknown) {
        (Some(from), Some(to), false) => {
            let from = argument::sn("from of changes", from)?;
            between(about, state.def.id, from, Some(argument::sn("to of changes", to)?), deletes)
        }
        _ => Ok(Arc::new(Described(ChangesTable::columns(&state.def, about.hidden_columns, deletes)))),
    }
}

/// Value by place: reader.
pub(super) fn read(about: &About, values: &[Option<ScalarValue>]) -> Result<Arc<dyn TableProvider>> {
    let name = values.first().and_then(Option::as_ref).unwrap_or(&ScalarValue::Null);
    let name = argument::text("reader of read", name)?;
    let (stream, from) = about.session.shared.engine.reader(&about.cut.view, &name)?;
    between(about, stream, from, None, false)
}

/// To who asks before the values are there. A client that asks of its portal, once they are, is told.
pub(super) fn columns_unknown(function: &str, what: &str) -> Error {
    let message = format!("the columns of {function} are known once its {what} is: it is a parameter here, write the name");
    Error::invalid(message).with_sqlstate(crate::sqlstate::INDETERMINATE_DATATYPE)
}

/// `to`: main's head where it is not said.
fn between(about: &About, stream: StreamId, from: Sn, to: Option<Sn>, deletes: bool) -> Result<Arc<dyn TableProvider>> {
    let changes = about.cut.view.changes(stream, from, to)?;
    let table = |view: StreamView| StreamTable::new(about.session.shared.clone(), view, Vec::new(), true, about.cut.now);
    let def = changes.added.def.clone();
    let mut pieces = vec![(Change::Insert, table(changes.added))];
    if deletes {
        pieces.push((Change::Delete, table(changes.removed)));
    }
    Ok(Arc::new(ChangesTable::new(pieces, def, about.hidden_columns, deletes)))
}
