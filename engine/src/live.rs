//! What is true at this moment: the manifest and the tails of all streams, replaced together in one step.
//!
//! Guards: whoever reads gets one cut over all streams; a flush shows its parts and takes the rows from the tail in the same step; a
//! state that a reader still holds is remembered, so that vacuum deletes nothing that it names (I8).

use crate::ingest::tail::Tail;
use ebb_storage::{ids::StreamId, manifest::Manifest, pins::PinKey};
use parking_lot::{Mutex, RwLock};
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
    current: RwLock<Arc<Live>>,
    earlier: Mutex<Vec<Weak<Live>>>,
    /// Counts what was published.
    changes: watch::Sender<u64>,
}

impl LiveCell {
    pub fn new(live: Live) -> Self {
        Self { current: RwLock::new(Arc::new(live)), earlier: Mutex::new(Vec::new()), changes: watch::Sender::new(0) }
    }

    pub fn read(&self) -> Arc<Live> {
        self.current.read().clone()
    }

    /// Replaces the state by what `change` makes of a copy of it.
    pub fn publish<T>(&self, change: impl FnOnce(&mut Live) -> T) -> T {
        let mut current = self.current.write();
        let mut next = current.as_ref().clone();
        let answer = change(&mut next);
        let before = std::mem::replace(&mut *current, Arc::new(next));
        // More than this cell's own (by now dropped) reference: someone reads it.
        if Arc::strong_count(&before) > 1 {
            let mut earlier = self.earlier.lock();
            earlier.retain(|e| e.strong_count() > 0);
            earlier.push(Arc::downgrade(&before));
        }
        drop(current);
        self.changes.send_modify(|n| *n = n.wrapping_add(1));
        answer
    }

    /// Whether a reader of an earlier state, or the present one, may open that object.
    pub fn is_held(&self, key: &PinKey) -> bool {
        let earlier = self.earlier.lock().clone();
        self.read().names(key) || earlier.iter().filter_map(Weak::upgrade).any(|live| live.names(key))
    }

    /// How many earlier states that are still read name that object, for `system.parts`.
    pub fn holders(&self, key: &PinKey) -> usize {
        let earlier = self.earlier.lock().clone();
        earlier.iter().filter(|e| e.upgrade().is_some_and(|live| live.names(key))).count()
    }

    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }
}
