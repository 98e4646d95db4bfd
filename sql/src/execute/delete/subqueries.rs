//! Subqueries of a condition, run once before it is looked at a row: their answers take their places.

use crate::{Error, Result, Session, sqlstate};
use arrow::array::Array;
use datafusion::{
    common::{
        ScalarValue,
        tree_node::{Transformed, TreeNode, TreeNodeRecursion},
    },
    execution::SessionState,
    logical_expr::{Expr, LogicalPlan, Subquery, expr::InList, lit},
};
use futures::StreamExt;
use std::{collections::HashSet, collections::VecDeque, sync::Arc};

/// Different values that the subquery of an IN may give.
const VALUES_MAX: usize = 100_000;

enum Answer {
    Values(Vec<ScalarValue>),
    One(ScalarValue),
    Exists(bool),
}

/// `expr` without subqueries.
///
/// # Errors
/// For those that name the outer row, for comparisons with ANY and ALL, for too many values.
pub(super) async fn answered(session: &Session, state: &SessionState, expr: Expr) -> Result<Expr> {
    let mut asked: Vec<Expr> = Vec::new();
    expr.apply(|e| {
        if matches!(e, Expr::InSubquery(_) | Expr::Exists(_) | Expr::ScalarSubquery(_) | Expr::SetComparison(_)) {
            asked.push(e.clone());
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    let mut answers: VecDeque<Answer> = VecDeque::new();
    for e in &asked {
        answers.push_back(match e {
            Expr::InSubquery(of) => Answer::Values(values(session, state, plan_of(&of.subquery)?).await?),
            Expr::ScalarSubquery(of) => Answer::One(one(session, state, plan_of(of)?).await?),
            Expr::Exists(of) => Answer::Exists(any(session, state, plan_of(&of.subquery)?).await?),
            _ => {
                let message = "ANY and ALL of a subquery in DELETE: write IN (SELECT ...), or compare with (SELECT min(c) ...)";
                return Err(Error::unsupported(message));
            }
        });
    }
    let replaced = expr.transform_down(|e| {
        Ok(match (e, answers.len()) {
            (Expr::InSubquery(of), 1..) => match answers.pop_front() {
                Some(Answer::Values(list)) if list.is_empty() => Transformed::yes(lit(of.negated)),
                Some(Answer::Values(list)) => {
                    let list = list.into_iter().map(|v| Expr::Literal(v, None)).collect();
                    Transformed::yes(Expr::InList(InList { expr: of.expr, list, negated: of.negated }))
                }
                _ => Transformed::no(Expr::InSubquery(of)),
            },
            (e @ Expr::ScalarSubquery(_), 1..) => match answers.pop_front() {
                Some(Answer::One(value)) => Transformed::yes(Expr::Literal(value, None)),
                _ => Transformed::no(e),
            },
            (Expr::Exists(of), 1..) => match answers.pop_front() {
                Some(Answer::Exists(any)) => Transformed::yes(lit(any != of.negated)),
                _ => Transformed::no(Expr::Exists(of)),
            },
            (e, _) => Transformed::no(e),
        })
    })?;
    Ok(replaced.data)
}

fn plan_of(subquery: &Subquery) -> Result<Arc<LogicalPlan>> {
    let Some(outer) = subquery.outer_ref_columns.first() else { return Ok(subquery.subquery.clone()) };
    let name = match outer {
        Expr::OuterReferenceColumn(_, column) => column.name.clone(),
        other => other.to_string(),
    };
    let e = Error::unsupported(format!(
        "DELETE runs a subquery once, before it looks at rows: one that names '{name}' of the row is not supported"
    ));
    Err(e.with_hint("write WHERE key IN (SELECT s.key FROM s JOIN ... )"))
}

type Rows = datafusion::execution::SendableRecordBatchStream;

async fn rows(session: &Session, state: &SessionState, plan: Arc<LogicalPlan>) -> Result<Rows> {
    let plan = state.optimize(&plan)?;
    let physical = state.query_planner().create_physical_plan(&plan, state).await?;
    session.shared.workers.run(physical, state.task_ctx())
}

async fn values(session: &Session, state: &SessionState, plan: Arc<LogicalPlan>) -> Result<Vec<ScalarValue>> {
    let mut rows = rows(session, state, plan).await?;
    let mut seen: HashSet<ScalarValue> = HashSet::new();
    while let Some(batch) = rows.next().await {
        let batch = batch?;
        let column = batch.column(0);
        for row in 0..column.len() {
            seen.insert(ScalarValue::try_from_array(column, row)?);
        }
        if seen.len() > VALUES_MAX {
            let message = format!(
                "the subquery of DELETE gives more than {VALUES_MAX} different values: delete in several steps, each of a range of them"
            );
            return Err(Error::invalid(message).with_sqlstate(sqlstate::TOO_COMPLEX));
        }
    }
    Ok(seen.into_iter().collect())
}

async fn one(session: &Session, state: &SessionState, plan: Arc<LogicalPlan>) -> Result<ScalarValue> {
    let ty = plan.schema().field(0).data_type().clone();
    let mut rows = rows(session, state, plan).await?;
    let mut found = None;
    while let Some(batch) = rows.next().await {
        let batch = batch?;
        if batch.num_rows() > usize::from(found.is_none()) {
            return Err(Error::invalid("more than one row returned by a subquery used as an expression").with_sqlstate("21000"));
        }
        if batch.num_rows() == 1 {
            found = Some(ScalarValue::try_from_array(batch.column(0), 0)?);
        }
    }
    match found {
        Some(value) => Ok(value),
        None => Ok(ScalarValue::try_from(&ty)?),
    }
}

async fn any(session: &Session, state: &SessionState, plan: Arc<LogicalPlan>) -> Result<bool> {
    let mut rows = rows(session, state, plan).await?;
    while let Some(batch) = rows.next().await {
        if batch?.num_rows() > 0 {
            return Ok(true);
        }
    }
    Ok(false)
}
