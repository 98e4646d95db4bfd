//! Ordering rows by key columns: ascending, NULL first, floats in their total order, equal rows in the order they came. Merges compare
//! the same way.
//!
//! Keys are turned into integers that sort alike and packed into one word where they fit: then sorting is counting. Time series come
//! in time order, so once the leading column is grouped the rest is often in order already.

use crate::Result;
use arrow::{
    array::{Array, ArrayRef, AsArray, PrimitiveArray},
    compute::{SortOptions, cast},
    datatypes::{DataType, Float64Type, Int32Type, Int64Type, UInt64Type},
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

/// A key column as integers that sort alike: 0 to 2^bits - 1, 0 for NULL where there are any.
struct Ranked {
    ranks: Ranks,
    bits: u32,
}

enum Ranks {
    Rows(Vec<u64>),
    /// Of each value of a dictionary, and the rows' numbers in it.
    Values(Vec<u64>, PrimitiveArray<Int32Type>),
}

/// `None` where the column has no such form.
fn rank(key: &ArrayRef) -> Result<Option<Ranked>> {
    if let DataType::Dictionary(numbers, values) = key.data_type() {
        let coded = match **numbers {
            DataType::Int32 => key.clone(),
            _ => cast(key, &DataType::Dictionary(Box::new(DataType::Int32), values.clone()))?,
        };
        return rank_coded(&coded);
    }
    let Some(raw) = raw(key)? else { return Ok(None) };
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
    Ok(Some(Ranked { ranks: Ranks::Rows(values), bits: 64 - top.leading_zeros() }))
}

/// A dictionary's values are ranked, however many rows have them.
fn rank_coded(key: &ArrayRef) -> Result<Option<Ranked>> {
    let dictionary = key.as_any_dictionary();
    let (values, keys) = (dictionary.values(), dictionary.keys().as_primitive::<Int32Type>().clone());
    let Some(raw) = raw(values)? else { return Ok(None) };
    let nulls = values.logical_nulls().filter(|n| n.null_count() > 0);
    let first = u64::from(nulls.is_some() || keys.null_count() > 0);
    let is_null = |i: usize| nulls.as_ref().is_some_and(|n| n.is_null(i));
    let mut distinct: Vec<u64> = raw.iter().enumerate().filter(|(i, _)| !is_null(*i)).map(|(_, v)| *v).collect();
    distinct.sort_unstable();
    distinct.dedup();
    let rank = |(i, v): (usize, &u64)| match is_null(i) {
        true => 0,
        false => distinct.partition_point(|d| d < v) as u64 + first,
    };
    let ranks: Vec<u64> = raw.iter().enumerate().map(rank).collect();
    let top = (distinct.len() as u64 + first).saturating_sub(1);
    Ok(Some(Ranked { ranks: Ranks::Values(ranks, keys), bits: 64 - top.leading_zeros() }))
}

/// Each value as an integer that sorts alike; anything for NULL. `None` where there is no such integer.
fn raw(values: &ArrayRef) -> Result<Option<Vec<u64>>> {
    Ok(Some(match values.data_type() {
        DataType::UInt64 => values.as_primitive::<UInt64Type>().values().to_vec(),
        t if t.is_integer() || matches!(t, DataType::Timestamp(..) | DataType::Date32 | DataType::Boolean) => {
            let values = cast(values, &DataType::Int64)?;
            values.as_primitive::<Int64Type>().values().iter().map(|v| (*v as u64) ^ (1 << 63)).collect()
        }
        DataType::Float32 | DataType::Float64 => {
            let values = cast(values, &DataType::Float64)?;
            values.as_primitive::<Float64Type>().values().iter().map(|v| total_order(*v)).collect()
        }
        DataType::Utf8 | DataType::Utf8View => return text_ranks(values),
        _ => return Ok(None),
    }))
}

/// As `f64::total_cmp` orders.
fn total_order(v: f64) -> u64 {
    let bits = v.to_bits();
    if bits >> 63 == 1 { !bits } else { bits | 1 << 63 }
}

fn text_ranks(key: &ArrayRef) -> Result<Option<Vec<u64>>> {
    let views = match key.data_type() {
        DataType::Utf8View => key.clone(),
        _ => cast(key, &DataType::Utf8View)?,
    };
    let texts = views.as_string_view();
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
        let add = |p: &mut u64, rank: u64| *p = p.checked_shl(r.bits).unwrap_or(0) | rank;
        match &r.ranks {
            Ranks::Rows(ranks) => packed.iter_mut().zip(ranks).for_each(|(p, rank)| add(p, *rank)),
            Ranks::Values(ranks, keys) => {
                // What stands behind a NULL may be no number of a value.
                let rank = |key: i32| ranks.get(key as usize).copied().unwrap_or(0);
                match keys.nulls() {
                    None => packed.iter_mut().zip(keys.values()).for_each(|(p, key)| add(p, rank(*key))),
                    Some(nulls) => packed
                        .iter_mut()
                        .zip(keys.values())
                        .zip(nulls)
                        .for_each(|((p, key), valid)| add(p, if valid { rank(*key) } else { 0 })),
                }
            }
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

/// Stable, least significant digit first. A row's number stands behind its key, in one word where both fit.
fn radix(packed: &[u64], bits: u32) -> Vec<u32> {
    let row_bits = 32 - u32::try_from(packed.len()).unwrap_or(u32::MAX).leading_zeros();
    if bits + row_bits > 64 {
        let sorted = by_digits(packed.iter().copied().zip(0..).collect(), bits, |(key, _): &(u64, u32)| *key);
        return sorted.into_iter().map(|(_, row)| row).collect();
    }
    let words = packed.iter().zip(0..).map(|(key, row)| key.checked_shl(row_bits).unwrap_or(0) | row).collect();
    let rows = (1u64 << row_bits) - 1;
    by_digits(words, bits, |word| word >> row_bits).into_iter().map(|word| (word & rows) as u32).collect()
}

fn by_digits<T: Copy + Default>(mut from: Vec<T>, bits: u32, key: impl Fn(&T) -> u64) -> Vec<T> {
    let mut to = vec![T::default(); from.len()];
    let mut shift = 0;
    while shift < bits {
        let digit = |t: &T| (key(t) >> shift) as usize & ((1 << DIGIT_BITS) - 1);
        let mut starts = [0usize; (1 << DIGIT_BITS) + 1];
        for t in &from {
            starts[digit(t) + 1] += 1;
        }
        for i in 1..starts.len() {
            starts[i] += starts[i - 1];
        }
        for t in &from {
            let slot = &mut starts[digit(t)];
            to[*slot] = *t;
            *slot += 1;
        }
        std::mem::swap(&mut from, &mut to);
        shift += DIGIT_BITS;
    }
    from
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
