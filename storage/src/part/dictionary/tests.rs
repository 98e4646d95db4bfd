use super::{
    Kind, delta, hybrid,
    intern::{Numbers, Texts},
    write,
};
use crate::{codec::Codec, part::compress::Compressor};
use arrow::{
    array::*,
    compute::{cast, concat},
    datatypes::{DataType, Field, Int32Type, Schema},
};
use bytes::Bytes;
use parquet::{
    arrow::{
        ArrowSchemaConverter,
        arrow_reader::ParquetRecordBatchReaderBuilder,
        arrow_writer::{ArrowRowGroupWriterFactory, compute_leaves},
    },
    file::{
        metadata::{ColumnChunkMetaData, PageIndexPolicy, ParquetMetaData, ParquetMetaDataReader},
        properties::{EnabledStatistics, WriterProperties},
        writer::SerializedFileWriter,
    },
};
use proptest::prelude::*;
use std::sync::Arc;

const PAGE_ROWS: usize = 20;

#[test]
fn a_value_gets_one_number_however_many_there_are() {
    let mut numbers = Numbers::new();
    for round in 0..2 {
        for i in 0..10_000u64 {
            assert_eq!(numbers.number(i * 7), i as u32, "round {round}");
        }
    }
    let mut texts = Texts::new();
    for round in 0..2 {
        for i in 0..10_000 {
            assert_eq!(texts.number(format!("t{i}").as_bytes()), i, "round {round}");
        }
    }
    assert_eq!((texts.get(0), texts.get(9999)), (b"t0".as_slice(), b"t9999".as_slice()));
}

proptest! {
    #[test]
    fn what_was_coded_is_read_back(runs in proptest::collection::vec((0u32..1000, 1usize..40), 0..60), wide in any::<bool>(), step in 1usize..50) {
        let values: Vec<u32> = runs.iter().flat_map(|(v, n)| std::iter::repeat_n(if wide { v * 4_000_000 } else { *v }, *n)).collect();
        let width = hybrid::width_of(values.iter().copied().max().unwrap_or(0));
        let mut coded = Vec::new();
        hybrid::encode(&values, width, &mut coded);
        let mut decoder = hybrid::Decoder::new(Bytes::from(coded.clone()), width).unwrap();
        let mut out = Vec::new();
        for part in values.chunks(step) {
            prop_assert!(decoder.read(part.len(), &mut out).is_some());
        }
        prop_assert_eq!(&out, &values);
        // Any cut-off or changed bytes end or differ, and never panic.
        for cut in 0..coded.len().min(40) {
            let mut decoder = hybrid::Decoder::new(Bytes::copy_from_slice(&coded[..cut]), width).unwrap();
            decoder.read(values.len(), &mut Vec::new());
        }
    }

    #[test]
    fn bytes_that_are_no_code_are_refused_and_do_not_panic(bytes in proptest::collection::vec(any::<u8>(), 0..60), width in 0u8..40, n in 0usize..5000) {
        if let Some(mut decoder) = hybrid::Decoder::new(bytes.into(), width) {
            let mut out = Vec::new();
            decoder.read(n, &mut out);
            prop_assert!(out.len() <= n);
        }
    }

    #[test]
    fn a_chunk_is_what_the_library_writes_of_whole_numbers(values in proptest::collection::vec(proptest::option::of(-50i64..50), 1..200), nulls in any::<bool>()) {
        let values: Vec<Option<i64>> = if nulls { values } else { values.into_iter().map(|v| Some(v.unwrap_or(7))).collect() };
        let plain: ArrayRef = Arc::new(Int64Array::from(values));
        for t in [DataType::Int64, DataType::Int8, DataType::Int32, DataType::Date32, DataType::Timestamp(arrow::datatypes::TimeUnit::Microsecond, None)] {
            let array = match t {
                DataType::Date32 => cast(&cast(&plain, &DataType::Int32).unwrap(), &t).unwrap(),
                _ => cast(&plain, &t).unwrap(),
            };
            agree(&[array], nulls);
        }
        let unsigned: ArrayRef = Arc::new(UInt64Array::from_iter(plain.as_primitive::<arrow::datatypes::Int64Type>().iter().map(|v| v.map(|v| v as u64))));
        agree(&[unsigned], nulls);
        let unsigned: ArrayRef = Arc::new(UInt32Array::from_iter(plain.as_primitive::<arrow::datatypes::Int64Type>().iter().map(|v| v.map(|v| v as u32))));
        agree(&[unsigned], nulls);
    }

    #[test]
    fn a_chunk_is_what_the_library_writes_of_differences_of_any_width(values in proptest::collection::vec((any::<i64>(), 0u32..64), 1..700), shift in 0u32..64) {
        let wide: Vec<i64> = values.iter().map(|(v, s)| v >> (*s).max(shift)).collect();
        agree_as(&[Arc::new(Int64Array::from(wide.clone()))], false, true);
        agree_as(&[Arc::new(Int32Array::from_iter_values(wide.iter().map(|v| *v as i32)))], true, true);
        agree_as(&[Arc::new(UInt64Array::from_iter_values(wide.iter().map(|v| *v as u64)))], false, true);
        agree_as(&[Arc::new(UInt32Array::from_iter_values(wide.iter().map(|v| *v as u32)))], false, true);
        agree_as(&[Arc::new(Int64Array::from_iter(wide.iter().map(|v| (v % 3 != 0).then_some(*v))))], true, true);
    }

    #[test]
    fn a_chunk_is_what_the_library_writes_of_floats(picks in proptest::collection::vec(proptest::option::of(0usize..9), 1..200), nulls in any::<bool>()) {
        let of = [0.0, -0.0, 1.5, -1.5, f64::INFINITY, f64::NEG_INFINITY, 1e300, 1e-300, 7.25];
        let values: Vec<Option<f64>> = picks.into_iter().map(|p| if nulls { p.map(|p| of[p]) } else { Some(of[p.unwrap_or(2)]) }).collect();
        agree(&[Arc::new(Float64Array::from(values.clone()))], nulls);
        agree(&[Arc::new(Float32Array::from_iter(values.iter().map(|v| v.map(|v| v as f32))))], nulls);
    }

    #[test]
    fn a_chunk_is_what_the_library_writes_of_texts(words in proptest::collection::vec(proptest::option::of("[a-c]{0,3}|[äöü]{1,2}|a long text of more than twelve bytes [ab]"), 1..200), nulls in any::<bool>()) {
        let words: Vec<Option<String>> = if nulls { words } else { words.into_iter().map(|w| Some(w.unwrap_or_default())).collect() };
        let views: ArrayRef = Arc::new(StringViewArray::from_iter(words.clone()));
        agree(std::slice::from_ref(&views), nulls);
        agree(&[Arc::new(StringArray::from_iter(words.clone()))], nulls);
        // Slices of two dictionaries and of plain values, one after another.
        let t = |values| DataType::Dictionary(Box::new(DataType::Int32), Box::new(values));
        let one = cast(&views, &t(DataType::Utf8View)).unwrap();
        let two = cast(&views, &t(DataType::Utf8)).unwrap();
        let half = views.len() / 2;
        agree(&[one.slice(0, half), one.slice(half, views.len() - half), two, views.slice(half, views.len() - half)], nulls);
    }
}

/// Writes the arrays here and with the library, with a dictionary and, whole numbers, as differences.
fn agree(arrays: &[ArrayRef], nullable: bool) {
    agree_as(arrays, nullable, false);
    if !matches!(Kind::of(arrays[0].data_type()), Some(Kind::Float32 | Kind::Float64 | Kind::Text)) {
        let mine = agree_as(arrays, nullable, true);
        // Values that were numbered.
        let coded = |a: &ArrayRef| cast(a, &DataType::Dictionary(Box::new(DataType::Int32), Box::new(a.data_type().clone()))).unwrap();
        assert_eq!(agree_as(&arrays.iter().map(coded).collect::<Vec<_>>(), nullable, true), mine);
    }
}

/// The same rows, and the same metadata but for sizes. The file.
fn agree_as(arrays: &[ArrayRef], nullable: bool, delta: bool) -> Bytes {
    let t = match arrays[0].data_type() {
        DataType::Dictionary(_, values) => values.as_ref().clone(),
        t => t.clone(),
    };
    let plain: Vec<ArrayRef> = arrays.iter().map(|a| cast(a, &t).unwrap()).collect();
    let whole = concat(&plain.iter().map(|a| a.as_ref()).collect::<Vec<_>>()).unwrap();
    let (ours, mine) = file(&t, nullable, Some(arrays), &whole, delta);
    let (theirs, library) = file(&t, nullable, None, &whole, delta);
    assert_eq!(&cast(&rows(&ours), &t).unwrap(), &whole);
    assert_eq!(&cast(&rows(&theirs), &t).unwrap(), &whole);
    let (a, b) = (mine.row_group(0).column(0), library.row_group(0).column(0));
    assert_eq!(a.statistics(), b.statistics(), "{t}");
    assert_eq!(a.num_values(), b.num_values());
    assert_eq!(index_of(&mine), index_of(&library));
    let places =
        |m: &ParquetMetaData| m.offset_index().unwrap()[0][0].page_locations().iter().map(|l| l.first_row_index).collect::<Vec<_>>();
    assert_eq!(places(&mine), places(&library));
    assert_eq!(encodings(a), encodings(b));
    if delta {
        let pages = |c: &ColumnChunkMetaData| (c.uncompressed_size(), c.page_encoding_stats().cloned());
        assert_eq!(pages(a), pages(b), "{t}");
    }
    ours
}

fn encodings(c: &ColumnChunkMetaData) -> Vec<parquet::basic::Encoding> {
    let mut all: Vec<_> = c.encodings().collect();
    all.sort();
    all
}

/// Page bounds, without what the histograms say, which are not written here.
fn index_of(m: &ParquetMetaData) -> String {
    let text = format!("{:?}", m.column_index().unwrap()[0][0]);
    text.split("repetition_level_histograms").next().unwrap_or_default().to_owned()
}

fn file(t: &DataType, nullable: bool, ours: Option<&[ArrayRef]>, whole: &ArrayRef, delta: bool) -> (Bytes, ParquetMetaData) {
    let field = Field::new("c", t.clone(), nullable);
    let schema = Arc::new(Schema::new(vec![field.clone()]));
    let properties = match delta {
        true => WriterProperties::builder().set_dictionary_enabled(false).set_encoding(parquet::basic::Encoding::DELTA_BINARY_PACKED),
        false => WriterProperties::builder(),
    };
    let properties = properties
        .set_compression(Codec::Lz4.parquet())
        .set_data_page_row_count_limit(PAGE_ROWS)
        .set_write_batch_size(PAGE_ROWS)
        .set_statistics_enabled(EnabledStatistics::Page)
        .set_statistics_truncate_length(Some(crate::part::stats::TEXT_BYTES_MAX))
        .build();
    let parquet_schema = ArrowSchemaConverter::new().convert(&schema).unwrap();
    let mut file = SerializedFileWriter::new(Vec::new(), parquet_schema.root_schema_ptr(), Arc::new(properties)).unwrap();
    let factory = ArrowRowGroupWriterFactory::new(&file, schema);
    match ours {
        Some(arrays) => {
            let options = write::Options {
                column: file.schema_descr().column(0),
                codec: Codec::Lz4,
                bloom: None,
                page_rows: PAGE_ROWS,
                dictionary_bytes: 1 << 20,
            };
            let mut compressor = Compressor::of(options.codec).unwrap();
            let chunk = match delta {
                true => delta::encode(&options, arrays, &mut compressor),
                false => write::encode(&options, arrays, &mut write::Codebook::default(), &mut compressor),
            };
            let chunk = chunk.unwrap().expect("a column that is handled here");
            let mut group = file.next_row_group().unwrap();
            group.append_column(&chunk.bytes, chunk.close).unwrap();
            group.close().unwrap();
        }
        None => {
            let mut writer = factory.create_column_writers(0).unwrap().remove(0);
            for leaf in compute_leaves(&field, whole).unwrap() {
                writer.write(&leaf).unwrap();
            }
            let mut group = file.next_row_group().unwrap();
            writer.close().unwrap().append_to_row_group(&mut group).unwrap();
            group.close().unwrap();
        }
    }
    let bytes = Bytes::from(file.into_inner().unwrap());
    let mut reader = ParquetMetaDataReader::new().with_page_index_policy(PageIndexPolicy::Optional);
    reader.try_parse(&bytes).unwrap();
    (bytes, reader.finish().unwrap())
}

fn rows(file: &Bytes) -> ArrayRef {
    let mut reader = ParquetRecordBatchReaderBuilder::try_new(file.clone()).unwrap().with_batch_size(1 << 20).build().unwrap();
    reader.next().unwrap().unwrap().column(0).clone()
}

#[test]
fn what_is_not_handled_here_is_left_to_the_library() {
    let schema = Arc::new(Schema::new(vec![Field::new("c", DataType::Utf8View, true)]));
    let parquet_schema = ArrowSchemaConverter::new().convert(&schema).unwrap();
    let options = |codec, dictionary_bytes| write::Options {
        column: parquet_schema.column(0),
        codec,
        bloom: Some(0.01),
        page_rows: PAGE_ROWS,
        dictionary_bytes,
    };
    let texts = |f: fn(i32) -> String| Arc::new(StringViewArray::from_iter_values((0..100).map(f))) as ArrayRef;
    let encode = |options: write::Options, arrays: &[ArrayRef]| {
        let mut compressor = Compressor::of(options.codec).unwrap();
        write::encode(&options, arrays, &mut write::Codebook::default(), &mut compressor).unwrap()
    };
    let short = texts(|i| i.to_string());
    let filtered = encode(options(Codec::Zstd(3), 1 << 20), std::slice::from_ref(&short));
    assert!(filtered.is_some_and(|c| c.close.bloom_filter.is_some()));
    // A dictionary that grew too large, texts too long for exact bounds, a type that is not flat.
    assert!(encode(options(Codec::Lz4, 100), std::slice::from_ref(&short)).is_none());
    assert!(encode(options(Codec::Lz4, 1 << 20), &[texts(|i| "x".repeat(i as usize))]).is_none());
    let list: ArrayRef = Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>([Some([Some(1)])]));
    assert!(encode(options(Codec::Lz4, 1 << 20), &[list]).is_none());
    assert_eq!(Kind::of(&DataType::Boolean), None);
}
