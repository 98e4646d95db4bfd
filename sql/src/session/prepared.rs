//! What can be known of a statement before it runs: its parameters' types and its result's columns.

use super::Session;
use crate::{
    Result,
    execute::query,
    outcome::Prepared,
    statement::{Copy, Insert, InsertRows, Statement, Verb},
};
use arrow::datatypes::DataType;
use datafusion::{
    common::tree_node::{TreeNode, TreeNodeRecursion},
    logical_expr::{Expr, LogicalPlan},
    sql::sqlparser::ast,
};
use std::{collections::HashMap, sync::Arc};

pub(super) async fn prepare(session: &mut Session, statement: Statement, hints: &[Option<DataType>]) -> Result<Prepared> {
    let mut known: HashMap<usize, DataType> = HashMap::new();
    let mut result = None;
    // A statement without parameters and rows is looked up only as it runs; so is everything in a block that has failed.
    let failed = session.block.as_ref().is_some_and(|b| b.check().is_err());
    match &statement.verb {
        _ if failed => {}
        Verb::Query(q) => {
            let (plan, _) = query::plan(session, q).await?;
            result = Some(plan.schema().inner().clone());
            known = of_plan(&plan)?;
        }
        Verb::Insert(insert) if statement.parameters > 0 => known = of_insert(session, insert).await?,
        Verb::Copy(Copy::QueryTo { query, .. }) if statement.parameters > 0 => known = of_plan(&query::plan(session, query).await?.0)?,
        verb => result = crate::execute::result_schema(session, verb).await?,
    }
    let parameters = (1..=statement.parameters)
        .map(|n| hints.get(n - 1).cloned().flatten().or_else(|| known.remove(&n)).unwrap_or(DataType::Utf8))
        .collect();
    Ok(Prepared { statement: Arc::new(statement), parameters, result })
}

fn of_plan(plan: &LogicalPlan) -> Result<HashMap<usize, DataType>> {
    let types = plan.get_parameter_types()?;
    let mut known: HashMap<usize, DataType> = types.into_iter().filter_map(|(id, ty)| Some((number(&id)?, ty?))).collect();
    // DataFusion does not say what LIMIT and OFFSET take.
    plan.apply_with_subqueries(|node| {
        if let LogicalPlan::Limit(limit) = node {
            for count in [&limit.skip, &limit.fetch].into_iter().flatten() {
                count.apply(|e| {
                    if let Expr::Placeholder(p) = e {
                        known.extend(number(&p.id).map(|n| (n, DataType::Int64)));
                    }
                    Ok(TreeNodeRecursion::Continue)
                })?;
            }
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(known)
}

/// `$3` is 3.
fn number(id: &str) -> Option<usize> {
    id.strip_prefix('$')?.parse().ok()
}

/// A parameter that is a value of VALUES has its column's type.
async fn of_insert(session: &mut Session, insert: &Insert) -> Result<HashMap<usize, DataType>> {
    let target = crate::execute::ingest::Target::find(session, &insert.into, insert.columns.as_deref())?;
    let mut known = HashMap::new();
    match &insert.rows {
        InsertRows::Values { rows, .. } => {
            for row in rows {
                for (value, column) in row.iter().zip(&target.columns) {
                    if let ast::Expr::Value(v) = value
                        && let ast::Value::Placeholder(id) = &v.value
                        && let Some(n) = number(id)
                    {
                        known.insert(n, column.field.data_type().clone());
                    }
                }
            }
        }
        InsertRows::Query(q) => {
            let (plan, _) = query::plan(session, q).await?;
            known = of_plan(&plan)?;
        }
        InsertRows::Default => {}
    }
    Ok(known)
}
