//! Dictionary-coded column chunks, written and read as they are coded.
//!
//! A rewrite moves rows, not values: a value that stood in a source's dictionary is looked up once for the output's, however many rows
//! have it, and a run of rows is a run of numbers. `intern` numbers values, `codebook` keeps a column's from chunk to chunk, `hybrid` is Parquet's coding of numbers, `write` makes a
//! chunk and `page_index` what readers skip by, `read` hands a chunk out as numbers and dictionary; `delta` makes chunks of differences. What they do not know (nested types, rare codecs, dictionaries that grew
//! too large) is left to the Parquet library, which writes the same chunks, only slower.
//!
//! Guards: a chunk written here has the pages, bounds and page index that the library gives the same values.

pub(super) mod codebook;
pub(super) mod delta;
pub(super) mod hybrid;
pub(super) mod intern;
mod page_index;
pub(super) mod read;
pub(super) mod write;

use arrow::datatypes::{DataType, TimeUnit};
use parquet::basic::Type as Physical;

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
