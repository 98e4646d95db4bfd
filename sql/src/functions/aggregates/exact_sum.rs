//! Sums of integers in two halves, the low one as wide as the result and the high one counting how often it wrapped.
//!
//! So the sum is exact in whatever order rows come and however it is split between threads; only a total that does not fit is refused.

use crate::{Error, functions::type_name, sqlstate};
use arrow::{
    array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, BooleanArray, Int64Array, ListArray, NullBufferBuilder, PrimitiveArray},
    buffer::{NullBuffer, OffsetBuffer},
    compute::cast,
    datatypes::{DataType, Field, Int64Type, UInt64Type},
};
use datafusion::{
    common::{Result, ScalarValue, internal_err},
    logical_expr::{Accumulator, EmitTo, GroupsAccumulator},
};
use std::{collections::HashSet, sync::Arc};

fn too_large(ty: &DataType) -> datafusion::error::DataFusionError {
    let message = format!("the sum is out of range of {}: sum(x::decimal(38, 0)) or sum(x::float64) has more room", type_name(ty));
    Error::invalid(message).with_sqlstate(sqlstate::NUMERIC_OUT_OF_RANGE).into()
}

/// Every value as an i128; NULLs left out.
fn fold(array: &ArrayRef, mut f: impl FnMut(i128)) -> Result<()> {
    macro_rules! each {
        ($t:ty) => {{
            let a = array.as_primitive::<$t>();
            match a.nulls() {
                None => a.values().iter().for_each(|v| f(i128::from(*v))),
                Some(_) => a.iter().flatten().for_each(|v| f(i128::from(v))),
            }
        }};
    }
    match array.data_type() {
        DataType::Int64 => each!(Int64Type),
        DataType::UInt64 => each!(UInt64Type),
        other => return internal_err!("sum of {other}"),
    }
    Ok(())
}

fn value(ty: &DataType, total: Option<i128>) -> Result<ScalarValue> {
    let Some(total) = total else { return ScalarValue::try_from(ty) };
    match ty {
        DataType::UInt64 => u64::try_from(total).map(|v| ScalarValue::UInt64(Some(v))).map_err(|_| too_large(ty)),
        _ => i64::try_from(total).map(|v| ScalarValue::Int64(Some(v))).map_err(|_| too_large(ty)),
    }
}

/// A total as its two halves, and back.
fn halves(total: i128, ty: &DataType) -> (ScalarValue, i64) {
    match ty {
        DataType::UInt64 => (ScalarValue::UInt64(Some(total as u64)), (total >> 64) as i64),
        // What the low half stands for is signed: the carry makes up for it.
        _ => (ScalarValue::Int64(Some(total as i64)), ((total - i128::from(total as i64)) >> 64) as i64),
    }
}

/// The sum of one group, also over a window that slides.
#[derive(Debug)]
pub struct Total {
    ty: DataType,
    sum: i128,
    /// Values that are in it: none is NULL.
    count: u64,
}

impl Total {
    pub fn new(ty: DataType) -> Self {
        Self { ty, sum: 0, count: 0 }
    }
}

impl Accumulator for Total {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let mut sum = 0i128;
        fold(&values[0], |v| sum += v)?;
        self.sum += sum;
        self.count += (values[0].len() - values[0].null_count()) as u64;
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let mut sum = 0i128;
        fold(&values[0], |v| sum += v)?;
        self.sum -= sum;
        self.count = self.count.saturating_sub((values[0].len() - values[0].null_count()) as u64);
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        value(&self.ty, (self.count > 0).then_some(self.sum))
    }

    fn size(&self) -> usize {
        size_of_val(self)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        if self.count == 0 {
            return Ok(vec![ScalarValue::try_from(&self.ty)?, ScalarValue::Int64(None)]);
        }
        let (low, carry) = halves(self.sum, &self.ty);
        Ok(vec![low, ScalarValue::Int64(Some(carry))])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.update_batch(&states[..1])?;
        fold(&states[1], |carry| self.sum += carry << 64)
    }
}

/// The sum of different values.
#[derive(Debug)]
pub struct Distinct {
    ty: DataType,
    seen: HashSet<i128>,
}

impl Distinct {
    pub fn new(ty: DataType) -> Self {
        Self { ty, seen: HashSet::new() }
    }
}

impl Accumulator for Distinct {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        fold(&values[0], |v| {
            self.seen.insert(v);
        })
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        value(&self.ty, (!self.seen.is_empty()).then(|| self.seen.iter().sum()))
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.seen.capacity() * size_of::<i128>()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        // Each is a value of the type.
        let values: ArrayRef = match self.ty {
            DataType::UInt64 => Arc::new(self.seen.iter().map(|v| *v as u64).collect::<PrimitiveArray<UInt64Type>>()),
            _ => Arc::new(self.seen.iter().map(|v| *v as i64).collect::<PrimitiveArray<Int64Type>>()),
        };
        let field = Arc::new(Field::new_list_field(self.ty.clone(), true));
        let list = ListArray::new(field, OffsetBuffer::from_lengths([values.len()]), values, None);
        Ok(vec![ScalarValue::List(Arc::new(list))])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let lists = states[0].as_list::<i32>();
        lists.iter().flatten().try_for_each(|list| self.update_batch(&[list]))
    }
}

/// Adding with the number of times that it wrapped.
pub trait Half: ArrowPrimitiveType {
    fn add(a: Self::Native, b: Self::Native) -> (Self::Native, i64);
}

impl Half for Int64Type {
    fn add(a: i64, b: i64) -> (i64, i64) {
        let (sum, wrapped) = a.overflowing_add(b);
        (
            sum,
            if !wrapped {
                0
            } else if b < 0 {
                -1
            } else {
                1
            },
        )
    }
}

impl Half for UInt64Type {
    fn add(a: u64, b: u64) -> (u64, i64) {
        let (sum, wrapped) = a.overflowing_add(b);
        (sum, i64::from(wrapped))
    }
}

/// The sums of many groups.
pub struct Groups<T: Half> {
    sums: Vec<T::Native>,
    carries: Vec<i64>,
    seen: Vec<bool>,
}

impl<T: Half> Default for Groups<T> {
    fn default() -> Self {
        Self { sums: Vec::new(), carries: Vec::new(), seen: Vec::new() }
    }
}

impl<T: Half> Groups<T> {
    fn resize(&mut self, groups: usize) {
        self.sums.resize(groups, T::Native::default());
        self.carries.resize(groups, 0);
        self.seen.resize(groups, false);
    }

    fn add(&mut self, group: usize, v: T::Native) {
        let (sum, carry) = T::add(self.sums[group], v);
        self.sums[group] = sum;
        self.carries[group] += carry;
        self.seen[group] = true;
    }

    fn take(&mut self, emit: EmitTo) -> (Vec<T::Native>, Vec<i64>, Option<NullBuffer>) {
        let (sums, carries, seen) =
            (emit.take_needed(&mut self.sums), emit.take_needed(&mut self.carries), emit.take_needed(&mut self.seen));
        let nulls = seen.contains(&false).then(|| NullBuffer::from(seen));
        (sums, carries, nulls)
    }
}

impl<T: Half> GroupsAccumulator for Groups<T> {
    fn update_batch(&mut self, values: &[ArrayRef], groups: &[usize], filter: Option<&BooleanArray>, total: usize) -> Result<()> {
        self.resize(total);
        let values = values[0].as_primitive::<T>();
        if values.null_count() == 0 && filter.is_none() {
            for (group, v) in groups.iter().zip(values.values()) {
                self.add(*group, *v);
            }
            return Ok(());
        }
        for (row, group) in groups.iter().enumerate() {
            let wanted = filter.is_none_or(|f| f.is_valid(row) && f.value(row));
            if wanted && values.is_valid(row) {
                self.add(*group, values.value(row));
            }
        }
        Ok(())
    }

    fn evaluate(&mut self, emit: EmitTo) -> Result<ArrayRef> {
        let (sums, carries, nulls) = self.take(emit);
        if carries.iter().any(|c| *c != 0) {
            return Err(too_large(&T::DATA_TYPE));
        }
        Ok(Arc::new(PrimitiveArray::<T>::new(sums.into(), nulls)))
    }

    fn state(&mut self, emit: EmitTo) -> Result<Vec<ArrayRef>> {
        let (sums, carries, nulls) = self.take(emit);
        Ok(vec![Arc::new(PrimitiveArray::<T>::new(sums.into(), nulls.clone())), Arc::new(Int64Array::new(carries.into(), nulls))])
    }

    fn merge_batch(&mut self, states: &[ArrayRef], groups: &[usize], total: usize) -> Result<()> {
        self.update_batch(&states[..1], groups, None, total)?;
        let carries = states[1].as_primitive::<Int64Type>();
        for (row, group) in groups.iter().enumerate() {
            if carries.is_valid(row) {
                self.carries[*group] += carries.value(row);
            }
        }
        Ok(())
    }

    fn convert_to_state(&self, values: &[ArrayRef], filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        let values = cast(&values[0], &T::DATA_TYPE)?;
        let mut nulls = NullBufferBuilder::new(values.len());
        for row in 0..values.len() {
            nulls.append(values.is_valid(row) && filter.is_none_or(|f| f.is_valid(row) && f.value(row)));
        }
        let nulls = nulls.finish();
        let sums = PrimitiveArray::<T>::new(values.as_primitive::<T>().values().clone(), nulls.clone());
        let carries = Int64Array::new(vec![0; values.len()].into(), nulls);
        Ok(vec![Arc::new(sums), Arc::new(carries)])
    }

    fn size(&self) -> usize {
        self.sums.capacity() * size_of::<T::Native>() + self.carries.capacity() * size_of::<i64>() + self.seen.capacity()
    }
}

#[cfg(test)]
mod tests;
