use super::*;
use proptest::prelude::*;

fn disk(id: u32, name: &str, free: u64) -> DiskView {
    DiskView { total: 1000, free, ..DiskView::unlimited(DiskId(id), name) }
}

fn tiers() -> TierView {
    let hot = VolumeView::plain("hot", vec![disk(0, "a", 100), disk(1, "b", 300)]);
    let cold = VolumeView { max_part_bytes: 200, ..VolumeView::plain("cold", vec![disk(2, "c", 900)]) };
    TierView { policy: "p".into(), version: 1, volumes: vec![hot, cold], move_factor: 0.1 }
}

fn to(kind: DestinationKind, name: &str) -> Destination {
    Destination { kind, name: name.into(), if_exists: false }
}

#[test]
fn disks_of_a_volume_take_turns_or_the_one_with_most_room_comes_first() {
    let mut t = tiers();
    assert_eq!((t.pick(0, 50, 0), t.pick(0, 50, 1), t.pick(0, 50, 2)), (Ok(DiskId(0)), Ok(DiskId(1)), Ok(DiskId(0))));
    assert_eq!(t.pick(0, 200, 0), Ok(DiskId(1)), "the one whose turn it is has no room");
    t.volumes[0].load_balancing = LoadBalancing::LeastUsed;
    assert_eq!((t.pick(0, 50, 0), t.pick(0, 50, 1)), (Ok(DiskId(1)), Ok(DiskId(1))));
}

#[test]
fn a_place_says_why_it_takes_nothing() {
    // proves T9, T10
    let mut t = tiers();
    assert_eq!(t.destination(&to(DestinationKind::Disk, "c"), 500, 0), Ok(Some(DiskId(2))), "a disk by name obeys no part size");
    let volume = t.destination(&to(DestinationKind::Volume, "cold"), 500, 0);
    assert!(matches!(volume, Err(NoRoom::TooLarge { max: 200, .. })), "{volume:?}");
    assert!(matches!(t.destination(&to(DestinationKind::Volume, "hot"), 301, 0), Err(NoRoom::Full { .. })));
    assert!(matches!(t.destination(&to(DestinationKind::Disk, "z"), 1, 0), Err(NoRoom::Missing { .. })));
    let inert = Destination { if_exists: true, ..to(DestinationKind::Disk, "z") };
    assert_eq!(t.destination(&inert, 1, 0), Ok(None));
    t.volumes[1].disks[0].unavailable = Some("gone".into());
    assert!(matches!(t.destination(&to(DestinationKind::Disk, "c"), 1, 0), Err(NoRoom::Unavailable { .. })));
    t.volumes[0].disks[0].kept_back = 500;
    assert!(matches!(t.volumes[0].disks[0].takes(200), Err(NoRoom::Threshold { .. })));
}

#[test]
fn what_does_not_fit_goes_to_the_next_volume() {
    let t = tiers();
    assert_eq!((t.for_new(50, 0), t.from_on(1, 50, 0)), (Ok(DiskId(0)), Ok(DiskId(2))));
    assert!(matches!(t.for_new(400, 0), Err(NoRoom::Full { .. })), "the reason is the first volume's");
    assert!(matches!(t.from_on(7, 1, 0), Err(NoRoom::Missing { .. })));
}

proptest! {
    #[test]
    fn a_disk_is_picked_only_where_it_takes_the_part(free in proptest::collection::vec(0u64..400, 1..4), bytes in 0u64..400, turn: u64, least: bool) {
        let disks = free.iter().enumerate().map(|(i, f)| disk(i as u32, "d", *f)).collect();
        let load_balancing = if least { LoadBalancing::LeastUsed } else { LoadBalancing::RoundRobin };
        let volumes = vec![VolumeView { load_balancing, ..VolumeView::plain("v", disks) }];
        let t = TierView { volumes, ..tiers() };
        match t.pick(0, bytes, turn) {
            Ok(id) => prop_assert!(t.disk(id).is_some_and(|d| d.free >= bytes)),
            Err(_) => prop_assert!(free.iter().all(|f| *f < bytes)),
        }
    }
}
