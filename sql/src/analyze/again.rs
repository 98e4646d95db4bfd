//! The same computation twice in a row: `SELECT x + 1 AS x FROM (SELECT x + 1 AS x FROM ...)`.
//!
//! DataFusion takes a projection for superfluous that is written as the one below it is, and drops one of them. Here the upper one gets a
//! mark that tells them apart.

use datafusion::{
    common::metadata::FieldMetadata,
    logical_expr::{Expr, LogicalPlan, Projection, expr::Alias},
};
use std::collections::BTreeMap;

const MARK: &str = "ebb_again";

/// `plan`, told apart from the next projection below it.
pub fn marked(plan: LogicalPlan) -> LogicalPlan {
    let LogicalPlan::Projection(projection) = &plan else { return plan };
    let Some(below) = next(&projection.input) else { return plan };
    if below.expr != projection.expr {
        return plan;
    }
    let mut marked = projection.clone();
    for e in &mut marked.expr {
        if let Expr::Alias(Alias { expr, metadata, .. }) = e
            && !matches!(expr.as_ref(), Expr::Column(_))
        {
            let mark = FieldMetadata::from(BTreeMap::from([(MARK.to_owned(), String::new())]));
            *metadata = Some(match metadata.take() {
                Some(old) => FieldMetadata::merge_options(Some(&old), Some(&mark)).unwrap_or(mark),
                None => mark,
            });
            return LogicalPlan::Projection(marked);
        }
    }
    plan
}

/// The next projection below, past what may be moved from between the two.
fn next(plan: &LogicalPlan) -> Option<&Projection> {
    match plan {
        LogicalPlan::Projection(p) => Some(p),
        _ => match plan.inputs().as_slice() {
            [input] => next(input),
            _ => None,
        },
    }
}
