use super::*;
use arrow::{
    array::*,
    datatypes::{DataType, Field, Schema, TimeUnit},
};
use pgwire::api::Type;
use postgres_types::FromSql;
use std::sync::Arc;

fn column(array: impl Array + 'static) -> Column {
    let array: ArrayRef = Arc::new(array);
    Column::new(&Field::new("c", array.data_type().clone(), true), &array).unwrap()
}

fn text(array: impl Array + 'static) -> Vec<String> {
    let rows = array.len();
    let column = column(array);
    (0..rows)
        .map(|row| {
            let mut out = BytesMut::new();
            write_text(&mut out, &column, row, &Zone::Utc);
            String::from_utf8(out.to_vec()).unwrap()
        })
        .collect()
}

fn binary(column: &Column, row: usize) -> Vec<u8> {
    let mut out = BytesMut::new();
    binary::write_binary(&mut out, column, row);
    out.to_vec()
}

#[test]
fn floats_read_as_postgresql_prints_them() {
    let values = vec![0.0, -0.0, 1.0, 0.1, -2.5, 1e15, 123456789012345.0, 1e-4, 1e-5, 1.5e300, f64::NAN, f64::INFINITY, f64::NEG_INFINITY];
    let expected =
        ["0", "-0", "1", "0.1", "-2.5", "1e+15", "123456789012345", "0.0001", "1e-05", "1.5e+300", "NaN", "Infinity", "-Infinity"];
    assert_eq!(text(Float64Array::from(values)), expected);
    assert_eq!(text(Float32Array::from(vec![0.1f32, 123456.0, 1e6, 1234567.0])), ["0.1", "123456", "1e+06", "1.234567e+06"]);
}

#[test]
fn decimals_keep_their_scale_in_both_formats() {
    let array = Decimal128Array::from(vec![0, 5, -5, 123456, -10_000_000, 1_000_000]).with_precision_and_scale(20, 2).unwrap();
    assert_eq!(text(array.clone()), ["0.00", "0.05", "-0.05", "1234.56", "-100000.00", "10000.00"]);
    let column = column(array);
    assert_eq!(binary(&column, 0), [0, 0, 0, 0, 0, 0, 0, 2]);
    // 0.05: one group 500 of weight -1.
    assert_eq!(binary(&column, 1), [0, 1, 255, 255, 0, 0, 0, 2, 1, 244]);
    // 1234.56: groups 1234, 5600.
    assert_eq!(binary(&column, 3), [0, 2, 0, 0, 0, 0, 0, 2, 4, 210, 21, 224]);
    // -100000.00: one group 10 of weight 1, negative.
    assert_eq!(binary(&column, 4), [0, 1, 0, 1, 64, 0, 0, 2, 0, 10]);
}

#[test]
fn unsigned_values_use_the_next_larger_type() {
    assert_eq!(text(UInt64Array::from(vec![u64::MAX])), ["18446744073709551615"]);
    assert_eq!(binary(&column(UInt32Array::from(vec![u32::MAX])), 0), i64::from(u32::MAX).to_be_bytes());
    assert_eq!(binary(&column(UInt8Array::from(vec![255])), 0), 255i16.to_be_bytes());
}

#[test]
fn times_are_written_in_the_session_zone() {
    let at = TimestampMicrosecondArray::from(vec![1_357_020_000_000_000, -1, 1_500_000]);
    assert_eq!(text(at.clone()), ["2013-01-01 06:00:00", "1969-12-31 23:59:59.999999", "1970-01-01 00:00:01.5"]);
    let moments = column(at.with_timezone("UTC"));
    let mut out = BytesMut::new();
    write_text(&mut out, &moments, 0, &Zone::named("America/New_York").unwrap());
    assert_eq!(out, "2013-01-01 01:00:00-05");
    out.clear();
    write_text(&mut out, &moments, 0, &Zone::named("Asia/Kolkata").unwrap());
    assert_eq!(out, "2013-01-01 11:30:00+05:30");
    let shown = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_357_020_000);
    assert_eq!(std::time::SystemTime::from_sql(&Type::TIMESTAMPTZ, &binary(&moments, 0)).unwrap(), shown);
}

#[test]
fn nanoseconds_and_dates_outside_the_ordinary_range() {
    assert_eq!(text(TimestampNanosecondArray::from(vec![1_000_000_001])), ["1970-01-01 00:00:01.000000001"]);
    assert_eq!(text(Date32Array::from(vec![0, 15_706, -719_163, 2_932_897])), ["1970-01-01", "2013-01-01", "0001-12-31 BC", "10000-01-01"]);
    assert_eq!(binary(&column(Date32Array::from(vec![10_957])), 0), [0, 0, 0, 0]);
}

#[test]
fn intervals_in_postgres_style() {
    use arrow::datatypes::IntervalMonthDayNano as I;
    let values = [I::new(14, 3, 3_661_500_000_000), I::new(0, 0, 0), I::new(0, -1, 0), I::new(0, 0, -1_000_000_000)];
    let array = IntervalMonthDayNanoArray::from(values.to_vec());
    assert_eq!(text(array), ["1 year 2 mons 3 days 01:01:01.5", "00:00:00", "-1 days", "-00:00:01"]);
}

#[test]
fn arrays_quote_what_would_be_misread() {
    let mut builder = ListBuilder::new(StringBuilder::new());
    for word in ["a", "b c", "", "null", "q\"\\", "{}"] {
        builder.values().append_value(word);
    }
    builder.values().append_null();
    builder.append(true);
    builder.append(true);
    assert_eq!(text(builder.finish()), [r#"{a,"b c","","null","q\"\\","{}",NULL}"#, "{}"]);

    let numbers = ListArray::from_iter_primitive::<arrow::datatypes::Int64Type, _, _>([Some([Some(1), None, Some(3)])]);
    let bytes = binary(&column(numbers), 0);
    assert_eq!(Vec::<Option<i64>>::from_sql(&Type::INT8_ARRAY, &bytes).unwrap(), [Some(1), None, Some(3)]);
}

#[test]
fn declared_text_types_have_their_own_binary_form() {
    let typed = |name: &str, value: &str| {
        let metadata = [(ebb_storage::stream_def::TYPE_META_KEY.to_owned(), name.to_owned())];
        let field = Field::new("c", DataType::Utf8View, false).with_metadata(metadata.into());
        let array: ArrayRef = Arc::new(StringViewArray::from(vec![value]));
        Column::new(&field, &array).unwrap()
    };
    let id = typed("uuid", "6f1c1e7e-0000-4000-8000-0000000000ff");
    assert_eq!(id.pg, Type::UUID);
    assert_eq!(binary(&id, 0)[..2], [0x6f, 0x1c]);
    assert_eq!(binary(&typed("ipv4", "10.1.2.3"), 0), [2, 32, 0, 4, 10, 1, 2, 3]);
    assert_eq!(binary(&typed("ipv6", "::1"), 0).len(), 20);
    assert_eq!(typed("json", "{}").pg, Type::JSON);
    assert_eq!(binary(&typed("low_cardinality(string)", "x"), 0), b"x");
}

#[test]
fn maps_are_json_and_bytes_are_hexadecimal() {
    let mut builder = MapBuilder::new(None, StringBuilder::new(), Int32Builder::new());
    builder.keys().append_value("a");
    builder.values().append_value(1);
    builder.keys().append_value("b");
    builder.values().append_null();
    builder.append(true).unwrap();
    assert_eq!(text(builder.finish()), [r#"{"a":1,"b":null}"#]);
    assert_eq!(text(BinaryArray::from(vec![&b"\x00\xff"[..]])), ["\\x00ff"]);
}

#[test]
fn lists_of_lists_are_json_in_both_formats() {
    let mut lists = ListBuilder::new(ListBuilder::new(StringBuilder::new()));
    lists.values().append_value([Some("a"), None, Some("b\"")]);
    lists.values().append_value(Vec::<Option<&str>>::new());
    lists.append(true);
    let nested = column(lists.finish());
    assert_eq!(nested.pg, Type::JSON);
    assert_eq!(binary(&nested, 0), br#"[["a",null,"b\""],[]]"#);
    let mut decimals = ListBuilder::new(ListBuilder::new(Decimal128Builder::new().with_precision_and_scale(38, 20).unwrap()));
    decimals.values().append_value([Some(112345678901234567890_i128)]);
    decimals.append(true);
    assert_eq!(text(decimals.finish()), ["[[1.12345678901234567890]]"]);
}

#[test]
fn a_row_holds_lengths_and_minus_one_for_null() {
    let schema = Schema::new(vec![Field::new("a", DataType::Int32, true), Field::new("b", DataType::Utf8, true)]);
    let columns: Vec<ArrayRef> = vec![Arc::new(Int32Array::from(vec![Some(7), None])), Arc::new(StringArray::from(vec![None, Some("xy")]))];
    let batch = RecordBatch::try_new(Arc::new(schema), columns).unwrap();
    let rows = RowEncoder::new(vec![FieldFormat::Binary, FieldFormat::Text], Zone::Utc).rows(&batch).unwrap();
    assert_eq!(rows[0].data[..], [0, 0, 0, 4, 0, 0, 0, 7, 255, 255, 255, 255]);
    assert_eq!(rows[1].data[..], [255, 255, 255, 255, 0, 0, 0, 2, b'x', b'y']);
    assert_eq!(rows[0].field_count, 2);
}

#[test]
fn dictionaries_and_other_units_are_written_as_their_values() {
    let words: DictionaryArray<arrow::datatypes::Int32Type> = ["x", "y", "x"].into_iter().collect();
    assert_eq!(text(words), ["x", "y", "x"]);
    assert_eq!(text(TimestampSecondArray::from(vec![60])), ["1970-01-01 00:01:00"]);
    assert_eq!(text(Time64NanosecondArray::from(vec![1_500_000_000])), ["00:00:01.5"]);
    assert_eq!(
        Field::new("t", DataType::Timestamp(TimeUnit::Second, None), true).data_type(),
        &DataType::Timestamp(TimeUnit::Second, None)
    );
}
