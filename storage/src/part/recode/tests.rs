use crate::{
    codec::{Codec, ColumnCodec, Preprocessor},
    column_type::ColumnType,
    ids::{ColumnId, DatabaseId, Generation, PartId, StreamId},
    part::{
        Encoded, PartEncoder, PartReader, WriteOptions, key,
        reader::ReadOptions,
        store::{PieceWriter, write_part},
    },
    stream_def::{ColumnDef, StreamDef},
    testkit::defs,
};
use arrow::{array::*, compute::concat_batches, datatypes::Float64Type};
use object_store::{ObjectStore, ObjectStoreExt, memory::InMemory, path::Path};
use std::{collections::HashMap, sync::Arc};

const ROWS: i64 = 70_000;

/// Of every encoding: numbers and texts of few values, rising numbers, floats without a pattern, NULLs, lists, NaNs.
fn def() -> StreamDef {
    let column = defs::column;
    let mut own = column(7, "own", ColumnType::Int64);
    own.codec = Some(ColumnCodec { preprocessor: Some(Preprocessor::Delta), codec: Codec::Zstd(3) });
    let columns = vec![
        column(1, "host", ColumnType::String),
        column(2, "n", ColumnType::Int64),
        column(3, "x", ColumnType::Float64),
        ColumnDef { nullable: true, ..column(4, "maybe", ColumnType::String) },
        column(5, "list", ColumnType::Array(Box::new(ColumnType::Int64), false)),
        column(6, "nan", ColumnType::Float64),
        own,
    ];
    StreamDef { order_by: vec!["n".to_owned(), "host".to_owned()], ..defs::stream("s", columns) }
}

fn rows(def: &StreamDef) -> RecordBatch {
    let noise = |i: i64| (i as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let mut lists = ListBuilder::new(Int64Builder::new()).with_field(match def.part_schema().field(4).data_type() {
        arrow::datatypes::DataType::List(f) => f.clone(),
        other => panic!("{other}"),
    });
    for i in 0..ROWS {
        (0..i % 3).for_each(|k| lists.values().append_value(k));
        lists.append(true);
    }
    let columns: Vec<ArrayRef> = vec![
        Arc::new(StringViewArray::from_iter_values((0..ROWS).map(|i| format!("host_{:03}", i / 1000)))),
        Arc::new(Int64Array::from_iter_values((0..ROWS).map(|i| i * 7))),
        Arc::new(Float64Array::from_iter_values((0..ROWS).map(|i| f64::from_bits(noise(i) >> 2)))),
        Arc::new(StringViewArray::from_iter(
            (0..ROWS).map(|i| (i % 5 != 0).then(|| format!("a longer text that is not inlined {}", noise(i)))),
        )),
        Arc::new(lists.finish()),
        Arc::new(Float64Array::from_iter_values((0..ROWS).map(|i| if i == 9 { f64::NAN } else { i as f64 }))),
        Arc::new(Int64Array::from_iter_values((0..ROWS).map(|i| i * i))),
        Arc::new(TimestampMicrosecondArray::from_iter_values((0..ROWS).map(|i| 1000 + i)).with_timezone("UTC")),
        Arc::new(Int64Array::from(vec![7; ROWS as usize])),
    ];
    RecordBatch::try_new(def.part_schema(), columns).unwrap()
}

fn own_codecs() -> HashMap<ColumnId, ColumnCodec> {
    def().columns.iter().filter_map(|c| Some((c.id, c.codec?))).collect()
}

struct File {
    store: Arc<dyn ObjectStore>,
    key: Path,
    encoded: Encoded,
}

impl File {
    async fn write(options: WriteOptions, fill: impl FnOnce(&mut PartEncoder<PieceWriter>) -> crate::Result<()> + Send + 'static) -> Self {
        let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
        let key = key::part(&DatabaseId("d".into()), StreamId(1), PartId(1), Generation(1));
        let (encoded, ()) = write_part(&store, &key, options, fill).await.unwrap();
        Self { store, key, encoded: encoded.unwrap() }
    }

    async fn in_codec(codec: Codec) -> Self {
        let def = def();
        let options = WriteOptions { row_group_rows: 30_000, threads: 2, ..WriteOptions::of(&def, codec) };
        Self::write(options, move |e| e.push(&rows(&def))).await
    }

    async fn reader(&self) -> PartReader {
        PartReader::open(&self.store, &self.key).await.unwrap()
    }

    async fn recoded(&self, codec: Codec) -> Self {
        let reader = self.reader().await;
        let options = WriteOptions { threads: 2, ..WriteOptions::like(&reader, codec, own_codecs()) };
        Self::write(options, move |e| (0..reader.row_groups()).try_for_each(|g| e.recode_row_group(&reader, g, 1000))).await
    }

    async fn all_rows(&self) -> RecordBatch {
        let reader = self.reader().await;
        let batches: Vec<RecordBatch> = reader.read(&ReadOptions::default()).unwrap().collect::<Result<_, _>>().unwrap();
        concat_batches(reader.schema(), &batches).unwrap()
    }
}

fn same_rows(a: &RecordBatch, b: &RecordBatch) {
    assert_eq!(a.schema(), b.schema());
    for (i, (a, b)) in a.columns().iter().zip(b.columns()).enumerate() {
        match a.as_primitive_opt::<Float64Type>() {
            // A NaN is not equal to itself.
            Some(a) => {
                let bits = |x: &Float64Array| x.iter().map(|v| v.map(f64::to_bits)).collect::<Vec<_>>();
                assert_eq!(bits(a), bits(b.as_primitive()), "column {i}");
            }
            None => assert_eq!(a, b, "column {i}"),
        }
    }
}

const CODECS: [Codec; 8] =
    [Codec::None, Codec::Lz4, Codec::Lz4hc(10), Codec::Zstd(3), Codec::Zstd(17), Codec::Snappy, Codec::Gzip(6), Codec::Brotli(4)];

/// proves T9
#[tokio::test]
async fn any_codec_becomes_any_other_and_what_is_known_of_the_values_stays() {
    let plain = File::in_codec(Codec::Lz4).await;
    let want = plain.all_rows().await;
    let mut before = plain;
    for codec in CODECS {
        let after = before.recoded(codec).await;
        same_rows(&after.all_rows().await, &want);
        let (old, new) = (before.reader().await, after.reader().await);
        let (old, new) = (old.metadata(), new.metadata());
        assert_eq!(old.file_metadata().schema_descr(), new.file_metadata().schema_descr());
        assert_eq!(before.encoded.row_groups, after.encoded.row_groups);
        assert_eq!(before.encoded.stats, after.encoded.stats);
        assert_eq!(old.column_index(), new.column_index(), "{codec}");
        for g in 0..old.num_row_groups() {
            assert_eq!(old.row_group(g).sorting_columns(), new.row_group(g).sorting_columns());
            for leaf in 0..old.row_group(g).num_columns() {
                let (o, n) = (old.row_group(g).column(leaf), new.row_group(g).column(leaf));
                let own = n.column_path().parts()[0] == "own";
                let want = if own { Codec::Zstd(3) } else { codec };
                // A footer has no levels.
                let name = |c: parquet::basic::Compression| format!("{c:?}").split('(').next().map(str::to_owned);
                assert_eq!(name(n.compression()), name(want.parquet()), "{codec}");
                assert_eq!(o.statistics(), n.statistics());
                // By this a rewrite knows that it need not look values up.
                assert!(n.page_encoding_stats().is_some_and(|s| !s.is_empty()), "leaf {leaf}");
                assert_eq!(o.page_encoding_stats(), n.page_encoding_stats());
                assert_eq!(o.encodings().collect::<Vec<_>>(), n.encodings().collect::<Vec<_>>());
                let places = |m: &parquet::file::metadata::ParquetMetaData| {
                    m.offset_index().unwrap()[g][leaf].page_locations().iter().map(|l| l.first_row_index).collect::<Vec<_>>()
                };
                assert_eq!(places(old), places(new));
                assert_eq!(o.bloom_filter_offset().is_some(), n.bloom_filter_offset().is_some());
            }
        }
        assert!(new.row_group(0).column(0).bloom_filter_offset().is_some(), "a key of texts has a bloom filter");
        before = after;
    }
}

#[tokio::test]
async fn pages_are_found_where_the_index_says() {
    let file = File::in_codec(Codec::Lz4).await.recoded(Codec::Zstd(9)).await;
    let reader = file.reader().await;
    let hidden = crate::part::RowSet((0..ROWS as u32).filter(|r| r % 20_000 != 17).collect());
    let options = ReadOptions { hidden: Some(Arc::new(hidden)), ..ReadOptions::default() };
    let batches: Vec<RecordBatch> = reader.read(&options).unwrap().collect::<Result<_, _>>().unwrap();
    let got = concat_batches(reader.schema(), &batches).unwrap();
    let n: Vec<i64> = got.column(1).as_primitive::<arrow::datatypes::Int64Type>().values().to_vec();
    assert_eq!(n, [17 * 7, 20_017 * 7, 40_017 * 7, 60_017 * 7]);
}

/// The library that writes columns has no LZ4HC: a part that is written in it must not be plain LZ4.
#[tokio::test]
async fn lz4hc_is_smaller_than_lz4_and_the_same_however_it_came_about() {
    let (fast, high) = (File::in_codec(Codec::Lz4).await, File::in_codec(Codec::Lz4hc(12)).await);
    same_rows(&high.all_rows().await, &fast.all_rows().await);
    assert_eq!(high.encoded.codec, Codec::Lz4hc(12));
    let size = |f: &PartReader, root: &str| {
        let groups = f.metadata().row_groups().iter().flat_map(|g| g.columns());
        groups.filter(|c| c.column_path().parts()[0] == root).map(|c| c.compressed_size()).sum::<i64>()
    };
    let recoded = fast.recoded(Codec::Lz4hc(12)).await;
    let (f, h, r) = (fast.reader().await, high.reader().await, recoded.reader().await);
    for root in ["maybe", "list", "host"] {
        assert!(size(&h, root) <= size(&f, root), "{root}");
        assert_eq!(size(&h, root), size(&r, root), "{root}");
    }
    assert!(size(&h, "list") < size(&f, "list"));
}

#[tokio::test]
async fn a_damaged_page_is_named_and_nothing_is_written() {
    let file = File::in_codec(Codec::Lz4).await;
    let mut bytes = file.store.get(&file.key).await.unwrap().bytes().await.unwrap().to_vec();
    let reader = file.reader().await;
    let (start, length) = reader.metadata().row_group(0).column(0).byte_range();
    bytes[start as usize..(start + length) as usize].fill(0xA5);
    file.store.put(&file.key, bytes.into()).await.unwrap();
    let reader = file.reader().await;
    let options = WriteOptions::like(&reader, Codec::Zstd(1), HashMap::<ColumnId, ColumnCodec>::new());
    let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let to = Path::from("new.parquet");
    let got = write_part(&store, &to, options, move |e| e.recode_row_group(&reader, 0, 1)).await;
    let error = got.map(|_| ()).expect_err("damage must be noticed");
    assert_eq!(error.kind(), crate::ErrorKind::Corrupt, "{error}");
    assert!(error.to_string().contains(file.key.as_ref()), "{error}");
    assert!(store.head(&to).await.is_err());
}

#[tokio::test]
async fn row_groups_side_by_side_are_the_file_that_one_after_the_other_are() {
    let def = def();
    let options = WriteOptions { row_group_rows: 5_000, threads: 2, ..WriteOptions::of(&def, Codec::Lz4) };
    let file = File::write(options, move |e| e.push(&rows(&def))).await;
    let reader = file.reader().await;
    let groups = reader.row_groups();
    assert!(groups > 8, "{groups}");
    let one_by_one = file.recoded(Codec::Zstd(3)).await;
    let written = (file.encoded.bytes, file.encoded.checksum);
    for threads in [1, 2, 7] {
        let options = WriteOptions { threads, ..WriteOptions::like(&reader, Codec::Zstd(3), own_codecs()) };
        let reader = reader.clone();
        let together = File::write(options, move |e| {
            let mut taken = Vec::new();
            e.recode_part(&reader, written, &mut |rows| taken.push(rows))?;
            assert_eq!(taken.iter().sum::<u64>(), ROWS as u64);
            assert_eq!(taken.len(), groups);
            Ok(())
        });
        let together = together.await;
        assert_eq!(together.encoded.checksum, one_by_one.encoded.checksum, "{threads}");
        assert_eq!(together.encoded.stats, one_by_one.encoded.stats);
    }
}

#[tokio::test]
async fn a_damaged_row_group_stops_those_that_are_ahead_of_it() {
    let def = def();
    let options = WriteOptions { row_group_rows: 5_000, threads: 2, ..WriteOptions::of(&def, Codec::Lz4) };
    let file = File::write(options, move |e| e.push(&rows(&def))).await;
    let mut bytes = file.store.get(&file.key).await.unwrap().bytes().await.unwrap().to_vec();
    let (start, length) = file.reader().await.metadata().row_group(3).column(1).byte_range();
    bytes[start as usize..(start + length) as usize].fill(0xA5);
    file.store.put(&file.key, bytes.into()).await.unwrap();
    let reader = file.reader().await;
    let options = WriteOptions { threads: 2, ..WriteOptions::like(&reader, Codec::Zstd(1), own_codecs()) };
    let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let to = Path::from("new.parquet");
    let written = (file.encoded.bytes, file.encoded.checksum);
    let got = write_part(&store, &to, options, move |e| e.recode_part(&reader, written, &mut |_| {})).await;
    let error = got.map(|_| ()).expect_err("damage must be noticed");
    assert_eq!(error.kind(), crate::ErrorKind::Corrupt, "{error}");
    assert!(store.head(&to).await.is_err());
}

#[tokio::test]
async fn a_changed_byte_is_noticed_wherever_it_is() {
    let def = def();
    let options = WriteOptions { row_group_rows: 20_000, threads: 2, ..WriteOptions::of(&def, Codec::None) };
    let file = File::write(options, move |e| e.push(&rows(&def))).await;
    let written = (file.encoded.bytes, file.encoded.checksum);
    let bytes = file.store.get(&file.key).await.unwrap().bytes().await.unwrap();
    let (end, reader) = (bytes.len(), file.reader().await);
    let chunk = |group, leaf| reader.metadata().row_group(group).column(leaf).byte_range();
    // In values, in a column that keeps its codec and is copied, between chunks, in the footer, before everything.
    let copied = chunk(1, 6);
    let mut places = vec![3, chunk(0, 2).0 as usize + 5000, (copied.0 + copied.1 / 2) as usize, end - 2, end - 300];
    places.extend((0..40).map(|i| i * end / 40));
    let mut recoded = 0;
    for at in places {
        let mut damaged = bytes.to_vec();
        damaged[at] ^= 0x10;
        file.store.put(&file.key, damaged.into()).await.unwrap();
        let Ok(reader) = PartReader::open(&file.store, &file.key).await else { continue };
        let options = WriteOptions { threads: 2, ..WriteOptions::like(&reader, Codec::Zstd(1), own_codecs()) };
        let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
        let to = Path::from("new.parquet");
        let got = write_part(&store, &to, options, move |e| e.recode_part(&reader, written, &mut |_| {})).await;
        let error = got.map(|_| ()).expect_err("a changed byte must be noticed");
        assert_eq!(error.kind(), crate::ErrorKind::Corrupt, "byte {at}: {error}");
        assert!(error.to_string().contains(file.key.as_ref()), "byte {at}: {error}");
        assert!(store.head(&to).await.is_err(), "byte {at}");
        recoded += 1;
    }
    assert!(recoded > 20, "{recoded}");
}
