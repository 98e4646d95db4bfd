//! EXPLAIN of queries, and of what rules will do to a stream's parts.

use super::{
    query::{self, Planned},
    rows,
};
use crate::{
    Error, Outcome, Result, RowTag, Session, analyze,
    bind::{argument, expression, names},
    statement::{Explain, ExplainLifecycle, Expression, InsertRows, Query, Verb},
};
use arrow::{
    array::{ArrayRef, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray},
    datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit},
};
use datafusion::{
    common::{ScalarValue, format::ExplainFormat},
    physical_plan::{display::DisplayableExecutionPlan, displayable, execute_stream},
};
use ebb_engine::Timestamp;
use futures::StreamExt;
use std::sync::Arc;

pub(super) fn plan_schema() -> SchemaRef {
    rows::texts_schema(&["plan_type", "plan"])
}

pub(super) async fn plan(session: &mut Session, explain: &Explain, params: &[ScalarValue]) -> Result<Outcome> {
    let inner = match &explain.statement.verb {
        Verb::Query(q) => q,
        Verb::Insert(i) => match &i.rows {
            InsertRows::Query(q) => q,
            _ => return Err(Error::unsupported("EXPLAIN of INSERT ... VALUES: there is nothing to plan")),
        },
        Verb::Delete(d) => {
            let message = format!("EXPLAIN of DELETE: EXPLAIN SELECT * FROM {} with the same WHERE shows how rows are found", d.from);
            return Err(Error::unsupported(message));
        }
        _ => return Err(Error::unsupported("EXPLAIN takes a query or an INSERT of one")),
    };
    let lines = lines(session, inner, explain, params).await?;
    let visible = |line: Vec<Option<String>>| line.into_iter().map(|text| text.map(|t| analyze::names::visible(&t))).collect();
    let lines: Vec<Vec<_>> = lines.into_iter().map(visible).collect();
    rows::texts(&["plan_type", "plan"], &lines, RowTag::Fixed("EXPLAIN"))
}

async fn lines(session: &mut Session, query: &Query, explain: &Explain, params: &[ScalarValue]) -> Result<Vec<Vec<Option<String>>>> {
    let Planned { plan, state, .. } = query::plan(session, query, Some(params)).await?;
    let plan = query::with_params(plan, params)?;
    let planning = async move {
        let optimized = state.optimize(&plan)?;
        let physical = state.query_planner().create_physical_plan(&optimized, &state).await?;
        Ok::<_, Error>((optimized, physical, state.task_ctx()))
    };
    let (optimized, physical, context) = session.shared.workers.think(planning).await??;
    let line = |kind: &str, text: String| vec![Some(kind.to_owned()), Some(text)];
    let (format, verbose) = (explain.options.format.clone().unwrap_or(ExplainFormat::Indent), explain.options.verbose);
    if explain.options.analyze {
        if format != ExplainFormat::Indent {
            return Err(Error::unsupported(format!("EXPLAIN ANALYZE in format {format}: its metrics are shown in format indent only")));
        }
        let plan = physical.clone();
        let reading = async move {
            let mut rows = execute_stream(plan, context)?;
            while let Some(batch) = rows.next().await {
                batch?;
            }
            Ok::<_, Error>(())
        };
        session.shared.workers.think(reading).await??;
        // VERBOSE tells of each thread.
        let shown = match verbose {
            true => DisplayableExecutionPlan::with_full_metrics(physical.as_ref()),
            false => DisplayableExecutionPlan::with_metrics(physical.as_ref()),
        };
        return Ok(vec![line("Plan with Metrics", shown.indent(true).to_string())]);
    }
    Ok(match format {
        ExplainFormat::Indent => vec![
            line("logical_plan", optimized.display_indent().to_string()),
            line("physical_plan", displayable(physical.as_ref()).indent(verbose).to_string()),
        ],
        ExplainFormat::Tree => vec![line("physical_plan", displayable(physical.as_ref()).tree_render().to_string())],
        ExplainFormat::PostgresJSON => vec![line("logical_plan", optimized.display_pg_json().to_string())],
        ExplainFormat::Graphviz => vec![line("logical_plan", optimized.display_graphviz().to_string())],
    })
}

pub(super) fn lifecycle_schema() -> SchemaRef {
    let moment = || DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
    let text = |n: &str| Field::new(n, DataType::Utf8, true);
    let time = |n: &str| Field::new(n, moment(), true);
    Arc::new(Schema::new(vec![
        text("part"),
        text("rule"),
        text("action"),
        time("due_at"),
        text("state"),
        text("reason"),
        text("blocked_by"),
        time("since"),
        text("unblock_with"),
        time("next_attempt_at"),
        Field::new("rows", DataType::Int64, true),
        Field::new("bytes", DataType::Int64, true),
    ]))
}

pub(super) async fn lifecycle(session: &mut Session, explain: &ExplainLifecycle, params: &[ScalarValue]) -> Result<Outcome> {
    let engine = session.shared.engine.clone();
    let id = names::find(&engine.manifest(), &explain.stream, session.database())?.def.id;
    let at = at(session, explain.at.as_ref(), params).await?;
    let lines = engine.explain_lifecycle(id, at)?;
    let texts = |of: &dyn Fn(&ebb_engine::Explained) -> Option<String>| Arc::new(lines.iter().map(of).collect::<StringArray>()) as ArrayRef;
    let times = |of: &dyn Fn(&ebb_engine::Explained) -> Option<Timestamp>| {
        let array: TimestampMicrosecondArray = lines.iter().map(|l| of(l).map(|t| t.0)).collect();
        Arc::new(array.with_timezone("UTC")) as ArrayRef
    };
    let numbers = |of: &dyn Fn(&ebb_engine::Explained) -> u64| {
        Arc::new(lines.iter().map(|l| i64::try_from(of(l)).ok()).collect::<Int64Array>()) as ArrayRef
    };
    let columns = vec![
        texts(&|l| Some(l.part.clone())),
        texts(&|l| Some(l.rule.clone())),
        texts(&|l| Some(l.action.clone())),
        times(&|l| l.due_at),
        texts(&|l| Some(l.state.clone())),
        texts(&|l| Some(l.reason.clone())),
        texts(&|l| l.blocked_by.clone()),
        times(&|l| l.since),
        texts(&|l| l.unblock_with.clone()),
        times(&|l| l.next_attempt_at),
        numbers(&|l| l.rows),
        numbers(&|l| l.bytes),
    ];
    Ok(rows::of(RecordBatch::try_new(lifecycle_schema(), columns)?, RowTag::Fixed("EXPLAIN LIFECYCLE")))
}

/// The moment that AT TIMESTAMP names; now without it.
///
/// # Errors
/// `Invalid` for one that has passed: what the rules, the parts and the room were then is not kept.
pub(super) async fn at(session: &mut Session, at: Option<&Expression>, params: &[ScalarValue]) -> Result<Timestamp> {
    let now = session.shared.engine.now();
    let Some(at) = at else { return Ok(now) };
    let cut = session.cut().await;
    let asked = argument::moment("AT TIMESTAMP", &expression::constant(&session.context(&cut, false), &at.ast, params)?)?;
    match asked < now {
        true => Err(Error::invalid(format!(
            "AT TIMESTAMP looks forward: {asked} has passed, it is {now}; system.lifecycle_log tells what was done"
        ))),
        false => Ok(asked),
    }
}
