//! What an expression means in PostgreSQL where DataFusion would mean something else.
//!
//! DataFusion plans first; then, with all types known, `expression` changes what wraps instead of failing (`checked`), what becomes text
//! in another form (`as_text`), what adds days to times of a zone (`calendar`), what compares as text though its type is more than that (`declared`), and
//! what joins texts without counting them (`joined`), what would make a float of a decimal (`decimals`), what would cut a
//! fraction (`rounded`). The type, the nullability and
//! the name of an expression stay what they were, so that what a client was told before still holds. `names` gives result columns their
//! names, `types` knows the types that SQL names and DataFusion does not. Queries pass here as an analyzer rule, expressions of
//! definitions one by one: both mean the same.

mod again;
mod as_text;
mod calendar;
mod checked;
mod decimals;
mod declared;
mod extreme;
mod joined;
pub mod names;
mod rounded;
mod types;

pub use as_text::text_of;
pub use types::Types;

use arrow::datatypes::{DataType, TimeUnit};
use datafusion::{
    common::{
        Column, DFSchema, Result, ScalarValue,
        config::ConfigOptions,
        tree_node::{Transformed, TreeNode},
    },
    logical_expr::{
        Between, BinaryExpr, Expr, ExprSchemable, LogicalPlan,
        expr::{Alias, InList},
        expr_rewriter::NamePreserver,
        utils::merge_schema,
    },
    optimizer::AnalyzerRule,
};

/// The rule for whole plans; it comes after DataFusion's own, which has made the types of operands agree.
#[derive(Debug)]
pub struct Meaning;

impl AnalyzerRule for Meaning {
    fn name(&self) -> &str {
        "ebb_meaning"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        plan.transform_up_with_subqueries(node).map(|t| t.data)
    }
}

fn node(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let mut schema = merge_schema(&plan.inputs());
    if let LogicalPlan::TableScan(scan) = &plan {
        schema.merge(&DFSchema::try_from_qualified_schema(scan.table_name.clone(), &scan.source.schema())?);
    }
    let names = NamePreserver::new(&plan);
    let sorts = matches!(plan, LogicalPlan::Sort(_));
    plan.map_expressions(|e| {
        let name = names.save(&e);
        let mut changed = expression(e, &schema)?;
        if sorts && let Some(key) = declared::order_key(&changed.data, &schema) {
            changed = Transformed::yes(key);
        }
        Ok(changed.update_data(|e| name.restore(e)))
    })?
    .map_data(LogicalPlan::recompute_schema)?
    .map_data(|plan| again::marked(plan).recompute_schema())
}

/// `e` over columns of `schema` as it is meant.
pub fn expression(e: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    e.transform_up(|e| {
        for change in [
            decimals::change,
            rounded::change,
            checked::change,
            calendar::change,
            as_text::change,
            declared::change,
            joined::change,
            map_key,
            coarser,
        ] {
            if let Some(new) = change(&e, schema)? {
                return Ok(Transformed::yes(new));
            }
        }
        Ok(Transformed::no(e))
    })
}

/// A literal key as the map's keys are: DataFusion compares only what is of one type.
fn map_key(e: &Expr, schema: &DFSchema) -> Result<Option<Expr>> {
    let Expr::ScalarFunction(f) = e else { return Ok(None) };
    let [map, key] = f.args.as_slice() else { return Ok(None) };
    if f.name() != "get_field" {
        return Ok(None);
    }
    let DataType::Map(entries, _) = map.get_type(schema)? else { return Ok(None) };
    let (DataType::Struct(fields), Expr::Literal(value, _)) = (entries.data_type(), key) else { return Ok(None) };
    let wanted = fields[0].data_type();
    if value.data_type() == *wanted {
        return Ok(None);
    }
    let key = Expr::Literal(value.cast_to(wanted)?, None);
    Ok(Some(f.func.call(vec![map.clone(), key])))
}

/// A comparison that DataFusion would make in nanoseconds, which reach to 2262, though no side has any.
fn coarser(e: &Expr, schema: &DFSchema) -> Result<Option<Expr>> {
    let coarse = |e: &Expr| -> Option<Expr> {
        let Expr::Cast(c) = e else { return as_text::in_microseconds(e) };
        let DataType::Timestamp(TimeUnit::Nanosecond, zone) = c.field.data_type() else { return None };
        match c.expr.get_type(schema).ok()? {
            DataType::Timestamp(TimeUnit::Nanosecond, _) => None,
            DataType::Timestamp(..) | DataType::Date32 => {
                c.expr.as_ref().clone().cast_to(&DataType::Timestamp(TimeUnit::Microsecond, zone.clone()), schema).ok()
            }
            _ => None,
        }
    };
    Ok(match e {
        Expr::BinaryExpr(b) if b.op.supports_propagation() => {
            coarse(&b.left).zip(coarse(&b.right)).map(|(l, r)| Expr::BinaryExpr(BinaryExpr::new(Box::new(l), b.op, Box::new(r))))
        }
        Expr::Between(b) => match (coarse(&b.expr), coarse(&b.low), coarse(&b.high)) {
            (Some(expr), Some(low), Some(high)) => {
                Some(Expr::Between(Between::new(Box::new(expr), b.negated, Box::new(low), Box::new(high))))
            }
            _ => None,
        },
        Expr::InList(l) => match (coarse(&l.expr), l.list.iter().map(coarse).collect::<Option<Vec<_>>>()) {
            (Some(expr), Some(list)) => Some(Expr::InList(InList::new(Box::new(expr), list, l.negated))),
            _ => None,
        },
        _ => None,
    })
}

/// The value of a literal below casts to a type of the same kind and aliases.
fn literal_text(e: &Expr) -> Option<&str> {
    match e {
        Expr::Literal(value, _) => value.try_as_str().flatten(),
        Expr::Cast(c) if is_text(c.field.data_type()) => literal_text(&c.expr),
        Expr::Alias(Alias { expr, .. }) => literal_text(expr),
        _ => None,
    }
}

fn is_text(t: &DataType) -> bool {
    match t {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => true,
        DataType::Dictionary(_, value) => is_text(value),
        _ => false,
    }
}

fn text_literal(t: &str) -> Expr {
    Expr::Literal(ScalarValue::Utf8View(Some(t.to_owned())), None)
}

/// Whether `e` names no column.
pub fn is_constant(e: &Expr) -> bool {
    let mut constant = true;
    let _ = e.apply(|e| {
        constant &= !matches!(e, Expr::Column(Column { .. }) | Expr::OuterReferenceColumn(..) | Expr::Placeholder(_));
        Ok(datafusion::common::tree_node::TreeNodeRecursion::Continue)
    });
    constant
}

#[cfg(test)]
mod tests;
