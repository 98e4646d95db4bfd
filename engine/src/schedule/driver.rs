//! The loop that keeps the house: has tails flushed that are due, starts what `plan` says while places are free, has deleted what nobody
//! holds, has checkpoints written; then sleeps until something changes or the clock reaches what comes next.
//!
//! Never decides by itself what is due: that is `plan`'s. Never waits for a disk or a statement in a round: what may take long runs beside
//! it. Never holds the engine open: it keeps only a weak handle while it waits.

use crate::{
    core::Core,
    history::{self, pace::Pace},
    job, logs,
    plan::{self, Plan, StreamView},
    schedule::{
        chores::{Chore, Chores},
        tails::flush_at,
        views::{relief, stream_view},
    },
};
use ebb_storage::{
    ErrorKind, Result, Timestamp,
    clock::pause,
    ids::{DiskId, PartId, StreamId},
    manifest::StreamState,
    refs::Reader,
};
use std::{
    collections::HashSet,
    sync::{Arc, Weak},
    time::Duration,
};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Rounds are at least this far apart, so that a storm of inserts is not a storm of planning.
const BREATH: Duration = Duration::from_millis(5);
/// A round is made at least this often, in the machine's time: for what failed for reasons outside.
const LONGEST_SLEEP: Duration = Duration::from_secs(5);

pub fn spawn(core: &Arc<Core>, stop: CancellationToken) -> JoinHandle<()> {
    tokio::spawn(run(Arc::downgrade(core), stop))
}

async fn run(core: Weak<Core>, stop: CancellationToken) {
    // When histories were looked at.
    let mut pace = Pace::default();
    let mut chores = Chores::default();
    loop {
        let (clock, mut live, mut jobs, wake_at) = {
            let Some(core) = core.upgrade() else { return };
            let (live, jobs) = (core.live.changes(), core.jobs.changes());
            let wake_at = match round(&core, &mut pace, &mut chores).await {
                Ok(at) => at,
                Err(e) => {
                    core.note(&e);
                    None
                }
            };
            (core.options.clock.clone(), live, jobs, wake_at)
        };
        pause(BREATH).await;
        tokio::select! {
            () = stop.cancelled() => return chores.end().await,
            () = chores.one_is_done() => {}
            _ = live.changed() => {}
            _ = jobs.changed() => {}
            () = clock.sleep_until(wake_at.unwrap_or(Timestamp::MAX)) => {}
            () = pause(LONGEST_SLEEP) => {}
        }
    }
}

/// One round; when to make the next at the latest.
async fn round(core: &Arc<Core>, pace: &mut Pace, chores: &mut Chores) -> Result<Option<Timestamp>> {
    let now = core.now();
    chores.tidy();
    let mut wake_at: Option<Timestamp> = None;
    let mut sooner = |at: Timestamp| wake_at = Some(wake_at.map_or(at, |w| w.min(at)));
    for stream in streams_with_tails(core) {
        match passed_over(core, flush_at(core, stream))?.flatten() {
            Some(at) if at <= now => Chore::flush(&core.live.read().manifest, stream).into_iter().for_each(|c| chores.start(core, c)),
            Some(at) => sooner(at),
            None => {}
        }
    }
    forget(core, pace, now, &mut sooner).await?;
    let states: Vec<Arc<StreamState>> = core.live.read().manifest.streams().cloned().collect();
    core.quiet.retain(|id| states.iter().any(|s| s.def.id == id));
    let (mut plans, mut promised) = (Vec::new(), Vec::new());
    let relief = relief(core, now);
    for state in states {
        let ground = core.ground();
        // Room that others took may ask a stream for parts, though nothing of it has changed.
        if relief.is_none()
            && let Some(wakes) = core.quiet.until(&state, &ground, now)
        {
            wakes.iter().for_each(|w| sooner(*w));
            continue;
        }
        let Some(view) = passed_over(core, stream_view(core, &state))? else { continue };
        let mut view = StreamView { relief: relief.clone(), ..view };
        promised.iter().for_each(|(disk, coming, leaving)| Arc::make_mut(&mut view.tiers).reckon(*disk, *coming, *leaving));
        let planned = plan::plan(&view, now);
        debug_assert_eq!(plan::check::violations(&view, &planned.plans), Vec::<String>::new(), "of {}", state.def.full_name());
        core.quiet.looked(&state, ground, &planned);
        planned.wake_at.iter().for_each(|at| sooner(*at));
        let new = planned.plans;
        promised.extend(new.iter().flat_map(|p| promises(p, &state)));
        plans.extend(new.into_iter().map(|p| (p, state.clone())));
    }
    start(core, plans);
    if job::vacuum::is_due(core) {
        chores.start(core, Chore::Vacuum);
    }
    if let Some(dir) = &core.dir {
        // Without room it is tried again in the next round.
        _ = dir.restore_reserve_if_roomy();
    }
    if core.committer.checkpoint_due() || logs::moving::is_due(core) {
        chores.start(core, Chore::Books);
    }
    Ok(wake_at)
}

/// What of one stream goes wrong keeps nothing else of a round, least of all what makes room: it is noted.
///
/// # Errors
/// Where the engine is at its end.
fn passed_over<T>(core: &Core, done: Result<T>) -> Result<Option<T>> {
    match done {
        Ok(done) => Ok(Some(done)),
        Err(e) if e.kind() == ErrorKind::Fenced => Err(e),
        Err(e) => {
            core.note(&e);
            Ok(None)
        }
    }
}

/// Lets go of history that is due.
async fn forget(core: &Arc<Core>, pace: &mut Pace, now: Timestamp, sooner: &mut impl FnMut(Timestamp)) -> Result<()> {
    let states: Vec<Arc<StreamState>> = core.live.read().manifest.streams().cloned().collect();
    pace.retain(|id| states.iter().any(|s| s.def.id == id));
    for state in states {
        let id = state.def.id;
        let before = readers_of(core, id);
        match pace.due_at((&state, &before), now) {
            Some(at) if at > now => sooner(at),
            None => {}
            Some(_) => match passed_over(core, history::run_due_unless_changing(core, id).await)? {
                // A statement that takes its time holds up nobody else: its stream's turn comes after it.
                Some(None) => {}
                Some(Some((_, next))) => {
                    next.iter().for_each(|at| sooner(*at));
                    let after = core.live.read().manifest.stream(id).cloned();
                    pace.looked(after.unwrap_or(state), readers_of(core, id), now, next);
                }
                None => pace.looked(state, before, now, None),
            },
        }
    }
    Ok(())
}

fn readers_of(core: &Core, stream: StreamId) -> Vec<Arc<Reader>> {
    let live = core.live.read();
    live.manifest.readers.values().filter(|r| r.stream == stream).cloned().collect()
}

/// What a plan brings to disks and takes off them: disk, bytes that come, bytes that leave.
fn promises(plan: &Plan, state: &StreamState) -> Vec<(DiskId, u64, u64)> {
    let place = |id: &PartId| state.parts.get(id).map(|m| (m.placement.disk, m.placement.bytes));
    let mut all: Vec<(DiskId, u64, u64)> = Vec::new();
    for (i, (disk, bytes)) in plan.parts().iter().filter_map(place).enumerate() {
        let Some(target) = plan.targets().get(i.min(plan.targets().len().saturating_sub(1))) else { continue };
        all.push((target.disk, bytes, 0));
        if target.disk != disk {
            all.push((disk, 0, bytes));
        }
    }
    all
}

/// Starts plans while places are free, the cheapest and most urgent kinds first.
fn start(core: &Arc<Core>, mut plans: Vec<(Plan, Arc<StreamState>)>) {
    let order = |p: &Plan| match p {
        Plan::Drop { .. } | Plan::Release { .. } => 0,
        Plan::Prune { .. } | Plan::Fold { .. } | Plan::Expire { .. } => 1,
        Plan::Measure { .. } => 2,
        Plan::Move { .. } => 3,
        Plan::Merge { .. } => 4,
        Plan::Recompress { .. } => 5,
        Plan::Forget { .. } => 6,
    };
    plans.sort_by_key(|(p, _)| order(p));
    let server = core.server();
    // What is due of a partition is begun together, or the one would have the other wait for the distance of prunes.
    let mut begun: HashSet<(StreamId, Arc<str>)> = HashSet::new();
    for (plan, state) in plans {
        let partition = plan.pruned_partition();
        let joins = partition.as_ref().is_some_and(|p| begun.contains(p));
        if !joins && !core.jobs.counts().admit(&plan, &server) {
            continue;
        }
        if let Some(guard) = core.jobs.begin(core.epoch(), &plan, &state) {
            begun.extend(partition);
            let core = core.clone();
            tokio::spawn(async move { job::run(&core, plan, guard).await });
        }
    }
}

pub fn streams_with_tails(core: &Core) -> Vec<StreamId> {
    core.live.read().tails().map(|(id, _)| *id).collect()
}
