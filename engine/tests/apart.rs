//! Rows that main's head does not see lie in a part of their own when they are more than a tenth of what a merge writes.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod support;

use ebb_engine::{
    AsOf, DeleteRequest, Engine, InsertOptions,
    history::{NewRef, RollbackTo},
};
use ebb_storage::{
    ids::{BranchId, Sn, StreamId},
    interval::Interval,
    lineage::SnRange,
    manifest::edit::PartEvent,
    part::{PartMeta, meta::Origin},
    refs::RefKind,
    testkit::crash_store::CrashDisk,
};
use std::sync::Arc;
use support::{
    power::{Loss, cut_everywhere, steps, whole},
    *,
};

/// A part of its own, v counted on; odd values are of host "odd".
async fn insert(e: &Engine, s: StreamId, values: std::ops::Range<i64>) -> Sn {
    let of: Vec<_> = values.map(|v| (if v % 2 == 0 { "even" } else { "odd" }, START.0 + v, v)).collect();
    let sn = e.insert(s, vec![rows(&of)], v1()).await.unwrap().sn;
    e.flush(None).await.unwrap();
    sn
}

fn listed(e: &Engine, s: StreamId) -> Vec<Arc<PartMeta>> {
    e.read().state(s).unwrap().parts.values().cloned().collect()
}

fn merges(e: &Engine) -> usize {
    e.manifest().part_log.iter().filter(|r| r.event == PartEvent::MergeParts).count()
}

async fn at(e: &Engine, s: StreamId, sn: Sn) -> Vec<i64> {
    values_at(e, s, AsOf::Sn(sn)).await.unwrap()
}

/// proves I10, F2: the head reads past nothing, past cuts and tags read what they read, and that is the end of it.
#[tokio::test]
async fn deleted_rows_go_to_a_part_of_their_own() {
    let dir = tempfile::tempdir().unwrap();
    let e = open(dir.path()).await;
    let s = e.create_stream(def("s", vec![]), false).await.unwrap();
    for i in 0..7 {
        insert(&e, s, i * 10..i * 10 + 10).await;
    }
    e.create_ref(s, tag("t")).await.unwrap();
    e.delete(deleting(&e, s, "host = 'odd'")).await.unwrap();
    insert(&e, s, 70..80).await;
    let (head, before) = (values(&e, s).await, at(&e, s, Sn(7)).await);
    assert_eq!((head.len(), before.len()), (45, 70));
    e.settle(None).await.unwrap();
    let all = listed(&e, s);
    assert_eq!(all.iter().map(|p| (p.rows, p.deletions.len(), p.level)).collect::<Vec<_>>(), [(45, 0, 1), (35, 1, 1)]);
    assert_eq!(e.read().stream(s).unwrap().parts.len(), 1, "the head reads one of them");
    let check = async |e: &Engine| {
        assert_eq!((values(e, s).await, at(e, s, Sn(7)).await), (head.clone(), before.clone()));
        assert_eq!(values_at(e, s, AsOf::Name("t".into())).await.unwrap(), before);
    };
    check(&e).await;
    // It is told as one merge that made two parts, whose rows and bytes were read once.
    let told: Vec<_> = e.manifest().part_log.iter().filter(|r| r.event == PartEvent::MergeParts).cloned().collect();
    assert_eq!(told.iter().map(|r| (r.source_parts.len(), r.rows, r.rows_read)).collect::<Vec<_>>(), [(8, 45, 80), (8, 35, 0)]);
    assert!(told[1].reason.ends_with("does not see"), "{}", told[1].reason);
    // Neither is merged with the other, whoever asks.
    let commit = e.manifest().no;
    e.settle(None).await.unwrap();
    assert_eq!(e.manifest().no, commit);
    e.optimize(s, None, true).await.unwrap();
    e.optimize(s, None, false).await.unwrap();
    assert_eq!((merges(&e), listed(&e, s).len()), (2, 2));
    // What is deleted of the seen part stays there until it is merged again, and is then merged with what lies apart.
    e.delete(deleting(&e, s, "v = 2")).await.unwrap();
    e.delete(deleting(&e, s, "v = 4")).await.unwrap();
    insert(&e, s, 80..82).await;
    e.optimize(s, None, true).await.unwrap();
    let head: Vec<i64> = head.iter().copied().filter(|v| ![2, 4].contains(v)).chain(80..82).collect();
    assert_eq!(values(&e, s).await, head);
    assert_eq!(listed(&e, s).iter().map(|p| (p.rows, p.deletions.len())).collect::<Vec<_>>(), [(35, 1), (47, 2)], "less than a tenth");
    // The last who needs them takes them along, unread.
    e.drop_ref(s, RefKind::Tag, "t", false).await.unwrap();
    forget_the_past(&e, s).await;
    e.settle(None).await.unwrap();
    assert_eq!((values(&e, s).await, listed(&e, s).iter().map(|p| p.rows).collect::<Vec<_>>()), (head, vec![47]));
}

/// Rows that a rollback left aside: the head's part says of its records that the head sees them all.
#[tokio::test]
async fn rows_that_a_rollback_left_aside_go_to_a_part_of_their_own() {
    let dir = tempfile::tempdir().unwrap();
    let e = open(dir.path()).await;
    let s = e.create_stream(def("s", vec![]), false).await.unwrap();
    for i in 0..3 {
        insert(&e, s, i * 10..i * 10 + 10).await;
    }
    e.optimize(s, None, true).await.unwrap();
    e.rollback(s, RollbackTo::Sn(Sn(1))).await.unwrap();
    for i in 3..6 {
        insert(&e, s, i * 10..i * 10 + 10).await;
    }
    let head = values(&e, s).await;
    assert_eq!(head.len(), 40);
    // Those that the head sees wholly, and the one that it sees a third of.
    e.optimize(s, None, true).await.unwrap();
    e.rollback(s, RollbackTo::Sn(Sn(3))).await.unwrap();
    e.rollback(s, RollbackTo::Sn(Sn(7))).await.unwrap();
    insert(&e, s, 60..65).await;
    e.rollback(s, RollbackTo::Sn(Sn(9))).await.unwrap();
    insert(&e, s, 70..75).await;
    let partly = |e: &Engine| e.read().stream(s).unwrap().parts.iter().filter(|p| p.sns.is_some()).count();
    assert_eq!(partly(&e), 1);
    e.optimize(s, None, true).await.unwrap();
    e.optimize(s, None, true).await.unwrap();
    assert_eq!(partly(&e), 0, "nothing is read by _tp_sn any more");
    let origins: Vec<Vec<Origin>> = listed(&e, s).iter().map(|p| p.origins.clone()).collect();
    let origin = |after, to, rows| Origin { branch: BranchId::MAIN, sns: SnRange { after: Sn(after), to: Sn(to) }, rows };
    let of_main: u64 = origins.iter().flatten().map(|o| o.rows).sum();
    assert_eq!(of_main, 70, "{origins:?}");
    assert!(origins.iter().flatten().any(|o| *o == origin(1, 3, 20)), "{origins:?}");
    let again: Vec<i64> = head.iter().copied().chain(70..75).collect();
    assert_eq!((values(&e, s).await, at(&e, s, Sn(3)).await.len(), at(&e, s, Sn(7)).await), (again, 30, head));
}

/// Rows that a rule took from main and that a tag keeps.
#[tokio::test]
async fn expired_rows_of_a_tag_go_to_a_part_of_their_own() {
    let dir = tempfile::tempdir().unwrap();
    let e = open(dir.path()).await;
    let rules = vec![delete("ts + 1 days", Some("host = 'odd'"), 1)];
    let s = e.create_stream(with(def("s", rules), "merge_with_ttl_timeout", 0), false).await.unwrap();
    for i in 0..3 {
        insert(&e, s, i * 10..i * 10 + 10).await;
    }
    e.create_ref(s, tag("t")).await.unwrap();
    e.advance_clock(Interval::days(2)).unwrap();
    e.settle(None).await.unwrap();
    e.optimize(s, None, true).await.unwrap();
    assert_eq!(listed(&e, s).iter().map(|p| (p.rows, p.expired.len())).collect::<Vec<_>>(), [(15, 0), (15, 1)]);
    let read = async || (values(&e, s).await.len(), values_at(&e, s, AsOf::Name("t".into())).await.unwrap().len());
    assert_eq!(read().await, (15, 30));
    e.settle(None).await.unwrap();
    e.drop_ref(s, RefKind::Tag, "t", false).await.unwrap();
    e.settle(None).await.unwrap();
    assert_eq!((values(&e, s).await.len(), listed(&e, s).len()), (15, 1));
}

/// What a rollback left aside is folded with nothing that the head sees.
#[tokio::test]
async fn rows_that_the_head_does_not_see_are_not_folded() {
    let dir = tempfile::tempdir().unwrap();
    let e = open(dir.path()).await;
    let rules = vec![sum_by_host("ts + 1 days", 1)];
    let s = e.create_stream(with(def("s", rules), "merge_with_ttl_timeout", 0), false).await.unwrap();
    insert(&e, s, 0..1).await;
    insert(&e, s, 2..3).await;
    e.rollback(s, RollbackTo::Sn(Sn(1))).await.unwrap();
    insert(&e, s, 4..5).await;
    e.optimize(s, None, true).await.unwrap();
    assert_eq!(values(&e, s).await, [0, 4]);
    e.advance_clock(Interval::days(2)).unwrap();
    e.settle(None).await.unwrap();
    e.optimize(s, None, true).await.unwrap();
    assert_eq!((values(&e, s).await, at(&e, s, Sn(2)).await), (vec![4], vec![2, 4]));
    let commit = e.manifest().no;
    e.settle(None).await.unwrap();
    assert_eq!(e.manifest().no, commit);
}

/// proves I10, I11: power may go at any moment of a merge into two parts.
#[tokio::test]
async fn a_merge_into_two_parts_is_all_or_nothing() {
    const STEPS: usize = 6;
    let scenario = async |machine: &CrashDisk| -> usize {
        let Ok(e) = open_on(machine, START).await else { return 0 };
        let Ok(s) = e.create_stream(def("s", vec![]), false).await else { return 0 };
        let step = async |i: usize| -> ebb_engine::Result<()> {
            let row = |v: i64| (if v % 2 == 0 { "even" } else { "odd" }, START.0 + v, v);
            match i {
                0..3 => {
                    let v = i as i64 * 2;
                    e.insert(s, vec![rows(&[row(v), row(v + 1)])], v1()).await?;
                    e.flush(Some(s)).await
                }
                3 => e.delete(deleting(&e, s, "host = 'odd'")).await.map(|_| ()),
                4 => e.optimize(s, None, true).await.map(|_| ()),
                _ => e.delete(deleting(&e, s, "v = 2")).await.map(|_| ()),
            }
        };
        steps(STEPS, step).await
    };
    let verify = async |machine: &CrashDisk, e: Arc<Engine>, done: usize, loss: Loss| {
        let Some(s) = e.read().streams().next().map(|s| s.def.id) else { return assert_eq!(done, 0, "{loss}") };
        let after = |n: usize| -> Vec<i64> {
            match n {
                0..=3 => (0..2 * n as i64).collect(),
                4 | 5 => vec![0, 2, 4],
                _ => vec![0, 4],
            }
        };
        let found = values(&e, s).await;
        assert!([after(done), after(done + 1)].contains(&found), "{loss}: after {done} steps there is {found:?}");
        let head = e.read().stream(s).unwrap().head_sn;
        e.optimize(s, None, true).await.unwrap();
        e.settle(None).await.unwrap();
        assert_eq!(values(&e, s).await, found, "{loss}");
        for sn in 1..=head.0.min(3) {
            assert_eq!(at(&e, s, Sn(sn)).await, (0..2 * sn as i64).collect::<Vec<_>>(), "{loss}: sn {sn}");
        }
        whole(machine, &["data"], &e, loss).await;
    };
    let open = async |machine: &CrashDisk, _: &usize| open_on(machine, START).await;
    assert_eq!(cut_everywhere(scenario, open, verify).await, STEPS);
}

/// What was left aside of branches that are gone is released once the history that needed it is forgotten.
#[tokio::test]
async fn nothing_stays_of_dropped_branches_once_it_is_forgotten() {
    let dir = tempfile::tempdir().unwrap();
    let e = open(dir.path()).await;
    let s = e.create_stream(def("s", vec![]), false).await.unwrap();
    let row = |v: i64| vec![rows(&[("a", START.0 + v, v)])];
    let on = |b: &str| InsertOptions { branch: Some(b.to_owned()), ..v1() };
    for v in 1..=5 {
        e.insert(s, row(v), v1()).await.unwrap();
    }
    e.create_ref(s, NewRef { as_of: Some(AsOf::Sn(Sn(4))), ..branch("b") }).await.unwrap();
    e.rollback(s, RollbackTo::Sn(Sn(2))).await.unwrap();
    e.insert(s, row(40), on("b")).await.unwrap();
    assert!(e.fast_forward(s, "main", "b").await.is_err());
    e.rollback(s, RollbackTo::Sn(Sn(4))).await.unwrap();
    e.cherrypick(s, Sn(7)).await.unwrap();
    e.create_ref(s, branch("c")).await.unwrap();
    e.insert(s, row(50), on("c")).await.unwrap();
    e.delete(DeleteRequest { branch: Some("c".into()), ..deleting(&e, s, "v = 1") }).await.unwrap();
    e.fast_forward(s, "main", "c").await.unwrap();
    e.delete(deleting(&e, s, "v = 50")).await.unwrap();
    e.delete(deleting(&e, s, "v = 2")).await.unwrap();
    let head = e.read().stream(s).unwrap().head_sn;
    e.rollback(s, RollbackTo::Sn(Sn(head.0 - 1))).await.unwrap();
    let now = values(&e, s).await;
    assert_eq!(now, [2, 3, 4, 40]);
    e.optimize(s, None, true).await.unwrap();
    forget_the_past(&e, s).await;
    e.optimize(s, None, true).await.unwrap();
    e.drop_ref(s, RefKind::Branch, "b", false).await.unwrap();
    e.drop_ref(s, RefKind::Branch, "c", false).await.unwrap();
    forget_the_past(&e, s).await;
    e.optimize(s, None, true).await.unwrap();
    assert_eq!(values(&e, s).await, now);
    let left = listed(&e, s);
    assert_eq!(left.len(), 1, "{:?}", left.iter().map(|p| &p.origins).collect::<Vec<_>>());
    e.settle(None).await.unwrap();
    assert_eq!(values(&e, s).await, now);
    assert_eq!((listed(&e, s).len(), left[0].rows), (1, 4));
}

/// OPTIMIZE FINAL leaves one part of a partition, also where a part says of records that they might have rows in it that are gone.
#[tokio::test]
async fn one_final_makes_one_part_once_the_past_is_forgotten() {
    let dir = tempfile::tempdir().unwrap();
    let e = open(dir.path()).await;
    let s = e.create_stream(def("s", vec![]), false).await.unwrap();
    let row = |v: i64| vec![rows(&[("a", START.0 + v, v), ("b", START.0 + v, v)])];
    for v in 1..=5 {
        e.insert(s, row(v), v1()).await.unwrap();
    }
    e.rollback(s, RollbackTo::Sn(Sn(2))).await.unwrap();
    e.insert(s, row(7), v1()).await.unwrap();
    // Of the rows that were rolled past nothing is written.
    forget_the_past(&e, s).await;
    insert(&e, s, 8..10).await;
    let now = values(&e, s).await;
    e.optimize(s, None, true).await.unwrap();
    assert_eq!((values(&e, s).await, listed(&e, s).len()), (now.clone(), 1));
    // The same where they were written before.
    for v in 11..=15 {
        insert(&e, s, v..v + 1).await;
    }
    e.optimize(s, None, true).await.unwrap();
    let head = e.read().stream(s).unwrap().head_sn;
    e.rollback(s, RollbackTo::Sn(Sn(head.0 - 3))).await.unwrap();
    for v in 21..=23 {
        insert(&e, s, v..v + 1).await;
    }
    let now: Vec<i64> = now.into_iter().chain([11, 12, 21, 22, 23]).collect();
    forget_the_past(&e, s).await;
    e.optimize(s, None, true).await.unwrap();
    let left = listed(&e, s);
    assert_eq!(values(&e, s).await, now);
    assert_eq!(left.len(), 1, "{:?}", left.iter().map(|p| (&p.origins, p.rows)).collect::<Vec<_>>());
}
