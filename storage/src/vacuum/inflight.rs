//! Parts that are being written: registered before their object is created, until they are committed or given up.
//!
//! So a sweep can tell the object of a slow insert from one that a crash left behind.

use crate::ids::{PartId, StreamId};
use parking_lot::Mutex;
use std::{collections::HashSet, sync::Arc};

#[derive(Clone, Default)]
pub struct InFlight {
    parts: Arc<Mutex<HashSet<(StreamId, PartId)>>>,
}

impl InFlight {
    pub fn register(&self, stream: StreamId, part: PartId) -> InFlightGuard {
        self.parts.lock().insert((stream, part));
        InFlightGuard { all: self.clone(), key: (stream, part) }
    }
    pub fn contains(&self, stream: StreamId, part: PartId) -> bool {
        self.parts.lock().contains(&(stream, part))
    }
}

/// Dropped after the commit or after giving up; what was created and not committed is then an orphan.
pub struct InFlightGuard {
    all: InFlight,
    key: (StreamId, PartId),
}

impl InFlightGuard {
    pub fn part(&self) -> PartId {
        self.key.1
    }
}

impl Drop for InFlightGuard {
    fn drop(&mut self) {
        self.all.parts.lock().remove(&self.key);
    }
}
