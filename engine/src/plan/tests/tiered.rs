//! Places, codecs, graces and stops: properties over random views, and the rulings one by one.

use super::*;
use ebb_storage::{
    disk::LoadBalancing,
    rules::{Destination, DestinationKind},
};

const HOT: DiskId = DiskId(0);
const WARM: DiskId = DiskId(2);
const COLD: DiskId = DiskId(3);

fn rule(n: u64, kind: RuleKind) -> RuleView {
    RuleView { fingerprint: Fingerprint(n), text: format!("rule {n}"), kind }
}

fn to(kind: DestinationKind, name: &str) -> RuleKind {
    RuleKind::Move(Destination { kind, name: name.into(), if_exists: name == "nowhere" })
}

fn volume(name: &str) -> RuleKind {
    to(DestinationKind::Volume, name)
}

/// hot (two disks), warm, cold; all with room.
fn three() -> TierView {
    let disk = |id, name| DiskView { total: 1 << 40, free: 1 << 40, ..DiskView::unlimited(id, name) };
    let hot = VolumeView::plain("hot", vec![disk(HOT, "h0"), disk(DiskId(1), "h1")]);
    let cold = VolumeView { prefer_not_to_merge: true, ..VolumeView::plain("cold", vec![disk(COLD, "c")]) };
    let volumes = vec![hot, VolumeView::plain("warm", vec![disk(WARM, "w")]), cold];
    TierView { policy: "p".into(), version: 1, volumes, move_factor: 0.1 }
}

fn disk(view: &mut StreamView, id: DiskId) -> &mut DiskView {
    let disks = Arc::make_mut(&mut view.tiers).volumes.iter_mut().flat_map(|v| &mut v.disks);
    disks.into_iter().find(|d| d.id == id).unwrap()
}

/// A stream over [`three`] with one partition.
fn tiered(rules: Vec<RuleKind>, parts: Vec<PartView>) -> StreamView {
    let rules = rules.into_iter().enumerate().map(|(i, kind)| rule(i as u64, kind)).collect();
    let mut view = StreamView { rules, tiers: Arc::new(three()), ..stream(vec![partition("a", parts)]) };
    view.settings.recompress_every = std::time::Duration::from_secs(100);
    view.settings.move_grace = std::time::Duration::from_secs(300);
    view
}

/// A part that the rules concern whole at these seconds, in the order of the rules.
fn aged(id: u32, due: &[i64]) -> PartView {
    let changes = due.iter().enumerate().map(|(i, t)| Change { rule: i as u32, first: at(*t), at: at(*t) });
    PartView { changes: changes.collect(), ..part(id, NEVER, NEVER) }
}

fn id(n: u32) -> PartId {
    PartId::new(Epoch(1), n)
}

/// Kind, parts, and where to.
type Done = (&'static str, Vec<PartId>, Vec<(DiskId, Codec)>);

fn done(view: &StreamView, now: i64) -> Vec<Done> {
    let plans = plan(view, at(now)).plans;
    assert_eq!(violations(view, &plans), Vec::<String>::new());
    plans.iter().map(|p| (p.kind(), p.parts().to_vec(), p.targets().iter().map(|t| (t.disk, t.codec)).collect())).collect()
}

fn states(view: &StreamView, n: usize, now: i64) -> Vec<State> {
    let scene = Scene::new(view, &view.partitions[0], at(now));
    (0..view.rules.len()).map(|r| scene.of_rule(&view.partitions[0].parts[n], r).state).collect()
}

#[test]
fn of_due_codecs_the_one_that_came_due_last_counts() {
    // proves T2, T8, F17: two rules in either order; the same moment: the later in the list
    let (zstd3, zstd9) = (RuleKind::Recompress(Codec::Zstd(3)), RuleKind::Recompress(Codec::Zstd(9)));
    for (rules, due, wanted) in [
        (vec![zstd3.clone(), zstd9.clone()], [1, 10], Codec::Zstd(9)),
        (vec![zstd9.clone(), zstd3.clone()], [10, 1], Codec::Zstd(9)),
        (vec![zstd9.clone(), zstd3.clone()], [5, 5], Codec::Zstd(3)),
        (vec![zstd3, zstd9], [1, 30], Codec::Zstd(3)),
    ] {
        let mut view = tiered(rules, vec![aged(1, &due)]);
        assert_eq!(done(&view, 20), [("recompress", vec![id(1)], vec![(HOT, wanted)])]);
        assert!(states(&view, 0, 20).contains(&State::DueQueued));
        view.partitions[0].parts[0].codec = wanted;
        assert_eq!(done(&view, 20), [], "it has that codec");
        assert!(!states(&view, 0, 20).contains(&State::DueQueued));
    }
    // A part of which one row is not due is not touched.
    let mut some = aged(1, &[]);
    some.changes = Box::default();
    assert_eq!(done(&tiered(vec![RuleKind::Recompress(Codec::Zstd(3))], vec![some]), 1000), []);
}

#[test]
fn recompressions_of_a_partition_keep_their_distance_and_go_together() {
    let mut view = tiered(vec![RuleKind::Recompress(Codec::Zstd(1))], vec![aged(1, &[5]), aged(2, &[5])]);
    assert_eq!(done(&view, 10)[0].1, [id(1), id(2)]);
    view.partitions[0].recompressed_at = Some(at(8));
    assert_eq!((done(&view, 10), plan(&view, at(10)).wake_at), (vec![], Some(at(108))));
    assert_eq!(states(&view, 0, 10), [State::WaitingTimeout]);
    // On a prune it rides: no wait.
    view.partitions[0].parts[0].first_due = at(9);
    assert_eq!(done(&view, 10), [("prune", vec![id(1)], vec![(HOT, Codec::Zstd(1))])]);
    view.stops.ttl_merges = true;
    assert_eq!((done(&view, 200), states(&view, 0, 200)), (vec![], vec![State::TtlMergesStopped]));
}

#[test]
fn of_due_moves_the_one_that_came_due_last_counts_and_the_next_where_it_is_full() {
    // proves T9, T10, T19: rules not in the order of age
    let rules = || vec![volume("warm"), to(DestinationKind::Disk, "c")];
    let mut view = tiered(rules(), vec![PartView { written_at: at(-1000), ..aged(1, &[7, 14]) }]);
    assert_eq!(done(&view, 8), [("move", vec![id(1)], vec![(WARM, Codec::Lz4)])]);
    assert_eq!(done(&view, 14), [("move", vec![id(1)], vec![(COLD, Codec::Lz4)])]);
    assert_eq!(states(&view, 0, 14), [State::SupersededRule, State::DueQueued]);
    disk(&mut view, COLD).free = 10;
    assert_eq!(done(&view, 14), [("move", vec![id(1)], vec![(WARM, Codec::Lz4)])]);
    assert_eq!(states(&view, 0, 14), [State::DueQueued, State::DestinationFull]);
    view.partitions[0].parts[0].disk = WARM;
    assert_eq!((done(&view, 14), plan(&view, at(14)).waits_for_room), (vec![], true));
    assert_eq!(states(&view, 0, 14), [State::NotDue, State::DestinationFull]);
    disk(&mut view, COLD).unavailable = Some("away".into());
    assert_eq!(states(&view, 0, 14)[1], State::DiskUnavailable);
    *disk(&mut view, COLD) = DiskView { kept_back: 1 << 30, free: 10, ..disk(&mut view, COLD).clone() };
    disk(&mut view, COLD).unavailable = None;
    assert_eq!(states(&view, 0, 14)[1], State::DiskThreshold);
    disk(&mut view, COLD).free = 1 << 30;
    view.stops.moves = true;
    assert_eq!((done(&view, 14), states(&view, 0, 14)[1]), (vec![], State::MovesStopped));
}

#[test]
fn a_part_goes_back_only_by_a_rule_that_says_so() {
    // proves F8: a part that a statement moved stays; a rule to a hotter volume moves it; an absent place is inert
    let on_cold = |due: &[i64]| PartView { disk: COLD, ..aged(1, due) };
    assert_eq!(done(&tiered(vec![volume("warm")], vec![on_cold(&[50])]), 10), []);
    assert_eq!(done(&tiered(vec![volume("warm")], vec![on_cold(&[5])]), 10), [("move", vec![id(1)], vec![(WARM, Codec::Lz4)])]);
    assert_eq!(done(&tiered(vec![], vec![on_cold(&[])]), 10), [], "the rule was removed");
    let inert = tiered(vec![volume("nowhere")], vec![aged(1, &[5])]);
    assert_eq!((done(&inert, 10), states(&inert, 0, 10)), (vec![], vec![State::RuleInert]));
    // It is that whatever other rules do, before it is due and after.
    let beside = tiered(vec![volume("nowhere"), volume("warm"), volume("nowhere")], vec![aged(1, &[5, 6, 20])]);
    assert_eq!(states(&beside, 0, 4), [State::RuleInert, State::NotDue, State::RuleInert]);
    assert_eq!(states(&beside, 0, 10), [State::RuleInert, State::DueQueued, State::RuleInert]);
    assert_eq!(states(&beside, 0, 20), [State::RuleInert, State::DueQueued, State::RuleInert]);
    // What stands in for a full destination is colder than where the part is.
    let mut view = tiered(vec![volume("hot"), volume("warm")], vec![on_cold(&[1, 5])]);
    disk(&mut view, WARM).free = 0;
    assert_eq!(done(&view, 10), []);
    assert_eq!(states(&view, 0, 10), [State::SupersededRule, State::DestinationFull]);
}

#[test]
fn parts_due_for_a_volume_without_merges_wait_for_a_partner() {
    // proves T21, T22, T23, T24, T27, T28, T29, T30, T31
    let due = |n, written| PartView { written_at: at(written), ..aged(n, &[5]) };
    let lone = || tiered(vec![volume("cold")], vec![due(1, 1000)]);
    let (view, moved) = (lone(), [("move", vec![id(1)], vec![(COLD, Codec::Lz4)])]);
    assert_eq!((done(&view, 1299), plan(&view, at(1299)).wake_at), (vec![], Some(at(1300))));
    assert_eq!(states(&view, 0, 1299), [State::HeldLonePart]);
    assert_eq!(done(&view, 1300), moved);
    // A part of another destination is no partner; one of the same is, whatever its age.
    let mut view = tiered(vec![volume("cold")], vec![due(1, 1000), due(2, 0), aged(3, &[])]);
    let merged = done(&view, 1100);
    assert_eq!(merged, [("merge", vec![id(1), id(2)], vec![(DiskId(1), Codec::Lz4)])]);
    assert_eq!(states(&view, 0, 1100), [State::WaitingPartner]);
    // The wait is bounded, from when the first was written and due.
    view.partitions[0].parts[1].move_due_since = Some(at(100));
    assert_eq!(done(&view, 3100)[0].0, "move");
    // No grace: a lone part goes at once, parts with a partner are merged on their way.
    let mut view = lone();
    view.settings.move_grace = std::time::Duration::ZERO;
    assert_eq!(done(&view, 1000), moved);
    view.partitions[0].parts.push(due(2, 1000));
    assert_eq!(done(&view, 1000), [("merge", vec![id(1), id(2)], vec![(COLD, Codec::Lz4)])]);
    // Where nothing is merged nothing waits.
    for off in 0..5 {
        let mut view = tiered(vec![volume("cold")], vec![due(1, 1000), due(2, 1000)]);
        match off {
            0 => view.stops.merges = true,
            1 => view.settings.max_parts_to_merge = 1,
            2 => view.settings.max_bytes_to_merge = 0,
            3 => Arc::make_mut(&mut view.tiers).volumes[2].prefer_not_to_merge = false,
            _ => Arc::make_mut(&mut view.tiers).volumes[0].merges_stopped = true,
        }
        assert_eq!(done(&view, 1001).iter().map(|d| d.0).collect::<Vec<_>>(), ["move", "move"], "{off}");
    }
    // Proves T32: space pressure comes first.
    let mut view = lone();
    disk(&mut view, HOT).free = 1 << 30;
    assert_eq!(done(&view, 1001), moved);
}

/// proves T32: what leaves a disk that is short is the smallest set of all streams' parts, once.
#[test]
fn pressure_is_decided_over_all_streams() {
    let of = |stream: u64, sizes: &[(u32, u64)]| {
        let parts = sizes.iter().map(|(n, bytes)| PartView { bytes: *bytes, ..aged(*n, &[]) });
        let mut view = StreamView { id: StreamId(stream), ..tiered(vec![], parts.collect()) };
        view.stops.merges = true;
        // Of 1 TiB a tenth is to be free.
        disk(&mut view, HOT).free = ((1u64 << 40) / 10) - 90;
        view
    };
    let gone = |views: &[StreamView]| {
        let relief = Arc::new(Relief::of(views.iter().flat_map(|v| pressed(v, at(1))).collect()));
        let with = |v: &StreamView| done(&StreamView { relief: Some(relief.clone()), ..v.clone() }, 1);
        views.iter().flat_map(with).flat_map(|(_, parts, _)| parts).collect::<Vec<_>>()
    };
    let small: Vec<(u32, u64)> = (1..=10).map(|n| (n, 10)).collect();
    let views = [of(1, &small), of(2, &[(20, 100), (21, 400)])];
    assert_eq!(done(&views[0], 1).len(), 9, "alone it takes its own");
    assert_eq!(gone(&views), [id(20)]);
    assert_eq!(gone(&[views[1].clone(), views[0].clone()]), [id(20)], "in any order");
    assert_eq!(gone(&[of(1, &small), of(2, &[(20, 85)])]), [id(1), id(20)]);
    // What other work takes off the disk counts, whoever does it.
    let mut moved = of(3, &[(30, 95)]);
    moved.rules = vec![rule(9, volume("warm"))];
    moved.partitions[0].parts[0].changes = vec![Change { rule: 0, first: at(0), at: at(0) }].into();
    assert_eq!(gone(&[of(1, &small), moved]), [id(30)]);
    // A policy that wants less free is content sooner: the rest is taken from those that want more.
    let mut content = of(2, &[(20, 60)]);
    Arc::make_mut(&mut content.tiers).move_factor = 0.1 - 50.0 / (1u64 << 40) as f64;
    assert_eq!(gone(&[of(1, &[(1, 50), (2, 50)]), content]), [id(1), id(2)]);
}

#[test]
fn what_is_due_together_is_one_rewrite() {
    let rules = || vec![RuleKind::Recompress(Codec::Zstd(3)), volume("warm")];
    let due = |n| PartView { first_due: at(5), ..aged(n, &[5, 5]) };
    let view = tiered(rules(), vec![due(1)]);
    assert_eq!(done(&view, 10), [("prune", vec![id(1)], vec![(WARM, Codec::Zstd(3))])]);
    let view = tiered(rules(), vec![aged(1, &[5, 5])]);
    assert_eq!(done(&view, 10), [("move", vec![id(1)], vec![(WARM, Codec::Zstd(3))])]);
    let many = (1..=FANOUT as u32).map(due).collect();
    assert_eq!(done(&tiered(rules(), many), 10), [("merge", (1..=8).map(id).collect(), vec![(WARM, Codec::Zstd(3))])]);
}

#[test]
fn cold_parts_are_left_alone_until_it_is_worth_it_and_no_row_is_immortal() {
    let cold = |first, worth| PartView { disk: COLD, first_due: at(first), worth_at: at(worth), ..aged(1, &[5]) };
    let mut view = tiered(vec![RuleKind::Recompress(Codec::Zstd(3)), RuleKind::Delete], vec![cold(10, 50)]);
    assert_eq!((done(&view, 49), plan(&view, at(49)).wake_at), (vec![], Some(at(50))));
    let small = decide(&view.partitions[0].parts[0], &view.partitions[0], &view, at(49));
    assert_eq!((small.state, states(&view, 0, 49)[0]), (State::SavingTooSmall, State::NoMergeVolume));
    assert_eq!(done(&view, 50), [("prune", vec![id(1)], vec![(COLD, Codec::Zstd(3))])]);
    view.partitions[0].parts = (1..20).map(|n| PartView { disk: COLD, ..aged(n, &[]) }).collect();
    assert_eq!(done(&view, 50), [], "no merges are scheduled there");
    let finals = optimize(&view, None, true, at(50));
    assert_eq!(finals.iter().map(|p| (p.kind(), p.targets()[0].disk)).collect::<Vec<_>>(), [("merge", COLD)]);
    assert!(optimize(&view, None, false, at(50)).is_empty());
    view.partitions[0].parts = vec![cold(NEVER.0 / 1_000_000, 50)];
    assert_eq!(optimize(&view, None, true, at(49)).iter().map(Plan::kind).collect::<Vec<_>>(), ["recompress"]);
}

#[test]
fn a_tenth_of_the_rows_or_thirty_days() {
    let day = 86_400;
    let facts = |rows, first, last| RuleFacts { rule: Fingerprint(1), rows, never: 0, earliest: Some(at(first)), latest: Some(at(last)) };
    assert_eq!(worth_at(&facts(100, 0, 99), 100), at(9));
    assert_eq!(worth_at(&facts(5, 0, 99), 100), at(30 * day));
    assert_eq!(worth_at(&facts(10, 7, 7), 100), at(7));
    assert_eq!(worth_at(&facts(100, 0, 9999 * day), 100), at(30 * day));
    assert_eq!(worth_at(&RuleFacts { earliest: None, latest: None, ..facts(0, 0, 0) }, 100), NEVER);
    assert_eq!(worth_at(&facts(1, 3, 3), 1), at(3));
}

#[test]
fn the_smallest_set_leaves_a_disk_that_is_short() {
    // proves F8, T32: not the new large part where an old small one suffices, and no part that a rule keeps
    let sized = |n, bytes, due: &[i64]| PartView { bytes, ..aged(n, due) };
    let short = |view: &mut StreamView, by: u64| {
        let d = disk(view, HOT);
        (d.total, d.free) = (10_000, 1000 - by);
    };
    let mut view = tiered(vec![volume("cold")], vec![sized(1, 300, &[900]), sized(2, 5000, &[990]), sized(3, 100, &[800])]);
    short(&mut view, 250);
    let moved = |v: &StreamView| plan(v, at(10)).plans.iter().flat_map(|p| p.parts().to_vec()).collect::<Vec<_>>();
    assert_eq!(moved(&view), [id(1)]);
    assert_eq!(plan(&view, at(10)).plans[0].targets()[0].disk, WARM, "the next volume");
    short(&mut view, 350);
    assert_eq!(moved(&view), [id(2)], "one is fewer than two");
    // What a rule moves or drops counts first.
    view.partitions[0].parts[2] = PartView { written_at: at(-1000), ..sized(3, 400, &[5]) };
    assert_eq!(moved(&view), [id(3)]);
    disk(&mut view, HOT).leaving = 400;
    view.partitions[0].parts.pop();
    assert!(moved(&view).is_empty(), "objects of removed parts are room to come");
    // A rule to the disk's own volume: nothing goes back and forth.
    let mut view = tiered(vec![volume("hot")], vec![sized(1, 300, &[5])]);
    short(&mut view, 250);
    assert!(moved(&view).is_empty());
    view.partitions[0].parts[0].changes = Box::default();
    assert_eq!(moved(&view), [id(1)]);
    view.stops.moves = true;
    assert!(moved(&view).is_empty());
}

#[test]
fn one_part_is_not_promised_the_room_of_another() {
    let mut view = tiered(vec![volume("warm")], (1..=5).map(|n| aged(n, &[5])).collect());
    disk(&mut view, WARM).free = 2500;
    let planned = plan(&view, at(10));
    assert_eq!((planned.plans.len(), planned.waits_for_room), (2, true));
}

/// What is not due yet and will have to wait for the distance of prunes then says when its time comes.
#[test]
fn the_next_attempt_is_when_a_prune_may_be() {
    let mut view = tiered(vec![RuleKind::Delete], vec![part(1, at(20), NEVER), part(2, at(20), at(20))]);
    view.partitions[0].pruned_at = Some(at(10));
    view.settings.prune_every = std::time::Duration::from_secs(100);
    let told = |n: usize| decide(&view.partitions[0].parts[n], &view.partitions[0], &view, at(12));
    assert_eq!((told(0).state, told(0).due_at, told(0).next_attempt_at), (State::NotDue, Some(at(20)), Some(at(110))));
    assert_eq!(told(1).next_attempt_at, Some(at(20)), "a part that goes whole waits for nothing");
}

/// Due parts that nothing takes out are merged as others are, so that no number of them stops inserts.
#[test]
fn wholly_due_parts_are_merged_while_rules_are_stopped() {
    let due = |n: u32| part(n, at(5), at(5));
    let mut view = tiered(vec![RuleKind::Delete], (1..=8).map(due).collect());
    assert_eq!(done(&view, 10).iter().map(|d| d.0).collect::<Vec<_>>(), ["drop"]);
    view.stops.ttl_merges = true;
    assert_eq!(done(&view, 10).iter().map(|d| d.0).collect::<Vec<_>>(), ["merge"]);
    let Plan::Merge { delete_due, .. } = plan(&view, at(10)).plans.remove(0) else { panic!("a merge") };
    assert!(!delete_due);
}

/// What came of a part in a codec counts where that was tried; what it has now is never asked to be larger.
#[test]
fn a_codec_in_which_a_part_does_not_fit_is_left_out() {
    let rules = || vec![volume("warm"), RuleKind::Recompress(Codec::Zstd(3))];
    let sized = |tried: Option<u64>| PartView { bytes: 4900, tried: tried.map(|n| Box::new((Codec::Zstd(3), n))), ..aged(1, &[5, 6]) };
    for declared in [true, false] {
        let mut view = tiered(rules(), vec![sized(None)]);
        match declared {
            true => disk(&mut view, WARM).free = 8000,
            false => Arc::make_mut(&mut view.tiers).volumes[1].max_part_bytes = 8000,
        }
        assert_eq!(done(&view, 10), [("move", vec![id(1)], vec![(WARM, Codec::Zstd(3))])]);
        view.partitions[0].parts = vec![sized(Some(8722))];
        assert_eq!(done(&view, 10), [("move", vec![id(1)], vec![(WARM, Codec::Lz4)])]);
        assert_eq!(states(&view, 0, 10), [State::DueQueued, State::DestinationFull]);
        view.partitions[0].parts[0].disk = WARM;
        assert_eq!((done(&view, 10), states(&view, 0, 10)), (vec![], vec![State::NotDue, State::DestinationFull]));
    }
    // It was that large before the volume was told: it may be recompressed there, and may not grow.
    let mut view = tiered(rules(), vec![PartView { disk: WARM, ..sized(None) }]);
    Arc::make_mut(&mut view.tiers).volumes[1].max_part_bytes = 100;
    assert_eq!(done(&view, 10), [("recompress", vec![id(1)], vec![(WARM, Codec::Zstd(3))])]);
}

#[test]
fn planning_many_parts_with_rules_is_quick() {
    let rules = || vec![RuleKind::Recompress(Codec::Zstd(3)), volume("warm")];
    let parts = |p: u32| (0..1000).map(|n| PartView { disk: WARM, codec: Codec::Zstd(3), ..aged(p * 1000 + n, &[1, 1]) }).collect();
    let mut view = tiered(rules(), vec![]);
    view.settings.max_parts_to_merge = 1;
    view.partitions = (0..10).map(|p| partition(&p.to_string(), parts(p))).collect();
    assert!(plan(&view, at(10)).plans.is_empty());
}

fn random_tiers() -> impl Strategy<Value = TierView> {
    let room = || prop_oneof![2 => Just(None), 2 => (0u64..1 << 25).prop_map(Some)];
    let largest = || prop_oneof![2 => Just(u64::MAX), 1 => 0u64..1 << 24];
    (proptest::collection::vec((room(), 0u8..12), 4), any::<[bool; 3]>(), [largest(), largest(), largest()], 0u8..3).prop_map(
        |(disks, [unmerged, stopped, least], largest, factor)| {
            let mut tiers = three();
            let all = tiers.volumes.iter_mut().flat_map(|v| &mut v.disks);
            for (d, (room, away)) in all.zip(disks) {
                d.unavailable = (away == 0).then(|| "away".into());
                (d.total, d.free) = room.map_or((u64::MAX, u64::MAX), |free| (1 << 25, free));
            }
            tiers.volumes[2].prefer_not_to_merge = unmerged;
            tiers.volumes[1].merges_stopped = stopped && least;
            tiers.volumes[0].load_balancing = if least { LoadBalancing::LeastUsed } else { LoadBalancing::RoundRobin };
            tiers.volumes.iter_mut().zip(largest).for_each(|(v, most)| v.max_part_bytes = most);
            tiers.move_factor = f64::from(factor) * 0.1;
            tiers
        },
    )
}

fn random_rules() -> impl Strategy<Value = Vec<RuleKind>> {
    let one = prop_oneof![
        (1u8..4).prop_map(|l| RuleKind::Recompress(Codec::Zstd(l))),
        proptest::sample::select(vec!["hot", "warm", "cold", "nowhere"]).prop_map(volume),
        proptest::sample::select(vec!["h1", "w", "c", "nowhere"]).prop_map(|d| to(DestinationKind::Disk, d)),
    ];
    proptest::collection::vec(one, 0..4)
}

fn random_aged(id: u32) -> impl Strategy<Value = PartView> {
    let due = proptest::collection::vec(proptest::option::weighted(0.7, (0i64..100, 0i64..20)), 4);
    let codec = (0u8..4).prop_map(|l| if l == 0 { Codec::Lz4 } else { Codec::Zstd(l) });
    let since = proptest::option::of(0i64..60);
    let tried = proptest::option::of((1u8..4, 1u64..1 << 24)).prop_map(|t| t.map(|(l, bytes)| Box::new((Codec::Zstd(l), bytes))));
    let at_all = (0u32..4, -50i64..60);
    (super::random_part(id), due, at_all, codec, tried, since, moment()).prop_map(
        |(p, due, (disk, written), codec, tried, since, worth)| {
            let change = |(i, d): (usize, Option<(i64, i64)>)| d.map(|(t, span)| Change { rule: i as u32, first: at(t - span), at: at(t) });
            PartView {
                changes: due.into_iter().enumerate().filter_map(change).collect(),
                disk: DiskId(disk),
                codec,
                tried,
                written_at: at(written),
                move_due_since: since.map(at),
                worth_at: p.first_due.max(worth).min(p.first_due.saturating_add(std::time::Duration::from_secs(40))),
                ..p
            }
        },
    )
}

fn random_tiered() -> impl Strategy<Value = StreamView> {
    let parts = (0usize..24).prop_flat_map(|n| (0..n as u32).map(random_aged).collect::<Vec<_>>());
    let seconds = || proptest::sample::select(vec![0u64, 3, 20]);
    (super::random_stream(), random_tiers(), random_rules(), parts, (seconds(), seconds(), proptest::option::of(0i64..60), 0u8..6))
        .prop_map(|(mut view, tiers, rules, mut parts, (grace, every, recompressed, stop))| {
            view.tiers = Arc::new(tiers);
            let fold = view.rules.get(1).cloned();
            view.rules = rules.into_iter().enumerate().map(|(i, kind)| rule(i as u64, kind)).collect();
            view.stops.moves = stop == 0;
            view.settings.move_grace = std::time::Duration::from_secs(grace);
            view.settings.recompress_every = std::time::Duration::from_secs(every);
            for (i, p) in view.partitions.iter_mut().enumerate() {
                p.recompressed_at = recompressed.map(at);
                p.parts.clear();
                let n = parts.len() / (3 - i);
                p.parts.extend(parts.drain(..n));
                p.parts.iter_mut().for_each(|part| {
                    part.changes = part.changes.iter().copied().filter(|c| (c.rule as usize) < view.rules.len()).collect()
                });
            }
            view.rules.extend(fold);
            view
        })
}

/// Where the parts of a view are, by id.
fn volumes(view: &StreamView) -> std::collections::HashMap<PartId, usize> {
    let parts = view.partitions.iter().flat_map(|p| &p.parts);
    parts.filter_map(|p| Some((p.id, view.tiers.volume_of(p.disk)?))).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn plans_are_sound_fit_their_rooms_and_do_not_depend_on_order(view in random_tiered(), now in 0i64..120, seed in any::<u64>()) {
        let planned = plan(&view, at(now));
        prop_assert_eq!(violations(&view, &planned.plans), Vec::<String>::new());
        for d in view.tiers.volumes.iter().flat_map(|v| &v.disks) {
            let part = |id: &PartId| view.partitions.iter().flat_map(|p| &p.parts).find(|p| p.id == *id).unwrap();
            let size = |id: &PartId| part(id).bytes;
            let mut taken = 0;
            for p in &planned.plans {
                match p {
                    Plan::Merge { target, parts, .. } | Plan::Fold { target, parts, .. } if target.disk == d.id => {
                        taken += parts.iter().map(size).sum::<u64>();
                    }
                    Plan::Merge { .. } | Plan::Fold { .. } => {}
                    _ => {
                        let there = p.targets().iter().zip(p.parts()).filter(|(t, _)| t.disk == d.id);
                        taken += there.map(|(t, id)| part(id).bytes_in(t.codec)).sum::<u64>();
                    }
                }
            }
            prop_assert!(taken <= d.free, "{} bytes to a disk with {}", taken, d.free);
            prop_assert!(taken == 0 || d.unavailable.is_none());
        }
        let mut shuffled = view.clone();
        for p in &mut shuffled.partitions {
            let n = p.parts.len().max(1);
            p.parts.rotate_left(seed as usize % n);
        }
        shuffled.partitions.rotate_left(seed as usize % 3);
        prop_assert_eq!(plan(&shuffled, at(now)), planned);
    }

    #[test]
    fn work_comes_to_an_end_and_nothing_goes_back_and_forth(mut view in random_tiered(), now in 0i64..120) {
        // proves F8, F17: no rewrite loop, no ping-pong
        let mut next_id = 1000;
        for p in view.partitions.iter_mut().flat_map(|p| &mut p.parts) {
            p.busy = false;
        }
        let mut times: std::collections::HashMap<PartId, usize> = Default::default();
        for round in 0.. {
            let planned = plan(&view, at(now));
            if planned.plans.is_empty() {
                break;
            }
            prop_assert!(round < 20, "still planning {:?}", planned.plans);
            for p in planned.plans.iter().filter(|p| matches!(p, Plan::Move { .. } | Plan::Recompress { .. })) {
                for id in p.parts() {
                    let n = times.entry(*id).or_default();
                    *n += 1;
                    // By a rule, by one that stands in, and down the volumes.
                    prop_assert!(*n <= 4, "part {} again: {:?}", id, p);
                }
            }
            let before = volumes(&view);
            apply(&mut view, &planned.plans, at(now), &mut next_id);
            for (id, after) in volumes(&view) {
                let asked = |p: &Plan| p.parts().contains(&id) && p.targets()[0].moved_by.is_some();
                prop_assert!(before.get(&id).is_none_or(|b| *b <= after) || planned.plans.iter().any(asked), "part {} got hotter", id);
            }
        }
        prop_assert!(is_settled(&view, at(now)));
    }

    #[test]
    fn the_wake_up_is_honest_for_places_and_codecs_too(view in random_tiered(), now in 0i64..120) {
        let planned = plan(&view, at(now));
        let until = planned.wake_at.map_or(300, |t| t.0.div_euclid(1_000_000));
        let kinds = |p: &Planned| p.plans.iter().map(|x| (x.kind(), x.parts().to_vec(), x.targets().to_vec())).collect::<Vec<_>>();
        for t in now + 1..until.min(300) {
            prop_assert_eq!(kinds(&plan(&view, at(t))), kinds(&planned), "at {}", t);
        }
    }

    #[test]
    fn what_is_overdue_has_a_reason_and_what_says_it_acts_does(view in random_tiered(), now in 0i64..120) {
        // I12
        let planned = plan(&view, at(now));
        let taken = |id: PartId| planned.plans.iter().any(|p| p.parts().contains(&id));
        for partition in &view.partitions {
            let scene = Scene::new(&view, partition, at(now));
            for p in &partition.parts {
                let removal = scene.removal(p);
                if is_due(p.first_due, at(now)) || is_due(p.whole_due, at(now)) {
                    prop_assert!(removal.state != State::NotDue, "{:?}", removal);
                }
                let mut acts = removal.acts();
                for c in p.changes.iter().filter(|c| is_due(c.at, at(now))) {
                    let d = scene.of_rule(p, c.rule as usize);
                    acts |= d.acts();
                    let settled = match &view.rules[c.rule as usize].kind {
                        RuleKind::Recompress(codec) => p.codec == *codec,
                        RuleKind::Move(to) => view.tiers.is_there(to, p.disk),
                        _ => true,
                    };
                    prop_assert!(d.state != State::NotDue || settled, "{:?}", d);
                }
                prop_assert!(!acts || taken(p.id) || planned.waits_for_room, "{} acts and is in no plan", p.id);
                // With all the room to itself, what is called possible is done.
                let partition = PartitionView { parts: vec![p.clone()], ..partition.clone() };
                let lone = StreamView { partitions: vec![partition], relief: None, ..view.clone() };
                let scene = Scene::new(&lone, &lone.partitions[0], at(now));
                let acts = scene.removal(p).acts() || (0..lone.rules.len()).any(|r| scene.of_rule(p, r).acts());
                let planned = plan(&lone, at(now)).plans;
                prop_assert!(!acts || planned.iter().any(|x| x.parts().contains(&p.id)), "{} acts alone and is in no plan", p.id);
            }
        }
    }
}

/// proves F8: parts that are not due are not merged with parts of a colder volume, where the result would lie.
#[test]
fn merges_take_parts_of_one_volume() {
    let fresh = |n: u32| part(n, NEVER, NEVER);
    let warm = |n: u32| PartView { disk: WARM, ..part(n, NEVER, NEVER) };
    let few = (1..=5).map(fresh).chain((11..=15).map(warm)).collect();
    assert_eq!(done(&tiered(vec![], few), 10), [], "ten of like size, five of each volume");
    let many = (1..=8).map(fresh).chain((11..=18).map(warm)).collect();
    let plans = done(&tiered(vec![], many), 10);
    let of = |disk| plans.iter().filter(|p| p.2[0].0 == disk).map(|p| p.1.len()).sum::<usize>();
    assert_eq!((plans.len(), of(HOT) + of(DiskId(1)), of(WARM)), (2, 8, 8), "{plans:?}");
}
