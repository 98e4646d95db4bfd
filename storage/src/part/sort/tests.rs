use super::*;
use arrow::{
    array::{Float64Array, Int64Array, StringArray, StringViewArray, TimestampMicrosecondArray},
    datatypes::Int32Type,
};
use proptest::prelude::*;
use std::sync::Arc;

/// What `by_rows` says, as the plain order.
fn reference(keys: &[ArrayRef]) -> Vec<u32> {
    by_rows(keys).unwrap().unwrap_or_else(|| (0..keys[0].len() as u32).collect())
}

fn sorted(keys: &[ArrayRef]) -> Vec<u32> {
    sort_permutation(keys).unwrap().unwrap_or_else(|| (0..keys[0].len() as u32).collect())
}

proptest! {
    #[test]
    fn every_path_agrees_with_the_plain_order(
        rows in proptest::collection::vec((proptest::option::of("[a-c]{0,2}"), proptest::option::of(-5i64..5), prop_oneof![Just(f64::NAN), Just(-0.0), -2.0..2.0f64]), 0..60)
    ) {
        let views: ArrayRef = Arc::new(rows.iter().map(|r| r.0.as_deref()).collect::<StringViewArray>());
        let dictionary: ArrayRef = Arc::new(rows.iter().map(|r| r.0.as_deref()).collect::<arrow::array::DictionaryArray<Int32Type>>());
        let whole: ArrayRef = Arc::new(rows.iter().map(|r| r.1).collect::<Int64Array>());
        let floats: ArrayRef = Arc::new(Float64Array::from_iter_values(rows.iter().map(|r| r.2)));
        for keys in [vec![views.clone(), whole.clone()], vec![whole.clone(), views.clone()], vec![floats.clone()], vec![whole.clone(), floats], vec![views.clone()]] {
            prop_assert_eq!(sorted(&keys), reference(&keys));
        }
        prop_assert_eq!(sorted(&[dictionary, whole.clone()]), reference(&[views, whole]));
    }
}

#[test]
fn rows_in_order_need_no_permutation() {
    let times: ArrayRef = Arc::new(TimestampMicrosecondArray::from(vec![1, 1, 2, 3]));
    assert_eq!(sort_permutation(&[times]).unwrap(), None);
    assert_eq!(sort_permutation(&[]).unwrap(), None);
}

#[test]
fn rows_in_time_order_are_grouped_by_the_leading_key() {
    let hosts: ArrayRef = Arc::new(StringViewArray::from_iter_values((0..12).map(|i| format!("h{}", i % 3))));
    let times: ArrayRef = Arc::new(TimestampMicrosecondArray::from_iter_values(0..12));
    assert_eq!(sorted(&[hosts, times]), [0, 3, 6, 9, 1, 4, 7, 10, 2, 5, 8, 11]);
}

#[test]
fn the_extremes_of_a_type_do_not_overflow() {
    let extremes: ArrayRef = Arc::new(Int64Array::from(vec![Some(i64::MAX), None, Some(i64::MIN), Some(0)]));
    assert_eq!(sorted(std::slice::from_ref(&extremes)), [1, 2, 3, 0]);
    let texts: ArrayRef = Arc::new(StringArray::from(vec!["b", "a", "b", "a"]));
    assert_eq!(sorted(&[texts, extremes]), [1, 3, 2, 0]);
}

#[test]
fn reorder_takes_whole_rows() {
    let a: ArrayRef = Arc::new(Int64Array::from(vec![3, 1, 2]));
    let b: ArrayRef = Arc::new(StringArray::from(vec!["c", "a", "b"]));
    let batch = RecordBatch::try_from_iter([("a", a), ("b", b)]).unwrap();
    let out = reorder(&batch, &[1, 2, 0]).unwrap();
    assert_eq!(out.column(1).as_string::<i32>().iter().flatten().collect::<String>(), "abc");
}
