//! The distinct values of a column in a part, while they are few: what an INDEX of type set keeps, so that a part that lacks a value is
//! not opened for it.
//!
//! Guards: a set names every value of the part's rows, hidden ones too, or there is none; it stays small, since the manifest holds it.

use crate::{Result, ids::ColumnId, part::stats::Bound};
use arrow::{
    array::{AnyDictionaryArray, Array, ArrayRef, AsArray, BooleanArray},
    compute::{cast, filter},
    datatypes::{DataType, Int64Type, UInt64Type},
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// A set of more bytes is not kept.
pub const SET_BYTES_MAX: usize = 4096;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ColumnSet {
    pub column: ColumnId,
    /// Rising. NULL is none of them.
    pub values: Vec<Bound>,
}

/// Gathers a column's values while its rows are written.
#[derive(Debug)]
pub struct Gathered {
    column: ColumnId,
    values: Distinct,
}

/// Distinct values, while they are few.
#[derive(Debug)]
pub(super) struct Distinct {
    max: usize,
    /// `None` once they were too many, or rows came of which they are not known.
    values: Option<Values>,
}

#[derive(Debug)]
enum Values {
    None,
    Ints(BTreeSet<i64>),
    UInts(BTreeSet<u64>),
    Texts(BTreeSet<String>),
}

impl Gathered {
    /// Up to `max` values; 0: as many as may be kept.
    pub fn new(column: ColumnId, max: u64) -> Self {
        Self { column, values: Distinct::new(max) }
    }

    /// Values of rows that are written.
    ///
    /// # Errors
    /// `Internal` where arrow refuses.
    pub fn push(&mut self, array: &ArrayRef) -> Result<()> {
        self.values.push(array)
    }

    /// Rows taken over unread: of a part whose sets are these.
    pub fn take_over(&mut self, sets: &[ColumnSet]) {
        self.values.join(sets.iter().find(|s| s.column == self.column).map(|s| s.values.as_slice()));
    }

    pub fn finish(self) -> Option<ColumnSet> {
        Some(ColumnSet { column: self.column, values: self.values.finish()? })
    }
}

impl Distinct {
    pub fn new(max: u64) -> Self {
        let max = usize::try_from(max).ok().filter(|n| *n > 0).unwrap_or(usize::MAX);
        Self { max, values: Some(Values::None) }
    }

    pub fn push(&mut self, array: &ArrayRef) -> Result<()> {
        let Some(values) = &mut self.values else { return Ok(()) };
        let array = match array.as_any_dictionary_opt() {
            None => array.clone(),
            Some(dictionary) => filter(dictionary.values(), &used(dictionary))?,
        };
        if !values.add(&array, self.max)? {
            self.values = None;
        }
        Ok(())
    }

    /// All of `values`; `None`: they are not known.
    pub fn join(&mut self, values: Option<&[Bound]>) {
        let joined = values.zip(self.values.as_mut()).is_some_and(|(theirs, values)| values.join(theirs, self.max));
        if !joined {
            self.values = None;
        }
    }

    /// Rising; `None` where they were too many.
    pub fn finish(self) -> Option<Vec<Bound>> {
        Some(match self.values? {
            Values::None => Vec::new(),
            Values::Ints(v) => v.into_iter().map(Bound::Int).collect(),
            Values::UInts(v) => v.into_iter().map(Bound::UInt).collect(),
            Values::Texts(v) => v.into_iter().map(Bound::Text).collect(),
        })
    }
}

/// Of each row the number of its value, of NULL any; none where there are no values, since all rows are NULL then.
#[expect(clippy::disallowed_methods, reason = "asked for values that there are")]
pub fn numbers(dictionary: &dyn AnyDictionaryArray) -> Vec<usize> {
    if dictionary.values().is_empty() { Vec::new() } else { dictionary.normalized_keys() }
}

/// Which values of a dictionary stand in a row.
pub fn used(dictionary: &dyn AnyDictionaryArray) -> BooleanArray {
    let mut used = vec![false; dictionary.values().len()];
    for (row, key) in numbers(dictionary).into_iter().enumerate() {
        if dictionary.is_valid(row)
            && let Some(used) = used.get_mut(key)
        {
            *used = true;
        }
    }
    BooleanArray::from(used)
}

impl Values {
    /// False where they become too many, or are of a type of which no set is kept.
    fn add(&mut self, array: &ArrayRef, max: usize) -> Result<bool> {
        use DataType as T;
        match array.data_type() {
            T::Null => {}
            T::Int8 | T::Int16 | T::Int32 | T::Int64 | T::Date32 | T::Timestamp(..) => {
                let numbers = cast(array, &T::Int64)?;
                let mut last = None;
                for n in numbers.as_primitive::<Int64Type>().iter().flatten() {
                    if last.replace(n) != Some(n) && !self.insert(Bound::Int(n), max) {
                        return Ok(false);
                    }
                }
            }
            T::UInt8 | T::UInt16 | T::UInt32 | T::UInt64 => {
                let numbers = cast(array, &T::UInt64)?;
                let mut last = None;
                for n in numbers.as_primitive::<UInt64Type>().iter().flatten() {
                    if last.replace(n) != Some(n) && !self.insert(Bound::UInt(n), max) {
                        return Ok(false);
                    }
                }
            }
            T::Utf8 | T::LargeUtf8 | T::Utf8View => {
                let texts = cast(array, &T::Utf8View)?;
                for text in texts.as_string_view().iter().flatten() {
                    let known = matches!(self, Self::Texts(known) if known.contains(text));
                    if !known && !self.insert(Bound::Text(text.to_owned()), max) {
                        return Ok(false);
                    }
                }
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn join(&mut self, values: &[Bound], max: usize) -> bool {
        values.iter().all(|v| self.insert(v.clone(), max))
    }

    fn insert(&mut self, value: Bound, max: usize) -> bool {
        if let Self::None = self {
            *self = match &value {
                Bound::Int(_) => Self::Ints(BTreeSet::new()),
                Bound::UInt(_) => Self::UInts(BTreeSet::new()),
                _ => Self::Texts(BTreeSet::new()),
            };
        }
        let (count, bytes) = match (&mut *self, value) {
            (Self::Ints(known), Bound::Int(n)) => {
                known.insert(n);
                (known.len(), known.len() * size_of::<i64>())
            }
            (Self::UInts(known), Bound::UInt(n)) => {
                known.insert(n);
                (known.len(), known.len() * size_of::<u64>())
            }
            (Self::Texts(known), Bound::Text(t)) => {
                known.insert(t);
                (known.len(), known.iter().map(String::len).sum())
            }
            _ => return false,
        };
        count <= max && bytes <= SET_BYTES_MAX
    }
}

#[cfg(test)]
mod tests;
