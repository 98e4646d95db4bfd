//! SELECT: planned by DataFusion over the statement's cut. What DataFusion would ignore is refused before.

use super::variable;
use crate::{
    Error, Outcome, Result, RowTag, Session,
    analyze::names as labels,
    bind::names,
    functions, pg_catalog,
    provider::naming_damage,
    relation::{self, Open, Params, Relations},
    sqlstate,
    statement::{Query, StreamName},
};
use arrow::{
    datatypes::{FieldRef, Schema, SchemaRef},
    record_batch::{RecordBatch, RecordBatchOptions},
};
use datafusion::{
    common::{ParamValues, ScalarValue, tree_node::TreeNodeRecursion},
    error::DataFusionError,
    execution::{SendableRecordBatchStream, SessionState},
    logical_expr::LogicalPlan,
    physical_plan::stream::RecordBatchStreamAdapter,
    sql::sqlparser::ast::{self, ObjectName},
};
use ebb_storage::stream_def::{TP_SN, TP_TIME};
use futures::StreamExt;
use std::{ops::ControlFlow, sync::Arc};

pub(super) async fn run(session: &mut Session, query: &Query, params: &[ScalarValue]) -> Result<Outcome> {
    let (schema, stream) = stream(session, query, params).await?;
    Ok(Outcome::Rows { schema, stream, tag: RowTag::Select })
}

pub(crate) async fn stream(session: &mut Session, query: &Query, params: &[ScalarValue]) -> Result<(SchemaRef, SendableRecordBatchStream)> {
    let calls = pg_catalog::set_config(&query.ast, params);
    let before = (!calls.is_empty()).then(|| session.variables.clone());
    variable::set_config(session, calls)?;
    let rows = begin(session, query, params).await;
    if let (Err(_), Some(before)) = (&rows, before) {
        session.variables = before;
    }
    rows
}

async fn begin(session: &mut Session, query: &Query, params: &[ScalarValue]) -> Result<(SchemaRef, SendableRecordBatchStream)> {
    let Planned { plan, mut state, .. } = plan(session, query, Some(params)).await?;
    let plan = with_params(plan, params)?;
    let planning = async move {
        let plan = state.optimize(&plan)?;
        crate::memory::small_batches(state.config_mut().options_mut(), &plan)?;
        let physical = state.query_planner().create_physical_plan(&plan, &state).await?;
        Ok::<_, Error>((physical, plan.schema().inner().clone(), state.task_ctx()))
    };
    let (plan, told, context) = session.shared.workers.think(planning).await??;
    let stream = naming_damage(&plan, session.shared.workers.run(plan.clone(), context)?);
    let schema = labels::shown_schema(&declared(&stream.schema(), &told));
    if Arc::ptr_eq(&schema, &stream.schema()) {
        return Ok((schema, stream));
    }
    let of = schema.clone();
    let named = stream.map(move |batch| {
        let batch = batch?;
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        Ok(RecordBatch::try_new_with_options(of.clone(), batch.columns().to_vec(), &options)?)
    });
    Ok((schema.clone(), Box::pin(RecordBatchStreamAdapter::new(schema, named))))
}

/// `schema`, which plans make of their parts, with what the columns were declared as, which some parts do not know.
fn declared(schema: &SchemaRef, told: &SchemaRef) -> SchemaRef {
    let pairs = || schema.fields().iter().zip(told.fields());
    if schema.fields().len() != told.fields().len() || pairs().all(|(f, t)| f.metadata() == t.metadata()) {
        return schema.clone();
    }
    let field = |(f, t): (&FieldRef, &FieldRef)| match f.metadata() == t.metadata() {
        true => f.clone(),
        false => Arc::new(f.as_ref().clone().with_metadata(t.metadata().clone())),
    };
    Arc::new(Schema::new_with_metadata(pairs().map(field).collect::<Vec<_>>(), schema.metadata().clone()))
}

pub(crate) fn with_params(plan: LogicalPlan, params: &[ScalarValue]) -> Result<LogicalPlan> {
    match params {
        [] => Ok(plan),
        _ => Ok(plan.with_param_values(ParamValues::from(params.to_vec()))?),
    }
}

/// A query that DataFusion has planned.
pub(crate) struct Planned {
    pub plan: LogicalPlan,
    pub state: SessionState,
    /// Expressions outside of the plan that name parameters, and what their places take.
    pub open: Vec<(ast::Expr, FieldRef)>,
}

/// Of a query whose columns its parameters decide: what is known of these, and why the columns are not. `None` for any other.
pub(crate) async fn undecided(session: &mut Session, query: &Query) -> Result<Option<(SessionState, Open)>> {
    let cut = session.cut().await;
    let state = session.context(&cut, false);
    let open = Relations::resolve(session, &state, &cut, false, &mut query.clone(), None)?.open;
    Ok(open.columns.is_some().then_some((state, open)))
}

/// `params`: the statement's, which the cuts that it names are resolved with.
pub(crate) async fn plan(session: &mut Session, query: &Query, params: Params<'_>) -> Result<Planned> {
    let cut = session.cut().await;
    let text = query.source.text().to_ascii_lowercase();
    let hidden_columns = text.contains(TP_TIME) || text.contains(TP_SN);
    let mut query = query.clone();
    let ask = pg_catalog::rewrite(&mut query.ast, session.database());
    let state = session.context(&cut, hidden_columns);
    let mut state = if ask.catalogue { session.with_catalogue(state, &cut)? } else { state };
    let mut relations = Relations::resolve(session, &state, &cut, hidden_columns, &mut query, params)?;
    if hidden_columns {
        let stream = |name: &StreamName| Some(names::find(cut.view.manifest(), name, session.database()).ok()?.def.clone());
        relation::hide(&mut query.ast, &relations, stream)?;
    }
    let open = std::mem::take(&mut relations.open);
    if let Some(why) = open.columns {
        return Err(why);
    }
    let open = open.values;
    state.register_relation_planner(relations.planner())?;
    // A second time with more care where a column may be one of a `*` too.
    let mut care = labels::Care::Text;
    loop {
        let mut named = query.clone();
        labels::label(&mut named.ast, care)?;
        functions::rewrite_query(&mut named.ast);
        let statement = named.to_datafusion();
        let planning = async move { (state.statement_to_plan(statement).await, state) };
        let (planned, same) = session.shared.workers.think(planning).await?;
        state = same;
        match planned {
            Ok(plan) => {
                check_size(&plan)?;
                return Ok(Planned { plan, state, open });
            }
            Err(e) => {
                let error = explain(session, &cut, &query, e);
                if care == labels::Care::Text && labels::is_clash(&error) {
                    care = labels::Care::Wildcards;
                    continue;
                }
                return Err(labels::explain(error));
            }
        }
    }
}

/// Steps of a plan: each takes time and memory at every rule of the optimizer. WITH queries that name each other are counted as often as
/// they are read, and grow by doubling.
const PLAN_STEPS_MAX: usize = 20_000;
/// What the protocol counts a row's columns in.
const COLUMNS_MAX: usize = i16::MAX as usize;

fn check_size(plan: &LogicalPlan) -> Result<()> {
    let columns = plan.schema().fields().len();
    if columns > COLUMNS_MAX {
        let message = format!("the result has {columns} columns, and may have {COLUMNS_MAX}");
        return Err(Error::invalid(message).with_sqlstate("54011"));
    }
    let mut steps = 0;
    plan.apply_with_subqueries(|_| {
        steps += 1;
        Ok(if steps > PLAN_STEPS_MAX { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    if steps > PLAN_STEPS_MAX {
        let message = format!("the query is planned in more than {PLAN_STEPS_MAX} steps: keep what it reads often in a stream");
        return Err(Error::invalid(message).with_sqlstate(sqlstate::TOO_COMPLEX));
    }
    Ok(())
}

/// The error with the nearest name where a stream or function was not found.
fn explain(session: &Session, cut: &crate::provider::Cut, query: &Query, e: DataFusionError) -> Error {
    let error = Error::from_datafusion(&e, query.source.whole());
    if error.sqlstate() == sqlstate::UNDEFINED_FUNCTION {
        return session.shared.compiler.explain_function(error);
    }
    if error.sqlstate() != sqlstate::UNDEFINED_TABLE {
        return error;
    }
    let mut missing = None;
    let _ = ast::visit_relations(query.ast.as_ref(), |name| {
        let Some(name) = stream_name(name) else { return ControlFlow::Continue(()) };
        match names::split(&name, session.database()) {
            Ok((database, stream))
                if error.message().contains(&stream) && cut.view.manifest().stream_named(&database, &stream).is_none() =>
            {
                missing = Some(names::unknown(cut.view.manifest(), &database, &stream, 0));
                ControlFlow::Break(())
            }
            _ => ControlFlow::Continue(()),
        }
    });
    missing.map_or(error, |m| m)
}

fn stream_name(name: &ObjectName) -> Option<StreamName> {
    let parts = name.0.iter().map(|p| {
        let ident = p.as_ident()?;
        let text = if ident.quote_style.is_some() { ident.value.clone() } else { ident.value.to_lowercase() };
        Some(text.as_str().into())
    });
    Some(StreamName { parts: parts.collect::<Option<Vec<_>>>()? })
}
