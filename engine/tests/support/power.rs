//! Power that goes at every changing call of a scenario, the call done or not, and what is looked at afterwards.

use super::*;
use ebb_storage::testkit::{crash_store::Unsynced, power::Cut};
use std::fmt;

/// Opening is cut, too, at one of its first calls.
const OPENING_CALLS: u64 = 5;

/// One loss of power.
#[derive(Debug, Clone, Copy)]
pub struct Loss {
    /// The changing call, from 1.
    pub call: u64,
    pub cut: Cut,
    pub unsynced: Unsynced,
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "call {}, {:?}, {:?}", self.call, self.cut, self.unsynced)
    }
}

/// Both ways of cutting each of so many calls.
pub fn losses(calls: u64) -> impl Iterator<Item = Loss> {
    let unsynced = |k: u64| [Unsynced::Lost, Unsynced::Torn, Unsynced::Kept][k as usize % 3];
    let both = move |call| [Cut::NotApplied, Cut::AppliedNotAcknowledged].map(|cut| Loss { call, cut, unsynced: unsynced(call) });
    (1..=calls).flat_map(both)
}

/// Does `scenario` once on a machine that stays on, whose answer this returns; then again for each changing call, with the power cut
/// there. What is left is opened by `open`, which is cut as well, and once more; that one `look` is given, with what `scenario` said.
pub async fn cut_everywhere<T>(
    scenario: impl AsyncFn(&CrashDisk) -> T,
    open: impl AsyncFn(&CrashDisk, &T) -> Result<Arc<Engine>>,
    look: impl AsyncFn(&CrashDisk, Arc<Engine>, T, Loss),
) -> T {
    let machine = CrashDisk::default();
    let whole = scenario(&machine).await;
    let calls = machine.power.calls();
    assert!(calls > 10, "{calls}");
    for loss in losses(calls) {
        let machine = CrashDisk::default();
        machine.power.cut_at(loss.call, loss.cut);
        let done = scenario(&machine).await;
        let again = machine.reopen(loss.unsynced);
        again.power.cut_at(1 + loss.call % OPENING_CALLS, loss.cut);
        let _ = open(&again, &done).await;
        let last = again.reopen(loss.unsynced);
        let e = open(&last, &done).await.unwrap_or_else(|e| panic!("{loss}: {e}"));
        look(&last, e, done, loss).await;
    }
    whole
}

/// Does steps until one fails; how many were acknowledged.
pub async fn steps(n: usize, mut step: impl AsyncFnMut(usize) -> Result<()>) -> usize {
    for i in 0..n {
        if step(i).await.is_err() {
            return i;
        }
    }
    n
}

/// That the manifest is whole, and what is stored on these disks is what it names.
pub async fn whole(machine: &CrashDisk, disks: &[&str], e: &Engine, at: impl fmt::Display) {
    let mut left = 0;
    for disk in disks {
        left += tiered::stored(machine, disk).await;
    }
    let named: usize = e.manifest().streams().map(|s| s.parts.size()).sum();
    assert_eq!(left, named, "{at}: what is stored is what the manifest names");
    assert_eq!(ebb_storage::manifest::invariants::violations(&e.manifest()), Vec::<String>::new(), "{at}");
}
