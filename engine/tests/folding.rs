//! Rules that change rows and leave them there: GROUP BY and column TTL.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod support;

use ebb_engine::{Engine, Result, Which};
use ebb_storage::{
    ids::{Fingerprint, StreamId},
    interval::Interval,
    manifest::edit::PartEvent,
    refs::RefKind,
    stream_def::{ColumnTtl, SettingValue},
    testkit::crash_store::CrashDisk,
};
use support::{
    power::{Loss, cut_everywhere, steps, whole},
    *,
};

/// Rows of one partition, due at once or in a hundred days.
fn old(host: &str, v: i64) -> (&str, i64, i64) {
    (host, START.0 - 2 * DAY + v, v)
}
fn fresh(host: &str, v: i64) -> (&str, i64, i64) {
    (host, START.0 + v, v)
}

/// proves T3, F1, F2
#[tokio::test]
async fn due_rows_of_a_key_become_one_and_what_was_folded_is_quiet() {
    let dir = tempfile::tempdir().unwrap();
    let e = open(dir.path()).await;
    let rules = vec![sum_by_host("ts + 1 days", 1), delete("ts", Some("v = 4"), 2)];
    let s = e.create_stream(with(def("s", rules), "merge_with_ttl_timeout", 0), false).await.unwrap();
    // A row that is to be deleted is not folded.
    e.insert(s, vec![rows(&[old("a", 1), old("a", 2), old("a", 4), old("b", 8), fresh("a", 100)])], v1()).await.unwrap();
    e.settle(None).await.unwrap();
    assert_eq!(values(&e, s).await, [3, 8, 100]);
    let (commit, generation) = (e.manifest().no, e.manifest().stream(s).unwrap().parts.keys().copied().collect::<Vec<_>>());
    for _ in 0..5 {
        e.settle(None).await.unwrap();
    }
    assert_eq!(e.manifest().no, commit, "idle rounds write nothing");
    assert_eq!(e.manifest().stream(s).unwrap().parts.keys().copied().collect::<Vec<_>>(), generation);
    // What comes due later is folded with what was folded before, in one rewrite.
    e.insert(s, vec![rows(&[old("a", 16), old("c", 32), old("c", 64)])], v1()).await.unwrap();
    e.settle(None).await.unwrap();
    assert_eq!((values(&e, s).await, parts(&e, s)), (vec![8, 19, 96, 100], 1));
    let commit = e.manifest().no;
    e.settle(None).await.unwrap();
    e.optimize(s, None, true).await.unwrap();
    assert_eq!((values(&e, s).await, e.manifest().no), (vec![8, 19, 96, 100], commit));
    // The folded row is of the first record that went into it.
    assert!(read(&e, s).await.contains(&(19, 1)));
    let told: Vec<_> = e.lifecycle_log().await.unwrap().into_iter().filter(|r| r.action == "group_by").collect();
    assert_eq!(told.iter().map(|r| (r.rows_before, r.rows_after)).collect::<Vec<_>>(), [(4, 3), (6, 4)]);
    assert!(told[0].reason.contains("2 rows were due") || told[0].reason.contains("3 rows were due"), "{}", told[0].reason);
}

/// proves A1, F2: of several due parts one rewrite makes one, and the next that comes due is folded into it.
#[tokio::test]
async fn a_key_is_one_row_whatever_parts_its_rows_lie_in() {
    let dir = tempfile::tempdir().unwrap();
    let e = open(dir.path()).await;
    let s = e.create_stream(def("s", vec![sum_by_host("ts + 4 days", 1)]), false).await.unwrap();
    let at = |days: i64, v: i64| START.0 + days * DAY + v;
    for (days, v) in [(0, 1), (0, 2), (0, 4), (6, 8), (6, 16)] {
        e.insert(s, vec![rows(&[("a", at(days, v), v), ("b", at(days, v), 100 * v)])], v1()).await.unwrap();
        e.flush(None).await.unwrap();
    }
    e.advance_clock(Interval::days(5)).unwrap();
    e.settle(None).await.unwrap();
    assert_eq!(values(&e, s).await, [7, 8, 16, 700, 800, 1600]);
    let jobs = async || {
        let told = e.part_log().await.unwrap();
        told.into_iter().filter(|r| r.event != PartEvent::NewPart && r.event != PartEvent::RemovePart).collect::<Vec<_>>()
    };
    let first = jobs().await;
    assert_eq!(first.iter().map(|r| r.source_parts.len()).collect::<Vec<_>>(), [3]);
    assert_eq!(first[0].reason, "due rows of one key become one");
    // Six days later the others are due; a day later nothing is.
    for _ in 0..2 {
        e.advance_clock(Interval::days(6)).unwrap();
        e.settle(None).await.unwrap();
        assert_eq!((values(&e, s).await, parts(&e, s)), (vec![31, 3100], 1));
    }
    assert_eq!(jobs().await.iter().map(|r| r.source_parts.len()).collect::<Vec<_>>(), [3, 3]);
    // What is due as it comes waits for the distance of prunes, and what a merge folded by itself is joined with the rest.
    for v in [1, 2] {
        e.insert(s, vec![rows(&[("a", at(0, v), v)])], v1()).await.unwrap();
        e.settle(None).await.unwrap();
    }
    assert_eq!(values(&e, s).await, [2, 32, 3100]);
    e.optimize(s, None, false).await.unwrap();
    assert_eq!(values(&e, s).await, [34, 3100]);
}

/// A folded row of a stream whose past is forgotten is of the record that its part says it is of.
#[tokio::test]
async fn a_folded_row_is_of_a_record_that_its_part_tells_of() {
    let dir = tempfile::tempdir().unwrap();
    let e = open(dir.path()).await;
    let s = e.create_stream(with(def("s", vec![sum_by_host("ts + 1 days", 1)]), "merge_with_ttl_timeout", 0), false).await.unwrap();
    for days in [0, 1, 10] {
        for v in [1, 2] {
            e.insert(s, vec![rows(&[old("a", 100 * days + v)])], v1()).await.unwrap();
        }
        e.advance_clock(Interval::days(days as i32)).unwrap();
        e.settle(None).await.unwrap();
        assert_eq!(e.faults_of_records().await.unwrap(), Vec::<String>::new());
    }
    forget_the_past(&e, s).await;
    e.insert(s, vec![rows(&[old("a", 5000)])], v1()).await.unwrap();
    e.settle(None).await.unwrap();
    assert_eq!(e.faults_of_records().await.unwrap(), Vec::<String>::new());
    let (found, state) = (read(&e, s).await, e.read().state(s).unwrap());
    let part = state.parts.values().next().unwrap();
    assert_eq!((found.len(), found[0].0), (1, 1 + 2 + 101 + 102 + 1001 + 1002 + 5000));
    assert!((part.min_sn().0 as i64..=part.max_sn().0 as i64).contains(&found[0].1), "{found:?} in {}", part.name);
}

/// Parts that a tag needs as they are wait, and are folded with the others once it is gone.
#[tokio::test]
async fn folded_parts_are_joined_once_nothing_pins_them() {
    let dir = tempfile::tempdir().unwrap();
    let e = open(dir.path()).await;
    let s = e.create_stream(with(def("s", vec![sum_by_host("ts + 1 days", 1)]), "merge_with_ttl_timeout", 0), false).await.unwrap();
    e.insert(s, vec![rows(&[old("a", 1), old("a", 2)])], v1()).await.unwrap();
    e.flush(None).await.unwrap();
    e.create_ref(s, tag("t")).await.unwrap();
    for v in [4, 8] {
        e.insert(s, vec![rows(&[old("a", v), old("b", 100)])], v1()).await.unwrap();
        e.settle(None).await.unwrap();
    }
    assert_eq!(values(&e, s).await, [1, 2, 12, 200]);
    e.drop_ref(s, RefKind::Tag, "t", false).await.unwrap();
    e.settle(None).await.unwrap();
    assert_eq!((values(&e, s).await, parts(&e, s)), (vec![15, 200], 1));
}

/// proves F2: a row that meets a WHERE only once it was folded goes with the next pass.
#[tokio::test]
async fn a_folded_row_is_looked_at_by_the_other_rules() {
    let dir = tempfile::tempdir().unwrap();
    let e = open(dir.path()).await;
    let rules = vec![delete("ts", Some("v = 7"), 2), sum_by_host("ts + 1 days", 1)];
    let s = e.create_stream(with(def("s", rules), "merge_with_ttl_timeout", 0), false).await.unwrap();
    e.insert(s, vec![rows(&[old("a", 3), old("a", 4), old("b", 5)])], v1()).await.unwrap();
    e.settle(None).await.unwrap();
    assert_eq!(values(&e, s).await, [5]);
}

/// proves T4
#[tokio::test]
async fn folding_keeps_the_distance_of_prunes_and_stops_with_them() {
    let dir = tempfile::tempdir().unwrap();
    let e = open(dir.path()).await;
    let s = e.create_stream(def("s", vec![sum_by_host("ts + 1 days", 1)]), false).await.unwrap();
    e.insert(s, vec![rows(&[old("a", 1), old("a", 2)])], v1()).await.unwrap();
    e.stop(ebb_engine::Stop::TtlMerges, None);
    e.settle(None).await.unwrap();
    assert_eq!(values(&e, s).await, [1, 2]);
    let lines = e.explain_lifecycle(s, e.now()).unwrap();
    assert_eq!((lines[0].action.as_str(), lines[0].state.as_str()), ("group_by", "ttl_merges_stopped"));
    e.start(ebb_engine::Stop::TtlMerges, None);
    e.settle(None).await.unwrap();
    assert_eq!(values(&e, s).await, [3]);
    e.insert(s, vec![rows(&[old("a", 4), old("a", 8)])], v1()).await.unwrap();
    e.settle(None).await.unwrap();
    assert_eq!(values(&e, s).await, [3, 4, 8]);
    assert!(e.explain_lifecycle(s, e.now()).unwrap().iter().any(|l| l.state == "waiting_timeout"));
    e.advance_clock(Interval::days(1)).unwrap();
    e.settle(None).await.unwrap();
    assert_eq!((values(&e, s).await, parts(&e, s)), (vec![15], 1));
}

/// v becomes 0 a day after ts.
fn reset_v(name: &str) -> ebb_storage::stream_def::StreamDef {
    let mut d = with(def(name, vec![]), "merge_with_ttl_timeout", 0);
    d.columns[2].ttl = Some(ColumnTtl { when: "ts + 1 days".to_owned(), fingerprint: Fingerprint(9) });
    d
}

#[tokio::test]
async fn due_values_become_the_default_and_the_part_is_quiet() {
    let dir = tempfile::tempdir().unwrap();
    let e = open(dir.path()).await;
    let s = e.create_stream(reset_v("s"), false).await.unwrap();
    e.insert(s, vec![rows(&[old("a", 1), fresh("a", 2)])], v1()).await.unwrap();
    e.settle(None).await.unwrap();
    assert_eq!(values(&e, s).await, [0, 2]);
    let commit = e.manifest().no;
    e.settle(None).await.unwrap();
    assert_eq!(e.manifest().no, commit);
    e.insert(s, vec![rows(&[old("b", 4), fresh("b", 8)])], v1()).await.unwrap();
    e.optimize(s, None, true).await.unwrap();
    assert_eq!(values(&e, s).await, [0, 0, 2, 8]);
    drop(e);
    let e = open(dir.path()).await;
    e.advance_clock(Interval::days(3)).unwrap();
    e.settle(None).await.unwrap();
    assert_eq!(values(&e, s).await, [0, 0, 0, 0]);
}

const STEPS: usize = 6;

async fn step(e: &Engine, s: &mut StreamId, n: usize) -> Result<()> {
    match n {
        0 => {
            let mut d = reset_v("s");
            d.columns[2].ttl.as_mut().unwrap().when = "ts + 50 days".to_owned();
            d.policy.ttl = vec![sum_by_host("ts + 1 days", 1)];
            *s = e.create_stream(d, true).await?;
        }
        1 => _ = e.insert(*s, vec![rows(&[old("a", 1), old("a", 2), old("b", 4)])], v1()).await?,
        2 => e.settle(None).await?,
        3 => _ = e.insert(*s, vec![rows(&[old("a", 8), fresh("a", 16)])], v1()).await?,
        // Folded into what was folded.
        4 => e.settle(None).await?,
        _ => _ = e.optimize(*s, None, true).await?,
    }
    Ok(())
}

/// proves F9: whatever a loss of power cuts off, every value is in exactly one row, folded or not.
#[tokio::test]
async fn power_goes_at_every_call_while_rows_are_folded() {
    let scenario = async |machine: &CrashDisk| match open_on(machine, START).await {
        Ok(e) => {
            let mut s = StreamId::default();
            steps(STEPS, async |n| step(&e, &mut s, n).await).await
        }
        Err(_) => 0,
    };
    let open = async |machine: &CrashDisk, _: &usize| open_on(machine, START).await;
    let look = async |machine: &CrashDisk, e: std::sync::Arc<Engine>, done: usize, at: Loss| {
        let Some(s) = e.read().stream_named("default", "s").map(|s| s.def.id) else { return };
        // Sums tell which rows are there: each value is a power of two.
        let sum: i64 = values(&e, s).await.iter().sum();
        let allowed: &[i64] = match done {
            0 => &[0],
            1 => &[0, 7],
            2 => &[7],
            3 => &[7, 31],
            _ => &[31],
        };
        assert!(allowed.contains(&sum), "{at}: the values come to {sum}");
        e.optimize(s, None, true).await.unwrap();
        e.settle(None).await.unwrap();
        let want: &[i64] = match sum {
            0 => &[],
            7 => &[3, 4],
            _ => &[4, 11, 16],
        };
        assert_eq!(values(&e, s).await, want, "{at}");
        whole(machine, &["data"], &e, at).await;
    };
    assert_eq!(cut_everywhere(scenario, open, look).await, STEPS);
}

/// What is due of a partition is done at one time though there are fewer places than jobs: none waits for another's timer.
#[tokio::test]
async fn folds_and_prunes_of_a_partition_begin_together() {
    let machine = CrashDisk::default();
    let e = tiered::open_tiered(&machine, START, true).await.unwrap();
    tiered::make_tiers(&e, [tiered::ROOM; 3]).await.unwrap();
    e.set_server_setting("background_pool_size", Some(SettingValue::Int(1))).await.unwrap();
    let mut d = tiered::tiered("s", vec![sum_by_host("ts + 1 days", 1)]);
    d.settings.insert("merge_with_ttl_timeout".to_owned(), SettingValue::Int(14_400));
    let s = e.create_stream(d, false).await.unwrap();
    for (host, v) in [("b", 10), ("a", 1), ("a", 2)] {
        e.insert(s, vec![rows(&[(host, START.0 + v, v), (host, START.0 + 20 + v, 2 * v)])], v1()).await.unwrap();
        e.flush(None).await.unwrap();
        if host == "b" {
            e.move_parts(s, Which::Partition("666"), &tiered::volume("warm")).await.unwrap();
        }
    }
    let mut changes = e.changes();
    e.advance_clock(Interval::days(2)).unwrap();
    while values(&e, s).await != [9, 30] {
        changes.changed().await.unwrap();
    }
    e.close().await.unwrap();
}
