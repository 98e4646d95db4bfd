use crate::{
    clock::Timestamp,
    ids::{BranchId, Sn},
    refs::{Ancestry, testkit::History},
};

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
