use crate::{
    clock::Timestamp,
    ids::{BranchId, Sn},
    refs::{
        Ancestry,
        needs::tests::{played, steps},
        testkit::History,
    },
};
use proptest::prelude::*;

#[test]
fn a_walk_follows_parents_through_rollbacks_forks_and_fast_forwards() {
    let mut h = History::new();
    h.inserts(5);
    let dev = h.branch("dev");
    h.insert_on(dev); // 6
    h.rollback(3); // 7
    h.insert(); // 8
    let a = Ancestry::of(&h.state);
    let walked = |sn: u64| a.walk(Sn(sn)).map(|s| s.sns.to.0).collect::<Vec<_>>();
    assert_eq!(walked(8), [8, 7, 3, 2, 1]);
    assert_eq!(walked(6), [6, 5, 4, 3, 2, 1]);
    assert!(a.is_ancestor(Sn(3), Sn(8)) && a.is_ancestor(Sn(8), Sn(8)) && a.is_ancestor(Sn(0), Sn(8)));
    assert!(!a.is_ancestor(Sn(4), Sn(8)), "the rollback cut it off");
    assert!(!a.is_ancestor(Sn(6), Sn(8)));
    assert_eq!(a.common(Sn(6), Sn(8)), Sn(3));
    assert_eq!(a.between(Sn(8), Sn(6), 10), [Sn(6), Sn(5), Sn(4)]);
    assert_eq!(a.between(Sn(8), Sn(6), 1), [Sn(6)]);
    assert_eq!(a.line_of(Sn(4)).unwrap().superseded_at, h.time(5));
    assert_eq!(a.line_of(Sn(5)).unwrap().superseded_at, h.time(7), "main went on from 5 with the rollback");
    assert_eq!(a.line_of(Sn(8)).unwrap().superseded_at, Timestamp::MAX);
    assert_eq!(a.line_of(Sn(6)).unwrap().superseded_at, Timestamp::MAX, "a branch's head");
    assert_eq!(a.line_of(Sn(9)), None);
}

#[test]
fn a_walk_may_begin_and_end_inside_a_line() {
    let mut h = History::new();
    h.inserts(20);
    h.join(5, 15);
    h.rollback(10); // 21
    let a = Ancestry::of(&h.state);
    let walked: Vec<_> = a.walk(Sn(21)).map(|s| (s.sns.after.0, s.sns.to.0)).collect();
    assert_eq!(walked, [(20, 21), (4, 10), (3, 4), (2, 3), (1, 2), (0, 1)]);
    assert!(a.is_ancestor(Sn(10), Sn(21)) && a.is_ancestor(Sn(5), Sn(21)));
    assert!(!a.is_ancestor(Sn(11), Sn(21)));
    assert_eq!(a.common(Sn(20), Sn(21)), Sn(10));
}

#[test]
fn the_run_of_main_ends_at_what_is_forgotten_and_not_at_other_branches() {
    let mut h = History::new();
    h.inserts(10);
    let dev = h.branch("dev");
    h.insert_on(dev); // 11
    h.inserts(3); // 12..14
    assert_eq!(h.state.history_from(), Some(Sn(1)));
    h.forget(2, 5);
    assert_eq!(h.state.history_from(), Some(Sn(6)));
    // What a branch wrote is no hole in main.
    h.forget(10, 11);
    assert_eq!(h.state.history_from(), Some(Sn(6)));
    h.forget(12, 13);
    assert_eq!(h.state.oldest_available(), Some((Sn(14), h.time(14))));
    // Inside a line.
    h.inserts(10); // 15..24
    h.join(15, 24);
    h.forget(13, 19);
    assert_eq!(h.state.history_from(), Some(Sn(20)));
}

#[test]
fn ancestors_are_known_across_what_is_forgotten() {
    let mut h = History::new();
    h.inserts(10);
    let dev = h.branch("dev");
    for _ in 0..10 {
        h.insert_on(dev);
    }
    h.forget(3, 9);
    h.forget(10, 18);
    let a = Ancestry::of(&h.state);
    assert!(a.is_ancestor(Sn(10), Sn(20)));
    assert!(a.is_ancestor(Sn(3), Sn(20)));
    assert_eq!(a.walk(Sn(20)).map(|s| s.sns.to.0).collect::<Vec<_>>(), [20, 19, 10, 3, 2, 1]);
    // The record before the gap was superseded by what is gone.
    assert_eq!(a.line_of(Sn(3)).unwrap().superseded_at, h.time(4));
    assert_eq!(h.state.records.get(&Sn(19)).unwrap().parent, Sn(18), "the record itself says what it said");
    h.forget(9, 10);
    h.forget(0, 3);
    let a = Ancestry::of(&h.state);
    assert_eq!(a.walk(Sn(20)).map(|s| s.sns.to.0).collect::<Vec<_>>(), [20, 19]);
    assert_eq!(h.state.lineages.get(&BranchId::MAIN).unwrap().len(), 1);
}

#[test]
fn lines_of_branches_that_are_written_by_turns_lie_within_each_other() {
    let mut h = History::new();
    h.inserts(4);
    let dev = h.branch("dev");
    for _ in 0..6 {
        h.insert_on(dev); // 5, 7 .. 15
        h.insert(); // 6, 8 .. 16
    }
    h.insert(); // 17: older are 1 to 8
    for _ in 0..4 {
        h.state.coalesce();
    }
    let counts: Vec<(u32, u64, u64)> = h.state.records.values().map(|r| (r.branch.0, r.sn.0, r.count)).collect();
    assert!(counts.len() < 10 && counts.iter().map(|c| c.2).sum::<u64>() == 17, "{counts:?}");
    let a = Ancestry::of(&h.state);
    assert_eq!(
        (1..=17).map(|sn| a.line_of(Sn(sn)).unwrap().branch.0).collect::<Vec<_>>(),
        [0, 0, 0, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 0]
    );
    assert_eq!(a.common(Sn(15), Sn(17)), Sn(4));
    assert_eq!(a.between(Sn(17), Sn(11), 9), [11, 9, 7, 5].map(Sn));
    assert!(a.is_ancestor(Sn(7), Sn(15)) && !a.is_ancestor(Sn(8), Sn(15)) && a.is_ancestor(Sn(8), Sn(17)));
    assert_eq!(h.state.history_from(), Some(Sn(1)));
    h.forget(0, 4);
    h.forget(5, 6);
    assert_eq!(h.state.history_from(), Some(Sn(8)));
}

proptest! {
    #[test]
    fn summing_up_changes_no_answer(steps in steps()) {
        let (h, ..) = played(&steps);
        let mut summed = h.state.clone();
        for _ in 0..4 {
            summed.coalesce();
        }
        let (plain, lines) = (Ancestry::of(&h.state), Ancestry::of(&summed));
        prop_assert_eq!(plain.history_from(&h.state).map(|f| f.0), lines.history_from(&summed).map(|f| f.0));
        let sns: Vec<Sn> = h.readable().into_iter().map(Sn).collect();
        for a in &sns {
            prop_assert_eq!(plain.line_of(*a).map(|l| l.branch), lines.line_of(*a).map(|l| l.branch), "{}", a);
            prop_assert_eq!(summed.line_of(*a).map(|l| l.branch), h.state.line_of(*a).map(|l| l.branch), "{}", a);
            for b in &sns {
                prop_assert_eq!(plain.is_ancestor(*a, *b), lines.is_ancestor(*a, *b), "{} of {}", a, b);
                prop_assert_eq!(plain.common(*a, *b), lines.common(*a, *b), "{} and {}", a, b);
                prop_assert_eq!(plain.between(*a, *b, 50), lines.between(*a, *b, 50), "{} and {}", a, b);
            }
        }
    }
}
