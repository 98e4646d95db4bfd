//! A fast-forward of a branch beside what rules remove from main meanwhile.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod support;

use ebb_engine::{AsOf, Engine, Result};
use ebb_storage::testkit::crash_store::CrashDisk;
use std::sync::Arc;
use support::{
    power::{Loss, cut_everywhere, steps, whole},
    *,
};

/// proves I11: a branch that was moved counts what rules removed until then, from the record on and whatever is lost after it.
#[tokio::test]
async fn a_fast_forward_moves_the_horizon_with_its_record() {
    const STEPS: usize = 4;
    let old = |v: i64| ("a", START.0 - 2 * DAY + v, v);
    let scenario = async |machine: &CrashDisk| -> usize {
        let Ok(e) = open_on(machine, START).await else { return 0 };
        let rules = vec![delete("ts + 1 days", Some("v = 1"), 1)];
        let Ok(s) = e.create_stream(with(def("s", rules), "merge_with_ttl_timeout", 0), false).await else { return 0 };
        let step = async |i: usize| -> Result<()> {
            match i {
                0 => e.insert(s, vec![rows(&[old(1), old(2)])], v1()).await.map(|_| ()),
                1 => e.create_ref(s, branch("b")).await.map(|_| ()),
                2 => {
                    // From here on main has lost a row that the branch still sees.
                    e.settle(None).await?;
                    e.insert(s, vec![rows(&[old(3)])], v1()).await.map(|_| ())
                }
                _ => e.fast_forward(s, "b", "main").await.map(|_| ()),
            }
        };
        steps(STEPS, step).await
    };
    let verify = async |machine: &CrashDisk, e: Arc<Engine>, done: usize, loss: Loss| {
        let Some(s) = e.read().streams().next().map(|s| s.def.id) else { return assert_eq!(done, 0, "{loss}") };
        if done < 2 {
            return;
        }
        let of_branch = async || {
            let view = e.read().stream_as_of(s, &AsOf::Name("b".into()), e.now()).unwrap();
            assert!(!view.of_main, "{loss}");
            rows_of(&view).await.into_iter().map(|(v, _)| v).collect::<Vec<_>>()
        };
        let moved = of_branch().await;
        assert!(moved == [1, 2] && done < STEPS || moved == [2, 3] && done + 1 >= STEPS, "{loss}: after {done} steps {moved:?}");
        e.settle(None).await.unwrap();
        e.optimize(s, None, true).await.unwrap();
        e.settle(None).await.unwrap();
        assert_eq!(of_branch().await, moved, "{loss}");
        let main: Vec<i64> = values(&e, s).await;
        assert!([vec![2], vec![2, 3]].contains(&main), "{loss}: {main:?}");
        whole(machine, &["data"], &e, loss).await;
    };
    let open = async |machine: &CrashDisk, _: &usize| open_on(machine, START).await;
    assert_eq!(cut_everywhere(scenario, open, verify).await, STEPS);
}
