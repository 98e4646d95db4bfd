use super::*;
use proptest::prelude::*;

#[test]
fn every_key_is_read() {
    let p = bind(
        "p",
        "volumes:
  hot:
    disk: default
    disk1: fast
    disk_2: 'fast 2'
    max_data_part_size_bytes: 1000
    load_balancing: least_used
  cold:
    disk: [a, b]
    max_data_part_size_ratio: 0.5
    perform_ttl_move_on_insert: 0
    prefer_not_to_merge: true
move_factor: 0.25
",
    )
    .unwrap();
    assert_eq!(p.volumes[0].disks, ["default", "fast", "fast 2"]);
    assert_eq!((p.volumes[0].max_data_part_size_bytes, p.volumes[0].load_balancing), (Some(1000), LoadBalancing::LeastUsed));
    assert_eq!((p.volumes[1].max_data_part_size_ratio, p.volumes[1].disks.len()), (Some(0.5), 2));
    assert!(!p.volumes[1].perform_ttl_move_on_insert && p.volumes[1].prefer_not_to_merge);
    assert_eq!(p.move_factor, 0.25);
    let plain = bind("p", "volumes:\n  a:\n    disk: x\n  b:\n    disk: y").unwrap();
    assert_eq!((plain.move_factor, plain.volumes[0].perform_ttl_move_on_insert), (0.1, true));
    assert_eq!(bind("p", "volumes: {a: {disk: x}}").unwrap().move_factor, 0.0);
}

#[test]
fn priorities_order_the_volumes() {
    let body = |a: &str, b: &str| format!("volumes:\n  a:\n    disk: x\n    {a}\n  b:\n    disk: y\n    {b}\n");
    let p = bind("p", &body("volume_priority: 2", "volume_priority: 1")).unwrap();
    assert_eq!(p.volumes.iter().map(|v| v.name.as_str()).collect::<Vec<_>>(), ["b", "a"]);
    assert!(bind("p", &body("volume_priority: 1", "volume_priority: 1")).is_err());
    assert!(bind("p", &body("volume_priority: 1", "prefer_not_to_merge: 1")).is_err());
}

/// proves L2
#[test]
fn what_is_wrong_is_named_with_its_line_and_the_nearest_key() {
    let cases = [
        ("volume: {}", "did you mean 'volumes'"),
        ("volumes: {}", "is empty"),
        ("move_factor: 0.1", "'volumes' is missing"),
        ("volumes:\n  a:\n    dsk: x", "line 3: a volume has no key 'dsk'; did you mean 'disk'"),
        ("volumes:\n  a:\n    disk_: x", "disk_"),
        ("volumes:\n  a:\n    disks: x", "did you mean 'disk'"),
        ("volumes:\n  a:\n    prefer_not_to_merge: true", "it has no disk"),
        ("volumes:\n  a:\n    disk: x\n    disk1: x", "line 4: disk 'x' is there twice"),
        ("volumes:\n  a:\n    disk: x\n  a:\n    disk: y", "'a' is there twice"),
        ("volumes:\n  a:\n    disk: x\n    prefer_not_to_merge: yes", "true, false, 1 or 0"),
        ("volumes:\n  a:\n    disk: x\n    max_data_part_size_bytes: big", "a whole number"),
        ("volumes:\n  a:\n    disk: x\n    max_data_part_size_ratio: 0", "above 0"),
        ("volumes:\n  a:\n    disk: x\n    load_balancing: robin", "round_robin"),
        ("volumes:\n  a: [x]", "a volume must be a mapping"),
        ("volumes:\n  a:\n    disk: x\nmove_factor: 2", "1 at the most"),
        ("volumes:\n  a:\n    disk: x\nmove_factor: nan", "1 at the most"),
        ("volumes:\n  a:\n    disk:", "needs a value"),
        ("just a text", "must be a mapping"),
    ];
    for (body, why) in cases {
        let e = bind("p", body).unwrap_err();
        assert!(e.message().contains(why) && e.message().contains("storage policy 'p'"), "{body}: {e}");
    }
}

proptest! {
    #[test]
    fn a_printed_policy_is_read_back(
        volumes in proptest::collection::vec(("[a-c '1-]{1,6}", 1usize..4, any::<(bool, bool, bool)>(), 1u64..9), 1..4),
        factor in 0u8..=100,
    ) {
        let mut n = 0;
        let volumes: Vec<Volume> = volumes.into_iter().enumerate().map(|(i, (name, disks, (a, b, c), size))| Volume {
            max_data_part_size_bytes: a.then_some(size),
            max_data_part_size_ratio: b.then_some(size as f64 / 10.0),
            load_balancing: if c { LoadBalancing::LeastUsed } else { LoadBalancing::RoundRobin },
            perform_ttl_move_on_insert: a,
            prefer_not_to_merge: b,
            volume_priority: None,
            ..Volume::new(format!("{name}{i}"), (0..disks).map(|_| { n += 1; format!("d {n}") }).collect())
        }).collect();
        let policy = StoragePolicy { name: "p".into(), version: 0, volumes, move_factor: f64::from(factor) / 100.0 };
        prop_assert_eq!(bind("p", &body(&policy)).unwrap(), policy);
    }
}
