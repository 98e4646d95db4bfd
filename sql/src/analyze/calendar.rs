//! Times of a zone plus intervals, on the zone's calendar. DataFusion's operator gives up where the sum is a local time that the clocks skip
//! or show twice: one hour of every year would never be due.

use crate::functions::{
    time_arithmetic::plus,
    times::{named_zone, time_type},
};
use arrow::datatypes::{DataType, Field, FieldRef, IntervalUnit};
use datafusion::{
    common::{DFSchema, Result, exec_err},
    logical_expr::{
        BinaryExpr, ColumnarValue, Expr, ExprSchemable, Operator, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
        Volatility,
    },
};
use std::sync::Arc;

pub fn change(e: &Expr, schema: &DFSchema) -> Result<Option<Expr>> {
    let Expr::BinaryExpr(BinaryExpr { left, op: op @ (Operator::Plus | Operator::Minus), right }) = e else { return Ok(None) };
    let (l, r) = (left.get_type(schema)?, right.get_type(schema)?);
    let interval = |t: &DataType| matches!(t, DataType::Interval(_));
    let plus = |time: &Expr, by: &Expr| Plus::function(*op).call(vec![time.clone(), by.clone()]);
    Ok(match op {
        _ if has_calendar(&l) && interval(&r) => Some(plus(left, right)),
        Operator::Plus if interval(&l) && has_calendar(&r) => Some(plus(right, left)),
        _ => None,
    })
}

/// A time in a zone whose days are not all as long.
fn has_calendar(t: &DataType) -> bool {
    matches!(t, DataType::Timestamp(_, Some(zone)) if named_zone(zone).is_ok_and(|zone| zone.is_some()))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Plus {
    op: Operator,
    signature: Signature,
}

impl Plus {
    fn function(op: Operator) -> ScalarUDF {
        ScalarUDF::new_from_impl(Self { op, signature: Signature::user_defined(Volatility::Immutable) })
    }
}

impl ScalarUDFImpl for Plus {
    fn name(&self) -> &str {
        if self.op == Operator::Minus { "minus_interval" } else { "plus_interval" }
    }

    /// As the operator, so that the names of columns stay.
    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        Ok(match args {
            [time, by] => format!("{} {} {}", time.schema_name(), self.op, by.schema_name()),
            _ => self.name().to_owned(),
        })
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        match types {
            [time, _] => Ok(vec![time_type(self.name(), time)?, DataType::Interval(IntervalUnit::MonthDayNano)]),
            _ => exec_err!("{} takes a time and an interval", self.name()),
        }
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match types.first() {
            Some(time) => time_type(self.name(), time),
            None => exec_err!("{} takes a time and an interval", self.name()),
        }
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let types: Vec<DataType> = args.arg_fields.iter().map(|f| f.data_type().clone()).collect();
        let nullable = args.arg_fields.iter().any(|f| f.is_nullable());
        Ok(Arc::new(Field::new(self.name(), self.return_type(&types)?, nullable)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        let [times, by] = arrays.as_slice() else { return exec_err!("{} takes a time and an interval", self.name()) };
        Ok(ColumnarValue::Array(plus("time arithmetic", times, by, if self.op == Operator::Minus { -1 } else { 1 })?))
    }
}
