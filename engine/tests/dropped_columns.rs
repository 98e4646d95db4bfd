//! Columns that were dropped and that a tag still reads: every rewrite carries them, none that nobody reads.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod support;

use arrow::{
    array::{Array, ArrayRef, AsArray, BooleanArray, Int32Array, Int64Array, RecordBatch, StringViewArray},
    compute::{cast, filter_record_batch},
    datatypes::{DataType, Int64Type},
};
use ebb_engine::{AsOf, Engine, InsertOptions, StreamView, upgrade::upgrade};
use ebb_storage::{
    column_type::ColumnType,
    ids::{ColumnId, Sn, StreamId},
    interval::Interval,
    part::{PartReader, reader::ReadOptions},
    refs::RefKind,
    stream_def::{ColumnDef, StreamDef},
};
use std::sync::Arc;
use support::*;

/// host, ts, v and more columns, with ids from 4 on.
fn wide(more: &[(&str, ColumnType)]) -> StreamDef {
    let mut d = def("s", vec![delete("ts + 30 days", None, 1)]);
    for (name, ty) in more {
        d.columns.push(column(d.next_column.0, name, ty.clone()));
        d.next_column = d.next_column.next();
    }
    d
}

/// What column `name` of row v holds.
fn value(column: &ColumnDef, v: i64) -> ArrayRef {
    match column.ty.arrow() {
        DataType::Int32 => Arc::new(Int32Array::from(vec![v as i32 * 10])),
        DataType::Int64 => Arc::new(Int64Array::from(vec![v * 10])),
        DataType::Utf8View => Arc::new(StringViewArray::from_iter_values([format!("{}{}", column.name, v % 3)])),
        t => panic!("{t}"),
    }
}

/// A part of one row in the columns of today.
async fn insert(e: &Engine, s: StreamId, vs: impl IntoIterator<Item = i64>) {
    for v in vs {
        let def = e.read().stream(s).unwrap().def;
        let base = rows(&[("a", START.0 + v, v)]);
        let mut columns: Vec<ArrayRef> = base.columns()[..3].to_vec();
        columns.extend(def.columns[3..].iter().map(|c| value(c, v)));
        columns.push(base.column(3).clone());
        let batch = RecordBatch::try_new(def.row_schema(), columns).unwrap();
        e.insert(s, vec![batch], InsertOptions { schema_version: def.schema_version, ..v1() }).await.unwrap();
        e.flush(None).await.unwrap();
    }
}

/// A part of many rows, with few and with many different values.
async fn insert_many(e: &Engine, s: StreamId, vs: std::ops::Range<i64>) {
    let def = e.read().stream(s).unwrap().def;
    let base = rows(&vs.clone().map(|v| ("a", START.0 + v, v)).collect::<Vec<_>>());
    let mut columns: Vec<ArrayRef> = base.columns()[..3].to_vec();
    for column in &def.columns[3..] {
        let cells: Vec<ArrayRef> = vs.clone().map(|v| value(column, v)).collect();
        columns.push(arrow::compute::concat(&cells.iter().map(|c| c.as_ref()).collect::<Vec<_>>()).unwrap());
    }
    columns.push(base.column(3).clone());
    let batch = RecordBatch::try_new(def.row_schema(), columns).unwrap();
    e.insert(s, vec![batch], InsertOptions { schema_version: def.schema_version, ..v1() }).await.unwrap();
    e.flush(None).await.unwrap();
}

async fn alter(e: &Engine, s: StreamId, change: impl Fn(&mut StreamDef) + Send + Sync) {
    let change = |d: &StreamDef| {
        let mut d = d.clone();
        change(&mut d);
        Ok(d)
    };
    e.alter_stream(s, change).await.unwrap();
}

async fn drop_column(e: &Engine, s: StreamId, name: &str) {
    alter(e, s, |d| d.columns.retain(|c| c.name != name)).await;
}

async fn add_column(e: &Engine, s: StreamId, name: &str, ty: ColumnType) {
    alter(e, s, |d| {
        d.columns.push(column(d.next_column.0, name, ty.clone()));
        d.next_column = d.next_column.next();
    })
    .await;
}

/// Rows of a view, by column of its definition, as texts, sorted.
async fn read_with(view: &StreamView) -> Vec<String> {
    let mut out = Vec::new();
    for part in &view.parts {
        let reader = PartReader::open_verified(&part.store, &part.key, &part.meta).await.unwrap();
        let written: Vec<String> = reader.schema().fields().iter().map(|f| f.name().clone()).collect();
        let said: Vec<String> = view.state.written(&part.meta).part_schema().fields().iter().map(|f| f.name().clone()).collect();
        assert_eq!(written, said, "the manifest knows the columns of the file");
        let mut at = 0;
        for batch in reader.read(&ReadOptions::default()).unwrap() {
            let batch = batch.unwrap();
            let last = batch.num_columns() - 1;
            let sns = batch.column(last).as_primitive::<Int64Type>().clone();
            let seen: BooleanArray = (0..batch.num_rows())
                .map(|i| {
                    let hidden = part.hidden.as_ref().is_some_and(|h| h.0.contains(at + i as u32));
                    Some(!hidden && part.sns.as_ref().is_none_or(|set| set.contains(Sn(sns.value(i) as u64))))
                })
                .collect();
            at += batch.num_rows() as u32;
            let batch = filter_record_batch(&batch, &seen).unwrap();
            let batch = batch.project(&(0..last).collect::<Vec<_>>()).unwrap();
            let (batch, _) = upgrade(&batch, &view.def, &Words).unwrap();
            // Not `_tp_time`, which every row has.
            let texts = batch.columns().split_last().unwrap().1.iter().map(|c| cast(c, &DataType::Utf8).unwrap());
            let texts: Vec<ArrayRef> = texts.collect();
            for row in 0..batch.num_rows() {
                let cell = |c: &ArrayRef| if c.is_null(row) { "-".to_owned() } else { c.as_string::<i32>().value(row).to_owned() };
                out.push(texts.iter().map(cell).collect::<Vec<_>>().join("|"));
            }
        }
    }
    out.sort();
    out
}

async fn of_tag(e: &Engine, s: StreamId, name: &str) -> Vec<String> {
    read_with(&e.read().stream_as_of(s, &AsOf::Name(name.into()), e.now()).unwrap()).await
}

fn carried(e: &Engine, s: StreamId) -> Vec<Vec<i32>> {
    let state = e.read().state(s).unwrap();
    state.parts.values().map(|p| p.carried.iter().map(|c| c.0).collect()).collect()
}

/// proves I10: tags of several versions read exactly what they read through merges, later columns of the same name, a rename, a type that
/// was widened before the drop, and a prune; the last tag to read a column takes it along.
#[tokio::test]
async fn tags_read_dropped_columns_through_every_rewrite() {
    let dir = tempfile::tempdir().unwrap();
    let e = open(dir.path()).await;
    let s = e.create_stream(wide(&[("x", ColumnType::Int32), ("y", ColumnType::String)]), false).await.unwrap();
    insert(&e, s, 1..=3).await;
    e.create_ref(s, tag("first")).await.unwrap();
    alter(&e, s, |d| d.columns[3].ty = ColumnType::Int64).await;
    insert(&e, s, [4, 1_000_000_000]).await;
    e.create_ref(s, tag("wide")).await.unwrap();
    let (first, wider) = (of_tag(&e, s, "first").await, of_tag(&e, s, "wide").await);
    assert_eq!((first.len(), wider.len()), (3, 5));
    drop_column(&e, s, "x").await;
    insert(&e, s, 5..=6).await;
    let told = e.optimize(s, None, true).await.unwrap().left_out;
    assert!(told.is_empty(), "nothing keeps parts apart: {told:?}");
    assert_eq!((parts(&e, s), carried(&e, s)), (1, vec![vec![4]]));
    assert_eq!((of_tag(&e, s, "first").await, of_tag(&e, s, "wide").await), (first.clone(), wider.clone()));
    // The name again, twice, and the other column under it.
    add_column(&e, s, "x", ColumnType::String).await;
    insert(&e, s, 7..=8).await;
    e.create_ref(s, tag("again")).await.unwrap();
    let again = of_tag(&e, s, "again").await;
    assert!(again[0].contains("y1"), "{again:?}");
    drop_column(&e, s, "x").await;
    alter(&e, s, |d| d.columns[3].name = "x".to_owned()).await;
    insert(&e, s, 9..=10).await;
    e.optimize(s, None, true).await.unwrap();
    assert_eq!((parts(&e, s), carried(&e, s)), (1, vec![vec![4, 6]]));
    for (name, before) in [("first", &first), ("wide", &wider), ("again", &again)] {
        assert_eq!(&of_tag(&e, s, name).await, before, "{name}");
    }
    // What is due goes from main, the columns stay for the tags.
    let main = read_with(&e.read().stream(s).unwrap()).await;
    assert_eq!(main.len(), 11);
    drop(e);
    let e = open(dir.path()).await;
    e.drop_ref(s, RefKind::Tag, "wide", false).await.unwrap();
    e.drop_ref(s, RefKind::Tag, "first", false).await.unwrap();
    e.optimize(s, None, true).await.unwrap();
    assert_eq!(carried(&e, s), vec![vec![6]], "the column that no tag reads any more has gone");
    assert_eq!((of_tag(&e, s, "again").await, read_with(&e.read().stream(s).unwrap()).await), (again, main.clone()));
    e.drop_ref(s, RefKind::Tag, "again", false).await.unwrap();
    e.optimize(s, None, true).await.unwrap();
    assert_eq!((carried(&e, s), read_with(&e.read().stream(s).unwrap()).await), (vec![vec![]], main));
}

/// What scheduled work does to parts under a tag is the same: merged by number, pruned and recompressed, the columns stay.
#[tokio::test]
async fn scheduled_merges_and_recompressions_carry_too() {
    let dir = tempfile::tempdir().unwrap();
    let e = open(dir.path()).await;
    let s = e.create_stream(wide(&[("x", ColumnType::String)]), false).await.unwrap();
    insert(&e, s, 1..=5).await;
    e.create_ref(s, tag("t")).await.unwrap();
    let before = of_tag(&e, s, "t").await;
    drop_column(&e, s, "x").await;
    insert(&e, s, 6..=8).await;
    e.settle(None).await.unwrap();
    assert_eq!((parts(&e, s), carried(&e, s)), (1, vec![vec![4]]), "eight parts are merged, whatever a tag reads");
    assert_eq!(of_tag(&e, s, "t").await, before);
    // Due for main, kept for the tag, with the column.
    e.advance_clock(Interval::days(31)).unwrap();
    e.settle(None).await.unwrap();
    assert_eq!((values(&e, s).await, of_tag(&e, s, "t").await), (vec![], before.clone()));
    e.optimize(s, None, true).await.unwrap();
    assert_eq!((of_tag(&e, s, "t").await, carried(&e, s)), (before, vec![vec![4]]));
}

/// A column that some parts lack reads its default where the tag sees the rows, written out in the merge.
#[tokio::test]
async fn what_a_carried_column_lacks_is_filled_as_the_tag_reads_it() {
    let dir = tempfile::tempdir().unwrap();
    let e = open(dir.path()).await;
    let s = e.create_stream(wide(&[]), false).await.unwrap();
    insert(&e, s, 1..=2).await;
    alter(&e, s, |d| {
        let mut more = column(4, "n", ColumnType::Int64);
        more.fill = Some("7".to_owned());
        let mut copy = column(5, "w", ColumnType::Int64);
        copy.default =
            Some(ebb_storage::stream_def::ColumnDefault { kind: ebb_storage::stream_def::DefaultKind::Default, expr: "v".to_owned() });
        d.columns.extend([more, copy]);
        d.next_column = ColumnId(6);
    })
    .await;
    insert(&e, s, 3..=4).await;
    e.create_ref(s, tag("t")).await.unwrap();
    let before = of_tag(&e, s, "t").await;
    assert!(before[0].ends_with("|1|7|1"), "{before:?}");
    alter(&e, s, |d| {
        d.columns.retain(|c| c.id.0 < 4);
        d.columns[2].name = "value".to_owned();
    })
    .await;
    insert(&e, s, 5..=6).await;
    e.optimize(s, None, true).await.unwrap();
    assert_eq!((parts(&e, s), carried(&e, s)), (1, vec![vec![4, 5]]));
    assert_eq!(of_tag(&e, s, "t").await, before);
}

/// Columns of dictionary numbers and of plain values are carried by their own ways.
#[tokio::test]
async fn coded_and_plain_columns_are_carried() {
    let dir = tempfile::tempdir().unwrap();
    let e = open(dir.path()).await;
    let s = e.create_stream(wide(&[("few", ColumnType::String), ("many", ColumnType::Int64)]), false).await.unwrap();
    insert_many(&e, s, 0..20_000).await;
    insert_many(&e, s, 10_000..30_000).await;
    e.create_ref(s, tag("t")).await.unwrap();
    let before = of_tag(&e, s, "t").await;
    let encodings = async |name: &str| {
        let view = e.read().stream_as_of(s, &AsOf::Name("t".into()), e.now()).unwrap();
        let reader = PartReader::open(&view.parts[0].store, &view.parts[0].key).await.unwrap();
        let chunk = reader.metadata().row_group(0).columns().iter().find(|c| c.column_path().string() == name).unwrap().clone();
        chunk.dictionary_page_offset().is_some()
    };
    assert_eq!((encodings("few").await, encodings("many").await), (true, false));
    drop_column(&e, s, "few").await;
    drop_column(&e, s, "many").await;
    for i in 0..2 {
        insert_many(&e, s, 30_000 + i..35_000).await;
        e.optimize(s, None, true).await.unwrap();
        assert_eq!((parts(&e, s), carried(&e, s)), (1, vec![vec![4, 5]]));
        assert!(of_tag(&e, s, "t").await == before);
        assert_eq!((encodings("few").await, encodings("many").await), (true, false));
    }
}
