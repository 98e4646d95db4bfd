//! ALTER STREAM ... MOVE: parts to a place that somebody named, whatever their rules say. A rule that is due for them outranks it at the
//! next round.

use super::{
    statements::{Done, carry_out},
    views,
};
use crate::{
    Engine, limits,
    plan::{MoveWhy, Plan, Target, tiers},
};
use ebb_storage::{
    Error, Result,
    ids::{PartId, StreamId},
    rules::Destination,
};

/// Which parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which<'a> {
    /// By its value as text.
    Partition(&'a str),
    /// By its name.
    Part(&'a str),
}

/// What was moved; parts that were there already do not count.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Moved {
    pub parts: u64,
    pub bytes: u64,
}

impl Engine {
    /// Flushes, then moves the parts; all are there when this returns.
    ///
    /// # Errors
    /// `NotFound` without the stream, the parts or the place; `Conflict` under STOP MOVES; `Full` or `Unavailable` as the place is. Parts
    /// that were moved before an error stay where they are then.
    pub async fn move_parts(&self, stream: StreamId, which: Which<'_>, to: &Destination) -> Result<Moved> {
        let core = &self.core;
        if views::stops_of(core, stream).moves {
            return Err(Error::conflict("moves are stopped (SYSTEM STOP MOVES): SYSTEM START MOVES first"));
        }
        let def = core.stream(stream)?.def.clone();
        let policy = core.live.read().manifest.policy_of(&def)?;
        crate::disks::destination(to, &policy)?;
        self.flush(Some(stream)).await?;
        let name = def.full_name();
        let mut moved = Moved::default();
        // A part that a merge took is sought by its name in vain, a partition's parts are those it has by then.
        for round in 0..limits::SETTLE_ROUNDS {
            core.jobs.wait(Some(stream)).await;
            let state = core.stream(stream)?;
            let wanted = |m: &ebb_storage::part::PartMeta| match which {
                Which::Partition(value) => *m.partition == *value,
                Which::Part(part) => m.name == part,
            };
            let parts: Vec<PartId> = state.parts.values().filter(|m| wanted(m)).map(|m| m.id).collect();
            if parts.is_empty() && round == 0 {
                return Err(Error::not_found(match which {
                    Which::Partition(value) => format!("{name} has no partition '{value}': system.parts lists them"),
                    Which::Part(part) => format!("{name} has no part '{part}': system.parts lists them"),
                }));
            }
            let mut left = false;
            for id in parts {
                let tiers = views::tiers_of(core, &state);
                let Some(meta) = state.parts.get(&id).filter(|m| !tiers.is_there(to, m.placement.disk)) else { continue };
                let at = |e: Error| e.context(format_args!("moving part {} of {name} to {}", meta.name, tiers::place(to)));
                let disk = tiers.destination(to, meta.placement.bytes, id.0).map_err(|why| at(why.into()))?;
                let Some(disk) = disk else { return Ok(moved) };
                let target = Target::new(meta.placement.codec, disk);
                match carry_out(core, Plan::Move { stream, part: id, target, why: MoveWhy::Statement }, &state).await? {
                    Done::Yes => {
                        moved.parts += 1;
                        moved.bytes += meta.placement.bytes;
                    }
                    Done::PlanAnew => left = true,
                    Done::Failed(e) => return Err(at(e)),
                }
            }
            if !left {
                return Ok(moved);
            }
        }
        Err(Error::internal("the parts that are to be moved change all the time"))
    }
}
