use crate::{
    ids::{BranchId, Sn},
    refs::{
        Needs, Rounding,
        needs::tests::{cuts, played, sees, steps},
        testkit::History,
    },
};
use proptest::prelude::*;

#[test]
fn old_records_become_one_and_those_that_can_be_read_stay() {
    let mut h = History::new();
    h.inserts(40);
    h.tag("t", 20);
    h.forget(0, 19);
    h.forget(20, 30);
    let rounding = Rounding::of(&h.state, &Needs::of(&h.state, &[])).among([5, 12, 19, 25, 29].map(Sn));
    let of = |sn: u64| rounding.of_row(Sn(sn)).0;
    assert_eq!([of(1), of(12), of(19)], [19, 19, 19]);
    assert_eq!(of(20), 20, "the tag's own record");
    assert_eq!([of(21), of(30)], [29, 29]);
    assert_eq!([of(31), of(40)], [31, 40], "above the mark");
    assert!(Rounding::of(&h.state, &Needs::of(&h.state, &[])).among([Sn(35)]).changes_nothing());
}

proptest! {
    #[test]
    fn no_cut_can_tell(steps in steps(), picks in proptest::collection::vec(any::<bool>(), 40)) {
        let (h, written, deletes) = played(&steps);
        let needs = Needs::of(&h.state, &[]);
        let mains: Vec<Sn> = written.iter().filter(|(b, _)| *b == BranchId::MAIN).map(|(_, sn)| *sn).collect();
        let known = mains.iter().zip(&picks).filter(|(_, p)| **p).map(|(sn, _)| *sn);
        let rounding = Rounding::of(&h.state, &needs).among(known);
        for sn in &mains {
            let to = rounding.of_row(*sn);
            prop_assert!(mains.contains(&to));
            prop_assert_eq!(rounding.of_row(to), to, "rounding twice is rounding once");
            for cut in cuts(&h.state) {
                for deleted in [&[][..], &deletes[..]] {
                    let before = sees(&h.state, &cut, (BranchId::MAIN, *sn), deleted, &[]);
                    prop_assert_eq!(sees(&h.state, &cut, (BranchId::MAIN, to), deleted, &[]), before, "{} as {} at {:?}", sn, to, cut);
                }
            }
        }
    }
}
