use crate::{
    ids::{BranchId, PartId, Sn},
    lineage::{Cut, SnRange},
    refs::{
        Needs, Rounding,
        needs::tests::{cuts, played, sees, steps},
        testkit::History,
    },
    testkit::defs,
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

#[test]
fn a_part_is_of_one_record_where_nothing_tells_its_records_apart() {
    let mut h = History::new();
    h.inserts(40);
    h.tag("t", 20);
    h.forget(0, 19);
    h.forget(20, 30);
    let rounding = Rounding::of(&h.state, &Needs::of(&h.state, &[]));
    let part = |after, to| {
        let mut part = defs::part(PartId(1), 1, 10);
        part.origins[0].sns = SnRange { after: Sn(after), to: Sn(to) };
        part
    };
    let of = |after, to| rounding.for_all(&part(after, to)).map(|sn| sn.0);
    assert_eq!([of(0, 19), of(3, 9), of(20, 30)], [Some(19), Some(9), Some(30)]);
    assert_eq!([of(0, 20), of(15, 25), of(25, 31), of(35, 40)], [None; 4], "the tag, both sides of it, the mark, above it");
    assert_eq!([of(8, 9), of(19, 20)], [None; 2], "one record is one record");
    let mut other = part(3, 9);
    other.origins[0].branch = BranchId(1);
    assert_eq!(rounding.for_all(&other), None);
    assert_eq!(rounding.for_all(&crate::part::PartMeta { sn_in_meta: true, ..part(3, 9) }), None);
}

proptest! {
    /// What is cheaply said of a plain stream holds by all that is known.
    #[test]
    fn plain_streams_know_no_more(n in 1u64..30, forgotten in 0u64..30, after in 0u64..30, len in 1u64..10, pin in 0u64..40) {
        let mut h = History::new();
        h.inserts(n);
        h.forget(0, forgotten.min(n - 1));
        let pins: Vec<Cut> = (pin < 30).then(|| Cut { sn: Sn(pin), ..h.state.head() }).into_iter().collect();
        let mut part = defs::part(PartId(1), 1, 10);
        part.origins[0].sns = SnRange { after: Sn(after), to: Sn(after + len) };
        if let Some(sn) = Rounding::of_plain(&h.state, &pins).for_all(&part) {
            prop_assert_eq!(Rounding::of(&h.state, &Needs::of(&h.state, &pins)).for_all(&part), Some(sn));
        }
    }

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
