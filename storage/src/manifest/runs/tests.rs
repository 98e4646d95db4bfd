use super::*;
use proptest::prelude::*;

fn range(after: u64, to: u64) -> SnRange {
    SnRange { after: Sn(after), to: Sn(to) }
}

#[test]
fn neighbours_join_and_one_range_is_no_runs() {
    assert_eq!(Runs::of([range(2, 5), range(5, 9)]), None);
    let runs = Runs::of([range(2, 5), range(5, 6), range(8, 9)]).unwrap();
    assert_eq!(runs.ranges(), [range(2, 6), range(8, 9)]);
    assert_eq!((1..=10).filter(|sn| runs.contains(Sn(*sn))).collect::<Vec<_>>(), [3, 4, 5, 6, 9]);
    assert_eq!(serde_json::to_string(&runs).unwrap(), "[2,4,2,1]");
}

#[test]
fn numbers_that_make_no_runs_are_refused() {
    for text in ["[]", "[1]", "[1,2,3]", "[1,0]", "[1,2,0,3]", "[18446744073709551615,1]", "[1,-2]"] {
        assert!(serde_json::from_str::<Runs>(text).is_err(), "{text}");
    }
}

proptest! {
    #[test]
    fn what_is_written_is_read(pairs in proptest::collection::vec((1u64..5, 1u64..5), 2..40)) {
        let mut at = 0;
        let ranges: Vec<SnRange> = pairs.iter().map(|(gap, len)| { let r = range(at + gap, at + gap + len); at = r.to.0; r }).collect();
        let runs = Runs::of(ranges.clone()).unwrap();
        prop_assert_eq!(runs.ranges(), ranges.as_slice());
        let read: Runs = serde_json::from_str(&serde_json::to_string(&runs).unwrap()).unwrap();
        prop_assert_eq!(read, runs);
    }
}
