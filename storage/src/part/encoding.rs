//! Which Parquet encoding a column of a part gets: the fewest bytes by a sample, among encodings that decode fast.
//!
//! Metrics with few digits repeat and go into a dictionary; full-precision floats do not and are split by byte; counters and times
//! differ by little and are stored as differences. Texts always try a dictionary: Parquet falls back by itself when it grows.

use crate::codec::{ColumnCodec, Preprocessor};
use arrow::{
    array::{Array, ArrayRef, AsArray},
    compute::cast,
    datatypes::{DataType, Float64Type, Int64Type},
};
use parquet::basic::Encoding;
use std::collections::HashSet;

/// Rows looked at for a column.
const SAMPLE_ROWS: usize = 32_768;
/// Rows of one stretch of the sample: differences need neighbours.
const STRETCH_ROWS: usize = 1024;
/// Differences decode slower than a dictionary: they must save a tenth.
const DELTA_BIAS: f64 = 0.9;

/// What a column is written with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    Dictionary,
    Plain(Encoding),
}

/// For a column whose values are `array` (all rows of the first row group), with the column's own CODEC if it has one.
pub fn choose(array: &ArrayRef, codec: Option<&ColumnCodec>) -> Choice {
    match codec.and_then(|c| c.preprocessor) {
        Some(Preprocessor::Gorilla) if array.data_type().is_floating() => return Choice::Plain(Encoding::BYTE_STREAM_SPLIT),
        Some(Preprocessor::Delta | Preprocessor::DoubleDelta | Preprocessor::T64) if is_whole(array.data_type()) => {
            return Choice::Plain(Encoding::DELTA_BINARY_PACKED);
        }
        _ => {}
    }
    match array.data_type() {
        t if is_whole(t) => {
            cast(array, &DataType::Int64).map_or(Choice::Dictionary, |a| choose_whole(a.as_primitive::<Int64Type>().values()))
        }
        DataType::Float32 | DataType::Float64 => {
            let width = if *array.data_type() == DataType::Float32 { 4.0 } else { 8.0 };
            cast(array, &DataType::Float64).map_or(Choice::Dictionary, |a| choose_float(a.as_primitive::<Float64Type>().values(), width))
        }
        _ => Choice::Dictionary,
    }
}

fn is_whole(t: &DataType) -> bool {
    t.is_integer() || matches!(t, DataType::Timestamp(..) | DataType::Date32)
}

/// Stretches spread evenly over the rows.
fn sample<T: Copy>(values: &[T]) -> impl Iterator<Item = &[T]> {
    let stretches = SAMPLE_ROWS / STRETCH_ROWS;
    let step = (values.len() / stretches).max(STRETCH_ROWS);
    values.chunks(step).map(|c| &c[..c.len().min(STRETCH_ROWS)])
}

/// Bytes a value in a dictionary, the dictionary's own share included.
fn dictionary_bytes(distinct: usize, sampled: usize, total: usize, width: f64) -> f64 {
    // A sample that is mostly new values says that the rest is too.
    let grown = if distinct * 2 > sampled { distinct as f64 * total as f64 / sampled.max(1) as f64 } else { distinct as f64 };
    let bits = (grown.max(2.0)).log2().ceil();
    bits / 8.0 + grown * width / total.max(1) as f64
}

fn choose_whole(values: &[i64]) -> Choice {
    let (mut distinct, mut sampled, mut delta_bits) = (HashSet::new(), 0usize, 0f64);
    for stretch in sample(values) {
        sampled += stretch.len();
        distinct.extend(stretch.iter().copied());
        // Blocks of 32 differences share a width, as in Parquet's miniblocks.
        for block in stretch.windows(2).map(|w| w[1].wrapping_sub(w[0])).collect::<Vec<_>>().chunks(32) {
            let (min, max) = block.iter().fold((i64::MAX, i64::MIN), |(lo, hi), d| (lo.min(*d), hi.max(*d)));
            let width = 64 - (max.wrapping_sub(min) as u64).leading_zeros();
            delta_bits += f64::from(width) * block.len() as f64;
        }
    }
    if sampled == 0 {
        return Choice::Dictionary;
    }
    let delta = delta_bits / 8.0 / sampled as f64 + 0.1;
    match delta < dictionary_bytes(distinct.len(), sampled, values.len(), 8.0) * DELTA_BIAS {
        true => Choice::Plain(Encoding::DELTA_BINARY_PACKED),
        false => Choice::Dictionary,
    }
}

fn choose_float(values: &[f64], width: f64) -> Choice {
    let (mut distinct, mut sampled) = (HashSet::new(), 0);
    for stretch in sample(values) {
        sampled += stretch.len();
        distinct.extend(stretch.iter().map(|v| v.to_bits()));
    }
    // Split by byte, the upper bytes of like values compress to little: about a quarter is saved.
    match dictionary_bytes(distinct.len(), sampled, values.len(), width) < width * 0.75 {
        true => Choice::Dictionary,
        false => Choice::Plain(Encoding::BYTE_STREAM_SPLIT),
    }
}

#[cfg(test)]
mod tests;
