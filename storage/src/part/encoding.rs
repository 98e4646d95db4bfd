//! Which Parquet encoding a column of a part gets: the fewest bytes by a sample, among encodings that decode fast.
//!
//! Metrics with few digits repeat and go into a dictionary; full-precision floats do not and are split by byte; counters and times
//! differ by little and are stored as differences. Texts always try a dictionary: Parquet falls back by itself when it grows.

use crate::{
    codec::{ColumnCodec, Preprocessor},
    part::dictionary::{delta, hybrid, intern::Numbers},
};
use arrow::{
    array::{Array, ArrayRef, AsArray},
    compute::cast,
    datatypes::{DataType, Float64Type, Int64Type},
};
use parquet::basic::Encoding;

/// Rows looked at for a column.
const SAMPLE_ROWS: usize = 32_768;
/// Rows of one stretch of the sample: differences need neighbours.
const STRETCH_ROWS: usize = 1024;
/// A run's length and its number.
const RUN_BYTES: f64 = 4.0;
/// Differences decode slower than a dictionary: they must save a tenth.
const DELTA_BIAS: f64 = 0.9;

/// What a column is written with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    Dictionary,
    Plain(Encoding),
}

/// For a column whose values are `arrays`, one after another (all rows of the first row group), with the column's own CODEC if it has one.
/// Pages of a part whose codec `compresses` are compared as they come out of one.
pub fn choose(arrays: &[&ArrayRef], codec: Option<&ColumnCodec>, compresses: bool) -> Choice {
    let Some(first) = arrays.first() else { return Choice::Dictionary };
    let t = match first.data_type() {
        DataType::Dictionary(_, values) => values.as_ref().clone(),
        t => t.clone(),
    };
    match codec.and_then(|c| c.preprocessor) {
        Some(Preprocessor::Gorilla) if t.is_floating() => return Choice::Plain(Encoding::BYTE_STREAM_SPLIT),
        Some(Preprocessor::Delta | Preprocessor::DoubleDelta | Preprocessor::T64) if is_whole(&t) => {
            return Choice::Plain(Encoding::DELTA_BINARY_PACKED);
        }
        _ => {}
    }
    let total = arrays.iter().map(|a| a.len()).sum();
    let sampled = |to: &DataType| stretches(arrays, total).iter().map(|s| cast(s, to)).collect::<Result<Vec<_>, _>>().ok();
    match t {
        t if is_whole(&t) => sampled(&DataType::Int64).map_or(Choice::Dictionary, |s| choose_whole(&s, total, compresses)),
        DataType::Float32 | DataType::Float64 => {
            let width = if t == DataType::Float32 { 4.0 } else { 8.0 };
            sampled(&DataType::Float64).map_or(Choice::Dictionary, |s| choose_float(&s, total, width))
        }
        _ => Choice::Dictionary,
    }
}

/// Stretches spread evenly over all rows; one that passes over the end of an array comes in pieces.
fn stretches(arrays: &[&ArrayRef], total: usize) -> Vec<ArrayRef> {
    let step = (total / (SAMPLE_ROWS / STRETCH_ROWS)).max(STRETCH_ROWS);
    let mut pieces = Vec::new();
    let mut before = 0;
    for array in arrays {
        let end = before + array.len();
        // From the stretch that the array begins in.
        for stretch in ((before - before % step)..end).step_by(step) {
            let (from, to) = (stretch.max(before), (stretch + STRETCH_ROWS).min(end));
            if from < to {
                pieces.push(array.slice(from - before, to - from));
            }
        }
        before = end;
    }
    pieces
}

fn is_whole(t: &DataType) -> bool {
    t.is_integer() || matches!(t, DataType::Timestamp(..) | DataType::Date32)
}

/// What a sample says of a dictionary for all rows.
struct Sampled {
    /// Of each row, its value's number.
    numbers: Vec<u32>,
    distinct: Numbers,
    runs: usize,
    total: usize,
}

impl Sampled {
    fn of(total: usize) -> Self {
        Self { numbers: Vec::new(), distinct: Numbers::new(), runs: 0, total }
    }

    fn take(&mut self, values: impl Iterator<Item = u64>) {
        let before = self.numbers.len();
        self.numbers.extend(values.map(|v| self.distinct.number(v)));
        self.runs += self.numbers[before..].chunk_by(|a, b| a == b).count();
    }

    /// Distinct values of all rows: those seen, and as many unseen ones as values seen once and twice tell of (Chao, "Nonparametric
    /// estimation of the number of classes in a population", 1984).
    fn values(&self) -> f64 {
        let mut times = vec![0u32; self.distinct.values.len()];
        self.numbers.iter().for_each(|n| times[*n as usize] += 1);
        let (once, twice) = times.iter().fold((0, 0), |(a, b), n| (a + u32::from(*n == 1), b + u32::from(*n == 2)));
        let unseen = f64::from(once) * f64::from(once) / (2.0 * f64::from(twice.max(1)));
        (times.len() as f64 + unseen).min(self.total as f64)
    }

    /// Bytes of a row's number. Equal values in a row are stored once a run.
    fn packed_bytes(&self, values: f64) -> f64 {
        (values.max(2.0).log2().ceil() / 8.0).min(self.runs as f64 * RUN_BYTES / self.rows())
    }

    /// The dictionary's own bytes, a row.
    fn own_bytes(&self, values: f64, width: f64) -> f64 {
        values * width / self.total.max(1) as f64
    }

    fn rows(&self) -> f64 {
        self.numbers.len().max(1) as f64
    }
}

fn choose_whole(sample: &[ArrayRef], total: usize, compresses: bool) -> Choice {
    let (mut sampled, mut delta_bits) = (Sampled::of(total), 0f64);
    for stretch in sample.iter().map(|s| s.as_primitive::<Int64Type>().values()) {
        sampled.take(stretch.iter().map(|v| *v as u64));
        // Blocks of 32 differences share a width, as in Parquet's miniblocks.
        for from in (1..stretch.len()).step_by(32) {
            let block = &stretch[from - 1..stretch.len().min(from + 32)];
            let differences = block.windows(2).map(|w| w[1].wrapping_sub(w[0]));
            let (min, max) = differences.fold((i64::MAX, i64::MIN), |(lo, hi), d| (lo.min(d), hi.max(d)));
            let width = 64 - (max.wrapping_sub(min) as u64).leading_zeros();
            delta_bits += f64::from(width) * (block.len() - 1) as f64;
        }
    }
    if sampled.numbers.is_empty() {
        return Choice::Dictionary;
    }
    let (delta, values) = (delta_bits / 8.0 / sampled.rows() + 0.1, sampled.values());
    let own = sampled.own_bytes(values, 8.0);
    let dictionary = sampled.packed_bytes(values) + own;
    // Times with gaps differ by a few large numbers: many bits, and always the same. A codec sees that, and sees nothing in numbers that rise.
    let packed_better = || {
        let (delta, codes) = (packed_deltas(sample), packed_numbers(&sampled.numbers));
        let of_sample = |bytes: &[u8]| lz4_flex::block::compress(bytes).len() as f64 / sampled.rows();
        of_sample(&delta) < (of_sample(&codes) + own) * DELTA_BIAS
    };
    match delta < dictionary * DELTA_BIAS || compresses && packed_better() {
        true => Choice::Plain(Encoding::DELTA_BINARY_PACKED),
        false => Choice::Dictionary,
    }
}

/// The sample as differences, as its pages would be.
fn packed_deltas(sample: &[ArrayRef]) -> Vec<u8> {
    let mut out = Vec::new();
    for stretch in sample.iter().map(|s| s.as_primitive::<Int64Type>().values()) {
        let bits: Vec<u64> = stretch.iter().map(|v| *v as u64).collect();
        delta::pack::<false>(&bits, &mut out);
    }
    out
}

/// The sample as numbers of a dictionary.
fn packed_numbers(numbers: &[u32]) -> Vec<u8> {
    let mut out = Vec::new();
    hybrid::encode(numbers, hybrid::width_of(numbers.iter().copied().max().unwrap_or(0)), &mut out);
    out
}

fn choose_float(sample: &[ArrayRef], total: usize, width: f64) -> Choice {
    let mut sampled = Sampled::of(total);
    for stretch in sample.iter().map(|s| s.as_primitive::<Float64Type>().values()) {
        sampled.take(stretch.iter().map(|v| v.to_bits()));
    }
    let values = sampled.values();
    // Split by byte, the upper bytes of like values compress to little: about a quarter is saved.
    match sampled.packed_bytes(values) + sampled.own_bytes(values, width) < width * 0.75 {
        true => Choice::Dictionary,
        false => Choice::Plain(Encoding::BYTE_STREAM_SPLIT),
    }
}

#[cfg(test)]
mod tests;
