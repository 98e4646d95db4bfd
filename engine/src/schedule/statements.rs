//! FLUSH, SETTLE, OPTIMIZE, STOP, START, ADVANCE CLOCK: work on request.

use crate::Engine;
use ebb_storage::{Clock, Error, Result, Timestamp, ids::StreamId, interval::Interval};

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
    /// Kinds of work done: merge, prune, drop.
    pub actions: Vec<String>,
}

impl Engine {
    /// Brings the tail of one stream, or of all, into parts.
    pub async fn flush(&self, stream: Option<StreamId>) -> Result<()> {
        let _ = stream;
        Err(Error::internal("FLUSH is not built yet"))
    }

    /// Flushes, then returns when nothing that may run is due at the clock's present time.
    pub async fn settle(&self, stream: Option<StreamId>) -> Result<()> {
        let _ = stream;
        Err(Error::internal("SETTLE is not built yet"))
    }

    /// Flushes, then one eager round of merging; with `final_` until every partition is one part. All due is applied.
    ///
    /// # Errors
    /// `Conflict` under STOP MERGES.
    pub async fn optimize(&self, stream: StreamId, partition: Option<&str>, final_: bool) -> Result<Optimized> {
        let _ = (stream, partition, final_);
        Err(Error::internal("OPTIMIZE is not built yet"))
    }

    pub fn stop(&self, what: Stop, stream: Option<StreamId>) {
        let _ = (what, stream);
    }

    pub fn start(&self, what: Stop, stream: Option<StreamId>) {
        let _ = (what, stream);
    }

    /// Moves a simulated clock; the new time.
    ///
    /// # Errors
    /// `Invalid` on the system's clock, for a negative interval, or past the last time.
    pub fn advance_clock(&self, by: Interval) -> Result<Timestamp> {
        let Clock::Simulated(clock) = self.clock() else {
            return Err(Error::invalid("the clock can only be moved where the server runs on a simulated one (--simulated-clock)"));
        };
        if by.is_negative() {
            return Err(Error::invalid(format!("the clock moves forward only, not by {by}")));
        }
        let at = by.after(clock.now()).ok_or_else(|| Error::invalid(format!("the clock cannot be moved by {by}: no such time")))?;
        Ok(clock.advance_to(at))
    }
}
