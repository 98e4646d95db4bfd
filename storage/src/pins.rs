//! What live readers hold: parts that must not be deleted while a view names them (I8).

use crate::ids::{Generation, PartId, StreamId};
use parking_lot::Mutex;
use std::{collections::HashMap, sync::Arc};

/// One generation of one part's bytes.
pub type PinKey = (StreamId, PartId, Generation);

/// Counts readers per part. Cheap to clone; all clones are one.
#[derive(Clone, Default)]
pub struct Pins {
    counts: Arc<Mutex<HashMap<PinKey, usize>>>,
}

impl Pins {
    /// Holds `parts` until the guard is dropped.
    pub fn pin(&self, parts: Vec<PinKey>) -> PinGuard {
        let mut counts = self.counts.lock();
        for key in &parts {
            *counts.entry(*key).or_default() += 1;
        }
        drop(counts);
        PinGuard { pins: self.clone(), parts }
    }

    pub fn is_held(&self, key: &PinKey) -> bool {
        self.counts.lock().contains_key(key)
    }

    /// How many readers hold a part, for system.parts.
    pub fn count(&self, key: &PinKey) -> usize {
        self.counts.lock().get(key).copied().unwrap_or(0)
    }
}

pub struct PinGuard {
    pins: Pins,
    parts: Vec<PinKey>,
}

impl Drop for PinGuard {
    fn drop(&mut self) {
        let mut counts = self.pins.counts.lock();
        for key in &self.parts {
            if let Some(n) = counts.get_mut(key) {
                *n -= 1;
                if *n == 0 {
                    counts.remove(key);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
