//! PREVIEW: what MODIFY TTL or OPTIMIZE would do, now or at a later moment. Changes nothing.

use super::{explain, optimize::partition_text, rows};
use crate::{
    Outcome, Result, RowTag, Session,
    bind::{alter, copies, names},
    statement::{Preview, Previewed},
};
use arrow::{
    array::{ArrayRef, Int64Array, RecordBatch, StringArray},
    datatypes::{DataType, Field, Schema, SchemaRef},
};
use datafusion::common::ScalarValue;
use ebb_engine::Trial;
use std::sync::Arc;

pub(super) fn schema() -> SchemaRef {
    let texts = ["rule", "action"].map(|n| Field::new(n, DataType::Utf8, false));
    let numbers = ["parts", "rows", "bytes_before", "bytes_after"].map(|n| Field::new(n, DataType::Int64, false));
    Arc::new(Schema::new(texts.into_iter().chain(numbers).collect::<Vec<_>>()))
}

pub(super) async fn run(session: &mut Session, preview: &Preview, params: &[ScalarValue]) -> Result<Outcome> {
    let engine = session.shared.engine.clone();
    let name = match &preview.of {
        Previewed::Alter(alter) => &alter.name,
        Previewed::Optimize(optimize) => &optimize.name,
    };
    let def = names::find(&engine.manifest(), name, session.database())?.def.clone();
    let trial = match &preview.of {
        Previewed::Alter(of) => {
            // Rules name no constant that would have to be computed.
            let new = alter::apply(&def, &of.actions, &session.shared.compiler, &engine.manifest(), &|_, _| Ok(None))?;
            Trial::Rules(Box::new(new))
        }
        Previewed::Optimize(of) => Trial::Optimize {
            partition: of.partition.as_ref().map(partition_text),
            final_: of.final_,
            copies: of.deduplicate.as_ref().map(|d| copies::bind(d, &def)).transpose()?,
        },
    };
    let at = explain::at(session, preview.at.as_ref(), params).await?;
    let lines = engine.preview(def.id, trial, at).await?;
    let texts =
        |of: &dyn Fn(&ebb_engine::Previewed) -> String| Arc::new(lines.iter().map(|l| Some(of(l))).collect::<StringArray>()) as ArrayRef;
    let numbers = |of: &dyn Fn(&ebb_engine::Previewed) -> u64| {
        Arc::new(Int64Array::from_iter_values(lines.iter().map(|l| i64::try_from(of(l)).unwrap_or(i64::MAX)))) as ArrayRef
    };
    let columns = vec![
        texts(&|l| l.rule.clone()),
        texts(&|l| l.action.clone()),
        numbers(&|l| l.parts),
        numbers(&|l| l.rows),
        numbers(&|l| l.bytes_before),
        numbers(&|l| l.bytes_after),
    ];
    Ok(rows::of(RecordBatch::try_new(schema(), columns)?, RowTag::Fixed("PREVIEW")))
}
