use super::*;
use crate::codec::Codec;
use arrow::array::{Float64Array, Int64Array, StringArray, TimestampMicrosecondArray};
use std::sync::Arc;

fn array(a: impl Array + 'static) -> ArrayRef {
    Arc::new(a)
}

#[test]
fn regular_times_and_random_counters_are_differences() {
    let times = array(TimestampMicrosecondArray::from_iter_values((0..100_000).map(|i| i * 10_000_000)));
    assert_eq!(choose(&[&times], None, true), Choice::Plain(Encoding::DELTA_BINARY_PACKED));
    let spread = array(Int64Array::from_iter_values((0..100_000).map(|i: i64| i.wrapping_mul(7_777_777) % 1_000_000)));
    assert_eq!(choose(&[&spread], None, true), Choice::Plain(Encoding::DELTA_BINARY_PACKED));
}

#[test]
fn repeating_values_get_a_dictionary() {
    let levels = array(Int64Array::from_iter_values((0..100_000).map(|i: i64| (i * i) % 7 * 1_000_003)));
    assert_eq!(choose(&[&levels], None, true), Choice::Dictionary);
    let two_decimals = array(Float64Array::from_iter_values((0..100_000).map(|i| ((i * 7919) % 4000) as f64 / 100.0)));
    assert_eq!(choose(&[&two_decimals], None, true), Choice::Dictionary);
    assert_eq!(choose(&[&array(StringArray::from(vec!["a", "b"]))], None, true), Choice::Dictionary);
}

#[test]
fn full_precision_floats_are_split_by_byte() {
    let noise = array(Float64Array::from_iter_values((0..100_000).map(|i| (i as f64).sin())));
    assert_eq!(choose(&[&noise], None, true), Choice::Plain(Encoding::BYTE_STREAM_SPLIT));
}

#[test]
fn the_columns_own_codec_wins_where_it_fits() {
    let repeating = array(Int64Array::from_iter_values((0..1000).map(|i: i64| (i * i) % 7)));
    let delta = ColumnCodec { preprocessor: Some(Preprocessor::Delta), codec: Codec::Lz4 };
    assert_eq!(choose(&[&repeating], Some(&delta), true), Choice::Plain(Encoding::DELTA_BINARY_PACKED));
    let floats = array(Float64Array::from(vec![1.0; 100]));
    let gorilla = ColumnCodec { preprocessor: Some(Preprocessor::Gorilla), codec: Codec::Lz4 };
    assert_eq!(choose(&[&floats], Some(&gorilla), true), Choice::Plain(Encoding::BYTE_STREAM_SPLIT));
    assert_eq!(choose(&[&floats], Some(&delta), true), Choice::Dictionary);
}

#[test]
fn empty_and_single_values_choose_something() {
    assert_eq!(choose(&[&array(Int64Array::from(Vec::<i64>::new()))], None, true), Choice::Dictionary);
    choose(&[&array(Float64Array::from(vec![f64::NAN]))], None, true);
}

#[test]
fn times_with_gaps_are_differences_where_a_codec_compresses_them() {
    // Every few seconds a row is missing, over as many times as make a dictionary of them dear.
    let times =
        array(TimestampMicrosecondArray::from_iter_values((0..200_000i64).filter(|i| i * i % 7 != 4).map(|i| i % 5_000 * 10_000_000)));
    assert_eq!(choose(&[&times], None, true), Choice::Plain(Encoding::DELTA_BINARY_PACKED));
    assert_eq!(choose(&[&times], None, false), Choice::Dictionary);
    // A dictionary stays where its numbers say as little.
    let levels = array(Int64Array::from_iter_values((0..100_000i64).map(|i| (i * i * 31) % 11 * 1_000_003)));
    assert_eq!(choose(&[&levels], None, true), Choice::Dictionary);
}

#[test]
fn the_sample_does_not_depend_on_where_arrays_end() {
    // Of a walk with two decimals few values are seen twice in a little of it, and there are not many.
    let mut at = 5000i64;
    let walk: Vec<f64> = (0..262_144u64)
        .map(|i| {
            at = (at + (i.wrapping_mul(2_654_435_761) >> 7) as i64 % 101 - 50).clamp(0, 10_000);
            at as f64 / 100.0
        })
        .collect();
    for length in [262_144, 16_384, 1000, 100, 7] {
        let arrays: Vec<ArrayRef> = walk.chunks(length).map(|c| array(Float64Array::from(c.to_vec()))).collect();
        let arrays: Vec<&ArrayRef> = arrays.iter().collect();
        assert_eq!(stretches(&arrays, walk.len()).iter().map(|s| s.len()).sum::<usize>(), SAMPLE_ROWS, "{length}");
        assert_eq!(choose(&arrays, None, true), Choice::Dictionary, "{length}");
    }
}
