//! Parts that a tag, a branch or a reader needs, and parts that nobody does.

use super::*;
use crate::plan::{Pin, PinnedBy};

fn pinned(by: PinnedBy, of: PartView) -> PartView {
    PartView { pin: Some(Box::new(Pin { by, name: "x".into(), until: NEVER })), ..of }
}

fn kinds(plans: &[Plan]) -> Vec<(&'static str, usize)> {
    plans.iter().map(|p| (p.kind(), p.parts().len())).collect()
}

#[test]
fn due_rows_of_a_part_that_a_ref_needs_are_recorded_and_not_rewritten() {
    for by in [PinnedBy::Tag, PinnedBy::Branch] {
        let view =
            stream(vec![partition("a", vec![pinned(by, part(1, at(5), at(6))), pinned(by, part(2, at(5), NEVER)), part(3, at(5), NEVER)])]);
        assert_eq!(kinds(&plan(&view, at(10)).plans), [("expire", 2), ("prune", 1)]);
        assert_eq!(kinds(&optimize(&view, None, false, at(10))), [("expire", 2), ("prune", 1)]);
        assert_eq!(violations(&view, &plan(&view, at(10)).plans), Vec::<String>::new());
    }
}

#[test]
fn rows_that_change_wait_for_a_ref_and_all_rows_for_a_reader() {
    let state = |p: &PartView, now| {
        let view = stream(vec![partition("a", vec![p.clone()])]);
        assert!(kinds(&plan(&view, now).plans).iter().all(|(kind, _)| *kind == "expire"));
        decide(p, &view.partitions[0], &view, now).state
    };
    // A rule that changes rows is due, one that removes them is not yet.
    let changes = |by| pinned(by, PartView { removes_at: at(20), ..part(1, at(5), NEVER) });
    assert_eq!(state(&changes(PinnedBy::Tag), at(10)), State::PinnedByTag);
    assert_eq!(state(&changes(PinnedBy::Branch), at(10)), State::PinnedByBranch);
    assert_eq!(state(&changes(PinnedBy::Tag), at(20)), State::DueQueued);
    let view = stream(vec![partition("a", vec![changes(PinnedBy::Tag)])]);
    assert_eq!(plan(&view, at(10)).wake_at, Some(at(20)));
    for whole in [NEVER, at(6)] {
        assert_eq!(state(&pinned(PinnedBy::Reader, part(1, at(5), whole)), at(10)), State::PinnedByReader);
    }
}

#[test]
fn merges_under_a_ref_leave_due_rows_where_they_are() {
    let many = (0..FANOUT as u32).map(|i| pinned(PinnedBy::Tag, part(i, NEVER, NEVER))).collect();
    let merges = |view: &StreamView| match plan(view, at(10)).plans.as_slice() {
        [Plan::Merge { delete_due, .. }] => *delete_due,
        other => panic!("{other:?}"),
    };
    let mut view = stream(vec![partition("a", many)]);
    assert!(!merges(&view));
    view.partitions[0].parts.iter_mut().for_each(|p| p.pin = None);
    assert!(merges(&view));
}

#[test]
fn what_nobody_needs_goes_whatever_is_stopped() {
    let dead = |id| PartView { unneeded: true, ..part(id, at(5), at(6)) };
    let mut view = stream(vec![
        partition("a", vec![dead(1), PartView { busy: true, ..dead(2) }, part(3, NEVER, NEVER)]),
        partition("b", vec![dead(4)]),
    ]);
    view.stops = Stops { merges: true, ttl_merges: true, moves: true };
    let plans = plan(&view, at(10)).plans;
    assert_eq!(kinds(&plans), [("release", 2)]);
    assert_eq!(violations(&view, &plans), Vec::<String>::new());
}

#[test]
fn rows_of_different_histories_are_not_merged_together() {
    let mut parts: Vec<PartView> = (0..2 * FANOUT as u32).map(|i| part(i, NEVER, NEVER)).collect();
    parts.iter_mut().skip(1).step_by(2).for_each(|p| p.family = 3);
    let view = stream(vec![partition("a", parts)]);
    for plans in [plan(&view, at(10)).plans, optimize(&view, None, true, at(10))] {
        assert_eq!(kinds(&plans), [("merge", FANOUT), ("merge", FANOUT)]);
        assert!(plans.iter().all(|p| p.parts().windows(2).all(|pair| (pair[1].0 - pair[0].0) % 2 == 0)));
    }
}
