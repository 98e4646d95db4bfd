#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use super::*;
use arrow::array::{Float64Array, Int32Array, StringArray};

fn rows(values: ArrayRef) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable([("v", values, true)]).unwrap()
}

fn texts(of: &[Option<&str>]) -> RecordBatch {
    rows(Arc::new(StringArray::from(of.to_vec())))
}

fn gathering(values_max: Option<u64>) -> Gathering {
    let values: Values = Arc::new(|rows: &RecordBatch| match rows.column(0).len() {
        13 => Err(crate::Error::invalid("thirteen rows")),
        _ => Ok(rows.column(0).clone()),
    });
    Gathering::new(Computed { index: Fingerprint(1), values_max, values })
}

fn of(batches: &[RecordBatch], values_max: Option<u64>) -> Option<ComputedValues> {
    let mut all = gathering(values_max);
    batches.iter().for_each(|b| all.push(b));
    all.finish()
}

fn text(t: &str) -> Bound {
    Bound::Text(t.to_owned())
}

#[test]
fn bounds_and_values_cover_all_rows() {
    let known = of(&[texts(&[Some("b"), None]), texts(&[Some("a"), Some("b")])], Some(2)).unwrap();
    assert_eq!((known.min, known.max, known.values), (Some(text("a")), Some(text("b")), Some(vec![text("a"), text("b")])));
    let many = of(&[texts(&[Some("b"), Some("c")]), texts(&[Some("a")])], Some(2)).unwrap();
    assert_eq!((many.min, many.max, many.values), (Some(text("a")), Some(text("c")), None), "too many to keep");
    let bounds = of(&[rows(Arc::new(Int32Array::from(vec![Some(3), None, Some(-2)])))], None).unwrap();
    assert_eq!((bounds.min, bounds.max, bounds.values), (Some(Bound::Int(-2)), Some(Bound::Int(3)), None));
    let nulls = of(&[texts(&[None, None])], Some(0)).unwrap();
    assert_eq!((nulls.min, nulls.max, nulls.values), (None, None, Some(vec![])));
}

#[test]
fn what_is_not_known_of_some_rows_is_not_kept_of_any() {
    assert_eq!(of(&[texts(&[Some("a")]), rows(Arc::new(Float64Array::from(vec![1.0])))], Some(0)), None, "floats are not kept");
    let failing = texts(&[Some("x"); 13]);
    assert_eq!(of(&[texts(&[Some("a")]), failing, texts(&[Some("b")])], Some(0)), None, "one that fails fails no write");
}

#[test]
fn long_texts_are_bounds_as_far_as_they_can_be() {
    let long = "ä".repeat(200);
    let known = of(&[texts(&[Some(&long), Some("b")])], None).unwrap();
    assert_eq!((known.min.clone(), known.max), (Some(text("b")), None));
    let all_long = of(&[texts(&[Some(&long)])], None).unwrap();
    let Some(Bound::Text(low)) = all_long.min else { panic!() };
    assert!(long.starts_with(&low) && low.len() == TEXT_MAX, "{}", low.len());
    // Once it is open, it stays so.
    let after = of(&[texts(&[Some(&long)]), texts(&[Some("c")])], None).unwrap();
    assert_eq!(after.max, None);
}

#[test]
fn rows_taken_over_bring_what_is_known_of_their_part() {
    let first = of(&[texts(&[Some("m"), Some("n")])], Some(3)).unwrap();
    let mut all = gathering(Some(3));
    all.push(&texts(&[Some("o")]));
    all.take_over(std::slice::from_ref(&first));
    let joined = all.finish().unwrap();
    assert_eq!((joined.min, joined.max), (Some(text("m")), Some(text("o"))));
    assert_eq!(joined.values.unwrap().len(), 3);
    // Of another expression, or of none, nothing.
    for theirs in [vec![], vec![ComputedValues { index: Fingerprint(2), ..first.clone() }]] {
        let mut all = gathering(Some(3));
        all.push(&texts(&[Some("o")]));
        all.take_over(&theirs);
        assert_eq!(all.finish(), None);
    }
    let mut all = gathering(Some(3));
    all.push(&texts(&[Some("o")]));
    all.take_over(&[ComputedValues { values: None, ..first }]);
    let joined = all.finish().unwrap();
    assert_eq!((joined.min, joined.values), (Some(text("m")), None));
}
