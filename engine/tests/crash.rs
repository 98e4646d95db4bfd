//! Power goes at every changing call, the call done or not, also while opening again: what was acknowledged is there once, the rest
//! whole or not at all, and what is stored is what the manifest names.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod support;

use ebb_engine::{Engine, Result};
use ebb_storage::{
    ids::StreamId,
    testkit::{
        crash_store::{CrashDisk, Unsynced},
        power::Cut,
    },
};
use futures::TryStreamExt;
use support::*;

const STEPS: usize = 10;
const DROP_STEPS: usize = 8;

async fn step(e: &Engine, s: &mut StreamId, n: usize) -> Result<()> {
    let row = |v: i64| ("a", START.0 + v, v);
    match n {
        0 => *s = e.create_stream(def("s", vec![delete("ts + 10 days", None, 1)]), true).await?,
        1 => _ = e.insert(*s, vec![rows(&[row(1), ("b", START.0 + 31 * DAY, 2)])], v1()).await?,
        2 => {
            let mut staged = e.stage(*s, v1()).await?;
            staged.push(rows(&[row(3), ("c", START.0 + 31 * DAY, 4)])).await?;
            staged.finish().await?;
        }
        3 => e.flush(None).await?,
        4 => _ = e.insert(*s, vec![rows(&[row(5)])], v1()).await?,
        5 => _ = e.optimize(*s, None, true).await?,
        6 => {
            let mut t = e.transaction();
            t.insert(*s, vec![rows(&[row(6)])], v1()).await?;
            t.insert(*s, vec![rows(&[row(7)])], v1()).await?;
            t.commit().await?;
        }
        7 => _ = e.truncate(*s).await?,
        8 => _ = e.insert(*s, vec![rows(&[row(8), ("a", START.0 - 5 * DAY, 9), ("a", START.0 - 20 * DAY, 10)])], v1()).await?,
        _ => e.settle(None).await?,
    }
    Ok(())
}

/// Rows after each step.
fn state(after: usize) -> Vec<i64> {
    match after {
        0 => vec![],
        1 => vec![1, 2],
        2 | 3 => vec![1, 2, 3, 4],
        4 | 5 => vec![1, 2, 3, 4, 5],
        6 => vec![1, 2, 3, 4, 5, 6, 7],
        7 => vec![],
        8 => vec![8, 9, 10],
        _ => vec![8, 9],
    }
}

/// Does the steps until one fails; how many were acknowledged.
async fn work(e: &Engine, s: &mut StreamId) -> usize {
    for n in 0..STEPS {
        if step(e, s, n).await.is_err() {
            return n;
        }
    }
    STEPS
}

async fn verify(machine: &CrashDisk, e: &Engine, acknowledged: usize, at: &str) {
    let s = e.read().streams().next().map(|s| s.def.id);
    let Some(s) = s else {
        assert_eq!(acknowledged, 0, "{at}: the stream is gone");
        return;
    };
    let found = values(e, s).await;
    let before = if acknowledged == 0 { vec![] } else { state(acknowledged - 1) };
    let allowed = [before, state(acknowledged.min(STEPS - 1))];
    assert!(allowed.contains(&found), "{at}: after {acknowledged} steps there is {found:?}");
    e.settle(None).await.unwrap();
    let settled: Vec<i64> = found.iter().copied().filter(|v| *v != 10).collect();
    assert_eq!(values(e, s).await, settled, "{at}: settling changed what is read");
    let next = e.insert(s, vec![rows(&[("z", START.0, 99)])], v1()).await.unwrap();
    let sns = read(e, s).await;
    assert_eq!(sns.iter().filter(|(_, sn)| *sn == next.sn.0 as i64).count(), 1, "{at}: the sn is new");
    let listed: Vec<_> = machine.store("data").list(None).try_collect().await.unwrap();
    let named: usize = e.manifest().streams().map(|s| s.parts.size()).sum();
    assert_eq!(listed.len(), named, "{at}: what is stored is what the manifest names");
    assert_eq!(ebb_storage::manifest::invariants::violations(&e.manifest()), Vec::<String>::new(), "{at}");
}

/// proves T14, F7, F9, F10, F12, F16; I9, I11
#[tokio::test]
async fn power_goes_at_every_changing_call() {
    let machine = CrashDisk::default();
    let e = open_on(&machine, START).await.unwrap();
    assert_eq!(work(&e, &mut StreamId::default()).await, STEPS);
    drop(e);
    let calls = machine.power.calls();
    assert!(calls > 20, "{calls}");
    for k in 1..=calls {
        for cut in [Cut::NotApplied, Cut::AppliedNotAcknowledged] {
            let unsynced = [Unsynced::Lost, Unsynced::Torn, Unsynced::Kept][k as usize % 3];
            let machine = CrashDisk::default();
            machine.power.cut_at(k, cut);
            let mut acknowledged = 0;
            if let Ok(e) = open_on(&machine, START).await {
                acknowledged = work(&e, &mut StreamId::default()).await;
            }
            // Power goes again while opening, and then no more.
            let again = machine.reopen(unsynced);
            again.power.cut_at(1 + k % 4, cut);
            let _ = open_on(&again, START).await;
            let last = again.reopen(unsynced);
            let at = format!("call {k}, {cut:?}, {unsynced:?}");
            let e = open_on(&last, START).await.unwrap_or_else(|e| panic!("{at}: {e}"));
            verify(&last, &e, acknowledged, &at).await;
        }
    }
}

/// Two streams; one of them is dropped with rows in parts and in the tail, and made again.
async fn drop_step(e: &Engine, n: usize) -> Result<()> {
    let row = |v: i64| vec![rows(&[("a", START.0 + v, v)])];
    let named = |name: &str| e.read().stream_named("default", name).map(|s| s.def.id).unwrap_or_default();
    match n {
        0 => _ = e.create_stream(def("kept", vec![]), true).await?,
        1 | 6 => _ = e.create_stream(def("gone", vec![]), true).await?,
        2 | 7 => {
            let mut t = e.transaction();
            t.insert(named("gone"), row(n as i64), v1()).await?;
            t.insert(named("kept"), row(n as i64), v1()).await?;
            t.commit().await?;
        }
        3 => e.flush(None).await?,
        4 => _ = e.insert(named("gone"), row(4), v1()).await?,
        _ => e.drop_stream(named("gone")).await?,
    }
    Ok(())
}

/// Rows of `gone` and of `kept` after each step; `None` where the stream is not there.
fn after_drop_step(n: usize) -> (Option<Vec<i64>>, Option<Vec<i64>>) {
    match n {
        0 => (None, Some(vec![])),
        1 => (Some(vec![]), Some(vec![])),
        2 | 3 => (Some(vec![2]), Some(vec![2])),
        4 => (Some(vec![2, 4]), Some(vec![2])),
        5 => (None, Some(vec![2])),
        6 => (Some(vec![]), Some(vec![2])),
        _ => (Some(vec![7]), Some(vec![2, 7])),
    }
}

async fn until_the_end(e: &Engine) -> usize {
    for n in 0..DROP_STEPS {
        if drop_step(e, n).await.is_err() {
            return n;
        }
    }
    DROP_STEPS
}

/// proves D1, D2: a transaction is in both streams or in none, a dropped stream is there with all its rows or not at all.
#[tokio::test]
async fn power_goes_at_every_call_while_streams_are_dropped_and_made_again() {
    let machine = CrashDisk::default();
    let e = open_on(&machine, START).await.unwrap();
    assert_eq!(until_the_end(&e).await, DROP_STEPS);
    drop(e);
    for k in 1..=machine.power.calls() {
        for cut in [Cut::NotApplied, Cut::AppliedNotAcknowledged] {
            let unsynced = [Unsynced::Lost, Unsynced::Torn, Unsynced::Kept][k as usize % 3];
            let machine = CrashDisk::default();
            machine.power.cut_at(k, cut);
            let mut done = 0;
            if let Ok(e) = open_on(&machine, START).await {
                done = until_the_end(&e).await;
            }
            let last = machine.reopen(unsynced);
            let at = format!("call {k}, {cut:?}, {unsynced:?}, {done} done");
            let e = open_on(&last, START).await.unwrap_or_else(|e| panic!("{at}: {e}"));
            let mut found = Vec::new();
            for name in ["gone", "kept"] {
                let id = e.read().stream_named("default", name).map(|s| s.def.id);
                found.push(match id {
                    Some(id) => Some(values(&e, id).await),
                    None => None,
                });
            }
            let found = (found[0].clone(), found[1].clone());
            let before = if done == 0 { (None, None) } else { after_drop_step(done - 1) };
            assert!([before, after_drop_step(done.min(DROP_STEPS - 1))].contains(&found), "{at}: there is {found:?}");
            e.settle(None).await.unwrap();
            let listed: Vec<_> = last.store("data").list(None).try_collect().await.unwrap();
            let named: usize = e.manifest().streams().map(|s| s.parts.size()).sum();
            assert_eq!(listed.len(), named, "{at}: what is stored is what the manifest names");
        }
    }
}

const PARTITION_STEPS: usize = 8;

/// Partitions are dropped with rows in parts, in staged parts and in the tail.
async fn partition_step(e: &Engine, s: &mut StreamId, n: usize) -> Result<()> {
    let in_both = |v: i64| rows(&[("a", START.0 + v, v), ("b", START.0 + 31 * DAY, v + 100)]);
    let first = (START.0 / (30 * DAY)).to_string();
    match n {
        0 => *s = e.create_stream(def("s", vec![]), true).await?,
        1 | 5 => _ = e.insert(*s, vec![in_both(n as i64)], v1()).await?,
        2 => e.flush(None).await?,
        3 => {
            let mut staged = e.stage(*s, v1()).await?;
            staged.push(in_both(3)).await?;
            staged.finish().await?;
        }
        4 | 6 => _ = e.drop_partition(*s, &first).await?,
        _ => e.settle(None).await?,
    }
    Ok(())
}

fn after_partition_step(n: usize) -> Vec<i64> {
    match n {
        0 => vec![],
        1 | 2 => vec![1, 101],
        3 => vec![1, 3, 101, 103],
        4 => vec![101, 103],
        5 => vec![5, 101, 103, 105],
        _ => vec![101, 103, 105],
    }
}

/// proves F10: a partition is dropped whole or not at all, and its objects with it.
#[tokio::test]
async fn power_goes_at_every_call_while_partitions_are_dropped() {
    let work = async |e: &Engine, s: &mut StreamId| {
        for n in 0..PARTITION_STEPS {
            if partition_step(e, s, n).await.is_err() {
                return n;
            }
        }
        PARTITION_STEPS
    };
    let machine = CrashDisk::default();
    let e = open_on(&machine, START).await.unwrap();
    assert_eq!(work(&e, &mut StreamId::default()).await, PARTITION_STEPS);
    drop(e);
    for k in 1..=machine.power.calls() {
        for cut in [Cut::NotApplied, Cut::AppliedNotAcknowledged] {
            let unsynced = [Unsynced::Lost, Unsynced::Torn, Unsynced::Kept][k as usize % 3];
            let machine = CrashDisk::default();
            machine.power.cut_at(k, cut);
            let (mut done, mut s) = (0, StreamId::default());
            if let Ok(e) = open_on(&machine, START).await {
                done = work(&e, &mut s).await;
            }
            let again = machine.reopen(unsynced);
            again.power.cut_at(1 + k % 5, cut);
            let _ = open_on(&again, START).await;
            let last = again.reopen(unsynced);
            let at = format!("call {k}, {cut:?}, {unsynced:?}, {done} done");
            let e = open_on(&last, START).await.unwrap_or_else(|e| panic!("{at}: {e}"));
            let found = match e.read().stream_named("default", "s").map(|s| s.def.id) {
                Some(id) => values(&e, id).await,
                None => Vec::new(),
            };
            let before = if done == 0 { vec![] } else { after_partition_step(done - 1) };
            assert!([before, after_partition_step(done.min(PARTITION_STEPS - 1))].contains(&found), "{at}: there is {found:?}");
            e.settle(None).await.unwrap();
            let listed: Vec<_> = last.store("data").list(None).try_collect().await.unwrap();
            let named: usize = e.manifest().streams().map(|s| s.parts.size()).sum();
            assert_eq!(listed.len(), named, "{at}: what is stored is what the manifest names");
        }
    }
}
