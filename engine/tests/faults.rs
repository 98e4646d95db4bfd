//! Full disks, failing parts, many inserters, changing columns, work in the background.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod support;

use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch};
use arrow::datatypes::Int64Type;
use ebb_engine::{
    Clock, Disk, Engine, Error, ErrorKind, Existing, InsertOptions, NewDisk, OpenOptions, Places, Result,
    expr::{ExprCompiler, Folder, RowExpr},
    inspect::check,
};
use ebb_storage::{
    column_type::ColumnType,
    disk::{DataDir, DiskKind, Space, open::read_format, space::Source},
    ids::{ColumnId, DiskId, SchemaVersion, StreamId},
    interval::Interval,
    manifest::edit::PartEvent,
    part::{PartReader, reader::ReadOptions},
    stream_def::{SettingValue, StreamDef},
    testkit::{
        crash_store::CrashDisk,
        fault_log::FaultLog,
        fault_store::{Fault, FaultStore, Op},
    },
};
use futures::TryStreamExt;
use std::{path::Path, sync::Arc};
use support::*;

async fn open_over(store: Arc<dyn object_store::ObjectStore>, log: Arc<dyn ebb_storage::log::LogDir>, machine: &CrashDisk) -> Arc<Engine> {
    let places = Places { log, ..places(machine, store) };
    Engine::open_at(options(Path::new("nowhere"), Clock::simulated(START), false), places).await.unwrap()
}

/// A full disk refuses inserts and says so; reads go on; numbers stay dense when space is back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_log_disk_refuses_and_recovers() {
    let machine = CrashDisk::default();
    let log = FaultLog::over(machine.log());
    let e = open_over(machine.store("data"), Arc::new(log.clone()), &machine).await;
    let s = e.create_stream(def("s", vec![]), false).await.unwrap();
    e.insert(s, vec![rows(&[("a", START.0, 1)])], v1()).await.unwrap();
    for round in 0..5 {
        log.fail_write(std::io::ErrorKind::StorageFull);
        let many: Vec<_> = (0..8)
            .map(|i| {
                let e = e.clone();
                tokio::spawn(async move { e.insert(s, vec![rows(&[("a", START.0, 100 * (round + 1) + i)])], v1()).await })
            })
            .collect();
        let mut failed = 0;
        for one in many {
            if let Err(error) = one.await.unwrap() {
                assert_eq!(error.kind(), ErrorKind::Full, "{error}");
                failed += 1;
            }
        }
        assert!(failed > 0);
        e.insert(s, vec![rows(&[("a", START.0, round)])], v1()).await.unwrap();
    }
    let view = e.read().stream(s).unwrap();
    let all = read(&e, s).await;
    let mut sns: Vec<i64> = all.iter().map(|(_, sn)| *sn).collect();
    sns.sort_unstable();
    assert_eq!(sns, (1..=view.head_sn.0 as i64).collect::<Vec<_>>(), "I3: sns are dense");
    drop((view, e));
    let e = open_over(machine.store("data"), machine.log(), &machine).await;
    assert_eq!(read(&e, s).await, all);
}

/// The commit that takes the epoch and the header of the log's new file may use the reserve, whichever finds the disk full first.
#[tokio::test]
async fn a_full_disk_is_opened_with_the_reserve() {
    let (dir, machine) = (tempfile::tempdir().unwrap(), CrashDisk::default());
    let e = open_over(machine.store("data"), machine.log(), &machine).await;
    let s = e.create_stream(def("s", vec![]), false).await.unwrap();
    e.insert(s, vec![rows(&[("a", START.0, 1)])], v1()).await.unwrap();
    drop(e);
    for full in ["meta", "log", "both"] {
        let meta = FaultStore::over(machine.store("meta"));
        let log = FaultLog::over(machine.log());
        let data = DataDir::open(dir.path(), 4096).unwrap();
        let reserve = dir.path().join("RESERVE");
        assert!(reserve.exists());
        if full != "log" {
            meta.inject(Op::Put, "commits", 0, 1, Fault::DiskFull);
        }
        if full != "meta" {
            log.fail_write(std::io::ErrorKind::StorageFull);
        }
        let places = Places { meta: Arc::new(meta), log: Arc::new(log), dir: Some(data), ..places(&machine, machine.store("data")) };
        let opened = Engine::open_at(options(Path::new("nowhere"), Clock::simulated(START), false), places).await;
        if full == "both" {
            assert_eq!(opened.err().unwrap().kind(), ErrorKind::Full, "there is one reserve");
            continue;
        }
        let e = opened.unwrap();
        assert!(!reserve.exists(), "{full}");
        assert_eq!(values(&e, s).await, [1], "{full}");
    }
    let e = open_over(machine.store("data"), machine.log(), &machine).await;
    assert_eq!(values(&e, s).await, [1]);
    e.drop_stream(s).await.unwrap();
}

/// What goes through the log is what the log would write, not what rows hold in memory: texts may be shared, and pack to nothing.
#[tokio::test]
async fn rows_that_unpack_to_much_are_staged_however_little_they_are() {
    let machine = CrashDisk::default();
    let e = open_over(machine.store("data"), machine.log(), &machine).await;
    let s = e.create_stream(def("s", vec![]), false).await.unwrap();
    e.insert(s, vec![rows(&[(&"x".repeat(9 << 20), START.0, 1)])], v1()).await.unwrap();
    assert_eq!(e.read().stream(s).unwrap().parts.len(), 1, "one large row");
    let text = "y".repeat(20 << 10);
    let shared = arrow::compute::take_record_batch(&rows(&[(&text, START.0, 2)]), &Int64Array::from(vec![0; 1000])).unwrap();
    assert!(shared.get_array_memory_size() < 1 << 20);
    e.insert(s, vec![shared], v1()).await.unwrap();
    assert_eq!(e.read().stream(s).unwrap().parts.len(), 2, "many that share a text");
    e.insert(s, vec![rows(&[("a", START.0, 3)])], v1()).await.unwrap();
    assert_eq!(e.read().stream(s).unwrap().parts.len(), 2, "a small one");
}

/// What a kill leaves of a file that was not whole yet, on any disk: no listing shows it. proves I9
#[tokio::test]
async fn what_a_crash_left_of_a_file_is_swept_from_every_local_disk() {
    let (dir, second) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (away, place) = (second.path().join("away"), second.path().join("place"));
    let e = open(dir.path()).await;
    let kind = DiskKind::Local { path: place.clone() };
    let disk = NewDisk { name: "slow".to_owned(), kind, capacity_bytes: None, max_usage_pct: 100 };
    e.create_disk(disk, Existing::Refuse).await.unwrap();
    drop(e);
    let database = read_format(dir.path()).unwrap().unwrap();
    let leave = || {
        [dir.path(), &place].map(|root| {
            let folder = root.join(&database.0).join("parts/7");
            std::fs::create_dir_all(&folder).unwrap();
            let file = folder.join("00000000000000000009.2.parquet#1");
            std::fs::write(&file, "half").unwrap();
            assert!(std::fs::write(folder.join("of a person#x"), "").is_ok());
            file
        })
    };
    let left = leave();
    let told = check(dir.path()).await.unwrap();
    assert!(told.is_clean() && left.iter().all(|f| told.garbage.iter().any(|g| g.contains(&f.display().to_string()))), "{told:?}");
    drop(open(dir.path()).await);
    assert_eq!(left.map(|f| f.exists()), [false, false]);
    // A disk that is away at the opening is swept when it is back.
    let left = leave();
    std::fs::rename(&place, &away).unwrap();
    let e = open(dir.path()).await;
    assert!(!left[0].exists());
    std::fs::rename(&away, &place).unwrap();
    assert!(left[1].exists());
    e.check_disks().await;
    e.settle(None).await.unwrap();
    assert!(!left[1].exists() && left[1].with_file_name("of a person#x").exists());
}

/// A merge that fails is told: by OPTIMIZE, by part_log, by the parts' state, whether rules exist or not.
#[tokio::test]
async fn a_failed_merge_is_told_everywhere() {
    for rules in [vec![], vec![delete("ts + 1000 days", None, 1)]] {
        let machine = CrashDisk::default();
        let store = FaultStore::over(machine.store("data"));
        let e = open_over(Arc::new(store.clone()), machine.log(), &machine).await;
        let s = e.create_stream(def("s", rules.clone()), false).await.unwrap();
        for i in 0..2 {
            // Two partitions: what can be merged is.
            let (now, later) = (START.0, START.0 + 60 * DAY);
            e.insert(s, vec![rows(&[("a", now, i), ("a", later, 10 + i)])], v1()).await.unwrap();
            e.flush(Some(s)).await.unwrap();
        }
        assert_eq!(parts(&e, s), 4);
        store.inject(Op::Get, "parts", 0, 1, Fault::Fail);
        let said = e.optimize(s, None, true).await.unwrap_err();
        assert!(said.kind() == ErrorKind::Unavailable && said.message().contains("OPTIMIZE STREAM default.s"), "{said}");
        assert!(said.to_string().contains("an injected fault"), "{said}");
        assert_eq!(parts(&e, s), 3, "the other partition is one part");
        let failed: Vec<_> = e.part_log().await.unwrap().into_iter().filter(|r| !r.error.is_empty()).collect();
        assert_eq!(failed.len(), 1);
        let row = &failed[0];
        assert!(row.event == PartEvent::MergeParts && row.source_parts.len() == 2 && row.error.contains("an injected fault"), "{row:?}");
        let told: Vec<_> = e.explain_lifecycle(s, e.now()).unwrap().into_iter().filter(|l| l.state == "backing_off").collect();
        assert_eq!(told.len(), 2, "of both parts");
        assert!(
            told.iter().all(|l| l.rule.is_empty() && l.reason.contains("an injected fault") && l.next_attempt_at.is_some()),
            "{told:?}"
        );
        e.optimize(s, None, true).await.unwrap();
        assert_eq!(parts(&e, s), 2);
        assert!(e.explain_lifecycle(s, e.now()).unwrap().iter().all(|l| l.state == "not_due"));
    }
}

/// proves F15: one part that cannot be read does not keep the others from ageing.
#[tokio::test]
async fn a_full_parts_disk_and_an_unreadable_part_hold_up_nothing_else() {
    let machine = CrashDisk::default();
    let store = FaultStore::over(machine.store("data"));
    let e = open_over(Arc::new(store.clone()), machine.log(), &machine).await;
    let s = e.create_stream(with(def("s", vec![delete("ts + 1 days", None, 1)]), "merge_with_ttl_timeout", 0), false).await.unwrap();
    e.insert(s, vec![rows(&[("a", START.0, 1)])], v1()).await.unwrap();
    store.inject(Op::Put, "parts", 0, 1, Fault::DiskFull);
    let full = e.flush(Some(s)).await.unwrap_err();
    assert_eq!(full.kind(), ErrorKind::Full);
    assert!(full.message().contains("'default'"), "{full}");
    assert_eq!(values(&e, s).await, [1]);
    e.flush(Some(s)).await.unwrap();
    for month in 1..4 {
        let day = START.0 + (10 + month * 30) * DAY;
        e.insert(s, vec![rows(&[("a", day, month), ("a", day + 20 * DAY, 10 * month)])], v1()).await.unwrap();
        e.flush(Some(s)).await.unwrap();
    }
    e.advance_clock(Interval::days(105)).unwrap();
    store.inject(Op::Get, "parts", 0, 1, Fault::Fail);
    e.settle(None).await.unwrap();
    let backing_off = e.explain_lifecycle(s, e.now()).unwrap().iter().filter(|l| l.state == "backing_off").count();
    assert_eq!(backing_off, 1);
    assert_eq!(values(&e, s).await, [3, 30], "the others are gone");
    e.advance_clock(Interval::days(1)).unwrap();
    e.settle(None).await.unwrap();
    assert_eq!(values(&e, s).await, [30]);
}

/// Inserters, flushes and merges at once: each row once, in every view on the way.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_inserters_lose_nothing_while_readers_see_each_row_once() {
    let dir = tempfile::tempdir().unwrap();
    let mut o = options(dir.path(), Clock::System, true);
    o.background = true;
    let e = Engine::open(o).await.unwrap();
    let s = e.create_stream(with(def("s", vec![]), "flush_threshold_count", 50), false).await.unwrap();
    let writers: Vec<_> = (0..4)
        .map(|w| {
            let e = e.clone();
            tokio::spawn(async move {
                for i in 0..100 {
                    e.insert(s, vec![rows(&[("a", START.0 + i, w * 1000 + i)])], v1()).await.unwrap();
                }
            })
        })
        .collect();
    let reader = {
        let e = e.clone();
        tokio::spawn(async move {
            let mut last = 0;
            for _ in 0..30 {
                let seen = values(&e, s).await;
                let mut once = seen.clone();
                once.dedup();
                assert_eq!(once, seen, "a row was seen twice");
                assert!(seen.len() >= last, "a row was lost from view");
                last = seen.len();
            }
        })
    };
    for w in writers {
        w.await.unwrap();
    }
    reader.await.unwrap();
    let expected: Vec<i64> = (0..4).flat_map(|w| (0..100).map(move |i| w * 1000 + i)).collect();
    assert_eq!(values(&e, s).await, expected);
    e.close().await.unwrap();
    drop(e);
    let e = Engine::open(options(dir.path(), Clock::System, false)).await.unwrap();
    assert_eq!(values(&e, s).await, expected);
}

/// proves F5: what is due goes by itself, on a clock that jumps.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_driver_wakes_when_rows_come_due() {
    let dir = tempfile::tempdir().unwrap();
    let e = Engine::open(options(dir.path(), Clock::simulated(START), true)).await.unwrap();
    let s = e.create_stream(def("s", vec![delete("ts + 1 days", None, 1)]), false).await.unwrap();
    e.insert(s, vec![rows(&[("a", START.0, 1), ("a", START.0 + 2 * DAY, 2)])], v1()).await.unwrap();
    e.advance_clock(Interval::days(1)).unwrap();
    let mut changes = e.changes();
    while values(&e, s).await != [2] {
        changes.changed().await.unwrap();
    }
    e.close().await.unwrap();
}

/// Columns are matched by id: renamed keeps its values, dropped vanishes, added reads its fill, and a merge writes it out.
#[tokio::test]
async fn parts_of_different_schema_versions_merge() {
    let dir = tempfile::tempdir().unwrap();
    let e = open(dir.path()).await;
    let s = e.create_stream(def("s", vec![]), false).await.unwrap();
    e.insert(s, vec![rows(&[("a", START.0, 1)])], v1()).await.unwrap();
    e.flush(None).await.unwrap();
    e.insert(s, vec![rows(&[("a", START.0, 2)])], v1()).await.unwrap();
    let change = |d: &StreamDef| {
        let mut d = d.clone();
        d.columns[2].name = "value".to_owned();
        let mut added = column(4, "w", ColumnType::Int64);
        added.fill = Some("7".to_owned());
        d.columns.push(added);
        d.next_column = ColumnId(5);
        Ok(d)
    };
    assert_eq!(e.alter_stream(s, change).await.unwrap().schema_version, SchemaVersion(2));
    let stale = e.insert(s, vec![rows(&[("a", START.0, 3)])], v1()).await.unwrap_err();
    assert_eq!(stale.kind(), ErrorKind::Conflict);
    let schema = e.read().stream(s).unwrap().def.row_schema();
    let old = rows(&[("a", START.0, 3)]);
    let w: ArrayRef = Arc::new(Int64Array::from(vec![8]));
    let columns = vec![old.column(0).clone(), old.column(1).clone(), old.column(2).clone(), w, old.column(3).clone()];
    let new = RecordBatch::try_new(schema, columns).unwrap();
    e.insert(s, vec![new], InsertOptions { schema_version: SchemaVersion(2), ..InsertOptions::default() }).await.unwrap();
    drop(e);
    let e = open(dir.path()).await;
    e.optimize(s, None, true).await.unwrap();
    assert_eq!(named(&e, s, "value").await, [1, 2, 3]);
    assert_eq!(named(&e, s, "w").await, [7, 7, 8]);
    let filled = e.read().stream(s).unwrap().parts[0].meta.filled.clone();
    assert_eq!(filled, [ColumnId(4)]);
}

async fn named(e: &Engine, s: StreamId, column: &str) -> Vec<i64> {
    let view = e.read().stream(s).unwrap();
    assert_eq!((view.parts.len(), view.tail.len()), (1, 0));
    let part = &view.parts[0];
    let reader = PartReader::open_verified(&part.store, &part.key, &part.meta).await.unwrap();
    let mut out = Vec::new();
    for batch in reader.read(&ReadOptions::default()).unwrap() {
        out.extend(batch.unwrap().column_by_name(column).unwrap().as_primitive::<Int64Type>().values().iter());
    }
    out.sort_unstable();
    out
}

async fn open_with_room(machine: &CrashDisk, bytes: u64) -> (Arc<Engine>, Arc<Space>) {
    let space = Space::new("default", Source::Declared(bytes), 100);
    let disk = Disk::new(DiskId::DEFAULT, "default", machine.store("data")).with_space(space.clone());
    let places = Places { disks: vec![disk], ..places(machine, machine.store("data")) };
    (Engine::open_at(options(Path::new("nowhere"), Clock::simulated(START), false), places).await.unwrap(), space)
}

/// proves D4: what a disk has no room for is refused before it is written, and what is removed makes room.
#[tokio::test]
async fn flushes_staged_inserts_and_rewrites_ask_their_disk_for_room() {
    let machine = CrashDisk::default();
    let (e, space) = open_with_room(&machine, 64 << 10).await;
    let s = e.create_stream(def("s", vec![]), false).await.unwrap();
    let mut v = 0;
    let refused = loop {
        v += 1;
        assert!(v < 100, "the disk is never full");
        e.insert(s, vec![rows(&[("a", START.0, v)])], v1()).await.unwrap();
        if let Err(error) = e.flush(Some(s)).await {
            break error;
        }
    };
    let told = |error: &ebb_engine::Error| error.message().contains("disk 'default' has") && error.message().contains("are needed");
    assert_eq!(refused.kind(), ErrorKind::Full);
    assert!(told(&refused), "{refused}");
    let everything: Vec<i64> = (1..=v).collect();
    assert_eq!(values(&e, s).await, everything);
    let mut staged = e.stage(s, v1()).await.unwrap();
    staged.push(rows(&[("a", START.0, 1000)])).await.unwrap();
    let refused = staged.finish().await.unwrap_err();
    assert!(refused.kind() == ErrorKind::Full && told(&refused), "{refused}");
    let stored = parts(&e, s);
    let (placed, reserved) = (64 * 1024 - space.available().unwrap(), space.reserved_bytes());
    let on_disk: u64 = e.manifest().stream(s).unwrap().parts.values().map(|p| p.placement.bytes).sum();
    assert_eq!((placed, reserved), (on_disk, 0));
    drop(e);
    // Counted again from the manifest. The sources together are larger than what is left.
    let (e, space) = open_with_room(&machine, 64 << 10).await;
    assert_eq!(64 * 1024 - space.available().unwrap(), on_disk);
    let before = e.part_log().await.unwrap().len();
    let state = e.manifest().stream(s).unwrap().clone();
    assert!(e.optimize(s, None, true).await.is_err(), "the tail has no room");
    drop(e);
    let (e, _) = open_with_room(&machine, on_disk + (16 << 10)).await;
    let said = e.optimize(s, None, true).await.unwrap_err();
    let error = e.status().last_error.unwrap_or_default();
    assert!(said.kind() == ErrorKind::Full && said.to_string().contains(&error), "{said}");
    assert!(error.contains("destination_full") && error.contains("disk 'default' has"), "{error}");
    assert_eq!(parts(&e, s), stored + 1, "but for the flush nothing was written");
    assert!(e.part_log().await.unwrap().len() > before && state.parts.size() == stored);
    assert_eq!(values(&e, s).await, everything);
    e.truncate(s).await.unwrap();
    forget_the_past(&e, s).await;
    e.settle(None).await.unwrap();
    let (e, space) = {
        drop(e);
        open_with_room(&machine, 64 << 10).await
    };
    assert_eq!(space.available().unwrap(), 64 << 10);
    e.insert(s, vec![rows(&[("a", START.0, 1)])], v1()).await.unwrap();
    e.flush(None).await.unwrap();
    assert_eq!(values(&e, s).await, [1]);
}

/// proves D4: rows that cannot be flushed keep neither a drop, nor what is due whole, nor other streams from making room.
#[tokio::test]
async fn a_disk_too_full_for_the_tail_is_freed_by_drops() {
    let machine = CrashDisk::default();
    let (e, _) = open_with_room(&machine, 64 << 10).await;
    let s = e.create_stream(def("s", vec![delete("ts + 100 days", None, 1)]), false).await.unwrap();
    let other = e.create_stream(def("other", vec![]), false).await.unwrap();
    let old = |v: i64| rows(&[("a", START.0 - 40 * DAY, v)]);
    e.insert(s, vec![rows(&[("a", START.0 - 90 * DAY, 0)])], v1()).await.unwrap();
    e.flush(Some(s)).await.unwrap();
    let mut v = 0;
    while e.flush(Some(s)).await.is_ok() {
        v += 1;
        assert!(v < 100, "the disk is never full");
        e.insert(s, vec![old(v)], v1()).await.unwrap();
    }
    let tail = v;
    // What is due whole goes though the tail cannot be written, and what others need is done.
    e.insert(other, vec![rows(&[("z", START.0, 500)])], v1()).await.unwrap();
    e.advance_clock(Interval::days(15)).unwrap();
    let _ = e.settle(None).await;
    assert!(!values(&e, s).await.contains(&0), "the due part is dropped");
    while e.flush(Some(s)).await.is_ok() {
        v += 1;
        assert!(v < 200, "the disk is never full again");
        e.insert(s, vec![old(v)], v1()).await.unwrap();
    }
    // A partition goes with its rows in the tail, or not at all.
    let partition = ((START.0 - 40 * DAY) / (30 * DAY)).to_string();
    assert!(tail > 0 && values(&e, s).await.contains(&tail));
    e.insert(s, vec![rows(&[("a", START.0, 1000)])], v1()).await.unwrap();
    let before = values(&e, s).await;
    assert_eq!(e.drop_partition(s, &partition).await.unwrap_err().kind(), ErrorKind::Full);
    assert_eq!(values(&e, s).await, before);
    // A truncation whose history is forgotten makes room: rows of the tail that nobody will read need not be written first.
    e.truncate(s).await.unwrap();
    assert_eq!(e.flush(Some(s)).await.unwrap_err().kind(), ErrorKind::Full, "earlier cuts can still be read");
    forget_the_past(&e, s).await;
    e.settle(None).await.unwrap();
    assert_eq!((parts(&e, s), values(&e, s).await), (0, vec![]));
    e.insert(s, vec![old(5)], v1()).await.unwrap();
    e.flush(Some(s)).await.unwrap();
    assert_eq!(values(&e, s).await, [5]);
    e.drop_stream(s).await.unwrap();
    e.settle(None).await.unwrap();
    e.insert(other, vec![rows(&[("z", START.0, 501)])], v1()).await.unwrap();
    e.flush(None).await.unwrap();
    assert_eq!(values(&e, other).await, [500, 501]);
}

async fn objects(store: &dyn object_store::ObjectStore, prefix: &str) -> Vec<String> {
    let listed = store.list(Some(&prefix.into())).map_ok(|o| o.location.to_string());
    let mut found: Vec<String> = listed.try_collect().await.unwrap();
    found.sort_unstable();
    found
}

/// Commits until the driver has done what `done` asks for, whichever of its rounds it is.
async fn worked_off(e: &Engine, mut done: impl AsyncFnMut() -> bool) -> bool {
    for i in 0..20_000 {
        if done().await {
            return true;
        }
        e.set_server_setting("background_pool_size", Some(SettingValue::Int(2 + i % 2))).await.unwrap();
        tokio::task::yield_now().await;
    }
    false
}

/// What cannot be deleted is put off: other objects go, and it is tried again later.
#[tokio::test]
async fn an_object_that_cannot_be_deleted_keeps_no_other() {
    let machine = CrashDisk::default();
    let store = FaultStore::over(machine.store("data"));
    let e = open_over(Arc::new(store.clone()), machine.log(), &machine).await;
    let s = e.create_stream(def("s", vec![]), false).await.unwrap();
    for i in 0..3 {
        e.insert(s, vec![rows(&[("a", START.0 + i * 60 * DAY, i)])], v1()).await.unwrap();
        e.flush(None).await.unwrap();
    }
    let kept = e.read().stream(s).unwrap().parts[0].key.to_string();
    store.inject(Op::Delete, &kept, 0, u64::MAX, Fault::Fail);
    e.drop_stream(s).await.unwrap();
    assert_eq!(e.settle(None).await.unwrap_err().kind(), ErrorKind::Unavailable, "it is told");
    assert_eq!(objects(&store, "d").await, [kept]);
    e.settle(None).await.unwrap();
    store.clear();
    e.settle(None).await.unwrap();
    assert_eq!(objects(&store, "d").await.len(), 1, "it waits");
    e.advance_clock(Interval::days(1)).unwrap();
    e.settle(None).await.unwrap();
    assert_eq!(objects(&store, "d").await, [""; 0]);
}

/// Checkpoints, logs and what comes due wait for no object that cannot be deleted.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_object_that_cannot_be_deleted_stops_no_checkpoint() {
    let machine = CrashDisk::default();
    let store = FaultStore::over(machine.store("data"));
    store.inject(Op::Delete, "parts", 0, u64::MAX, Fault::Fail);
    let opened = Engine::open_at(options(Path::new("nowhere"), Clock::simulated(START), true), places(&machine, Arc::new(store))).await;
    let e = opened.unwrap();
    let s = e.create_stream(def("s", vec![]), false).await.unwrap();
    e.insert(s, vec![rows(&[("a", START.0, 1)])], v1()).await.unwrap();
    e.flush(None).await.unwrap();
    e.drop_stream(s).await.unwrap();
    let meta = machine.store("meta");
    let checkpointed = async || !objects(meta.as_ref(), "checkpoints").await.is_empty();
    assert!(worked_off(&e, checkpointed).await);
}

/// [`Words`] that has forgotten one.
struct Forgetful;

impl ExprCompiler for Forgetful {
    fn compile(&self, text: &str, def: &StreamDef) -> Result<Arc<dyn RowExpr>> {
        match text.contains(" + 7 days") {
            true => Err(Error::invalid("'+ 7 days' is not known any more")),
            false => Words.compile(text, def),
        }
    }
    fn folder(&self, keys: &[String], set: &[(String, String)], def: &StreamDef) -> Result<Arc<dyn Folder>> {
        Words.folder(keys, set, def)
    }
}

/// As after an upgrade: what a stream says that cannot be compiled keeps no other stream from ageing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_that_does_not_compile_stops_no_other() {
    let machine = CrashDisk::default();
    let e = open_on(&machine, START).await.unwrap();
    let bad = e.create_stream(def("bad", vec![delete("ts + 7 days", None, 1)]), false).await.unwrap();
    let good = e.create_stream(def("good", vec![delete("ts + 1 days", None, 1)]), false).await.unwrap();
    for s in [bad, good] {
        e.insert(s, vec![rows(&[("a", START.0, 1), ("a", START.0 + 60 * DAY, 2)])], v1()).await.unwrap();
    }
    e.flush(None).await.unwrap();
    e.insert(bad, vec![rows(&[("a", START.0, 3)])], v1()).await.unwrap();
    drop(e);
    let over = OpenOptions { compiler: Arc::new(Forgetful), ..options(Path::new("nowhere"), Clock::simulated(START), true) };
    let e = Engine::open_at(over, places(&machine, machine.store("data"))).await.unwrap();
    e.advance_clock(Interval::days(1)).unwrap();
    assert!(worked_off(&e, async || values(&e, good).await == [2]).await);
    assert_eq!(values(&e, bad).await, [1, 2, 3]);
}

/// Rows of one stream come due while another waits for its disk: to be flushed, to be deleted from, or for objects that are to go.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_that_waits_for_its_disk_keeps_no_other() {
    for (op, what) in [(Op::Put, "flush"), (Op::Get, "delete"), (Op::Delete, "vacuum")] {
        let machine = CrashDisk::default();
        let store = FaultStore::over(machine.store("data"));
        let over = options(Path::new("nowhere"), Clock::simulated(START), true);
        let e = Engine::open_at(over, places(&machine, Arc::new(store.clone()))).await.unwrap();
        let slow = e.create_stream(def("slow", vec![]), false).await.unwrap();
        let other = e.create_stream(def("other", vec![delete("ts + 1 days", None, 1)]), false).await.unwrap();
        let two = [("a", START.0, 1), ("a", START.0 + 60 * DAY, 2)];
        e.insert(slow, vec![rows(&two)], v1()).await.unwrap();
        if what != "flush" {
            e.flush(Some(slow)).await.unwrap();
        }
        store.inject(op, &format!("parts/{slow}/"), 0, u64::MAX, Fault::Stall);
        let deletes = match what {
            "delete" => {
                let (e, request) = (e.clone(), deleting(&e, slow, "v = 1"));
                Some(tokio::spawn(async move { e.delete(request).await }))
            }
            "vacuum" => {
                e.drop_stream(slow).await.unwrap();
                None
            }
            _ => {
                // By age.
                e.advance_clock(Interval::seconds(3600)).unwrap();
                None
            }
        };
        store.stalled().await;
        e.insert(other, vec![rows(&two)], v1()).await.unwrap();
        e.advance_clock(Interval::days(1)).unwrap();
        assert!(worked_off(&e, async || values(&e, other).await == [2]).await, "{what}");
        store.clear();
        store.release();
        if let Some(deletes) = deletes {
            assert_eq!(deletes.await.unwrap().unwrap().rows, 1);
        }
        e.close().await.unwrap();
    }
}
