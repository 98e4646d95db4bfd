use super::*;
use crate::{
    codec::Preprocessor,
    ids::{PartId, SchemaVersion, StreamId},
    part::{
        reader::{PartReader, ReadOptions, Texts},
        row_set::RowSet,
        stats::Bound,
        store::{verify, write_part},
    },
    rules::Policy,
    stream_def::ColumnDef,
};
use arrow::{
    array::*,
    compute::concat_batches,
    datatypes::{Int64Type, TimeUnit},
};
use object_store::{ObjectStore, ObjectStoreExt, memory::InMemory, path::Path};

fn column(id: i32, name: &str, ty: ColumnType, nullable: bool) -> ColumnDef {
    ColumnDef { nullable, ..ColumnDef::plain(id, name, ty) }
}

fn def(columns: Vec<ColumnDef>, order_by: &[&str]) -> StreamDef {
    StreamDef {
        id: StreamId(1),
        database: "default".into(),
        name: "s".into(),
        next_column: ColumnId(columns.len() as i32 + 1),
        columns,
        schema_version: SchemaVersion(1),
        policy_version: 1,
        partition_by: vec![],
        order_by: order_by.iter().map(|s| (*s).to_owned()).collect(),
        primary_key: vec![],
        series_key: vec![],
        indexes: vec![],
        policy: Policy::default(),
        settings: Default::default(),
        comment: String::new(),
        created_at: Timestamp(0),
    }
}

fn batch(def: &StreamDef, mut columns: Vec<ArrayRef>) -> RecordBatch {
    let rows = columns[0].len();
    columns.push(Arc::new(TimestampMicrosecondArray::from_iter_values((0..rows as i64).map(|i| 1000 + i)).with_timezone("UTC")));
    columns.push(Arc::new(Int64Array::from(vec![7; rows])));
    RecordBatch::try_new(def.part_schema(), columns).unwrap()
}

async fn write(def: &StreamDef, codec: Codec, batches: Vec<RecordBatch>, rows: usize) -> (Arc<dyn ObjectStore>, Path, Encoded) {
    let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let key = crate::part::key::part(&crate::ids::DatabaseId("d".into()), StreamId(1), PartId(1), crate::ids::Generation(1));
    let options = WriteOptions { row_group_rows: rows, threads: 2, ..WriteOptions::of(def, codec) };
    let (encoded, ()) = write_part(&store, &key, options, move |e| batches.iter().try_for_each(|b| e.push(b))).await.unwrap();
    (store, key, encoded.unwrap())
}

fn all(reader: &PartReader, options: &ReadOptions) -> RecordBatch {
    let batches: Vec<RecordBatch> = reader.read(options).unwrap().map(|b| b.unwrap()).collect();
    concat_batches(&batches[0].schema(), &batches).unwrap()
}

/// One column of every kind, with NULLs.
fn every_type() -> (StreamDef, RecordBatch) {
    let mut list = ListBuilder::new(Int64Builder::new()).with_field(Field::new("item", DataType::Int64, true));
    let mut map = MapBuilder::new(
        Some(MapFieldNames { entry: "entries".into(), key: "key".into(), value: "value".into() }),
        StringViewBuilder::new(),
        Int32Builder::new(),
    );
    for i in 0..5i64 {
        list.values().append_option((i != 2).then_some(i));
        list.append(i != 3);
        map.keys().append_value(format!("k{i}"));
        map.values().append_value(i as i32);
        map.append(true).unwrap();
    }
    let opt = |i: i64| (i != 1).then_some(i);
    let columns = vec![
        (ColumnType::Int8, Arc::new((0..5).map(|i| opt(i).map(|v| v as i8 - 3)).collect::<Int8Array>()) as ArrayRef),
        (ColumnType::Int32, Arc::new((0..5).map(|i| opt(i).map(|v| v as i32 * -7)).collect::<Int32Array>())),
        (ColumnType::UInt32, Arc::new((0..5).map(|i| opt(i).map(|v| u32::MAX - v as u32)).collect::<UInt32Array>())),
        (ColumnType::UInt64, Arc::new((0..5).map(|i| opt(i).map(|v| u64::MAX - v as u64)).collect::<UInt64Array>())),
        (ColumnType::Float64, Arc::new((0..5).map(|i| opt(i).map(|v| v as f64 / 3.0)).collect::<Float64Array>())),
        (ColumnType::Float32, Arc::new((0..5).map(|i| opt(i).map(|v| v as f32)).collect::<Float32Array>())),
        (
            ColumnType::Decimal(30, 4),
            Arc::new((0..5).map(|i| opt(i).map(|v| v as i128 - 2)).collect::<Decimal128Array>().with_precision_and_scale(30, 4).unwrap()),
        ),
        (ColumnType::Bool, Arc::new((0..5).map(|i| opt(i).map(|v| v % 2 == 0)).collect::<BooleanArray>())),
        (ColumnType::String, Arc::new((0..5).map(|i| opt(i).map(|v| "x".repeat(v as usize))).collect::<StringViewArray>())),
        (ColumnType::Bytes, Arc::new((0..5).map(|i| opt(i).map(|v| vec![255u8; v as usize])).collect::<BinaryViewArray>())),
        (ColumnType::Date, Arc::new((0..5).map(|i| opt(i).map(|v| v as i32 - 2)).collect::<Date32Array>())),
        (ColumnType::DateTime(None), Arc::new((0..5).map(opt).collect::<TimestampMicrosecondArray>())),
        (
            ColumnType::DateTime64(9, Some("UTC".into())),
            Arc::new((0..5).map(opt).collect::<TimestampNanosecondArray>().with_timezone("UTC")),
        ),
        (ColumnType::Array(Box::new(ColumnType::Int64), true), Arc::new(list.finish())),
        (ColumnType::Map(Box::new(ColumnType::String), Box::new(ColumnType::Int32), true), Arc::new(map.finish())),
    ];
    let defs = columns.iter().enumerate().map(|(i, (t, _))| column(i as i32 + 1, &format!("c{i}"), t.clone(), true)).collect();
    let def = def(defs, &[]);
    let arrays = columns.into_iter().zip(def.stored()).map(|((_, a), c)| arrow::compute::cast(&a, &c.ty.arrow()).unwrap()).collect();
    let batch = batch(&def, arrays);
    (def, batch)
}

#[tokio::test]
async fn every_type_and_codec_reads_back_as_written() {
    let (def, rows) = every_type();
    for codec in [Codec::None, Codec::Lz4, Codec::Zstd(3), Codec::Snappy, Codec::Gzip(6), Codec::Brotli(4)] {
        let (store, key, encoded) = write(&def, codec, vec![rows.clone()], 100).await;
        let reader = PartReader::open(&store, &key).await.unwrap();
        assert_eq!(all(&reader, &ReadOptions::default()), rows, "{codec}");
        assert_eq!((encoded.rows, encoded.codec), (5, codec));
        verify(&store, &key, encoded.bytes, encoded.checksum).await.unwrap();
        assert!(verify(&store, &key, encoded.bytes, encoded.checksum ^ 1).await.is_err());
    }
}

#[tokio::test]
async fn bounds_are_those_of_the_values() {
    let (def, rows) = every_type();
    // Two row groups: bounds are joined.
    let (_, _, encoded) = write(&def, Codec::Lz4, vec![rows], 3).await;
    assert_eq!(encoded.row_groups, [3, 2]);
    assert_eq!((encoded.min_time, encoded.max_time), (Timestamp(1000), Timestamp(1004)));
    let of = |i: i32| encoded.stats.iter().find(|s| s.column == ColumnId(i)).unwrap();
    assert_eq!((&of(1).min, &of(1).max, of(1).nulls, of(1).exact), (&Some(Bound::Int(-3)), &Some(Bound::Int(1)), 1, true));
    assert_eq!((&of(3).min, &of(3).max), (&Some(Bound::UInt(u64::from(u32::MAX) - 4)), &Some(Bound::UInt(u64::from(u32::MAX)))));
    assert_eq!((&of(4).min, &of(4).max), (&Some(Bound::UInt(u64::MAX - 4)), &Some(Bound::UInt(u64::MAX))));
    assert_eq!((&of(7).min, &of(7).max), (&Some(Bound::Decimal(-2)), &Some(Bound::Decimal(2))));
    assert_eq!((&of(9).min, &of(9).max, of(9).exact), (&Some(Bound::Text(String::new())), &Some(Bound::Text("xxxx".into())), true));
    assert_eq!((&of(11).min, &of(11).max), (&Some(Bound::Int(-2)), &Some(Bound::Int(2))));
    // Nested columns have no bounds.
    assert!(encoded.stats.iter().all(|s| s.column != ColumnId(14)));
}

#[tokio::test]
async fn long_texts_are_cut_and_say_so() {
    let def = def(vec![column(1, "t", ColumnType::String, false)], &["t"]);
    let long = "z".repeat(500);
    let rows = batch(&def, vec![Arc::new(StringViewArray::from(vec!["a", long.as_str()]))]);
    let (_, _, encoded) = write(&def, Codec::Lz4, vec![rows], 100).await;
    let stats = &encoded.stats[0];
    assert!(!stats.exact);
    assert!(matches!(&stats.max, Some(Bound::Text(t)) if t.as_str() > long.as_str() || long.starts_with(t.as_str())));
}

#[tokio::test]
async fn dictionaries_are_written_and_read_as_texts() {
    let def = def(vec![column(1, "host", ColumnType::String, false), column(2, "v", ColumnType::Int64, false)], &["host"]);
    let mut rows = batch(
        &def,
        vec![
            Arc::new(StringViewArray::from_iter_values((0..1000).map(|i| format!("host{}", i / 100)))),
            Arc::new(Int64Array::from_iter_values(0..1000)),
        ],
    );
    let plain = rows.clone();
    let words: DictionaryArray<arrow::datatypes::Int32Type> = rows.column(0).as_string_view().iter().map(|v| v.unwrap()).collect();
    let mut columns = rows.columns().to_vec();
    columns[0] = Arc::new(words);
    let fields: Vec<Field> =
        rows.schema().fields().iter().zip(&columns).map(|(f, c)| f.as_ref().clone().with_data_type(c.data_type().clone())).collect();
    rows = RecordBatch::try_new(Arc::new(arrow::datatypes::Schema::new(fields)), columns).unwrap();
    let (store, key, encoded) = write(&def, Codec::Lz4, vec![rows.slice(0, 333), rows.slice(333, 667)], 400).await;
    assert_eq!(encoded.row_groups, [400, 400, 200]);
    assert_eq!(encoded.uncompressed_bytes as usize, 1000 * (5 + 8 + 8 + 8));
    let reader = PartReader::open(&store, &key).await.unwrap();
    assert_eq!(all(&reader, &ReadOptions::default()), plain);
    let read = all(&reader, &ReadOptions { texts: Texts::Dictionaries, ..Default::default() });
    assert!(matches!(read.column(0).data_type(), DataType::Dictionary(..)));
    assert_eq!(arrow::compute::cast(read.column(0), &DataType::Utf8View).unwrap().as_ref(), plain.column(0).as_ref());
}

#[tokio::test]
async fn columns_row_groups_and_hidden_rows_are_chosen() {
    let def = def(vec![column(1, "a", ColumnType::Int64, false), column(2, "b", ColumnType::Int64, false)], &["a"]);
    let rows = batch(&def, vec![Arc::new(Int64Array::from_iter_values(0..10)), Arc::new(Int64Array::from_iter_values(10..20))]);
    let (store, key, _) = write(&def, Codec::Lz4, vec![rows], 4).await;
    let reader = PartReader::open(&store, &key).await.unwrap();
    let hidden = Some(Arc::new(RowSet([0, 4, 5, 9].into_iter().collect())));
    let options = ReadOptions { columns: Some(vec![ColumnId(2)]), hidden, ..Default::default() };
    let values = |b: RecordBatch| b.column(0).as_primitive::<Int64Type>().values().to_vec();
    let read = all(&reader, &options);
    assert_eq!(read.num_columns(), 1);
    assert_eq!(values(read), [11, 12, 13, 16, 17, 18]);
    assert_eq!(values(all(&reader, &ReadOptions { row_groups: Some(vec![1, 2]), ..options })), [16, 17, 18]);
}

#[tokio::test]
async fn other_tools_find_field_ids_sort_order_and_bloom_filters() {
    let mut columns = vec![column(1, "t", ColumnType::DateTime(None), false), column(2, "host", ColumnType::String, false)];
    columns[0].codec = Some(ColumnCodec { preprocessor: Some(Preprocessor::Delta), codec: Codec::Zstd(1) });
    let def = def(columns, &["t", "host"]);
    let rows = batch(
        &def,
        vec![
            Arc::new(TimestampMicrosecondArray::from_iter_values(0..100)),
            Arc::new(StringViewArray::from_iter_values((0..100).map(|i| format!("h{i}")))),
        ],
    );
    let (store, key, _) = write(&def, Codec::Lz4, vec![rows], 1000).await;
    let reader = PartReader::open(&store, &key).await.unwrap();
    let group = reader.parquet().metadata().row_group(0);
    assert_eq!(group.sorting_columns().unwrap().iter().map(|s| s.column_idx).collect::<Vec<_>>(), [0, 1]);
    assert!(group.column(1).bloom_filter_offset().is_some() && group.column(0).bloom_filter_offset().is_none());
    assert_eq!(group.column(0).compression(), Codec::Zstd(1).parquet());
    assert_eq!(group.column(1).compression(), Codec::Lz4.parquet());
    let ids: Vec<i32> = reader.parquet().parquet_schema().root_schema().get_fields().iter().map(|f| f.get_basic_info().id()).collect();
    assert_eq!(ids, [1, 2, ColumnId::TP_TIME.0, ColumnId::TP_SN.0]);
    assert_eq!(reader.schema().field(0).data_type(), &DataType::Timestamp(TimeUnit::Microsecond, None));
}

#[tokio::test]
async fn a_part_without_rows_is_no_part_and_leaves_nothing() {
    // proves F7
    let (def, _) = every_type();
    let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let key = Path::from("p");
    let (encoded, told) = write_part(&store, &key, WriteOptions::of(&def, Codec::Lz4), |_| Ok(7)).await.unwrap();
    assert!(encoded.is_none());
    assert_eq!(told, 7);
    assert!(store.head(&key).await.is_err());
}

#[tokio::test]
async fn a_failing_writer_leaves_nothing_and_a_key_is_used_once() {
    let (def, rows) = every_type();
    let (store, key, _) = write(&def, Codec::Lz4, vec![rows.clone()], 100).await;
    let again = rows.slice(1, rows.num_rows() - 1);
    let e = write_part(&store, &key, WriteOptions::of(&def, Codec::Lz4), move |e| e.push(&again)).await.unwrap_err();
    assert_eq!(e.kind(), crate::ErrorKind::Conflict);
    let other = Path::from("other");
    let failing = move |e: &mut PartEncoder<_>| {
        e.push(&rows)?;
        Err::<(), _>(Error::invalid("no more"))
    };
    let e = write_part(&store, &other, WriteOptions::of(&def, Codec::Lz4), failing).await.unwrap_err();
    assert_eq!(e.message(), "no more");
    assert!(store.head(&other).await.is_err());
}

#[tokio::test]
async fn a_row_group_taken_over_is_the_same_rows_bounds_and_bloom_filter() {
    let def = def(vec![column(1, "host", ColumnType::String, false), column(2, "v", ColumnType::Int64, true)], &["v", "host"]);
    let make = |from: i64, n: i64| {
        let hosts = StringViewArray::from_iter_values((from..from + n).map(|i| format!("a host with a long name {}", i % 7)));
        batch(&def, vec![Arc::new(hosts), Arc::new((from..from + n).map(|i| (i % 5 > 0).then_some(i)).collect::<Int64Array>())])
    };
    let (rows, before, after) = (make(0, 1000), make(5000, 3), make(6000, 2));
    let (store, key, _) = write(&def, Codec::Lz4, vec![rows.clone()], 500).await;
    let source = PartReader::open(&store, &key).await.unwrap();
    let source_of_copy = source.clone();
    for lead in [true, false] {
        let (source, before, after, key) = (source.clone(), before.clone(), after.clone(), Path::from(format!("copy{lead}")));
        let (b, a) = (before.clone(), after.clone());
        let fill = move |e: &mut PartEncoder<_>| {
            if lead {
                e.push(&b)?;
            }
            e.copy_row_group(&source, 1, 77)?;
            e.push(&a)?;
            Ok(e.rows())
        };
        let (encoded, told) = write_part(&store, &key, WriteOptions::of(&def, Codec::Zstd(1)), fill).await.unwrap();
        let (encoded, skip) = (encoded.unwrap(), if lead { 3 } else { 0 });
        assert_eq!(encoded.row_groups, if lead { vec![3, 500, 2] } else { vec![500, 2] });
        assert_eq!(told, encoded.rows);
        let copy = PartReader::open(&store, &key).await.unwrap();
        let back = all(&copy, &ReadOptions::default());
        assert_eq!(back.slice(skip, 500).columns(), rows.slice(500, 500).columns());
        assert_eq!(back.slice(skip + 500, 2).columns(), after.columns());
        let v = encoded.stats.iter().find(|s| s.column == ColumnId(2)).unwrap();
        assert_eq!((&v.min, &v.max), (&Some(Bound::Int(501)), &Some(Bound::Int(6001))));
        let group = usize::from(lead);
        assert!(copy.bloom_filter(group, 0).unwrap().unwrap().check("a host with a long name 3"));
        let pages = |r: &PartReader, g: usize| r.metadata().row_group(g).column(0).page_encoding_stats().cloned();
        assert!(pages(&copy, group).is_some_and(|p| !p.is_empty()) && pages(&copy, group) == pages(&source_of_copy, 1));
        verify(&store, &key, encoded.bytes, encoded.checksum).await.unwrap();
    }
}

#[tokio::test]
async fn large_parts_are_stored_in_pieces() {
    let def = def(vec![column(1, "v", ColumnType::Int64, false)], &[]);
    let values = (0..1_500_000i64).map(|i| i.wrapping_mul(-7_046_029_254_386_353_131) ^ i << 40);
    let rows = batch(&def, vec![Arc::new(Int64Array::from_iter_values(values))]);
    let (store, key, encoded) = write(&def, Codec::None, vec![rows.clone()], 400_000).await;
    assert!(encoded.bytes > 8 << 20);
    verify(&store, &key, encoded.bytes, encoded.checksum).await.unwrap();
    // Large objects are read by ranges, from threads that may block.
    let reader = PartReader::open(&store, &key).await.unwrap();
    let back = tokio::task::spawn_blocking(move || all(&reader, &ReadOptions::default())).await.unwrap();
    assert_eq!(back, rows);
}

#[tokio::test]
async fn damage_is_an_error_and_never_a_panic() {
    let (def, rows) = every_type();
    let (store, key, encoded) = write(&def, Codec::Zstd(1), vec![rows.clone()], 3).await;
    let bytes = store.get(&key).await.unwrap().bytes().await.unwrap();
    let damaged = Path::from("damaged");
    let mut unnoticed = 0;
    for at in (0..bytes.len()).step_by(3) {
        let mut copy = bytes.to_vec();
        copy[at] ^= 0x55;
        store.put(&damaged, copy.into()).await.unwrap();
        assert!(verify(&store, &damaged, encoded.bytes, encoded.checksum).await.is_err());
        match PartReader::open(&store, &damaged).await {
            Ok(reader) => match reader.read(&ReadOptions::default()) {
                Ok(rows) => unnoticed += usize::from(rows.collect::<Result<Vec<_>>>().is_ok()),
                Err(e) => assert!(e.message().contains("damaged"), "{e}"),
            },
            Err(e) => assert!(e.message().contains("damaged"), "{e}"),
        }
    }
    // Only the whole file's checksum sees every change.
    assert!(unnoticed < bytes.len() / 3);
    for len in (0..bytes.len()).step_by(97) {
        store.put(&damaged, bytes.slice(0..len).into()).await.unwrap();
        assert!(PartReader::open(&store, &damaged).await.is_err());
    }
}

/// A NaN is above every number where values are compared, and in no bounds where they are kept: a chunk with one has none.
#[tokio::test]
async fn a_chunk_with_a_nan_has_no_bounds() {
    // Values that fill more than a dictionary may take, so that the library writes the second column.
    const GROUP: usize = 300_000;
    let def = def(vec![column(1, "f", ColumnType::Float64, true), column(2, "g", ColumnType::Float64, true)], &[]);
    for codec in [Codec::Lz4, Codec::Gzip(1)] {
        // One row group with a NaN, one without.
        let rows = 2 * GROUP as u32;
        let f = (0..rows).map(|i| (i % 3 != 0).then_some(if i == 100 { f64::NAN } else { f64::from(i % 10) }));
        let g = (0..rows).map(|i| if i == 100 { f64::NAN } else { f64::from(i.wrapping_mul(2_654_435_761)).sqrt() });
        let rows = batch(&def, vec![Arc::new(Float64Array::from_iter(f)), Arc::new(Float64Array::from_iter_values(g))]);
        let (store, key, encoded) = write(&def, codec, vec![rows], GROUP).await;
        let reader = PartReader::open(&store, &key).await.unwrap();
        for leaf in 0..2 {
            let bounds = |group: usize| {
                reader.metadata().row_group(group).column(leaf).statistics().and_then(|s| s.min_bytes_opt().map(<[u8]>::to_vec))
            };
            assert_eq!((bounds(0), bounds(1).is_some()), (None, true), "{codec} {leaf}");
        }
        // Noise is stored as noise, whether or not there is a NaN in it.
        let encodings = |group: usize| reader.metadata().row_group(group).column(1).encodings().collect::<Vec<_>>();
        assert!(encodings(0).contains(&parquet::basic::Encoding::BYTE_STREAM_SPLIT), "{:?}", encodings(0));
        assert_eq!(encodings(0), encodings(1));
        let of = |i: i32| encoded.stats.iter().find(|s| s.column == ColumnId(i)).unwrap();
        assert_eq!((&of(1).min, &of(2).max), (&None, &None));
        // Of the column that the library wrote nobody counted them.
        assert_eq!((of(1).known_nulls(), of(2).known_nulls()), (Some(200_000), None));
    }
}

#[test]
fn bounds_are_written_and_read_whatever_the_number() {
    for x in [f64::INFINITY, f64::NEG_INFINITY, -0.0, 0.1, f64::MAX, f64::MIN_POSITIVE] {
        let text = serde_json::to_string(&Bound::Float(x)).unwrap();
        let back: Bound = serde_json::from_str(&text).unwrap();
        assert!(matches!(back, Bound::Float(y) if y.to_bits() == x.to_bits()), "{text}");
    }
}

/// What a rewrite does: rows read as dictionaries, in part, written again.
async fn rewritten(def: &StreamDef, rows: &RecordBatch, codec: Codec) -> RecordBatch {
    let (store, key, _) = write(def, codec, vec![rows.clone()], 400).await;
    let reader = PartReader::open(&store, &key).await.unwrap();
    let coded: Vec<RecordBatch> = crate::part::CodedRows::new(&reader, 0..reader.row_groups(), 150).map(Result::unwrap).collect();
    let (store, key, _) = write(def, codec, coded, 300).await;
    all(&PartReader::open(&store, &key).await.unwrap(), &ReadOptions::default())
}

#[tokio::test]
async fn texts_too_long_for_exact_bounds_survive_rewrites() {
    let columns =
        vec![column(1, "t", ColumnType::String, false), column(2, "n", ColumnType::String, true), column(3, "b", ColumnType::Bytes, true)];
    for length in [50, 63, 64, 65, 100, 5000] {
        let def = def(columns.clone(), &["t"]);
        let text = |i: i64| format!("{i:05}{}", "v".repeat(length - 5));
        let some = |i: i64| (i % 7 != 3).then_some(i);
        let rows = batch(
            &def,
            vec![
                Arc::new(StringViewArray::from_iter_values((0..1000).map(|i| text(i / 4)))),
                Arc::new((0..1000).map(|i| some(i).map(|i| text(i % 90))).collect::<StringViewArray>()),
                Arc::new((0..1000).map(|i| some(i).map(|i| text(i % 9).into_bytes())).collect::<BinaryViewArray>()),
            ],
        );
        for codec in [Codec::Lz4, Codec::Zstd(3), Codec::Lz4hc(9)] {
            assert_eq!(rewritten(&def, &rows, codec).await.columns(), rows.columns(), "{length} bytes, {codec}");
        }
    }
}

/// Columns with leaves have as many chunks: the codec is that of each.
#[tokio::test]
async fn a_column_of_lists_has_its_own_codec() {
    let own = |mut c: ColumnDef| {
        c.codec = Some(ColumnCodec { preprocessor: None, codec: Codec::Zstd(9) });
        c
    };
    let list = own(column(1, "list", ColumnType::Array(Box::new(ColumnType::Int64), false), false));
    let def = def(vec![list, column(2, "other", ColumnType::Array(Box::new(ColumnType::Int64), false), false)], &[]);
    let mut lists = ListBuilder::new(Int64Builder::new());
    (0..1000).for_each(|i| {
        lists.values().append_value(i % 7);
        lists.append(true);
    });
    let schema = def.part_schema();
    let lists = arrow::compute::cast(&lists.finish(), schema.field(0).data_type()).unwrap();
    let rows = batch(&def, vec![lists.clone(), lists]);
    for codec in [Codec::Lz4, Codec::Lz4hc(9)] {
        let (store, key, _) = write(&def, codec, vec![rows.clone()], 500).await;
        let reader = PartReader::open(&store, &key).await.unwrap();
        for column in reader.metadata().row_group(1).columns() {
            let own = column.column_path().parts()[0] == "list";
            let zstd = matches!(column.compression(), parquet::basic::Compression::ZSTD(_));
            assert_eq!(zstd, own, "{codec} {}: {:?}", column.column_path(), column.compression());
        }
    }
}

/// An index over numbers answers whatever encoding their chunk has.
#[tokio::test]
async fn numbers_have_the_filter_that_was_asked_for() {
    let names = [("few", ColumnType::Int64), ("rising", ColumnType::Int64), ("small", ColumnType::UInt8), ("x", ColumnType::Float64)];
    let columns = names.iter().zip(1..).map(|((name, ty), id)| column(id, name, ty.clone(), false)).collect();
    let mut def = def(columns, &[]);
    for (name, _) in &names {
        let kind = IndexKind::BloomFilter(1000);
        def.indexes.push(IndexDef { name: (*name).to_owned(), expr: (*name).to_owned(), kind, granularity: 1 });
    }
    let scattered = |i: i64| i.wrapping_mul(2_654_435_761) % 50_000 * 1_000_003;
    let rows = batch(
        &def,
        vec![
            Arc::new(Int64Array::from_iter_values((0..200_000).map(scattered))),
            Arc::new(Int64Array::from_iter_values(0..200_000)),
            Arc::new(UInt8Array::from_iter_values((0..200_000).map(|i| (i % 100) as u8))),
            Arc::new(Float64Array::from_iter_values((0..200_000).map(|i| f64::from(i % 50)))),
        ],
    );
    let (store, key, _) = write(&def, Codec::Lz4, vec![rows], 200_000).await;
    let reader = PartReader::open(&store, &key).await.unwrap();
    let filter = |leaf: usize| reader.bloom_filter(0, leaf).unwrap().unwrap_or_else(|| panic!("no filter of {}", names[leaf].0));
    assert!(reader.bloom_filter(0, 3).unwrap().is_none(), "0 and -0 are equal");
    assert!((0..1000).all(|i| filter(0).check(&scattered(i))));
    let wrong = (0..10_000_i64).filter(|i| filter(0).check(&(i * 1_000_003 + 1))).count();
    assert!(wrong < 200, "{wrong}");
    assert!((0..1000_i64).all(|i| filter(1).check(&(i * 7))));
    // Parquet knows no number smaller than four bytes.
    assert!(filter(2).check(&42_i32) && !filter(2).check(&142_i32));
}
