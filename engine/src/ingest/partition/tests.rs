use super::*;
use arrow::array::{BooleanArray, Int32Array, StringViewArray};

fn ints(v: Vec<Option<i32>>) -> ArrayRef {
    Arc::new(Int32Array::from(v))
}

fn texts(v: Vec<&str>) -> ArrayRef {
    Arc::new(StringViewArray::from(v))
}

fn named(shares: &[Share]) -> Vec<(String, Option<Vec<u32>>)> {
    shares.iter().map(|s| (s.partition.to_string(), s.rows.as_ref().map(|r| r.values().to_vec()))).collect()
}

#[test]
fn without_expressions_there_is_one_partition() {
    assert_eq!(named(&split(&[], 3, 1).unwrap()), [("all".to_owned(), None)]);
    assert_eq!(split(&[], 0, 1).unwrap(), []);
}

#[test]
fn one_expression_names_by_its_value() {
    let v = ints(vec![Some(202603), None, Some(202603), Some(202604)]);
    let got = named(&split(&[v], 4, 3).unwrap());
    assert_eq!(got, [("202603".to_owned(), Some(vec![0, 2])), ("NULL".to_owned(), Some(vec![1])), ("202604".to_owned(), Some(vec![3]))]);
}

#[test]
fn a_batch_wholly_inside_a_partition_is_not_split() {
    assert_eq!(named(&split(&[texts(vec!["a", "a"])], 2, 1).unwrap()), [("a".to_owned(), None)]);
}

#[test]
fn several_expressions_name_a_tuple() {
    let got = named(&split(&[texts(vec!["a", "b", "a"]), ints(vec![Some(202603), None, Some(202603)])], 3, 10).unwrap());
    assert_eq!(got, [("(a,202603)".to_owned(), Some(vec![0, 2])), ("(b,NULL)".to_owned(), Some(vec![1]))]);
}

#[test]
fn other_types_go_through_row_keys() {
    let v: ArrayRef = Arc::new(BooleanArray::from(vec![true, false, true]));
    assert_eq!(named(&split(&[v], 3, 10).unwrap()).len(), 2);
}

#[test]
fn too_many_partitions_are_refused_and_the_way_out_is_named() {
    let v = ints((0..11).map(Some).collect());
    assert_eq!(split(std::slice::from_ref(&v), 11, 11).unwrap().len(), 11);
    let e = split(&[v], 11, 10).unwrap_err();
    assert!(e.message().contains("max_partitions_per_insert"), "{e}");
}
