use crate::expr::Compiler;
use arrow::{
    array::{Array, ArrayRef, AsArray, Int64Array, RecordBatch, StringViewArray, TimestampMicrosecondArray},
    datatypes::{Int64Type, TimestampMicrosecondType},
};
use ebb_engine::expr::ExprCompiler;
use ebb_storage::{
    column_type::ColumnType,
    stream_def::{ColumnDef, StreamDef},
    testkit::defs::{column, stream},
};
use proptest::prelude::*;
use std::{collections::BTreeMap, sync::Arc};

/// k, v, and a text that may be NULL.
fn def() -> StreamDef {
    let columns = vec![
        column(1, "k", ColumnType::Int64),
        column(2, "v", ColumnType::Int64),
        ColumnDef { nullable: true, ..column(3, "odd name", ColumnType::String) },
    ];
    StreamDef { order_by: vec!["k".to_owned()], primary_key: vec!["k".to_owned()], ..stream("s", columns) }
}

type Row = (i64, i64, Option<String>, i64, i64);

fn batch(rows: &[Row]) -> RecordBatch {
    let columns: Vec<ArrayRef> = vec![
        Arc::new(Int64Array::from_iter_values(rows.iter().map(|r| r.0))),
        Arc::new(Int64Array::from_iter_values(rows.iter().map(|r| r.1))),
        Arc::new(StringViewArray::from_iter(rows.iter().map(|r| r.2.clone()))),
        Arc::new(TimestampMicrosecondArray::from_iter_values(rows.iter().map(|r| r.3)).with_timezone("UTC")),
        Arc::new(Int64Array::from_iter_values(rows.iter().map(|r| r.4))),
    ];
    RecordBatch::try_new(def().part_schema(), columns).unwrap()
}

fn rows(batches: &[RecordBatch]) -> Vec<Row> {
    let mut all = Vec::new();
    for b in batches {
        assert_eq!(b.schema(), def().part_schema());
        for i in 0..b.num_rows() {
            let int = |c: usize| b.column(c).as_primitive::<Int64Type>().value(i);
            let text = b.column(2).as_string_view();
            let text = text.is_valid(i).then(|| text.value(i).to_owned());
            all.push((int(0), int(1), text, b.column(3).as_primitive::<TimestampMicrosecondType>().value(i), int(4)));
        }
    }
    all.sort();
    all
}

fn folded(input: &[Row], set: &[(&str, &str)]) -> ebb_storage::Result<Vec<Row>> {
    let set: Vec<(String, String)> = set.iter().map(|(c, v)| ((*c).to_owned(), (*v).to_owned())).collect();
    let folder = Compiler::new().folder(&["k".to_owned()], &set, &def())?;
    let batches = || -> Vec<_> { input.chunks(3).map(|c| Ok(batch(c))).collect() };
    let first = rows(&folder.fold(Box::new(batches().into_iter()))?);
    // It can be asked again.
    assert_eq!(rows(&folder.fold(Box::new(batches().into_iter()))?), first);
    Ok(first)
}

proptest! {
    /// SET columns are aggregates, the rest is of the newest row, the sn is the lowest.
    #[test]
    fn a_folded_row_is_what_the_rule_says(input in proptest::collection::vec((0..4i64, -9..9i64, proptest::option::of("[ab]{0,2}"), 0..5i64, 1..9i64), 1..30)) {
        let got = folded(&input, &[("v", "sum(v) * 2 + min(v)")]).unwrap();
        let mut by_key: BTreeMap<i64, Vec<&Row>> = BTreeMap::new();
        input.iter().for_each(|r| by_key.entry(r.0).or_default().push(r));
        let want: Vec<Row> = by_key.into_iter().map(|(k, of)| {
            let newest = of.iter().max_by_key(|r| (r.3, r.4)).unwrap();
            // Of equals the last.
            let newest = of.iter().rev().find(|r| (r.3, r.4) == (newest.3, newest.4)).unwrap();
            let v = of.iter().map(|r| r.1).sum::<i64>() * 2 + of.iter().map(|r| r.1).min().unwrap();
            (k, v, newest.2.clone(), newest.3, of.iter().map(|r| r.4).min().unwrap())
        }).collect();
        prop_assert_eq!(got, want);
    }
}

#[test]
fn what_does_not_fit_its_column_is_refused() {
    let one = |v| (1, v, None, 0, 1);
    assert!(folded(&[one(i64::MAX), one(1)], &[("v", "sum(v)")]).is_err());
    assert!(folded(&[one(1)], &[("v", "null_if(max(v), 1)")]).is_err(), "NULL into NOT NULL");
}
