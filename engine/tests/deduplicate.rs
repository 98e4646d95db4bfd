//! DEDUPLICATE as a record: of equal rows the one of the lowest record stays, earlier cuts keep all.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests may unwrap")]

mod support;

use arrow::array::{ArrayRef, Float64Array, Int64Array, ListArray, MapArray, RecordBatch, StringViewArray, TimestampMicrosecondArray};
use ebb_engine::{AsOf, Copies, Deleted, Engine, ErrorKind, InsertOptions, Optimized, Result, Stop, Trial, history::RollbackTo};
use ebb_storage::{
    column_type::ColumnType,
    ids::{ColumnId, SchemaVersion, Sn, StreamId},
    interval::Interval,
    stream_def::{ColumnDef, StreamDef},
    testkit::crash_store::CrashDisk,
    verb::Verb,
};
use power::{Loss, cut_everywhere, steps, whole};
use std::sync::Arc;
use support::*;

async fn insert(e: &Engine, s: StreamId, of: &[(&str, i64, i64)]) -> Sn {
    e.insert(s, vec![rows(of)], v1()).await.unwrap().sn
}

fn row(host: &str, v: i64) -> (&str, i64, i64) {
    (host, START.0, v)
}

fn by(columns: &[i32]) -> Copies {
    let by = (!columns.is_empty()).then(|| columns.iter().map(|c| ColumnId(*c)).collect());
    Copies { by, schema_version: SchemaVersion(1) }
}

async fn without(e: &Engine, s: StreamId, final_: bool, copies: &Copies) -> Optimized {
    e.optimize_without(s, None, final_, Some(copies)).await.unwrap()
}

async fn at(e: &Engine, s: StreamId, sn: Sn) -> Vec<i64> {
    values_at(e, s, AsOf::Sn(sn)).await.unwrap()
}

/// Copies in one part, in several, in the tail and within a record go; later and earlier cuts read what they should, whatever comes.
#[tokio::test]
async fn of_equal_rows_the_one_of_the_lowest_record_stays() {
    let dir = tempfile::tempdir().unwrap();
    let e = open(dir.path()).await;
    let s = e.create_stream(def("s", vec![]), false).await.unwrap();
    insert(&e, s, &[row("a", 1), row("a", 1), row("b", 2)]).await;
    e.flush(None).await.unwrap();
    insert(&e, s, &[row("a", 1), row("b", 3)]).await;
    e.flush(None).await.unwrap();
    let last = insert(&e, s, &[row("b", 2), row("c", 4)]).await;
    let before = vec![1, 1, 1, 2, 2, 3, 4];
    assert_eq!(values(&e, s).await, before);
    let done = without(&e, s, false, &by(&[])).await;
    let removed = Sn(4);
    assert_eq!(done.copies, Deleted { sn: Some(removed), rows: 3 });
    assert_eq!(done.copies_in.0, 3, "two rows of the first part's copies lie in it, in the second and in what was the tail");
    assert_eq!(done.actions[0], "deduplicate");
    let listed = e.read().state(s).unwrap().records.get(&removed).map(|r| (r.verb, r.rows_added, r.rows_deleted)).unwrap();
    assert_eq!(listed, (Verb::Deduplicate, 0, 3));
    let kept = vec![(1, 1), (2, 1), (3, 2), (4, 3)];
    for round in 0..3 {
        assert_eq!(read(&e, s).await, kept, "round {round}");
        assert_eq!(at(&e, s, last).await, before);
        assert_eq!(at(&e, s, Sn(1)).await, [1, 1, 2]);
        // Nothing is left to remove: no record.
        assert_eq!(without(&e, s, round > 0, &by(&[])).await.copies, Deleted::default());
    }
    drop(e);
    let e = open(dir.path()).await;
    assert_eq!((read(&e, s).await, at(&e, s, last).await), (kept, before.clone()));
    // A record like others: it can be undone, and what it took goes once nobody reads it.
    e.rollback(s, RollbackTo::Sn(last)).await.unwrap();
    assert_eq!(values(&e, s).await, before);
    assert_eq!(without(&e, s, true, &by(&[])).await.copies.rows, 3);
    forget_the_past(&e, s).await;
    e.optimize(s, None, true).await.unwrap();
    assert_eq!((values(&e, s).await, e.read().stream(s).unwrap().parts[0].meta.rows), (vec![1, 2, 3, 4], 4));
}

/// BY compares the named columns only; a partition is looked through by itself; what rollbacks left aside is no copy.
#[tokio::test]
async fn by_compares_the_named_columns_within_a_partition() {
    let dir = tempfile::tempdir().unwrap();
    let e = open(dir.path()).await;
    let s = e.create_stream(def("s", vec![]), false).await.unwrap();
    let first = insert(&e, s, &[row("a", 1), row("b", 2)]).await;
    insert(&e, s, &[row("c", 3), row("a", 0)]).await;
    e.rollback(s, RollbackTo::Sn(first)).await.unwrap();
    insert(&e, s, &[row("a", 5), row("c", 6), ("a", START.0 + 40 * DAY, 7), ("a", START.0 + 41 * DAY, 8)]).await;
    e.flush(None).await.unwrap();
    let partitions: Vec<Arc<str>> = e.read().stream(s).unwrap().state.partitions.keys().cloned().collect();
    assert_eq!(partitions.len(), 2);
    let far = e.read().stream(s).unwrap().parts.iter().find(|p| p.meta.rows == 2 && p.meta.min_sn() == p.meta.max_sn()).cloned();
    let only = e.optimize_without(s, Some(&far.unwrap().meta.partition), true, Some(&by(&[1]))).await.unwrap();
    assert_eq!((only.copies.rows, values(&e, s).await), (1, vec![1, 2, 5, 6, 7]));
    assert_eq!(without(&e, s, true, &by(&[1])).await.copies.rows, 1);
    assert_eq!(values(&e, s).await, [1, 2, 6, 7], "hosts a, b and c, and a of the other partition");
    assert_eq!(without(&e, s, true, &by(&[2])).await.copies.rows, 2);
    assert_eq!(values(&e, s).await, [1, 7], "one for each time");
    let stale = Copies { schema_version: SchemaVersion(9), ..by(&[1]) };
    assert_eq!(e.optimize_without(s, None, false, Some(&stale)).await.unwrap_err().kind(), ErrorKind::Conflict);
    assert_eq!(e.optimize_without(s, None, false, Some(&by(&[77]))).await.unwrap_err().kind(), ErrorKind::Invalid);
    let nowhere = e.optimize_without(s, Some("x"), false, Some(&by(&[]))).await.unwrap_err();
    assert_eq!(nowhere.kind(), ErrorKind::NotFound);
    insert(&e, s, &[row("a", 1)]).await;
    e.stop(Stop::Merges, None);
    assert_eq!(e.optimize_without(s, None, false, Some(&by(&[]))).await.unwrap_err().kind(), ErrorKind::Conflict);
    assert_eq!(values(&e, s).await, [1, 1, 7], "where OPTIMIZE is refused nothing is removed");
}

/// NULL is NULL, NaN is NaN whatever its bits, also inside lists and maps; -0 is not 0; a part that lacks a column reads its default.
#[tokio::test]
async fn rows_are_equal_where_they_read_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let e = open(dir.path()).await;
    let float = || Box::new(ColumnType::Float64);
    let nullable = |id, name, ty| ColumnDef { nullable: true, ..column(id, name, ty) };
    let mut wide = def("s", vec![]);
    wide.columns.push(nullable(4, "x", ColumnType::Float64));
    wide.columns.push(nullable(5, "l", ColumnType::Array(float(), true)));
    wide.columns.push(nullable(6, "m", ColumnType::Map(Box::new(ColumnType::String), float(), true)));
    wide.next_column = ColumnId(7);
    let s = e.create_stream(wide.clone(), false).await.unwrap();
    let odd_nan = f64::from_bits(f64::NAN.to_bits() | (1 << 63) | 5);
    let of: Vec<(Option<f64>, Option<f64>)> = vec![
        (None, None),
        (None, None),
        (Some(f64::NAN), Some(1.0)),
        (Some(odd_nan), Some(1.0)),
        (Some(0.0), Some(f64::NAN)),
        (Some(0.0), Some(odd_nan)),
        (Some(-0.0), Some(odd_nan)),
        (Some(0.0), None),
    ];
    let batch = |of: &[(Option<f64>, Option<f64>)], def: &StreamDef| {
        let n = of.len();
        let base = rows(&vec![("a", START.0, 1); n]);
        let inner = Float64Array::from(of.iter().map(|o| o.1).collect::<Vec<_>>());
        let schema = def.row_schema();
        let offsets = arrow::buffer::OffsetBuffer::from_lengths(vec![1; n]);
        let arrow::datatypes::DataType::List(item) = schema.field(4).data_type() else { panic!() };
        let list = ListArray::new(item.clone(), offsets.clone(), Arc::new(inner.clone()), None);
        let arrow::datatypes::DataType::Map(entries, _) = schema.field(5).data_type() else { panic!() };
        let arrow::datatypes::DataType::Struct(fields) = entries.data_type() else { panic!() };
        let keys = StringViewArray::from(vec!["k"; n]);
        let of_map = arrow::array::StructArray::new(fields.clone(), vec![Arc::new(keys), Arc::new(inner)], None);
        let map = MapArray::new(entries.clone(), offsets, of_map, None, false);
        let mut columns: Vec<ArrayRef> = base.columns()[..3].to_vec();
        columns.push(Arc::new(Float64Array::from(of.iter().map(|o| o.0).collect::<Vec<_>>())));
        columns.extend([Arc::new(list) as ArrayRef, Arc::new(map)]);
        columns.extend((columns.len() + 1 < schema.fields().len()).then(|| Arc::new(Int64Array::from(vec![0; n])) as ArrayRef));
        columns.push(Arc::new(TimestampMicrosecondArray::from_value(START.0, n).with_timezone("UTC")));
        RecordBatch::try_new(schema, columns).unwrap()
    };
    e.insert(s, vec![batch(&of, &wide)], v1()).await.unwrap();
    assert_eq!(without(&e, s, false, &by(&[])).await.copies.rows, 3, "a NULL, and two NaN");
    assert_eq!(values(&e, s).await.len(), 5);
    assert_eq!(without(&e, s, false, &by(&[1, 4])).await.copies.rows, 1, "of the two zeros of one sign");
    // With a column that the first part does not have.
    e.alter_stream(s, |d| {
        let mut d = d.clone();
        d.columns.push(column(7, "late", ColumnType::Int64));
        d.next_column = ColumnId(8);
        Ok(d)
    })
    .await
    .unwrap();
    let now = e.read().stream(s).unwrap().def;
    let options = InsertOptions { schema_version: now.schema_version, ..InsertOptions::default() };
    e.insert(s, vec![batch(&[(None, None), (Some(5.0), None)], &now)], options).await.unwrap();
    let copies = Copies { by: None, schema_version: now.schema_version };
    assert_eq!(without(&e, s, true, &copies).await.copies.rows, 1, "0 in what was written before and after");
    assert_eq!(values(&e, s).await.len(), 5);
    assert_eq!(parts(&e, s), 1);
}

/// Rows that a rule removes now are neither copies nor what stays: a row is not lost to one that goes with it. Facts go on to be right.
#[tokio::test]
async fn rows_that_are_due_take_no_part() {
    let dir = tempfile::tempdir().unwrap();
    let e = open(dir.path()).await;
    let rules = vec![delete("ts + 10 days", None, 1)];
    let mut d = with(with(def("s", rules), "merge_with_ttl_timeout", 0), "history_max_snapshot_age_ms", 100 * DAY / 1000);
    d.partition_by = Vec::new();
    let s = e.create_stream(d, false).await.unwrap();
    // Due together with what is not, in one part; a part that is wholly due; the copies that stay.
    insert(&e, s, &[("a", START.0 - 11 * DAY, 1), ("b", START.0, 2)]).await;
    e.flush(None).await.unwrap();
    insert(&e, s, &[("b", START.0 - 12 * DAY, 3)]).await;
    e.flush(None).await.unwrap();
    insert(&e, s, &[("a", START.0, 4), ("b", START.0, 5), ("a", START.0 + DAY, 6)]).await;
    let trial = Trial::Optimize { partition: None, final_: true, copies: Some(by(&[1])) };
    let told = e.preview(s, trial, e.now()).await.unwrap();
    let line = told.iter().find(|l| l.action == "deduplicate").unwrap();
    assert_eq!((line.rows, line.parts, line.bytes_before == line.bytes_after), (2, 1, true));
    assert_eq!(values(&e, s).await, [1, 2, 3, 4, 5, 6], "a preview changes nothing");
    let done = without(&e, s, true, &by(&[1])).await;
    assert_eq!((done.copies.rows, values(&e, s).await), (2, vec![2, 4]));
    let merged: u64 = told.iter().filter(|l| l.action == "merge").map(|l| l.bytes_after).sum();
    assert_eq!(done.bytes_after, merged, "{told:?}");
    e.advance_clock(Interval::days(10)).unwrap();
    e.settle(None).await.unwrap();
    assert_eq!(values(&e, s).await, Vec::<i64>::new(), "what was kept goes when it is due");
    assert_eq!(at(&e, s, Sn(3)).await, [6], "a copy that was removed ages as others do");
}

/// A tag and a branch made before keep the copies, and main's merge takes nothing from them.
#[tokio::test]
async fn refs_keep_copies() {
    let dir = tempfile::tempdir().unwrap();
    let e = open(dir.path()).await;
    let s = e.create_stream(def("s", vec![]), false).await.unwrap();
    insert(&e, s, &[row("a", 1), row("a", 1)]).await;
    e.create_ref(s, tag("t")).await.unwrap();
    e.create_ref(s, branch("b")).await.unwrap();
    let on_branch = InsertOptions { branch: Some("b".to_owned()), ..v1() };
    e.insert(s, vec![rows(&[row("a", 1)])], on_branch).await.unwrap();
    assert_eq!(without(&e, s, true, &by(&[])).await.copies.rows, 1);
    forget_the_past(&e, s).await;
    e.optimize(s, None, true).await.unwrap();
    let of = async |name: &str| values_at(&e, s, AsOf::Name(name.into())).await.unwrap();
    assert_eq!((values(&e, s).await, of("t").await, of("b").await), (vec![1], vec![1, 1], vec![1, 1, 1]));
}

/// Copies are sought while others write, delete and merge: nothing is lost, and in the end there is one of each.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn copies_go_while_rows_come_and_parts_are_merged() {
    let dir = tempfile::tempdir().unwrap();
    let e = open(dir.path()).await;
    let s = e.create_stream(with(def("s", vec![]), "max_parts_to_merge_at_once", 4), false).await.unwrap();
    for round in 0..6i64 {
        let write = async {
            for k in 0..4 {
                let of: Vec<_> = (0..200).map(|v| row("a", v % 150 + round + k)).collect();
                insert(&e, s, &of).await;
                e.flush(None).await.unwrap();
            }
        };
        let copies = by(&[]);
        let dedup = async {
            for _ in 0..3 {
                without(&e, s, false, &copies).await;
            }
        };
        tokio::join!(write, dedup, async { _ = e.optimize(s, None, round % 2 == 0).await.unwrap() }, async {
            e.delete(deleting(&e, s, &format!("v = {}", round * 3))).await.unwrap();
        });
        let mut found = values(&e, s).await;
        found.dedup();
        assert!(found.len() >= 150, "round {round}: {}", found.len());
    }
    without(&e, s, true, &by(&[])).await;
    let found = values(&e, s).await;
    let mut each = found.clone();
    each.dedup();
    assert_eq!((found.len(), *found.last().unwrap()), (each.len(), 157), "{found:?}");
}

const STEPS: usize = 6;

async fn step(e: &Engine, s: &mut StreamId, n: usize) -> Result<()> {
    let batch = |v: i64| vec![rows(&[row("a", v), row("b", 1), row("b", 1)])];
    match n {
        0 => *s = e.create_stream(def("s", vec![]), false).await?,
        1 | 2 => _ = e.insert(*s, batch(n as i64 + 1), v1()).await?,
        3 => _ = e.optimize_without(*s, None, true, Some(&by(&[]))).await?,
        4 => _ = e.insert(*s, batch(9), v1()).await?,
        _ => _ = e.optimize_without(*s, None, false, Some(&by(&[1]))).await?,
    }
    Ok(())
}

/// The power goes at every call: copies are removed or they are not, and every cut reads what it read.
#[tokio::test]
async fn power_goes_at_every_call_while_copies_are_removed() {
    let after: [&[i64]; STEPS + 2] = [&[], &[], &[1, 1, 2], &[1, 1, 1, 1, 2, 3], &[1, 2, 3], &[1, 1, 1, 2, 3, 9], &[1, 2], &[1, 2]];
    let scenario = async |machine: &CrashDisk| match open_on(machine, START).await {
        Ok(e) => {
            let mut s = StreamId::default();
            steps(STEPS, async |n| step(&e, &mut s, n).await).await
        }
        Err(_) => 0,
    };
    let verify = async |machine: &CrashDisk, e: Arc<Engine>, done: usize, loss: Loss| {
        let Some(s) = e.read().streams().next().map(|s| s.def.id) else {
            assert_eq!(done, 0, "{loss}");
            return;
        };
        let found = values(&e, s).await;
        assert!([after[done], after[done + 1]].contains(&&found[..]), "{loss}: after {done} steps there is {found:?}");
        let head = e.read().stream(s).unwrap().head_sn.0;
        let cuts = async || {
            let mut all = Vec::new();
            for sn in 1..=head {
                all.push(at(&e, s, Sn(sn)).await);
            }
            all
        };
        let before = cuts().await;
        for (cut, expected) in before.iter().zip(&after[2..]) {
            assert_eq!(cut, expected, "{loss}");
        }
        e.settle(None).await.unwrap();
        e.optimize(s, None, true).await.unwrap();
        assert_eq!(cuts().await, before, "{loss}");
        // Parts that were merged are swept.
        e.settle(None).await.unwrap();
        whole(machine, &["data"], &e, loss).await;
    };
    let open = async |machine: &CrashDisk, _: &usize| open_on(machine, START).await;
    assert_eq!(cut_everywhere(scenario, open, verify).await, STEPS);
}

/// proves D2: once the copies are gone, the statement is waited for, though it goes on to work that could be given up.
#[tokio::test]
async fn a_statement_that_has_removed_copies_is_not_cancelled() {
    let machine = CrashDisk::default();
    let e = open_on(&machine, START).await.unwrap();
    let s = e.create_stream(def("s", vec![]), false).await.unwrap();
    for v in [1, 2] {
        insert(&e, s, &[row("a", 1), row("a", v)]).await;
        e.flush(None).await.unwrap();
    }
    let removed = async {
        while e.read().stream(s).unwrap().head_sn < Sn(3) {
            tokio::task::yield_now().await;
        }
    };
    let copies = by(&[]);
    let done = ebb_storage::decision::unless(removed, e.optimize_without(s, None, true, Some(&copies))).await;
    assert_eq!(done.map(|d| d.unwrap().copies.rows), Some(2), "cancelled, and copies are gone");
    assert_eq!(values(&e, s).await, [1, 2]);
}
