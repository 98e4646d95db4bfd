use super::*;
use crate::plan::tiers::VolumeView;
use ebb_storage::{
    ids::{Epoch, Fingerprint, PartId},
    rules::{Destination, DestinationKind, Policy, Rule},
    testkit::defs,
};

const NOW: Timestamp = Timestamp(1_000);

fn to(kind: DestinationKind, name: &str, fingerprint: u64) -> Rule {
    let to = Destination { kind, name: name.into(), if_exists: false };
    Rule { when: "ts".into(), action: Action::Move(to), fingerprint: Fingerprint(fingerprint) }
}

fn facts(fingerprint: u64, rows: u64, never: u64, latest: i64) -> RuleFacts {
    let at = Some(Timestamp(latest));
    RuleFacts { rule: Fingerprint(fingerprint), rows, never, earliest: at, latest: at }
}

/// hot (disk 0), warm (disk 1), cold (disks 2, 3).
fn tiers() -> TierView {
    let disk = |id: u32| DiskView::unlimited(DiskId(id), &format!("d{id}"));
    let volume = |name: &str, ids: &[u32]| VolumeView::plain(name, ids.iter().map(|i| disk(*i)).collect());
    let volumes = vec![volume("hot", &[0]), volume("warm", &[1]), volume("cold", &[2, 3])];
    TierView { policy: "p".into(), version: 1, volumes, move_factor: 0.0 }
}

fn places(tiers: &TierView, rules: Vec<Rule>, facts: &[RuleFacts]) -> Vec<u32> {
    let def = StreamDef { policy: Policy { ttl: rules, retention: vec![] }, ..defs::stream("s", vec![]) };
    due_places(tiers, &def, facts, (10, NOW), 100, 0).into_iter().map(|d| d.0).collect()
}

/// proves T33: rows that are due go to the place of the rule that came due last; the others are what is left where that fails.
#[test]
fn rows_that_are_all_due_go_where_the_last_due_rule_says() {
    use DestinationKind::{Disk, Volume};
    let rules = || vec![to(Volume, "warm", 1), to(Volume, "cold", 2), to(Disk, "d3", 3)];
    let due = |one, two, three| [facts(1, 10, 0, one), facts(2, 10, 0, two), facts(3, 10, 0, three)];
    assert_eq!(places(&tiers(), rules(), &due(900, 800, 2000)), [1, 2]);
    assert_eq!(places(&tiers(), rules(), &due(800, 900, 2000)), [2, 1]);
    // Of equals the later in the list; equality is due.
    assert_eq!(places(&tiers(), rules(), &due(500, 1000, 1000)), [3, 2, 1]);
    assert!(places(&tiers(), rules(), &due(1001, 1001, 1001)).is_empty());
    // One row that is not due, or never will be, and nothing is.
    assert!(places(&tiers(), rules(), &[facts(1, 9, 1, 900), facts(2, 9, 0, 900)]).is_empty());
}

/// proves T34
#[test]
fn a_volume_that_does_not_want_new_rows_gets_none() {
    let mut t = tiers();
    t.volumes[2].move_on_insert = false;
    let rules = vec![to(DestinationKind::Volume, "cold", 1), to(DestinationKind::Disk, "d2", 2), to(DestinationKind::Volume, "warm", 3)];
    let due = [facts(1, 10, 0, 900), facts(2, 10, 0, 900), facts(3, 10, 0, 100)];
    assert_eq!(places(&t, rules, &due), [1]);
}

#[test]
fn an_inert_rule_sends_nothing_anywhere() {
    let mut rule = to(DestinationKind::Volume, "nowhere", 1);
    if let Action::Move(to) = &mut rule.action {
        to.if_exists = true;
    }
    assert!(places(&tiers(), vec![rule], &[facts(1, 10, 0, 1)]).is_empty());
}

/// A reservation of what their values take keeps out twice as many as fit.
#[test]
fn new_rows_are_reckoned_as_the_newest_parts_came_out() {
    let part = |id: u32, rows: u64, bytes: u64| {
        let mut part = defs::part(PartId::new(Epoch(1), id), 1, rows);
        part.placement.bytes = bytes;
        Arc::new(part)
    };
    let with = |parts: Vec<Arc<PartMeta>>| {
        let mut state = StreamState::new(defs::stream("s", vec![]));
        for part in parts {
            state.parts.insert_mut(part.id, part);
        }
        state
    };
    assert_eq!(stored_bytes(&with(vec![]), 1000, 50_000), 50_000, "nothing is known");
    let tell = with(vec![part(1, 10_000, 80_000), part(2, 10_000, 160_000)]);
    assert_eq!(stored_bytes(&tell, 1000, 50_000), 20_000, "sixteen bytes a row and a quarter more");
    assert_eq!(stored_bytes(&tell, 1000, 15_000), 15_000, "never more than their values");
    assert_eq!(stored_bytes(&with(vec![part(1, 10, 4000)]), 1000, 50_000), 50_000, "a few rows tell nothing");
    // But for as few.
    assert_eq!(stored_bytes(&with(vec![part(1, 10, 4000)]), 15, 50_000), 7500, "as many as it has, or twice");
    assert_eq!(stored_bytes(&with(vec![part(1, 1000, 9361)]), 1000, 40_000), 11_701);
    // What was long ago tells nothing any more.
    let newer = (2..20).map(|n| part(n, 10_000, 80_000));
    assert_eq!(stored_bytes(&with(std::iter::once(part(1, 10_000, 400_000)).chain(newer).collect()), 1000, 50_000), 10_000);
}
