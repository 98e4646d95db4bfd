use super::*;
use arrow::{
    array::{Float64Array, Int64Array, StringViewArray},
    datatypes::{Field, Schema},
};

fn rows(n: usize) -> RecordBatch {
    let schema = Arc::new(Schema::new(vec![
        Field::new("k", DataType::Int64, false),
        Field::new("v", DataType::Float64, true),
        Field::new("t", DataType::Utf8View, true),
    ]));
    let text = |i: usize| (!i.is_multiple_of(3)).then(|| format!("a text that is longer than a view, number {i}"));
    RecordBatch::try_new(
        schema,
        vec![
            Arc::new(Int64Array::from_iter_values((0..n).map(|i| i as i64))),
            Arc::new(Float64Array::from_iter((0..n).map(|i| (i % 2 == 0).then_some(i as f64)))),
            Arc::new(StringViewArray::from_iter((0..n).map(text))),
        ],
    )
    .unwrap()
}

#[test]
fn a_few_rows_of_a_large_batch_are_small() {
    let all = rows(5000);
    let few = gather(&[all.slice(100, 2), all.slice(900, 1)], &all.schema()).unwrap();
    assert_eq!(few.num_rows(), 3);
    assert!(few.get_array_memory_size() < 4000, "{}", few.get_array_memory_size());
}

#[test]
fn other_columns_and_nulls_are_refused() {
    let r = rows(3);
    let narrow = r.project(&[0]).unwrap();
    assert!(gather(&[narrow], &r.schema()).unwrap_err().message().contains("columns"));
    let strict = Arc::new(Schema::new(vec![
        Field::new("k", DataType::Int64, false),
        Field::new("v", DataType::Float64, false),
        Field::new("t", DataType::Utf8View, true),
    ]));
    assert!(gather(&[r], &strict).unwrap_err().message().contains("'v'"));
}
