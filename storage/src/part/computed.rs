//! What an INDEX over an expression keeps of a part: bounds of the expression's values, and the values themselves while they are few.
//!
//! The values are computed by whoever knows the expression, as rows are written; rows that are taken over unread bring what was known
//! of their part. Guards: what is kept covers every row of the part, hidden ones too, or nothing is kept; a value that cannot be
//! computed fails no write.

use crate::{
    Result,
    ids::Fingerprint,
    part::{stats::Bound, value_set::Distinct},
};
use arrow::{
    array::{Array, ArrayRef, AsArray, RecordBatch},
    compute::{cast, max, max_string_view, min, min_string_view},
    datatypes::{DataType, Int64Type, UInt64Type},
};
use serde::{Deserialize, Serialize};
use std::{
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

/// A longer text is no bound: a lower one is cut, an upper one is not kept.
const TEXT_MAX: usize = 128;

/// Of the rows of a batch the values, in any order, each at least once.
pub type Values = Arc<dyn Fn(&RecordBatch) -> Result<ArrayRef> + Send + Sync>;

/// What is asked for.
#[derive(Clone)]
pub struct Computed {
    /// Of the expression over its columns.
    pub index: Fingerprint,
    /// How many distinct values are kept at the most, 0: as many as may be; `None`: bounds alone.
    pub values_max: Option<u64>,
    pub values: Values,
}

impl fmt::Debug for Computed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Computed({:?}, {:?})", self.index, self.values_max)
    }
}

/// What is kept. Without a lower bound there is no value but NULL.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ComputedValues {
    pub index: Fingerprint,
    pub min: Option<Bound>,
    pub max: Option<Bound>,
    /// Rising. NULL is none of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub values: Option<Vec<Bound>>,
}

/// Whether values of this type are kept.
pub fn keeps(ty: &DataType) -> bool {
    use DataType as T;
    ty.is_integer() || matches!(ty, T::Date32 | T::Timestamp(..) | T::Utf8 | T::LargeUtf8 | T::Utf8View)
}

/// Gathers what is asked for while rows are written.
#[derive(Debug)]
pub(super) struct Gathering {
    of: Computed,
    /// `None` once there were rows of which the values are not known.
    known: Option<Known>,
}

#[derive(Debug, Default)]
struct Known {
    /// The lowest and the highest; a highest that is not kept is `None`.
    ends: Option<(Bound, Option<Bound>)>,
    values: Option<Distinct>,
}

impl Gathering {
    pub fn new(of: Computed) -> Self {
        let values = of.values_max.map(Distinct::new);
        Self { of, known: Some(Known { ends: None, values }) }
    }

    pub fn push(&mut self, rows: &RecordBatch) {
        let Some(known) = &mut self.known else { return };
        // An expression over values that its library did not foresee: an index is worth less than the write.
        let kept = catch_unwind(AssertUnwindSafe(|| (self.of.values)(rows).and_then(|values| known.add(&values))));
        if matches!(kept, Ok(Ok(true))) {
            return;
        }
        self.known = None;
    }

    /// Rows taken over unread: of a part of which this is known.
    pub fn take_over(&mut self, of_part: &[ComputedValues]) {
        let theirs = of_part.iter().find(|c| c.index == self.of.index);
        match (&mut self.known, theirs) {
            (Some(known), Some(theirs)) => known.join(theirs),
            _ => self.known = None,
        }
    }

    pub fn finish(self) -> Option<ComputedValues> {
        let known = self.known?;
        let (min, max) = known.ends.map_or((None, None), |(min, max)| (Some(min), max));
        Some(ComputedValues { index: self.of.index, min, max, values: known.values.and_then(Distinct::finish) })
    }
}

impl Known {
    /// False for values of a type of which nothing is kept.
    fn add(&mut self, values: &ArrayRef) -> Result<bool> {
        use DataType as T;
        if *values.data_type() == T::Null {
            return Ok(true);
        }
        if !keeps(values.data_type()) {
            return Ok(false);
        }
        let ends = match values.data_type() {
            T::UInt8 | T::UInt16 | T::UInt32 | T::UInt64 => {
                let numbers = cast(values, &T::UInt64)?;
                let numbers = numbers.as_primitive::<UInt64Type>();
                min(numbers).zip(max(numbers)).map(|(low, high)| (Bound::UInt(low), Some(Bound::UInt(high))))
            }
            T::Utf8 | T::LargeUtf8 | T::Utf8View => {
                let texts = cast(values, &T::Utf8View)?;
                let texts = texts.as_string_view();
                let high = max_string_view(texts).filter(|t| t.len() <= TEXT_MAX).map(|t| Bound::Text(t.to_owned()));
                min_string_view(texts).map(|low| (Bound::Text(low[..low.floor_char_boundary(TEXT_MAX)].to_owned()), high))
            }
            _ => {
                let numbers = cast(values, &T::Int64)?;
                let numbers = numbers.as_primitive::<Int64Type>();
                min(numbers).zip(max(numbers)).map(|(low, high)| (Bound::Int(low), Some(Bound::Int(high))))
            }
        };
        self.widen(ends);
        if let Some(distinct) = &mut self.values {
            distinct.push(values)?;
        }
        Ok(true)
    }

    fn join(&mut self, other: &ComputedValues) {
        self.widen(other.min.clone().map(|min| (min, other.max.clone())));
        if let Some(distinct) = &mut self.values {
            distinct.join(other.values.as_deref());
        }
    }

    fn widen(&mut self, by: Option<(Bound, Option<Bound>)>) {
        let Some((low, high)) = by else { return };
        self.ends = Some(match self.ends.take() {
            None => (low, high),
            Some((min, max)) => {
                let max = max.zip(high).map(|(max, high)| if high > max { high } else { max });
                (if low < min { low } else { min }, max)
            }
        });
    }
}

#[cfg(test)]
mod tests;
