use crate::{
    clock::Timestamp,
    ids::{Sn, StreamId},
    refs::{Lag, Reader, testkit::History},
};

fn reader(sn: u64) -> Reader {
    Reader { name: "r".into(), stream: StreamId(1), sn: Sn(sn), max_lag_ms: Some(5000), created_at: Timestamp(0), cut_off_at: None }
}

#[test]
fn lag_is_what_main_has_that_was_not_read() {
    let mut h = History::new();
    assert_eq!(reader(0).lag(&h.state, Timestamp::from_secs(9)), Lag::default());
    h.inserts(4);
    let dev = h.branch("dev");
    h.insert_on(dev); // 5
    h.inserts(2); // 6, 7
    let now = Timestamp::from_secs(10);
    assert_eq!(reader(0).lag(&h.state, now), Lag { rows: 60, ms: 9000 });
    assert_eq!(reader(4).lag(&h.state, now), Lag { rows: 20, ms: 4000 }, "a branch's records are not the reader's");
    assert_eq!(reader(7).lag(&h.state, now), Lag::default());
    assert!(reader(4).protects(&h.state, now) && !reader(4).is_cut_off(&h.state, now));
    assert!(reader(3).is_cut_off(&h.state, now) && !reader(3).protects(&h.state, now));
    let free = Reader { max_lag_ms: None, ..reader(0) };
    assert!(!free.protects(&h.state, now) && !free.is_cut_off(&h.state, now));
    // What it was cut off for may be forgotten since: it was more than its MAX LAG behind then.
    let late = Reader { cut_off_at: Some(Timestamp::from_secs(8)), ..reader(6) };
    assert_eq!(late.lag(&h.state, now), Lag { rows: 10, ms: 7000 });
    // Part of a line is its share.
    h.join(1, 4);
    assert_eq!(reader(1).lag(&h.state, now).rows, 50);
    // What a rollback cut off is not to be read any more.
    h.rollback(2); // 8
    assert_eq!(reader(1).lag(&h.state, now).rows, 10);
}
