//! part_log and lifecycle_log: each row once, wherever it lies, whatever happens; and nobody but Ebb writes them.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod support;

use ebb_engine::{Clock, Engine, ErrorKind, InsertOptions, Log, Result, Timestamp};
use ebb_storage::{
    ids::SchemaVersion,
    interval::Interval,
    manifest::edit::{LifecycleLogRow, PartLogRow},
    testkit::crash_store::CrashDisk,
};
use support::{
    power::{Loss, cut_everywhere},
    *,
};

type Logs = (Vec<PartLogRow>, Vec<LifecycleLogRow>);

async fn logs(e: &Engine) -> Logs {
    (e.part_log().await.unwrap(), e.lifecycle_log().await.unwrap())
}

/// Rows that wait in the manifest.
fn waiting(e: &Engine) -> (usize, usize) {
    (e.manifest().part_log.len(), e.manifest().lifecycle_log.len())
}

fn own_streams(e: &Engine) -> Vec<ebb_storage::ids::StreamId> {
    e.manifest().streams().filter(|s| s.def.is_internal()).map(|s| s.def.id).collect()
}

/// Adds a row, flushes, lets a day pass, settles: rows in both logs.
async fn live_a_day(e: &Engine, v: i64) -> Result<()> {
    let s = e.create_stream(with(def("s", vec![delete("ts + 1 days", None, 1)]), "merge_with_ttl_timeout", 0), true).await?;
    let now = e.now().0;
    e.insert(s, vec![rows(&[("a", now, v), ("b", now + 40 * DAY, 100 + v)])], v1()).await?;
    e.flush(Some(s)).await?;
    e.advance_clock(Interval::days(1))?;
    e.settle(Some(s)).await
}

#[tokio::test]
async fn rows_move_to_their_streams_and_read_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let e = open(dir.path()).await;
    live_a_day(&e, 1).await.unwrap();
    let before = logs(&e).await;
    assert!(before.0.len() > 3 && !before.1.is_empty(), "{before:?}");
    assert!(before.1.iter().all(|r| !r.columns.is_empty()));
    e.checkpoint().await.unwrap();
    assert_eq!(waiting(&e), (0, 0));
    assert_eq!(logs(&e).await, before, "from the tail of their streams");
    live_a_day(&e, 2).await.unwrap();
    let more = logs(&e).await;
    assert!(more.0.starts_with(&before.0) && more.0.len() > before.0.len(), "from both places");
    e.flush(None).await.unwrap();
    e.checkpoint().await.unwrap();
    e.flush(None).await.unwrap();
    for log in Log::ALL {
        e.optimize(e.read().log(log).unwrap().0.def.id, None, true).await.unwrap();
        assert_eq!(e.read().log(log).unwrap().0.parts.len(), 1);
    }
    assert_eq!(logs(&e).await, more, "from parts, whose own making left no rows");
    e.close().await.unwrap();
    drop(e);
    let e = Engine::open(options(dir.path(), Clock::simulated(Timestamp(START.0 + 2 * DAY)), false)).await.unwrap();
    assert_eq!(logs(&e).await.0[..more.0.len()], more.0);
    assert!(ebb_engine::inspect::check(dir.path()).await.unwrap().is_clean());
}

/// 30 days for part_log, a year for lifecycle_log, by whole weeks.
#[tokio::test]
async fn old_rows_go() {
    let dir = tempfile::tempdir().unwrap();
    let e = open(dir.path()).await;
    live_a_day(&e, 1).await.unwrap();
    e.checkpoint().await.unwrap();
    e.flush(None).await.unwrap();
    let (parts, rules) = logs(&e).await;
    e.advance_clock(Interval::days(28)).unwrap();
    e.settle(None).await.unwrap();
    assert_eq!(logs(&e).await.0[..parts.len()], parts);
    e.advance_clock(Interval::days(10)).unwrap();
    e.settle(None).await.unwrap();
    let (left, kept) = logs(&e).await;
    assert!(!left.contains(&parts[0]), "{left:?}");
    assert_eq!(kept[..rules.len()], rules);
    e.advance_clock(Interval::days(330)).unwrap();
    e.settle(None).await.unwrap();
    assert!(!logs(&e).await.1.contains(&rules[0]));
}

#[tokio::test]
async fn nobody_else_changes_them() {
    let dir = tempfile::tempdir().unwrap();
    let e = open(dir.path()).await;
    assert_eq!((e.read().streams().count(), own_streams(&e).len(), e.status().streams), (0, 2, 0));
    let taken = ebb_storage::stream_def::StreamDef { database: "system".to_owned(), ..def("mine", vec![]) };
    assert_eq!(e.create_stream(taken, false).await.unwrap_err().kind(), ErrorKind::Invalid);
    let mine = e.create_stream(def("mine", vec![]), false).await.unwrap();
    assert_eq!(e.rename_stream(mine, "system", "mine").await.unwrap_err().kind(), ErrorKind::Invalid);
    for id in own_streams(&e) {
        let row = e.read().log(Log::Part).unwrap().1;
        let options = || InsertOptions { schema_version: SchemaVersion(1), ..InsertOptions::default() };
        let refused = [
            e.insert(id, vec![row.clone()], options()).await.map(|_| ()).unwrap_err(),
            e.stage(id, options()).await.map(|_| ()).unwrap_err(),
            e.transaction().insert(id, vec![row], options()).await.map(|_| ()).unwrap_err(),
            e.truncate(id).await.map(|_| ()).unwrap_err(),
            e.drop_stream(id).await.unwrap_err(),
            e.rename_stream(id, "default", "x").await.unwrap_err(),
            e.alter_stream(id, |d| Ok(d.clone())).await.map(|_| ()).unwrap_err(),
        ];
        for error in refused {
            assert!(error.message().contains("Ebb's own"), "{error}");
        }
    }
}

const STEPS: usize = 8;

async fn step(e: &Engine, n: usize) -> Result<()> {
    match n {
        0 | 2 | 4 => live_a_day(e, n as i64).await,
        1 | 5 => e.checkpoint().await,
        3 => e.flush(None).await,
        6 => e.settle(None).await,
        _ => e.checkpoint().await,
    }
}

/// What is in `known` is in `found`, once; and nothing is twice.
fn holds(found: &Logs, known: &Logs, at: &str) {
    for row in &known.0 {
        assert_eq!(found.0.iter().filter(|r| *r == row).count(), 1, "{at}: {row:?}");
    }
    for row in &known.1 {
        assert_eq!(found.1.iter().filter(|r| *r == row).count(), 1, "{at}: {row:?}");
    }
    let mut keys: Vec<_> = found.0.iter().map(|r| (r.event.name(), r.stream.as_str(), r.part.as_str())).collect();
    let all = keys.len();
    keys.sort_unstable();
    keys.dedup();
    assert_eq!(keys.len(), all, "{at}: a row of part_log is there twice");
    let mut keys: Vec<_> = found.1.iter().map(|r| (r.part.as_str(), r.rule.as_str())).collect();
    let all = keys.len();
    keys.sort_unstable();
    keys.dedup();
    assert_eq!(keys.len(), all, "{at}: a row of lifecycle_log is there twice");
}

/// proves D11: at every write on the way of a row into its stream the power goes.
#[tokio::test]
async fn each_row_is_there_once_whenever_the_power_goes() {
    let scenario = async |machine: &CrashDisk| {
        let mut known = Logs::default();
        if let Ok(e) = open_on(machine, START).await {
            for n in 0..STEPS {
                if step(&e, n).await.is_err() || machine.power.is_off() {
                    break;
                }
                known = logs(&e).await;
            }
        }
        known
    };
    let open = async |machine: &CrashDisk, _: &Logs| open_on(machine, Timestamp(START.0 + 9 * DAY)).await;
    let look = async |_: &CrashDisk, e: std::sync::Arc<Engine>, known: Logs, loss: Loss| {
        let at = loss.to_string();
        let found = logs(&e).await;
        holds(&found, &known, &at);
        // What lay in both places is not moved again.
        e.checkpoint().await.unwrap();
        assert_eq!(logs(&e).await, found, "{at}");
        if !loss.call.is_multiple_of(4) {
            return;
        }
        live_a_day(&e, 50).await.unwrap();
        e.checkpoint().await.unwrap();
        e.settle(None).await.unwrap();
        holds(&logs(&e).await, &found, &at);
    };
    let known = cut_everywhere(scenario, open, look).await;
    assert!(!known.0.is_empty() && !known.1.is_empty());
}
