//! EXISTS among the columns of a SELECT, which DataFusion plans only in conditions: as a count that is compared with none.

use datafusion::sql::sqlparser::{
    ast::{self, Expr, GroupByExpr, Query, SelectItem, SetExpr, TableFactor, VisitMut, VisitorMut},
    dialect::GenericDialect,
    parser::Parser,
};
use std::ops::ControlFlow;

/// In every SELECT of `query`.
pub fn rewrite(query: &mut Query) {
    let _ = query.visit(&mut Selects);
}

struct Selects;

impl VisitorMut for Selects {
    type Break = ();

    fn pre_visit_select(&mut self, select: &mut ast::Select) -> ControlFlow<()> {
        for item in &mut select.projection {
            if let SelectItem::UnnamedExpr(e) | SelectItem::ExprWithAlias { expr: e, .. } = item {
                let _ = e.visit(&mut Counted { depth: 0 });
            }
        }
        ControlFlow::Continue(())
    }
}

/// Outside of the subqueries of an expression.
struct Counted {
    depth: usize,
}

impl VisitorMut for Counted {
    type Break = ();

    fn pre_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, e: &mut Expr) -> ControlFlow<()> {
        if self.depth == 0
            && let Expr::Exists { subquery, negated } = e
            && let Some(count) = counted(subquery, *negated)
        {
            *e = count;
        }
        ControlFlow::Continue(())
    }
}

fn counted(subquery: &Query, negated: bool) -> Option<Expr> {
    let text = format!("(SELECT count(*) {} FROM (SELECT 1) AS counted)", if negated { "= 0" } else { "> 0" });
    let Ok(Expr::Subquery(mut count)) = Parser::new(&GenericDialect {}).try_with_sql(&text).ok()?.parse_expr() else { return None };
    let SetExpr::Select(outer) = count.body.as_mut() else { return None };
    let mut inner = subquery.clone();
    if let Some(select) = plain(&mut inner) {
        // Conditions on the outer query must not lie a level deeper.
        select.projection.clone_from(&outer.projection);
        inner.order_by = None;
        return Some(Expr::Subquery(Box::new(inner)));
    }
    let TableFactor::Derived { subquery: derived, .. } = &mut outer.from.first_mut()?.relation else { return None };
    **derived = inner;
    Some(Expr::Subquery(count))
}

/// The SELECT of a query that has a row for each row of what it reads.
fn plain(query: &mut Query) -> Option<&mut ast::Select> {
    let whole = query.with.is_none() && query.limit_clause.is_none() && query.fetch.is_none();
    let SetExpr::Select(select) = query.body.as_mut() else { return None };
    let grouped = !matches!(&select.group_by, GroupByExpr::Expressions(by, _) if by.is_empty());
    let simple = |item: &SelectItem| match item {
        SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..) => true,
        SelectItem::UnnamedExpr(e) | SelectItem::ExprWithAlias { expr: e, .. } => {
            matches!(e, Expr::Value(_) | Expr::Identifier(_) | Expr::CompoundIdentifier(_))
        }
        _ => false,
    };
    let plain = whole && !grouped && select.having.is_none() && select.distinct.is_none() && select.projection.iter().all(simple);
    plain.then_some(select.as_mut())
}
