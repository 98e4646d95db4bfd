use super::*;
use arrow::{
    array::{DictionaryArray, Float64Array, Int32Array, Int64Array, StringArray, StringViewArray},
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

#[test]
fn texts_may_be_dictionaries() {
    let r = rows(4);
    let words = |values: Vec<Option<&str>>, keys: Vec<Option<i32>>| -> ArrayRef {
        Arc::new(DictionaryArray::new(Int32Array::from(keys), Arc::new(StringArray::from(values))))
    };
    let batch = |t: ArrayRef| {
        let fields: Vec<Field> = r.schema().fields().iter().map(|f| f.as_ref().clone()).collect();
        let fields = [fields[0].clone(), fields[1].clone(), fields[2].clone().with_data_type(t.data_type().clone())];
        RecordBatch::try_new(Arc::new(Schema::new(fields.to_vec())), vec![r.column(0).clone(), r.column(1).clone(), t]).unwrap()
    };
    let keys = vec![Some(1), None, Some(0), Some(1)];
    let coded = batch(words(vec![Some("a"), Some("b")], keys.clone()));
    let plain = StringViewArray::from(vec![Some("b"), None, Some("a"), Some("b")]);
    assert_eq!(fit(&coded, &r.schema()).unwrap().column(2).as_string_view(), &plain);
    assert_eq!(fit_coded(&coded, &r.schema()).unwrap().column(2), coded.column(2));
    // A NULL among the values.
    let holes = batch(words(vec![Some("a"), None], keys));
    let plain = StringViewArray::from(vec![None, None, Some("a"), None]);
    assert_eq!(fit_coded(&holes, &r.schema()).unwrap().column(2).as_string_view(), &plain);
    let strict: Vec<Field> = r.schema().fields().iter().map(|f| f.as_ref().clone().with_nullable(f.name() != "t")).collect();
    assert!(fit_coded(&holes, &Arc::new(Schema::new(strict.clone()))).unwrap_err().message().contains("'t' takes no NULL"));
    assert!(fit_coded(&coded, &Arc::new(Schema::new(strict))).unwrap_err().message().contains("'t' takes no NULL"));
    // A dictionary of numbers is none of texts.
    let numbers: ArrayRef = Arc::new(DictionaryArray::new(Int32Array::from(vec![0; 4]), Arc::new(Int64Array::from(vec![1]))));
    assert!(fit_coded(&batch(numbers), &r.schema()).unwrap_err().message().contains("columns"));
}
