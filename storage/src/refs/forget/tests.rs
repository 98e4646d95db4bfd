use crate::{
    ErrorKind,
    ids::{BranchId, Sn},
    refs::testkit::History,
};

#[test]
fn a_line_goes_with_its_last_readable_record() {
    let mut h = History::new();
    h.inserts(10);
    h.join(3, 6);
    h.forget(2, 5);
    assert!(h.state.records.contains_key(&Sn(6)));
    assert_eq!(h.readable(), [1, 2, 6, 7, 8, 9, 10]);
    h.forget(5, 6);
    assert!(!h.state.records.contains_key(&Sn(6)));
    assert_eq!(h.state.gaps.get(&Sn(2)).unwrap().superseded_at, Some(h.time(6)), "of a line only its last time is known");
    assert_eq!(h.state.gaps.get(&Sn(7)).unwrap().parent, Some(Sn(2)));
    // Forgetting twice changes nothing.
    let before = h.state.gaps.clone();
    h.forget(2, 6);
    assert_eq!(h.state.gaps, before);
}

#[test]
fn lineages_go_with_the_last_cut_that_is_read_by_them() {
    let mut h = History::new();
    h.inserts(5);
    h.rollback(2); // 6
    h.inserts(2); // 7, 8
    h.rollback(4); // 9
    assert_eq!(h.state.lineages.get(&BranchId::MAIN).unwrap().len(), 3);
    h.forget(5, 8);
    assert_eq!(h.state.lineages.get(&BranchId::MAIN).unwrap().iter().map(|l| l.from.0).collect::<Vec<_>>(), [0, 9]);
    assert_eq!(h.state.lineage(BranchId::MAIN, Sn(3)).unwrap().from, Sn(0));
    h.forget(0, 8);
    assert_eq!(h.state.lineages.get(&BranchId::MAIN).unwrap().len(), 1);
}

#[test]
fn a_dropped_branch_takes_along_what_nobody_stands_on() {
    let mut h = History::new();
    h.inserts(3);
    let dev = h.branch("dev");
    (0..4).for_each(|_| _ = h.insert_on(dev)); // 4..7
    let other = h.branch_at("other", 5);
    h.tag("t", 6);
    let version = h.state.refs_version;
    h.state.drop_ref("dev").unwrap();
    assert_eq!(h.state.refs_version, version + 1);
    assert_eq!(h.readable(), [1, 2, 3, 4, 5, 6], "the tag and the other branch stand on these");
    assert!(h.state.lineages.contains_key(&dev));
    h.state.drop_ref("t").unwrap();
    assert_eq!(h.readable(), [1, 2, 3, 4, 5, 6], "a tag that goes leaves the rest to the next expiry");
    h.state.drop_ref("other").unwrap();
    assert!(!h.state.lineages.contains_key(&other));
    assert_eq!(h.state.drop_ref("dev").unwrap_err().kind(), ErrorKind::NotFound);
}

#[test]
fn a_replaced_branch_is_a_new_one() {
    let mut h = History::new();
    h.inserts(3);
    let first = h.branch("dev");
    h.insert_on(first); // 4
    let second = h.branch_at("dev", 2);
    assert_ne!(first, second);
    assert_eq!(h.readable(), [1, 2, 3]);
    assert!(!h.state.lineages.contains_key(&first));
    assert_eq!(h.state.head_of(second), Sn(2));
    h.insert_on(second); // 5
    assert_eq!(h.state.head_of(second), Sn(5));
}

#[test]
fn nothing_is_named_that_cannot_be_read() {
    let mut h = History::new();
    h.inserts(3);
    let tag = h.tag("t", 2);
    h.state.drop_ref("t").unwrap();
    h.forget(0, 2);
    assert_eq!(h.state.set_ref(&tag, None).unwrap_err().kind(), ErrorKind::Conflict);
    let dev = h.branch("dev");
    let again = h.state.branch(dev).unwrap().as_ref().clone();
    let lineage = h.state.lineages.get(&dev).unwrap()[0].clone();
    assert_eq!(h.state.set_ref(&again, Some(&lineage)).unwrap_err().kind(), ErrorKind::Conflict, "I2");
}
