//! OPTIMIZE STREAM: one row that says what was done.

use super::rows;
use crate::{
    Error, Notice, Outcome, Result, RowTag, Session,
    bind::{copies, names},
    statement::{Literal, Optimize, Partition},
};
use arrow::{
    array::{ArrayRef, Int64Array, RecordBatch, StringArray},
    datatypes::{DataType, Field, Schema, SchemaRef},
};
use std::sync::Arc;

const NUMBERS: [&str; 6] = ["parts_before", "parts_after", "rows_before", "rows_after", "bytes_before", "bytes_after"];

pub(super) fn schema() -> SchemaRef {
    let numbers = NUMBERS.iter().map(|n| Field::new(*n, DataType::Int64, false));
    Arc::new(Schema::new(numbers.chain([Field::new("actions", DataType::Utf8, false)]).collect::<Vec<_>>()))
}

pub(super) async fn run(session: &mut Session, optimize: &Optimize) -> Result<Outcome> {
    let engine = session.shared.engine.clone();
    let manifest = engine.manifest();
    let state = names::find(&manifest, &optimize.name, session.database())?;
    let partition = optimize.partition.as_ref().map(partition_text);
    if let Some(p) = &partition
        && !state.partitions.contains_key(p.as_str())
        && engine.read().stream(state.def.id).is_some_and(|v| v.tail.is_empty())
    {
        return Err(Error::not_found(format!("{} has no partition '{p}': system.parts lists them", state.def.full_name())));
    }
    let copies = optimize.deduplicate.as_ref().map(|d| copies::bind(d, &state.def)).transpose()?;
    let done = engine.optimize_without(state.def.id, partition.as_deref(), optimize.final_, copies.as_ref()).await?;
    if copies.is_some() {
        session.notice(Notice::notice(match done.copies.sn {
            Some(sn) => format!("copies removed: {}, as record {sn}; earlier records keep them", done.copies.rows),
            None => "no row has a copy".to_owned(),
        }));
    }
    let stops = engine.stops(state.def.id);
    if stops.ttl_merges {
        session.notice(Notice::notice("TTL merges are stopped: what rules ask for was left out"));
    }
    if stops.moves && state.def.policy.ttl.iter().any(|r| matches!(r.action, ebb_storage::rules::Action::Move(_))) {
        session.notice(Notice::notice("moves are stopped: parts stay where they are"));
    }
    for why in &done.left_out {
        session.notice(Notice::notice(why.clone()));
    }
    let n = |v: u64| Arc::new(Int64Array::from(vec![i64::try_from(v).unwrap_or(i64::MAX)])) as ArrayRef;
    let columns = vec![
        n(done.parts_before),
        n(done.parts_after),
        n(done.rows_before),
        n(done.rows_after),
        n(done.bytes_before),
        n(done.bytes_after),
        Arc::new(StringArray::from(vec![done.actions.join(",")])) as ArrayRef,
    ];
    Ok(rows::of(RecordBatch::try_new(schema(), columns)?, RowTag::Fixed("OPTIMIZE STREAM")))
}

/// As `system.parts.partition` has it.
pub(super) fn partition_text(partition: &Partition) -> String {
    let text = |l: &Literal| match l {
        Literal::Text(t) => t.clone(),
        Literal::Null => "NULL".to_owned(),
        other => other.to_string(),
    };
    match partition {
        Partition::Id(id) => id.clone(),
        Partition::Value(values) => match values.as_slice() {
            [] => "all".to_owned(),
            [one] => text(one),
            several => format!("({})", several.iter().map(text).collect::<Vec<_>>().join(",")),
        },
    }
}
