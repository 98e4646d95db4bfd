use super::*;
use proptest::prelude::*;

#[test]
fn digits_are_exact_and_rounded_at_the_scale() {
    for (text, precision, scale, value) in [
        ("0.1", 38, 30, 100_000_000_000_000_000_000_000_000_000),
        ("12345678901234567890.123", 38, 3, 12_345_678_901_234_567_890_123),
        ("99999999999999999999999999999999999999", 38, 0, 99_999_999_999_999_999_999_999_999_999_999_999_999),
        ("-1.5", 10, 0, -2),
        ("2.5", 10, 0, 3),
        ("2.4999", 10, 0, 2),
        ("0.05", 10, 1, 1),
        ("0.04999", 10, 1, 0),
        ("-0.00", 10, 1, 0),
        (".5", 10, 1, 5),
        ("5.", 10, 1, 50),
        ("+7", 10, 1, 70),
        ("1e3", 10, 1, 10_000),
        ("1.25E-1", 10, 3, 125),
        ("125e-3", 10, 2, 13),
        ("1e-999999999", 10, 2, 0),
        ("0e999999999", 10, 2, 0),
        ("0.0000000001", 4, 2, 0),
        ("0.5", 4, 0, 1),
        ("0.05", 4, 0, 0),
    ] {
        assert_eq!(parse(text, precision, scale), Ok(value), "{text}");
    }
    for text in ["1000", "999.5", "1e999999999", "1e2147483647", "-1000"] {
        assert_eq!(parse(text, 3, 0), Err(Bad::OutOfRange), "{text}");
    }
    for text in ["", "-", ".", "e5", "1e", "1e5x", "1 2", "NaN", "0x10", "1_000", "--1", "1.2.3", "é"] {
        assert_eq!(parse(text, 38, 0), Err(Bad::NoNumber), "{text}");
    }
}

proptest! {
    #[test]
    fn what_is_written_is_read(value in -10i128.pow(20)..10i128.pow(20), scale in 0i8..10) {
        let digits = format!("{:0>width$}", value.unsigned_abs(), width = scale as usize + 1);
        let (whole, fraction) = digits.split_at(digits.len() - scale as usize);
        let text = format!("{}{whole}.{fraction}", if value < 0 { "-" } else { "" });
        prop_assert_eq!(parse(&text, 38, scale), Ok(value));
    }

    #[test]
    fn no_text_panics(text in "[-+]?[0-9.eE]{0,20}", precision in 1u8..=38, scale in 0i8..=38) {
        let _ = parse(&text, precision, scale);
    }
}
