use super::*;
use proptest::prelude::*;

fn ranges() -> impl Strategy<Value = Vec<(u64, u64)>> {
    proptest::collection::vec((0u64..40, 0u64..40), 0..8)
}

fn range((after, to): (u64, u64)) -> SnRange {
    SnRange { after: Sn(after), to: Sn(to) }
}

proptest! {
    #[test]
    fn a_set_holds_what_was_put_in_and_not_taken_out(put in ranges(), taken in ranges()) {
        let mut set = SnSet::new(put.iter().copied().map(range));
        for t in &taken {
            set.remove(range(*t));
        }
        for sn in 0..45 {
            let expected = put.iter().any(|r| range(*r).contains(Sn(sn))) && !taken.iter().any(|r| range(*r).contains(Sn(sn)));
            prop_assert_eq!(set.contains(Sn(sn)), expected, "sn {}", sn);
        }
        for pair in set.ranges().windows(2) {
            prop_assert!(pair[0].to < pair[1].after);
        }
    }

    #[test]
    fn inserting_is_the_same_as_building(put in ranges()) {
        let mut set = SnSet::default();
        for r in &put {
            set.insert(range(*r));
        }
        prop_assert_eq!(set, SnSet::new(put.into_iter().map(range)));
    }
}

#[test]
fn main_after_a_rollback_sees_the_start_and_what_came_after() {
    let rolled_back = Lineage { from: Sn(45), sees: vec![(BranchId::MAIN, SnSet::new([range((0, 20)), range((45, u64::MAX))]))] };
    assert!(rolled_back.sees(BranchId::MAIN, Sn(20), Sn(50)));
    assert!(!rolled_back.sees(BranchId::MAIN, Sn(30), Sn(50)));
    assert!(rolled_back.sees(BranchId::MAIN, Sn(46), Sn(50)));
    assert!(!rolled_back.sees(BranchId::MAIN, Sn(51), Sn(50)));
    assert!(Lineage::whole(BranchId::MAIN).sees(BranchId::MAIN, Sn(30), Sn(30)));
}
