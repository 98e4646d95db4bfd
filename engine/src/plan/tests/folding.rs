//! GROUP BY rules: which parts are folded together, when, and that it comes to an end.

use super::*;

const GROUP_BY: &str = "d + 1 GROUP BY k";

fn folding(parts: Vec<PartView>) -> StreamView {
    let fold = RuleView { fingerprint: Fingerprint(2), text: GROUP_BY.into(), kind: RuleKind::Fold };
    let mut view = stream(vec![partition("a", parts)]);
    view.rules = vec![fold];
    view.settings.prune_every = std::time::Duration::ZERO;
    view
}

/// Rows are to be folded from then on.
fn due(n: u32, at_second: i64) -> PartView {
    PartView { folds_at: at(at_second), removes_at: NEVER, worth_at: NEVER, ..part(n, at(at_second), NEVER) }
}

/// It was folded, and is quiet.
fn folded(n: u32) -> PartView {
    PartView { folded: true, ..part(n, NEVER, NEVER) }
}

fn ids(of: &[u32]) -> Vec<PartId> {
    of.iter().map(|n| PartId::new(Epoch(1), *n)).collect()
}

fn done(view: &StreamView, now: i64) -> Vec<(&'static str, Vec<PartId>)> {
    let plans = plan(view, at(now)).plans;
    assert_eq!(violations(view, &plans), Vec::<String>::new());
    plans.iter().map(|p| (p.kind(), p.parts().to_vec())).collect()
}

#[test]
fn parts_with_rows_of_one_key_are_folded_together() {
    // proves A1
    assert_eq!(done(&folding(vec![due(1, 5)]), 10), [("prune", ids(&[1]))], "nobody is there to fold it with");
    assert_eq!(done(&folding(vec![due(1, 5), part(2, NEVER, NEVER)]), 10), [("prune", ids(&[1]))], "the other has no due row");
    assert_eq!(done(&folding(vec![due(1, 5), due(2, 9), due(3, 50)]), 10), [("fold", ids(&[1, 2]))]);
    assert_eq!(done(&folding(vec![due(1, 5), folded(2), folded(3)]), 10), [("fold", ids(&[1, 2, 3]))], "they may have its keys");
    assert_eq!(done(&folding(vec![folded(2), folded(3)]), 10), [("fold", ids(&[2, 3]))], "merges have folded each by itself");
    assert_eq!(done(&folding(vec![folded(2)]), 10), [], "what was folded is quiet");
    let mut other = folding(vec![folded(1), folded(2)]);
    other.rules[0].kind = RuleKind::Delete;
    assert_eq!(done(&other, 10), [], "the rule is gone");
}

#[test]
fn folding_together_keeps_the_distance_of_prunes_and_the_bounds_of_merges() {
    let mut view = folding(vec![due(1, 5), folded(2)]);
    view.settings.prune_every = std::time::Duration::from_secs(100);
    view.partitions[0].pruned_at = Some(at(0));
    assert_eq!((done(&view, 10), plan(&view, at(10)).wake_at), (vec![], Some(at(100))));
    view.partitions[0].parts = vec![folded(1), folded(2)];
    assert_eq!((done(&view, 10), plan(&view, at(10)).wake_at), (vec![], Some(at(100))));
    assert_eq!(done(&view, 100), [("fold", ids(&[1, 2]))]);
    // Due ones first, then the small.
    let sized = |p: PartView, bytes| PartView { bytes, ..p };
    let mut view = folding(vec![sized(folded(1), 10), sized(due(2, 5), 700), sized(folded(3), 400), sized(due(4, 5), 100)]);
    view.settings.max_bytes_to_merge = 900;
    assert_eq!(done(&view, 10), [("fold", ids(&[1, 2, 4]))]);
    view.settings.max_parts_to_merge = 2;
    assert_eq!(done(&view, 10)[0], ("fold", ids(&[2, 4])));
    view.settings.max_bytes_to_merge = 750;
    assert_eq!(done(&view, 10)[..2], [("fold", ids(&[1, 4])), ("prune", ids(&[2]))]);
    view.settings.max_parts_to_merge = 1;
    assert_eq!(done(&view, 10), [("prune", ids(&[2, 4]))], "merges are off");
    for stop in 0..3 {
        let mut view = folding(vec![folded(1), due(2, 5)]);
        match stop {
            0 => view.stops.merges = true,
            1 => view.stops.ttl_merges = true,
            _ => view.settings.only_drop_parts = true,
        }
        assert_eq!(done(&view, 10), [], "{stop}");
    }
}

/// OPTIMIZE waits for no distance; what is not folded is merged beside.
#[test]
fn optimize_folds_together_whatever_the_timers_say() {
    let mut view = folding(vec![due(1, 5), folded(2), part(3, NEVER, NEVER), part(4, NEVER, NEVER), due(5, 50)]);
    view.settings.prune_every = std::time::Duration::from_secs(100);
    view.partitions[0].pruned_at = Some(at(9));
    let kinds = |whole| optimize(&view, None, whole, at(10)).iter().map(|p| (p.kind(), p.parts().to_vec())).collect::<Vec<_>>();
    assert_eq!(kinds(false), [("merge", ids(&[1, 2])), ("merge", ids(&[3, 4, 5]))]);
    assert_eq!(kinds(true), [("merge", ids(&[1, 2, 3, 4, 5]))]);
}

/// A folded part that is to be joined with another says so, and what it waits for.
#[test]
fn a_folded_part_that_waits_for_another_says_so() {
    let facts =
        |rows| RuleFacts { rule: Fingerprint(2), rows, never: 0, earliest: (rows > 0).then(|| at(90)), latest: (rows > 0).then(|| at(90)) };
    let meta = meta(10, vec![facts(4)]);
    let mut view = folding(vec![]);
    let own = PartView::of(&meta, &view.rules);
    assert!(own.folded && own.folds_at == at(90));
    assert!(!PartView::of(&PartMeta { facts: vec![facts(10)], ..meta.clone() }, &view.rules).folded);
    let states = |view: &StreamView| {
        let scene = Scene::new(view, &view.partitions[0], at(10));
        explain::explain(&meta, &own, &scene, false).into_iter().map(|r| (r.action, r.state, r.next_attempt_at)).collect::<Vec<_>>()
    };
    view.partitions[0].parts = vec![own.clone()];
    assert_eq!(states(&view), [("group_by".to_owned(), State::NotDue, Some(at(90)))]);
    view.partitions[0].parts.push(folded(7));
    assert_eq!(states(&view), [("group_by".to_owned(), State::DueQueued, Some(at(10)))]);
    view.settings.prune_every = std::time::Duration::from_secs(100);
    view.partitions[0].pruned_at = Some(at(9));
    assert_eq!(states(&view), [("group_by".to_owned(), State::WaitingTimeout, Some(at(109)))]);
}

#[test]
fn what_waits_for_another_reason_is_not_folded_with_others() {
    let pin = || Some(Box::new(Pin { by: PinnedBy::Tag, name: "t".into(), until: NEVER }));
    let cases = [
        PartView { pin: pin(), ..due(2, 5) },
        PartView { busy: true, ..folded(2) },
        PartView { family: 1, ..folded(2) },
        PartView { unneeded: true, ..folded(2) },
        PartView { failure: Some(Box::new(Failure { count: 3, last_at: at(10), error: "x".into() })), ..folded(2) },
    ];
    for other in cases {
        let plans = done(&folding(vec![due(1, 5), other.clone()]), 11);
        assert!(plans.contains(&("prune", ids(&[1]))) && plans.iter().all(|(kind, _)| *kind != "fold"), "{other:?}: {plans:?}");
    }
}

/// Each round that leaves something to do leaves fewer parts with folded rows, and in the end there is one where it fits into a merge.
#[test]
fn many_due_parts_become_one() {
    let mut view = folding((0..500).map(|n| PartView { bytes: 1000 + u64::from(n), ..due(n, 5) }).collect());
    view.settings.max_parts_to_merge = 100;
    let (mut next_id, mut written, mut rounds) = (10_000, 0, 0);
    loop {
        let plans = plan(&view, at(10)).plans;
        if plans.is_empty() {
            break;
        }
        rounds += 1;
        written += plans.iter().map(|p| p.parts().len()).sum::<usize>();
        apply(&mut view, &plans, at(10), &mut next_id);
    }
    assert_eq!(view.partitions[0].parts.iter().filter(|p| p.folded && p.family == 0).count(), 1);
    assert!(rounds <= 8 && written <= 1500, "{rounds} rounds, {written} parts read");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn in_the_end_each_key_is_in_one_part(mut view in random_stream(), now in 0i64..120, parts in 2usize..40, bytes in 1u64..1 << 26) {
        for p in view.partitions.iter_mut().flat_map(|p| &mut p.parts) {
            // So few rows that their number keeps none from the others.
            (p.busy, p.failure, p.unmeasured, p.rows) = (false, None, false, 10);
        }
        (view.settings.max_parts_to_merge, view.settings.max_bytes_to_merge) = (parts, bytes);
        let mut next_id = 1000;
        for round in 0.. {
            let planned = plan(&view, at(now));
            if planned.plans.is_empty() {
                break;
            }
            prop_assert!(round < 24, "still planning {:?}", planned.plans);
            apply(&mut view, &planned.plans, at(now), &mut next_id);
        }
        let folds = view.rules.len() > 1 && view.stops == Stops::default() && !view.settings.only_drop_parts;
        for partition in view.partitions.iter().filter(|p| folds && decide::waits_until(p, &view, at(now)).is_none()) {
            for family in 0..2 {
                let mut left: Vec<u64> =
                    partition.parts.iter().filter(|p| p.folded && p.family == family).map(|p| p.bytes).collect();
                left.sort_unstable();
                prop_assert!(left.len() < 2 || left[0] + left[1] > bytes, "{:?}", left);
            }
        }
    }
}
