//! Deleting objects, which nothing else does (I9).
//!
//! `inflight` registers what a running insert or job is about to create, `liveness` decides purely what may go, `sweep` does it.

pub mod inflight;
pub mod liveness;
pub mod sweep;

pub use inflight::{InFlight, InFlightGuard};
