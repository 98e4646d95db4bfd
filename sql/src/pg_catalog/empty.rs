//! Selects over tables that never have rows: what they compute is not planned at all.
//!
//! Tools ask such tables with expressions that no other system has. A select that can have no row becomes one of NULLs without rows,
//! a scalar subquery NULL, EXISTS false. Aggregates without GROUP BY have a row even then, so they are left alone.

use super::{SCHEMA, shape};
use datafusion::sql::sqlparser::ast::{
    self, Expr, FunctionArguments, GroupByExpr, Ident, JoinOperator, ObjectName, Query, Select, SelectItem, SetExpr, TableFactor, Value,
    Visit, Visitor,
};
use std::ops::ControlFlow;

const AGGREGATES: [&str; 12] =
    ["count", "sum", "min", "max", "avg", "array_agg", "string_agg", "json_agg", "jsonb_agg", "bool_and", "bool_or", "json_object_agg"];

pub fn null() -> Expr {
    Expr::Value(Value::Null.with_empty_span())
}

pub fn boolean(b: bool) -> Expr {
    Expr::Value(Value::Boolean(b).with_empty_span())
}

/// The last part of a catalogue table's name.
pub fn catalogue_table(name: &ObjectName) -> Option<&str> {
    match name.0.as_slice() {
        [schema, table] if schema.as_ident().is_some_and(|i| i.value.eq_ignore_ascii_case(SCHEMA)) => {
            Some(table.as_ident()?.value.as_str())
        }
        _ => None,
    }
}

fn no_rows(factor: &TableFactor) -> bool {
    match factor {
        TableFactor::Table { name, args: None, .. } => catalogue_table(name).is_some_and(shape::is_empty),
        TableFactor::Derived { subquery, .. } => query_is_empty(subquery),
        TableFactor::NestedJoin { table_with_joins, .. } => joined(table_with_joins),
        _ => false,
    }
}

fn joined(t: &ast::TableWithJoins) -> bool {
    let mut empty = no_rows(&t.relation);
    for join in &t.joins {
        let right = no_rows(&join.relation);
        empty = match &join.join_operator {
            JoinOperator::Join(_) | JoinOperator::Inner(_) | JoinOperator::CrossJoin(_) => empty || right,
            JoinOperator::Left(_) | JoinOperator::LeftOuter(_) => empty,
            JoinOperator::Right(_) | JoinOperator::RightOuter(_) => right,
            _ => empty && right,
        };
    }
    empty
}

/// Whether the query has become, or is, one without rows.
pub fn query_is_empty(query: &Query) -> bool {
    set_is_empty(&query.body)
}

fn set_is_empty(body: &SetExpr) -> bool {
    match body {
        SetExpr::Select(s) => s.from.is_empty() && s.selection.as_ref() == Some(&boolean(false)),
        SetExpr::Query(q) => query_is_empty(q),
        SetExpr::SetOperation { op: ast::SetOperator::Union, left, right, .. } => set_is_empty(left) && set_is_empty(right),
        _ => false,
    }
}

/// Subqueries are not looked into: what they aggregate is theirs.
pub fn has_aggregate(item: &SelectItem) -> bool {
    let mut seen = Aggregates { depth: 0, found: false };
    let _ = item.visit(&mut seen);
    seen.found
}

struct Aggregates {
    depth: usize,
    found: bool,
}

impl Visitor for Aggregates {
    type Break = ();

    fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, e: &Expr) -> ControlFlow<()> {
        if let Expr::Function(f) = e
            && self.depth == 0
            && f.over.is_none()
        {
            let name = f.name.0.last().and_then(|p| p.as_ident()).map(|i| i.value.to_ascii_lowercase());
            self.found |= name.is_some_and(|n| AGGREGATES.contains(&n.as_str()));
        }
        ControlFlow::Continue(())
    }
}

pub fn groups(select: &Select) -> bool {
    !matches!(&select.group_by, GroupByExpr::Expressions(e, _) if e.is_empty())
}

/// The name PostgreSQL gives to a column.
pub fn column_name(expr: &Expr) -> String {
    let last = |name: &ObjectName| name.0.last().and_then(|p| p.as_ident()).map(|i| i.value.to_lowercase());
    match expr {
        Expr::Identifier(i) => i.value.clone(),
        Expr::CompoundIdentifier(parts) => parts.last().map(|i| i.value.clone()).unwrap_or_default(),
        Expr::Function(f) => last(&f.name).unwrap_or_default(),
        Expr::Cast { expr, .. } | Expr::Collate { expr, .. } | Expr::Nested(expr) => column_name(expr),
        Expr::Case { .. } => "case".to_owned(),
        _ => "?column?".to_owned(),
    }
}

/// Simplifies a select that can have no rows; says whether it did.
pub fn simplify(select: &mut Select) -> bool {
    let empty = select.from.iter().any(joined);
    if !empty || (!groups(select) && select.projection.iter().any(has_aggregate)) {
        return false;
    }
    let wildcard = |i: &SelectItem| matches!(i, SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..));
    if select.projection.iter().any(wildcard) {
        return false;
    }
    let mut names: Vec<String> = Vec::new();
    for item in &select.projection {
        let name = match item {
            SelectItem::UnnamedExpr(e) => column_name(e),
            SelectItem::ExprWithAlias { alias, .. } => alias.value.clone(),
            _ => "?column?".to_owned(),
        };
        // Names are unique to the planner.
        let seen = names.iter().filter(|n| **n == name).count();
        names.push(if seen == 0 { name } else { format!("{name}_{seen}") });
    }
    let named = |name: String| SelectItem::ExprWithAlias { expr: null(), alias: Ident::with_quote('"', name) };
    select.projection = names.into_iter().map(named).collect();
    select.from = Vec::new();
    select.selection = Some(boolean(false));
    select.group_by = GroupByExpr::Expressions(Vec::new(), Vec::new());
    select.having = None;
    select.distinct = None;
    true
}

/// The value of a subquery in an expression, if it can have no rows.
pub fn value(expr: &Expr) -> Option<Expr> {
    match expr {
        Expr::Subquery(q) if query_is_empty(q) => Some(null()),
        Expr::Exists { subquery, negated } if query_is_empty(subquery) => Some(boolean(*negated)),
        Expr::InSubquery { subquery, negated, .. } if query_is_empty(subquery) => Some(boolean(*negated)),
        Expr::Function(f) => match &f.args {
            FunctionArguments::Subquery(q) if query_is_empty(q) => Some(null()),
            _ => None,
        },
        _ => None,
    }
}
