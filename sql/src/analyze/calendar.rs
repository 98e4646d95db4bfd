//! Times of a zone. Plus an interval they are reckoned on the zone's calendar: DataFusion's operator gives up where the sum is a local time
//! that the clocks skip or show twice, and one hour of every year would never be due. A time without a zone that becomes one of a zone is
//! a moment on the session's clocks: a column's zone says how moments are shown and moves none.

use super::as_text::{like, over};
use crate::{
    functions::{
        in_zone,
        time_arithmetic::plus,
        times::{named_zone, time_type},
    },
    types::shown_in,
};
use arrow::datatypes::{DataType, FieldRef, IntervalUnit};
use datafusion::{
    common::{DFSchema, Result, ScalarValue, exec_err},
    logical_expr::{
        BinaryExpr, ColumnarValue, Expr, ExprSchemable, Operator, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
        Volatility,
    },
};

pub fn change(e: &Expr, schema: &DFSchema) -> Result<Option<Expr>> {
    if let Expr::Cast(c) = e {
        let to = c.field.data_type();
        let moves = has_calendar(to) && matches!(c.expr.get_type(schema)?, DataType::Timestamp(_, None) | DataType::Date32);
        return Ok(moves.then(|| Moment::of(to).call(vec![c.expr.as_ref().clone()])));
    }
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

/// A time without a zone as a time of one.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Moment {
    to: DataType,
    signature: Signature,
}

impl Moment {
    fn of(to: &DataType) -> ScalarUDF {
        // The session's clocks.
        ScalarUDF::new_from_impl(Self { to: to.clone(), signature: Signature::any(1, Volatility::Stable) })
    }
}

impl ScalarUDFImpl for Moment {
    fn name(&self) -> &str {
        "moment"
    }
    /// As the cast, so that the names of columns stay.
    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        Ok(args.first().map_or_else(|| self.name().to_owned(), |of| of.schema_name().to_string()))
    }
    fn signature(&self) -> &Signature {
        &self.signature
    }
    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.to.clone())
    }
    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        Ok(like(&args, self.name(), &self.to))
    }
    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        over(&args, |given| {
            let read = shown_in(given, &self.to)?;
            match args.config_options.execution.time_zone.as_deref() {
                Some(zone) => in_zone(zone, given, &read),
                None => Ok(read),
            }
        })
    }
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
        Ok(like(&args, self.name(), &self.return_type(&types)?))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        let [times, by] = arrays.as_slice() else { return exec_err!("{} takes a time and an interval", self.name()) };
        let sums = plus("time arithmetic", times, by, if self.op == Operator::Minus { -1 } else { 1 })?;
        // Of constants the sum is one, however many rows there are.
        match args.args.iter().all(|a| matches!(a, ColumnarValue::Scalar(_))) {
            true => Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&sums, 0)?)),
            false => Ok(ColumnarValue::Array(sums)),
        }
    }
}
