//! Doubles for tests: stores that fail, stall and lose power. Only built for tests and under the feature `testkit`.
//!
//! `power` counts changing calls and cuts the power at one of them, `crash_store` are an object store and a log that it feeds,
//! `fault_log` a log folder that is full or broken on demand, `fault_store` the same for object stores, `sim_clock` a clock to move,
//! `defs` builds plain definitions and parts.

pub mod crash_store;
pub mod defs;
pub mod fault_log;
pub mod fault_store;
pub mod power;
pub mod sim_clock;

pub use crash_store::{CrashDisk, Unsynced};
pub use fault_log::FaultLog;
pub use fault_store::{Fault, FaultStore, Op};
pub use power::{Cut, Power};
