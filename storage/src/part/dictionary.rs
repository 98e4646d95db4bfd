//! Dictionary-coded column chunks, written and read as they are coded.
//!
//! A rewrite moves rows, not values: a value that stood in a source's dictionary is looked up once for the output's, however many rows
//! have it, and a run of rows is a run of numbers. `intern` numbers values, `codebook` keeps a column's from chunk to chunk, `hybrid` is Parquet's coding of numbers, `write` makes a
//! chunk, `read` hands a chunk out as numbers and dictionary. What they do not know (nested types, rare codecs, dictionaries that grew
//! too large) is left to the Parquet library, which writes the same chunks, only slower.
//!
//! Guards: a chunk written here has the pages, bounds and page index that the library gives the same values.

pub(super) mod codebook;
pub(super) mod hybrid;
pub(super) mod intern;
pub(super) mod read;
pub(super) mod write;

use arrow::{
    array::{Array, ArrayRef, AsArray, DictionaryArray, Int32Array, StringArray},
    datatypes::{DataType, TimeUnit},
};
use parquet::basic::Type as Physical;
use std::sync::Arc;

/// Texts become a dictionary where at most one row in this many brings a new one.
const ROWS_PER_TEXT: usize = 8;
/// So many distinct texts are a dictionary in any case.
const DISTINCT_TEXTS_FREE: usize = 4096;

/// The texts of a column of views as a dictionary, which is cheaper to sort and to take. `None` where it is no such column, or one of
/// many distinct texts.
pub fn text_dictionary(column: &ArrayRef) -> Option<ArrayRef> {
    let views = column.as_string_view_opt()?;
    let mut texts = intern::Texts::new();
    let mut keys: Vec<i32> = Vec::with_capacity(views.len());
    for (i, view) in views.views().iter().enumerate() {
        if views.is_null(i) {
            keys.push(0);
            continue;
        }
        // Short texts lie in the view itself, behind their length.
        let length = *view as u32 as usize;
        let number = match view.to_le_bytes().get(4..4 + length) {
            Some(text) => texts.number(text),
            None => texts.number(views.value(i).as_bytes()),
        };
        if texts.len() > i / ROWS_PER_TEXT + DISTINCT_TEXTS_FREE {
            return None;
        }
        keys.push(i32::try_from(number).ok()?);
    }
    let words: Option<Vec<&str>> = (0..texts.len()).map(|i| std::str::from_utf8(texts.get(i)).ok()).collect();
    let words = words.filter(|w| !w.is_empty())?;
    let keys = Int32Array::new(keys.into(), views.nulls().cloned());
    Some(Arc::new(DictionaryArray::try_new(keys, Arc::new(StringArray::from_iter_values(words))).ok()?))
}

/// How values of a flat column lie in a dictionary, and in which order they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Int32,
    UInt32,
    Int64,
    UInt64,
    Float32,
    Float64,
    Text,
}

impl Kind {
    /// Of an Arrow type, seen through a dictionary. `None` for types that are not handled here.
    pub fn of(t: &DataType) -> Option<Self> {
        Some(match t {
            DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::Date32 => Self::Int32,
            DataType::UInt8 | DataType::UInt16 | DataType::UInt32 => Self::UInt32,
            DataType::Int64 | DataType::Timestamp(TimeUnit::Microsecond | TimeUnit::Nanosecond, _) => Self::Int64,
            DataType::UInt64 => Self::UInt64,
            DataType::Float32 => Self::Float32,
            DataType::Float64 => Self::Float64,
            DataType::Utf8 | DataType::Utf8View => Self::Text,
            DataType::Dictionary(keys, values) if **keys == DataType::Int32 => return Self::of(values),
            _ => return None,
        })
    }

    pub fn physical(self) -> Physical {
        match self {
            Self::Int32 | Self::UInt32 => Physical::INT32,
            Self::Int64 | Self::UInt64 => Physical::INT64,
            Self::Float32 => Physical::FLOAT,
            Self::Float64 => Physical::DOUBLE,
            Self::Text => Physical::BYTE_ARRAY,
        }
    }

    /// Bytes of a value that is no text.
    pub fn width(self) -> usize {
        match self.physical() {
            Physical::INT32 | Physical::FLOAT => 4,
            _ => 8,
        }
    }
}

#[cfg(test)]
mod tests;
