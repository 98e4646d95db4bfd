use super::*;
use arrow::{
    array::{BooleanArray, Decimal128Array, Float64Array, Int64Array, StringArray, StringViewArray, TimestampMicrosecondArray, UInt8Array},
    compute::concat,
    datatypes::Int32Type,
};
use proptest::prelude::*;

/// What the arrays hold, as one plain array.
fn naive(arrays: &[ArrayRef], t: &DataType) -> ArrayRef {
    let plain: Vec<ArrayRef> = arrays.iter().map(|a| plain(a, t).unwrap()).collect();
    concat(&plain.iter().map(|a| a.as_ref()).collect::<Vec<_>>()).unwrap()
}

fn staged(arrays: &[ArrayRef]) -> ArrayRef {
    let mut staging = Staging::new(1, 0);
    arrays.iter().for_each(|a| staging.push(std::slice::from_ref(a)).unwrap());
    assert_eq!(staging.rows(), arrays.iter().map(|a| a.len()).sum::<usize>());
    staging.into_arrays().unwrap().remove(0)
}

fn check(arrays: &[ArrayRef], t: &DataType) {
    assert_eq!(&plain(&staged(arrays), t).unwrap(), &naive(arrays, t));
}

fn same<T: Array + 'static>(array: T) -> ArrayRef {
    Arc::new(array)
}

proptest! {
    #[test]
    fn a_column_comes_out_as_it_went_in(batches in proptest::collection::vec(
        proptest::collection::vec((proptest::option::of("[a-c]{0,15}"), proptest::option::of(-3i64..3), any::<f64>()), 0..40), 1..5)
    ) {
        let texts = |b: &Vec<(Option<String>, _, _)>| -> Vec<Option<String>> { b.iter().map(|r: &(Option<String>, Option<i64>, f64)| r.0.clone()).collect() };
        let views: Vec<ArrayRef> = batches.iter().map(|b| same(StringViewArray::from_iter(texts(b)))).collect();
        check(&views, &DataType::Utf8View);
        let mixed: Vec<ArrayRef> = batches.iter().enumerate().map(|(i, b)| match i % 3 {
            0 => same(texts(b).iter().map(|t| t.as_deref()).collect::<DictionaryArray<Int32Type>>()),
            1 => same(StringArray::from_iter(texts(b))),
            _ => same(StringViewArray::from_iter(texts(b))),
        }).collect();
        check(&mixed, &DataType::Utf8View);
        let whole: Vec<ArrayRef> = batches.iter().map(|b| same(b.iter().map(|r| r.1).collect::<Int64Array>())).collect();
        check(&whole, &DataType::Int64);
        let sliced: Vec<ArrayRef> = whole.iter().map(|a| a.slice(a.len() / 3, a.len() / 2)).collect();
        check(&sliced, &DataType::Int64);
        let bits = |a: &ArrayRef| a.as_primitive::<arrow::datatypes::Float64Type>().values().iter().map(|v| v.to_bits()).collect::<Vec<_>>();
        let floats: Vec<ArrayRef> = batches.iter().map(|b| same(Float64Array::from_iter_values(b.iter().map(|r| r.2)))).collect();
        prop_assert_eq!(bits(&cast(&staged(&floats), &DataType::Float64).unwrap()), bits(&naive(&floats, &DataType::Float64)));
    }
}

#[test]
fn what_repeats_is_numbered_and_what_does_not_is_left_alone() {
    let times = |n: i64, each: i64| same(TimestampMicrosecondArray::from_iter_values((0..n).map(|i| i / each)).with_timezone("UTC"));
    let repeated = [times(30_000, 100), times(30_000, 100)];
    assert!(staged(&repeated).as_any_dictionary_opt().is_some());
    check(&repeated, repeated[0].data_type());
    // The first rows repeat; those that follow do not, with a NULL among them.
    let nullable = same((0..100_000i64).map(|i| (i != 70_000).then_some(i)).collect::<TimestampMicrosecondArray>().with_timezone("UTC"));
    let grown = [times(1000, 100), nullable, times(10, 1)];
    assert_eq!(staged(&grown).data_type(), grown[0].data_type());
    check(&grown, grown[0].data_type());
    let texts = [same(StringViewArray::from_iter_values((0..50_000).map(|i| format!("text {i} of many that differ"))))];
    assert_eq!(staged(&texts).data_type(), &DataType::Utf8View);
    check(&texts, &DataType::Utf8View);
}

#[test]
fn other_types_pass() {
    let decimals = same(Decimal128Array::from(vec![Some(1), None, Some(3)]).with_precision_and_scale(20, 2).unwrap());
    check(&[decimals.clone(), decimals.slice(1, 2)], decimals.data_type());
    let truths = same(BooleanArray::from(vec![Some(true), None]));
    check(&[truths.clone(), truths.clone()], truths.data_type());
    let small = same(UInt8Array::from(vec![Some(200), None, Some(1)]));
    check(&[small.clone(), small.slice(1, 1)], small.data_type());
    // A dictionary whose values have a NULL.
    let words = same(StringArray::from(vec![Some("a"), None]));
    let dictionary = same(DictionaryArray::new(Int32Array::from(vec![Some(1), Some(0), None]), words));
    check(&[dictionary], &DataType::Utf8View);
}

#[test]
fn what_is_learned_holds_for_the_rows_that_follow() {
    let unique = same(Int64Array::from_iter_values(0..50_000));
    let few = same(Int64Array::from_iter_values((0..50_000).map(|i| i % 7)));
    let mut staging = Staging::new(2, 0);
    staging.push(&[unique, few.clone()]).unwrap();
    let first = staging.split_off().into_arrays().unwrap();
    assert_eq!((first[0].len(), staging.rows()), (50_000, 0));
    staging.push(&[few.clone(), few.clone()]).unwrap();
    let second = staging.into_arrays().unwrap();
    assert_eq!((&second[0], second[1].as_any_dictionary().values().len()), (&few, 7));
}

#[test]
fn arrays_that_do_not_belong_together_are_refused() {
    let (numbers, texts) = (same(Int64Array::from(vec![1, 2])), same(StringViewArray::from(vec!["a", "b"])));
    let mut staging = Staging::new(1, 0);
    staging.push(std::slice::from_ref(&numbers)).unwrap();
    assert!(staging.push(std::slice::from_ref(&texts)).is_err());
    assert!(staging.push(&[numbers.clone(), texts.clone()]).is_err());
    assert!(Staging::new(2, 0).push(&[numbers.clone(), numbers.slice(0, 1)]).is_err());
    assert!(Staging::new(1, 0).into_arrays().is_err());
}

/// Texts that no array has room for are left as they are, before any of them is taken.
#[test]
fn texts_beyond_what_an_array_holds_are_not_numbered() {
    let texts = |n: usize| same(StringViewArray::from_iter_values((0..n).map(|i| format!("{i:0>100}"))));
    let kind = Kind::of(&DataType::Utf8View).unwrap();
    let mut column =
        Numbered { t: DataType::Utf8View, kind, values: Values::new(kind), keys: Vec::new(), nulls: NullBufferBuilder::new(0) };
    assert!(column.push(&texts(10), 0).unwrap());
    assert!(column.has_room(&texts(10), 2000) && !column.has_room(&texts(10), 1999));
    // A dictionary's texts count once, whatever rows have them.
    let words = same(StringArray::from(vec!["w".repeat(100)]));
    let coded = same(DictionaryArray::new(Int32Array::from(vec![0; 1000]), words));
    assert!(column.has_room(&coded, 1200) && !column.has_room(&coded, 1000));
}
