use super::*;
use arrow::{
    array::{
        DictionaryArray, Float64Array, Int32Array, Int64Array, StringArray, StringViewArray, TimestampMicrosecondArray, UInt8Array,
        UInt64Array,
    },
    datatypes::Int32Type,
};
use proptest::prelude::*;
use std::sync::Arc;

/// What `by_rows` says, as the plain order.
fn reference(keys: &[ArrayRef]) -> Vec<u32> {
    by_rows(keys).unwrap().unwrap_or_else(|| (0..keys[0].len() as u32).collect())
}

/// The values backwards in a dictionary that also has a NULL.
fn dictionary_of(values: &ArrayRef) -> DictionaryArray<Int32Type> {
    let values = values.as_primitive::<Int64Type>();
    let distinct: std::collections::BTreeSet<i64> = values.iter().flatten().collect();
    let words: Vec<Option<i64>> = distinct.iter().rev().map(|v| Some(*v)).chain([None]).collect();
    let key = |v: Option<i64>| words.iter().position(|w| *w == v).map(|i| i as i32);
    let keys: Int32Array = values.iter().map(key).collect();
    DictionaryArray::new(keys, Arc::new(Int64Array::from(words)))
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
        let numbered: ArrayRef = Arc::new(dictionary_of(&whole));
        prop_assert_eq!(sorted(&[dictionary.clone(), whole.clone()]), reference(&[views.clone(), whole.clone()]));
        prop_assert_eq!(sorted(&[numbered.clone(), dictionary]), reference(&[whole, views]));
    }

    #[test]
    fn keys_of_any_width_are_sorted_by_digits(rows in proptest::collection::vec((any::<u64>(), 0u8..3), 0..300), shift in 0u32..64) {
        let wide: ArrayRef = Arc::new(UInt64Array::from_iter_values(rows.iter().map(|r| r.0 >> shift)));
        let narrow: ArrayRef = Arc::new(UInt8Array::from_iter_values(rows.iter().map(|r| r.1)));
        prop_assert_eq!(sorted(&[wide.clone(), narrow.clone()]), reference(&[wide.clone(), narrow.clone()]));
        prop_assert_eq!(sorted(&[narrow.clone(), wide.clone()]), reference(&[narrow, wide]));
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
