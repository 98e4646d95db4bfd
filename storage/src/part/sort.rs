//! The order in which rows go into a part: by their key values, NULL first, equal keys in the order they came (stable).

use crate::Result;
use arrow::{
    array::{Array, ArrayRef, AsArray, UInt32Array},
    compute::SortOptions,
    datatypes::{
        ArrowPrimitiveType, DataType, Int32Type, Int64Type, TimestampMicrosecondType, TimestampNanosecondType, UInt32Type, UInt64Type,
    },
    row::{RowConverter, SortField},
};
use std::collections::HashMap;

/// Keys sort upward, NULL first; merges compare the same way.
pub const ORDER: SortOptions = SortOptions { descending: false, nulls_first: true };

/// Which row comes where: row numbers in order of the keys; `None` where the rows are in order already.
pub fn sort_permutation(keys: &[ArrayRef]) -> Result<Option<UInt32Array>> {
    let Some(rows) = keys.first().map(|k| k.len()) else { return Ok(None) };
    let mut order: Vec<u32> = (0..rows as u32).collect();
    sort_range(keys, &mut order)?;
    if order.iter().enumerate().all(|(i, row)| i as u32 == *row) {
        return Ok(None);
    }
    Ok(Some(UInt32Array::from(order)))
}

/// Sorts the rows that `order` names, which are in the order they came.
fn sort_range(keys: &[ArrayRef], order: &mut [u32]) -> Result<()> {
    let Some((first, rest)) = keys.split_first() else { return Ok(()) };
    if order.len() < 2 {
        return Ok(());
    }
    if rest.is_empty() && sort_numbers(first, order) {
        return Ok(());
    }
    // Few distinct texts: rank them, deal the rows out by rank, and sort what is inside each by the other keys.
    if let Some(runs) = deal_out(first, order) {
        for (from, to) in runs {
            sort_range(rest, &mut order[from..to])?;
        }
        return Ok(());
    }
    let fields = keys.iter().map(|k| SortField::new(k.data_type().clone())).collect();
    let rows = RowConverter::new(fields)?.convert_columns(keys)?;
    order.sort_by(|a, b| rows.row(*a as usize).cmp(&rows.row(*b as usize)));
    Ok(())
}

fn sort_numbers(key: &ArrayRef, order: &mut [u32]) -> bool {
    fn by<T: ArrowPrimitiveType>(key: &ArrayRef, order: &mut [u32])
    where
        T::Native: Ord,
    {
        let values = key.as_primitive::<T>().values();
        let of = |row: &u32| values[*row as usize];
        if !order.is_sorted_by_key(of) {
            order.sort_by_key(of);
        }
    }
    if key.null_count() > 0 {
        return false;
    }
    match key.data_type() {
        DataType::Int32 => by::<Int32Type>(key, order),
        DataType::Int64 => by::<Int64Type>(key, order),
        DataType::UInt32 => by::<UInt32Type>(key, order),
        DataType::UInt64 => by::<UInt64Type>(key, order),
        DataType::Timestamp(arrow::datatypes::TimeUnit::Microsecond, _) => by::<TimestampMicrosecondType>(key, order),
        DataType::Timestamp(arrow::datatypes::TimeUnit::Nanosecond, _) => by::<TimestampNanosecondType>(key, order),
        _ => return false,
    }
    true
}

/// Above this many distinct texts in relation to the rows, dealing out costs more than it saves.
const ROWS_PER_TEXT: usize = 8;

fn deal_out(key: &ArrayRef, order: &mut [u32]) -> Option<Vec<(usize, usize)>> {
    if key.data_type() != &DataType::Utf8View {
        return None;
    }
    let texts = key.as_string_view();
    let limit = order.len() / ROWS_PER_TEXT + 1;
    let mut slots: HashMap<Option<&str>, u32> = HashMap::new();
    let mut slot_of = Vec::with_capacity(order.len());
    let mut counts: Vec<usize> = Vec::new();
    let mut last: Option<(Option<&str>, u32)> = None;
    for row in order.iter() {
        let row = *row as usize;
        let text = texts.is_valid(row).then(|| texts.value(row));
        let slot = match last {
            Some((seen, slot)) if seen == text => slot,
            _ => {
                let next = slots.len() as u32;
                let slot = *slots.entry(text).or_insert(next);
                if slot == next {
                    if slots.len() > limit {
                        return None;
                    }
                    counts.push(0);
                }
                slot
            }
        };
        last = Some((text, slot));
        counts[slot as usize] += 1;
        slot_of.push(slot);
    }
    let mut ranked: Vec<(Option<&str>, u32)> = slots.into_iter().collect();
    // `None` sorts first, as NULL does.
    ranked.sort_unstable();
    let mut runs = Vec::with_capacity(ranked.len());
    let mut next = vec![0usize; ranked.len()];
    let mut at = 0;
    for (_, slot) in &ranked {
        next[*slot as usize] = at;
        runs.push((at, at + counts[*slot as usize]));
        at += counts[*slot as usize];
    }
    let came = order.to_vec();
    for (row, slot) in came.into_iter().zip(slot_of) {
        let place = &mut next[slot as usize];
        order[*place] = row;
        *place += 1;
    }
    Some(runs)
}

#[cfg(test)]
mod tests;
