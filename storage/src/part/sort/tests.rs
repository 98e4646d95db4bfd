use super::*;
use arrow::array::{Int64Array, StringViewArray};
use proptest::prelude::*;
use std::sync::Arc;

proptest! {
    #[test]
    fn rows_come_in_the_order_of_their_keys_and_equal_ones_as_they_came(
        rows in proptest::collection::vec((proptest::option::of("[abc]{0,2}"), proptest::option::of(-3i64..3)), 0..200), nulls in any::<bool>()
    ) {
        let rows: Vec<_> = rows.into_iter().map(|(t, n)| (t, if nulls { n } else { Some(n.unwrap_or(0)) })).collect();
        let texts: ArrayRef = Arc::new(StringViewArray::from_iter(rows.iter().map(|r| r.0.as_deref())));
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter(rows.iter().map(|r| r.1)));
        let got = |keys: &[ArrayRef]| sort_permutation(keys).unwrap().map_or((0..rows.len() as u32).collect(), |p| p.values().to_vec());
        let mut expected: Vec<u32> = (0..rows.len() as u32).collect();
        expected.sort_by_key(|r| rows[*r as usize].clone());
        prop_assert_eq!(got(&[texts.clone(), numbers.clone()]), expected.clone());
        expected = (0..rows.len() as u32).collect();
        expected.sort_by_key(|r| rows[*r as usize].1);
        prop_assert_eq!(got(&[numbers]), expected);
    }
}

#[test]
fn without_keys_and_in_order_nothing_moves() {
    assert_eq!(sort_permutation(&[]).unwrap(), None);
    let sorted: ArrayRef = Arc::new(Int64Array::from(vec![1, 1, 2]));
    assert_eq!(sort_permutation(&[sorted]).unwrap(), None);
}
