use super::*;
use arrow::array::{
    BinaryArray, DictionaryArray, Int32Array, Int64Array, StringArray, StringViewArray, TimestampMicrosecondArray, UInt8Array,
};
use std::sync::Arc;

fn gathered(max: u64, arrays: &[ArrayRef]) -> Option<Vec<Bound>> {
    let mut set = Gathered::new(ColumnId(3), max);
    arrays.iter().for_each(|a| set.push(a).unwrap());
    set.finish().map(|s| s.values)
}

fn texts(of: &[&str]) -> Vec<Bound> {
    of.iter().map(|t| Bound::Text((*t).to_owned())).collect()
}

#[test]
fn every_value_is_named_once_whatever_brought_it() {
    let plain: ArrayRef = Arc::new(StringViewArray::from(vec![Some("b"), None, Some("a"), Some("b")]));
    // "unused" is in the dictionary, and in no row.
    let keys = Int32Array::from(vec![Some(2), None, Some(0), Some(2)]);
    let coded: ArrayRef = Arc::new(DictionaryArray::new(keys, Arc::new(StringArray::from(vec!["c", "unused", "a"]))));
    assert_eq!(gathered(0, &[plain.clone(), coded.clone()]), Some(texts(&["a", "b", "c"])));
    assert_eq!(gathered(3, &[plain.clone(), coded.clone()]), Some(texts(&["a", "b", "c"])));
    assert_eq!(gathered(2, &[plain, coded]), None, "too many");
    let times: ArrayRef = Arc::new(TimestampMicrosecondArray::from(vec![5, -5, 5]).with_timezone("UTC"));
    assert_eq!(gathered(0, &[times]), Some(vec![Bound::Int(-5), Bound::Int(5)]));
    assert_eq!(gathered(0, &[Arc::new(UInt8Array::from(vec![255, 0]))]), Some(vec![Bound::UInt(0), Bound::UInt(255)]));
    assert_eq!(gathered(0, &[Arc::new(Int64Array::from(vec![None, None]))]), Some(vec![]), "NULL is no value");
    assert_eq!(gathered(0, &[]), Some(vec![]));
    let nulls: ArrayRef = Arc::new(DictionaryArray::new(Int32Array::from(vec![None, None]), Arc::new(StringArray::from(vec![""; 0]))));
    assert_eq!(gathered(0, &[nulls]), Some(vec![]), "a dictionary of no values");
}

#[test]
fn a_set_stays_small_and_of_types_that_are_compared_as_they_are() {
    let long = "x".repeat(SET_BYTES_MAX - 1);
    assert!(gathered(0, &[Arc::new(StringArray::from(vec![long.as_str()]))]).is_some());
    assert_eq!(gathered(0, &[Arc::new(StringArray::from(vec![long.as_str(), "yy"]))]), None);
    let many = Int64Array::from_iter_values(0..=(SET_BYTES_MAX / 8) as i64);
    assert_eq!(gathered(0, &[Arc::new(many)]), None);
    assert_eq!(gathered(0, &[Arc::new(arrow::array::Float64Array::from(vec![f64::NAN]))]), None);
    assert_eq!(gathered(0, &[Arc::new(BinaryArray::from(vec![b"b".as_slice()]))]), None);
}

#[test]
fn rows_taken_over_bring_their_parts_values_or_end_the_set() {
    let known = [ColumnSet { column: ColumnId(3), values: texts(&["b", "z"]) }];
    let other = [ColumnSet { column: ColumnId(4), values: texts(&["b"]) }];
    let with = |sets: &[ColumnSet], max| {
        let mut set = Gathered::new(ColumnId(3), max);
        set.push(&(Arc::new(StringArray::from(vec!["a", "b"])) as ArrayRef)).unwrap();
        set.take_over(sets);
        set.finish().map(|s| s.values)
    };
    assert_eq!(with(&known, 0), Some(texts(&["a", "b", "z"])));
    assert_eq!(with(&known, 2), None);
    assert_eq!(with(&other, 0), None, "nothing is known of its values");
    let ints = [ColumnSet { column: ColumnId(3), values: vec![Bound::Int(1)] }];
    assert_eq!(with(&ints, 0), None, "of another type");
}
