use crate::{
    Error, ErrorKind,
    codec::Codec,
    column_type::ColumnType,
    part::{CodedRows, PartReader, RowSet, WriteOptions, reader::ReadOptions, store::write_part},
    testkit::{
        defs::{column, stream},
        fault_store::{Fault, FaultStore, Op},
    },
};
use arrow::{array::*, compute::concat_batches};
use object_store::{ObjectStore, ObjectStoreExt, memory::InMemory, path::Path};
use std::sync::Arc;

const ROWS: i64 = 1_200_000;

/// More than is fetched whole: values without a pattern, which do not compress.
async fn large(store: &Arc<dyn ObjectStore>) -> (Path, RecordBatch) {
    let def = stream("s", vec![column(1, "k", ColumnType::Int64), column(2, "noise", ColumnType::Int64)]);
    let noise = |i: i64| i.wrapping_mul(0x9E37_79B9_7F4A_7C15_u64 as i64).rotate_left((i % 61) as u32);
    let columns: Vec<ArrayRef> = vec![
        Arc::new(Int64Array::from_iter_values(0..ROWS)),
        Arc::new(Int64Array::from_iter_values((0..ROWS).map(noise))),
        Arc::new(TimestampMicrosecondArray::from_iter_values(1..=ROWS).with_timezone("UTC")),
        Arc::new(Int64Array::from(vec![7; ROWS as usize])),
    ];
    let rows = RecordBatch::try_new(def.part_schema(), columns).unwrap();
    let (key, pushed) = (Path::from("large.parquet"), rows.clone());
    write_part(store, &key, WriteOptions::of(&def, Codec::Lz4), move |e| e.push(&pushed)).await.unwrap();
    assert!(store.head(&key).await.unwrap().size > 8 << 20, "too small to be read by ranges");
    (key, rows)
}

async fn apart<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    tokio::task::spawn_blocking(work).await.unwrap()
}

#[tokio::test]
async fn a_large_object_is_read_by_ranges_as_if_it_were_a_file() {
    let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let (key, want) = large(&store).await;
    let reader = PartReader::open(&store, &key).await.unwrap();
    assert!(matches!(reader.source(), crate::part::reader::Source::Remote(_)));
    let all = {
        let reader = reader.clone();
        apart(move || reader.read(&ReadOptions::default()).unwrap().collect::<Result<Vec<_>, _>>().unwrap()).await
    };
    assert_eq!(concat_batches(&want.schema(), &all).unwrap(), want);
    // As a rewrite reads it, and a few rows by their place.
    let (coded, few) = {
        let reader = reader.clone();
        let hidden = Arc::new(RowSet((0..ROWS as u32).filter(|r| r % 300_000 != 5).collect()));
        apart(move || {
            let coded: usize = CodedRows::new(&reader, 0..reader.row_groups(), 10_000).map(|b| b.unwrap().num_rows()).sum();
            let options = ReadOptions { hidden: Some(hidden), ..ReadOptions::default() };
            (coded, reader.read(&options).unwrap().map(|b| b.unwrap().num_rows()).sum::<usize>())
        })
        .await
    };
    assert_eq!((coded, few), (ROWS as usize, 4));
}

#[tokio::test]
async fn a_store_that_goes_away_under_a_reader_is_unavailable_and_no_damage() {
    let faulty = FaultStore::over(Arc::new(InMemory::new()));
    let store: Arc<dyn ObjectStore> = Arc::new(faulty.clone());
    let (key, _) = large(&store).await;
    let reader = PartReader::open(&store, &key).await.unwrap();
    faulty.inject(Op::Get, "large", 1, u64::MAX, Fault::Fail);
    let read = move || -> Error { reader.read(&ReadOptions::default()).unwrap().find_map(Result::err).unwrap() };
    let error = apart(read).await;
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert!(error.to_string().contains("large.parquet"), "{error}");
    // Cut short since it was opened: the bytes that are asked for are not there.
    faulty.clear();
    let reader = PartReader::open(&store, &key).await.unwrap();
    let bytes = store.get(&key).await.unwrap().bytes().await.unwrap();
    store.put(&key, bytes.slice(..bytes.len() / 2).into()).await.unwrap();
    let read = move || -> Error { reader.read(&ReadOptions::default()).unwrap().find_map(Result::err).unwrap() };
    let error = apart(read).await;
    assert!(matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Unavailable), "{error}");
}
