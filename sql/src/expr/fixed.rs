//! Intervals of fixed length as durations.
//!
//! `ts + INTERVAL 30 DAY` is what most rules say. Where no zone can make a day longer or shorter and no month is added, that is one
//! addition; the general way through the calendar takes twenty times as long for the same answer.

use arrow::datatypes::{DataType, IntervalMonthDayNano, Schema, TimeUnit};
use datafusion::{
    common::{
        Result, ScalarValue,
        tree_node::{Transformed, TreeNode},
    },
    logical_expr::Operator,
    physical_expr::expressions::{BinaryExpr, Literal},
    physical_plan::PhysicalExpr,
};
use std::sync::Arc;

const DAY_MICROS: i64 = 86_400_000_000;

/// `expr` with every sum or difference of a microsecond time and a fixed interval counted in microseconds.
pub(super) fn with_durations(expr: Arc<dyn PhysicalExpr>, schema: &Schema) -> Result<Arc<dyn PhysicalExpr>> {
    let shorter = |node: Arc<dyn PhysicalExpr>| -> Result<Transformed<Arc<dyn PhysicalExpr>>> {
        let Some(sum) = node.downcast_ref::<BinaryExpr>().filter(|b| matches!(b.op(), Operator::Plus | Operator::Minus)) else {
            return Ok(Transformed::no(node));
        };
        let time = |e: &Arc<dyn PhysicalExpr>| e.data_type(schema).is_ok_and(|t| is_plain(&t));
        let (left, right) = match (duration(sum.left()), duration(sum.right())) {
            (None, Some(by)) if time(sum.left()) => (sum.left().clone(), by),
            (Some(by), None) if time(sum.right()) && *sum.op() == Operator::Plus => (sum.right().clone(), by),
            _ => return Ok(Transformed::no(node)),
        };
        Ok(Transformed::yes(Arc::new(BinaryExpr::new(left, *sum.op(), right).with_fail_on_overflow(true))))
    };
    Ok(expr.transform_up(shorter)?.data)
}

/// A time in microseconds whose days all have 24 hours.
fn is_plain(t: &DataType) -> bool {
    match t {
        DataType::Timestamp(TimeUnit::Microsecond, zone) => zone.as_deref().is_none_or(|z| z == "UTC" || z == "+00:00"),
        _ => false,
    }
}

fn duration(e: &Arc<dyn PhysicalExpr>) -> Option<Arc<dyn PhysicalExpr>> {
    let ScalarValue::IntervalMonthDayNano(Some(IntervalMonthDayNano { months: 0, days, nanoseconds })) =
        e.downcast_ref::<Literal>()?.value()
    else {
        return None;
    };
    if nanoseconds % 1000 != 0 {
        return None;
    }
    let micros = i64::from(*days).checked_mul(DAY_MICROS)?.checked_add(nanoseconds / 1000)?;
    Some(Arc::new(Literal::new(ScalarValue::DurationMicrosecond(Some(micros)))))
}
