//! Properties of the planner over random views, and the rulings one by one.

use super::{
    check::violations,
    compact::FANOUT,
    due::is_due,
    optimize::optimize,
    round::{is_settled, plan, pressed},
    view::*,
    *,
};
use crate::settings::{ServerSettings, StreamSettings};
use ebb_storage::{
    Timestamp,
    codec::Codec,
    ids::{DiskId, Epoch, Fingerprint, Generation, PartId, SchemaVersion, StreamId},
    part::{MAX_ROWS, PartMeta, meta::RuleFacts},
    testkit::defs,
};
use proptest::prelude::*;
use std::sync::Arc;

const NEVER: Timestamp = Timestamp::MAX;

fn settings() -> StreamSettings {
    let server = ServerSettings { ttl_jobs_max: 2, pool_size: 2, memory_limit_bytes: 0, default_codec: Codec::Lz4 };
    let mut s = StreamSettings::of(&crate::settings::tests_def(), &server);
    s.prune_every = std::time::Duration::from_secs(100);
    s
}

fn stream(partitions: Vec<PartitionView>) -> StreamView {
    StreamView {
        id: StreamId(1),
        policy_version: 1,
        schema_version: SchemaVersion(1),
        settings: settings(),
        rules: vec![RuleView { fingerprint: Fingerprint(1), text: "d DELETE".into(), kind: RuleKind::Delete }],
        stops: Stops::default(),
        tiers: Arc::new(TierView::of_one(DiskView::unlimited(DiskId::DEFAULT, "default"))),
        pools: Pools::default(),
        relief: None,
        partitions,
    }
}

fn part(id: u32, first_due: Timestamp, whole_due: Timestamp) -> PartView {
    PartView {
        family: 0,
        reclaimable: false,
        forgets: false,
        id: PartId::new(Epoch(1), id),
        generation: Generation(1),
        level: 0,
        bytes: 1000,
        rows: 10,
        disk: DiskId::DEFAULT,
        codec: Codec::Lz4,
        written_at: Timestamp(0),
        move_due_since: None,
        changes: Box::default(),
        first_due,
        whole_due,
        worth_at: first_due,
        removes_at: first_due,
        folds_at: NEVER,
        folded: false,
        unneeded: false,
        pin: None,
        aside: false,
        unmeasured: false,
        busy: false,
        failure: None,
        tried: None,
    }
}

fn meta(rows: u64, facts: Vec<RuleFacts>) -> PartMeta {
    PartMeta { facts, ..defs::part(PartId::new(Epoch(1), 1), 1, rows) }
}

fn partition(value: &str, parts: Vec<PartView>) -> PartitionView {
    PartitionView { value: value.into(), pruned_at: None, recompressed_at: None, parts }
}

fn as_is() -> Target {
    Target::new(Codec::Lz4, DiskId::DEFAULT)
}

fn at(s: i64) -> Timestamp {
    Timestamp::from_secs(s)
}

#[test]
fn a_part_whose_every_row_is_due_is_dropped_and_one_with_some_is_pruned() {
    // proves T3, T14, F11
    let view = stream(vec![partition("a", vec![part(1, at(5), at(9)), part(2, at(5), at(20)), part(3, at(50), at(60))])]);
    let planned = plan(&view, at(10));
    assert_eq!(
        planned.plans,
        [
            Plan::Drop { stream: StreamId(1), parts: vec![PartId::new(Epoch(1), 1)], cutoff: at(10) },
            Plan::Prune {
                stream: StreamId(1),
                partition: "a".into(),
                parts: vec![PartId::new(Epoch(1), 2)],
                targets: vec![as_is()],
                cutoff: at(10)
            },
        ]
    );
    assert_eq!(planned.wake_at, Some(at(20)));
}

#[test]
fn equality_is_due_and_never_is_not() {
    assert!(is_due(at(10), at(10)) && !is_due(at(11), at(10)) && !is_due(NEVER, NEVER));
}

#[test]
fn prunes_of_a_partition_keep_their_distance_and_drops_do_not() {
    // proves T4
    let mut view =
        stream(vec![partition("a", vec![part(1, at(5), NEVER), part(2, at(5), at(9))]), partition("b", vec![part(3, at(5), NEVER)])]);
    view.partitions[0].pruned_at = Some(at(0));
    let planned = plan(&view, at(10));
    let kinds: Vec<_> = planned.plans.iter().map(|p| (p.kind(), p.parts().len())).collect();
    assert_eq!(kinds, [("drop", 1), ("prune", 1)]);
    assert_eq!(planned.wake_at, Some(at(100)));
    let waiting = decide(&view.partitions[0].parts[0], &view.partitions[0], &view, at(10));
    assert_eq!((waiting.state, waiting.next_attempt_at), (State::WaitingTimeout, Some(at(100))));
    assert_eq!(plan(&view, at(100)).plans.iter().filter(|p| p.kind() == "prune").count(), 2);
}

#[test]
fn stops_name_themselves_and_stop() {
    let due = || stream(vec![partition("a", vec![part(1, at(5), NEVER), part(2, at(5), at(6))])]);
    let mut view = due();
    view.stops.merges = true;
    assert!(plan(&view, at(10)).plans.is_empty());
    assert!(is_settled(&view, at(10)));
    let state = |v: &StreamView, i: usize| decide(&v.partitions[0].parts[i], &v.partitions[0], v, at(10)).state;
    assert_eq!((state(&view, 0), state(&view, 1)), (State::MergesStopped, State::MergesStopped));
    let mut view = due();
    view.stops.ttl_merges = true;
    assert!(plan(&view, at(10)).plans.is_empty());
    assert_eq!(state(&view, 1), State::TtlMergesStopped);
}

#[test]
fn rows_may_be_told_to_go_only_with_their_part() {
    let mut view = stream(vec![partition("a", vec![part(1, at(5), at(50))])]);
    view.settings.only_drop_parts = true;
    let planned = plan(&view, at(10));
    assert_eq!((planned.plans.len(), planned.wake_at), (0, Some(at(50))));
    assert_eq!(decide(&view.partitions[0].parts[0], &view.partitions[0], &view, at(10)).state, State::OnlyWholeParts);
    assert_eq!(plan(&view, at(50)).plans[0].kind(), "drop");
}

#[test]
fn parts_that_a_rule_does_not_know_are_measured_and_not_merged_meanwhile() {
    let mut unknown = part(1, NEVER, NEVER);
    unknown.unmeasured = true;
    let mut parts: Vec<PartView> = (2..20).map(|i| part(i, NEVER, NEVER)).collect();
    parts.push(unknown);
    let planned = plan(&stream(vec![partition("a", parts)]), at(10));
    assert_eq!(planned.plans[0], Plan::Measure { stream: StreamId(1), parts: vec![PartId::new(Epoch(1), 1)] });
    assert!(!planned.plans[1].parts().contains(&PartId::new(Epoch(1), 1)));
}

#[test]
fn failures_wait_longer_each_time_and_do_not_hold_others_up() {
    // proves F5, F15
    let mut bad = part(1, at(5), at(6));
    bad.failure = Some(Box::new(Failure { count: 3, last_at: at(10), error: "unreadable".into() }));
    let view = stream(vec![partition("a", vec![bad, part(2, at(5), at(6))])]);
    let planned = plan(&view, at(11));
    assert_eq!(planned.plans, [Plan::Drop { stream: StreamId(1), parts: vec![PartId::new(Epoch(1), 2)], cutoff: at(11) }]);
    assert_eq!(planned.wake_at, Some(at(30)));
    assert_eq!(plan(&view, at(30)).plans[0].parts().len(), 2);
    let failure = |count| Failure { count, last_at: at(0), error: String::new() }.retry_at();
    assert_eq!((failure(1), failure(2), failure(60)), (at(5), at(10), at(3600)));
}

#[test]
fn five_hundred_due_parts_in_as_many_partitions_go_in_one_round() {
    // proves F5
    let partitions = (0..500).map(|i| partition(&i.to_string(), vec![part(i, at(1), at(2))])).collect();
    let planned = plan(&stream(partitions), at(10));
    assert_eq!(planned.plans.len(), 1);
    assert_eq!(planned.plans[0].parts().len(), 500);
}

#[test]
fn merges_take_parts_of_like_size_and_respect_their_limits() {
    let sized = |id, bytes| PartView { bytes, ..part(id, NEVER, NEVER) };
    let mut parts: Vec<PartView> = (0..FANOUT as u32).map(|i| sized(i, 1000)).collect();
    parts.push(sized(100, 1 << 30));
    let mut view = stream(vec![partition("a", parts)]);
    let merged = |v: &StreamView| plan(v, at(0)).plans.first().map(|p| p.parts().to_vec()).unwrap_or_default();
    assert_eq!(merged(&view).len(), FANOUT);
    assert!(!merged(&view).contains(&PartId::new(Epoch(1), 100)));
    view.settings.max_parts_to_merge = 3;
    assert_eq!(merged(&view).len(), 3);
    view.settings.max_parts_to_merge = 1;
    assert!(merged(&view).is_empty());
    view.settings.max_parts_to_merge = 100;
    view.settings.max_bytes_to_merge = 0;
    assert!(merged(&view).is_empty());
}

#[test]
fn optimize_applies_what_is_due_whatever_the_timers_say() {
    // proves T15
    let mut view = stream(vec![
        partition("a", vec![part(1, at(5), at(6)), part(2, at(5), NEVER)]),
        partition("b", vec![part(3, NEVER, NEVER), part(4, NEVER, NEVER)]),
    ]);
    view.partitions[0].pruned_at = Some(at(9));
    let kinds = |plans: Vec<Plan>| plans.iter().map(|p| (p.kind(), p.parts().len())).collect::<Vec<_>>();
    assert_eq!(kinds(optimize(&view, None, true, at(10))), [("drop", 1), ("prune", 1), ("merge", 2)]);
    assert_eq!(kinds(optimize(&view, Some("b"), false, at(10))), [("merge", 2)]);
    assert!(optimize(&view, Some("zz"), true, at(10)).is_empty());
}

#[test]
fn final_makes_no_part_of_more_rows_than_can_be_numbered() {
    let long = |id, rows| PartView { rows, ..part(id, NEVER, NEVER) };
    let merged = |rows: &[u64]| {
        let parts = rows.iter().zip(1..).map(|(r, id)| long(id, *r)).collect();
        let plans = optimize(&stream(vec![partition("a", parts)]), None, true, at(10));
        let numbers = |p: &Plan| p.parts().iter().map(|id| (1..).find(|n| PartId::new(Epoch(1), *n) == *id).unwrap()).collect::<Vec<u32>>();
        plans.iter().map(numbers).collect::<Vec<_>>()
    };
    assert_eq!(merged(&[MAX_ROWS - 2, 1, 1]), [vec![1, 2, 3]]);
    assert_eq!(merged(&[MAX_ROWS - 1, 1, 1]), [vec![1, 2]]);
    assert_eq!(merged(&[MAX_ROWS, 1, 1]), [vec![2, 3]]);
    assert_eq!(merged(&[1 << 31, 1 << 31, 1 << 30, 1 << 30]), [vec![1, 3], vec![2, 4]]);
    assert_eq!(merged(&[MAX_ROWS, MAX_ROWS]), Vec::<Vec<u32>>::new());
}

mod folding;
mod pinned;
mod tiered;

fn moment() -> impl Strategy<Value = Timestamp> {
    prop_oneof![3 => (0i64..100).prop_map(Timestamp::from_secs), 1 => Just(NEVER)]
}

fn random_part(id: u32) -> impl Strategy<Value = PartView> {
    // Few are so long that no two of them fit together, or not all of many.
    let rows = prop_oneof![20 => 1u64..1000, 1 => 1u64..=MAX_ROWS];
    (moment(), moment(), (1u64..1 << 24, rows), any::<bool>(), 0u32..10, 0u32..4, (any::<bool>(), 0u8..4)).prop_map(
        move |(a, b, (bytes, rows), busy, unmeasured, failures, (forgets, folds))| {
            // The whole cannot be due before its first row.
            let (first, whole) = if a <= b { (a, b) } else { (b, a) };
            let failure = (failures == 3).then(|| Box::new(Failure { count: 1, last_at: at(30), error: "x".into() }));
            let folds_at = if folds & 1 == 1 { first } else { NEVER };
            let view = PartView { folds_at, folded: folds & 2 == 2, forgets, ..part(id, first, whole) };
            PartView { bytes, rows, busy: busy && failures == 1, unmeasured: unmeasured == 0, failure, ..view }
        },
    )
}

fn random_stream() -> impl Strategy<Value = StreamView> {
    let parts = (0usize..30).prop_flat_map(|n| (0..n as u32).map(random_part).collect::<Vec<_>>());
    (parts, proptest::option::of(0i64..100), 0u8..8, 0u8..8).prop_map(|(parts, pruned, how, stop)| {
        let mut view = stream((0..3).map(|p| PartitionView { pruned_at: pruned.map(at), ..partition(&p.to_string(), vec![]) }).collect());
        for (i, p) in parts.into_iter().enumerate() {
            view.partitions[i % 3].parts.push(p);
        }
        view.settings.only_drop_parts = how & 1 == 1;
        if how & 2 == 2 {
            view.rules.push(RuleView { fingerprint: Fingerprint(2), text: "d GROUP BY k".into(), kind: RuleKind::Fold });
        }
        if how & 4 == 4 {
            view.settings.prune_every = std::time::Duration::ZERO;
        }
        view.stops = Stops { merges: stop == 0, ttl_merges: stop == 1, moves: false };
        view
    })
}

/// Carries plans out the way jobs do; the objects of what was replaced are gone at once.
fn apply(view: &mut StreamView, plans: &[Plan], now: Timestamp, next_id: &mut u32) {
    let (mut came, mut went) = (Vec::new(), Vec::new());
    for p in plans {
        for partition in &mut view.partitions {
            let mine = |part: &PartView| p.parts().contains(&part.id);
            let taken: Vec<PartView> = partition.parts.iter().filter(|x| mine(x)).cloned().collect();
            if taken.is_empty() {
                continue;
            }
            let mut fresh = |target: &Target, bytes| {
                *next_id += 1;
                let Target { codec, disk, move_due_since, .. } = *target;
                PartView { bytes, codec, disk, move_due_since, written_at: now, ..part(*next_id, NEVER, NEVER) }
            };
            let placed = |x: &mut PartView| {
                let i = p.parts().iter().position(|id| *id == x.id).unwrap();
                let Target { codec, disk, .. } = p.targets()[i];
                (x.bytes, x.tried) = (x.bytes_in(codec), None);
                (x.codec, x.disk) = (codec, disk);
            };
            if !matches!(p, Plan::Measure { .. }) {
                went.extend(taken.iter().map(|t| (t.disk, t.bytes)));
                partition.parts.retain(|x| !mine(x));
            }
            match p {
                Plan::Drop { .. } => {}
                Plan::Prune { targets, .. } => {
                    let target = |t: &PartView| &targets[p.parts().iter().position(|id| *id == t.id).unwrap()];
                    let left = taken.iter().map(|t| PartView {
                        rows: t.rows,
                        whole_due: t.whole_due,
                        first_due: t.whole_due,
                        worth_at: t.whole_due,
                        changes: t.changes.clone(),
                        folded: t.folded || is_due(t.folds_at, now),
                        ..fresh(target(t), t.bytes_in(target(t).codec))
                    });
                    partition.parts.extend(left);
                    partition.pruned_at = Some(now);
                }
                Plan::Merge { target, .. } | Plan::Fold { target, .. } => {
                    let delete_due = matches!(p, Plan::Fold { .. } | Plan::Merge { delete_due: true, .. });
                    let least = |of: fn(&PartView) -> Timestamp| {
                        taken.iter().map(of).filter(|d| !delete_due || !is_due(*d, now)).min().unwrap_or(NEVER)
                    };
                    let all = |c: &Change| {
                        let others = taken.iter().map(|t| t.changes.iter().find(|o| o.rule == c.rule));
                        let others = others.collect::<Option<Vec<_>>>()?;
                        let (first, at) = (others.iter().map(|o| o.first).min()?, others.iter().map(|o| o.at).max()?);
                        Some(Change { rule: c.rule, first, at })
                    };
                    let changes = taken[0].changes.iter().filter_map(all).collect();
                    let bytes = taken.iter().map(|t| t.bytes).sum();
                    let (first_due, worth_at) = (least(|t| t.first_due), least(|t| t.worth_at));
                    let was = taken.iter().any(|t| t.folded);
                    let folded = delete_due && (was || taken.iter().any(|t| is_due(t.folds_at, now)));
                    // Without folding nobody knows any more which rows were.
                    let folds_at = if was && !folded { now } else { least(|t| t.folds_at) };
                    let (first_due, family) = (first_due.min(folds_at), taken[0].family);
                    let rows = taken.iter().map(|t| t.rows).sum();
                    let merged = PartView { rows, first_due, worth_at, folds_at, folded, changes, family, ..fresh(target, bytes) };
                    if matches!(p, Plan::Fold { .. }) {
                        partition.pruned_at = Some(now);
                    }
                    // Of some merges, rows that main's head does not see go to a part of their own.
                    if merged.family == 0 && bytes % 2 == 1 {
                        partition.parts.push(PartView { family: 1, changes: merged.changes.clone(), ..fresh(target, bytes / 4) });
                    }
                    partition.parts.push(merged);
                }
                Plan::Forget { .. } => {
                    partition.parts.extend(taken.into_iter().map(|t| PartView { forgets: false, bytes: t.bytes / 10 * 9, ..t }));
                }
                Plan::Move { .. } | Plan::Recompress { .. } => {
                    partition.parts.extend(taken.into_iter().map(|mut t| {
                        placed(&mut t);
                        t
                    }));
                    if matches!(p, Plan::Recompress { .. }) {
                        partition.recompressed_at = Some(now);
                    }
                }
                Plan::Release { .. } | Plan::Expire { .. } => unreachable!("nothing is pinned"),
                Plan::Measure { .. } => partition.parts.iter_mut().filter(|x| p.parts().contains(&x.id)).for_each(|x| x.unmeasured = false),
            }
            if !matches!(p, Plan::Measure { .. } | Plan::Drop { .. }) {
                let new = partition.parts.iter().rev().take(if p.makes_one() { 1 } else { p.parts().len() });
                came.extend(new.map(|t| (t.disk, t.bytes)));
            }
        }
    }
    for d in Arc::make_mut(&mut view.tiers).volumes.iter_mut().flat_map(|v| &mut v.disks).filter(|d| d.free != u64::MAX) {
        let sum = |of: &[(DiskId, u64)]| of.iter().filter(|(id, _)| *id == d.id).map(|(_, b)| b).sum::<u64>();
        d.free = d.free.saturating_add(sum(&went)).saturating_sub(sum(&came));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn plans_are_sound_and_do_not_depend_on_order(view in random_stream(), now in 0i64..120, seed in any::<u64>()) {
        let planned = plan(&view, at(now));
        prop_assert_eq!(violations(&view, &planned.plans), Vec::<String>::new());
        let mut shuffled = view.clone();
        for p in &mut shuffled.partitions {
            let n = p.parts.len().max(1);
            p.parts.rotate_left(seed as usize % n);
        }
        shuffled.partitions.rotate_left(seed as usize % 3);
        prop_assert_eq!(plan(&shuffled, at(now)), planned);
    }

    #[test]
    fn what_optimize_plans_is_sound(view in random_stream(), whole in any::<bool>(), now in 0i64..120) {
        prop_assert_eq!(violations(&view, &optimize(&view, None, whole, at(now))), Vec::<String>::new());
    }

    #[test]
    fn a_part_goes_whole_only_when_its_last_row_is_due(view in random_stream(), now in 0i64..120) {
        // I5; proves F13
        for p in plan(&view, at(now)).plans {
            if let Plan::Drop { parts, .. } = p {
                for part in view.partitions.iter().flat_map(|p| &p.parts).filter(|x| parts.contains(&x.id)) {
                    prop_assert!(part.whole_due <= at(now));
                }
            }
        }
    }

    #[test]
    fn work_at_a_standing_clock_comes_to_an_end(mut view in random_stream(), now in 0i64..120) {
        // proves F2, F6: no rewrite loops
        let mut next_id = 1000;
        for p in view.partitions.iter_mut().flat_map(|p| &mut p.parts) {
            p.busy = false;
        }
        for round in 0.. {
            let planned = plan(&view, at(now));
            if planned.plans.is_empty() {
                break;
            }
            prop_assert!(round < 12, "still planning {:?}", planned.plans);
            apply(&mut view, &planned.plans, at(now), &mut next_id);
        }
        prop_assert!(is_settled(&view, at(now)));
    }

    #[test]
    fn the_wake_up_is_honest(view in random_stream(), now in 0i64..120) {
        let planned = plan(&view, at(now));
        let until = planned.wake_at.map_or(300, |t| t.0 / 1_000_000);
        // Nothing new is planned before it.
        for t in now + 1..until.min(300) {
            let kinds = |p: &Planned| p.plans.iter().map(|x| (x.kind(), x.parts().to_vec())).collect::<Vec<_>>();
            prop_assert_eq!(kinds(&plan(&view, at(t))), kinds(&planned), "at {}", t);
        }
    }

    #[test]
    fn whatever_is_overdue_has_a_reason(view in random_stream(), now in 0i64..120) {
        // I12
        for partition in &view.partitions {
            for p in &partition.parts {
                if is_due(p.first_due, at(now)) || is_due(p.whole_due, at(now)) {
                    let d = decide(p, partition, &view, at(now));
                    prop_assert!(d.state != State::NotDue, "{:?}", d);
                }
            }
        }
    }
}

#[test]
fn ingest_is_rewritten_a_bounded_number_of_times() {
    let mut view = stream(vec![partition("a", vec![])]);
    let (mut next_id, mut written, flushes, bytes) = (1_000_000, 0u64, 10_000u32, 100_000u64);
    let mut most = 0;
    for i in 0..flushes {
        view.partitions[0].parts.push(PartView { bytes, ..part(i, NEVER, NEVER) });
        loop {
            let planned = plan(&view, at(0));
            if planned.plans.is_empty() {
                break;
            }
            let size = |id: &PartId| view.partitions[0].parts.iter().find(|p| p.id == *id).map_or(0, |p| p.bytes);
            written += planned.plans.iter().flat_map(|p| p.parts()).map(size).sum::<u64>();
            apply(&mut view, &planned.plans, at(0), &mut next_id);
        }
        most = most.max(view.partitions[0].parts.len());
    }
    let amplification = written as f64 / (u64::from(flushes) * bytes) as f64;
    // log(1 GB / 0.1 MB) / log(8) is 4.4.
    assert!(amplification < 6.0, "every byte is rewritten {amplification} times");
    assert!(most <= 6 * FANOUT, "{most} parts at once");
}

#[test]
fn a_rule_without_rows_in_a_part_is_not_blamed_for_its_drop() {
    let (debug, all) = (Fingerprint(7), Fingerprint(90));
    let rule = |fingerprint, text: &str, kind| RuleView { fingerprint, text: text.into(), kind };
    let rules = vec![rule(debug, "seven days, debug only", RuleKind::DeleteWhere), rule(all, "ninety days", RuleKind::Delete)];
    let facts =
        |rule, rows: u64| RuleFacts { rule, rows, never: 0, earliest: (rows > 0).then(|| at(90)), latest: (rows > 0).then(|| at(90)) };
    let meta = meta(10, vec![facts(debug, 0), facts(all, 10)]);
    let stream = StreamView { rules: rules.clone(), ..stream(vec![]) };
    let of = |now| {
        let view = PartView::of(&meta, &rules);
        let partition = partition("p", vec![view.clone()]);
        explain::explain(&meta, &view, &Scene::new(&stream, &partition, now), false)
            .into_iter()
            .map(|r| (r.action, r.state, r.rows))
            .collect::<Vec<_>>()
    };
    assert_eq!(of(at(91)), [("none".to_owned(), State::NotDue, 0), ("drop".to_owned(), State::DueQueued, 10)]);
    assert_eq!(of(at(89)), [("none".to_owned(), State::NotDue, 0), ("drop".to_owned(), State::NotDue, 10)]);
}
