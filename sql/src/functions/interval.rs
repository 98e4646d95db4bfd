//! `interval * number`, which DataFusion does not plan, for whole numbers of every width and both orders.

use super::scalar::{arity, pure};
use arrow::{
    array::{ArrayRef, AsArray, IntervalMonthDayNanoArray},
    datatypes::{DataType, Int64Type, IntervalMonthDayNano, IntervalMonthDayNanoType, IntervalUnit},
};
use datafusion::{
    common::{DFSchema, Result, exec_datafusion_err},
    logical_expr::{
        ExprSchemable, ScalarUDF,
        planner::{ExprPlanner, PlannerResult, RawBinaryExpr},
    },
    sql::sqlparser::ast::BinaryOperator,
};
use std::sync::Arc;

const NAME: &str = "interval_times";

pub fn function() -> ScalarUDF {
    let interval = || DataType::Interval(IntervalUnit::MonthDayNano);
    pure(
        NAME,
        move |types| arity(NAME, types, 2..=2).map(|()| vec![interval(), DataType::Int64]),
        move |_| Ok(interval()),
        |args, _| {
            let (intervals, numbers) = (args[0].as_primitive::<IntervalMonthDayNanoType>(), args[1].as_primitive::<Int64Type>());
            let product = intervals.iter().zip(numbers).map(|pair| match pair {
                (Some(i), Some(n)) => times(i, n).map(Some).ok_or_else(|| exec_datafusion_err!("interval * {n} is out of range")),
                _ => Ok(None),
            });
            Ok(Arc::new(product.collect::<Result<IntervalMonthDayNanoArray>>()?) as ArrayRef)
        },
    )
}

fn times(i: IntervalMonthDayNano, n: i64) -> Option<IntervalMonthDayNano> {
    let narrow = |v: i32| i64::from(v).checked_mul(n).and_then(|v| i32::try_from(v).ok());
    Some(IntervalMonthDayNano::new(narrow(i.months)?, narrow(i.days)?, i.nanoseconds.checked_mul(n)?))
}

#[derive(Debug)]
pub struct IntervalPlanner {
    function: Arc<ScalarUDF>,
}

impl IntervalPlanner {
    pub fn new() -> Self {
        Self { function: Arc::new(function()) }
    }
}

impl ExprPlanner for IntervalPlanner {
    fn plan_binary_op(&self, expr: RawBinaryExpr, schema: &DFSchema) -> Result<PlannerResult<RawBinaryExpr>> {
        if expr.op != BinaryOperator::Multiply {
            return Ok(PlannerResult::Original(expr));
        }
        let (l, r) = (expr.left.get_type(schema)?, expr.right.get_type(schema)?);
        let args = match (l, r) {
            (DataType::Interval(_), n) if n.is_integer() => vec![expr.left, expr.right],
            (n, DataType::Interval(_)) if n.is_integer() => vec![expr.right, expr.left],
            _ => return Ok(PlannerResult::Original(expr)),
        };
        Ok(PlannerResult::Planned(self.function.call(args)))
    }
}
