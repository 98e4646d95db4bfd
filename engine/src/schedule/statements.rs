//! FLUSH, SETTLE, OPTIMIZE, STOP, START, ADVANCE CLOCK: work on request.
//!
//! Nothing here waits for the database's clock to move: it may stand still.

use crate::{
    Engine,
    core::Core,
    deduplicate::{Copies, CopiesOf},
    delete::Deleted,
    history,
    ingest::flush,
    job, limits,
    plan::{self, Plan, Stops, optimize},
    schedule::{driver, views},
};
use ebb_storage::{
    Clock, Error, ErrorKind, Result, Timestamp, decision,
    ids::{PartId, StreamId},
    interval::Interval,
    manifest::StreamState,
    rules::{Destination, DestinationKind},
    verb::Verb,
};
use std::{collections::BTreeSet, sync::Arc};

/// What SYSTEM STOP stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stop {
    Merges,
    TtlMerges,
    Moves,
}

/// The row that OPTIMIZE answers with.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Optimized {
    pub parts_before: u64,
    pub parts_after: u64,
    pub rows_before: u64,
    pub rows_after: u64,
    pub bytes_before: u64,
    pub bytes_after: u64,
    /// Kinds of work done: drop, prune, merge.
    pub actions: Vec<String>,
    /// Why parts were left as they are.
    pub left_out: BTreeSet<String>,
    /// Copies of rows that were removed.
    pub copies: Deleted,
    /// How many parts they lie in, and the bytes of those.
    pub copies_in: (u64, u64),
}

impl Engine {
    /// Brings the tail of one stream, or of all, into parts.
    pub async fn flush(&self, stream: Option<StreamId>) -> Result<()> {
        for id in driver::streams_with_tails(&self.core).into_iter().filter(|id| stream.is_none_or(|s| s == *id)) {
            flush::flush(&self.core, id).await?;
        }
        Ok(())
    }

    /// [`Self::flush`] that goes on where one stream cannot be flushed; why the first could not.
    async fn flush_all(&self, stream: Option<StreamId>) -> Option<Error> {
        let mut failed = None;
        for id in driver::streams_with_tails(&self.core).into_iter().filter(|id| stream.is_none_or(|s| s == *id)) {
            if let Err(e) = flush::flush(&self.core, id).await {
                failed.get_or_insert(e);
            }
        }
        failed
    }

    /// Flushes, then returns when nothing that may run is due at the clock's present time. What fails and backs off is not due.
    pub async fn settle(&self, stream: Option<StreamId>) -> Result<()> {
        let core = &self.core;
        core.disks.look_for_the_lost().await;
        let mut unflushed = self.flush_all(stream).await;
        for _ in 0..limits::SETTLE_ROUNDS {
            core.jobs.wait(stream).await;
            let now = core.now();
            let states: Vec<Arc<StreamState>> = core.live.read().manifest.streams().cloned().collect();
            let (mut any, mut waits_for_room) = (false, false);
            let relief = views::relief(core, now);
            for state in states.into_iter().filter(|s| stream.is_none_or(|id| s.def.id == id)) {
                if decision::reopening(history::run_due(core, state.def.id)).await?.0 {
                    any = true;
                    continue;
                }
                let ground = core.ground();
                if relief.is_none() && core.quiet.until(&state, &ground, now).is_some() {
                    continue;
                }
                let view = plan::StreamView { relief: relief.clone(), ..views::stream_view(core, &state)? };
                let planned = plan::plan(&view, now);
                core.quiet.looked(&state, ground, &planned);
                waits_for_room |= planned.waits_for_room;
                for plan in planned.plans {
                    any = true;
                    _ = carry_out(core, plan, &state).await?;
                }
            }
            if !any && !core.jobs.works_on(stream) {
                // What was removed made room that something waits for.
                let vacuumed = decision::reopening(job::vacuum::run(core)).await?;
                if unflushed.is_some() && vacuumed > 0 {
                    unflushed = self.flush_all(stream).await;
                    continue;
                }
                if vacuumed == 0 || !waits_for_room {
                    return unflushed.map_or(Ok(()), Err);
                }
            }
        }
        Err(Error::internal("the work that is due does not come to an end"))
    }

    /// Flushes, then one eager round of merging; with `final_` until every partition is one part. All due is applied.
    ///
    /// # Errors
    /// `Conflict` under STOP MERGES; `NotFound` without the stream or the partition; of the first job that failed its error, after the
    /// others were done.
    pub async fn optimize(&self, stream: StreamId, partition: Option<&str>, final_: bool) -> Result<Optimized> {
        self.optimize_without(stream, partition, final_, None).await
    }

    /// [`Self::optimize`] that first removes copies of rows, as a record.
    ///
    /// # Errors
    /// As `optimize`; `Conflict` where the columns changed since the schema version of `copies`.
    pub async fn optimize_without(
        &self,
        stream: StreamId,
        partition: Option<&str>,
        final_: bool,
        copies: Option<&Copies>,
    ) -> Result<Optimized> {
        let core = &self.core;
        core.stream(stream)?;
        if views::stops_of(core, stream).merges {
            return Err(Error::conflict("merges are stopped (SYSTEM STOP MERGES): SYSTEM START MERGES first"));
        }
        self.flush(Some(stream)).await?;
        let before = core.stream(stream)?;
        if let Some(p) = partition
            && !before.partitions.contains_key(&Arc::from(p))
        {
            return Err(Error::not_found(format!("{} has no partition {p}", before.def.full_name())));
        }
        let mut answer = Optimized::default();
        if let Some(copies) = copies {
            let of = CopiesOf { stream, partition, copies };
            (answer.copies, answer.copies_in) = of.remove(core).await?;
            if answer.copies.rows > 0 {
                answer.actions.push(Verb::Deduplicate.to_string());
            }
        }
        // One rewrite does all that is due where it is known what is. What cannot be measured fails by itself.
        if let Err(e) = self.materialize_ttl(stream, partition).await
            && e.kind() == ErrorKind::Fenced
        {
            return Err(e);
        }
        let name = before.def.full_name();
        let mut failed: Option<Error> = None;
        (answer.parts_before, answer.rows_before, answer.bytes_before) = sums(&before, partition);
        // Only the parts there are now: rows that arrive meanwhile are the next one's work.
        for round in 0..limits::SETTLE_ROUNDS {
            core.jobs.wait(Some(stream)).await;
            let state = core.stream(stream)?;
            let view = views::stream_view(core, &state)?;
            // A part that lay apart may not once what nobody needs is gone from it.
            let apart: BTreeSet<PartId> = view.partitions.iter().flat_map(|p| &p.parts).filter(|p| p.family > 0).map(|p| p.id).collect();
            let again = |parts: &[PartId]| final_ && round == 0 && parts.iter().any(|p| apart.contains(p));
            // What was due and is pruned before the others are merged, see there.
            let (now, parts) = (core.now(), || view.partitions.iter().flat_map(|p| &p.parts));
            let pinned = final_ && parts().any(|p| p.pin.is_some());
            let goes_first: BTreeSet<PartId> = parts().filter(|p| pinned && p.pin.is_none() && p.first_due <= now).map(|p| p.id).collect();
            let plans = optimize::optimize(&view, partition, final_, core.now());
            if plans.is_empty() {
                break;
            }
            let mut done = true;
            for plan in plans {
                let kind = plan.kind().to_owned();
                // Rows that a ref keeps are recorded as gone first: then their parts are merged as others are.
                done &= !(matches!(plan, Plan::Expire { .. })
                    || matches!(&plan, Plan::Prune { parts, .. } if again(parts) || parts.iter().any(|p| goes_first.contains(p))));
                match carry_out(core, plan, &state).await? {
                    Done::Yes => {}
                    Done::PlanAnew => done = false,
                    Done::Failed(e) => _ = failed.get_or_insert(e),
                }
                if !answer.actions.contains(&kind) {
                    answer.actions.push(kind);
                }
            }
            if done {
                break;
            }
        }
        if let Some(e) = failed {
            return Err(e.context(format_args!("OPTIMIZE STREAM {name}")));
        }
        let after = core.stream(stream)?;
        (answer.parts_after, answer.rows_after, answer.bytes_after) = sums(&after, partition);
        answer.left_out = left_out(&views::stream_view(core, &after)?, partition);
        Ok(answer)
    }

    /// Counts when rows come due, for rules that have no facts of a part yet; when this returns there is none. Nothing is removed.
    ///
    /// # Errors
    /// `NotFound` without the stream or the partition; what keeps a part from being read.
    pub async fn materialize_ttl(&self, stream: StreamId, partition: Option<&str>) -> Result<()> {
        let core = &self.core;
        self.flush(Some(stream)).await?;
        for _ in 0..limits::SETTLE_ROUNDS {
            core.jobs.wait(Some(stream)).await;
            let state = core.stream(stream)?;
            if let Some(p) = partition.filter(|p| !state.partitions.contains_key(*p)) {
                return Err(Error::not_found(format!("{} has no partition '{p}': system.parts lists them", state.def.full_name())));
            }
            let view = views::stream_view(core, &state)?;
            let wanted = view.partitions.iter().filter(|p| partition.is_none_or(|only| only == &*p.value));
            let parts: Vec<PartId> = wanted.flat_map(|p| &p.parts).filter(|p| p.unmeasured).map(|p| p.id).collect();
            if parts.is_empty() {
                return Ok(());
            }
            if let Done::Failed(e) = carry_out(core, Plan::Measure { stream, parts: parts.clone() }, &state).await? {
                return Err(e.context(format_args!("MATERIALIZE TTL of {}", state.def.full_name())));
            }
            // A part that could not be read does not fail the others; it is named here.
            if let Some(error) = core.jobs.failure_of(&parts) {
                return Err(Error::unavailable(format!("MATERIALIZE TTL of {}: {error}", state.def.full_name())));
            }
        }
        Err(Error::internal("the parts that are to be measured change all the time"))
    }

    pub fn stop(&self, what: Stop, stream: Option<StreamId>) {
        self.core.stops.lock().insert((what, stream));
        self.core.jobs.wake();
    }

    /// Without a stream, all stops of that kind.
    pub fn start(&self, what: Stop, stream: Option<StreamId>) {
        self.core.stops.lock().retain(|(w, s)| *w != what || stream.is_some() && *s != stream);
        self.core.jobs.wake();
    }

    /// What is stopped for the stream, by itself or with all others.
    pub fn stops(&self, stream: StreamId) -> Stops {
        views::stops_of(&self.core, stream)
    }

    /// SYSTEM STOP MERGES ON VOLUME: what lies there is neither rewritten nor removed.
    ///
    /// # Errors
    /// `NotFound` without the policy, or the volume in it.
    pub fn stop_volume(&self, policy: &str, volume: &str) -> Result<()> {
        self.has_volume(policy, volume)?;
        self.core.volume_stops.lock().insert((policy.to_owned(), volume.to_owned()));
        self.core.jobs.wake();
        Ok(())
    }

    /// # Errors
    /// `NotFound` without the policy, or the volume in it.
    pub fn start_volume(&self, policy: &str, volume: &str) -> Result<()> {
        self.has_volume(policy, volume)?;
        self.core.volume_stops.lock().remove(&(policy.to_owned(), volume.to_owned()));
        self.core.jobs.wake();
        Ok(())
    }

    fn has_volume(&self, policy: &str, volume: &str) -> Result<()> {
        let found = self.policy(policy)?;
        let to = Destination { kind: DestinationKind::Volume, name: volume.to_owned(), if_exists: false };
        crate::disks::destination(&to, &found)
    }

    /// Moves a simulated clock; the new time.
    ///
    /// # Errors
    /// `Invalid` on the system's clock, for a negative interval, or past the last time that is printed with four digits of the year.
    pub fn advance_clock(&self, by: Interval) -> Result<Timestamp> {
        let Clock::Simulated(clock) = self.clock() else {
            return Err(Error::invalid("the clock can only be moved where the server runs on a simulated one (--simulated-clock)"));
        };
        if by.is_negative() {
            return Err(Error::invalid(format!("the clock moves forward only, not by {by}")));
        }
        let printed = |at: &Timestamp| *at <= Timestamp::LAST_PRINTED;
        let at = by
            .after(clock.now())
            .filter(printed)
            .ok_or_else(|| Error::invalid(format!("the clock cannot be moved by {by}: it ends at {}", Timestamp::LAST_PRINTED)))?;
        Ok(clock.advance_to(at))
    }
}

/// What keeps OPTIMIZE from parts: disks that are away, merges that are stopped on a volume.
fn left_out(stream: &plan::StreamView, only: Option<&str>) -> BTreeSet<String> {
    let mut why = BTreeSet::new();
    for part in stream.partitions.iter().filter(|p| only.is_none_or(|o| o == &*p.value)).flat_map(|p| &p.parts) {
        if let Some((disk, away)) = stream.tiers.disk(part.disk).and_then(|d| Some((d, d.unavailable.as_ref()?))) {
            why.insert(format!("parts on disk '{}' were left as they are: it is unavailable: {away}", disk.name));
        }
        if let Some(volume) = stream.tiers.volume_of(part.disk).map(|v| &stream.tiers.volumes[v]).filter(|v| v.merges_stopped) {
            let name = format!("{}.{}", stream.tiers.policy, volume.name);
            why.insert(format!("parts on volume {name} were left as they are: SYSTEM STOP MERGES ON VOLUME {name}"));
        }
    }
    why
}

/// What became of a plan.
pub(crate) enum Done {
    Yes,
    PlanAnew,
    /// Noted with its parts, which back off.
    Failed(Error),
}

/// Runs a plan now.
///
/// # Errors
/// Only where the engine is at its end.
pub(crate) async fn carry_out(core: &Arc<Core>, plan: Plan, state: &StreamState) -> Result<Done> {
    let Some(guard) = core.jobs.begin(core.epoch(), &plan, state) else { return Ok(Done::PlanAnew) };
    match decision::reopening(job::run(core, plan, guard)).await {
        Ok(()) => Ok(Done::Yes),
        Err(e) if e.kind() == ErrorKind::Conflict || e.kind() == ErrorKind::NotFound => Ok(Done::PlanAnew),
        Err(e) if e.kind() == ErrorKind::Fenced => Err(e),
        Err(e) => Ok(Done::Failed(e)),
    }
}

/// Parts, rows and bytes.
fn sums(state: &StreamState, partition: Option<&str>) -> (u64, u64, u64) {
    let parts = state.parts.values().filter(|p| partition.is_none_or(|only| only == &*p.partition));
    parts.fold((0, 0, 0), |(n, rows, bytes), p| (n + 1, rows + p.rows, bytes + p.placement.bytes))
}
