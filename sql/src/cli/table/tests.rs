use super::*;
use arrow::{
    array::{ArrayRef, Int64Array, StringArray},
    datatypes::Field,
};
use std::sync::Arc;

#[test]
fn numbers_stand_right_and_texts_left() {
    let schema = Schema::new(vec![Field::new("city", DataType::Utf8, true), Field::new("n", DataType::Int64, true)]);
    let columns: Vec<ArrayRef> = vec![
        Arc::new(StringArray::from(vec![Some("Zürich"), None, Some("a\nb")])),
        Arc::new(Int64Array::from(vec![Some(7), Some(-123), None])),
    ];
    let mut table = Table::new(&schema);
    table.push_batch(&RecordBatch::try_new(Arc::new(schema), columns).unwrap()).unwrap();
    let expected = "  city  |  n\n--------+------\n Zürich |    7\n        | -123\n a      |\n b      |\n(3 rows)\n";
    assert_eq!(table.render(), expected);
    assert_eq!(table.len(), 3);
}

#[test]
fn no_rows_still_have_titles() {
    let table = Table::of_texts(&["a", "bb"]);
    assert!(table.is_empty());
    assert_eq!(table.render(), " a | bb\n---+----\n(0 rows)\n");
}
