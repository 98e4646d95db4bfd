//! Sums of decimals in twice their width, so that they are exact in whatever order rows come; a total of more than 38 digits is refused.

use crate::{Error, functions::type_name, sqlstate};
use arrow::{
    array::{Array, ArrayRef, AsArray, BooleanArray, ListArray, NullBufferBuilder, PrimitiveArray},
    buffer::{NullBuffer, OffsetBuffer},
    compute::cast,
    datatypes::{DECIMAL256_MAX_PRECISION, DataType, Decimal128Type, Decimal256Type, Field, i256},
};
use datafusion::{
    common::{Result, ScalarValue},
    logical_expr::{Accumulator, EmitTo, GroupsAccumulator},
};
use std::{collections::HashSet, sync::Arc};

fn too_large(ty: &DataType) -> datafusion::error::DataFusionError {
    let message = format!("the sum is out of range of {}: sum(x::float64) has more room", type_name(ty));
    Error::invalid(message).with_sqlstate(sqlstate::NUMERIC_OUT_OF_RANGE).into()
}

fn scale_of(ty: &DataType) -> i8 {
    match ty {
        DataType::Decimal128(_, scale) => *scale,
        _ => 0,
    }
}

/// What sums are until they are complete.
pub fn state_type(ty: &DataType) -> DataType {
    DataType::Decimal256(DECIMAL256_MAX_PRECISION, scale_of(ty))
}

/// The values as they are added: of the result's scale.
fn decimals(array: &ArrayRef, ty: &DataType) -> Result<PrimitiveArray<Decimal128Type>> {
    match array.data_type() {
        DataType::Decimal128(_, scale) if *scale == scale_of(ty) => Ok(array.as_primitive::<Decimal128Type>().clone()),
        _ => Ok(cast(array, ty)?.as_primitive::<Decimal128Type>().clone()),
    }
}

fn fitting(sum: i256, ty: &DataType) -> Result<i128> {
    let DataType::Decimal128(precision, _) = ty else { return Err(too_large(ty)) };
    let bound = 10i128.pow(u32::from(*precision).min(38));
    sum.to_i128().filter(|v| v.unsigned_abs() < bound.unsigned_abs()).ok_or_else(|| too_large(ty))
}

fn value(sum: Option<i256>, ty: &DataType) -> Result<ScalarValue> {
    let DataType::Decimal128(precision, scale) = ty else { return Err(too_large(ty)) };
    Ok(ScalarValue::Decimal128(sum.map(|s| fitting(s, ty)).transpose()?, *precision, *scale))
}

fn total(array: &PrimitiveArray<Decimal128Type>) -> i256 {
    let mut wide = i256::ZERO;
    let mut narrow: i128 = 0;
    for v in array.iter().flatten() {
        narrow = narrow.checked_add(v).unwrap_or_else(|| {
            wide = wide.wrapping_add(i256::from_i128(narrow));
            v
        });
    }
    wide.wrapping_add(i256::from_i128(narrow))
}

/// The sum of one group, also over a window that slides.
#[derive(Debug)]
pub struct Total {
    ty: DataType,
    sum: i256,
    /// Values that are in it: none is NULL.
    count: u64,
}

impl Total {
    pub fn new(ty: DataType) -> Self {
        Self { ty, sum: i256::ZERO, count: 0 }
    }
}

impl Accumulator for Total {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let values = decimals(&values[0], &self.ty)?;
        self.sum = self.sum.wrapping_add(total(&values));
        self.count += (values.len() - values.null_count()) as u64;
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let values = decimals(&values[0], &self.ty)?;
        self.sum = self.sum.wrapping_sub(total(&values));
        self.count = self.count.saturating_sub((values.len() - values.null_count()) as u64);
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        value((self.count > 0).then_some(self.sum), &self.ty)
    }

    fn size(&self) -> usize {
        size_of_val(self)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let sum = (self.count > 0).then_some(self.sum);
        Ok(vec![ScalarValue::Decimal256(sum, DECIMAL256_MAX_PRECISION, scale_of(&self.ty))])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        for sum in states[0].as_primitive::<Decimal256Type>().iter().flatten() {
            self.sum = self.sum.wrapping_add(sum);
            self.count += 1;
        }
        Ok(())
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
        self.seen.extend(decimals(&values[0], &self.ty)?.iter().flatten());
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let sum = self.seen.iter().fold(i256::ZERO, |sum, v| sum.wrapping_add(i256::from_i128(*v)));
        value((!self.seen.is_empty()).then_some(sum), &self.ty)
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.seen.capacity() * size_of::<i128>()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let values = self.seen.iter().copied().collect::<PrimitiveArray<Decimal128Type>>().with_data_type(self.ty.clone());
        let field = Arc::new(Field::new_list_field(self.ty.clone(), true));
        let list = ListArray::new(field, OffsetBuffer::from_lengths([values.len()]), Arc::new(values), None);
        Ok(vec![ScalarValue::List(Arc::new(list))])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        states[0].as_list::<i32>().iter().flatten().try_for_each(|list| self.update_batch(&[list]))
    }
}

/// The sums of many groups.
pub struct Groups {
    ty: DataType,
    sums: Vec<i256>,
    seen: Vec<bool>,
}

impl Groups {
    pub fn new(ty: DataType) -> Self {
        Self { ty, sums: Vec::new(), seen: Vec::new() }
    }

    fn resize(&mut self, groups: usize) {
        self.sums.resize(groups, i256::ZERO);
        self.seen.resize(groups, false);
    }

    fn add(&mut self, group: usize, v: i256) {
        self.sums[group] = self.sums[group].wrapping_add(v);
        self.seen[group] = true;
    }

    fn take(&mut self, emit: EmitTo) -> (Vec<i256>, Option<NullBuffer>) {
        let (sums, seen) = (emit.take_needed(&mut self.sums), emit.take_needed(&mut self.seen));
        let nulls = seen.contains(&false).then(|| NullBuffer::from(seen));
        (sums, nulls)
    }

    fn wide(&self, sums: Vec<i256>, nulls: Option<NullBuffer>) -> ArrayRef {
        Arc::new(PrimitiveArray::<Decimal256Type>::new(sums.into(), nulls).with_data_type(state_type(&self.ty)))
    }
}

impl GroupsAccumulator for Groups {
    fn update_batch(&mut self, values: &[ArrayRef], groups: &[usize], filter: Option<&BooleanArray>, total: usize) -> Result<()> {
        self.resize(total);
        let values = decimals(&values[0], &self.ty)?;
        for (row, group) in groups.iter().enumerate() {
            let wanted = filter.is_none_or(|f| f.is_valid(row) && f.value(row));
            if wanted && values.is_valid(row) {
                self.add(*group, i256::from_i128(values.value(row)));
            }
        }
        Ok(())
    }

    fn evaluate(&mut self, emit: EmitTo) -> Result<ArrayRef> {
        let (sums, nulls) = self.take(emit);
        let sums = sums.into_iter().map(|s| fitting(s, &self.ty)).collect::<Result<Vec<_>>>()?;
        Ok(Arc::new(PrimitiveArray::<Decimal128Type>::new(sums.into(), nulls).with_data_type(self.ty.clone())))
    }

    fn state(&mut self, emit: EmitTo) -> Result<Vec<ArrayRef>> {
        let (sums, nulls) = self.take(emit);
        Ok(vec![self.wide(sums, nulls)])
    }

    fn merge_batch(&mut self, states: &[ArrayRef], groups: &[usize], total: usize) -> Result<()> {
        self.resize(total);
        let sums = states[0].as_primitive::<Decimal256Type>();
        for (row, group) in groups.iter().enumerate() {
            if sums.is_valid(row) {
                self.add(*group, sums.value(row));
            }
        }
        Ok(())
    }

    fn convert_to_state(&self, values: &[ArrayRef], filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        let values = decimals(&values[0], &self.ty)?;
        let mut nulls = NullBufferBuilder::new(values.len());
        for row in 0..values.len() {
            nulls.append(values.is_valid(row) && filter.is_none_or(|f| f.is_valid(row) && f.value(row)));
        }
        let sums = values.values().iter().map(|v| i256::from_i128(*v)).collect();
        Ok(vec![self.wide(sums, nulls.finish())])
    }

    fn size(&self) -> usize {
        self.sums.capacity() * size_of::<i256>() + self.seen.capacity()
    }
}
