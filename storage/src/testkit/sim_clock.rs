//! A clock that tests move.

use crate::{Clock, Timestamp};
use std::time::Duration;

/// 2026-01-01T00:00:00Z, standing still.
pub fn start_of_2026() -> Clock {
    Clock::simulated(Timestamp::from_secs(1_767_225_600))
}

/// Moves a simulated clock; panics on the system's.
#[allow(clippy::panic, reason = "a test that asks for this is wrong")]
pub fn advance(clock: &Clock, by: Duration) -> Timestamp {
    match clock {
        Clock::Simulated(sim) => sim.advance_to(sim.now().saturating_add(by)),
        Clock::System => panic!("the system's clock cannot be moved"),
    }
}
