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

    /// Repeated and shared texts, which LZ4 packs far below the limit of a unit of the log.
    #[test]
    fn what_is_encoded_can_be_decoded(text in "[ab]{0,40}", repeats in 0usize..120, max in 0usize..4000) {
        let one = StringViewArray::from(vec![text.as_str()]);
        let shared = arrow::compute::take(&one, &Int64Array::from(vec![0; repeats]), None).unwrap();
        let list = ListArray::new(
            Arc::new(Field::new("item", DataType::Utf8View, true)),
            arrow::buffer::OffsetBuffer::from_lengths((0..repeats).map(|_| 1)),
            shared.clone(),
            None,
        );
        let columns: Vec<ArrayRef> = vec![shared, Arc::new(list)];
        let fields: Vec<_> = columns.iter().enumerate().map(|(i, c)| Field::new(format!("c{i}"), c.data_type().clone(), true)).collect();
        let rows = RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).unwrap();
        match encode_within(&rows, max) {
            Ok(body) => {
                prop_assert!(size(&rows).unwrap() <= max);
                prop_assert_eq!(decode_within(&body, rows.schema(), max).unwrap(), rows);
            }
            Err(e) => {
                prop_assert!(size(&rows).unwrap() > max);
                prop_assert!(e.kind() == crate::ErrorKind::Invalid && e.message().contains("staged"), "{}", e);
            }
        }
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

/// What is counted is what is written, to the byte; a dictionary counts as the texts it stands for.
#[test]
fn rows_are_measured_by_what_writes_them() {
    for n in [vec![], vec![Some(1)], vec![None, Some(i64::MIN), Some(7)]] {
        let rows = batch(n);
        let mut plain = Vec::new();
        put_rows(&mut plain, &rows).unwrap();
        assert_eq!(size(&rows).unwrap(), plain.len());
    }
    let long = "x".repeat(300);
    let texts = [Some(long.as_str()), None, Some(&long)];
    let coded: arrow::array::DictionaryArray<arrow::datatypes::Int32Type> = texts.into_iter().collect();
    let plain: StringViewArray = texts.into_iter().collect();
    let of = |column: ArrayRef| RecordBatch::try_from_iter_with_nullable([("c", column, true)]).unwrap();
    assert_eq!(encode(&of(Arc::new(coded))).unwrap(), encode(&of(Arc::new(plain))).unwrap());
}

#[test]
fn one_row_costs_few_bytes() {
    let rows = batch(vec![Some(1)]);
    let body = encode(&rows).unwrap().len();
    assert!(body < 70, "{body}");
}
