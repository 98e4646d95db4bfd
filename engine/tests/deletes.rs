//! DELETE as a record: later cuts do without the rows, earlier ones keep them, whatever becomes of the parts.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests may unwrap")]

mod support;

use ebb_engine::{AsOf, Clock, Engine, ErrorKind, InsertOptions, Result, history::RollbackTo};
use ebb_storage::{
    codec::Codec,
    ids::{BranchId, SchemaVersion, Sn, StreamId},
    interval::Interval,
    manifest::edit::PartEvent,
    part::meta::RowsAt,
    stream_def::StreamDef,
    testkit::crash_store::CrashDisk,
};
use power::{Loss, cut_everywhere, steps, whole};
use support::*;

/// Rows `from..to` of one partition, v counted on, as one record.
async fn insert(e: &Engine, s: StreamId, values: std::ops::Range<i64>) -> Sn {
    let of: Vec<_> = values.map(|v| (if v % 2 == 0 { "even" } else { "odd" }, START.0 + v, v)).collect();
    e.insert(s, vec![rows(&of)], v1()).await.unwrap().sn
}

async fn at(e: &Engine, s: StreamId, sn: Sn) -> Vec<i64> {
    values_at(e, s, AsOf::Sn(sn)).await.unwrap()
}

/// proves U13, U14: rows that a DELETE took are there for earlier cuts, through flushes, merges, recompression and a reopening.
#[tokio::test]
async fn earlier_cuts_keep_deleted_rows_through_every_change_of_layout() {
    let dir = tempfile::tempdir().unwrap();
    let e = open(dir.path()).await;
    let s = e.create_stream(def("s", vec![]), false).await.unwrap();
    let first = insert(&e, s, 0..10).await;
    let second = insert(&e, s, 10..20).await;
    let deleted = e.delete(deleting(&e, s, "host = 'even'")).await.unwrap();
    assert_eq!((deleted.rows, deleted.sn), (10, Some(Sn(3))));
    // Nothing matches any more: no record.
    let again = e.delete(deleting(&e, s, "host = 'even'")).await.unwrap();
    assert_eq!((again.rows, again.sn), (0, None));
    let third = insert(&e, s, 20..24).await;
    assert_eq!(third, Sn(4));
    let odd: Vec<i64> = (0..20).filter(|v| v % 2 == 1).collect();
    let head: Vec<i64> = odd.iter().copied().chain(20..24).collect();
    let check = async |e: &Engine| {
        assert_eq!(values(e, s).await, head);
        assert_eq!(at(e, s, first).await, (0..10).collect::<Vec<_>>());
        assert_eq!(at(e, s, second).await, (0..20).collect::<Vec<_>>());
        assert_eq!(at(e, s, Sn(3)).await, odd);
        assert_eq!(at(e, s, third).await, head);
    };
    check(&e).await;
    e.flush(None).await.unwrap();
    check(&e).await;
    e.optimize(s, None, true).await.unwrap();
    assert_eq!(parts(&e, s), 1);
    check(&e).await;
    drop(e);
    let e = open(dir.path()).await;
    check(&e).await;
    let refused = values_at(&e, s, AsOf::Sn(Sn(99))).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::NotFound, "{refused}");
}

/// proves I8: whoever reads an earlier generation of a part needs the sets beside it, whatever became of the part since.
#[tokio::test]
async fn sets_of_a_part_stay_while_an_earlier_generation_of_it_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let e = open(dir.path()).await;
    let rules = vec![tiered::recompress("ts + 5 days", Codec::Zstd(3), 1)];
    let def = with(with(def("s", rules), "flush_threshold_count", 1_000_000), "merge_with_recompression_ttl_timeout", 0);
    let s = e.create_stream(StreamDef { order_by: vec!["ts".to_owned()], primary_key: vec!["ts".to_owned()], ..def }, false).await.unwrap();
    // By turns, so that no run of rows describes them in few bytes.
    let host = |v: i64| if (v.wrapping_mul(2_654_435_761) >> 7) & 1 == 0 { "even" } else { "odd" };
    let of: Vec<_> = (0..30_000).map(|v| (host(v), START.0 + v, v)).collect();
    e.insert(s, vec![rows(&of)], v1()).await.unwrap();
    e.flush(None).await.unwrap();
    e.delete(deleting(&e, s, "host = 'even'")).await.unwrap();
    e.flush(None).await.unwrap();
    let part = || e.read().state(s).unwrap().parts.values().next().unwrap().clone();
    let first = part();
    assert!(matches!(first.deletions[0].rows, RowsAt::Beside { .. }));
    let left = values(&e, s).await;
    let early = e.read();
    e.advance_clock(Interval::days(6)).unwrap();
    e.settle(None).await.unwrap();
    let second = part();
    assert!(second.id == first.id && second.placement.generation != first.placement.generation, "it was recompressed");
    assert_eq!(second.placement.generation.0 >> 32, u64::from(e.manifest().epoch.0), "I2: no other opening gives out that key");
    insert(&e, s, 40_000..40_002).await;
    e.flush(None).await.unwrap();
    e.optimize(s, None, true).await.unwrap();
    assert!(part().id != first.id && parts(&e, s) == 1, "and merged away");
    e.settle(None).await.unwrap();
    let again: Vec<i64> = read_view(&early, s).await.into_iter().map(|(v, _)| v).collect();
    assert_eq!(again, left);
    drop(early);
    e.settle(None).await.unwrap();
    let of_it = |p: &std::path::PathBuf| p.file_name().unwrap().to_string_lossy().starts_with(&format!("{:020}.", first.id.0));
    assert_eq!(walk(dir.path()).into_iter().filter(of_it).count(), 0, "then nothing is left of it");
}

/// Large sets lie beside the manifest and are there again after a reopening; DROP PARTITION and TRUNCATE are records as well.
#[tokio::test]
async fn large_sets_partitions_and_whole_streams_are_records_too() {
    let dir = tempfile::tempdir().unwrap();
    let e = open(dir.path()).await;
    let s = e.create_stream(def("s", vec![]), false).await.unwrap();
    let n = 60_000;
    // By turns, so that no run of rows describes them in few bytes.
    let host = |v: i64| if (v.wrapping_mul(2_654_435_761) >> 7) & 1 == 0 { "even" } else { "odd" };
    let of: Vec<_> = (0..n).map(|v| (host(v), START.0 + v, v)).collect();
    let mut by_v = with(def("big", vec![]), "flush_threshold_count", 1_000_000);
    by_v.order_by = vec!["ts".to_owned()];
    by_v.primary_key = vec!["ts".to_owned()];
    let big = e.create_stream(by_v, false).await.unwrap();
    let all = e.insert(big, vec![rows(&of)], v1()).await.unwrap().sn;
    let odd: Vec<i64> = (0..n).filter(|v| host(*v) == "odd").collect();
    let deleted = e.delete(deleting(&e, big, "host = 'even'")).await.unwrap();
    assert_eq!(deleted.rows, (n as usize - odd.len()) as u64);
    e.flush(None).await.unwrap();
    let state = e.read().state(big).unwrap();
    let beside = state.parts.values().flat_map(|p| &p.deletions).filter(|d| matches!(d.rows, RowsAt::Beside { .. })).count();
    assert_eq!(beside, 1, "the set is too large for the manifest");
    insert(&e, s, 0..4).await;
    let partition = state.parts.values().next().unwrap().partition.clone();
    let dropped = e.drop_partition(s, &partition).await.unwrap().unwrap();
    assert_eq!(values(&e, s).await, Vec::<i64>::new());
    insert(&e, s, 4..6).await;
    let truncated = e.truncate(big).await.unwrap();
    for _ in 0..2 {
        assert_eq!(values(&e, big).await, Vec::<i64>::new());
        assert_eq!(at(&e, big, Sn(truncated.0 - 1)).await, odd);
        assert_eq!(at(&e, big, all).await.len(), n as usize);
        assert_eq!(values(&e, s).await, [4, 5]);
        assert_eq!(at(&e, s, Sn(dropped.0 - 1)).await, [0, 1, 2, 3]);
        e.settle(None).await.unwrap();
    }
    drop(e);
    let e = open(dir.path()).await;
    assert_eq!(at(&e, big, Sn(truncated.0 - 1)).await, odd);
    assert_eq!(at(&e, s, Sn(dropped.0 - 1)).await, [0, 1, 2, 3]);
    drop(e);
    let clean = ebb_engine::inspect::check(dir.path()).await.unwrap();
    assert!(clean.is_clean(), "{clean:?}");
    // Without the set deleted rows would come back: it is missed.
    let set = walk(dir.path()).into_iter().find(|p| p.extension().is_some_and(|x| x == "del")).unwrap();
    std::fs::remove_file(&set).unwrap();
    let damaged = ebb_engine::inspect::check(dir.path()).await.unwrap();
    assert!(damaged.damage.iter().any(|d| d.contains(".del is missing")), "{damaged:?}");
    let refused = Engine::open(options(dir.path(), Clock::simulated(START), false)).await.err().unwrap();
    assert_eq!(refused.kind(), ErrorKind::Corrupt, "{refused}");
}

fn walk(dir: &std::path::Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(dir).unwrap().map(|e| e.unwrap().path());
    entries.flat_map(|p| if p.is_dir() { walk(&p) } else { vec![p] }).collect()
}

/// A DELETE that runs while its parts are merged names what is there, and a merge carries what was deleted while it ran.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn deletes_and_merges_at_once_lose_and_revive_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let e = open(dir.path()).await;
    let s = e.create_stream(with(def("s", vec![]), "max_parts_to_merge_at_once", 4), false).await.unwrap();
    let mut expected: Vec<i64> = Vec::new();
    for round in 0..8i64 {
        for k in 0..4 {
            let from = (round * 4 + k) * 50;
            insert(&e, s, from..from + 50).await;
            e.flush(None).await.unwrap();
            expected.extend(from..from + 50);
        }
        let deletes = async {
            for v in [7, 101, 150].map(|v| v + round * 200) {
                let deleted = e.delete(deleting(&e, s, &format!("v = {v}"))).await.unwrap();
                assert_eq!(deleted.rows, u64::from(expected.contains(&v)), "{v}");
            }
        };
        let (merged, ()) = tokio::join!(e.optimize(s, None, round % 2 == 0), deletes);
        merged.unwrap();
        expected.retain(|v| ![7, 101, 150].contains(&(v - round * 200)));
        assert_eq!(values(&e, s).await, expected, "round {round}");
    }
    drop(e);
    let e = open(dir.path()).await;
    assert_eq!(values(&e, s).await, expected);
    e.optimize(s, None, true).await.unwrap();
    assert_eq!(values(&e, s).await, expected);
    assert_eq!(at(&e, s, Sn(1)).await, (0..50).collect::<Vec<_>>());
}

/// A transaction's deletes take its own rows as well, can be rolled back, and are seen with its inserts, all at once.
#[tokio::test]
async fn a_transaction_deletes_and_inserts_as_one() {
    let dir = tempfile::tempdir().unwrap();
    let e = open(dir.path()).await;
    let s = e.create_stream(def("s", vec![]), false).await.unwrap();
    insert(&e, s, 0..4).await;
    e.flush(None).await.unwrap();
    insert(&e, s, 4..6).await;
    let cut = e.read();
    let mut t = e.transaction();
    let own = |t: &ebb_engine::Transaction| cut.with_pending(cut.stream(s).unwrap(), t.pending().get(&s).unwrap_or(&Default::default()));
    let seen = async |t: &ebb_engine::Transaction| {
        let pending = t.pending();
        let mut all: Vec<i64> = rows_of(&own(t)).await.into_iter().map(|(v, _)| v).collect();
        for (_, batch) in pending.get(&s).map(|p| p.of(BranchId::MAIN).rows).unwrap_or_default() {
            let v = batch.column_by_name("v").unwrap();
            all.extend(arrow::array::AsArray::as_primitive::<arrow::datatypes::Int64Type>(v).values());
        }
        all.sort_unstable();
        all
    };
    t.insert(s, vec![rows(&[("even", START.0, 10), ("odd", START.0, 11)])], v1()).await.unwrap();
    let base = || cut.stream(s).unwrap();
    assert_eq!(t.delete(&cut, base(), deleting(&e, s, "v = 4")).await.unwrap(), 1);
    assert_eq!(t.delete(&cut, base(), deleting(&e, s, "v = 4")).await.unwrap(), 0, "it is gone already");
    assert_eq!(seen(&t).await, [0, 1, 2, 3, 5, 10, 11]);
    assert_eq!(t.delete(&cut, base(), deleting(&e, s, "host = 'even'")).await.unwrap(), 3, "0, 2 and its own 10");
    assert_eq!(seen(&t).await, [1, 3, 5, 11]);
    let point = t.savepoint();
    assert_eq!(t.delete(&cut, base(), deleting(&e, s, "host = 'odd'")).await.unwrap(), 4);
    assert_eq!(seen(&t).await, Vec::<i64>::new());
    t.roll_back_to(point);
    assert_eq!(seen(&t).await, [1, 3, 5, 11]);
    // Rows that come meanwhile are not touched, though they would match.
    insert(&e, s, 20..22).await;
    assert_eq!(values(&e, s).await, [0, 1, 2, 3, 4, 5, 20, 21]);
    let answers = t.commit().await.unwrap();
    assert_eq!(answers.iter().map(|a| a.rows).sum::<u64>(), 2);
    assert_eq!(values(&e, s).await, [1, 3, 5, 11, 20, 21]);
    e.settle(None).await.unwrap();
    assert_eq!(values(&e, s).await, [1, 3, 5, 11, 20, 21]);
    let stale = ebb_engine::DeleteRequest { schema_version: SchemaVersion(9), ..deleting(&e, s, "v = 1") };
    assert_eq!(e.delete(stale).await.unwrap_err().kind(), ErrorKind::Conflict);
}

const STEPS: usize = 8;

async fn step(e: &Engine, s: &mut StreamId, n: usize) -> Result<()> {
    let row = |v: i64| vec![rows(&[("a", START.0 + v, v)])];
    match n {
        0 => *s = e.create_stream(def("s", vec![]), false).await?,
        1..=3 => _ = e.insert(*s, row(n as i64), v1()).await?,
        4 => _ = e.delete(deleting(e, *s, "v = 2")).await?,
        5 => _ = e.optimize(*s, None, true).await?,
        6 => _ = e.delete(deleting(e, *s, "v = 3")).await?,
        _ => e.settle(None).await?,
    }
    Ok(())
}

/// The power goes at every call of deletes and merges: a DELETE happened or did not, and every cut reads what it read.
#[tokio::test]
async fn power_goes_at_every_call_of_deletes() {
    let after = |done: usize| -> Vec<i64> {
        match done {
            0 | 1 => vec![],
            2..=4 => (1..done as i64).collect(),
            5 | 6 => vec![1, 3],
            _ => vec![1],
        }
    };
    let scenario = async |machine: &CrashDisk| match open_on(machine, START).await {
        Ok(e) => {
            let mut s = StreamId::default();
            steps(STEPS, async |n| step(&e, &mut s, n).await).await
        }
        Err(_) => 0,
    };
    let verify = async |machine: &CrashDisk, e: std::sync::Arc<Engine>, done: usize, loss: Loss| {
        let Some(s) = e.read().streams().next().map(|s| s.def.id) else {
            assert_eq!(done, 0, "{loss}");
            return;
        };
        let found = values(&e, s).await;
        assert!([after(done), after(done + 1)].contains(&found), "{loss}: after {done} steps there is {found:?}");
        let head = e.read().stream(s).unwrap().head_sn;
        let before: Vec<Vec<i64>> = {
            let mut all = Vec::new();
            for sn in 1..=head.0 {
                all.push(at(&e, s, Sn(sn)).await);
            }
            all
        };
        for (i, cut) in before.iter().enumerate().take(3) {
            assert_eq!(*cut, (1..=i as i64 + 1).collect::<Vec<_>>(), "{loss}: sn {}", i + 1);
        }
        e.settle(None).await.unwrap();
        e.optimize(s, None, true).await.unwrap();
        for (i, cut) in before.iter().enumerate() {
            assert_eq!(at(&e, s, Sn(i as u64 + 1)).await, *cut, "{loss}: sn {} changed", i + 1);
        }
        whole(machine, &["data"], &e, loss).await;
    };
    let open = async |machine: &CrashDisk, _: &usize| open_on(machine, START).await;
    let done = cut_everywhere(scenario, open, verify).await;
    assert_eq!(done, STEPS);
}

/// A merge is told as one, and what it wrote carries the deletions.
#[tokio::test]
async fn a_merge_says_what_it_left_and_carries_deletions() {
    let dir = tempfile::tempdir().unwrap();
    let e = open(dir.path()).await;
    let s = e.create_stream(def("s", vec![]), false).await.unwrap();
    insert(&e, s, 0..4).await;
    e.delete(deleting(&e, s, "v = 1")).await.unwrap();
    insert(&e, s, 4..16).await;
    e.optimize(s, None, true).await.unwrap();
    let state = e.read().state(s).unwrap();
    let part = state.parts.values().next().unwrap();
    assert_eq!((part.rows, part.deletions.len(), part.deletions[0].rows.count(part.rows)), (16, 1, 1));
    let merges = e.manifest().part_log.iter().filter(|r| r.event == PartEvent::MergeParts).count();
    assert_eq!(merges, 1);
}

/// What main does not see when a partition is dropped is not dropped with it: picked later, it is there. The list says how many rows went.
#[tokio::test]
async fn a_dropped_partition_takes_what_is_seen_and_no_more() {
    let dir = tempfile::tempdir().unwrap();
    let e = open(dir.path()).await;
    let s = e.create_stream(def("s", vec![]), false).await.unwrap();
    let first = insert(&e, s, 0..4).await;
    let cut_off = insert(&e, s, 4..6).await;
    e.optimize(s, None, true).await.unwrap();
    e.rollback(s, RollbackTo::Sn(first)).await.unwrap();
    let last = insert(&e, s, 6..7).await;
    assert_eq!(values(&e, s).await, [0, 1, 2, 3, 6]);
    let partition = e.read().stream(s).unwrap().parts[0].meta.partition.clone();
    let dropped = e.drop_partition(s, &partition).await.unwrap().unwrap();
    let listed = |sn: Sn| e.read().state(s).unwrap().records.get(&sn).map(|r| (r.rows_added, r.rows_deleted)).unwrap();
    assert_eq!((values(&e, s).await, listed(dropped)), (vec![], (0, 5)));
    let picked = e.cherrypick(s, cut_off).await.unwrap().current_sn;
    assert_eq!((values(&e, s).await, listed(picked)), (vec![4, 5], (2, 0)));
    let truncated = e.truncate(s).await.unwrap();
    assert_eq!((values(&e, s).await, listed(truncated)), (vec![], (0, 2)));
    assert_eq!(at(&e, s, last).await, [0, 1, 2, 3, 6]);
}

/// proves that a fast-forward is refused where main has gone on, and says nothing new where it was done already.
#[tokio::test]
async fn main_that_has_gone_on_is_not_fast_forwarded() {
    let dir = tempfile::tempdir().unwrap();
    let e = open(dir.path()).await;
    let s = e.create_stream(def("s", vec![]), false).await.unwrap();
    insert(&e, s, 0..1).await;
    e.create_ref(s, branch("b")).await.unwrap();
    insert(&e, s, 1..2).await;
    let refused = e.fast_forward(s, "main", "b").await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Conflict, "{refused}");
    let head = e.read().stream(s).unwrap().head_sn;
    assert_eq!(e.fast_forward(s, "b", "main").await.unwrap().current_sn, head.next());
    assert_eq!(e.fast_forward(s, "b", "main").await.unwrap().current_sn, head.next(), "it is there already");
}

/// proves F12, I8: an expiry takes from a query that runs neither rows nor files; new ones are refused, and the files go after it.
#[tokio::test]
async fn an_expiry_lets_a_running_query_read_to_its_end() {
    let dir = tempfile::tempdir().unwrap();
    let e = open(dir.path()).await;
    let s = e.create_stream(def("s", vec![]), false).await.unwrap();
    let first = insert(&e, s, 0..4).await;
    e.flush(None).await.unwrap();
    insert(&e, s, 4..6).await;
    e.truncate(s).await.unwrap();
    insert(&e, s, 6..8).await;
    let running = e.read().stream_as_of(s, &AsOf::Sn(first), e.now()).unwrap();
    // A branch is written to all the while, and keeps what it stands on.
    e.create_ref(s, branch("b")).await.unwrap();
    let to_branch = InsertOptions { branch: Some("b".to_owned()), ..v1() };
    e.insert(s, vec![rows(&[("odd", START.0, 9)])], to_branch.clone()).await.unwrap();
    forget_the_past(&e, s).await;
    e.insert(s, vec![rows(&[("odd", START.0, 11)])], to_branch).await.unwrap();
    insert(&e, s, 8..9).await;
    e.settle(None).await.unwrap();
    let seen: Vec<i64> = rows_of(&running).await.into_iter().map(|(v, _)| v).collect();
    assert_eq!(seen, [0, 1, 2, 3], "what was begun is read to its end");
    let refused = values_at(&e, s, AsOf::Sn(first)).await.unwrap_err();
    assert!(refused.kind() == ErrorKind::NotFound && refused.message().contains("the oldest available is sn"), "{refused}");
    let held = files(dir.path());
    drop(running);
    e.settle(None).await.unwrap();
    assert!(files(dir.path()) < held, "its files go when it has ended");
    assert_eq!(values(&e, s).await, [6, 7, 8]);
    assert_eq!(values_at(&e, s, AsOf::Name("b".into())).await.unwrap(), [6, 7, 9, 11]);
}

/// A delete is picked after the append whose rows it takes, not before: it would take rows that come later.
#[tokio::test]
async fn a_delete_is_not_picked_before_its_append() {
    let dir = tempfile::tempdir().unwrap();
    let e = open(dir.path()).await;
    let s = e.create_stream(def("s", vec![]), false).await.unwrap();
    let first = insert(&e, s, 0..1).await;
    let append = insert(&e, s, 1..3).await;
    let deleted = e.delete(deleting(&e, s, "v = 1")).await.unwrap().sn.unwrap();
    e.rollback(s, RollbackTo::Sn(first)).await.unwrap();
    let refused = e.cherrypick(s, deleted).await.unwrap_err();
    assert!(refused.kind() == ErrorKind::Conflict && refused.message().contains("pick the append first"), "{refused}");
    e.cherrypick(s, append).await.unwrap();
    assert_eq!(values(&e, s).await, [0, 1, 2]);
    e.cherrypick(s, deleted).await.unwrap();
    assert_eq!(values(&e, s).await, [0, 2]);
}

/// Rows, deleted and expired ones of each part, as main's head has them.
fn numbers(e: &Engine, s: StreamId) -> Vec<(u64, u64, u64)> {
    let state = e.read().stream(s).unwrap().state;
    state.parts.values().map(|p| e.part_rows(&state, p)).map(|r| (r.seen, r.deleted, r.expired)).collect()
}

/// A row that is hidden for several reasons counts once, and all that main's head does not see counts.
#[tokio::test]
async fn each_row_of_a_part_is_counted_once() {
    let dir = tempfile::tempdir().unwrap();
    let e = open(dir.path()).await;
    let kept = with(def("s", vec![delete("ts + 10 days", None, 1)]), "history_max_snapshot_age_ms", 30 * 86_400_000);
    let s = e.create_stream(with(kept, "merge_with_ttl_timeout", 0), false).await.unwrap();
    let first = insert(&e, s, 0..100).await;
    insert(&e, s, 100..200).await;
    e.flush(None).await.unwrap();
    assert_eq!(numbers(&e, s), [(200, 0, 0)]);
    e.delete(deleting(&e, s, "host = 'even'")).await.unwrap();
    e.delete(deleting(&e, s, "v = 1")).await.unwrap();
    assert_eq!(numbers(&e, s), [(99, 101, 0)]);
    // What a tag keeps expires beside what was deleted.
    e.create_ref(s, tag("t")).await.unwrap();
    e.advance_clock(Interval::days(11)).unwrap();
    e.settle(None).await.unwrap();
    assert_eq!(numbers(&e, s), [(0, 101, 99)]);
    // Nothing is left to drop: no record says so.
    let head = e.read().stream(s).unwrap().head_sn;
    let partition = e.read().state(s).unwrap().parts.values().next().unwrap().partition.clone();
    assert_eq!(e.drop_partition(s, &partition).await.unwrap(), None);
    assert_eq!(e.read().stream(s).unwrap().head_sn, head);
    assert_eq!(e.drop_partition(s, "no such").await.unwrap_err().kind(), ErrorKind::NotFound);
    // Of a part of two records one is left aside; the tag reads the rest as before.
    e.rollback(s, RollbackTo::Sn(first)).await.unwrap();
    let [(0, deleted, expired)] = numbers(&e, s)[..] else { panic!("{:?}", numbers(&e, s)) };
    assert_eq!(deleted + expired, 200);
    assert!(deleted >= 100, "{deleted}");
    e.truncate(s).await.unwrap();
    assert_eq!(numbers(&e, s), [(0, 200, 0)]);
    assert_eq!(values_at(&e, s, AsOf::Name("t".into())).await.unwrap().len(), 99);
}

/// The rows of a dropped partition of which some were deleted before, and of a truncated one.
#[tokio::test]
async fn rows_deleted_twice_are_counted_once() {
    let dir = tempfile::tempdir().unwrap();
    let e = open(dir.path()).await;
    let s = e.create_stream(def("s", vec![]), false).await.unwrap();
    insert(&e, s, 0..100).await;
    e.flush(None).await.unwrap();
    e.delete(deleting(&e, s, "host = 'even'")).await.unwrap();
    let partition = e.read().state(s).unwrap().parts.values().next().unwrap().partition.clone();
    e.drop_partition(s, &partition).await.unwrap().unwrap();
    assert_eq!(numbers(&e, s), [(0, 100, 0)]);
    assert_eq!(e.drop_partition(s, &partition).await.unwrap(), None);
    insert(&e, s, 100..110).await;
    assert_eq!(numbers(&e, s), [(0, 100, 0)], "what is in no part yet");
    e.drop_partition(s, &partition).await.unwrap().unwrap();
    assert_eq!(numbers(&e, s), [(0, 100, 0), (0, 10, 0)]);
}

/// What was deleted and then expired hides no row of its part twice: the part is merged with others as before.
#[tokio::test]
async fn a_part_with_rows_that_are_hidden_twice_is_still_seen() {
    let dir = tempfile::tempdir().unwrap();
    let e = open(dir.path()).await;
    let rules = vec![delete("ts + 10 days", Some("host = 'even'"), 1)];
    let s = e.create_stream(with(def("s", rules), "merge_with_ttl_timeout", 0), false).await.unwrap();
    let sn = insert(&e, s, 0..20).await;
    e.flush(None).await.unwrap();
    e.create_ref(s, tag("t")).await.unwrap();
    e.delete(deleting(&e, s, "host = 'even'")).await.unwrap();
    e.advance_clock(Interval::days(11)).unwrap();
    e.settle(None).await.unwrap();
    assert_eq!((sn, numbers(&e, s)), (Sn(1), vec![(10, 10, 0)]));
    insert(&e, s, 20..30).await;
    e.optimize(s, None, true).await.unwrap();
    assert_eq!(values(&e, s).await, (0..30).filter(|v| v % 2 == 1).collect::<Vec<_>>());
    assert!(e.read().stream(s).unwrap().parts.len() == 1, "{:?}", numbers(&e, s));
}
