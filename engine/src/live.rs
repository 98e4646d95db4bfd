//! What is true at this moment: the manifest and the tails of all streams, replaced together in one step.
//!
//! Guards: whoever reads gets one cut over all streams; a flush shows its parts and takes the rows from the tail in the same step; a
//! state that a reader still holds is remembered, so that vacuum deletes nothing that it names (I8).

use crate::ingest::tail::Tail;
use ebb_storage::{ids::StreamId, manifest::Manifest, pins::PinKey};
use parking_lot::RwLock;
use rpds::HashTrieMapSync;
use std::sync::{Arc, Weak};
use tokio::sync::watch;

#[derive(Clone)]
pub struct Live {
    pub manifest: Arc<Manifest>,
    tails: HashTrieMapSync<StreamId, Arc<Tail>>,
}

impl Live {
    pub fn new(manifest: Arc<Manifest>) -> Self {
        Self { manifest, tails: HashTrieMapSync::new_sync() }
    }

    /// The stream's tail; an empty one where nothing came since the last flush.
    pub fn tail(&self, stream: StreamId) -> Arc<Tail> {
        self.tails
            .get(&stream)
            .cloned()
            .unwrap_or_else(|| Arc::new(Tail::new(self.manifest.stream(stream).map(|s| s.applied_sn).unwrap_or_default())))
    }

    pub fn tails(&self) -> impl Iterator<Item = (&StreamId, &Arc<Tail>)> {
        self.tails.iter()
    }

    pub fn set_tail(&mut self, stream: StreamId, tail: Tail) {
        match tail.is_empty() {
            true => _ = self.tails.remove_mut(&stream),
            false => self.tails.insert_mut(stream, Arc::new(tail)),
        }
    }

    pub fn drop_tail(&mut self, stream: StreamId) {
        self.tails.remove_mut(&stream);
    }

    /// Whether a reader of this state may open that object.
    fn names(&self, (stream, part, generation): &PinKey) -> bool {
        let listed = self.manifest.stream(*stream).and_then(|s| s.parts.get(part));
        // A deletion of rows that are gone says nothing: parts that it names go as others do.
        let staged = || self.tails.get(stream).is_some_and(|t| t.staged().iter().any(|(.., parts)| parts.iter().any(|p| p.id == *part)));
        listed.is_some_and(|p| p.placement.generation == *generation) || staged()
    }

    /// Whether a record of the tail names that part.
    pub fn stages(&self, stream: StreamId, part: ebb_storage::ids::PartId) -> bool {
        self.tails.get(&stream).is_some_and(|t| t.names(part))
    }
}

/// The present state, and all earlier ones that are still read.
pub struct LiveCell {
    states: RwLock<States>,
    /// Counts what was published.
    changes: watch::Sender<u64>,
}

/// Under one lock: whoever looks for readers sees each state, in one place or the other.
struct States {
    current: Arc<Live>,
    earlier: Vec<Weak<Live>>,
}

/// All that can be read at one moment: the present state and each earlier one that is still read. Held as long as this lives.
pub struct Held(Vec<Arc<Live>>);

impl Held {
    /// Whether a reader may open that object.
    pub fn names(&self, key: &PinKey) -> bool {
        self.0.iter().any(|live| live.names(key))
    }
}

impl LiveCell {
    pub fn new(live: Live) -> Self {
        Self { states: RwLock::new(States { current: Arc::new(live), earlier: Vec::new() }), changes: watch::Sender::new(0) }
    }

    pub fn read(&self) -> Arc<Live> {
        self.states.read().current.clone()
    }

    /// Replaces the state by what `change` makes of a copy of it.
    pub fn publish<T>(&self, change: impl FnOnce(&mut Live) -> T) -> T {
        let mut states = self.states.write();
        let mut next = states.current.as_ref().clone();
        let answer = change(&mut next);
        let before = std::mem::replace(&mut states.current, Arc::new(next));
        // More than this cell's own (by now dropped) reference: someone reads it.
        if Arc::strong_count(&before) > 1 {
            states.earlier.retain(|e| e.strong_count() > 0);
            states.earlier.push(Arc::downgrade(&before));
        }
        drop(states);
        self.changes.send_modify(|n| *n = n.wrapping_add(1));
        answer
    }

    /// What is read now. Whoever begins later reads the present state or a later one.
    pub fn held(&self) -> Held {
        let states = self.states.read();
        Held(std::iter::once(states.current.clone()).chain(states.earlier.iter().filter_map(Weak::upgrade)).collect())
    }

    /// How many earlier states that are still read name that object, for `system.parts`.
    pub fn holders(&self, key: &PinKey) -> usize {
        self.states.read().earlier.iter().filter(|e| e.upgrade().is_some_and(|live| live.names(key))).count()
    }

    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }
}

#[cfg(test)]
mod tests;
