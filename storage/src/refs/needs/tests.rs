//! Against an enumeration of every cut that can be read and every row there may be.

use crate::{
    ids::{BranchId, CommitNo, PartId, Sn},
    lineage::{Cut, SnRange},
    manifest::StreamState,
    part::{
        PartMeta,
        meta::{Deletion, ExpiredRows, Origin, RowsAt},
    },
    refs::{Needed, Needs, RefKind, testkit::History},
    testkit::defs,
};
use proptest::prelude::*;

fn origin(branch: BranchId, after: u64, to: u64) -> Origin {
    Origin { branch, sns: SnRange { after: Sn(after), to: Sn(to) }, rows: 1 }
}

fn part(origins: Vec<Origin>) -> PartMeta {
    PartMeta { rows: origins.len() as u64, origins, ..defs::part(PartId(1), 1, 1) }
}

fn deletion(branch: BranchId, sn: Sn) -> Deletion {
    Deletion { branch, sn, rows: RowsAt::All }
}

/// Every cut that anything can be read at.
pub(in crate::refs) fn cuts(state: &StreamState) -> Vec<Cut> {
    let mut cuts = vec![state.head()];
    for sn in (1..=state.applied_sn.0).map(Sn).filter(|sn| state.readable.contains(*sn)) {
        cuts.push(state.resolve(&crate::refs::AsOf::Sn(sn), crate::Timestamp(0), None).unwrap().cut);
    }
    cuts.extend(state.refs.values().map(|r| r.cut));
    cuts
}

pub(in crate::refs) fn sees(state: &StreamState, cut: &Cut, row: (BranchId, Sn), deleted: &[(BranchId, Sn)], expired: &[CommitNo]) -> bool {
    let lineage = state.lineage(cut.branch, cut.sn).unwrap();
    lineage.sees(row.0, row.1, cut.sn)
        && !deleted.iter().any(|d| lineage.sees(d.0, d.1, cut.sn))
        && !expired.iter().any(|commit| *commit <= cut.horizon)
}

#[test]
fn a_row_goes_when_no_snapshot_before_its_deletion_can_be_read() {
    let mut h = History::new();
    h.inserts(5);
    let d = h.delete_on(BranchId::MAIN); // 6
    let p = part(vec![origin(BranchId::MAIN, 0, 3), origin(BranchId::MAIN, 3, 5)]);
    assert!(!Needs::of(&h.state, &[]).deletion_is_dead(&p, &deletion(BranchId::MAIN, d)));
    assert!(!Needs::of(&h.state, &[]).part_is_dead(&PartMeta { deletions: vec![deletion(BranchId::MAIN, d)], ..p.clone() }));
    h.forget(0, 3);
    let needs = Needs::of(&h.state, &[]);
    assert!(needs.row(BranchId::MAIN, Sn(5), &[(BranchId::MAIN, d)], &[]));
    h.forget(3, 5);
    let needs = Needs::of(&h.state, &[]);
    assert!(needs.deletion_is_dead(&p, &deletion(BranchId::MAIN, d)));
    assert!(needs.part_is_dead(&PartMeta { deletions: vec![deletion(BranchId::MAIN, d)], ..p.clone() }));
    assert_eq!(needs.rows(&p.origins), Needed::All, "without the deletion the head sees them");
    // A cut that is held by itself is as good as a readable one.
    let leased = Cut { branch: BranchId::MAIN, sn: Sn(5), horizon: CommitNo(u64::MAX) };
    assert!(!Needs::of(&h.state, &[leased]).deletion_is_dead(&p, &deletion(BranchId::MAIN, d)));
}

#[test]
fn what_a_rule_took_from_main_stays_for_tags_made_before() {
    let mut h = History::new();
    h.inserts(3);
    h.tag("t", 2);
    let dev = h.branch("dev");
    let expired = |commit: u64| ExpiredRows { commit: CommitNo(commit), rows: RowsAt::All };
    let p = part(vec![origin(BranchId::MAIN, 0, 3)]);
    let needs = Needs::of(&h.state, &[]);
    assert!(!needs.expired_is_dead(&p, &expired(100)));
    assert!(needs.expired_is_dead(&p, &expired(1)), "gone before the refs were made");
    assert!(!needs.row(BranchId::MAIN, Sn(3), &[], &[CommitNo(1)]));
    assert_eq!(needs.pinned_by(&p).map(|p| p.kind), Some(RefKind::Branch));
    assert_eq!(needs.pinned_by(&part(vec![origin(BranchId::MAIN, 3, 9)])), None);
    assert_eq!(needs.pinned_by(&part(vec![origin(dev, 3, 9)])).unwrap().name, "dev");
    h.state.drop_ref("dev").unwrap();
    let needs = Needs::of(&h.state, &[]);
    assert_eq!(needs.pinned_by(&p).unwrap().name, "t");
    assert!(needs.row(BranchId::MAIN, Sn(2), &[], &[CommitNo(100)]));
    assert!(!needs.row(BranchId::MAIN, Sn(3), &[], &[CommitNo(100)]), "the tag does not see it");
    h.state.drop_ref("t").unwrap();
    assert!(Needs::of(&h.state, &[]).expired_is_dead(&p, &expired(100)));
}

#[test]
fn a_truncated_stream_is_needed_by_its_snapshots_alone() {
    let mut h = History::new();
    h.inserts(3);
    h.edit_lineage(BranchId::MAIN, crate::verb::Verb::Truncate, None, &[]); // 4
    h.insert(); // 5
    let p = part(vec![origin(BranchId::MAIN, 0, 3)]);
    assert_eq!(Needs::of(&h.state, &[]).rows(&p.origins), Needed::All);
    h.forget(1, 3);
    let Needed::Some(some) = Needs::of(&h.state, &[]).rows(&p.origins) else { panic!("1 can still be read") };
    assert!(some[0].1.contains(Sn(1)) && !some[0].1.contains(Sn(2)));
    h.forget(0, 1);
    assert_eq!(Needs::of(&h.state, &[]).rows(&p.origins), Needed::None);
    assert!(Needs::of(&h.state, &[]).part_is_dead(&p));
}

#[derive(Debug, Clone)]
pub(in crate::refs) enum Step {
    Insert(usize),
    Delete(usize),
    Rollback(u64),
    FastForward(usize),
    CherryPick(u64),
    Branch(u64),
    Tag(u64),
    Truncate(usize),
    DropRef(usize),
    Forget(u64, u64),
    Coalesce,
}

pub(in crate::refs) fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        5 => (0usize..4).prop_map(Step::Insert),
        3 => (0usize..4).prop_map(Step::Delete),
        1 => any::<u64>().prop_map(Step::Rollback),
        1 => (0usize..4).prop_map(Step::FastForward),
        1 => any::<u64>().prop_map(Step::CherryPick),
        1 => any::<u64>().prop_map(Step::Branch),
        1 => any::<u64>().prop_map(Step::Tag),
        1 => (0usize..4).prop_map(Step::Truncate),
        1 => any::<usize>().prop_map(Step::DropRef),
        2 => (any::<u64>(), 1u64..6).prop_map(|(a, n)| Step::Forget(a, n)),
        2 => Just(Step::Coalesce),
    ];
    proptest::collection::vec(step, 1..30)
}

/// A head is never forgotten, nor what a tag names.
fn forget(h: &mut History, after: u64, n: u64) {
    let held = |sn: u64| {
        let tag = h.state.refs.values().any(|r| r.kind == RefKind::Tag && r.cut.sn == Sn(sn));
        let branches = h.state.refs.values().filter(|r| r.kind == RefKind::Branch).map(|r| r.cut.branch);
        tag || branches.chain([BranchId::MAIN]).any(|b| h.state.head_of(b) == Sn(sn))
    };
    let sns: Vec<u64> = (after + 1..=(after + n).min(h.state.applied_sn.0)).filter(|sn| !held(*sn)).collect();
    sns.into_iter().for_each(|sn| h.forget(sn - 1, sn));
}

type Records = Vec<(BranchId, Sn)>;

/// A history made by these steps: with it each insert and each delete.
pub(in crate::refs) fn played(steps: &[Step]) -> (History, Records, Records) {
    let mut h = History::new();
    h.insert();
    let mut written: Vec<(BranchId, Sn)> = vec![(BranchId::MAIN, Sn(1))];
    let mut deletes: Vec<(BranchId, Sn)> = Vec::new();
    for (i, step) in steps.iter().enumerate() {
        let mut branches = vec![BranchId::MAIN];
        branches.extend(h.state.refs.values().filter(|r| r.kind == RefKind::Branch).map(|r| r.cut.branch));
        let readable = h.readable();
        let at = |n: &u64| readable[(n % readable.len() as u64) as usize];
        let branch = |b: &usize| branches[b % branches.len()];
        match step {
            Step::Insert(b) => {
                let b = branch(b);
                written.push((b, h.insert_on(b)));
            }
            Step::Delete(b) => {
                let b = branch(b);
                deletes.push((b, h.delete_on(b)));
            }
            Step::Rollback(n) => {
                let to = at(n);
                h.rollback(to);
            }
            Step::FastForward(b) => {
                let b = branch(b);
                if b != BranchId::MAIN {
                    h.fast_forward(b);
                }
            }
            Step::CherryPick(n) => {
                let n = at(n);
                h.cherry_pick(Sn(n));
            }
            Step::Branch(n) => {
                let n = at(n);
                h.branch_at(&format!("b{i}"), n);
            }
            Step::Tag(n) => {
                let n = at(n);
                h.tag(&format!("t{i}"), n);
            }
            Step::Truncate(b) => _ = h.edit_lineage(branch(b), crate::verb::Verb::Truncate, None, &[]),
            Step::DropRef(n) => {
                let names: Vec<String> = h.state.refs.keys().cloned().collect();
                if !names.is_empty() {
                    h.state.drop_ref(&names[n % names.len()]).unwrap();
                }
            }
            Step::Coalesce => h.state.coalesce(),
            Step::Forget(a, n) => {
                let after = a % h.state.applied_sn.0;
                forget(&mut h, after, *n);
            }
        }
    }
    (h, written, deletes)
}

proptest! {
    #[test]
    fn needed_is_what_some_cut_sees(steps in steps(), marks in proptest::collection::vec((any::<u64>(), any::<u64>(), 0u64..20), 8)) {
        let (h, written, deletes) = played(&steps);
        let (state, cuts) = (&h.state, cuts(&h.state));
        let needs = Needs::of(state, &[]);
        for (b, sn) in &written {
            for (i, (x, y, commit)) in marks.iter().enumerate() {
                // None, one or two deletions of what was written before them; none or one expiry.
                let picked = [x, y].into_iter().take(i % 3).filter(|_| !deletes.is_empty()).map(|n| deletes[(n % deletes.len() as u64) as usize]);
                let deleted: Vec<_> = picked.filter(|(_, d)| d > sn).collect();
                let expired: Vec<_> = (i % 2 == 1).then_some(CommitNo(*commit)).into_iter().collect();
                let needed = cuts.iter().any(|c| sees(state, c, (*b, *sn), &deleted, &expired));
                prop_assert_eq!(needs.row(*b, *sn, &deleted, &expired), needed, "row {:?} {} deleted by {:?} expired at {:?}", b, sn, deleted, expired);
            }
            let p = part(vec![origin(*b, sn.0 - 1, sn.0)]);
            let seen = cuts.iter().any(|c| sees(state, c, (*b, *sn), &[], &[]));
            prop_assert_eq!(needs.rows(&p.origins), if seen { Needed::All } else { Needed::None });
            prop_assert_eq!(needs.part_is_dead(&p), !seen);
            let through_a_ref = |c: &&Cut| state.branch(c.branch).is_some() || state.refs.values().any(|r| r.cut == **c);
            let pinned = cuts.iter().filter(through_a_ref).any(|c| sees(state, c, (*b, *sn), &[], &[]));
            prop_assert_eq!(needs.pinned_by(&p).is_some(), pinned);
            for d in deletes.iter().filter(|d| d.1 > *sn) {
                let alive = cuts.iter().any(|c| sees(state, c, (*b, *sn), &[*d], &[]));
                prop_assert_eq!(needs.deletion_is_dead(&p, &deletion(d.0, d.1)), !alive);
            }
        }
    }
}
