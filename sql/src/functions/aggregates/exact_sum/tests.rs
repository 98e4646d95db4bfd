use super::*;
use proptest::prelude::*;

/// The same values summed in one piece, in two that are merged, and by groups.
fn sums(values: &[i64], split: usize) -> Vec<Result<ScalarValue>> {
    let array = |v: &[i64]| Arc::new(Int64Array::from(v.to_vec())) as ArrayRef;
    let (a, b) = values.split_at(split.min(values.len()));
    let mut one = Total::new(DataType::Int64);
    one.update_batch(&[array(values)]).unwrap();
    let mut merged = Total::new(DataType::Int64);
    for part in [a, b] {
        let mut total = Total::new(DataType::Int64);
        total.update_batch(&[array(part)]).unwrap();
        let state: Vec<ArrayRef> = total.state().unwrap().iter().map(|s| s.to_array().unwrap()).collect();
        merged.merge_batch(&state).unwrap();
    }
    let mut groups = Groups::<Int64Type>::default();
    for part in [a, b] {
        let mut partial = Groups::<Int64Type>::default();
        partial.update_batch(&[array(part)], &vec![0; part.len()], None, 1).unwrap();
        groups.merge_batch(&partial.state(EmitTo::All).unwrap(), &[0], 1).unwrap();
    }
    let grouped = groups.evaluate(EmitTo::All).and_then(|a| ScalarValue::try_from_array(&a, 0));
    vec![one.evaluate(), merged.evaluate(), grouped]
}

proptest! {
    #[test]
    fn sums_are_exact_however_rows_are_split(values in prop::collection::vec(prop_oneof![any::<i64>(), Just(i64::MAX), Just(i64::MIN)], 0..20), split in 0usize..20) {
        let exact: i128 = values.iter().map(|v| i128::from(*v)).sum();
        let expected = if values.is_empty() { Some(None) } else { i64::try_from(exact).ok().map(Some) };
        for got in sums(&values, split) {
            match (&expected, got) {
                (Some(v), Ok(ScalarValue::Int64(got))) => prop_assert_eq!(*v, got),
                (None, Err(_)) => {}
                (expected, got) => prop_assert!(false, "{:?} {:?}", expected, got),
            }
        }
    }
}

#[test]
fn a_window_lets_go_of_rows() {
    let array = |v: Vec<Option<i64>>| Arc::new(Int64Array::from(v)) as ArrayRef;
    let mut total = Total::new(DataType::Int64);
    total.update_batch(&[array(vec![Some(i64::MAX), Some(5), None])]).unwrap();
    assert!(total.evaluate().is_err());
    total.retract_batch(&[array(vec![Some(i64::MAX)])]).unwrap();
    assert_eq!(total.evaluate().unwrap(), ScalarValue::Int64(Some(5)));
    total.retract_batch(&[array(vec![Some(5), None])]).unwrap();
    assert_eq!(total.evaluate().unwrap(), ScalarValue::Int64(None));
}

#[test]
fn unsigned_sums_use_their_whole_range() {
    let array = |v: Vec<u64>| Arc::new(PrimitiveArray::<UInt64Type>::from(v)) as ArrayRef;
    let mut groups = Groups::<UInt64Type>::default();
    groups.update_batch(&[array(vec![u64::MAX - 1, 1, 1])], &[0, 0, 1], None, 2).unwrap();
    let all = groups.evaluate(EmitTo::First(2)).unwrap();
    assert_eq!(all.as_primitive::<UInt64Type>().values().as_ref(), [u64::MAX, 1]);
    groups.update_batch(&[array(vec![u64::MAX, 1])], &[0, 0], None, 1).unwrap();
    assert!(groups.evaluate(EmitTo::All).is_err());
    let mut distinct = Distinct::new(DataType::UInt64);
    distinct.update_batch(&[array(vec![u64::MAX, u64::MAX])]).unwrap();
    assert_eq!(distinct.evaluate().unwrap(), ScalarValue::UInt64(Some(u64::MAX)));
}
