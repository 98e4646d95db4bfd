use super::*;
use crate::wire::encode::write_decimal_binary;
use arrow::datatypes::TimeUnit;
use bytes::BytesMut;
use proptest::prelude::*;

fn text(value: &str, pg: Type, target: &DataType) -> Result<ScalarValue, BadParameter> {
    decode(1, Some(value.as_bytes()), FieldFormat::Text, &pg, Some(target), "UTC")
}

#[test]
fn text_becomes_what_the_statement_needs() {
    assert_eq!(text("42", Type::UNKNOWN, &DataType::Int32), Ok(ScalarValue::Int32(Some(42))));
    assert_eq!(text("t", Type::BOOL, &DataType::Boolean), Ok(ScalarValue::Boolean(Some(true))));
    assert_eq!(text("\\x00ff", Type::BYTEA, &DataType::Binary), Ok(ScalarValue::Binary(Some(vec![0, 255]))));
    let stamp = DataType::Timestamp(TimeUnit::Microsecond, None);
    assert_eq!(
        text("2013-01-01 06:00:00", Type::TIMESTAMP, &stamp),
        Ok(ScalarValue::TimestampMicrosecond(Some(1_357_020_000_000_000), None))
    );
    assert_eq!(text("12.30", Type::NUMERIC, &DataType::Decimal128(9, 2)), Ok(ScalarValue::Decimal128(Some(1230), 9, 2)));
}

#[test]
fn what_does_not_fit_is_named() {
    let error = text("4x", Type::INT4, &DataType::Int32).unwrap_err();
    assert_eq!((error.sqlstate, error.message.as_str()), ("22P02", "parameter $1: '4x' is no integer"));
    assert!(text("300", Type::INT4, &DataType::Int8).unwrap_err().message.contains("$1"));
    assert!(decode(2, Some(&[1, 2]), FieldFormat::Binary, &Type::INT4, None, "UTC").unwrap_err().message.contains("2 bytes"));
    assert_eq!(decode(1, Some(&[0xff]), FieldFormat::Text, &Type::TEXT, None, "UTC").unwrap_err().sqlstate, "22021");
}

#[test]
fn arrays_in_binary_and_text() {
    let ints = DataType::List(std::sync::Arc::new(arrow::datatypes::Field::new_list_field(DataType::Int32, true)));
    let expected =
        ScalarValue::List(ScalarValue::new_list(&[ScalarValue::Int32(Some(7)), ScalarValue::Int32(None)], &DataType::Int32, true));
    let mut bytes = Vec::new();
    for word in [1, 1, 23, 2, 1, 4, 7, -1] {
        bytes.extend_from_slice(&i32::to_be_bytes(word));
    }
    let decoded = |bytes: &[u8]| decode(1, Some(bytes), FieldFormat::Binary, &Type::INT4_ARRAY, Some(&ints), "UTC");
    assert_eq!(decoded(&bytes), Ok(expected.clone()));
    assert_eq!(text("{7,NULL}", Type::INT4_ARRAY, &ints), Ok(expected.clone()));
    assert_eq!(text("{7,NULL}", Type::UNKNOWN, &ints), Ok(expected));
    assert_eq!(text("{x}", Type::INT4_ARRAY, &ints).unwrap_err().sqlstate, "22P02");
    for cut in 0..bytes.len() {
        assert!(decoded(&bytes[..cut]).is_err(), "{cut}");
    }
    let mut huge = bytes[..12].to_vec();
    huge.extend_from_slice(&i32::MAX.to_be_bytes());
    assert!(decoded(&huge).is_err());
    let address = decode(1, Some(&[2, 32, 0, 4, 10, 0, 0, 1]), FieldFormat::Binary, &Type::INET, None, "UTC");
    assert_eq!(address, Ok(ScalarValue::Utf8(Some("10.0.0.1".into()))));
}

#[test]
fn what_no_text_could_say_is_refused() {
    let refused = |bytes: &[u8], pg: Type| match decode(1, Some(bytes), FieldFormat::Binary, &pg, None, "UTC") {
        Err(bad) => bad.sqlstate,
        Ok(value) => panic!("{pg} {bytes:?}: {value}"),
    };
    for extreme in [i64::MAX, i64::MIN, i64::MAX - 1_000_000_000_000_000] {
        for pg in [Type::TIME, Type::TIMESTAMP, Type::TIMESTAMPTZ] {
            assert_eq!(refused(&extreme.to_be_bytes(), pg.clone()), "22008", "{pg} {extreme}");
        }
    }
    for micros in [-1, DAY_MICROS] {
        assert_eq!(refused(&micros.to_be_bytes(), Type::TIME), "22008");
    }
    for days in [i32::MAX, i32::MIN] {
        assert_eq!(refused(&days.to_be_bytes(), Type::DATE), "22008");
    }
    let numeric = |words: &[u16]| words.iter().flat_map(|w| w.to_be_bytes()).collect::<Vec<u8>>();
    assert_eq!(refused(&numeric(&[1, 0, 0, 0, u16::MAX]), Type::NUMERIC), "22P02");
    assert_eq!(refused(&numeric(&[1, 0, 0, 0, 10_000]), Type::NUMERIC), "22P02");
    assert_eq!(refused(&numeric(&[1, 0, 7, 0, 1]), Type::NUMERIC), "22P02");
    assert_eq!(refused(b"{}", Type::JSONB), "22P02");
    assert_eq!(refused(b"a\0b", Type::TEXT), "22021");
    // An array whose elements say that they are arrays.
    let words = [1, 0, 1007, 1, 1, 0];
    assert_eq!(refused(&words.iter().flat_map(|w: &i32| w.to_be_bytes()).collect::<Vec<u8>>(), Type::INT4_ARRAY), "22P02");
}

#[test]
fn null_takes_the_needed_type() {
    assert_eq!(decode(1, None, FieldFormat::Text, &Type::UNKNOWN, Some(&DataType::Int64), "UTC"), Ok(ScalarValue::Int64(None)));
}

proptest! {
    #[test]
    fn numerics_read_back(unscaled in any::<i64>(), scale in 0usize..18) {
        let text = {
            let mut out = BytesMut::new();
            crate::wire::encode::write_decimal_text(&mut out, i128::from(unscaled), scale as i8);
            String::from_utf8(out.to_vec()).unwrap()
        };
        let mut binary = BytesMut::new();
        write_decimal_binary(&mut binary, &text);
        prop_assert_eq!(numeric_text(&binary), Some(text));
    }

    #[test]
    fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
        for pg in [Type::BOOL, Type::INT8, Type::NUMERIC, Type::INTERVAL, Type::UUID, Type::JSONB, Type::DATE, Type::TIMESTAMPTZ, Type::INT4_ARRAY] {
            let _ = decode(1, Some(&bytes), FieldFormat::Binary, &pg, Some(&DataType::Int64), "UTC");
            let _ = decode(1, Some(&bytes), FieldFormat::Text, &pg, None, "UTC");
        }
    }
}

#[test]
fn times_without_a_zone_are_on_the_sessions_clocks() {
    let moment = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
    let noon = |hour: i64| Ok(ScalarValue::TimestampMicrosecond(Some((1_782_864_000 + hour * 3600) * 1_000_000), Some("UTC".into())));
    let read = |text: &str, pg: Type, zone: &str| decode(1, Some(text.as_bytes()), FieldFormat::Text, &pg, Some(&moment), zone);
    assert_eq!(read("2026-07-01 12:00:00", Type::TIMESTAMPTZ, "UTC"), noon(12));
    assert_eq!(read("2026-07-01 12:00:00", Type::TIMESTAMPTZ, "Europe/Berlin"), noon(10));
    assert_eq!(read("2026-07-01 12:00:00+00", Type::TIMESTAMPTZ, "Europe/Berlin"), noon(12));
    // A client's timestamp of its own, 2026-07-01 12:00:00 in PostgreSQL's count from 2000.
    let micros = (1_782_864_000_i64 + 12 * 3600 - 946_684_800) * 1_000_000;
    for (pg, hour) in [(Type::TIMESTAMP, 10), (Type::TIMESTAMPTZ, 12)] {
        let read = decode(1, Some(&micros.to_be_bytes()), FieldFormat::Binary, &pg, Some(&moment), "Europe/Berlin");
        assert_eq!(read, noon(hour), "{pg}");
    }
}
