//! `changes('s', from, to)` and `read('r')`: rows that the later of two cuts sees and the earlier does not, and with deletes the reverse.
//!
//! Guards: both cuts are of one branch and one layout of parts, so no row is missed or told twice; what rules remove is in neither.

use super::{About, table::Described};
use crate::{
    Error, Result,
    bind::argument,
    execute::append,
    provider::{Change, ChangesTable, StreamTable},
    sqlstate,
};
use arrow::{
    array::{AsArray, BooleanArray},
    compute::{filter, filter_record_batch},
    datatypes::Int64Type,
};
use datafusion::{catalog::TableProvider, common::ScalarValue};
use ebb_engine::{LivePart, StreamView, TailRows};
use ebb_storage::{
    ids::{BranchId, PartId, Sn, StreamId},
    lineage::{SnRange, SnSet},
    manifest::StreamState,
    part::RowSet,
    refs::{Ancestry, AsOf},
    stream_def::TP_TIME,
    verb::Verb,
};
use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

/// `_tp_sn` is shown: it says which record brought a row.
pub(super) const HIDDEN: &[&str] = &[TP_TIME];

/// Values by place: stream, from, to, deletes.
pub(super) fn changes(about: &About, values: &[Option<ScalarValue>], unknown: bool) -> Result<Arc<dyn TableProvider>> {
    let known = |i: usize| values.get(i).and_then(Option::as_ref);
    let name = argument::text("stream of changes", known(0).ok_or_else(|| columns_unknown("changes", "stream"))?)?;
    let state = about.stream(&append::stream_name(&name)?)?;
    let deletes = known(3).map(|v| argument::flag("deletes of changes", v)).transpose()?.unwrap_or(false);
    match (known(1), known(2), unknown) {
        (Some(from), Some(to), false) => {
            let from = argument::sn("from of changes", from)?;
            between(about, state.def.id, from, argument::sn("to of changes", to)?, deletes)
        }
        _ => Ok(Arc::new(Described(ChangesTable::columns(&state.def, about.hidden_columns, deletes)))),
    }
}

/// Value by place: reader.
pub(super) fn read(about: &About, values: &[Option<ScalarValue>]) -> Result<Arc<dyn TableProvider>> {
    let name = values.first().and_then(Option::as_ref).ok_or_else(|| columns_unknown("read", "reader"))?;
    let name = argument::text("reader of read", name)?;
    let (stream, from) = about.session.shared.engine.reader(&about.cut.view, &name)?;
    let state = about.cut.view.state(stream).ok_or_else(|| Error::conflict("the stream was dropped meanwhile"))?;
    between(about, stream, from, state.head_of(BranchId::MAIN), false)
}

fn columns_unknown(function: &str, what: &str) -> Error {
    Error::unsupported(format!("{function} of a {what} that is a parameter: its columns are not known before, write the name"))
}

fn between(about: &About, stream: StreamId, from: Sn, to: Sn, deletes: bool) -> Result<Arc<dyn TableProvider>> {
    let view = &about.cut.view;
    let state = view.state(stream).ok_or_else(|| Error::conflict("the stream was dropped meanwhile"))?;
    let of = |sn: Sn| -> Result<Option<StreamView>> {
        match sn {
            Sn(0) => Ok(None),
            sn => Ok(Some(view.stream_as_of(stream, &AsOf::Sn(sn), about.cut.now)?)),
        }
    };
    let (earlier, later) = (of(from)?, of(to)?);
    follows(&state, from, to)?;
    let head = || view.stream(stream).ok_or_else(|| Error::conflict("the stream was dropped meanwhile"));
    let nothing = || -> Result<StreamView> { Ok(with_rows(&head()?, Vec::new(), Vec::new())) };
    let (earlier, later) = (earlier.map_or_else(nothing, Ok)?, later.map_or_else(nothing, Ok)?);
    let table = |view: StreamView| StreamTable::new(about.session.shared.clone(), view, Vec::new(), true, about.cut.now);
    let mut pieces = vec![(Change::Insert, table(minus(&later, &earlier)))];
    if deletes {
        pieces.push((Change::Delete, table(minus(&earlier, &later))));
        pieces.push((Change::Delete, table(hidden_since(&later, &earlier))));
    }
    Ok(Arc::new(ChangesTable::new(pieces, later.def.clone(), about.hidden_columns, deletes)))
}

/// # Errors
/// Where the later cut does not stand on the earlier one.
fn follows(state: &StreamState, from: Sn, to: Sn) -> Result<()> {
    let ancestry = Ancestry::of(state);
    if ancestry.is_ancestor(from, to) {
        return Ok(());
    }
    let name = state.def.full_name();
    let common = ancestry.common(from, to);
    let newer = state.records.range(from.next()..).map(|(_, r)| r);
    let cut_off = newer.filter(|r| r.verb == Verb::Rollback && r.parent < from).find(|r| ancestry.is_ancestor(r.sn, to));
    let why = match cut_off {
        Some(rollback) => format!("rollback {} to {} cut it off", rollback.sn, rollback.parent),
        None if from > to => "it is the later one".to_owned(),
        None => "it is of another branch".to_owned(),
    };
    let message = format!("changes of {name} from {from} to {to}: {to} does not stand on {from}, {why}; both stand on {common}");
    Err(Error::invalid(message).with_sqlstate(sqlstate::OBJECT_NOT_IN_STATE))
}

/// `view` of these rows only.
fn with_rows(view: &StreamView, parts: Vec<LivePart>, tail: Vec<TailRows>) -> StreamView {
    let mut view = view.clone();
    (view.parts, view.tail) = (parts, tail);
    view
}

fn every() -> SnSet {
    SnSet::new([SnRange { after: Sn(0), to: Sn(u64::MAX) }])
}

fn by_id(view: &StreamView) -> HashMap<PartId, &LivePart> {
    view.parts.iter().map(|p| (p.meta.id, p)).collect()
}

/// Rows of records that `of` sees and `without` does not.
fn minus(of: &StreamView, without: &StreamView) -> StreamView {
    let known = by_id(without);
    let part = |p: &LivePart| -> Option<LivePart> {
        let Some(other) = known.get(&p.meta.id) else { return Some(p.clone()) };
        // All of its records are seen by both.
        let seen = other.sns.as_ref()?;
        let mut sns = p.sns.clone().unwrap_or_else(every);
        seen.ranges().iter().for_each(|r| sns.remove(*r));
        (!sns.is_empty()).then(|| LivePart { sns: Some(sns), ..p.clone() })
    };
    let told: HashSet<(BranchId, Sn)> = without.tail.iter().flat_map(|t| sns_of(t).into_iter().map(|sn| (t.branch, sn))).collect();
    let tail = of.tail.iter().filter_map(|t| without_records(t, &told));
    with_rows(of, of.parts.iter().filter_map(part).collect(), tail.collect())
}

/// `None` where nothing is left.
fn without_records(rows: &TailRows, told: &HashSet<(BranchId, Sn)>) -> Option<TailRows> {
    let Some(sns) = &rows.sns else { return (!told.contains(&(rows.branch, rows.sn))).then(|| rows.clone()) };
    let mask: BooleanArray = sns.values().iter().map(|sn| Some(!told.contains(&(rows.branch, Sn(*sn as u64))))).collect();
    let left = TailRows {
        rows: filter_record_batch(&rows.rows, &mask).ok()?,
        sns: Some(filter(sns, &mask).ok()?.as_primitive::<Int64Type>().clone()),
        ..rows.clone()
    };
    (left.rows.num_rows() > 0).then_some(left)
}

fn sns_of(rows: &TailRows) -> Vec<Sn> {
    match &rows.sns {
        Some(sns) => sns.values().iter().map(|sn| Sn(*sn as u64)).collect(),
        None => vec![rows.sn],
    }
}

/// Rows of records that both see, deleted between the two. Rows of the tail are never deleted: a DELETE flushes before.
fn hidden_since(later: &StreamView, earlier: &StreamView) -> StreamView {
    let known = by_id(later);
    let part = |p: &LivePart| -> Option<LivePart> {
        let (hidden, sns) = match known.get(&p.meta.id) {
            Some(other) => (other.hidden.clone()?, other.sns.clone()),
            // Either it sees none of its records, which is told as such, or all rows that it sees are hidden.
            None => return None,
        };
        let mut gone = RowSet(&hidden.0 - p.hidden.as_ref().map_or(&Default::default(), |h| &h.0));
        if gone.is_empty() {
            return None;
        }
        // All but those.
        let rows = u32::try_from(p.meta.rows).unwrap_or(u32::MAX);
        let mut all = RowSet::default();
        all.0.insert_range(0..rows);
        gone.0 = &all.0 - &gone.0;
        let sns = match (sns, &p.sns) {
            (None, None) => None,
            (Some(one), None) => Some(one),
            (None, Some(one)) => Some(one.clone()),
            (Some(a), Some(b)) => Some(a.intersection(b)),
        };
        Some(LivePart { hidden: Some(Arc::new(gone)), sns, ..p.clone() })
    };
    with_rows(earlier, earlier.parts.iter().filter_map(part).collect(), Vec::new())
}
