//! Disks and a storage policy over doubles: `hot` (disk h), `warm` (w), `cold` (c, without merges).

use super::*;
use ebb_engine::{Existing, NewDisk};
use ebb_storage::{
    codec::Codec,
    disk::{Connect, DiskDef, DiskKind, Secret, StoragePolicy, Volume},
    rules::{Destination, DestinationKind},
};

/// What a disk of the tests has room for, unless a test says otherwise.
pub const ROOM: u64 = 1 << 30;

/// The store of a disk by its name: local ones are the machine's, remote ones the server's.
pub struct Doubles {
    machine: CrashDisk,
    server: CrashDisk,
}

impl Connect for Doubles {
    fn connect(&self, def: &DiskDef, _: bool) -> Result<Arc<dyn ObjectStore>> {
        Ok(match &def.kind {
            DiskKind::Local { .. } => self.machine.store(&def.name),
            DiskKind::S3 { .. } => self.server.store(&def.name),
        })
    }
}

/// With one power for everything.
pub async fn open_tiered(machine: &CrashDisk, now: Timestamp, background: bool) -> Result<Arc<Engine>> {
    open_beside(machine, machine, now, background).await
}

/// With a server that has a power of its own.
pub async fn open_beside(machine: &CrashDisk, server: &CrashDisk, now: Timestamp, background: bool) -> Result<Arc<Engine>> {
    let doubles = Doubles { machine: machine.clone(), server: server.clone() };
    let places = Places { connect: Arc::new(doubles), ..places(machine, machine.store("data")) };
    Engine::open_at(options(Path::new("nowhere"), Clock::simulated(now), background), places).await
}

pub fn remote(name: &str) -> NewDisk {
    let kind = DiskKind::S3 {
        endpoint: format!("http://h/{name}"),
        region: None,
        access_key_id: Some("id".into()),
        secret_access_key: Some(Secret::new("verysecret")),
        use_environment_credentials: false,
    };
    NewDisk { name: name.to_owned(), kind, capacity_bytes: None, max_usage_pct: 100 }
}

pub fn local(name: &str, capacity: u64) -> NewDisk {
    let kind = DiskKind::Local { path: format!("/ebb-test-double/{name}").into() };
    NewDisk { name: name.to_owned(), kind, capacity_bytes: Some(capacity), max_usage_pct: 100 }
}

pub fn policy(name: &str, volumes: Vec<Volume>) -> StoragePolicy {
    StoragePolicy { name: name.to_owned(), version: 0, volumes, move_factor: 0.1 }
}

/// The policy `p` over disks with so much room.
pub async fn make_tiers(e: &Engine, rooms: [u64; 3]) -> Result<()> {
    make_tiers_of(e, ["h", "w", "c"].into_iter().zip(rooms).map(|(name, room)| local(name, room)).collect()).await
}

/// The policy `p` over disks h, w and c.
pub async fn make_tiers_of(e: &Engine, disks: Vec<NewDisk>) -> Result<()> {
    for disk in disks {
        e.create_disk(disk, Existing::Keep).await?;
    }
    let volume = |name: &str, disk: &str| Volume::new(name, vec![disk.to_owned()]);
    let cold = Volume { prefer_not_to_merge: true, perform_ttl_move_on_insert: false, ..volume("cold", "c") };
    let warm = Volume { perform_ttl_move_on_insert: false, ..volume("warm", "w") };
    e.set_policy(policy("p", vec![volume("hot", "h"), warm, cold]), Existing::Keep).await
}

pub fn recompress(when: &str, codec: Codec, fingerprint: u64) -> Rule {
    Rule { when: when.to_owned(), action: Action::Recompress(codec), fingerprint: Fingerprint(fingerprint) }
}

pub fn volume(name: &str) -> Destination {
    Destination { kind: DestinationKind::Volume, name: name.to_owned(), if_exists: false }
}

pub fn disk(name: &str) -> Destination {
    Destination { kind: DestinationKind::Disk, name: name.to_owned(), if_exists: false }
}

pub fn to(when: &str, destination: Destination, fingerprint: u64) -> Rule {
    Rule { when: when.to_owned(), action: Action::Move(destination), fingerprint: Fingerprint(fingerprint) }
}

/// A stream on `p` whose timers do not wait.
pub fn tiered(name: &str, rules: Vec<Rule>) -> StreamDef {
    let mut def = def(name, rules);
    def.settings.insert("storage_policy".to_owned(), SettingValue::Text("p".to_owned()));
    let def = with(def, "merge_with_ttl_timeout", 0);
    with(def, "merge_with_recompression_ttl_timeout", 0)
}

/// Disk and codec of each part, sorted.
pub fn placed(e: &Engine, s: StreamId) -> Vec<(String, String)> {
    let manifest = e.manifest();
    let parts = manifest.stream(s).map(|s| s.parts.values().cloned().collect::<Vec<_>>()).unwrap_or_default();
    let place = |m: &Arc<ebb_storage::part::PartMeta>| {
        (manifest.disk_name(m.placement.disk).unwrap_or("?").to_owned(), m.placement.codec.to_string())
    };
    let mut all: Vec<_> = parts.iter().map(place).collect();
    all.sort();
    all
}

/// Part files on each disk of the machine.
pub async fn stored(machine: &CrashDisk, name: &str) -> usize {
    use futures::TryStreamExt;
    let all: Vec<_> = machine.store(name).list(None).try_collect().await.unwrap();
    all.iter().filter(|o| o.location.as_ref().ends_with(".parquet")).count()
}

/// Day `n` of the test's calendar.
pub fn day(n: i64) -> i64 {
    START.0 + n * DAY
}

pub fn advance(e: &Engine, days: i32) {
    let by = ebb_storage::interval::Interval::days(days);
    e.advance_clock(by).unwrap();
}
