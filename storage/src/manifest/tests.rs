mod disks;
mod refs;

use super::{
    codec::{self, Kind},
    commit_log::CommitLog,
    committer::{CHECKPOINT_EVERY, Opened},
    invariants::violations,
    *,
};
use crate::{
    Clock, ErrorKind, Timestamp,
    ids::*,
    lineage::Visibility,
    lineage::{Lineage, SnRange, SnSet},
    manifest::{
        edit::{RecordInfo, RemoveReason, Timer},
        image::Image,
        inspect::inspect,
    },
    part::{PartMeta, meta::Placement},
    stream_def::StreamDef,
    testkit::{CrashDisk, Cut, Unsynced, defs},
    testkit::{Fault, FaultStore, Op},
    verb::Verb,
};
use object_store::{ObjectStore, ObjectStoreExt, memory::InMemory, path::Path};
use proptest::prelude::*;
use std::sync::Arc;

fn clock() -> Clock {
    Clock::simulated(Timestamp::from_secs(1_000_000))
}

async fn open(store: &Arc<dyn ObjectStore>) -> crate::Result<Opened> {
    Committer::open(store.clone(), clock(), Arc::new(|| false)).await
}

fn def(id: u64, name: &str) -> StreamDef {
    StreamDef { id: StreamId(id), ..defs::stream(name, vec![]) }
}

fn part(stream: u64, id: u64, sn: u64) -> PartMeta {
    PartMeta { stream: StreamId(stream), partition: format!("{}", id % 3).into(), ..defs::part(PartId(id), sn, 5) }
}

fn record(sn: u64, verb: Verb) -> RecordInfo {
    RecordInfo {
        sn: Sn(sn),
        count: 1,
        parent: Sn(sn - 1),
        branch: BranchId::MAIN,
        time: Timestamp(sn as i64),
        verb,
        rows_added: 1,
        rows_deleted: 0,
        schema_version: SchemaVersion(1),
        key: None,
        runs: None,
        since: None,
    }
}

fn applied(stream: u64, sn: u64) -> Edit {
    Edit::Apply { stream: StreamId(stream), sn: Sn(sn), records: vec![record(sn, Verb::Insert)] }
}

/// What a manifest is, for comparing.
fn shown(m: &Manifest) -> String {
    String::from_utf8(serde_json::to_vec(&Image::of(m)).unwrap()).unwrap()
}

/// A run of commits, one of each kind of change; what each leaves is checked.
fn scenario() -> Vec<Vec<Edit>> {
    let s = StreamId(1);
    vec![
        vec![Edit::CreateStream(Box::new(def(1, "a")))],
        vec![applied(1, 1), Edit::AddPart(Box::new(part(1, 10, 1)))],
        vec![applied(1, 2), Edit::AddPart(Box::new(part(1, 11, 2))), Edit::AddPart(Box::new(part(1, 13, 2)))],
        vec![Edit::TimerArmed { stream: s, partition: "1".into(), timer: Timer::Prune, at: Timestamp(7) }],
        vec![Edit::RemovePart { stream: s, part: PartId(10), why: RemoveReason::Replaced }, Edit::AddPart(Box::new(part(1, 16, 2)))],
        vec![Edit::Vacuumed { parts: vec![(s, PartId(10), Generation(1))] }],
        vec![Edit::AlterStream(Box::new(StreamDef { name: "b".into(), policy_version: 2, ..def(1, "a") }))],
        vec![Edit::CreateDatabase { name: "x".into() }],
        vec![Edit::CreateDisk(Box::new(disks::disk(1, "cold")))],
        vec![Edit::SetPolicy(Box::new(disks::policy("tiers", 1, &["default", "cold"])))],
        vec![Edit::Place { stream: s, part: PartId(11), placement: disks::placement(1, 2) }],
        vec![Edit::SetRef { stream: s, r: Box::new(refs::tag("t", 2)), lineage: None }],
        vec![Edit::SetRef { stream: s, r: Box::new(refs::branch("dev", 1, 2)), lineage: Some(refs::fork(1, 2)) }],
        vec![applied(1, 3), Edit::SetReader(Box::new(refs::reader("r", 1, 2)))],
        vec![Edit::Forget { stream: s, sns: vec![SnRange { after: Sn(0), to: Sn(1) }] }],
        vec![Edit::DropRef { stream: s, name: "t".into() }],
    ]
}

#[tokio::test]
async fn commits_are_found_again_with_and_without_a_checkpoint() {
    for checkpoint in [false, true] {
        let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
        let first = open(&store).await.unwrap();
        for edits in scenario() {
            let m = first.committer.commit(edits, vec![], |_| {}).await.unwrap();
            assert_eq!(violations(&m), Vec::<String>::new());
        }
        if checkpoint {
            first.committer.checkpoint().await.unwrap();
        }
        let before = first.committer.current();
        let after = open(&store).await.unwrap().manifest;
        assert_eq!(after.epoch, before.epoch.next());
        let renumbered = Manifest { no: before.no, epoch: before.epoch, time: before.time, ..after.as_ref().clone() };
        assert_eq!(shown(&renumbered), shown(&before));
        let state = after.stream_named("default", "b").unwrap();
        assert!(after.stream_named("default", "a").is_none());
        assert_eq!((state.parts.size(), state.applied_sn), (3, Sn(3)));
        assert_eq!(state.partitions.get("1").unwrap().timers.get(&Timer::Prune), Some(&Timestamp(7)));
    }
}

/// Commits go only once a checkpoint that stands for them can be read.
#[tokio::test]
async fn a_damaged_checkpoint_takes_the_place_of_no_commit() {
    let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let c = open(&store).await.unwrap().committer;
    c.commit(vec![Edit::CreateDatabase { name: "x".into() }], vec![], |_| {}).await.unwrap();
    c.checkpoint().await.unwrap();
    let path = CommitLog::checkpoint_path(CommitNo(2));
    let sound = store.get(&path).await.unwrap().bytes().await.unwrap();
    let mut damaged = sound.to_vec();
    damaged[30] ^= 1;
    store.put(&path, damaged.into()).await.unwrap();
    c.commit(vec![Edit::CreateDatabase { name: "y".into() }], vec![], |_| {}).await.unwrap();
    let said = c.checkpoint().await.unwrap_err();
    assert!(said.kind() == ErrorKind::Corrupt && said.message().contains(path.as_ref()), "{said}");
    store.get(&CommitLog::commit_path(CommitNo(1))).await.unwrap();
    store.put(&path, sound.into()).await.unwrap();
    c.checkpoint().await.unwrap();
    assert!(store.get(&CommitLog::commit_path(CommitNo(1))).await.is_err());
    assert!(open(&store).await.unwrap().manifest.databases.contains("y"));
}

/// The boundary says that there was more than what is left.
#[tokio::test]
async fn a_manifest_whose_end_is_gone_is_refused() {
    let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let c = open(&store).await.unwrap().committer;
    for sn in 1..=3 {
        c.commit(
            if sn == 1 { vec![Edit::CreateStream(Box::new(def(1, "a"))), applied(1, 1)] } else { vec![applied(1, sn)] },
            vec![],
            |_| {},
        )
        .await
        .unwrap();
        c.checkpoint().await.unwrap();
    }
    assert!(open(&store).await.is_ok());
    let all: Vec<_> = futures::TryStreamExt::try_collect(store.list(None)).await.unwrap();
    for gone in ["commits", "checkpoints"] {
        for object in all.iter().filter(|o: &&object_store::ObjectMeta| o.location.as_ref().starts_with(gone)) {
            let _ = store.delete(&object.location).await;
        }
    }
    let _ = store.delete(&CommitLog::commit_path(CommitNo(5))).await;
    let said = open(&store).await.err().unwrap();
    assert!(said.kind() == ErrorKind::Corrupt && said.message().contains("restore meta/"), "{said}");
}

#[tokio::test]
async fn power_cuts_leave_a_prefix_of_the_commits() {
    // proves F16: idempotent between data and catalogue; I7, I11
    for cut in [Cut::NotApplied, Cut::AppliedNotAcknowledged] {
        for k in 1.. {
            let disk = CrashDisk::default();
            let power = disk.power.clone();
            let store = disk.store("meta");
            power.cut_at(k, cut);
            let mut acknowledged = 0;
            if let Ok(opened) = open(&store).await {
                for edits in scenario() {
                    match opened.committer.commit(edits, vec![], |_| {}).await {
                        Ok(_) => acknowledged += 1,
                        Err(_) => break,
                    }
                    if acknowledged == 4 && opened.committer.checkpoint().await.is_err() {
                        break;
                    }
                }
            }
            let survived = power.is_off();
            let again = disk.reopen(Unsynced::Lost);
            let found = open(&again.store("meta")).await.unwrap_or_else(|e| panic!("cut {cut:?} at {k}: {e}")).manifest;
            assert_eq!(violations(&found), Vec::<String>::new());
            // Acknowledged commits are there; one more may be, whose answer was lost.
            let expected = |n: usize| {
                let mut m = Manifest::empty();
                for (i, edits) in scenario().into_iter().take(n).enumerate() {
                    let no = CommitNo(i as u64 + 1);
                    m = m.apply(&Commit { no, epoch: Epoch(0), nonce: String::new(), time: Timestamp(0), edits }).unwrap();
                }
                m.streams().map(|s| (s.def.name.clone(), s.parts.size(), s.applied_sn)).collect::<Vec<_>>()
            };
            let here = found.streams().map(|s| (s.def.name.clone(), s.parts.size(), s.applied_sn)).collect::<Vec<_>>();
            assert!(
                here == expected(acknowledged) || here == expected(acknowledged + 1),
                "cut {cut:?} at {k}: {here:?} after {acknowledged}"
            );
            if !survived {
                assert_eq!(acknowledged, scenario().len());
                break;
            }
        }
    }
}

/// Who stops waiting for a commit that has begun, as a statement that is cancelled does, neither undoes it nor harms the next one.
#[tokio::test]
async fn a_commit_nobody_waits_for_any_more_is_made_and_published() {
    let faults = FaultStore::over(Arc::new(InMemory::new()));
    let store: Arc<dyn ObjectStore> = Arc::new(faults.clone());
    let c = open(&store).await.unwrap().committer;
    faults.inject(Op::Put, "commits/", 0, 1, Fault::Stall);
    let (told, published) = std::sync::mpsc::channel();
    {
        let edits = vec![Edit::CreateDatabase { name: "given_up".into() }];
        let commit = c.commit(edits, vec![], move |m| told.send(m.no).unwrap());
        tokio::pin!(commit);
        // Begun: it waits for the store.
        for _ in 0..100 {
            assert!(futures::poll!(&mut commit).is_pending());
            tokio::task::yield_now().await;
        }
    }
    faults.release();
    let next = c.commit(vec![Edit::CreateDatabase { name: "next".into() }], vec![], |_| {}).await.unwrap();
    assert!(next.databases.contains("given_up") && next.databases.contains("next"));
    assert_eq!(published.recv().unwrap().next(), next.no);
    assert_eq!(open(&store).await.unwrap().manifest.databases, next.databases);
}

/// A commit that can be read back and may not survive a loss of power is neither made nor undone: who wrote it stops.
#[tokio::test]
async fn a_commit_that_was_not_made_durable_is_not_acknowledged() {
    let faults = FaultStore::over(Arc::new(InMemory::new()));
    let store: Arc<dyn ObjectStore> = Arc::new(faults.clone());
    let c = open(&store).await.unwrap().committer;
    faults.inject(Op::Put, "commits/", 0, 1, Fault::AppliedNotSynced);
    let edits = || vec![Edit::CreateDatabase { name: "x".into() }];
    let said = c.commit(edits(), vec![], |_| panic!("published")).await.unwrap_err();
    assert!(said.kind() == ErrorKind::Internal && said.message().contains("may or may not"), "{said}");
    assert!(!c.current().databases.contains("x"));
    let stopped = c.commit(edits(), vec![], |_| panic!("published")).await.unwrap_err();
    assert_eq!(stopped.message(), said.message());
    // The next opening takes what is there.
    assert!(open(&store).await.unwrap().manifest.databases.contains("x"));
}

/// A commit that landed happened: what keeps its writer from knowing is asked again, and then told as what it is.
#[tokio::test]
async fn a_commit_whose_boundary_cannot_be_listed_is_not_told_as_undone() {
    for times in [1, u64::MAX] {
        let faults = FaultStore::over(Arc::new(InMemory::new()));
        let store: Arc<dyn ObjectStore> = Arc::new(faults.clone());
        let c = open(&store).await.unwrap().committer;
        faults.inject(Op::List, "boundary", 0, times, Fault::Fail);
        let made = c.commit(vec![Edit::CreateDatabase { name: "x".into() }], vec![], |_| {}).await;
        let next = c.commit(vec![Edit::CreateDatabase { name: "y".into() }], vec![], |_| {}).await;
        faults.clear();
        let found = open(&store).await.unwrap().manifest;
        assert!(found.databases.contains("x"));
        if times == 1 {
            assert!(made.is_ok() && next.is_ok() && found.databases.contains("y"), "{made:?} {next:?}");
        } else {
            let said = made.unwrap_err();
            assert!(said.kind() == ErrorKind::Internal && said.message().contains("may or may not count"), "{said}");
            assert_eq!(next.unwrap_err().message(), said.message());
            assert!(!found.databases.contains("y"));
        }
    }
}

#[tokio::test]
async fn an_older_opening_is_fenced() {
    let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let old = open(&store).await.unwrap().committer;
    let new = open(&store).await.unwrap().committer;
    new.commit(vec![Edit::CreateDatabase { name: "n".into() }], vec![], |_| {}).await.unwrap();
    let error = old.commit(vec![Edit::CreateDatabase { name: "o".into() }], vec![], |_| panic!("published")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Fenced);
    // For good.
    assert_eq!(old.commit(vec![], vec![], |_| {}).await.unwrap_err().kind(), ErrorKind::Fenced);
    assert!(!new.current().databases.contains("o"));
}

#[tokio::test]
async fn a_writer_that_slept_below_the_boundary_has_committed_nothing() {
    let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let old = open(&store).await.unwrap().committer;
    let new = open(&store).await.unwrap().committer;
    for i in 0..3 {
        for j in 0..3 {
            new.commit(vec![Edit::CreateDatabase { name: format!("d{i}{j}") }], vec![], |_| {}).await.unwrap();
        }
        new.checkpoint().await.unwrap();
    }
    // Its next number is free again: the commit that had it was folded into a checkpoint and deleted.
    let error = old.commit(vec![Edit::CreateDatabase { name: "late".into() }], vec![], |_| panic!("published")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Fenced);
    let found = open(&store).await.unwrap().manifest;
    assert!(!found.databases.contains("late") && found.databases.contains("d22"));
}

#[tokio::test]
async fn a_damaged_checkpoint_is_passed_over_and_a_damaged_commit_is_named() {
    let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let c = open(&store).await.unwrap().committer;
    c.commit(vec![Edit::CreateDatabase { name: "one".into() }], vec![], |_| {}).await.unwrap();
    c.checkpoint().await.unwrap();
    let last = c.commit(vec![Edit::CreateDatabase { name: "two".into() }], vec![], |_| {}).await.unwrap();
    c.checkpoint().await.unwrap();
    let damage = async |path: Path| {
        let mut bytes = store.get(&path).await.unwrap().bytes().await.unwrap().to_vec();
        let at = bytes.len() / 2;
        bytes[at] ^= 1;
        store.put(&path, bytes.into()).await.unwrap();
    };
    damage(commit_log::CommitLog::checkpoint_path(last.no)).await;
    let opened = open(&store).await.unwrap();
    assert!(opened.manifest.databases.contains("two"));
    assert!(opened.passed_over[0].contains("checkpoints/"), "{:?}", opened.passed_over);
    let found = inspect(store.clone()).await.unwrap();
    assert!(found.manifest.is_some() && found.damage.len() == 1);
    damage(commit_log::CommitLog::commit_path(last.no)).await;
    let error = open(&store).await.err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(error.message().contains(&format!("commits/{:020}", last.no)), "{error}");
    store.delete(&commit_log::CommitLog::commit_path(last.no)).await.unwrap();
    let error = open(&store).await.err().unwrap();
    assert!(error.message().contains("is missing"), "{error}");
}

#[tokio::test]
async fn a_commit_is_refused_when_what_it_stood_on_has_changed() {
    let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let c = open(&store).await.unwrap().committer;
    for edits in scenario().into_iter().take(3) {
        c.commit(edits, vec![], |_| {}).await.unwrap();
    }
    let stream = StreamId(1);
    let holds = [
        Expect::Part { stream, part: PartId(10), generation: Generation(1) },
        Expect::Definition { stream, schema: SchemaVersion(1), policy: 1 },
        Expect::Applied { stream, sn: Sn(2) },
        Expect::Database { name: "default".into() },
        Expect::NoStreamNamed { database: "default".into(), name: "z".into() },
        Expect::Lineage { stream, branch: BranchId::MAIN, from: Sn(0) },
    ];
    c.commit(vec![], holds.to_vec(), |_| {}).await.unwrap();
    let fails = [
        Expect::Part { stream, part: PartId(10), generation: Generation(2) },
        Expect::Part { stream, part: PartId(99), generation: Generation(1) },
        Expect::Policy { stream, version: 2 },
        Expect::Schema { stream, version: SchemaVersion(2) },
        Expect::Applied { stream, sn: Sn(1) },
        Expect::NoStreamNamed { database: "default".into(), name: "a".into() },
        Expect::Database { name: "nowhere".into() },
        Expect::Policy { stream: StreamId(9), version: 1 },
    ];
    let before = c.current().no;
    for e in fails {
        let error = c.commit(vec![Edit::CreateDatabase { name: "q".into() }], vec![e.clone()], |_| panic!("published")).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Conflict, "{e:?}: {error}");
    }
    assert_eq!(c.current().no, before);
}

#[test]
fn edits_that_do_not_fit_change_nothing() {
    let mut m = Manifest::empty();
    let commit = |no: u64, edits| Commit { no: CommitNo(no), epoch: Epoch(0), nonce: String::new(), time: Timestamp(0), edits };
    for (i, edits) in scenario().into_iter().take(3).enumerate() {
        m = m.apply(&commit(i as u64 + 1, edits)).unwrap();
    }
    let before = shown(&m);
    for edit in [
        Edit::AddPart(Box::new(part(1, 10, 2))),
        Edit::CreateStream(Box::new(def(2, "a"))),
        Edit::CreateStream(Box::new(def(1, "c"))),
        Edit::DropStream(StreamId(7)),
        Edit::RemovePart { stream: StreamId(1), part: PartId(99), why: RemoveReason::Rule },
        applied(1, 1),
    ] {
        let half_done = vec![Edit::CreateDatabase { name: "half".into() }, edit.clone()];
        assert!(m.apply(&commit(4, half_done)).is_err(), "{edit:?}");
    }
    assert!(m.apply(&commit(5, vec![])).is_err() && m.apply(&commit(3, vec![])).is_err());
    assert_eq!(shown(&m), before);
    // An id is not given again after its part was removed (I2).
    let gone = m.apply(&commit(4, vec![Edit::RemovePart { stream: StreamId(1), part: PartId(10), why: RemoveReason::Rule }])).unwrap();
    assert!(gone.apply(&commit(5, vec![Edit::AddPart(Box::new(part(1, 10, 2)))])).is_err());
}

#[test]
fn the_record_list_is_bounded_by_summing_up_old_appends() {
    let mut m = Manifest::empty();
    let mut apply = |edits| {
        m = m.apply(&Commit { no: m.no.next(), epoch: Epoch(0), nonce: String::new(), time: Timestamp(0), edits }).unwrap();
        m.clone()
    };
    apply(vec![Edit::CreateStream(Box::new(def(1, "a")))]);
    let n = state::RECORD_LINES_MAX as u64 + 500;
    let records = (1..=n).map(|sn| record(sn, if sn == 100 { Verb::Truncate } else { Verb::Insert })).collect();
    let m = apply(vec![Edit::Apply { stream: StreamId(1), sn: Sn(n), records }]);
    let s = m.stream(StreamId(1)).unwrap();
    assert!(s.records.size() <= state::RECORD_LINES_MAX);
    // The newer half is listed one by one.
    assert!(s.records.values().rev().take(state::RECORD_LINES_MAX / 2).all(|r| r.count == 1));
    assert_eq!(s.records.values().map(|r| r.count).sum::<u64>(), n);
    assert_eq!(s.records.values().map(|r| r.rows_added).sum::<u64>(), n);
    // What is no append stays a line of its own, and every sn can still be read.
    assert_eq!(s.records.get(&Sn(100)).unwrap().count, 1);
    assert!(s.readable.covers(SnRange { after: Sn(0), to: Sn(n) }));
    assert_eq!(s.history_from(), Some(Sn(1)));
}

#[test]
fn old_lines_stand_for_about_as_many_records_each() {
    const LINES: u64 = 100;
    const RECORDS: u64 = 20_000;
    let mut d = def(1, "a");
    d.settings.insert("history_max_snapshots".into(), crate::stream_def::SettingValue::Int(LINES as i64));
    let mut m = Manifest::empty();
    let mut apply = |edits| {
        m = m.apply(&Commit { no: m.no.next(), epoch: Epoch(0), nonce: String::new(), time: Timestamp(0), edits }).unwrap();
        m.clone()
    };
    let mut last = apply(vec![Edit::CreateStream(Box::new(d))]);
    for sn in 1..=RECORDS {
        last = apply(vec![applied(1, sn)]);
    }
    let lines: Vec<_> = last.stream(StreamId(1)).unwrap().records.values().cloned().collect();
    assert!(lines.len() as u64 <= LINES);
    let largest = lines.iter().map(|l| l.count).max().unwrap();
    assert!(largest <= 8 * RECORDS / LINES, "{largest}");
    // Times are known of both ends of each.
    let mut next = 1;
    for line in lines {
        assert_eq!((line.first(), line.time), ((Sn(next), Timestamp(next as i64)), Timestamp(line.sn.0 as i64)));
        next = line.sn.0 + 1;
    }
}

#[test]
fn a_cut_sees_parts_by_lineage() {
    let mut s = StreamState::new(def(1, "a"));
    let rows = |after: u64, to: u64| std::iter::once((BranchId::MAIN, SnRange { after: Sn(after), to: Sn(to) }));
    assert_eq!(s.seen(&s.head()).of_rows(rows(0, 5)), Visibility::All);
    // Truncated at 10: main sees what came after.
    let after = Lineage { from: Sn(10), sees: vec![(BranchId::MAIN, SnSet::new([SnRange { after: Sn(10), to: Sn(u64::MAX) }]))] };
    let both = vec![s.lineage(BranchId::MAIN, Sn(0)).unwrap().clone(), after];
    s.lineages.insert_mut(BranchId::MAIN, Arc::new(both));
    assert_eq!(s.seen(&s.head()).of_rows(rows(0, 10)), Visibility::None);
    assert_eq!(s.seen(&s.head()).of_rows(rows(10, 12)), Visibility::All);
    assert!(matches!(s.seen(&s.head()).of_rows(rows(5, 12)), Visibility::Some(_)));
    // A cut before the truncation still sees what was there.
    let cut = crate::lineage::Cut { branch: BranchId::MAIN, sn: Sn(9), horizon: CommitNo(0) };
    assert_eq!(s.seen(&cut).of_rows(rows(0, 9)), Visibility::All);
    assert!(matches!(s.seen(&cut).of_rows(rows(5, 12)), Visibility::Some(_)));
    let other = crate::lineage::Cut { branch: BranchId(3), ..cut };
    assert_eq!(s.seen(&other).of_rows(rows(0, 9)), Visibility::None);
}

#[test]
fn the_envelope_notices_every_changed_byte_and_refuses_newer_versions() {
    let commit = Commit { no: CommitNo(3), epoch: Epoch(2), nonce: "n".into(), time: Timestamp(5), edits: scenario().concat() };
    let bytes = codec::encode(Kind::Commit, &commit).unwrap();
    assert_eq!(codec::decode::<Commit>(Kind::Commit, "x", &bytes).unwrap(), commit);
    assert!(codec::decode::<Commit>(Kind::Checkpoint, "x", &bytes).is_err());
    for at in 0..bytes.len() {
        let mut copy = bytes.clone();
        copy[at] ^= 0x10;
        let error = codec::decode::<Commit>(Kind::Commit, "commits/3", &copy).unwrap_err();
        assert!(error.message().contains("commits/3"), "{error}");
    }
    for len in 0..bytes.len() {
        assert!(codec::decode::<Commit>(Kind::Commit, "x", &bytes[..len]).is_err());
    }
    let mut newer = bytes;
    newer[4] = codec::VERSION as u8 + 1;
    let error = codec::decode::<Commit>(Kind::Commit, "x", &newer).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.message().contains("newer one"), "{error}");
}

#[test]
fn what_is_written_is_of_version_3() {
    let written: &[u8] = b"EBBM\x03\0\x01\0";
    let commit = Commit { no: CommitNo(1), epoch: Epoch(1), nonce: "0".into(), time: Timestamp(0), edits: vec![Edit::TakeEpoch(Epoch(1))] };
    let bytes = codec::encode(Kind::Commit, &commit).unwrap();
    assert_eq!(&bytes[..8], written);
    assert_eq!(&bytes[24..], br#"{"no":1,"epoch":1,"nonce":"0","time":0,"edits":[{"TakeEpoch":1}]}"#);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_checkpoint_and_a_replay_are_the_same(ops in proptest::collection::vec((0u8..6, 0u64..8), 1..60)) {
        let mut m = Manifest::empty();
        let mut next_part = 100u64;
        for (op, n) in ops {
            let streams: Vec<_> = m.streams().cloned().collect();
            let some = streams.get(n as usize % streams.len().max(1)).cloned();
            let edit = match (op, some) {
                (0, _) | (_, None) => Edit::CreateStream(Box::new(def(m.next_stream.0, &format!("s{}", m.next_stream)))),
                (1, Some(s)) => applied(s.def.id.0, s.applied_sn.0 + 1 + n),
                (2, Some(s)) if s.applied_sn.0 > 0 => {
                    next_part += 1;
                    Edit::AddPart(Box::new(part(s.def.id.0, next_part, s.applied_sn.0)))
                }
                (3, Some(s)) => match s.parts.keys().next() {
                    Some(id) => Edit::RemovePart { stream: s.def.id, part: *id, why: RemoveReason::Rule },
                    None => applied(s.def.id.0, s.applied_sn.0 + 1),
                },
                (4, Some(s)) => Edit::DropStream(s.def.id),
                (_, Some(s)) => match s.parts.values().next() {
                    Some(p) => {
                        let placement = Placement { generation: p.placement.generation.next(), ..p.placement.clone() };
                        Edit::Place { stream: s.def.id, part: p.id, placement }
                    }
                    None => Edit::CreateDatabase { name: format!("d{n}") },
                },
            };
            m = m.apply(&Commit { no: m.no.next(), epoch: Epoch(0), nonce: String::new(), time: Timestamp(0), edits: vec![edit] }).unwrap();
            prop_assert_eq!(violations(&m), Vec::<String>::new());
        }
        let bytes = codec::encode(Kind::Checkpoint, &Image::of(&m)).unwrap();
        let back = codec::decode::<Image>(Kind::Checkpoint, "x", &bytes).unwrap().into_manifest().unwrap();
        prop_assert_eq!(shown(&back), shown(&m));
    }
}

#[tokio::test]
async fn checkpoints_come_due_and_old_objects_go() {
    let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let c = open(&store).await.unwrap().committer;
    for _ in 0..3 {
        for i in 0..CHECKPOINT_EVERY {
            c.commit(vec![Edit::CreateDatabase { name: format!("d{i}") }], vec![], |_| {}).await.unwrap();
        }
        assert!(c.checkpoint_due());
        c.checkpoint().await.unwrap();
        assert!(!c.checkpoint_due());
    }
    use futures::TryStreamExt;
    let count = async |folder: &str| store.list(Some(&Path::from(folder))).try_collect::<Vec<_>>().await.unwrap().len();
    assert_eq!((count("checkpoints").await, count("boundary").await), (2, 1));
    assert_eq!(count("commits").await, CHECKPOINT_EVERY as usize);
}

#[tokio::test]
async fn a_simulated_clock_does_not_start_before_the_newest_commit() {
    let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let at = |days: i64| Clock::simulated(Timestamp::from_secs(days * 86_400));
    let open = |clock| Committer::open(store.clone(), clock, Arc::new(|| false));
    let first = open(at(100)).await.unwrap().committer;
    first.commit(vec![Edit::CreateDatabase { name: "d".into() }], Vec::new(), |_| {}).await.unwrap();
    drop(first);
    let refused = open(at(99)).await.err().unwrap();
    assert_eq!(refused.kind(), ErrorKind::Invalid);
    assert!(refused.to_string().contains("1970-04-11"), "{refused}");
    // Nothing of the refused opening is left, and the same time is no going back.
    let again = open(at(100)).await.unwrap();
    assert_eq!(again.manifest.epoch, Epoch(2));
}
