//! When something is due: the one place that compares a moment with now. Equality is due.

use ebb_storage::Timestamp;

/// Whether what was to happen at `at` is to happen now. `Timestamp::MAX` is "never".
pub fn is_due(at: Timestamp, now: Timestamp) -> bool {
    at <= now && at != Timestamp::MAX
}

/// The earliest of moments that are still to come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WakeUp {
    now: Timestamp,
    at: Timestamp,
}

impl WakeUp {
    pub fn after(now: Timestamp) -> Self {
        Self { now, at: Timestamp::MAX }
    }
    pub fn consider(&mut self, at: Timestamp) {
        if !is_due(at, self.now) {
            self.at = self.at.min(at);
        }
    }
    /// `None` where nothing is to come.
    pub fn at(&self) -> Option<Timestamp> {
        (self.at != Timestamp::MAX).then_some(self.at)
    }
}
