use super::*;
use crate::part::stats::Bound;
use arrow::{
    array::{Float64Array, Int64Array, StringViewArray, TimestampMicrosecondArray},
    datatypes::{Schema, TimeUnit},
};
use std::{collections::HashMap, sync::Arc};

fn rows(from: i64, n: usize) -> RecordBatch {
    let id = |f: Field, id: i32| f.with_metadata(HashMap::from([(PARQUET_FIELD_ID_META_KEY.to_owned(), id.to_string())]));
    let schema = Schema::new(vec![
        id(Field::new("host", DataType::Utf8View, false), 1),
        id(Field::new("ts", DataType::Timestamp(TimeUnit::Microsecond, None), false), 2),
        id(Field::new("v", DataType::Float64, true), 3),
        id(Field::new("n", DataType::Int64, false), 4),
    ]);
    let at = |i: usize| from + i as i64;
    RecordBatch::try_new(
        Arc::new(schema),
        vec![
            Arc::new(StringViewArray::from_iter_values((0..n).map(|i| format!("a host with a long name {}", at(i) % 7)))),
            Arc::new(TimestampMicrosecondArray::from_iter_values((0..n).map(at))),
            Arc::new(Float64Array::from_iter((0..n).map(|i| (i % 3 > 0).then_some(at(i) as f64)))),
            Arc::new(Int64Array::from_iter_values((0..n).map(|i| -at(i)))),
        ],
    )
    .unwrap()
}

async fn read_back(encoded: &Encoded) -> PartReader {
    let memory = object_store::memory::InMemory::new();
    let key = Path::from("a.parquet");
    let placement = store(&memory, &key, DiskId::DEFAULT, Generation(1), encoded).await.unwrap();
    assert_eq!(store(&memory, &key, DiskId::DEFAULT, Generation(1), encoded).await.unwrap_err().kind(), crate::ErrorKind::Conflict);
    let meta = crate::part::meta::sample(placement, encoded);
    PartReader::open(&memory, &key, &meta).await.unwrap()
}

fn all(reader: &PartReader) -> RecordBatch {
    let batches = reader.read((0..reader.row_groups()).collect(), None, 1000).unwrap().collect::<Result<Vec<_>>>().unwrap();
    arrow::compute::concat_batches(reader.schema(), &batches).unwrap()
}

#[tokio::test]
async fn rows_come_back_with_bounds_over_all_row_groups() {
    let r = rows(10, 950);
    let mut e = PartEncoder::new(r.schema(), WriteOptions { row_group_rows: 400, bloom: vec![ColumnId(1)], ..Default::default() }).unwrap();
    e.push(&r.slice(0, 100)).unwrap();
    e.push(&r.slice(100, 850)).unwrap();
    let encoded = e.finish().unwrap();
    assert_eq!((encoded.rows, encoded.row_groups.as_slice()), (950, [400, 400, 150].as_slice()));
    let ts = encoded.stats.iter().find(|s| s.column == ColumnId(2)).unwrap();
    assert_eq!((ts.min.clone(), ts.max.clone(), ts.nulls, ts.exact), (Some(Bound::Int(10)), Some(Bound::Int(959)), 0, true));
    let v = encoded.stats.iter().find(|s| s.column == ColumnId(3)).unwrap();
    assert_eq!(v.nulls, 317);
    let back = all(&read_back(&encoded).await);
    assert_eq!(back.columns(), r.columns());
}

#[tokio::test]
async fn a_row_group_taken_over_is_the_same_bytes_and_rows() {
    let r = rows(0, 1000);
    let mut e = PartEncoder::new(r.schema(), WriteOptions { row_group_rows: 500, ..Default::default() }).unwrap();
    e.push(&r).unwrap();
    let source = read_back(&e.finish().unwrap()).await;
    let mut e = PartEncoder::new(r.schema(), WriteOptions::default()).unwrap();
    e.push(&rows(5000, 3)).unwrap();
    e.copy_row_group(&source, 1).unwrap();
    e.push(&rows(6000, 2)).unwrap();
    let encoded = e.finish().unwrap();
    assert_eq!(encoded.row_groups, [3, 500, 2]);
    let back = all(&read_back(&encoded).await);
    assert_eq!(back.slice(3, 500).columns(), r.slice(500, 500).columns());
    assert_eq!(back.slice(503, 2).columns(), rows(6000, 2).columns());
}

#[tokio::test]
async fn changed_bytes_are_found() {
    let r = rows(0, 100);
    let mut e = PartEncoder::new(r.schema(), WriteOptions::default()).unwrap();
    e.push(&r).unwrap();
    let encoded = e.finish().unwrap();
    let memory = object_store::memory::InMemory::new();
    let key = Path::from("a.parquet");
    let placement = store(&memory, &key, DiskId::DEFAULT, Generation(1), &encoded).await.unwrap();
    let mut damaged = encoded.bytes.to_vec();
    damaged[40] ^= 1;
    memory.put_opts(&key, Bytes::from(damaged).into(), PutOptions::default()).await.unwrap();
    let e = PartReader::open(&memory, &key, &crate::part::meta::sample(placement, &encoded)).await.map(|_| ()).unwrap_err();
    assert_eq!(e.kind(), crate::ErrorKind::Corrupt);
}
