//! `min` and `max` of floats where NaN is among them: it is equal to itself and above every number, whatever its sign and wherever it
//! stands among the rows. DataFusion's compare by `<`, which a NaN answers with no, or by bits, in which it has a sign.

use arrow::{
    array::{Array, ArrayRef, AsArray, PrimitiveArray},
    datatypes::{ArrowPrimitiveType, DataType, Float32Type, Float64Type},
};
use datafusion::{
    common::{Result, ScalarValue, exec_err},
    logical_expr::{Accumulator, GroupsAccumulator},
};
use datafusion_functions_aggregate_common::aggregate::groups_accumulator::prim_op::PrimitiveGroupsAccumulator;
use std::sync::Arc;

/// The least of each group, or the greatest.
pub fn groups(ty: &DataType, max: bool) -> Result<Box<dyn GroupsAccumulator>> {
    Ok(match ty {
        DataType::Float32 => Box::new(
            PrimitiveGroupsAccumulator::<Float32Type, _>::new(ty, move |found: &mut f32, new| {
                if above(new, *found) == max {
                    *found = new;
                }
            })
            .with_starting_value(if max { f32::NEG_INFINITY } else { f32::NAN }),
        ),
        DataType::Float64 => Box::new(
            PrimitiveGroupsAccumulator::<Float64Type, _>::new(ty, move |found: &mut f64, new| {
                if above(new, *found) == max {
                    *found = new;
                }
            })
            .with_starting_value(if max { f64::NEG_INFINITY } else { f64::NAN }),
        ),
        other => return exec_err!("{other} is no float"),
    })
}

/// Whether `a` is above `b`.
#[expect(clippy::eq_op, reason = "of numbers NaN alone is not equal to itself")]
fn above<T: PartialOrd + Copy>(a: T, b: T) -> bool {
    a > b || (a != a && b == b)
}

/// An accumulator that compares bits, given one NaN alone.
#[derive(Debug)]
pub struct OneNan(pub Box<dyn Accumulator>);

impl Accumulator for OneNan {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.0.update_batch(&one_nan(values))
    }
    fn evaluate(&mut self) -> Result<ScalarValue> {
        self.0.evaluate()
    }
    fn size(&self) -> usize {
        self.0.size()
    }
    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        self.0.state()
    }
    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.0.merge_batch(&one_nan(states))
    }
    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.0.retract_batch(&one_nan(values))
    }
    fn supports_retract_batch(&self) -> bool {
        self.0.supports_retract_batch()
    }
}

fn one_nan(arrays: &[ArrayRef]) -> Vec<ArrayRef> {
    arrays
        .iter()
        .map(|array| match array.data_type() {
            DataType::Float32 => positive(array.as_primitive::<Float32Type>(), |v| v.is_nan() && v.is_sign_negative(), f32::NAN, array),
            DataType::Float64 => positive(array.as_primitive::<Float64Type>(), |v| v.is_nan() && v.is_sign_negative(), f64::NAN, array),
            _ => array.clone(),
        })
        .collect()
}

fn positive<T: ArrowPrimitiveType>(
    values: &PrimitiveArray<T>,
    negative: impl Fn(T::Native) -> bool,
    nan: T::Native,
    array: &ArrayRef,
) -> ArrayRef {
    match values.values().iter().any(|v| negative(*v)) {
        true => Arc::new(values.unary::<_, T>(|v| if negative(v) { nan } else { v })),
        false => array.clone(),
    }
}
