//! Streams in which nothing is due, so that rounds in which nothing happens do not look at their parts again.
//!
//! What a plan was made from is remembered as a whole: definition and layout, jobs, failures, stops, disks and readers (all of which tell
//! `Jobs` of their changes), leases, server settings, and until when. Never says that a stream is quiet while anything of it waits for room:
//! that is given by others.

use crate::{plan::Planned, settings::ServerSettings};
use ebb_storage::{Timestamp, ids::StreamId, manifest::StreamState};
use parking_lot::Mutex;
use std::{collections::HashMap, sync::Arc};

#[derive(Default)]
pub struct Quiet {
    streams: Mutex<HashMap<StreamId, Calm>>,
}

struct Calm {
    state: Arc<StreamState>,
    ground: Ground,
    /// When something comes due that is not yet.
    wake_at: Option<Timestamp>,
}

/// What a plan stands on beside the stream itself; to be taken before the stream is looked at.
#[derive(Clone, PartialEq)]
pub struct Ground {
    /// `Jobs::changes`.
    pub changes: u64,
    /// `Leases::changes`.
    pub leases: u64,
    pub server: ServerSettings,
}

impl Quiet {
    /// Lets go of streams that are gone.
    pub fn retain(&self, is_there: impl Fn(StreamId) -> bool) {
        self.streams.lock().retain(|id, _| is_there(*id));
    }

    /// When the stream is to be looked at next, where it need not be now.
    pub fn until(&self, state: &Arc<StreamState>, ground: &Ground, now: Timestamp) -> Option<Option<Timestamp>> {
        let streams = self.streams.lock();
        let calm = streams.get(&state.def.id)?;
        let holds = Arc::ptr_eq(&calm.state, state) && calm.ground == *ground && calm.wake_at.is_none_or(|at| now < at);
        holds.then_some(calm.wake_at)
    }

    /// What a look at the stream found.
    pub fn looked(&self, state: &Arc<StreamState>, ground: Ground, found: &Planned) {
        let mut streams = self.streams.lock();
        match found.plans.is_empty() && !found.waits_for_room {
            true => _ = streams.insert(state.def.id, Calm { state: state.clone(), ground, wake_at: found.wake_at }),
            false => _ = streams.remove(&state.def.id),
        }
    }
}

#[cfg(test)]
mod tests;
