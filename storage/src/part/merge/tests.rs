use super::*;
use arrow::{
    array::{AsArray, Int64Array},
    datatypes::Int64Type,
};
use proptest::prelude::*;
use std::sync::Arc;

/// Values in batches of `size`; the second column says which input a row is of.
fn source(id: i64, values: Vec<i64>, size: usize) -> Box<dyn MergeSource> {
    let mut at = 0;
    Box::new(move || {
        if at == values.len() {
            return Ok(None);
        }
        let len = size.min(values.len() - at);
        let keys: ArrayRef = Arc::new(Int64Array::from(values[at..at + len].to_vec()));
        let ids: ArrayRef = Arc::new(Int64Array::from(vec![id; len]));
        let rows = RecordBatch::try_from_iter([("k", keys.clone()), ("id", ids)])?;
        let origin = vec![(at as u32, len as u32)];
        at += len;
        Ok(Some(SourceBatch { values: rows.clone(), rows, keys: vec![keys], origin }))
    })
}

fn run(inputs: &[Vec<i64>], size: usize, batch_rows: usize) -> (Vec<(i64, i64)>, RowMap) {
    let sources = inputs.iter().enumerate().map(|(i, v)| source(i as i64, v.clone(), size)).collect();
    let empty: ArrayRef = Arc::new(Int64Array::from(Vec::<i64>::new()));
    let schema = RecordBatch::try_from_iter([("k", empty.clone()), ("id", empty)]).unwrap().schema();
    let mut merge = Merge::new(schema, sources, batch_rows).unwrap();
    let mut out = Vec::new();
    while let Some(batches) = merge.next_batches().unwrap() {
        assert!(batches.iter().map(|b| b.num_rows()).sum::<usize>() <= batch_rows);
        let batch = arrow::compute::concat_batches(&batches[0].schema(), &batches).unwrap();
        let column = |i: usize| batch.column(i).as_primitive::<Int64Type>().values().to_vec();
        out.extend(column(0).into_iter().zip(column(1)));
    }
    (out, merge.into_map())
}

proptest! {
    #[test]
    fn a_merge_is_the_sorted_whole_with_equal_rows_in_input_order(
        mut inputs in proptest::collection::vec(proptest::collection::vec(0i64..30, 0..50), 1..6), size in 1usize..20, batch_rows in 1usize..40
    ) {
        for input in &mut inputs {
            input.sort_unstable();
        }
        let mut expected: Vec<(i64, i64)> = inputs.iter().enumerate().flat_map(|(i, v)| v.iter().map(move |k| (*k, i as i64))).collect();
        expected.sort();
        let (out, map) = run(&inputs, size, batch_rows);
        prop_assert_eq!(&out, &expected);
        // The map finds every row where it went.
        let rows: u32 = map.runs().map(|r| r.len).sum();
        prop_assert_eq!(rows as usize, expected.len());
        for r in map.runs() {
            for i in 0..r.len {
                prop_assert_eq!(out[(r.to + i) as usize], (inputs[r.source as usize][(r.from + i) as usize], i64::from(r.source)));
            }
        }
    }
}

#[test]
fn long_runs_are_found_without_looking_at_every_row() {
    let (out, map) = run(&[(0..1000).collect(), (1000..2000).collect()], 128, 4096);
    assert_eq!(out.len(), 2000);
    assert_eq!(map.runs().count(), 2);
}
