use super::*;
use arrow::{
    array::{BooleanArray, Int64Array, ListArray, StringViewArray},
    datatypes::{Int64Type, Schema},
};
use proptest::prelude::*;
use std::sync::Arc;

fn batch(n: Vec<Option<i64>>) -> RecordBatch {
    let text: StringViewArray = n.iter().map(|v| v.map(|v| format!("text {v}, longer than twelve bytes"))).collect();
    let flag: BooleanArray = n.iter().map(|v| v.map(|v| v % 2 == 0)).collect();
    let list = ListArray::from_iter_primitive::<Int64Type, _, _>(n.iter().map(|v| v.map(|v| vec![Some(v); (v & 3) as usize])));
    let columns: Vec<ArrayRef> = vec![Arc::new(Int64Array::from(n)), Arc::new(text), Arc::new(flag), Arc::new(list)];
    let fields: Vec<_> = columns.iter().enumerate().map(|(i, c)| Field::new(format!("c{i}"), c.data_type().clone(), true)).collect();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).unwrap()
}

proptest! {
    #[test]
    fn rows_come_back(n in prop::collection::vec(any::<Option<i64>>(), 0..60), from in 0usize..60) {
        let whole = batch(n);
        let from = from.min(whole.num_rows());
        let rows = whole.slice(from, whole.num_rows() - from);
        prop_assert_eq!(decode(&encode(&rows).unwrap(), rows.schema()).unwrap(), rows);
    }

    #[test]
    fn garbage_is_refused(bytes in prop::collection::vec(any::<u8>(), 0..200), at in any::<prop::sample::Index>(), bit in 0..8u32) {
        let rows = batch(vec![Some(1), None, Some(3)]);
        let _ = decode(&bytes.into(), rows.schema());
        let mut good = encode(&rows).unwrap().to_vec();
        let i = at.index(good.len());
        good[i] ^= 1 << bit;
        let _ = decode(&good.into(), rows.schema());
    }
}

#[test]
fn one_row_costs_few_bytes() {
    let rows = batch(vec![Some(1)]);
    let body = encode(&rows).unwrap().len();
    assert!(body < 70, "{body}");
}
