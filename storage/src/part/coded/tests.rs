use super::*;
use crate::{
    ids::ColumnId,
    part::{PartEncoder, WriteOptions},
    stream_def::{tp_sn_field, tp_time_field},
};
use arrow::array::*;
use object_store::{ObjectStore, ObjectStoreExt, memory::InMemory, path::Path};

#[derive(Clone, Default)]
struct Shared(Arc<parking_lot::Mutex<Vec<u8>>>);

impl std::io::Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn field(id: i32, name: &str, t: DataType, nullable: bool) -> Field {
    let id = (parquet::arrow::PARQUET_FIELD_ID_META_KEY.to_owned(), ColumnId(id).to_string());
    Field::new(name, t, nullable).with_metadata([id].into())
}

fn batch(schema: &SchemaRef, rows: usize) -> RecordBatch {
    let n = 0..rows as i64;
    let columns: Vec<ArrayRef> = vec![
        Arc::new(StringViewArray::from_iter(n.clone().map(|i| (i % 7 != 0).then(|| format!("host {} with a long name", i / 100))))),
        Arc::new(Float64Array::from_iter(n.clone().map(|i| (i % 3 != 0).then_some((i % 50) as f64 / 2.0)))),
        Arc::new(BooleanArray::from_iter(n.clone().map(|i| Some(i % 2 == 0)))),
        Arc::new(ListArray::from_iter_primitive::<arrow::datatypes::Int64Type, _, _>(
            n.clone().map(|i| Some(vec![Some(i); i as usize % 3])),
        )),
        // Too many values for a dictionary.
        Arc::new(StringViewArray::from_iter_values(n.clone().map(|i| format!("{i:040}")))),
        Arc::new(TimestampMicrosecondArray::from_iter_values(n.clone().map(|i| i * 1000)).with_timezone("UTC")),
        Arc::new(Int64Array::from_iter_values(n.map(|_| 5))),
    ];
    RecordBatch::try_new(schema.clone(), columns).unwrap()
}

fn options(schema: &SchemaRef, row_group_rows: usize) -> WriteOptions {
    WriteOptions {
        schema: schema.clone(),
        codec: crate::codec::Codec::Lz4,
        column_codecs: Default::default(),
        sorted_by: vec![],
        bloom: vec![("host".into(), 0.01)],
        sets: vec![],
        computed: vec![],
        row_group_rows,
        threads: 1,
        piece_bytes: crate::part::store::piece_bytes(true, 0),
    }
}

async fn part(rows: usize) -> (PartReader, RecordBatch) {
    let list = DataType::List(Arc::new(Field::new_list_field(DataType::Int64, true)));
    let schema: SchemaRef = Arc::new(Schema::new(vec![
        field(1, "host", DataType::Utf8View, true),
        field(2, "v", DataType::Float64, true),
        field(3, "b", DataType::Boolean, false),
        field(4, "l", list, true),
        field(5, "id", DataType::Utf8View, false),
        tp_time_field(),
        tp_sn_field(),
    ]));
    let options = options(&schema, 70_000);
    let rows = batch(&schema, rows);
    (written(options, std::slice::from_ref(&rows)).await, rows)
}

async fn written(options: WriteOptions, batches: &[RecordBatch]) -> PartReader {
    let file = Shared::default();
    let mut encoder = PartEncoder::new(file.clone(), options);
    batches.iter().for_each(|b| encoder.push(b).unwrap());
    encoder.finish().unwrap();
    let file = file.0.lock().clone();
    let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let key = Path::from("p.parquet");
    store.put(&key, file.into()).await.unwrap();
    PartReader::open(&store, &key).await.unwrap()
}

#[tokio::test]
async fn coded_rows_are_the_rows_and_can_be_written_again() {
    let (reader, rows) = part(100_000).await;
    assert_eq!(reader.row_groups(), 2);
    let coded: Vec<RecordBatch> = CodedRows::new(&reader, 0..2, 10_000).map(Result::unwrap).collect();
    let is_coded: Vec<bool> = coded[0].columns().iter().map(|c| matches!(c.data_type(), DataType::Dictionary(..))).collect();
    assert_eq!(is_coded, [true, true, false, false, false, false, true]);
    let values: Vec<RecordBatch> = coded.iter().map(|b| values_by_row(b, reader.schema()).unwrap()).collect();
    let whole = arrow::compute::concat_batches(reader.schema(), &values).unwrap();
    assert_eq!(whole.columns(), rows.columns());
    // Batches of a row group share its dictionaries.
    let dictionary = |b: &RecordBatch| b.column(0).as_any_dictionary().values().clone();
    assert!(Arc::ptr_eq(&dictionary(&coded[0]), &dictionary(&coded[1])));
    // Written again, coded rows and values by turns, in row groups of another size.
    let mixed: Vec<RecordBatch> =
        coded.iter().zip(&values).enumerate().map(|(i, (c, v))| if i % 3 == 2 { v.clone() } else { c.clone() }).collect();
    let again = written(options(&rows.schema(), 7_000), &mixed).await;
    assert_eq!(again.row_groups(), 15);
    let back: Vec<RecordBatch> = again.read(&ReadOptions::default()).unwrap().map(Result::unwrap).collect();
    assert_eq!(arrow::compute::concat_batches(&rows.schema(), &back).unwrap().columns(), rows.columns());
    // One row group alone.
    assert_eq!(CodedRows::new(&reader, [1], 10_000).map(|b| b.unwrap().num_rows()).sum::<usize>(), 30_000);
}

#[tokio::test]
async fn damaged_bytes_are_named_and_do_not_panic() {
    let (reader, _) = part(20_000).await;
    let source = match reader.source() {
        crate::part::reader::Source::Bytes(b) => b.clone(),
        _ => panic!("in memory"),
    };
    let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let key = Path::from("damaged.parquet");
    let (mut refused, end) = (0, source.len() * 3 / 4);
    for at in (4..end).step_by(end / 150) {
        let mut bytes = source.to_vec();
        bytes[at] ^= 0xff;
        bytes[at + 1] ^= 0x55;
        store.put(&key, bytes.into()).await.unwrap();
        let Ok(reader) = PartReader::open(&store, &key).await else { continue };
        if let Some(error) = CodedRows::new(&reader, [0], 5_000).find_map(Result::err) {
            assert_eq!(error.kind(), crate::ErrorKind::Corrupt, "{error}");
            assert!(error.to_string().contains("damaged.parquet"), "{error}");
            refused += 1;
        }
    }
    assert!(refused > 0);
}
