use crate::{
    ErrorKind, Timestamp,
    ids::{BranchId, CommitNo, Sn},
    lineage::Cut,
    refs::{AsOf, testkit::History},
};

const NOW: Timestamp = Timestamp(1_000_000_000);

fn refusal(h: &History, at: AsOf) -> String {
    let e = h.state.resolve(&at, NOW, None).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::NotFound);
    e.message().to_owned()
}

fn sn(h: &History, at: AsOf) -> u64 {
    h.state.resolve(&at, NOW, None).unwrap().sn.0
}

// proves U7, I35
#[test]
fn a_number_is_the_state_its_record_left_on_the_branch_it_was_written_to() {
    let mut h = History::new();
    h.inserts(5);
    let dev = h.branch("dev");
    h.insert_on(dev); // 6
    h.rollback(2); // 7
    let cut = |n: u64| h.state.resolve(&AsOf::Sn(Sn(n)), NOW, None).unwrap().cut;
    assert_eq!(cut(4), Cut { branch: BranchId::MAIN, sn: Sn(4), horizon: CommitNo(u64::MAX) });
    assert_eq!(cut(6), Cut { branch: dev, sn: Sn(6), horizon: CommitNo(1) });
    assert_eq!(refusal(&h, AsOf::Sn(Sn(9))), "snapshot 9 of default.s does not exist: the newest is 7");
    assert_eq!(refusal(&h, AsOf::Sn(Sn(0))), "snapshots of default.s are numbered from 1: 0 is the empty stream");
    h.forget(0, 3);
    assert_eq!(
        refusal(&h, AsOf::Sn(Sn(2))),
        "snapshot 2 of default.s is not kept any more: the oldest available is sn 4 of 1970-01-01T00:00:04Z"
    );
}

#[test]
fn every_record_inside_a_line_can_be_named() {
    let mut h = History::new();
    h.inserts(10);
    h.join(2, 8);
    assert_eq!((2..=8).map(|n| sn(&h, AsOf::Sn(Sn(n)))).collect::<Vec<_>>(), (2..=8).collect::<Vec<_>>());
    // By time only the end of the line is known.
    assert_eq!(sn(&h, AsOf::Time(h.time(7))), 1);
    assert_eq!(sn(&h, AsOf::Time(h.time(8))), 8);
}

#[test]
fn a_time_within_the_oldest_line_is_read_as_its_first_record_left_it() {
    let mut h = History::new();
    h.inserts(10);
    h.join(1, 8);
    assert_eq!(h.state.oldest_available(), Some((Sn(1), h.time(1))));
    assert!(refusal(&h, AsOf::Time(h.time(0))).contains("sn 1 of 1970-01-01T00:00:01Z"));
    assert_eq!([1, 2, 7, 8, 9].map(|t| sn(&h, AsOf::Time(h.time(t)))), [1, 1, 1, 8, 9]);
}

#[test]
fn a_name_is_a_tag_or_the_head_of_a_branch() {
    let mut h = History::new();
    h.inserts(5);
    h.tag("hold", 3);
    let dev = h.branch("dev");
    assert_eq!(sn(&h, AsOf::Name("dev".into())), 5);
    h.insert_on(dev);
    let named = |name: &str| h.state.resolve(&AsOf::Name(name.into()), NOW, None).unwrap();
    assert_eq!((named("hold").sn, named("hold").cut.horizon), (Sn(3), CommitNo(1)));
    assert!(named("hold").schema.is_some() && named("dev").schema.is_none());
    assert_eq!((named("dev").sn, named("dev").cut.sn, named("dev").cut.branch), (Sn(6), Sn(u64::MAX), dev));
    assert_eq!((named("main").sn, named("main").cut), (Sn(5), h.state.head()));
    assert_eq!(refusal(&h, AsOf::Name("hodl".into())), "default.s has no tag or branch 'hodl'; did you mean 'hold'?");
    h.change("hold", |r| r.max_ref_age_ms = Some(1000));
    assert!(h.state.resolve(&AsOf::Name("hold".into()), Timestamp(999_999), None).is_ok());
    assert_eq!(refusal(&h, AsOf::Name("hold".into())), "tag 'hold' of default.s ended at 1970-01-01T00:00:01Z: RETAIN says so");
    assert!(h.state.resolve(&AsOf::Name("dev".into()), NOW, Some(1)).is_err(), "the stream's own limit");
    assert!(h.state.resolve(&AsOf::Name("main".into()), NOW, Some(1)).is_ok());
}

// proves I36
#[test]
fn a_time_is_what_main_was_then_or_nothing() {
    let mut h = History::new();
    assert_eq!(refusal(&h, AsOf::Time(NOW)), "default.s cannot be read as of 1970-01-01T00:16:40Z: it has no snapshot yet");
    h.inserts(10);
    let dev = h.branch("dev");
    h.insert_on(dev); // 11
    h.tag("t", 4);
    assert_eq!(sn(&h, AsOf::Time(NOW)), 10, "a branch's record is none of main");
    assert_eq!(sn(&h, AsOf::Time(Timestamp(5_999_999))), 5);
    assert_eq!(sn(&h, AsOf::Time(h.time(6))), 6);
    let before = "default.s cannot be read as of 1970-01-01T00:00:00Z: the oldest available is sn 1 of 1970-01-01T00:00:01Z";
    assert_eq!(refusal(&h, AsOf::Time(Timestamp(0))), before);
    assert!(refusal(&h, AsOf::Time(Timestamp(NOW.0 + 1))).ends_with("it is 1970-01-01T00:16:40Z now"));
    h.forget(0, 3);
    h.forget(4, 8);
    assert_eq!(sn(&h, AsOf::Time(Timestamp(4_999_999))), 4);
    let gap = refusal(&h, AsOf::Time(h.time(5)));
    assert!(gap.ends_with("what was current then is not kept any more; the oldest available is sn 9 of 1970-01-01T00:00:09Z"), "{gap}");
    assert_eq!(sn(&h, AsOf::Time(h.time(9))), 9);
}
