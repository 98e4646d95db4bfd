//! Ordering rows by key columns: ascending, NULL first, floats in their total order, equal rows in the order they came. Merges compare
//! the same way.
//!
//! Keys are turned into integers that sort alike and packed into one word where they fit: then sorting is counting. Time series come
//! in time order, so once the leading column is grouped the rest is often in order already.

use crate::Result;
use arrow::{
    array::{Array, ArrayRef, AsArray, UInt32Array},
    compute::{SortOptions, cast, take},
    datatypes::{DataType, Float64Type, Int64Type, UInt64Type},
    record_batch::RecordBatch,
    row::{RowConverter, SortField},
};
use std::collections::HashMap;

/// Distinct texts that are still ranked through a dictionary.
const TEXTS_RANKED_MAX: usize = 1 << 18;
/// Bits sorted in one pass.
const DIGIT_BITS: u32 = 11;
/// A leading key of up to so many bits is grouped in one counting pass.
const GROUP_BITS: u32 = 18;

pub const ORDER: SortOptions = SortOptions { descending: false, nulls_first: true };

/// The order in which to take rows; `None` where they are in order already.
pub fn sort_permutation(keys: &[ArrayRef]) -> Result<Option<Vec<u32>>> {
    let Some(rows) = keys.first().map(|k| k.len()) else { return Ok(None) };
    let mut ranked = Vec::with_capacity(keys.len());
    for key in keys {
        match rank(key)? {
            Some(r) => ranked.push(r),
            None => return by_rows(keys),
        }
    }
    if ranked.iter().map(|r| r.bits).sum::<u32>() > 64 {
        return by_rows(keys);
    }
    let packed = pack(&ranked, rows);
    if packed.is_sorted() {
        return Ok(None);
    }
    let lead = ranked[0].bits;
    let rest_bits: u32 = ranked[1..].iter().map(|r| r.bits).sum();
    let rest = if rest_bits == 64 { u64::MAX } else { (1u64 << rest_bits) - 1 };
    if lead <= GROUP_BITS && packed.iter().map(|p| p & rest).is_sorted() {
        return Ok(Some(group(&packed, rest_bits, lead)));
    }
    Ok(Some(radix(&packed, lead + rest_bits)))
}

/// Rows of `batch` in the order of `permutation`.
pub fn reorder(batch: &RecordBatch, permutation: &[u32]) -> Result<RecordBatch> {
    let indices = UInt32Array::from(permutation.to_vec());
    let columns = batch.columns().iter().map(|c| take(c, &indices, None)).collect::<Result<Vec<_>, _>>()?;
    Ok(RecordBatch::try_new(batch.schema(), columns)?)
}

/// A key column as integers that sort alike: 0 to 2^bits - 1, 0 for NULL where there are any.
struct Ranked {
    values: Vec<u64>,
    bits: u32,
}

/// `None` where the column has no such form.
fn rank(key: &ArrayRef) -> Result<Option<Ranked>> {
    let raw: Vec<u64> = match key.data_type() {
        DataType::UInt64 => key.as_primitive::<UInt64Type>().values().to_vec(),
        t if t.is_integer() || matches!(t, DataType::Timestamp(..) | DataType::Date32 | DataType::Boolean) => {
            let values = cast(key, &DataType::Int64)?;
            values.as_primitive::<Int64Type>().values().iter().map(|v| (*v as u64) ^ (1 << 63)).collect()
        }
        DataType::Float32 | DataType::Float64 => {
            let values = cast(key, &DataType::Float64)?;
            values.as_primitive::<Float64Type>().values().iter().map(|v| total_order(*v)).collect()
        }
        DataType::Utf8 | DataType::Utf8View | DataType::Dictionary(..) => match text_ranks(key)? {
            Some(r) => r,
            None => return Ok(None),
        },
        _ => return Ok(None),
    };
    let nulls = key.logical_nulls().filter(|n| n.null_count() > 0);
    let is_null = |i: usize| nulls.as_ref().is_some_and(|n| n.is_null(i));
    let (mut min, mut max) = (u64::MAX, 0);
    for (i, v) in raw.iter().enumerate() {
        if !is_null(i) {
            (min, max) = (min.min(*v), max.max(*v));
        }
    }
    let span = max.saturating_sub(min.min(max));
    let first = u64::from(nulls.is_some());
    let Some(top) = span.checked_add(first) else { return Ok(None) };
    let values = raw.into_iter().enumerate().map(|(i, v)| if is_null(i) { 0 } else { v - min + first }).collect();
    Ok(Some(Ranked { values, bits: 64 - top.leading_zeros() }))
}

/// As `f64::total_cmp` orders.
fn total_order(v: f64) -> u64 {
    let bits = v.to_bits();
    if bits >> 63 == 1 { !bits } else { bits | 1 << 63 }
}

fn text_ranks(key: &ArrayRef) -> Result<Option<Vec<u64>>> {
    let dictionary = match key.data_type() {
        DataType::Dictionary(_, v) if !matches!(**v, DataType::Utf8) => return Ok(None),
        DataType::Dictionary(..) => {
            let dictionary = key.as_any_dictionary();
            let words = dictionary.values().as_string::<i32>();
            if words.is_empty() {
                return Ok(Some(vec![0; key.len()]));
            }
            let word = |i: usize| if words.is_null(i) { "" } else { words.value(i) };
            let ranks = ranks_of((0..words.len()).map(word));
            // A NULL's key may be anything; it is replaced later.
            return Ok(Some(dictionary.normalized_keys().iter().map(|k| ranks.get(*k).copied().unwrap_or(0)).collect()));
        }
        DataType::Utf8View => key.clone(),
        _ => cast(key, &DataType::Utf8View)?,
    };
    let texts = dictionary.as_string_view();
    let mut seen: HashMap<&str, u32> = HashMap::new();
    let mut words: Vec<&str> = Vec::new();
    let mut ids = Vec::with_capacity(texts.len());
    for i in 0..texts.len() {
        let word = if texts.is_null(i) { "" } else { texts.value(i) };
        // Neighbours are often equal.
        if let Some(&last) = ids.last()
            && words[last as usize] == word
        {
            ids.push(last);
            continue;
        }
        let id = *seen.entry(word).or_insert_with(|| {
            words.push(word);
            words.len() as u32 - 1
        });
        if words.len() > TEXTS_RANKED_MAX {
            return Ok(None);
        }
        ids.push(id);
    }
    let ranks = ranks_of(words.into_iter());
    Ok(Some(ids.into_iter().map(|id| ranks[id as usize]).collect()))
}

/// Of each word, how many distinct ones sort before it.
fn ranks_of<'a>(words: impl Iterator<Item = &'a str>) -> Vec<u64> {
    let mut order: Vec<(&str, usize)> = words.enumerate().map(|(i, w)| (w, i)).collect();
    order.sort_unstable();
    let mut ranks = vec![0; order.len()];
    let mut rank = 0;
    for (at, (word, i)) in order.iter().enumerate() {
        if at > 0 && order[at - 1].0 != *word {
            rank += 1;
        }
        ranks[*i] = rank;
    }
    ranks
}

fn pack(ranked: &[Ranked], rows: usize) -> Vec<u64> {
    let mut packed = vec![0u64; rows];
    for r in ranked {
        if r.bits == 0 {
            continue;
        }
        for (p, v) in packed.iter_mut().zip(&r.values) {
            *p = p.checked_shl(r.bits).unwrap_or(0) | v;
        }
    }
    packed
}

/// One stable counting pass over the leading key.
fn group(packed: &[u64], shift: u32, bits: u32) -> Vec<u32> {
    let key = |p: &u64| p.checked_shr(shift).unwrap_or(0) as usize;
    let mut starts = vec![0u32; (1 << bits) + 1];
    for p in packed {
        starts[key(p) + 1] += 1;
    }
    for i in 1..starts.len() {
        starts[i] += starts[i - 1];
    }
    let mut order = vec![0u32; packed.len()];
    for (i, p) in packed.iter().enumerate() {
        let slot = &mut starts[key(p)];
        order[*slot as usize] = i as u32;
        *slot += 1;
    }
    order
}

/// Stable, least significant digit first.
fn radix(packed: &[u64], bits: u32) -> Vec<u32> {
    let mut from: Vec<(u64, u32)> = packed.iter().copied().zip(0..).collect();
    let mut to = vec![(0, 0); from.len()];
    let mut shift = 0;
    while shift < bits {
        let digit = |p: u64| (p >> shift) as usize & ((1 << DIGIT_BITS) - 1);
        let mut starts = [0usize; (1 << DIGIT_BITS) + 1];
        for (p, _) in &from {
            starts[digit(*p) + 1] += 1;
        }
        for i in 1..starts.len() {
            starts[i] += starts[i - 1];
        }
        for entry in &from {
            let slot = &mut starts[digit(entry.0)];
            to[*slot] = *entry;
            *slot += 1;
        }
        std::mem::swap(&mut from, &mut to);
        shift += DIGIT_BITS;
    }
    from.into_iter().map(|(_, i)| i).collect()
}

/// Any other key: rows of bytes that compare as the keys do.
fn by_rows(keys: &[ArrayRef]) -> Result<Option<Vec<u32>>> {
    let fields = keys.iter().map(|k| SortField::new_with_options(k.data_type().clone(), ORDER)).collect();
    let rows = RowConverter::new(fields)?.convert_columns(keys)?;
    let n = rows.num_rows();
    if (1..n).all(|i| rows.row(i - 1) <= rows.row(i)) {
        return Ok(None);
    }
    let mut order: Vec<u32> = (0..n as u32).collect();
    order.sort_by(|a, b| rows.row(*a as usize).cmp(&rows.row(*b as usize)));
    Ok(Some(order))
}

#[cfg(test)]
mod tests;
