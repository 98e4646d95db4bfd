//! Doing what was planned: one file per kind of plan, and `run` as one match.
//!
//! `registry` knows what runs (a part is in at most one job, I6) and what failed. A job's commit stands on what its plan stood on; if
//! that changed, the commit is refused and the part is planned anew (I13). A failed job leaves its sources untouched.

pub mod drop;
pub mod expire;
pub mod fate;
pub mod fold;
pub mod forget;
pub mod measure;
pub mod moves;
pub mod recompress;
pub mod registry;
pub mod release;
pub mod replace;
pub mod rewrite;
pub mod source;
pub mod told;
pub mod vacuum;

use crate::{core::Core, plan::Plan};
use ebb_storage::{Error, ErrorKind, Result, ids::PartId};
use registry::JobGuard;
use std::sync::Arc;

/// Whether the parts still are the stream's: then what was not found is a file, and planning anew does not help.
fn are_listed(core: &Core, plan: &Plan) -> bool {
    core.stream(plan.stream()).is_ok_and(|s| plan.parts().iter().all(|p| s.parts.contains_key(p)))
}

/// What to say of a file that was not found though its part is listed.
fn as_lost(core: &Core, plan: &Plan, e: Error) -> Error {
    match e.kind() {
        ErrorKind::NotFound if are_listed(core, plan) => Error::corrupt(format!("a part's file is missing: {e}")),
        _ => e,
    }
}

/// Whether a disk that the plan needs is away: no fault of the part, which waits until it is back.
fn is_outage(core: &Core, plan: &Plan, e: &Error) -> bool {
    if e.kind() != ErrorKind::Unavailable {
        return false;
    }
    let state = core.stream(plan.stream()).ok();
    let place = |p: &PartId| state.as_ref()?.parts.get(p).map(|m| m.placement.disk);
    let mut disks = plan.targets().iter().map(|t| t.disk).chain(plan.parts().iter().filter_map(place));
    disks.any(|id| core.disks.known(id).is_none_or(|d| d.away().is_some()))
}

/// Whether an error is the part's own: not that others changed it, that a disk is away, or that the engine is at its end.
fn is_failure(core: &Core, plan: &Plan, e: &Error) -> bool {
    !matches!(e.kind(), ErrorKind::Conflict | ErrorKind::NotFound | ErrorKind::Fenced) && !is_outage(core, plan, e)
}

/// Carries out a plan whose parts the guard holds; what failed is remembered with its parts.
pub async fn run(core: &Arc<Core>, plan: Plan, guard: JobGuard) -> Result<()> {
    let done = match &plan {
        Plan::Drop { .. } => drop::run(core, &plan).await,
        Plan::Release { .. } => release::run(core, &plan).await,
        Plan::Expire { .. } => expire::run(core, &plan, &guard).await,
        Plan::Prune { .. } | Plan::Merge { .. } | Plan::Fold { .. } => rewrite::run(core, &plan, &guard).await,
        Plan::Move { .. } => moves::run(core, &plan, &guard).await,
        Plan::Recompress { .. } => recompress::run(core, &plan, &guard).await,
        Plan::Forget { .. } => forget::run(core, &plan, &guard).await,
        Plan::Measure { .. } => measure::run(core, &plan, &guard).await,
    };
    let done = done.map_err(|e| as_lost(core, &plan, e));
    match &done {
        // These say of each part how it went.
        Ok(()) if matches!(plan, Plan::Measure { .. } | Plan::Prune { .. } | Plan::Expire { .. } | Plan::Recompress { .. }) => {}
        Ok(()) => core.jobs.succeeded(plan.parts()),
        // Planned anew from what is there now: no failure of the part.
        Err(e) if e.kind() == ErrorKind::Conflict || e.kind() == ErrorKind::NotFound => {}
        Err(e) if is_outage(core, &plan, e) || matches!(plan, Plan::Prune { .. } | Plan::Expire { .. } | Plan::Recompress { .. }) => {
            core.note(e);
        }
        Err(e) => {
            core.note(e);
            core.jobs.failed(plan.parts(), core.now(), e);
            told::failure(core, &plan, e).await;
        }
    }
    std::mem::drop(guard);
    done
}
