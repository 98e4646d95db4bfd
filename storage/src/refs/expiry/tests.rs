//! The experiments' numbers are those of a chapter on snapshot retention; record n is of second n.

use crate::{
    clock::Timestamp,
    ids::{BranchId, Sn},
    lineage::SnRange,
    refs::{Expiry, Keep, Overrides, Pinning, Reader, expiry, testkit::History},
};
use proptest::prelude::*;
use std::collections::BTreeSet;

const DAYS_5: i64 = 432_000_000;
const FUTURE: Timestamp = Timestamp(1_900_000_000_000_000);

fn keep(max_age_ms: i64, min_snapshots: u64) -> Keep {
    Keep { max_age_ms, min_snapshots, max_ref_age_ms: None }
}

/// Due long after everything was written, and done.
fn run(h: &mut History, keep: &Keep, overrides: &Overrides) -> Expiry {
    run_at(h, keep, overrides, Timestamp::from_secs(100_000))
}

fn run_at(h: &mut History, keep: &Keep, overrides: &Overrides, now: Timestamp) -> Expiry {
    let due = expiry(&h.state, keep, overrides, &Pinning::default(), now);
    due.drop_refs.iter().for_each(|name| h.state.drop_ref(name).unwrap());
    h.state.forget(&due.forget);
    let again = expiry(&h.state, keep, overrides, &Pinning::default(), now);
    assert!(again.is_empty(), "{again:?} right after {due:?}");
    due
}

/// 40 records of main, a tag at 10, a branch cut at 30 with 4 records of its own.
fn forty_four() -> History {
    let mut h = History::new();
    h.inserts(10);
    h.tag("q2_close", 10);
    h.inserts(20);
    let dev = h.branch("dev");
    h.change("dev", |r| r.min_snapshots = Some(5));
    h.inserts(10);
    for _ in 0..4 {
        h.insert_on(dev);
    }
    h
}

// proves I1, I2, I19, I25
#[test]
fn eight_survivors_of_forty_four() {
    let mut h = forty_four();
    assert_eq!(h.readable().len(), 44);
    let done = run(&mut h, &keep(DAYS_5, 1), &Overrides { older_than: Some(FUTURE), retain_last: Some(2) });
    assert_eq!(done.snapshots, 36);
    assert_eq!(h.readable(), [10, 30, 39, 40, 41, 42, 43, 44]);
    assert_eq!(h.state.refs.size(), 2, "both refs stay");
}

// proves I9, I10, I50
#[test]
fn nothing_goes_by_the_defaults_while_it_is_young() {
    let mut h = forty_four();
    let done = run(&mut h, &keep(DAYS_5, 1), &Overrides::default());
    assert!(done.is_empty());
    // 1 was superseded at second 2.
    assert_eq!(done.next_at, Some(Timestamp(2_000_000 + DAYS_5 * 1000 + 1)));
}

// proves I51, I52, I53
#[test]
fn three_then_eight() {
    let mut h = History::new();
    h.inserts(10);
    assert_eq!(run(&mut h, &keep(1, 3), &Overrides::default()).snapshots, 7);
    assert_eq!(h.readable(), [8, 9, 10]);
    let more = h.branch("keep_more");
    h.change("keep_more", |r| r.min_snapshots = Some(5));
    (0..6).for_each(|_| _ = h.insert_on(more));
    run(&mut h, &keep(1, 3), &Overrides::default());
    assert_eq!(h.readable(), [8, 9, 10, 12, 13, 14, 15, 16]);
}

// proves I26, I55, I56, I57
#[test]
fn three_classes_expired_together() {
    let hot = keep(1, 2);
    let mut h = History::new();
    h.inserts(12);
    run(&mut h, &hot, &Overrides::default());
    assert_eq!(h.readable(), [11, 12]);

    let mut audit = History::new();
    audit.inserts(12);
    audit.tag("month_end", 6);
    audit.tag("week_end", 10);
    run(&mut audit, &hot, &Overrides::default());
    assert_eq!(audit.readable(), [6, 10, 11, 12]);

    let mut dev = History::new();
    dev.inserts(12);
    let feature = dev.branch("feature");
    dev.change("feature", |r| (r.min_snapshots, r.max_ref_age_ms) = (Some(10), Some(7 * 86_400_000)));
    (0..6).for_each(|_| _ = dev.insert_on(feature));
    run(&mut dev, &hot, &Overrides::default());
    assert_eq!(dev.readable(), (9..=18).collect::<Vec<_>>());
    // The branch removes itself in a week, with what only it held.
    let week = Timestamp::from_secs(7 * 86_400);
    let done = run_at(&mut dev, &hot, &Overrides::default(), week);
    assert_eq!(done.drop_refs, ["feature"]);
    assert_eq!(dev.readable(), [11, 12]);
    assert_eq!(dev.state.lineages.size(), 1);
}

// proves I27, I28, I29, I30, I60, I74
#[test]
fn a_ref_goes_when_its_age_is_reached_and_not_before() {
    let mut h = forty_four();
    h.branch("short_lived");
    let made = Timestamp::from_secs(50);
    h.change("short_lived", |r| (r.created_at, r.max_ref_age_ms) = (made, Some(60_000)));
    let done = run_at(&mut h, &keep(DAYS_5, 1), &Overrides::default(), made);
    assert_eq!((done.drop_refs.len(), done.next_at), (0, Some(Timestamp::from_secs(110))));
    assert!(run_at(&mut h, &keep(DAYS_5, 1), &Overrides::default(), Timestamp(109_999_999)).is_empty());
    assert_eq!(run_at(&mut h, &keep(DAYS_5, 1), &Overrides::default(), Timestamp::from_secs(110)).drop_refs, ["short_lived"]);
    // A stream may say it for refs that do not; not for main.
    let all = Keep { max_ref_age_ms: Some(1000), ..keep(DAYS_5, 1) };
    assert_eq!(run_at(&mut h, &all, &Overrides::default(), Timestamp::from_secs(111)).drop_refs, ["dev", "q2_close"]);
    assert!(h.readable().contains(&40) && !h.readable().contains(&44));
}

// proves I6, I15, I70, I71
#[test]
fn young_enough_or_within_the_count() {
    let mut h = History::new();
    h.inserts(10);
    let now = Timestamp::from_secs(12);
    // 5 was superseded at 6: six seconds ago, and kept as long as that.
    assert_eq!(expiry(&h.state, &keep(6000, 1), &Overrides::default(), &Pinning::default(), now).forget, [range(0, 4)]);
    assert_eq!(expiry(&h.state, &keep(6000, 8), &Overrides::default(), &Pinning::default(), now).forget, [range(0, 2)]);
    assert_eq!(expiry(&h.state, &keep(0, 0), &Overrides::default(), &Pinning::default(), now).forget, [range(0, 9)]);
    // The head is current, and the one before it was until a moment ago: a quiet week closes no window.
    let due = expiry(&h.state, &keep(1000, 1), &Overrides::default(), &Pinning::default(), Timestamp::from_secs(11));
    assert_eq!((due.forget, due.next_at), (vec![range(0, 8)], Some(Timestamp(11_000_001))));
    let older = Overrides { older_than: Some(Timestamp::from_secs(6)), retain_last: None };
    assert_eq!(expiry(&h.state, &keep(0, 1), &older, &Pinning::default(), now).forget, [range(0, 4)]);
}

fn range(after: u64, to: u64) -> SnRange {
    SnRange { after: Sn(after), to: Sn(to) }
}

// proves I40, I72
#[test]
fn what_a_rollback_left_aside_is_kept_by_age_alone() {
    let mut h = History::new();
    h.inserts(10);
    h.rollback(4); // 11
    h.inserts(2); // 12, 13
    let mut by_count = History { state: h.state.clone(), commit: 1 };
    run(&mut by_count, &keep(1, 5), &Overrides::default());
    assert_eq!(by_count.readable(), [3, 4, 11, 12, 13], "the count passes over 5 to 10");
    // 9 was superseded at 10, 10 by the rollback at 11: both are as young as that.
    let now = Timestamp::from_secs(20);
    run_at(&mut h, &keep(10_000, 1), &Overrides::default(), now);
    assert_eq!(h.readable(), [9, 10, 11, 12, 13]);
}

#[test]
fn a_branch_head_stays_with_a_count_of_nothing() {
    let mut h = History::new();
    h.inserts(5);
    let dev = h.branch("dev");
    h.change("dev", |r| (r.min_snapshots, r.max_snapshot_age_ms) = (Some(0), Some(0)));
    h.inserts(2);
    run(&mut h, &keep(0, 1), &Overrides::default());
    assert_eq!(h.readable(), [5, 7], "the fork is its head while it has no record of its own");
    h.insert_on(dev); // 8
    h.insert_on(dev); // 9
    run(&mut h, &keep(0, 1), &Overrides::default());
    assert_eq!(h.readable(), [7, 9]);
}

// proves I72
#[test]
fn a_branch_has_an_age_of_its_own_along_what_it_stands_on() {
    let mut h = History::new();
    h.inserts(5);
    let dev = h.branch("dev"); // at 5
    h.change("dev", |r| (r.min_snapshots, r.max_snapshot_age_ms) = (Some(1), Some(10_000)));
    h.inserts(5); // 6..10
    h.insert_on(dev); // 11
    h.insert_on(dev); // 12
    // The branch stood at 5 until second 11, whatever main did meanwhile.
    run_at(&mut h, &keep(0, 1), &Overrides::default(), Timestamp::from_secs(20));
    assert_eq!(h.readable(), [5, 10, 11, 12]);
    run_at(&mut h, &keep(0, 1), &Overrides::default(), Timestamp::from_secs(22));
    assert_eq!(h.readable(), [10, 11, 12]);
    // A call's own policy does not reach into what the branch says itself.
    run_at(&mut h, &keep(0, 1), &Overrides { older_than: Some(FUTURE), retain_last: Some(1) }, Timestamp::from_secs(22));
    assert_eq!(h.readable(), [10, 11, 12]);
    run_at(&mut h, &keep(0, 1), &Overrides::default(), Timestamp::from_secs(23));
    assert_eq!(h.readable(), [10, 12]);
}

#[test]
fn a_dropped_branch_leaves_what_main_went_on_from() {
    let mut h = History::new();
    h.inserts(3);
    let dev = h.branch("dev");
    (0..3).for_each(|_| _ = h.insert_on(dev)); // 4..6
    h.fast_forward(dev); // 7
    (0..2).for_each(|_| _ = h.insert_on(dev)); // 8, 9
    h.state.drop_ref("dev").unwrap();
    assert_eq!(h.readable(), (1..=7).collect::<Vec<_>>());
    assert!(h.state.lineages.contains_key(&dev), "4 to 6 are read by it");
    // Main stood at 3 until second 7, and never at 4 or 5 but through 6.
    run_at(&mut h, &keep(2000, 2), &Overrides::default(), Timestamp::from_secs(9));
    assert_eq!(h.readable(), [3, 6, 7]);
    run_at(&mut h, &keep(0, 1), &Overrides::default(), Timestamp::from_secs(9));
    assert_eq!(h.readable(), [7]);
    assert!(!h.state.lineages.contains_key(&dev));
}

#[test]
fn a_tag_that_goes_frees_what_only_it_held() {
    let mut h = History::new();
    h.inserts(10);
    h.tag("t", 4);
    run(&mut h, &keep(1, 1), &Overrides::default());
    assert_eq!(h.readable(), [4, 10]);
    h.state.drop_ref("t").unwrap();
    // Young by the clock if only listed records counted: 4 was superseded by 5, which is gone.
    run_at(&mut h, &keep(5000, 1), &Overrides::default(), Timestamp::from_secs(11));
    assert_eq!(h.readable(), [10]);
}

#[test]
fn lines_of_many_records_count_as_many() {
    let mut h = History::new();
    h.inserts(30);
    h.join(1, 20);
    h.tag("t", 7);
    run(&mut h, &keep(1, 15), &Overrides::default());
    assert_eq!(h.readable(), [7].into_iter().chain(16..=30).collect::<Vec<_>>());
    run(&mut h, &keep(1, 5), &Overrides::default());
    assert_eq!(h.readable(), [7].into_iter().chain(26..=30).collect::<Vec<_>>());
    assert!(h.state.records.contains_key(&Sn(20)), "the line of the tag");
    h.state.drop_ref("t").unwrap();
    run(&mut h, &keep(1, 5), &Overrides::default());
    assert!(!h.state.records.contains_key(&Sn(20)));
}

fn reader(sn: u64, max_lag_ms: Option<i64>) -> Reader {
    let (stream, created_at) = (crate::ids::StreamId(1), Timestamp(0));
    Reader { name: "r".into(), stream, sn: Sn(sn), max_lag_ms, created_at, cut_off_at: None }
}

// proves I46, I47
#[test]
fn a_reader_within_its_lag_keeps_all_from_where_it_stands() {
    let mut h = History::new();
    h.inserts(20);
    let due = |h: &History, r: &Reader, now: i64| {
        let pinning = Pinning { readers: &[r], leased: &[] };
        expiry(&h.state, &keep(0, 1), &Overrides::default(), &pinning, Timestamp::from_secs(now))
    };
    let r = reader(12, Some(60_000));
    // 13, the first it has not read, is of second 13.
    assert_eq!(due(&h, &r, 73).forget, [range(0, 11)]);
    assert_eq!(due(&h, &r, 73).next_at, Some(Timestamp(73_000_001)));
    let late = due(&h, &r, 74);
    assert_eq!((late.forget, late.cut_off), (vec![range(0, 19)], vec!["r".to_owned()]));
    assert_eq!(due(&h, &reader(12, None), 30).forget, [range(0, 19)], "without a lag it pins nothing");
    assert_eq!(due(&h, &Reader { cut_off_at: Some(Timestamp(0)), ..r }, 73).forget, [range(0, 19)]);
    assert_eq!(due(&h, &reader(20, Some(1)), 1000).forget, [range(0, 19)], "one that has read all is never late");
    let leased = Pinning { readers: &[], leased: &[Sn(3)] };
    assert_eq!(expiry(&h.state, &keep(0, 1), &Overrides::default(), &leased, Timestamp::from_secs(99)).forget, [range(0, 2), range(3, 19)]);
}

/// What must stay by the letter of the policy, one sn at a time.
fn naive(h: &History, keep: &Keep, now: Timestamp) -> BTreeSet<u64> {
    let cutoff = now.0 - keep.max_age_ms * 1000;
    let records: Vec<_> = h.state.records.values().cloned().collect();
    let mut kept = BTreeSet::new();
    let mut heads = vec![(BranchId::MAIN, keep.min_snapshots, cutoff)];
    heads.extend(h.state.refs.values().filter(|r| r.kind == crate::refs::RefKind::Branch).map(|r| {
        (r.cut.branch, r.min_snapshots.unwrap_or(keep.min_snapshots), r.max_snapshot_age_ms.map_or(cutoff, |ms| now.0 - ms * 1000))
    }));
    kept.extend(h.state.refs.values().filter(|r| r.kind == crate::refs::RefKind::Tag).map(|r| r.cut.sn.0));
    for (branch, count, cutoff) in heads {
        // All that was ever current on the branch, with when it was followed.
        let mut chain = vec![h.state.head_of(branch).0];
        while let Some(r) = records.iter().find(|r| r.sn.0 == *chain.last().unwrap()) {
            chain.push(r.parent.0);
        }
        chain.retain(|sn| *sn > 0);
        kept.extend(chain.iter().take(count.max(1) as usize));
        let own: Vec<_> = records.iter().filter(|r| r.branch == branch).collect();
        for (i, r) in own.iter().enumerate() {
            if own.get(i + 1).is_none_or(|next| next.time.0 >= cutoff) {
                kept.insert(r.sn.0);
            }
        }
        for pair in chain.windows(2) {
            let time = |sn: u64| records.iter().find(|r| r.sn.0 == sn).unwrap().time.0;
            let foreign = records.iter().any(|r| r.sn.0 == pair[1] && r.branch != branch);
            if foreign && time(pair[0]) >= cutoff {
                kept.insert(pair[1]);
            }
        }
    }
    kept
}

#[derive(Debug, Clone)]
enum Step {
    Insert(usize),
    Rollback(u64),
    FastForward(usize),
    Branch(u64, Option<u64>, Option<i64>),
    Tag(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => (0usize..4).prop_map(Step::Insert),
        1 => any::<u64>().prop_map(Step::Rollback),
        1 => (0usize..4).prop_map(Step::FastForward),
        1 => (any::<u64>(), proptest::option::of(0u64..6), proptest::option::of(0i64..30_000)).prop_map(|(a, b, c)| Step::Branch(a, b, c)),
        1 => any::<u64>().prop_map(Step::Tag),
    ];
    proptest::collection::vec(step, 1..40)
}

proptest! {
    #[test]
    fn what_is_kept_is_what_the_policy_says(steps in steps(), age in 0i64..40_000, count in 0u64..8, later in 0i64..20) {
        let mut h = History::new();
        h.insert();
        let mut branches = vec![BranchId::MAIN];
        for (i, step) in steps.iter().enumerate() {
            let at = |n: &u64| n % h.state.applied_sn.0 + 1;
            match step {
                Step::Insert(b) => _ = h.insert_on(branches[b % branches.len()]),
                Step::Rollback(n) => { let to = at(n); h.rollback(to); }
                Step::FastForward(b) => { let b = branches[b % branches.len()]; if b != BranchId::MAIN && h.state.head_of(b) > Sn(0) { h.fast_forward(b); } }
                Step::Branch(n, count, age) => {
                    let (sn, name) = (at(n), format!("b{i}"));
                    branches.push(h.branch_at(&name, sn));
                    h.change(&name, |r| (r.min_snapshots, r.max_snapshot_age_ms) = (*count, *age));
                }
                Step::Tag(n) => { let sn = at(n); h.tag(&format!("t{i}"), sn); }
            }
        }
        let keep = keep(age, count);
        let mut now = Timestamp::from_secs(h.state.applied_sn.0 as i64 + later);
        let expected = naive(&h, &keep, now);
        let due = run_at(&mut h, &keep, &Overrides::default(), now);
        prop_assert_eq!(h.readable().into_iter().collect::<BTreeSet<_>>(), expected);
        // The wake-up is honest: nothing is due before it.
        let mut next = due.next_at;
        for _ in 0..200 {
            let Some(at) = next else { break };
            prop_assert!(at > now);
            let before = expiry(&h.state, &keep, &Overrides::default(), &Pinning::default(), Timestamp(at.0 - 1));
            prop_assert!(before.is_empty(), "{:?} before {}", before, at);
            now = at;
            next = run_at(&mut h, &keep, &Overrides::default(), now).next_at;
        }
        prop_assert_eq!(next, None, "it comes to an end");
    }
}
