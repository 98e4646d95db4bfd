//! One slice through the engine: create, insert, read, flush, reopen, age, merge.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod support;

use ebb_engine::{Clock, Engine, ErrorKind, InsertOptions, Stop, Timestamp};
use ebb_storage::{
    ids::{BranchId, Fingerprint, SchemaVersion},
    interval::Interval,
    manifest::edit::PartEvent,
    stream_def::ColumnTtl,
};
use support::*;

fn at(day: i64) -> i64 {
    START.0 + day * DAY
}

#[tokio::test]
async fn rows_are_there_at_once_and_after_flush_and_after_reopening() {
    let dir = tempfile::tempdir().unwrap();
    let e = open(dir.path()).await;
    let s = e.create_stream(def("s", vec![]), false).await.unwrap();
    let first = e.insert(s, vec![rows(&[("b", at(0), 1), ("a", at(40), 2)])], v1()).await.unwrap();
    assert_eq!((first.sn.0, first.rows), (1, 2));
    assert_eq!(read(&e, s).await, [(1, 1), (2, 1)]);
    e.flush(Some(s)).await.unwrap();
    assert_eq!((parts(&e, s), read(&e, s).await), (2, vec![(1, 1), (2, 1)]));
    e.insert(s, vec![rows(&[("a", at(0), 3)])], v1()).await.unwrap();
    // Dropped without close: as after a crash.
    drop(e);
    let e = open(dir.path()).await;
    assert_eq!(read(&e, s).await, [(1, 1), (2, 1), (3, 2)]);
    let second = e.insert(s, vec![rows(&[("a", at(0), 4)])], v1()).await.unwrap();
    assert_eq!(second.sn.0, 3);
    e.close().await.unwrap();
    drop(e);
    let e = open(dir.path()).await;
    assert_eq!(values(&e, s).await, [1, 2, 3, 4]);
}

#[tokio::test]
async fn a_second_opening_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let e = open(dir.path()).await;
    let again = Engine::open(options(dir.path(), Clock::simulated(START), false)).await.map(|_| ()).unwrap_err();
    assert_eq!(again.kind(), ErrorKind::Conflict);
    drop(e);
}

#[tokio::test]
async fn a_key_inserts_once_also_after_reopening() {
    let dir = tempfile::tempdir().unwrap();
    let e = open(dir.path()).await;
    let s = e.create_stream(def("s", vec![]), false).await.unwrap();
    let keyed = InsertOptions { schema_version: SchemaVersion(1), key: Some("k1".to_owned()), ..InsertOptions::default() };
    let first = e.insert(s, vec![rows(&[("a", at(0), 1)])], keyed.clone()).await.unwrap();
    assert_eq!(e.insert(s, vec![rows(&[("a", at(0), 1)])], keyed.clone()).await.unwrap(), first);
    e.flush(None).await.unwrap();
    drop(e);
    let e = open(dir.path()).await;
    assert_eq!(e.insert(s, vec![rows(&[("a", at(0), 1)])], keyed).await.unwrap(), first);
    assert_eq!(values(&e, s).await, [1]);
}

#[tokio::test]
async fn a_staged_insert_is_all_or_nothing_and_its_parts_know_their_sn() {
    let dir = tempfile::tempdir().unwrap();
    let e = open(dir.path()).await;
    let s = e.create_stream(def("s", vec![]), false).await.unwrap();
    e.insert(s, vec![rows(&[("a", at(0), 1)])], v1()).await.unwrap();
    let mut staged = e.stage(s, v1()).await.unwrap();
    staged.push(rows(&[("b", at(0), 2), ("b", at(35), 3)])).await.unwrap();
    assert_eq!(values(&e, s).await, [1]);
    assert_eq!(staged.finish().await.unwrap().sn.0, 2);
    assert_eq!(read(&e, s).await, [(1, 1), (2, 2), (3, 2)]);
    let mut given_up = e.stage(s, v1()).await.unwrap();
    given_up.push(rows(&[("c", at(0), 9)])).await.unwrap();
    drop(given_up);
    drop(e);
    // Replay names the parts; the flush lists them; a merge writes their sn out.
    let e = open(dir.path()).await;
    assert_eq!(read(&e, s).await, [(1, 1), (2, 2), (3, 2)]);
    e.optimize(s, None, true).await.unwrap();
    assert_eq!(read(&e, s).await, [(1, 1), (2, 2), (3, 2)]);
    assert_eq!(parts(&e, s), 2);
    e.settle(None).await.unwrap();
    assert_eq!(files(dir.path()), 2, "what nobody names is gone");
}

#[tokio::test]
async fn a_transaction_is_seen_whole() {
    let dir = tempfile::tempdir().unwrap();
    let e = open(dir.path()).await;
    let a = e.create_stream(def("a", vec![]), false).await.unwrap();
    let b = e.create_stream(def("b", vec![]), false).await.unwrap();
    let mut t = e.transaction();
    t.insert(a, vec![rows(&[("x", at(0), 1)])], v1()).await.unwrap();
    t.insert(b, vec![rows(&[("x", at(0), 2)])], v1()).await.unwrap();
    t.insert(a, vec![rows(&[("x", at(0), 3)])], v1()).await.unwrap();
    assert_eq!(t.pending()[&a].of(BranchId::MAIN).rows.len(), 2);
    assert_eq!((values(&e, a).await, values(&e, b).await), (vec![], vec![]));
    let done = t.commit().await.unwrap();
    assert_eq!(done.iter().map(|i| i.sn.0).collect::<Vec<_>>(), [1, 1, 2]);
    assert_eq!((values(&e, a).await, values(&e, b).await), (vec![1, 3], vec![2]));
}

/// proves F12
#[tokio::test]
async fn a_transaction_reads_its_staged_parts_until_nobody_does() {
    let dir = tempfile::tempdir().unwrap();
    let e = open(dir.path()).await;
    let s = e.create_stream(def("s", vec![]), false).await.unwrap();
    e.insert(s, vec![rows(&[("a", at(0), 1)])], v1()).await.unwrap();
    e.settle(None).await.unwrap();
    let stage = async |t: &mut ebb_engine::Transaction, n| {
        let mut staged = e.stage(s, v1()).await.unwrap();
        staged.push(rows(&[("b", at(0), n)])).await.unwrap();
        t.add_staged(staged).await.unwrap()
    };
    let own = |t: &ebb_engine::Transaction| {
        let view = e.read();
        view.with_pending(view.stream(s).unwrap(), &t.pending()[&s])
    };
    let mut t = e.transaction();
    assert_eq!(stage(&mut t, 2).await, 1);
    let one = t.savepoint();
    stage(&mut t, 3).await;
    let mut seen = own(&t).parts;
    assert_eq!(seen.iter().map(|p| (p.meta.rows, p.meta.max_sn().0)).collect::<Vec<_>>(), [(1, 1), (1, 2), (1, 2)]);
    assert_eq!(values(&e, s).await, [1], "others see nothing of it");
    // The part that was rolled back stays as long as it is read.
    t.roll_back_to(one);
    assert_eq!(own(&t).parts.len(), 2);
    e.settle(None).await.unwrap();
    assert_eq!(files(dir.path()), 3);
    let last = seen.pop();
    drop(seen);
    e.settle(None).await.unwrap();
    assert_eq!(files(dir.path()), 3);
    drop(last);
    e.settle(None).await.unwrap();
    assert_eq!(files(dir.path()), 2);
    // One that was committed, then merged away, stays too.
    let seen = own(&t);
    t.commit().await.unwrap();
    assert_eq!(values(&e, s).await, [1, 2]);
    e.optimize(s, None, true).await.unwrap();
    e.settle(None).await.unwrap();
    assert_eq!(files(dir.path()), 3);
    drop(seen);
    e.settle(None).await.unwrap();
    assert_eq!((files(dir.path()), values(&e, s).await), (1, vec![1, 2]));
}

/// proves T3, T6, T7, T14, F5, F7
#[tokio::test]
async fn due_rows_leave_whole_parts_are_dropped_unread_and_what_is_left_is_quiet() {
    let dir = tempfile::tempdir().unwrap();
    let e = open(dir.path()).await;
    let s = e.create_stream(def("s", vec![delete("ts + 10 days", None, 1)]), false).await.unwrap();
    e.insert(s, vec![rows(&[("a", at(0), 1), ("a", at(8), 2), ("b", at(25), 3)])], v1()).await.unwrap();
    e.settle(None).await.unwrap();
    assert_eq!(values(&e, s).await, [1, 2, 3]);
    // Equality is due.
    e.advance_clock(Interval::days(10)).unwrap();
    assert_eq!(values(&e, s).await, [1, 2, 3], "nothing leaves before a job runs");
    e.settle(None).await.unwrap();
    assert_eq!(values(&e, s).await, [2, 3]);
    let log = e.part_log().await.unwrap().len();
    e.settle(None).await.unwrap();
    assert_eq!(e.part_log().await.unwrap().len(), log, "an idle cycle writes nothing");
    e.advance_clock(Interval::days(40)).unwrap();
    e.settle(None).await.unwrap();
    assert_eq!(values(&e, s).await, [] as [i64; 0]);
    assert_eq!((parts(&e, s), files(dir.path())), (0, 0));
    assert!(e.part_log().await.unwrap().iter().any(|r| r.event == PartEvent::DropPart && r.rows_read == 0));
    assert!(e.lifecycle_log().await.unwrap().iter().any(|r| r.rows_before > r.rows_after && r.rule.contains("10 days")));
    assert_eq!(e.insert(s, vec![rows(&[("a", at(60), 9)])], v1()).await.unwrap().sn.0, 2, "sns go on");
}

/// proves T11, T12, F1, F2
#[tokio::test]
async fn two_rules_of_one_time_take_only_their_own_rows_and_survivors_are_not_rewritten_again() {
    let dir = tempfile::tempdir().unwrap();
    let e = open(dir.path()).await;
    let rules = vec![delete("ts + 1 days", Some("v = 1"), 1), delete("ts + 1 days", Some("v = 2"), 2)];
    let s = e.create_stream(with(def("s", rules), "merge_with_ttl_timeout", 0), false).await.unwrap();
    e.insert(s, vec![rows(&[("a", at(0), 1), ("a", at(-1), 2), ("a", at(0), 2), ("a", at(-9), 3)])], v1()).await.unwrap();
    e.settle(None).await.unwrap();
    assert_eq!(values(&e, s).await, [1, 2, 3]);
    e.advance_clock(Interval::days(1)).unwrap();
    e.settle(None).await.unwrap();
    assert_eq!(values(&e, s).await, [3]);
    let log = e.part_log().await.unwrap().len();
    for _ in 0..5 {
        e.advance_clock(Interval::days(1)).unwrap();
        e.settle(None).await.unwrap();
    }
    assert_eq!(e.part_log().await.unwrap().len(), log);
}

/// proves T4
#[tokio::test]
async fn a_partition_is_pruned_once_in_merge_with_ttl_timeout() {
    let dir = tempfile::tempdir().unwrap();
    let e = open(dir.path()).await;
    let s = e.create_stream(def("s", vec![delete("ts + 1 days", None, 1)]), false).await.unwrap();
    let hour = DAY / 24;
    e.insert(s, vec![rows(&[("a", at(0), 1), ("a", at(0) + hour, 2), ("a", at(0) + 6 * hour, 3)])], v1()).await.unwrap();
    e.advance_clock(Interval::days(1)).unwrap();
    e.settle(None).await.unwrap();
    assert_eq!(values(&e, s).await, [2, 3], "the first prune waits for nothing");
    e.advance_clock(Interval::seconds(3600)).unwrap();
    e.settle(None).await.unwrap();
    assert_eq!(values(&e, s).await, [2, 3], "four hours have not passed");
    assert_eq!(e.explain_lifecycle(s, e.now()).unwrap()[0].state, "waiting_timeout");
    drop(e);
    // The timer survives.
    let e = Engine::open(options(dir.path(), Clock::simulated(Timestamp(at(1) + 2 * hour)), false)).await.unwrap();
    e.settle(None).await.unwrap();
    assert_eq!(values(&e, s).await, [2, 3]);
    e.advance_clock(Interval::seconds(2 * 3600)).unwrap();
    e.settle(None).await.unwrap();
    assert_eq!(values(&e, s).await, [3]);
}

/// proves T13, F6
#[tokio::test]
async fn a_new_rule_is_measured_and_then_applied() {
    let dir = tempfile::tempdir().unwrap();
    let e = open(dir.path()).await;
    let s = e.create_stream(def("s", vec![]), false).await.unwrap();
    e.insert(s, vec![rows(&[("a", at(0), 1), ("a", at(9), 2)])], v1()).await.unwrap();
    e.flush(None).await.unwrap();
    e.advance_clock(Interval::days(5)).unwrap();
    let change = |d: &ebb_storage::stream_def::StreamDef| {
        let mut d = d.clone();
        d.policy.ttl = vec![delete("ts + 5 days", None, 7)];
        Ok(d)
    };
    let files_before = files(dir.path());
    e.alter_stream(s, change).await.unwrap();
    assert_eq!(files(dir.path()), files_before);
    assert_eq!(e.explain_lifecycle(s, e.now()).unwrap()[0].state, "measuring");
    e.settle(None).await.unwrap();
    assert_eq!(values(&e, s).await, [2]);
}

#[tokio::test]
async fn stops_hold_back_what_they_name() {
    let dir = tempfile::tempdir().unwrap();
    let e = open(dir.path()).await;
    let s = e.create_stream(def("s", vec![delete("ts + 1 days", None, 1)]), false).await.unwrap();
    e.insert(s, vec![rows(&[("a", at(-5), 1), ("a", at(5), 2)])], v1()).await.unwrap();
    e.stop(Stop::Merges, None);
    e.settle(None).await.unwrap();
    assert_eq!(values(&e, s).await, [1, 2]);
    assert!(e.optimize(s, None, true).await.unwrap_err().message().contains("STOP MERGES"));
    e.start(Stop::Merges, None);
    e.stop(Stop::TtlMerges, Some(s));
    e.settle(None).await.unwrap();
    assert_eq!(values(&e, s).await, [1, 2]);
    e.start(Stop::TtlMerges, Some(s));
    e.settle(None).await.unwrap();
    assert_eq!(values(&e, s).await, [2]);
}

/// proves T15
#[tokio::test]
async fn optimize_final_makes_one_part_of_a_partition_and_applies_what_is_due() {
    let dir = tempfile::tempdir().unwrap();
    let e = open(dir.path()).await;
    let s = e.create_stream(def("s", vec![delete("ts + 1 days", None, 1)]), false).await.unwrap();
    for v in 0..5 {
        e.insert(s, vec![rows(&[("a", at(v), v), ("b", at(0), 10 + v)])], v1()).await.unwrap();
        e.flush(None).await.unwrap();
    }
    e.advance_clock(Interval::days(1)).unwrap();
    let done = e.optimize(s, None, true).await.unwrap();
    assert_eq!((done.parts_before, done.parts_after, done.rows_after), (5, 1, 4));
    assert_eq!(read(&e, s).await, [(1, 2), (2, 3), (3, 4), (4, 5)]);
}

#[tokio::test]
async fn truncate_and_drop_leave_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let e = open(dir.path()).await;
    let s = e.create_stream(def("s", vec![]), false).await.unwrap();
    e.insert(s, vec![rows(&[("a", at(0), 1)])], v1()).await.unwrap();
    e.flush(None).await.unwrap();
    e.insert(s, vec![rows(&[("a", at(0), 2)])], v1()).await.unwrap();
    assert_eq!(e.truncate(s).await.unwrap().0, 3);
    assert_eq!(values(&e, s).await, [] as [i64; 0]);
    e.insert(s, vec![rows(&[("a", at(0), 3)])], v1()).await.unwrap();
    drop(e);
    let e = open(dir.path()).await;
    assert_eq!(read(&e, s).await, [(3, 4)]);
    forget_the_past(&e, s).await;
    e.settle(None).await.unwrap();
    assert_eq!(files(dir.path()), 1);
    e.drop_stream(s).await.unwrap();
    e.settle(None).await.unwrap();
    assert_eq!(files(dir.path()), 0);
    assert_eq!(e.insert(s, vec![rows(&[("a", at(0), 4)])], v1()).await.unwrap_err().kind(), ErrorKind::NotFound);
}

/// proves F10, F12: what a reader holds stays until it ends.
#[tokio::test]
async fn a_reader_keeps_its_parts() {
    let dir = tempfile::tempdir().unwrap();
    let e = open(dir.path()).await;
    let s = e.create_stream(def("s", vec![]), false).await.unwrap();
    for v in 0..3 {
        e.insert(s, vec![rows(&[("a", at(0), v)])], v1()).await.unwrap();
        e.flush(None).await.unwrap();
    }
    let view = e.read();
    e.optimize(s, None, true).await.unwrap();
    e.settle(None).await.unwrap();
    assert_eq!(files(dir.path()), 4);
    drop(view);
    e.settle(None).await.unwrap();
    assert_eq!(files(dir.path()), 1);
}

/// Messages name streams, not their numbers, and say nothing of commits.
#[tokio::test]
async fn errors_name_the_stream() {
    let dir = tempfile::tempdir().unwrap();
    let e = open(dir.path()).await;
    let a = e.create_stream(def("a", vec![]), false).await.unwrap();
    e.create_stream(def("b", vec![]), false).await.unwrap();
    let taken = e.rename_stream(a, "default", "b").await.unwrap_err();
    assert_eq!(taken.to_string(), "stream default.b exists already: choose another name or DROP it first");
    let mut transaction = e.transaction();
    transaction.insert(a, vec![rows(&[("a", START.0, 1)])], v1()).await.unwrap();
    e.drop_stream(a).await.unwrap();
    let gone = "stream default.a was dropped meanwhile";
    assert_eq!(transaction.commit().await.unwrap_err().to_string(), gone);
    assert_eq!(e.insert(a, vec![rows(&[("a", START.0, 1)])], v1()).await.unwrap_err().to_string(), gone);
    assert_eq!(e.rename_stream(a, "default", "c").await.unwrap_err().to_string(), gone);
    assert_eq!(e.truncate(a).await.unwrap_err().to_string(), gone);
    assert_eq!(e.drop_stream(a).await.unwrap_err().to_string(), gone);
    assert_eq!(e.explain_lifecycle(a, e.now()).unwrap_err().to_string(), gone);
}

#[tokio::test]
async fn a_partition_is_dropped_with_all_it_had_and_takes_rows_again() {
    let dir = tempfile::tempdir().unwrap();
    let e = open(dir.path()).await;
    let s = e.create_stream(def("s", vec![]), false).await.unwrap();
    let first = (START.0 / (30 * DAY)).to_string();
    let missing = e.drop_partition(s, &first).await.unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::NotFound);
    assert!(missing.message().contains(&first), "{missing}");
    e.insert(s, vec![rows(&[("a", at(0), 1), ("a", at(40), 2)])], v1()).await.unwrap();
    e.flush(None).await.unwrap();
    // Rows of the tail belong to it too.
    e.insert(s, vec![rows(&[("a", at(1), 3), ("a", at(41), 4)])], v1()).await.unwrap();
    let held = e.read();
    let sn = e.drop_partition(s, &first).await.unwrap().unwrap();
    assert_eq!((sn.0, values(&e, s).await), (3, vec![2, 4]));
    assert_eq!(read_view(&held, s).await.iter().map(|r| r.0).collect::<Vec<_>>(), [1, 2, 3, 4], "a reader keeps its cut");
    drop(held);
    e.insert(s, vec![rows(&[("a", at(1), 5)])], v1()).await.unwrap();
    assert_eq!(values(&e, s).await, [2, 4, 5]);
    e.settle(None).await.unwrap();
    assert_eq!(values(&e, s).await, [2, 4, 5]);
    assert_eq!(files(dir.path()), parts(&e, s) + 2, "what can be read is kept");
    forget_the_past(&e, s).await;
    e.settle(None).await.unwrap();
    assert_eq!(files(dir.path()), parts(&e, s));
    let told = e.part_log().await.unwrap();
    let unneeded = "nothing that can be read needs it";
    assert_eq!(told.iter().filter(|r| r.event == PartEvent::DropPart && r.reason == unneeded).count(), 2);
}

#[tokio::test]
async fn materialize_ttl_measures_and_removes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let e = open(dir.path()).await;
    let s = e.create_stream(def("s", vec![]), false).await.unwrap();
    e.insert(s, vec![rows(&[("a", at(0), 1), ("b", at(40), 2)])], v1()).await.unwrap();
    e.flush(None).await.unwrap();
    let rule = |d: &ebb_storage::stream_def::StreamDef| {
        let mut d = d.clone();
        d.policy.ttl = vec![delete("ts + 1 days", Some("host = 'a'"), 5)];
        Ok(d)
    };
    e.alter_stream(s, rule).await.unwrap();
    e.advance_clock(Interval::days(100)).unwrap();
    let measured = || e.manifest().stream(s).unwrap().parts.values().map(|p| p.facts.len()).collect::<Vec<_>>();
    assert_eq!(measured(), [0, 0]);
    let first = (START.0 / (30 * DAY)).to_string();
    e.materialize_ttl(s, Some(&first)).await.unwrap();
    assert_eq!(measured(), [1, 0]);
    e.materialize_ttl(s, None).await.unwrap();
    assert_eq!(measured(), [1, 1]);
    assert_eq!(values(&e, s).await, [1, 2]);
    let missing = e.materialize_ttl(s, Some("nowhere")).await.unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::NotFound);
}

/// A column's TTL that alone is given or changed is the rule from then on: facts are counted by it, and rewrites reset by it.
#[tokio::test]
async fn a_column_s_ttl_that_alone_is_changed_is_the_rule_from_then_on() {
    let dir = tempfile::tempdir().unwrap();
    let e = open(dir.path()).await;
    let s = e.create_stream(with(def("s", vec![]), "merge_with_ttl_timeout", 0), false).await.unwrap();
    let ttl = async |days: i64| {
        let ttl = ColumnTtl { when: format!("ts + {days} days"), fingerprint: Fingerprint(days as u64) };
        e.alter_stream(s, |d| {
            let mut d = d.clone();
            d.columns[2].ttl = Some(ttl.clone());
            Ok(d)
        })
        .await
        .unwrap();
    };
    e.insert(s, vec![rows(&[("a", START.0, 1), ("a", START.0 + 9 * DAY, 2)])], v1()).await.unwrap();
    e.flush(None).await.unwrap();
    e.settle(None).await.unwrap();
    ttl(1).await;
    e.settle(None).await.unwrap();
    e.advance_clock(Interval::days(1)).unwrap();
    e.settle(None).await.unwrap();
    assert_eq!(values(&e, s).await, [0, 2]);
    ttl(1000).await;
    e.advance_clock(Interval::days(100)).unwrap();
    e.optimize(s, None, true).await.unwrap();
    assert_eq!(values(&e, s).await, [0, 2], "by the longer");
    ttl(30).await;
    e.optimize(s, None, true).await.unwrap();
    assert_eq!(values(&e, s).await, [0, 0], "by the shorter");
}
