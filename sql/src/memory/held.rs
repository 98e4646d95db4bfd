//! Aggregates that keep rows until the end: `array_agg` and `string_agg`.
//!
//! DataFusion's count a text of a view as its sixteen bytes, and keep the whole batch that a few of its rows came from. Here what they
//! keep is theirs alone and counted in full, twice: its answer is a copy.

use arrow::{
    array::{Array, ArrayRef, AsArray, BooleanArray, OffsetSizeTrait},
    datatypes::DataType,
};
use datafusion::{
    common::{Result, ScalarValue},
    logical_expr::{Accumulator, EmitTo, GroupsAccumulator},
};
use std::sync::Arc;

/// What is kept and its copy.
const COPIES: usize = 2;
/// Views that keep this much more than they show are copied.
const WASTE_BYTES: usize = 64 << 10;

/// What the values of `array` need if they are alone.
pub fn bytes_of(array: &ArrayRef) -> usize {
    fn list<O: OffsetSizeTrait>(array: &ArrayRef) -> usize {
        let lists = array.as_list::<O>();
        let offsets = lists.value_offsets();
        let (first, last) = (offsets[0].as_usize(), offsets[offsets.len() - 1].as_usize());
        std::mem::size_of_val(offsets) + bytes_of(&lists.values().slice(first, last - first))
    }
    match array.data_type() {
        DataType::Utf8View => 16 * array.len() + array.as_string_view().total_bytes_len(),
        DataType::BinaryView => 16 * array.len() + array.as_binary_view().total_bytes_len(),
        DataType::List(_) => list::<i32>(array),
        DataType::LargeList(_) => list::<i64>(array),
        DataType::Struct(_) => array.as_struct().columns().iter().map(bytes_of).sum(),
        _ => array.to_data().get_slice_memory_size().unwrap_or_else(|_| array.get_array_memory_size()),
    }
}

/// `array` without the buffers that only others need.
pub fn compact(array: &ArrayRef) -> ArrayRef {
    let wastes = || array.get_buffer_memory_size() > 2 * bytes_of(array) + WASTE_BYTES;
    match array.data_type() {
        DataType::Utf8View if wastes() => Arc::new(array.as_string_view().gc()),
        DataType::BinaryView if wastes() => Arc::new(array.as_binary_view().gc()),
        _ => array.clone(),
    }
}

fn compacted(values: &[ArrayRef]) -> (Vec<ArrayRef>, usize) {
    let values: Vec<ArrayRef> = values.iter().map(compact).collect();
    let bytes = values.iter().map(bytes_of).sum();
    (values, bytes)
}

/// One group.
#[derive(Debug)]
pub struct Held {
    pub inner: Box<dyn Accumulator>,
    bytes: usize,
}

impl Held {
    pub fn new(inner: Box<dyn Accumulator>) -> Self {
        Self { inner, bytes: 0 }
    }
}

impl Accumulator for Held {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let (values, bytes) = compacted(values);
        self.bytes += bytes;
        self.inner.update_batch(&values)
    }
    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let (states, bytes) = compacted(states);
        self.bytes += bytes;
        self.inner.merge_batch(&states)
    }
    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.bytes = self.bytes.saturating_sub(values.iter().map(bytes_of).sum());
        self.inner.retract_batch(values)
    }
    fn supports_retract_batch(&self) -> bool {
        self.inner.supports_retract_batch()
    }
    fn evaluate(&mut self) -> Result<ScalarValue> {
        self.inner.evaluate()
    }
    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        self.inner.state()
    }
    fn size(&self) -> usize {
        size_of_val(self) + COPIES * self.inner.size().max(self.bytes)
    }
}

/// Many groups.
pub struct HeldGroups {
    pub inner: Box<dyn GroupsAccumulator>,
    bytes: usize,
    groups: usize,
}

impl HeldGroups {
    pub fn new(inner: Box<dyn GroupsAccumulator>) -> Self {
        Self { inner, bytes: 0, groups: 0 }
    }

    /// Groups that are given out are assumed to be as large as the others.
    fn give_out(&mut self, emit: EmitTo) {
        let left = match emit {
            EmitTo::All => 0,
            EmitTo::First(n) => self.groups.saturating_sub(n),
        };
        self.bytes = match self.groups {
            0 => 0,
            groups => (self.bytes as u128 * left as u128 / groups as u128) as usize,
        };
        self.groups = left;
    }
}

impl GroupsAccumulator for HeldGroups {
    fn update_batch(&mut self, values: &[ArrayRef], groups: &[usize], filter: Option<&BooleanArray>, total: usize) -> Result<()> {
        let (values, bytes) = compacted(values);
        (self.bytes, self.groups) = (self.bytes + bytes, total);
        self.inner.update_batch(&values, groups, filter, total)
    }
    fn merge_batch(&mut self, states: &[ArrayRef], groups: &[usize], total: usize) -> Result<()> {
        let (states, bytes) = compacted(states);
        (self.bytes, self.groups) = (self.bytes + bytes, total);
        self.inner.merge_batch(&states, groups, total)
    }
    fn evaluate(&mut self, emit: EmitTo) -> Result<ArrayRef> {
        let answer = self.inner.evaluate(emit);
        self.give_out(emit);
        answer
    }
    fn state(&mut self, emit: EmitTo) -> Result<Vec<ArrayRef>> {
        let state = self.inner.state(emit);
        self.give_out(emit);
        state
    }
    fn convert_to_state(&self, values: &[ArrayRef], filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        self.inner.convert_to_state(values, filter)
    }
    fn size(&self) -> usize {
        COPIES * self.inner.size().max(self.bytes)
    }
}
