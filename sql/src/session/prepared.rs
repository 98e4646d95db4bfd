//! What can be known of a statement before it runs: its parameters' types and its result's columns.

use super::Session;
use crate::{
    Result,
    bind::{
        argument::{self, plain},
        expression, names,
    },
    execute::{
        call, delete,
        ingest::Target,
        query::{self, Planned},
    },
    outcome::Prepared,
    statement::{AlterAction, Copy, CreateReader, CreateRef, Insert, InsertRows, ReaderStart, Statement, Verb},
};
use arrow::datatypes::{DataType, Field, FieldRef, SchemaRef};
use datafusion::{
    common::{
        DFSchema, ScalarValue,
        tree_node::{TreeNode, TreeNodeRecursion},
    },
    execution::SessionState,
    logical_expr::{Expr, ExprSchemable, LogicalPlan, utils::merge_schema},
    sql::sqlparser::ast,
};
use std::{collections::HashMap, sync::Arc};

pub(super) async fn prepare(session: &mut Session, statement: Statement, hints: &[Option<DataType>]) -> Result<Prepared> {
    let mut known: HashMap<usize, FieldRef> = HashMap::new();
    let (mut result, mut undecided) = (None, None);
    if let Some(block) = &session.block
        && !ends_block(&statement.verb)
    {
        block.check()?;
    }
    // A statement without parameters and rows is looked up only as it runs.
    match &statement.verb {
        Verb::Query(q) => match query::plan(session, q, None).await {
            Ok(planned) => {
                known = of_query(&planned)?;
                result = Some(shown(session, planned).await?);
            }
            Err(e) => {
                let Some((state, open)) = query::undecided(session, q).await? else { return Err(e) };
                for (expr, field) in &open.values {
                    of_argument(&state, expr, field, &mut known)?;
                }
                undecided = open.columns;
            }
        },
        Verb::Insert(insert) if statement.parameters > 0 => known = of_insert(session, insert).await?,
        // Names are looked up now, so that a client that only prepares hears of wrong ones.
        Verb::Insert(Insert { into, columns, .. }) | Verb::Copy(Copy::From { into, columns, .. }) => {
            Target::find(session, into, columns.as_deref())?;
        }
        Verb::Copy(Copy::To { from, .. }) => {
            names::find_on(&session.shared.engine.manifest(), from, session.database())?;
        }
        Verb::Copy(Copy::QueryTo { query, .. }) if statement.parameters > 0 => {
            known = of_query(&query::plan(session, query, None).await?)?;
        }
        Verb::Delete(delete) => {
            known = of_query(&query::plan(session, &delete::as_query(delete, &statement.source)?, None).await?)?;
        }
        verb => {
            result = crate::execute::result_schema(session, verb).await?;
            if statement.parameters > 0 {
                known = of_arguments(session, verb)?;
            }
        }
    }
    let parameters = (1..=statement.parameters)
        .map(|n| match hints.get(n - 1).cloned().flatten() {
            Some(hint) => plain(hint),
            None => known.remove(&n).unwrap_or_else(|| plain(DataType::Utf8)),
        })
        .collect();
    Ok(Prepared { statement: Arc::new(statement), parameters, result, undecided })
}

/// Whether it may be said in a block that has failed.
pub(crate) fn ends_block(verb: &Verb) -> bool {
    matches!(verb, Verb::Commit | Verb::Rollback | Verb::RollbackTo(_))
}

/// The columns of a query as its rows have them.
async fn shown(session: &Session, Planned { plan, state, .. }: Planned) -> Result<SchemaRef> {
    // Types of columns agree once the plan is analyzed; one with parameters of unknown types cannot always be.
    let analysis = async move {
        let analyzed = state.analyzer().execute_and_check(plan.clone(), state.config_options(), |_, _| {}).ok();
        crate::analyze::names::shown_schema(analyzed.as_ref().unwrap_or(&plan).schema().inner())
    };
    session.shared.workers.think(analysis).await
}

pub(super) async fn columns(session: &mut Session, prepared: &Prepared, params: &[ScalarValue]) -> Result<Option<SchemaRef>> {
    match &prepared.statement.verb {
        Verb::Query(q) if prepared.undecided.is_some() => {
            let mut planned = query::plan(session, q, Some(params)).await?;
            planned.plan = query::with_params(planned.plan, params)?;
            shown(session, planned).await.map(Some)
        }
        _ => Ok(prepared.result.clone()),
    }
}

fn of_query(planned: &Planned) -> Result<HashMap<usize, FieldRef>> {
    let mut known = of_plan(&planned.plan)?;
    for (expr, field) in &planned.open {
        of_argument(&planned.state, expr, field, &mut known)?;
    }
    Ok(known)
}

/// Of statements that take values without reading rows.
fn of_arguments(session: &Session, verb: &Verb) -> Result<HashMap<usize, FieldRef>> {
    let open = match verb {
        Verb::Call(c) => call::open(c)?.into_iter().map(|(e, ty)| (e, plain(ty))).collect(),
        Verb::CreateReader(CreateReader { from: ReaderStart::Sn(e), .. }) => vec![(e.ast.as_ref().clone(), plain(DataType::Int64))],
        Verb::AlterStream(alter) => {
            let as_of = |a: &AlterAction| match a {
                AlterAction::CreateRef(CreateRef { as_of: Some(e), .. }) => Some((e.ast.as_ref().clone(), argument::version_field())),
                _ => None,
            };
            alter.actions.iter().filter_map(as_of).collect()
        }
        _ => return Ok(HashMap::new()),
    };
    let state = session.context(&session.cut_without_own(), false);
    let mut known = HashMap::new();
    for (expr, field) in &open {
        of_argument(&state, expr, field, &mut known)?;
    }
    Ok(known)
}

/// A parameter that stands for a value is of the value's type, one below a cast of what it is cast to.
fn of_argument(state: &SessionState, expr: &ast::Expr, field: &FieldRef, known: &mut HashMap<usize, FieldRef>) -> Result<()> {
    if let ast::Expr::Value(v) = expr
        && let ast::Value::Placeholder(id) = &v.value
    {
        known.extend(number(id).map(|n| (n, field.clone())));
        return Ok(());
    }
    let schema = DFSchema::empty();
    expression::plan_ast(state, expr.clone(), &schema)?.apply(|e| {
        known.extend(meant(e, &schema));
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(())
}

fn of_plan(plan: &LogicalPlan) -> Result<HashMap<usize, FieldRef>> {
    let fields = plan.get_parameter_fields()?;
    let mut known: HashMap<usize, FieldRef> = fields.into_iter().filter_map(|(id, field)| Some((number(&id)?, field?))).collect();
    // What DataFusion does not say: what a cast makes of one, what LIMIT and OFFSET take, the array of `= ANY ($1)`.
    plan.apply_with_subqueries(|node| {
        if let LogicalPlan::Limit(limit) = node {
            for count in [&limit.skip, &limit.fetch].into_iter().flatten() {
                count.apply(|e| {
                    if let Expr::Placeholder(p) = e {
                        known.extend(number(&p.id).map(|n| (n, plain(DataType::Int64))));
                    }
                    Ok(TreeNodeRecursion::Continue)
                })?;
            }
        }
        let schema = merge_schema(&node.inputs());
        node.apply_expressions(|e| {
            e.apply(|e| {
                if let Some((n, field)) = meant(e, &schema) {
                    known.entry(n).or_insert(field);
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })?;
    Ok(known)
}

/// The parameter that `e` gives a type to.
fn meant(e: &Expr, schema: &DFSchema) -> Option<(usize, FieldRef)> {
    let placeholder = |e: &Expr| if let Expr::Placeholder(p) = e { number(&p.id) } else { None };
    match e {
        Expr::Cast(c) => placeholder(&c.expr).map(|n| (n, c.field.clone())),
        Expr::TryCast(c) => placeholder(&c.expr).map(|n| (n, c.field.clone())),
        Expr::ScalarFunction(f) if f.name() == "array_has" => match f.args.as_slice() {
            [array, element] => {
                let element = element.to_field(schema).ok()?.1;
                let item = Field::new_list_field(element.data_type().clone(), true).with_metadata(element.metadata().clone());
                Some((placeholder(array)?, plain(DataType::List(Arc::new(item)))))
            }
            _ => None,
        },
        _ => None,
    }
}

/// `$3` is 3.
fn number(id: &str) -> Option<usize> {
    id.strip_prefix('$')?.parse().ok()
}

/// A parameter that is a value of VALUES has its column's type.
async fn of_insert(session: &mut Session, insert: &Insert) -> Result<HashMap<usize, FieldRef>> {
    let target = Target::find(session, &insert.into, insert.columns.as_deref())?;
    let mut known = HashMap::new();
    match &insert.rows {
        InsertRows::Values { rows, .. } => {
            for row in rows {
                for (value, column) in row.iter().zip(&target.columns) {
                    if let ast::Expr::Value(v) = value
                        && let ast::Value::Placeholder(id) = &v.value
                        && let Some(n) = number(id)
                    {
                        known.insert(n, column.field.clone());
                    }
                }
            }
        }
        InsertRows::Query(q) => {
            known = of_query(&query::plan(session, q, None).await?)?;
        }
        InsertRows::Default => {}
    }
    Ok(known)
}
