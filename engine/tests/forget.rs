//! Sns that nothing can tell apart, in parts that no merge takes any more: one value, and no other column is touched.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod support;

use ebb_engine::{
    AsOf, Engine, Result, Timestamp,
    history::{NewRef, Overrides},
};
use ebb_storage::{
    ids::{BranchId, Sn, StreamId},
    lineage::SnRange,
    manifest::edit::PartEvent,
    part::{PartMeta, PartReader, meta::Origin},
    refs::RefKind,
    testkit::crash_store::CrashDisk,
};
use std::sync::Arc;
use support::{
    power::{Loss, cut_everywhere, steps, whole},
    *,
};

/// 0 to 7, by no rule.
fn scattered(i: i64, record: i64) -> i64 {
    let mut z = ((i * 8 + record) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (z >> 61) as i64
}

/// One record whose rows lie between those of the others.
async fn append(e: &Engine, s: StreamId, record: i64, rows_each: i64) -> Result<()> {
    let of: Vec<_> = (0..rows_each).map(|i| ("a", START.0 + i * 8 + scattered(i, record), i * 8 + record)).collect();
    e.insert(s, vec![rows(&of)], v1()).await.map(|_| ())
}

/// The same as a part of its own.
async fn insert(e: &Engine, s: StreamId, record: i64, rows_each: i64) -> Result<()> {
    append(e, s, record, rows_each).await?;
    e.flush(Some(s)).await
}

fn part_of(e: &Engine, s: StreamId) -> Arc<PartMeta> {
    let state = e.read().state(s).unwrap();
    assert_eq!(state.parts.size(), 1);
    state.parts.values().next().unwrap().clone()
}

/// The bytes of each column.
async fn chunks(e: &Engine, s: StreamId) -> Vec<i64> {
    let view = e.read().stream(s).unwrap();
    let reader = PartReader::open_verified(&view.parts[0].store, &view.parts[0].key, &view.parts[0].meta).await.unwrap();
    reader.metadata().row_group(0).columns().iter().map(|c| c.compressed_size()).collect()
}

/// proves F2: the column is written anew once, and is next to nothing then; rows, place and other columns are as they were.
#[tokio::test]
async fn a_lone_part_forgets_its_records_once_the_window_has_passed() {
    let dir = tempfile::tempdir().unwrap();
    let e = open(dir.path()).await;
    let s = e.create_stream(def("s", vec![]), false).await.unwrap();
    for record in 0..8 {
        insert(&e, s, record, 2000).await.unwrap();
    }
    e.settle(None).await.unwrap();
    let (before, columns, v) = (part_of(&e, s), chunks(&e, s).await, values(&e, s).await);
    assert_eq!((before.rows, before.level, before.origins[0].sns), (16_000, 1, SnRange { after: Sn(0), to: Sn(8) }));
    assert_eq!(before.sn_bytes as i64, *columns.last().unwrap(), "the manifest knows what the column takes");
    assert!(before.sn_bytes * 100 > before.placement.bytes * 3, "{} of {}", before.sn_bytes, before.placement.bytes);
    // Readable records stay apart; so do those on both sides of a tag.
    e.create_ref(s, NewRef { as_of: Some(AsOf::Sn(Sn(4))), ..tag("t") }).await.unwrap();
    e.insert(s, vec![rows(&[("a", START.0 + 40 * DAY, -1)])], v1()).await.unwrap();
    forget_the_past(&e, s).await;
    let generation = || before.placement.generation;
    e.settle(None).await.unwrap();
    let in_partition = |e: &Engine| e.read().state(s).unwrap().parts.get(&before.id).cloned().unwrap();
    assert_eq!(in_partition(&e).placement.generation, generation());
    e.drop_ref(s, RefKind::Tag, "t", false).await.unwrap();
    forget_the_past(&e, s).await;
    let told = e.explain_lifecycle(s, e.now()).unwrap();
    let row = told.iter().find(|r| r.action == "forget").unwrap();
    assert!(row.part == before.name && row.state == "due_queued" && row.reason.contains("_tp_sn"), "{row:?}");
    e.settle(None).await.unwrap();
    let after = in_partition(&e);
    assert!(after.id == before.id && after.placement.generation > generation(), "{after:?}");
    assert_eq!(after.origins, [Origin { branch: BranchId::MAIN, sns: SnRange { after: Sn(7), to: Sn(8) }, rows: 16_000 }]);
    let left = after.sn_bytes;
    assert!(left < 300 && after.placement.bytes <= before.placement.bytes - before.sn_bytes + 1000, "{left} bytes are left");
    let now = chunks(&e, s).await;
    assert_eq!(now.split_last().unwrap().1, columns.split_last().unwrap().1, "other columns are copied");
    assert_eq!(values(&e, s).await, [&[-1], v.as_slice()].concat());
    assert!(read(&e, s).await.iter().all(|(_, sn)| [8, 9].contains(sn)));
    let log = e.manifest().part_log.iter().filter(|r| r.event == PartEvent::RecompressPart).cloned().collect::<Vec<_>>();
    assert_eq!(log.len(), 1);
    assert!(log[0].reason.contains("sn 8") && log[0].source_parts == [before.name.clone()], "{:?}", log[0]);
    // And that is the end of it.
    let commit = e.manifest().no;
    e.settle(None).await.unwrap();
    assert_eq!(e.manifest().no, commit);
    assert!(e.explain_lifecycle(s, e.now()).unwrap().iter().all(|r| r.action != "forget"));
    drop(e);
    let e = open(dir.path()).await;
    e.settle(None).await.unwrap();
    assert_eq!(in_partition(&e).as_ref(), after.as_ref());
}

/// Where a merge may still come it does it on its way; where a lease stands at a record nothing is done.
#[tokio::test]
async fn parts_that_may_be_merged_wait_for_that() {
    let dir = tempfile::tempdir().unwrap();
    let e = open(dir.path()).await;
    let s = e.create_stream(def("s", vec![]), false).await.unwrap();
    for record in 0..8 {
        insert(&e, s, record, 2000).await.unwrap();
    }
    e.settle(None).await.unwrap();
    let before = part_of(&e, s);
    insert(&e, s, 8, 10).await.unwrap();
    forget_the_past(&e, s).await;
    e.settle(None).await.unwrap();
    let state = e.read().state(s).unwrap();
    assert_eq!((state.parts.size(), state.parts.get(&before.id)), (2, Some(&before)));
    e.optimize(s, None, true).await.unwrap();
    let merged = part_of(&e, s);
    // The newest record can be read, and the oldest that is left stands for those before.
    assert_eq!(merged.origins[0].sns, SnRange { after: Sn(7), to: Sn(9) });
    e.settle(None).await.unwrap();
    assert_eq!(part_of(&e, s), merged);
}

/// proves I10, I11: power may go at any moment of it.
#[tokio::test]
async fn forgetting_is_all_or_nothing() {
    const STEPS: usize = 11;
    let all = |records: i64| {
        let mut all: Vec<i64> = (0..records).flat_map(|r| (0..1600).map(move |i| i * 8 + r)).collect();
        all.sort_unstable();
        all
    };
    let scenario = async |machine: &CrashDisk| -> usize {
        let Ok(e) = open_on(machine, START).await else { return 0 };
        let Ok(s) = e.create_stream(def("s", vec![]), false).await else { return 0 };
        let step = async |i: usize| -> Result<()> {
            match i {
                0..8 => append(&e, s, i as i64, 1600).await,
                8 => e.flush(Some(s)).await,
                9 => e.insert(s, vec![rows(&[("a", START.0 + 40 * DAY, -1)])], v1()).await.map(|_| ()),
                _ => {
                    let all = Overrides { retain_last: Some(1), older_than: Some(Timestamp::MAX), dry_run: false };
                    e.expire_snapshots(s, all).await?;
                    e.settle(None).await
                }
            }
        };
        steps(STEPS, step).await
    };
    let verify = async |machine: &CrashDisk, e: Arc<Engine>, done: usize, loss: Loss| {
        let Some(s) = e.read().streams().next().map(|s| s.def.id) else { return assert_eq!(done, 0, "{loss}") };
        let after = |n: usize| if n <= 9 { all(n.min(8) as i64) } else { [vec![-1], all(8)].concat() };
        let found = values(&e, s).await;
        assert!([after(done), after(done + 1)].contains(&found), "{loss}: after {done} steps there are {} rows", found.len());
        e.settle(None).await.unwrap();
        e.optimize(s, None, true).await.unwrap();
        e.settle(None).await.unwrap();
        assert_eq!(values(&e, s).await, found, "{loss}");
        whole(machine, &["data"], &e, loss).await;
        if done == STEPS {
            let state = e.read().state(s).unwrap();
            assert!(state.parts.values().any(|p| p.rows == 12_800 && p.origins[0].sns.after == Sn(7) && p.sn_bytes < 300), "{loss}");
        }
    };
    let open = async |machine: &CrashDisk, _: &usize| open_on(machine, START).await;
    assert_eq!(cut_everywhere(scenario, open, verify).await, STEPS);
}
