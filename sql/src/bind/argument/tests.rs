use super::*;
use crate::sqlstate;

fn utf8(t: &str) -> ScalarValue {
    ScalarValue::Utf8(Some(t.to_owned()))
}

#[test]
fn times_are_times_dates_and_texts_and_never_numbers() {
    let midnight = Timestamp(1_772_323_200_000_000);
    for value in [
        utf8("2026-03-01"),
        utf8("2026-03-01 00:00"),
        utf8("2026-03-01 00:00:00"),
        utf8("2026-03-01T02:00:00+02:00"),
        ScalarValue::Date32(Some(20_513)),
        ScalarValue::TimestampSecond(Some(1_772_323_200), None),
        ScalarValue::TimestampNanosecond(Some(1_772_323_200_000_000_000), Some("Europe/Berlin".into())),
    ] {
        assert_eq!(moment("older_than", &value).unwrap(), midnight, "{value}");
    }
    for value in [ScalarValue::Int64(Some(1_772_323_200)), ScalarValue::Null, ScalarValue::Utf8(None), ScalarValue::Float64(Some(1.0))] {
        let e = moment("older_than", &value).unwrap_err();
        assert_eq!(e.sqlstate(), sqlstate::DATATYPE_MISMATCH, "{value}");
        assert!(e.message().starts_with("older_than takes a time, not "), "{e}");
    }
    assert!(moment("older_than", &utf8("yesterday-ish")).is_err());
}

#[test]
fn sns_are_numbers_or_their_digits() {
    assert_eq!(sn("from", &ScalarValue::Int32(Some(41))).unwrap(), Sn(41));
    assert_eq!(sn("from", &utf8("41")).unwrap(), Sn(41));
    assert_eq!(sn("from", &ScalarValue::UInt64(Some(u64::MAX))).unwrap(), Sn(u64::MAX));
    for value in [
        utf8("x"),
        utf8(""),
        utf8("99999999999999999999"),
        ScalarValue::Int64(Some(-1)),
        ScalarValue::Float64(Some(1.5)),
        ScalarValue::Null,
    ] {
        assert!(sn("from", &value).is_err(), "{value}");
    }
}

#[test]
fn flags_and_texts_are_nothing_else() {
    assert!(flag("deletes", &ScalarValue::Boolean(Some(true))).unwrap());
    assert!(flag("deletes", &ScalarValue::Int64(Some(1))).is_err());
    assert_eq!(text("stream", &utf8("s")).unwrap(), "s");
    assert!(text("stream", &ScalarValue::Utf8(None)).unwrap_err().message().ends_with("not NULL"));
}

#[test]
fn arguments_find_their_places() {
    let places = [required("table"), optional("older_than"), optional("retain_last")];
    let given = |list: &[(Option<&str>, i32)]| list.iter().map(|(n, v)| (n.map(str::to_owned), *v)).collect::<Vec<_>>();
    let arranged = |list: &[(Option<&str>, i32)]| arrange("expire", &places, given(list));
    assert_eq!(arranged(&[(None, 1), (Some("retain_last"), 2)]).unwrap(), [Some(1), None, Some(2)]);
    assert_eq!(arranged(&[(Some("table"), 1)]).unwrap(), [Some(1), None, None]);
    for (list, says) in [
        (&[][..], "argument table is missing: write expire(table, [older_than], [retain_last])"),
        (&[(None, 1), (Some("table"), 2)], "table is given twice"),
        (&[(None, 1), (Some("older_then"), 2)], "'older_than'"),
        (&[(None, 1), (None, 1), (None, 1), (None, 1)], "too many arguments"),
    ] {
        let e = arranged(list).unwrap_err();
        assert!(e.message().contains(says) && e.sqlstate() == sqlstate::UNDEFINED_FUNCTION, "{e}");
    }
}
