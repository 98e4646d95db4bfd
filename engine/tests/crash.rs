//! Power goes at every changing call, the call done or not, also while opening again: what was acknowledged is there once, the rest
//! whole or not at all, and what is stored is what the manifest names.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod support;

use ebb_engine::{Engine, Result};
use ebb_storage::{ids::StreamId, testkit::crash_store::CrashDisk};
use support::{
    power::{Loss, cut_everywhere, steps, whole},
    *,
};

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

async fn verify(machine: &CrashDisk, e: &Engine, acknowledged: usize, at: Loss) {
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
    whole(machine, &["data"], e, at).await;
}

/// proves T14, F7, F9, F10, F12, F16; I9, I11
#[tokio::test]
async fn power_goes_at_every_changing_call() {
    let scenario = async |machine: &CrashDisk| match open_on(machine, START).await {
        Ok(e) => {
            let mut s = StreamId::default();
            steps(STEPS, async |n| step(&e, &mut s, n).await).await
        }
        Err(_) => 0,
    };
    let open = async |machine: &CrashDisk, _: &usize| open_on(machine, START).await;
    let done = cut_everywhere(scenario, open, async |machine, e, done, loss| verify(machine, &e, done, loss).await).await;
    assert_eq!(done, STEPS);
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

/// proves D1, D2: a transaction is in both streams or in none, a dropped stream is there with all its rows or not at all.
#[tokio::test]
async fn power_goes_at_every_call_while_streams_are_dropped_and_made_again() {
    let scenario = async |machine: &CrashDisk| match open_on(machine, START).await {
        Ok(e) => steps(DROP_STEPS, async |n| drop_step(&e, n).await).await,
        Err(_) => 0,
    };
    let open = async |machine: &CrashDisk, _: &usize| open_on(machine, START).await;
    let look = async |machine: &CrashDisk, e: std::sync::Arc<Engine>, done: usize, at: Loss| {
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
        assert!([before, after_drop_step(done.min(DROP_STEPS - 1))].contains(&found), "{at}: after {done} steps there is {found:?}");
        e.settle(None).await.unwrap();
        whole(machine, &["data"], &e, at).await;
    };
    assert_eq!(cut_everywhere(scenario, open, look).await, DROP_STEPS);
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
    let scenario = async |machine: &CrashDisk| match open_on(machine, START).await {
        Ok(e) => {
            let mut s = StreamId::default();
            steps(PARTITION_STEPS, async |n| partition_step(&e, &mut s, n).await).await
        }
        Err(_) => 0,
    };
    let open = async |machine: &CrashDisk, _: &usize| open_on(machine, START).await;
    let look = async |machine: &CrashDisk, e: std::sync::Arc<Engine>, done: usize, at: Loss| {
        let found = match e.read().stream_named("default", "s").map(|s| s.def.id) {
            Some(id) => values(&e, id).await,
            None => Vec::new(),
        };
        let before = if done == 0 { vec![] } else { after_partition_step(done - 1) };
        let allowed = [before, after_partition_step(done.min(PARTITION_STEPS - 1))];
        assert!(allowed.contains(&found), "{at}: after {done} steps there is {found:?}");
        e.settle(None).await.unwrap();
        whole(machine, &["data"], &e, at).await;
    };
    assert_eq!(cut_everywhere(scenario, open, look).await, PARTITION_STEPS);
}
