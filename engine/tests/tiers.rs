//! Several disks: made, used, away and back, dropped; and what new rows do about it. Over doubles in memory.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod support;

use ebb_engine::{Engine, ErrorKind, Existing, NewDisk, Places, Result};
use ebb_storage::{
    Clock,
    disk::{Connect, DiskDef, DiskKind, LoadBalancing, StoragePolicy, Volume},
    ids::{DiskId, StreamId},
    manifest::{Manifest, invariants::violations},
    rules::{Action, Destination, DestinationKind, Rule},
    stream_def::{SettingValue, StreamDef},
    testkit::{Fault, FaultStore, Op, crash_store::CrashDisk},
};
use futures::TryStreamExt;
use object_store::{ObjectStore, ObjectStoreExt, path::Path as Key};
use parking_lot::Mutex;
use std::{collections::BTreeMap, path::Path, sync::Arc};
use support::{
    power::{Loss, cut_everywhere, steps},
    tiered::remote,
    *,
};

/// A machine whose disks can be away.
#[derive(Clone, Default)]
struct Lab {
    machine: CrashDisk,
    faults: Arc<Mutex<BTreeMap<String, FaultStore>>>,
}

impl Connect for Lab {
    fn connect(&self, def: &DiskDef, _: bool) -> Result<Arc<dyn ObjectStore>> {
        Ok(Arc::new(self.fault(&def.name)))
    }
}

impl Lab {
    fn fault(&self, name: &str) -> FaultStore {
        self.faults.lock().entry(name.to_owned()).or_insert_with(|| FaultStore::over(self.machine.store(name))).clone()
    }

    async fn open(&self) -> Result<Arc<Engine>> {
        let connect = Arc::new(self.clone());
        let places = Places { connect, ..places(&self.machine, Arc::new(self.fault("data"))) };
        Engine::open_at(options(Path::new("nowhere"), Clock::simulated(START), false), places).await
    }

    /// Nothing answers.
    fn unplug(&self, name: &str) {
        for op in [Op::Put, Op::Complete, Op::Get, Op::Delete, Op::List, Op::Copy] {
            self.fault(name).inject(op, "", 0, u64::MAX, Fault::Fail);
        }
    }

    fn plug_in(&self, name: &str) {
        self.fault(name).clear();
    }

    async fn listed(&self, name: &str) -> Vec<String> {
        let all: Vec<_> = self.machine.store(name).list(None).try_collect().await.unwrap();
        all.into_iter().map(|o| o.location.to_string()).collect()
    }

    async fn files(&self, name: &str) -> usize {
        self.listed(name).await.iter().filter(|k| k.ends_with(".parquet")).count()
    }
}

fn local(name: &str, capacity: Option<u64>) -> NewDisk {
    let kind = DiskKind::Local { path: format!("/ebb-test-tiers/{name}").into() };
    NewDisk { name: name.to_owned(), kind, capacity_bytes: capacity, max_usage_pct: 100 }
}

/// A volume for each of these, named as its first disk.
fn policy(name: &str, volumes: &[&[&str]]) -> StoragePolicy {
    let volume = |disks: &&[&str]| Volume::new(disks[0], disks.iter().map(|d| (*d).to_owned()).collect());
    StoragePolicy { name: name.into(), version: 0, volumes: volumes.iter().map(volume).collect(), move_factor: 0.0 }
}

fn to_volume(when: &str, name: &str) -> Rule {
    let to = Destination { kind: DestinationKind::Volume, name: name.into(), if_exists: false };
    Rule { when: when.into(), action: Action::Move(to), fingerprint: ebb_storage::ids::Fingerprint(7) }
}

fn on_policy(policy: &str, rules: Vec<Rule>) -> StreamDef {
    let mut def = def("s", rules);
    def.settings.insert("storage_policy".into(), SettingValue::Text(policy.into()));
    def
}

/// Rows of one partition that are not due, and that are.
fn fresh(v: i64) -> Vec<arrow::array::RecordBatch> {
    vec![rows(&[("a", START.0 + v, v)])]
}

fn old(v: i64) -> Vec<arrow::array::RecordBatch> {
    vec![rows(&[("a", START.0 - 40 * DAY + v, v)])]
}

async fn staged(e: &Engine, s: StreamId, of: Vec<arrow::array::RecordBatch>) -> Result<()> {
    let mut insert = e.stage(s, v1()).await?;
    for batch in of {
        insert.push(batch).await?;
    }
    insert.finish().await.map(|_| ())
}

/// How many parts lie on each disk.
fn lying(m: &Manifest) -> BTreeMap<String, usize> {
    let mut on = BTreeMap::new();
    for part in m.user_streams().flat_map(|s| s.parts.values()) {
        *on.entry(m.disk_name(part.placement.disk).unwrap().to_owned()).or_default() += 1;
    }
    on
}

fn counts(of: &[(&str, usize)]) -> BTreeMap<String, usize> {
    of.iter().map(|(d, n)| ((*d).to_owned(), *n)).collect()
}

#[tokio::test]
async fn disks_and_policies_that_are_needed_stay() {
    let lab = Lab::default();
    let e = lab.open().await.unwrap();
    e.create_disk(remote("cold"), Existing::Refuse).await.unwrap();
    assert_eq!(e.create_disk(remote("cold"), Existing::Refuse).await.unwrap_err().kind(), ErrorKind::Conflict);
    e.create_disk(remote("cold"), Existing::Keep).await.unwrap();
    assert_eq!(e.create_disk(remote("default"), Existing::Replace).await.unwrap_err().kind(), ErrorKind::Conflict);
    let same_place = NewDisk { name: "twin".into(), ..remote("cold") };
    assert_eq!(e.create_disk(same_place, Existing::Refuse).await.unwrap_err().kind(), ErrorKind::Conflict);
    let within = NewDisk { name: "in".into(), kind: DiskKind::Local { path: "/ebb-test-tiers/warm/in".into() }, ..local("in", None) };
    e.create_disk(local("warm", None), Existing::Refuse).await.unwrap();
    assert_eq!(e.create_disk(within, Existing::Refuse).await.unwrap_err().kind(), ErrorKind::Conflict);

    let unknown = e.set_policy(policy("p", &[&["default"], &["colt"]]), Existing::Refuse).await.unwrap_err();
    assert!(unknown.kind() == ErrorKind::NotFound && unknown.message().contains("did you mean 'cold'"), "{unknown}");
    let twice = e.set_policy(policy("p", &[&["default"], &["cold", "default"]]), Existing::Refuse).await.unwrap_err();
    assert!(twice.message().contains("a disk is in one volume only"), "{twice}");
    e.set_policy(policy("p", &[&["default"], &["cold"]]), Existing::Refuse).await.unwrap();
    let s = e.create_stream(on_policy("p", vec![to_volume("ts + 10 days", "cold")]), false).await.unwrap();
    let refused = e.create_stream(StreamDef { name: "t".into(), ..on_policy("q", vec![]) }, false).await.unwrap_err();
    assert!(refused.kind() == ErrorKind::NotFound && refused.message().contains("storage policy 'q'"), "{refused}");
    let rule = StreamDef { name: "t".into(), ..on_policy("p", vec![to_volume("ts", "coldd")]) };
    let refused = e.create_stream(rule, false).await.unwrap_err();
    assert!(refused.message().contains("no volume 'coldd'; did you mean 'cold'"), "{refused}");

    staged(&e, s, old(1)).await.unwrap();
    let in_use = [
        e.drop_disk("cold", false).await.unwrap_err(),
        e.drop_policy("p", false).await.unwrap_err(),
        e.set_policy(policy("p", &[&["default"], &["warm"]]), Existing::Replace).await.unwrap_err(),
        e.set_policy(policy("p", &[&["default"], &["warm", "cold"]]), Existing::Replace).await.unwrap_err(),
        e.alter_stream(s, |d| Ok(StreamDef { settings: BTreeMap::new(), ..d.clone() })).await.unwrap_err(),
    ];
    for (refused, names) in in_use.iter().zip(["'p'", "default.s", "volume 'cold'", "volume 'cold'", "no volume 'cold'"]) {
        assert!(refused.message().contains(names), "{refused}");
    }
    // More is fine, and other names for what is empty.
    e.set_policy(policy("p", &[&["warm"], &["cold"]]), Existing::Replace).await.unwrap();
    assert_eq!(e.policy("p").unwrap().version, 2);
    assert_eq!(values(&e, s).await, [1]);
    e.drop_stream(s).await.unwrap();
    e.drop_policy("p", false).await.unwrap();
    e.drop_policy("p", true).await.unwrap();
    // The stream's objects are still there: dropping the disk deletes them first.
    assert_eq!(lab.files("cold").await, 1);
    e.drop_disk("cold", false).await.unwrap();
    assert_eq!(lab.files("cold").await, 0);
    assert_eq!(e.drop_disk("cold", false).await.unwrap_err().kind(), ErrorKind::NotFound);
    // Its place can be used again.
    e.create_disk(NewDisk { name: "cold2".into(), ..remote("cold") }, Existing::Refuse).await.unwrap();
    assert_eq!(violations(&e.manifest()), Vec::<String>::new());
}

/// proves T33: and under the reader's eyes nothing is lost or seen twice.
#[tokio::test]
async fn rows_that_are_due_are_written_where_their_rule_says() {
    let lab = Lab::default();
    let e = lab.open().await.unwrap();
    e.create_disk(remote("cold"), Existing::Refuse).await.unwrap();
    e.set_policy(policy("p", &[&["default"], &["cold"]]), Existing::Refuse).await.unwrap();
    let s = e.create_stream(on_policy("p", vec![to_volume("ts + 10 days", "cold")]), false).await.unwrap();
    staged(&e, s, old(1)).await.unwrap();
    staged(&e, s, fresh(2)).await.unwrap();
    e.insert(s, old(3), v1()).await.unwrap();
    e.flush(None).await.unwrap();
    e.insert(s, [old(4), fresh(5)].concat(), v1()).await.unwrap();
    e.flush(None).await.unwrap();
    // The last insert fell into two partitions: each goes its own way.
    assert_eq!(lying(&e.manifest()), counts(&[("cold", 3), ("default", 2)]));
    assert_eq!(values(&e, s).await, [1, 2, 3, 4, 5]);
    drop(e);
    let e = lab.open().await.unwrap();
    assert_eq!(values(&e, s).await, [1, 2, 3, 4, 5]);
    // Both openings left their number, and the later one forgot the earlier.
    let numbers: Vec<String> = lab.listed("cold").await.into_iter().filter(|k| k.contains("/epoch/")).collect();
    assert_eq!(numbers, ["d/epoch/0000000002"]);
}

/// proves T34
#[tokio::test]
async fn a_volume_that_wants_no_new_rows_gets_them_later() {
    let lab = Lab::default();
    let e = lab.open().await.unwrap();
    e.create_disk(remote("cold"), Existing::Refuse).await.unwrap();
    let mut p = policy("p", &[&["default"], &["cold"]]);
    p.volumes[1].perform_ttl_move_on_insert = false;
    e.set_policy(p, Existing::Refuse).await.unwrap();
    let s = e.create_stream(on_policy("p", vec![to_volume("ts + 10 days", "cold")]), false).await.unwrap();
    staged(&e, s, old(1)).await.unwrap();
    e.flush(None).await.unwrap();
    assert_eq!(lying(&e.manifest()), counts(&[("default", 1)]));
}

/// proves F10: what a full or broken volume does not take goes to the next, and no insert fails while one has room.
#[tokio::test]
async fn an_insert_goes_to_the_next_volume() {
    let lab = Lab::default();
    let e = lab.open().await.unwrap();
    e.create_disk(local("small", Some(20_000)), Existing::Refuse).await.unwrap();
    e.create_disk(local("large", Some(10_000_000)), Existing::Refuse).await.unwrap();
    e.set_policy(policy("p", &[&["small"], &["large"]]), Existing::Refuse).await.unwrap();
    let s = e.create_stream(on_policy("p", vec![]), false).await.unwrap();
    for v in 0..20 {
        staged(&e, s, fresh(v)).await.unwrap();
    }
    e.flush(None).await.unwrap();
    let on = lying(&e.manifest());
    assert!(on["small"] >= 2 && on["large"] >= 2, "{on:?}");
    let (small, large) = (lab.files("small").await, lab.files("large").await);
    assert_eq!(small + large, 20);
    // Placed bytes are counted: what is free is the capacity less what lies there.
    let placed = |e: &Engine, name: &str| {
        let m = e.manifest();
        let on = m.user_streams().flat_map(|s| s.parts.values()).filter(|p| m.disk_name(p.placement.disk) == Some(name));
        on.map(|p| p.placement.bytes).sum::<u64>()
    };
    let free = |e: &Engine, name: &str| e.disks().into_iter().find(|d| d.name == name).unwrap().free.unwrap();
    assert_eq!(free(&e, "small"), 20_000 - placed(&e, "small"));
    drop(e);
    let e = lab.open().await.unwrap();
    assert_eq!(free(&e, "large"), 10_000_000 - placed(&e, "large"));

    // One that fails while it is written to: the file may be there or not, the rows are.
    for (i, fault) in [Fault::DiskFull, Fault::Fail, Fault::AppliedNotAcknowledged].into_iter().enumerate() {
        lab.fault("large").inject(Op::Put, "/parts/", 0, 1, fault);
        let v = 100 + i as i64;
        let wide: Vec<(&str, i64, i64)> = (0..2000).map(|n| ("a", START.0 + n, v)).collect();
        let refused = staged(&e, s, vec![rows(&wide)]).await;
        assert!(refused.is_err(), "{fault:?}: no other volume takes it");
        e.insert(s, vec![rows(&wide)], v1()).await.unwrap();
        e.flush(None).await.unwrap();
        assert_eq!(values(&e, s).await.iter().filter(|x| **x == v).count(), 2000, "{fault:?}");
    }
    e.truncate(s).await.unwrap();
    forget_the_past(&e, s).await;
    e.settle(None).await.unwrap();
    assert_eq!((lab.files("small").await, lab.files("large").await), (0, 0), "F10: what is not named is deleted");
    assert_eq!((free(&e, "small"), free(&e, "large")), (20_000, 10_000_000));
    // The first volume takes rows again.
    staged(&e, s, fresh(7)).await.unwrap();
    lab.fault("small").inject(Op::Put, "/parts/", 0, 1, Fault::Fail);
    staged(&e, s, fresh(8)).await.unwrap();
    e.insert(s, fresh(9), v1()).await.unwrap();
    lab.fault("small").inject(Op::Put, "/parts/", 0, 1, Fault::DiskFull);
    e.flush(None).await.unwrap();
    assert_eq!(lying(&e.manifest()), counts(&[("small", 1), ("large", 2)]));
}

#[tokio::test]
async fn disks_of_a_volume_take_turns_or_the_emptiest_is_taken() {
    let lab = Lab::default();
    let e = lab.open().await.unwrap();
    for (name, capacity) in [("a", 10_000_000), ("b", 20_000_000), ("c", 10_000_000)] {
        e.create_disk(local(name, Some(capacity)), Existing::Refuse).await.unwrap();
    }
    e.set_policy(policy("p", &[&["a", "b", "c"]]), Existing::Refuse).await.unwrap();
    let s = e.create_stream(on_policy("p", vec![]), false).await.unwrap();
    for v in 0..9 {
        staged(&e, s, fresh(v)).await.unwrap();
    }
    e.flush(None).await.unwrap();
    assert_eq!(lying(&e.manifest()), counts(&[("a", 3), ("b", 3), ("c", 3)]));
    let mut least = policy("p", &[&["a", "b", "c"]]);
    least.volumes[0].load_balancing = LoadBalancing::LeastUsed;
    e.set_policy(least, Existing::Replace).await.unwrap();
    for v in 0..3 {
        staged(&e, s, fresh(v)).await.unwrap();
    }
    e.flush(None).await.unwrap();
    assert_eq!(lying(&e.manifest()), counts(&[("a", 3), ("b", 6), ("c", 3)]));
}

/// A disk that is away keeps nothing else from working, is named, and comes back by itself.
#[tokio::test]
async fn a_disk_goes_away_and_comes_back() {
    for kind in ["local", "remote"] {
        let new = |name: &str| if kind == "local" { local(name, Some(1 << 30)) } else { remote(name) };
        let lab = Lab::default();
        let e = lab.open().await.unwrap();
        e.create_disk(new("cold"), Existing::Refuse).await.unwrap();
        e.set_policy(policy("p", &[&["default"], &["cold"]]), Existing::Refuse).await.unwrap();
        let s = e.create_stream(on_policy("p", vec![to_volume("ts + 10 days", "cold")]), false).await.unwrap();
        staged(&e, s, old(1)).await.unwrap();
        staged(&e, s, fresh(2)).await.unwrap();
        e.flush(None).await.unwrap();
        assert_eq!(lying(&e.manifest()), counts(&[("cold", 1), ("default", 1)]));

        lab.unplug("cold");
        let on = |e: &Engine, disk: &str| {
            let view = e.read().stream(s).unwrap();
            view.parts.into_iter().find(|p| &*p.disk == disk).unwrap()
        };
        let told = |e: &Engine| {
            let part = on(e, "cold");
            async move { ebb_engine::Error::from(part.store.get(&part.key).await.unwrap_err()) }
        };
        let error = told(&e).await;
        assert!(error.kind() == ErrorKind::Unavailable && error.message().contains("disk 'cold'"), "{kind}: {error}");
        let info = e.disks().into_iter().find(|d| d.name == "cold").unwrap();
        assert!(info.unavailable.unwrap().contains("disk 'cold'"));
        // Rows that are due for it stay where there is room.
        staged(&e, s, old(3)).await.unwrap();
        e.insert(s, old(4), v1()).await.unwrap();
        e.flush(None).await.unwrap();
        assert_eq!(lying(&e.manifest()), counts(&[("cold", 1), ("default", 3)]), "{kind}");
        let part = on(&e, "default");
        part.store.get(&part.key).await.unwrap();
        // Nothing of it can be dropped, or put in a policy.
        assert!(e.set_policy(policy("q", &[&["cold"]]), Existing::Refuse).await.is_err());
        let s2 = e.create_stream(StreamDef { name: "other".into(), ..on_policy("p", vec![]) }, false).await.unwrap();
        staged(&e, s2, fresh(9)).await.unwrap();
        drop(e);

        // The database opens without it.
        let e = lab.open().await.unwrap();
        assert_eq!(values(&e, s2).await, [9]);
        assert_eq!(told(&e).await.kind(), ErrorKind::Unavailable);
        e.truncate(s2).await.unwrap();
        e.settle(None).await.unwrap();
        // An object that a crash left there waits for its sweep.
        let orphan = Key::from("d/parts/1/00000000004294967999.1.parquet");
        lab.machine.store("cold").put(&orphan, "x".into()).await.unwrap();
        lab.plug_in("cold");
        e.settle(None).await.unwrap();
        assert_eq!(values(&e, s).await, [1, 2, 3, 4], "{kind}");
        assert!(e.disks().iter().all(|d| d.unavailable.is_none()));
        assert!(!lab.listed("cold").await.contains(&orphan.to_string()), "{kind}: swept");
        staged(&e, s, old(5)).await.unwrap();
        e.flush(None).await.unwrap();
        assert!(lying(&e.manifest())["cold"] >= 2, "{kind}");
        assert_eq!(violations(&e.manifest()), Vec::<String>::new());
    }
}

/// A path that is not mounted looks like an empty folder: nothing is written or deleted there.
#[tokio::test]
async fn a_place_without_its_marker_is_left_alone() {
    let lab = Lab::default();
    let e = lab.open().await.unwrap();
    e.create_disk(local("cold", Some(1 << 30)), Existing::Refuse).await.unwrap();
    e.set_policy(policy("p", &[&["cold"], &["default"]]), Existing::Refuse).await.unwrap();
    let s = e.create_stream(on_policy("p", vec![]), false).await.unwrap();
    staged(&e, s, fresh(1)).await.unwrap();
    let cold = lab.machine.store("cold");
    let marker = Key::from("EBB-DISK");
    let ours = cold.get(&marker).await.unwrap().bytes().await.unwrap();
    cold.delete(&marker).await.unwrap();
    let before = lab.listed("cold").await;
    // Found out by the write itself.
    staged(&e, s, fresh(2)).await.unwrap();
    e.flush(None).await.unwrap();
    assert_eq!(lying(&e.manifest()), counts(&[("cold", 1), ("default", 1)]));
    e.truncate(s).await.unwrap();
    forget_the_past(&e, s).await;
    e.settle(None).await.unwrap();
    assert_eq!(lab.listed("cold").await, before);
    drop(e);
    let e = lab.open().await.unwrap();
    let why = e.disks().into_iter().find_map(|d| d.unavailable).unwrap();
    assert!(why.contains("no marker EBB-DISK") && why.contains("disk 'cold'"), "{why}");
    e.settle(None).await.unwrap();
    assert_eq!(lab.listed("cold").await, before);
    // Another's marker is no better.
    cold.put(&marker, r#"{"version":1,"disk":5,"database":"other"}"#.into()).await.unwrap();
    e.settle(None).await.unwrap();
    assert!(e.disks().into_iter().find_map(|d| d.unavailable).unwrap().contains("database other"));
    assert_eq!(lab.files("cold").await, 1);
    cold.put(&marker, ours.into()).await.unwrap();
    e.settle(None).await.unwrap();
    assert_eq!(lab.files("cold").await, 0, "what was removed meanwhile goes now");
}

/// proves I7: a copy of the data directory that is opened later ends the first one's writing on the disk that they share.
#[tokio::test]
async fn two_copies_do_not_both_write_to_a_bucket() {
    let lab = Lab::default();
    let e = lab.open().await.unwrap();
    e.create_disk(remote("cold"), Existing::Refuse).await.unwrap();
    e.set_policy(policy("p", &[&["cold"], &["default"]]), Existing::Refuse).await.unwrap();
    let s = e.create_stream(on_policy("p", vec![]), false).await.unwrap();
    staged(&e, s, fresh(1)).await.unwrap();
    // The copy has a number of its own epoch or a later one.
    lab.machine.store("cold").put(&Key::from("d/epoch/0000000009"), "other".into()).await.unwrap();
    e.check_disks().await;
    let why = e.disks().into_iter().find_map(|d| d.unavailable).unwrap();
    assert!(why.contains("epoch 9") && why.contains("disk 'cold'"), "{why}");
    staged(&e, s, fresh(2)).await.unwrap();
    e.truncate(s).await.unwrap();
    e.settle(None).await.unwrap();
    assert_eq!(lab.files("cold").await, 1, "neither written nor deleted");
}

#[tokio::test]
async fn a_disk_can_have_other_options() {
    let lab = Lab::default();
    let e = lab.open().await.unwrap();
    e.create_disk(local("cold", Some(1000)), Existing::Refuse).await.unwrap();
    e.set_policy(policy("p", &[&["cold"], &["default"]]), Existing::Refuse).await.unwrap();
    let s = e.create_stream(on_policy("p", vec![]), false).await.unwrap();
    staged(&e, s, fresh(1)).await.unwrap();
    e.create_disk(local("cold", Some(1_000_000)), Existing::Replace).await.unwrap();
    staged(&e, s, fresh(2)).await.unwrap();
    e.flush(None).await.unwrap();
    assert_eq!(lying(&e.manifest()), counts(&[("cold", 1), ("default", 1)]));
    assert_eq!(e.manifest().disk_id("cold"), Some(DiskId(1)));
    drop(e);
    let e = lab.open().await.unwrap();
    let info = e.disks().into_iter().find(|d| d.name == "cold").unwrap();
    assert_eq!(info.total, Some(1_000_000));
    assert!(!format!("{:?}", e.disks()).contains("verysecret"));
}

const STEPS: usize = 12;

async fn step(e: &Engine, n: usize) -> Result<()> {
    let id = || e.read().stream_named("default", "s").map(|s| s.def.id).unwrap_or_default();
    match n {
        0 => e.create_disk(remote("cold"), Existing::Refuse).await?,
        1 => e.set_policy(policy("p", &[&["default"], &["cold"]]), Existing::Refuse).await?,
        2 => _ = e.create_stream(on_policy("p", vec![to_volume("ts + 10 days", "cold")]), false).await?,
        3 => staged(e, id(), vec![rows(&[("a", START.0 - 40 * DAY, 1), ("b", START.0 - 40 * DAY, 2)])]).await?,
        4 => {
            e.insert(id(), fresh(3), v1()).await?;
            e.flush(None).await?;
        }
        5 => {
            e.insert(id(), old(4), v1()).await?;
            e.flush(None).await?;
        }
        6 => {
            let mut p = policy("p", &[&["default"], &["cold"]]);
            p.volumes[1].prefer_not_to_merge = true;
            e.set_policy(p, Existing::Replace).await?;
        }
        7 => e.create_disk(NewDisk { max_usage_pct: 90, ..remote("cold") }, Existing::Replace).await?,
        8 => _ = e.truncate(id()).await?,
        9 => e.drop_stream(id()).await?,
        10 => e.drop_policy("p", false).await?,
        _ => e.drop_disk("cold", false).await?,
    }
    Ok(())
}

/// Whether the disk and the policy are there, and the stream's rows, where there is one.
fn state(done: usize) -> (bool, bool, Option<Vec<i64>>) {
    let rows = match done {
        0..=2 | 10.. => None,
        3 | 9 => Some(vec![]),
        4 => Some(vec![1, 2]),
        5 => Some(vec![1, 2, 3]),
        _ => Some(vec![1, 2, 3, 4]),
    };
    ((1..12).contains(&done), (2..11).contains(&done), rows)
}

/// proves F9, F10, F12: whatever statement power cuts short, what was acknowledged is there, the rest whole or not at all, and what lies
/// on the disks is what the manifest names.
#[tokio::test]
async fn power_goes_at_every_call_while_disks_and_policies_change() {
    let on = |machine: &CrashDisk| Lab { machine: machine.clone(), ..Lab::default() };
    let scenario = async |machine: &CrashDisk| match on(machine).open().await {
        Ok(e) => steps(STEPS, async |n| step(&e, n).await).await,
        Err(_) => 0,
    };
    let open = async |machine: &CrashDisk, _: &usize| on(machine).open().await;
    let look = async |machine: &CrashDisk, e: Arc<Engine>, done: usize, at: Loss| {
        assert_eq!(violations(&e.manifest()), Vec::<String>::new(), "{at}");
        let m = e.manifest();
        let rows = match e.read().stream_named("default", "s").map(|s| s.def.id) {
            Some(s) => Some(values(&e, s).await),
            None => None,
        };
        let found = (m.disk_id("cold").is_some(), m.policy("p").is_some(), rows);
        // A step of two statements may be half done.
        let half = (done == 4 || done == 5).then(|| state(done + 1));
        let allowed = [Some(state(done)), Some(state((done + 1).min(STEPS))), half];
        assert!(allowed.contains(&Some(found.clone())), "{at}: after {done} steps there is {found:?}");
        // The rest can be done from there.
        e.settle(None).await.unwrap();
        if let Some(s) = e.read().stream_named("default", "s") {
            e.drop_stream(s.def.id).await.unwrap();
        }
        e.drop_policy("p", true).await.unwrap();
        e.create_disk(remote("cold"), Existing::Keep).await.unwrap_or_else(|e| panic!("{at}: {e}"));
        e.drop_disk("cold", true).await.unwrap();
        e.settle(None).await.unwrap();
        let last = on(machine);
        let left: Vec<String> = last.listed("cold").await.into_iter().filter(|k| !k.contains("epoch") && k != "EBB-DISK").collect();
        assert!(left.is_empty(), "{at}: {left:?}");
        let named: usize = e.manifest().streams().map(|s| s.parts.size()).sum();
        assert_eq!(last.files("data").await, named, "{at}");
    };
    assert_eq!(cut_everywhere(scenario, open, look).await, STEPS);
}

/// A disk on which nothing lies and that no policy names can be dropped without being there.
#[tokio::test]
async fn a_disk_that_nobody_needs_can_go_while_it_is_away() {
    let lab = Lab::default();
    let e = lab.open().await.unwrap();
    e.create_disk(remote("cold"), Existing::Refuse).await.unwrap();
    lab.unplug("cold");
    e.check_disks().await;
    assert!(e.disks().iter().any(|d| d.unavailable.is_some()));
    e.drop_disk("cold", false).await.unwrap();
    assert_eq!(e.disks().len(), 1);
}

/// A disk keeps its bytes, not its address: it can be found elsewhere, with all that lies on it.
#[tokio::test]
async fn a_disk_moves_house_with_its_parts() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let e = open(&at("data")).await;
    let cold = |path: &str| NewDisk { kind: DiskKind::Local { path: at(path) }, ..local("cold", None) };
    e.create_disk(cold("a"), Existing::Refuse).await.unwrap();
    e.set_policy(policy("p", &[&["cold"]]), Existing::Refuse).await.unwrap();
    let s = e.create_stream(on_policy("p", vec![]), false).await.unwrap();
    staged(&e, s, fresh(1)).await.unwrap();
    let refused = e.create_disk(cold("b"), Existing::Replace).await.unwrap_err();
    assert!(refused.message().contains("lies on disk 'cold', and it must be found at the new place"), "{refused}");
    assert!(!at("b").join("EBB-DISK").exists());
    assert_eq!(values(&e, s).await, [1]);
    std::fs::remove_dir_all(at("b")).unwrap();
    std::fs::rename(at("a"), at("b")).unwrap();
    let part = e.read().stream(s).unwrap().parts.remove(0);
    let away = ebb_engine::Error::from(part.store.get(&part.key).await.unwrap_err());
    assert!(away.kind() == ErrorKind::Unavailable && away.message().contains("disk 'cold'"), "{away}");
    e.create_disk(cold("b"), Existing::Replace).await.unwrap();
    assert_eq!(values(&e, s).await, [1]);
    // Within the data directory, or around it, there is no place.
    for path in [at("data").join("x"), dir.path().to_owned()] {
        let new = NewDisk { kind: DiskKind::Local { path }, ..local("in", None) };
        assert_eq!(e.create_disk(new, Existing::Refuse).await.unwrap_err().kind(), ErrorKind::Conflict);
    }
    e.close().await.unwrap();
    drop((e, part));
    let report = ebb_engine::inspect::check(&at("data")).await.unwrap();
    assert!(report.is_clean() && report.parts_verified >= 1 && report.parts == report.parts_verified, "{report:?}");
    std::fs::remove_file(at("b").join("EBB-DISK")).unwrap();
    let report = ebb_engine::inspect::check(&at("data")).await.unwrap();
    assert!(report.damage.iter().any(|d| d.contains("the 1 parts on it could not be looked at")), "{report:?}");
}
