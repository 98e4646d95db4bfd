//! Which partition a row belongs to, and splitting a batch by it. Pure.
//!
//! A partition is named by its value as text: `202603`, `(a,202603)` for several expressions, `NULL`, `all` for `tuple()`. Rows with
//! equal text are in one partition, so text is taken only once for each distinct value.

use arrow::{
    array::{Array, ArrayRef, AsArray, UInt32Array},
    datatypes::{DataType, Date32Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type},
    row::{RowConverter, SortField},
    util::display::{ArrayFormatter, FormatOptions},
};
use ebb_storage::{Error, Result};
use std::{collections::HashMap, hash::Hash, sync::Arc};

/// Rows of one partition: row numbers of the batch in rising order; `None` where the batch is wholly inside.
#[derive(Debug, Clone, PartialEq)]
pub struct Share {
    pub partition: Arc<str>,
    pub rows: Option<UInt32Array>,
}

/// The partition of streams without PARTITION BY.
pub const ALL: &str = "all";

/// Splits `rows` rows by the values of the partition expressions, in order of first appearance.
///
/// # Errors
/// `Invalid` where there are more than `limit` partitions.
pub fn split(values: &[ArrayRef], rows: usize, limit: usize) -> Result<Vec<Share>> {
    if rows == 0 {
        return Ok(Vec::new());
    }
    if values.is_empty() {
        return Ok(vec![Share { partition: ALL.into(), rows: None }]);
    }
    let (group_of, firsts) = match values {
        [only] => groups_of_one(only, limit)?,
        several => groups_of_several(several, limit)?,
    };
    let texts = firsts.iter().map(|row| text(values, *row)).collect::<Result<Vec<_>>>()?;
    if firsts.len() == 1 {
        return Ok(texts.into_iter().map(|partition| Share { partition, rows: None }).collect());
    }
    // Distinct values may share a text (a timestamp in two units never does, floats may): they are one partition then.
    let mut slot_of_text: HashMap<Arc<str>, usize> = HashMap::new();
    let mut shares: Vec<(Arc<str>, Vec<u32>)> = Vec::new();
    let slots: Vec<usize> = texts
        .into_iter()
        .map(|t| {
            *slot_of_text.entry(t.clone()).or_insert_with(|| {
                shares.push((t, Vec::new()));
                shares.len() - 1
            })
        })
        .collect();
    for (row, group) in group_of.iter().enumerate() {
        shares[slots[*group as usize]].1.push(row as u32);
    }
    Ok(shares.into_iter().map(|(partition, rows)| Share { partition, rows: Some(UInt32Array::from(rows)) }).collect())
}

/// For each row its group, none where there is only one, for each group its first row.
type Groups = (Vec<u32>, Vec<usize>);

fn groups_of_one(values: &ArrayRef, limit: usize) -> Result<Groups> {
    macro_rules! numbers {
        ($t:ty) => {{
            let a = values.as_primitive::<$t>();
            group(a.len(), limit, |i| if a.is_null(i) { None } else { Some(a.value(i)) })
        }};
    }
    match values.data_type() {
        DataType::Int8 => numbers!(Int8Type),
        DataType::Int16 => numbers!(Int16Type),
        DataType::Int32 => numbers!(Int32Type),
        DataType::Int64 => numbers!(Int64Type),
        DataType::UInt8 => numbers!(UInt8Type),
        DataType::UInt16 => numbers!(UInt16Type),
        DataType::UInt32 => numbers!(UInt32Type),
        DataType::UInt64 => numbers!(UInt64Type),
        DataType::Date32 => numbers!(Date32Type),
        DataType::Utf8View => {
            let a = values.as_string_view();
            group(a.len(), limit, |i| if a.is_null(i) { None } else { Some(a.value(i)) })
        }
        _ => groups_of_several(std::slice::from_ref(values), limit),
    }
}

fn groups_of_several(values: &[ArrayRef], limit: usize) -> Result<Groups> {
    let fields = values.iter().map(|v| SortField::new(v.data_type().clone())).collect();
    let rows = RowConverter::new(fields)?.convert_columns(values)?;
    group(rows.num_rows(), limit, |i| rows.row(i))
}

/// Rows next to each other are mostly of one partition: the last key is compared before it is looked up.
fn group<K: Hash + Eq + Copy>(rows: usize, limit: usize, key: impl Fn(usize) -> K) -> Result<Groups> {
    // Mostly all rows are of one partition.
    let first = (rows > 0).then(|| key(0));
    if first.is_some_and(|first| (1..rows).all(|i| key(i) == first)) && limit > 0 {
        return Ok((Vec::new(), vec![0]));
    }
    let mut slots: HashMap<K, u32> = HashMap::new();
    let mut firsts = Vec::new();
    let mut group_of = Vec::with_capacity(rows);
    let mut last: Option<(K, u32)> = None;
    for i in 0..rows {
        let k = key(i);
        let slot = match last {
            Some((seen, slot)) if seen == k => slot,
            _ => match slots.get(&k) {
                Some(slot) => *slot,
                None => {
                    if firsts.len() == limit {
                        return Err(Error::invalid(format!(
                            "the rows fall into more than {limit} partitions: insert fewer at a time, partition more coarsely, \
                             or raise max_partitions_per_insert"
                        )));
                    }
                    firsts.push(i);
                    slots.insert(k, (firsts.len() - 1) as u32);
                    (firsts.len() - 1) as u32
                }
            },
        };
        last = Some((k, slot));
        group_of.push(slot);
    }
    Ok((group_of, firsts))
}

/// The partition's name at one row.
fn text(values: &[ArrayRef], row: usize) -> Result<Arc<str>> {
    let options = FormatOptions::new().with_null("NULL");
    let mut parts = Vec::with_capacity(values.len());
    for v in values {
        parts.push(ArrayFormatter::try_new(v.as_ref(), &options)?.value(row).try_to_string()?);
    }
    Ok(match parts.as_slice() {
        [one] => one.as_str().into(),
        several => format!("({})", several.join(",")).into(),
    })
}

#[cfg(test)]
mod tests;
