//! DELETE FROM: the condition becomes one over a single row, then the engine finds the rows and records them.
//!
//! Guards: everything that the condition names besides the row is fixed before rows are looked for: `now()` is the statement's time,
//! subqueries are run over the statement's cut, once, in bounded memory.

mod subqueries;

use super::{
    command,
    query::{self, Planned},
};
use crate::{
    Error, Outcome, Result, Session,
    bind::{expression, names},
    expr::matching::matching,
    parse,
    provider::{Skip, skip, unqualified},
    statement::{Delete, Query, Source, Verb, quote_name},
};
use datafusion::{
    common::{
        DFSchema, ScalarValue,
        tree_node::{Transformed, TreeNode},
    },
    execution::SessionState,
    logical_expr::{Expr, LogicalPlan, lit},
};
use ebb_engine::{DeleteRequest, expr::RowExpr};
use ebb_storage::{manifest::StreamState, stream_def::StreamDef};
use std::sync::{Arc, atomic::Ordering};

/// Which rows go.
struct Condition {
    matches: Arc<dyn RowExpr>,
    skip: Skip,
}

pub(super) async fn run(session: &mut Session, delete: &Delete, source: &Source, params: &[ScalarValue]) -> Result<Outcome> {
    if let Some(block) = &session.block
        && block.read_only.load(Ordering::Acquire)
    {
        return Err(Error::conflict("the transaction is read-only").with_sqlstate("25006"));
    }
    let cut = session.cut_without_own();
    let (state, branch) = names::find_on(cut.view.manifest(), &delete.from, session.database())?;
    let (state, branch) = (state.clone(), branch.map(str::to_owned));
    if state.def.is_internal() || state.def.database == crate::system::DATABASE {
        return Err(Error::invalid("streams of the database 'system' are Ebb's own").with_sqlstate("42501"));
    }
    let Condition { matches, skip } = condition(session, delete, source, params, &state).await?;
    let request = DeleteRequest { stream: state.def.id, branch: branch.clone(), matches, schema_version: state.def.schema_version, skip };
    let rows = match session.block.clone() {
        None => session.shared.engine.delete(request).await?.rows,
        Some(block) => {
            let view = match &branch {
                Some(branch) => cut.branch(&state, branch)?,
                None => cut.view.stream(state.def.id).ok_or_else(|| Error::conflict("the stream was dropped meanwhile"))?,
            };
            let mut transaction = block.transaction.lock().await;
            let transaction = transaction.as_mut().ok_or_else(|| Error::conflict("the transaction has ended"))?;
            transaction.delete(&cut.view, view, request).await?
        }
    };
    Ok(command(format!("DELETE {rows}")))
}

/// `SELECT 1 FROM s WHERE condition`: what DataFusion makes of the condition, and what a client that only prepares is told of.
pub(crate) fn as_query(delete: &Delete, source: &Source) -> Result<Query> {
    let alias = delete.alias.as_ref().map(|a| format!(" AS {}", quote_name(a.as_str()))).unwrap_or_default();
    let text = format!("SELECT 1 FROM {}{alias} WHERE true", delete.from);
    let Some(Verb::Query(mut query)) = parse::parse(&text)?.into_iter().next().map(|s| s.verb) else {
        return Err(Error::internal("DELETE made no query"));
    };
    if let (datafusion::sql::sqlparser::ast::SetExpr::Select(select), Some(condition)) = (query.ast.body.as_mut(), &delete.condition) {
        select.selection = Some(condition.ast.as_ref().clone());
    }
    query.source = source.clone();
    Ok(query)
}

async fn condition(
    session: &mut Session,
    delete: &Delete,
    source: &Source,
    params: &[ScalarValue],
    stream: &Arc<StreamState>,
) -> Result<Condition> {
    let Planned { plan, state, .. } = query::plan(session, &as_query(delete, source)?, Some(params)).await?;
    let def = &stream.def;
    let of_row = match &delete.condition {
        None => lit(true),
        Some(_) => {
            let plan = query::with_params(plan, params)?;
            let plan = state.analyzer().execute_and_check(plan, state.config_options(), |_, _| {})?;
            let predicate = predicate(&plan).ok_or_else(|| Error::internal("the condition of DELETE is lost"))?;
            if predicate.exists(|e| Ok(matches!(e, Expr::WindowFunction(_))))? {
                let e = Error::invalid("window functions are not allowed in the WHERE of DELETE").with_sqlstate("42P20");
                return Err(
                    e.with_hint("write WHERE key IN (SELECT key FROM (SELECT key, row_number() OVER (...) AS n FROM s) AS t WHERE n > 1)")
                );
            }
            let answered = subqueries::answered(session, &state, predicate).await?;
            let expr = with_alias_columns(unqualified(answered)?, &state, def)?;
            simplified(expr, &state, def)?
        }
    };
    let matches = matching(&state, &of_row, def)?;
    Ok(Condition { matches, skip: skip(&session.shared, &state, of_row, stream.clone())? })
}

fn predicate(plan: &LogicalPlan) -> Option<Expr> {
    match plan {
        LogicalPlan::Filter(f) => Some(f.predicate.clone()),
        other => other.inputs().into_iter().find_map(predicate),
    }
}

/// Computed columns by what computes them.
fn with_alias_columns(expr: Expr, state: &SessionState, def: &StreamDef) -> Result<Expr> {
    let schema = DFSchema::try_from(def.part_schema().as_ref().clone())?;
    let replaced = expr.transform(|e| {
        let Expr::Column(c) = &e else { return Ok(Transformed::no(e)) };
        let Some(column) = def.column(&c.name).filter(|c| c.is_alias()) else { return Ok(Transformed::no(e)) };
        let text = column.default.as_ref().map_or("NULL", |d| d.expr.as_str());
        Ok(Transformed::yes(expression::fitted(expression::plan(state, text, &schema)?, column)))
    });
    Ok(replaced?.data)
}

/// With constants computed, the statement's time among them, so that bounds of parts can be compared with them.
fn simplified(expr: Expr, state: &SessionState, def: &StreamDef) -> Result<Expr> {
    let schema = DFSchema::try_from(def.part_schema().as_ref().clone())?;
    Ok(expression::simplified(state, expr, &schema)?)
}
