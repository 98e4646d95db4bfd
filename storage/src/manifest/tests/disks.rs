use super::*;
use crate::disk::{DiskDef, DiskKind, Secret, StoragePolicy, Volume};

pub fn disk(id: u32, name: &str) -> DiskDef {
    let kind = DiskKind::S3 {
        endpoint: format!("http://h/{name}"),
        region: None,
        access_key_id: Some("id".into()),
        secret_access_key: Some(Secret::new("verysecret")),
        use_environment_credentials: false,
    };
    DiskDef { id: DiskId(id), name: name.into(), kind, capacity_bytes: None, max_usage_pct: 100 }
}

/// A volume of its own for each disk.
pub fn policy(name: &str, version: u64, disks: &[&str]) -> StoragePolicy {
    let volumes = disks.iter().map(|d| Volume::new(format!("on_{d}"), vec![(*d).to_owned()])).collect();
    StoragePolicy { name: name.into(), version, volumes, move_factor: 0.1 }
}

pub fn placement(disk: u32, generation: u64) -> Placement {
    Placement { disk: DiskId(disk), generation: Generation(generation), codec: Default::default(), bytes: 900, checksum: 2 }
}

fn after(m: &Manifest, edits: Vec<Edit>) -> crate::Result<Manifest> {
    m.apply(&Commit { no: m.no.next(), epoch: Epoch(0), nonce: String::new(), time: Timestamp(0), edits })
}

fn whole() -> Manifest {
    scenario().into_iter().fold(Manifest::empty(), |m, edits| after(&m, edits).unwrap())
}

#[test]
fn a_moved_parts_old_place_is_buried() {
    let m = whole();
    let moved = m.stream(StreamId(1)).unwrap().parts.get(&PartId(11)).unwrap();
    assert_eq!((moved.placement.disk, moved.placement.generation), (DiskId(1), Generation(2)));
    let grave = m.graveyard.get(&(StreamId(1), PartId(11), Generation(1))).unwrap();
    assert_eq!(grave.part.placement.disk, DiskId::DEFAULT);
    let again = Edit::Place { stream: StreamId(1), part: PartId(11), placement: placement(0, 2) };
    assert_eq!(after(&m, vec![again]).unwrap_err().kind(), ErrorKind::Conflict);
    assert_eq!(violations(&m), Vec::<String>::new());
}

#[test]
fn what_is_named_cannot_go_and_ids_do_not_come_back() {
    let m = whole();
    let drop_disk = |m: &Manifest| after(m, vec![Edit::DropDisk(DiskId(1))]);
    let refused = drop_disk(&m).unwrap_err();
    assert!(refused.kind() == ErrorKind::Conflict && refused.message().contains("'tiers' names disk 'cold'"), "{refused}");
    let m = after(&m, vec![Edit::DropPolicy { name: "tiers".into() }]).unwrap();
    assert!(after(&m, vec![Edit::DropPolicy { name: "tiers".into() }]).is_err());
    // A part lies there still: nobody drops a disk without having looked.
    let lost = drop_disk(&m).unwrap();
    assert!(violations(&lost).iter().any(|v| v.contains("unknown")), "{:?}", violations(&lost));
    for (id, name) in [(1, "cold"), (2, "default")] {
        assert!(after(&lost, vec![Edit::CreateDisk(Box::new(disk(id, name)))]).is_err(), "{id} {name}");
    }
    let back = after(&lost, vec![Edit::CreateDisk(Box::new(disk(2, "cold")))]).unwrap();
    assert_eq!((back.next_disk, back.disk_id("cold")), (DiskId(3), Some(DiskId(2))));
    let on_gone = Edit::AddPart(Box::new(PartMeta { placement: placement(1, 1), ..part(1, 40, 2) }));
    assert_eq!(after(&back, vec![on_gone]).unwrap_err().kind(), ErrorKind::Conflict);
}

#[test]
fn a_disk_keeps_its_name_and_a_policy_its_order_of_versions() {
    let m = whole();
    let changed = DiskDef { max_usage_pct: 50, ..disk(1, "cold") };
    assert_eq!(after(&m, vec![Edit::CreateDisk(Box::new(changed))]).unwrap().disks.get(&DiskId(1)).unwrap().max_usage_pct, 50);
    assert!(after(&m, vec![Edit::CreateDisk(Box::new(disk(1, "other")))]).is_err());
    let set = |version, disks: &[&str]| after(&m, vec![Edit::SetPolicy(Box::new(policy("tiers", version, disks)))]);
    assert!(set(1, &["default"]).is_err() && set(2, &["nowhere"]).is_err());
    assert_eq!(set(2, &["default"]).unwrap().policy("tiers").unwrap().version, 2);
    // The built-in one can be replaced, and comes back when that is dropped.
    let own = after(&m, vec![Edit::SetPolicy(Box::new(policy("default", 1, &["cold"])))]).unwrap();
    assert_eq!(own.policy("default").unwrap().volumes[0].name, "on_cold");
    let back = after(&own, vec![Edit::DropPolicy { name: "default".into() }]).unwrap();
    assert_eq!(back.policy("default").unwrap().volumes[0].name, "default");
}

#[tokio::test]
async fn a_commit_can_stand_on_a_policy() {
    let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let c = open(&store).await.unwrap().committer;
    let on = |name: &str, version| vec![Expect::StoragePolicy { name: name.into(), version }];
    c.commit(vec![], on("default", 0), |_| {}).await.unwrap();
    c.commit(vec![Edit::SetPolicy(Box::new(policy("default", 1, &["default"])))], on("default", 0), |_| {}).await.unwrap();
    for (name, version) in [("default", 0), ("other", 0)] {
        assert_eq!(c.commit(vec![], on(name, version), |_| {}).await.unwrap_err().kind(), ErrorKind::Conflict);
    }
}

#[test]
fn a_manifest_shows_no_secret() {
    let m = whole();
    assert!(!format!("{m:?}").contains("verysecret"));
    let edit = Edit::CreateDisk(Box::new(disk(1, "cold")));
    assert!(!format!("{edit:?}").contains("verysecret"));
    assert!(shown(&m).contains("verysecret"), "it is kept");
}

/// Objects as the first version of the format had them: a smaller number in the header and in the seed of the checksum, and no disks.
#[tokio::test]
async fn what_the_first_version_wrote_is_read() {
    let first = |kind: Kind, json: &serde_json::Value| {
        let body = serde_json::to_vec(json).unwrap();
        let sum = xxhash_rust::xxh3::xxh3_64_with_seed(&body, 1 << 16 | u64::from(kind as u8) << 8);
        let mut bytes = b"EBBM\x01\x00".to_vec();
        bytes.extend([kind as u8, 0]);
        bytes.extend((body.len() as u64).to_le_bytes());
        bytes.extend(sum.to_le_bytes());
        bytes.extend(body);
        bytes
    };
    let old = scenario().into_iter().take(3).fold(Manifest::empty(), |m, edits| after(&m, edits).unwrap());
    let mut image = serde_json::to_value(Image::of(&old)).unwrap();
    for field in ["disks", "next_disk", "policies"] {
        assert!(image.as_object_mut().unwrap().remove(field).is_some(), "{field}");
    }
    let commit = Commit {
        no: old.no.next(),
        epoch: Epoch(0),
        nonce: "n".into(),
        time: Timestamp(0),
        edits: vec![Edit::CreateDatabase { name: "old".into() }],
    };
    let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let put = async |path: Path, bytes: Vec<u8>| store.put(&path, bytes.into()).await.unwrap();
    put(commit_log::CommitLog::checkpoint_path(old.no), first(Kind::Checkpoint, &image)).await;
    put(commit_log::CommitLog::commit_path(commit.no), first(Kind::Commit, &serde_json::to_value(&commit).unwrap())).await;
    let opened = open(&store).await.unwrap();
    let m = opened.manifest;
    assert!(m.databases.contains("old") && m.disks.is_empty() && m.policies.is_empty());
    assert_eq!((m.next_disk, m.stream(StreamId(1)).unwrap().parts.size()), (DiskId(1), 3));
    // What is written from now on is of today.
    opened.committer.checkpoint().await.unwrap();
    assert_eq!(open(&store).await.unwrap().manifest.stream(StreamId(1)).unwrap().parts.size(), 3);
}
