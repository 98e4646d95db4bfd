use super::*;
use arrow::{
    array::*,
    datatypes::{Float64Type, Int8Type, Int16Type, Int32Type, Int64Type},
};
use proptest::prelude::*;

fn column(ty: ColumnType, nullable: bool) -> ColumnDef {
    ColumnDef { nullable, ..ColumnDef::plain(1, "c", ty) }
}

fn to(ty: ColumnType, array: impl Array + 'static) -> Result<ArrayRef, Refused> {
    coerce(&(Arc::new(array) as ArrayRef), &column(ty, true))
}

fn refused(ty: ColumnType, array: impl Array + 'static) -> Refused {
    to(ty, array).unwrap_err()
}

#[test]
fn numbers_that_do_not_fit_are_refused_with_their_row() {
    assert_eq!(to(ColumnType::Int16, Int64Array::from(vec![-5, 7])).unwrap().as_primitive::<Int16Type>().values(), &[-5, 7]);
    let r = refused(ColumnType::Int8, Int64Array::from(vec![1, 300]));
    assert_eq!((r.row, r.sqlstate, r.message.as_str()), (1, "22003", "column 'c': 300 is out of range of int8"));
    assert_eq!(refused(ColumnType::UInt8, Int64Array::from(vec![-1])).row, 0);
    assert_eq!(refused(ColumnType::Int64, UInt64Array::from(vec![u64::MAX])).sqlstate, "22003");
    // Fractions round as PostgreSQL rounds them.
    assert_eq!(to(ColumnType::Int32, Float64Array::from(vec![2.5, 3.5, -0.4])).unwrap().as_primitive::<Int32Type>().values(), &[2, 4, 0]);
    assert_eq!(refused(ColumnType::Int32, Float64Array::from(vec![1e30])).sqlstate, "22003");
    assert_eq!(to(ColumnType::Float64, Int32Array::from(vec![3])).unwrap().as_primitive::<Float64Type>().value(0), 3.0);
    let wide = Decimal128Array::from(vec![12345]).with_precision_and_scale(10, 2).unwrap();
    assert_eq!(refused(ColumnType::Decimal(3, 1), wide).sqlstate, "22003");
}

#[test]
fn decimals_round_without_losing_digits() {
    let values = [900_719_925_474_099_300i128, 250, 350, -250, 1];
    let array = Decimal128Array::from(values.to_vec()).with_precision_and_scale(30, 2).unwrap();
    let out = to(ColumnType::Int64, array).unwrap();
    assert_eq!(out.as_primitive::<Int64Type>().values(), &[9_007_199_254_740_993, 3, 4, -3, 0]);
}

#[test]
fn null_into_not_null_names_the_column() {
    let array: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), None]));
    let r = coerce(&array, &column(ColumnType::Int64, false)).unwrap_err();
    assert_eq!((r.row, r.sqlstate), (1, "23502"));
    assert!(r.message.contains("'c' is NOT NULL"));
    assert!(coerce(&array, &column(ColumnType::Int64, true)).is_ok());
}

#[test]
fn times_are_cut_to_the_declared_precision() {
    // proves F3
    let at = TimestampMicrosecondArray::from(vec![1_500_999, -1]);
    let values = |a: ArrayRef| a.as_primitive::<TimestampMicrosecondType>().values().to_vec();
    assert_eq!(values(to(ColumnType::DateTime(None), at.clone()).unwrap()), [1_000_000, -1_000_000]);
    assert_eq!(values(to(ColumnType::DateTime64(3, None), at.clone()).unwrap()), [1_500_000, -1_000]);
    assert_eq!(values(to(ColumnType::DateTime64(6, None), at).unwrap()), [1_500_999, -1]);
    let nanos = to(ColumnType::DateTime64(8, None), StringArray::from(vec!["1970-01-01 00:00:00.123456789"])).unwrap();
    assert_eq!(nanos.as_primitive::<TimestampNanosecondType>().value(0), 123_456_780);
    let before_1970 = to(ColumnType::DateTime64(6, None), TimestampNanosecondArray::from(vec![-1])).unwrap();
    assert_eq!(before_1970.as_primitive::<TimestampMicrosecondType>().value(0), -1);
    let r = refused(ColumnType::DateTime(None), Int64Array::from(vec![1_700_000_000]));
    assert!(r.message.contains("to_datetime(seconds)"));
}

#[test]
fn texts_are_read_as_postgresql_writes_them() {
    let micros = |t: &str| super::super::text::micros(t);
    assert_eq!(micros("2013-01-01 06:00:00"), Some(1_357_020_000_000_000));
    assert_eq!(micros("2013-01-01T06:00:00.5Z"), Some(1_357_020_000_500_000));
    assert_eq!(micros("2013-01-01 06:00:00+02"), Some(1_357_012_800_000_000));
    assert_eq!(micros("2013-01-01 06:00:00.123456-05:30"), Some(1_357_039_800_123_456));
    assert_eq!(micros("2013-01-01"), Some(1_356_998_400_000_000));
    assert_eq!((micros("2013-02-30 00:00:00"), micros("yesterday"), micros("")), (None, None, None));
    let s = |v: &[&str]| StringArray::from(v.to_vec());
    assert!(to(ColumnType::Bool, s(&["t", "FALSE", "on", "0"])).unwrap().as_boolean().iter().eq([
        Some(true),
        Some(false),
        Some(true),
        Some(false)
    ]));
    assert_eq!(to(ColumnType::Int8, s(&[" 12 "])).unwrap().as_primitive::<Int8Type>().value(0), 12);
    assert!(to(ColumnType::Float64, s(&["NaN", "-Infinity", "1e3"])).unwrap().as_primitive::<Float64Type>().value(0).is_nan());
    assert_eq!(to(ColumnType::Bytes, s(&["\\x00ff"])).unwrap().as_binary_view().value(0), [0, 255]);
    assert_eq!(refused(ColumnType::Int8, s(&["1", "200"])).sqlstate, "22003");
    assert_eq!((refused(ColumnType::Int8, s(&["1", "x"])).row, refused(ColumnType::Int8, s(&["1", "x"])).sqlstate), (1, "22P02"));
    assert_eq!(refused(ColumnType::Decimal(4, 2), s(&["123.45"])).sqlstate, "22003");
}

#[test]
fn texts_with_rules_are_checked_and_made_canonical() {
    let s = |v: &str| StringArray::from(vec![v]);
    let text = |ty: ColumnType, v: &str| to(ty, s(v)).map(|a| a.as_string_view().value(0).to_owned());
    assert_eq!(text(ColumnType::Uuid, "6F1C1E7E-0000-4000-8000-0000000000FF").unwrap(), "6f1c1e7e-0000-4000-8000-0000000000ff");
    assert_eq!(text(ColumnType::Ipv6, "0:0:0:0:0:0:0:1").unwrap(), "::1");
    assert!(text(ColumnType::Ipv4, "10.0.0.256").is_err());
    assert!(text(ColumnType::Json, "{\"a\": [1, 2]}").is_ok() && text(ColumnType::Json, "{a}").is_err());
    assert_eq!(text(ColumnType::FixedString(3), "abcd").unwrap_err().sqlstate, "22001");
    let labels = ColumnType::Enum { bits: 8, labels: vec![("on".into(), 1), ("off".into(), 2)] };
    assert_eq!(text(labels.clone(), "off").unwrap(), "off");
    assert!(text(labels.clone(), "of").unwrap_err().message.contains("'on', 'off'"));
    assert_eq!(to(labels.clone(), Int32Array::from(vec![2])).unwrap().as_string_view().value(0), "off");
    assert!(to(labels, Int32Array::from(vec![3])).is_err());
    assert_eq!(to(ColumnType::String, Int32Array::from(vec![3])).unwrap().as_string_view().value(0), "3");
}

#[test]
fn nested_values_come_from_arrays_braces_and_json() {
    let ints = ColumnType::Array(Box::new(ColumnType::Int64), true);
    let read = to(ints.clone(), StringArray::from(vec![Some("{1,NULL,3}"), Some("[4]"), None, Some("{}")])).unwrap();
    let lists = read.as_list::<i32>();
    assert_eq!(lists.value(0).as_primitive::<Int64Type>().iter().collect::<Vec<_>>(), [Some(1), None, Some(3)]);
    assert_eq!((lists.value_length(1), lists.is_null(2), lists.value_length(3)), (1, true, 0));
    assert_eq!(read.data_type(), &ints.arrow());
    let words = to(ColumnType::Array(Box::new(ColumnType::String), false), StringArray::from(vec![r#"{a,"b,c","q\"x"}"#])).unwrap();
    assert_eq!(words.as_list::<i32>().value(0).as_string_view().iter().flatten().collect::<Vec<_>>(), ["a", "b,c", "q\"x"]);
    assert!(to(ColumnType::Array(Box::new(ColumnType::Int64), false), StringArray::from(vec!["{1,NULL}"])).is_err());
    for bad in ["{1,", "1,2", "{,}", "{\"a", "{{1}"] {
        assert!(to(ints.clone(), StringArray::from(vec![bad])).is_err(), "{bad}");
    }
    let maps = ColumnType::Map(Box::new(ColumnType::String), Box::new(ColumnType::Int32), true);
    let read = to(maps.clone(), StringArray::from(vec![r#"{"a": 1, "b": null}"#])).unwrap();
    assert_eq!((read.as_map().value_length(0), read.data_type()), (2, &maps.arrow()));
    let mut narrow = ListBuilder::new(Int32Builder::new());
    narrow.values().append_value(9);
    narrow.append(true);
    assert_eq!(to(ints.clone(), narrow.finish()).unwrap().data_type(), &ints.arrow());
}

#[test]
fn only_elements_of_lists_that_are_there_count() {
    let ty = || ColumnType::Array(Box::new(ColumnType::Int8), false);
    let field = || Arc::new(arrow::datatypes::Field::new("item", DataType::Int64, true));
    // Row 1 is NULL over elements that would not fit.
    let elements = Int64Array::from(vec![Some(1), None, Some(1000), Some(2), Some(3)]);
    let offsets = arrow::buffer::OffsetBuffer::new(vec![0, 1, 3, 5].into());
    let nulls = arrow::buffer::NullBuffer::from(vec![true, false, true]);
    let lists = ListArray::new(field(), offsets.clone(), Arc::new(elements.clone()), Some(nulls.clone()));
    let out = to(ty(), lists).unwrap();
    let out = out.as_list::<i32>();
    assert_eq!(out.value(0).as_primitive::<Int8Type>().values(), &[1]);
    assert!(out.is_null(1));
    assert_eq!(out.value(2).as_primitive::<Int8Type>().values(), &[2, 3]);
    // Nor do those outside of a slice.
    let lists = ListArray::new(field(), offsets.clone(), Arc::new(elements.clone()), None);
    for (from, len, sum) in [(0, 1, 1), (2, 1, 5)] {
        let out = to(ty(), lists.slice(from, len)).unwrap();
        let values = out.as_list::<i32>().value(0);
        assert_eq!(values.as_primitive::<Int8Type>().values().iter().map(|v| i64::from(*v)).sum::<i64>(), sum);
    }
    // What is there is refused, with the row of its list.
    let r = refused(ty(), lists.slice(1, 2));
    assert_eq!((r.row, r.sqlstate), (0, "23502"));
    let wide = ListArray::new(field(), vec_offsets(&[0, 1, 2]), Arc::new(Int64Array::from(vec![1, 1000])), None);
    assert_eq!((refused(ty(), wide.clone()).row, refused(ty(), wide).sqlstate), (1, "22003"));
    let fixed = FixedSizeListArray::new(field(), 2, Arc::new(Int64Array::from(vec![1, 2, 1000, 1000])), Some(vec![true, false].into()));
    assert_eq!(to(ty(), fixed).unwrap().null_count(), 1);

    let map_ty = ColumnType::Map(Box::new(ColumnType::String), Box::new(ColumnType::Int8), false);
    let keys: ArrayRef = Arc::new(StringArray::from(vec!["a", "b", "c", "d", "e"]));
    let fields = vec![
        Arc::new(arrow::datatypes::Field::new("keys", DataType::Utf8, false)),
        Arc::new(arrow::datatypes::Field::new("values", DataType::Int64, true)),
    ];
    let entries = StructArray::new(fields.into(), vec![keys, Arc::new(elements)], None);
    let entry = Arc::new(arrow::datatypes::Field::new("entries", entries.data_type().clone(), false));
    let maps = MapArray::new(entry, offsets, entries, Some(nulls), false);
    let out = to(map_ty.clone(), maps.clone()).unwrap();
    assert_eq!(out.as_map().value_length(2), 2);
    assert_eq!(to(map_ty, maps.slice(2, 1)).unwrap().as_map().values().as_primitive::<Int8Type>().values(), &[2, 3]);
}

fn vec_offsets(ends: &[i32]) -> arrow::buffer::OffsetBuffer<i32> {
    arrow::buffer::OffsetBuffer::new(ends.to_vec().into())
}

#[test]
fn exact_types_and_dictionaries_pass_untouched() {
    let words: DictionaryArray<Int32Type> = ["x", "y"].into_iter().collect();
    assert!(matches!(to(ColumnType::String, words).unwrap().data_type(), DataType::Dictionary(..)));
    let values: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 3]));
    let out = coerce(&values, &column(ColumnType::Int64, false)).unwrap();
    assert_eq!(out.as_primitive::<Int64Type>().values().as_ptr(), values.as_primitive::<Int64Type>().values().as_ptr());
}

proptest! {
    #[test]
    fn no_text_panics(texts in proptest::collection::vec(proptest::option::of(".{0,30}"), 1..5), pick in 0usize..14) {
        let ty = [
            ColumnType::Int8, ColumnType::UInt64, ColumnType::Float32, ColumnType::Decimal(38, 10), ColumnType::Bool, ColumnType::Bytes, ColumnType::Date,
            ColumnType::DateTime(None), ColumnType::DateTime64(9, None), ColumnType::Uuid, ColumnType::Json, ColumnType::Ipv6,
            ColumnType::Array(Box::new(ColumnType::String), true), ColumnType::Map(Box::new(ColumnType::String), Box::new(ColumnType::Int8), true),
        ][pick].clone();
        let array: StringArray = texts.iter().map(|t| t.as_deref()).collect();
        if let Ok(out) = to(ty.clone(), array) {
            prop_assert_eq!(out.data_type(), &ty.arrow());
        }
    }

    #[test]
    fn times_written_by_postgresql_read_back(micros in -62_000_000_000_000_000i64..250_000_000_000_000_000) {
        let mut out = bytes::BytesMut::new();
        let shown: ArrayRef = Arc::new(TimestampMicrosecondArray::from(vec![micros]));
        let field = arrow::datatypes::Field::new("c", shown.data_type().clone(), true);
        crate::wire::encode::write_text(&mut out, &crate::wire::encode::Column::new(&field, &shown).unwrap(), 0, &crate::wire::encode::Zone::Utc);
        prop_assert_eq!(super::super::text::micros(std::str::from_utf8(&out).unwrap()), Some(micros));
    }
}

#[test]
fn a_zero_byte_is_no_part_of_a_text() {
    let read = |t: &str| super::super::parse_text(std::iter::once(Some(t)), &ColumnType::String, "s");
    assert_eq!(read("a\0b").unwrap_err().sqlstate, "22021");
    assert!(read("ab").is_ok());
}
