//! How often a stream's history is looked at: when the clock says something is due, and after changes, but not after every one of a
//! stream with many records a second.

use ebb_storage::{Timestamp, ids::StreamId, manifest::StreamState, refs::Reader};
use std::{collections::HashMap, sync::Arc, time::Duration};

/// Looks at a stream that changes all the time are this far apart.
const PACE: Duration = Duration::from_secs(10);

#[derive(Default)]
pub struct Pace {
    looked: HashMap<StreamId, Looked>,
}

struct Looked {
    state: Arc<StreamState>,
    readers: Vec<Arc<Reader>>,
    at: Timestamp,
    next: Option<Timestamp>,
}

impl Pace {
    pub fn retain(&mut self, is_there: impl Fn(StreamId) -> bool) {
        self.looked.retain(|id, _| is_there(*id));
    }

    /// When the stream is to be looked at; not later than now: it is.
    pub fn due_at(&self, (state, readers): (&Arc<StreamState>, &[Arc<Reader>]), now: Timestamp) -> Option<Timestamp> {
        let Some(looked) = self.looked.get(&state.def.id) else { return Some(now) };
        if Arc::ptr_eq(&looked.state, state) && looked.readers == readers {
            return looked.next;
        }
        // Other refs or another policy are looked at at once.
        if looked.state.refs_version != state.refs_version || !Arc::ptr_eq(&looked.state.def, &state.def) {
            return Some(now);
        }
        let paced = looked.at.saturating_add(PACE);
        Some(looked.next.map_or(paced, |next| next.max(looked.at).min(paced)))
    }

    pub fn looked(&mut self, state: Arc<StreamState>, readers: Vec<Arc<Reader>>, at: Timestamp, next: Option<Timestamp>) {
        self.looked.insert(state.def.id, Looked { state, readers, at, next });
    }
}

#[cfg(test)]
mod tests;
