//! What should happen to parts, and why. Pure: plain values in, plain values out; `now` is an argument, nothing is minted, nothing is read.
//!
//! `view` are the facts, `tiers` the disks and the room on them, `due` the one place that compares times, `decide` says of one part and rule what holds, `prune` and `compact`
//! choose work, `round` puts a round of work together, `optimize` does it on demand, `explain` prints what `decide` says, `check` guards
//! plans. The scheduler and EXPLAIN LIFECYCLE call the same `decide`, so they cannot disagree.

pub mod check;
pub mod compact;
pub mod decide;
pub mod due;
pub mod explain;
pub mod optimize;
pub mod round;
pub mod tiers;
pub mod view;

pub use decide::{Decision, State, decide};
pub use round::{Plan, Planned, plan};
pub use tiers::{DiskView, NoRoom, TierView, VolumeView};
pub use view::{Change, Failure, PartView, PartitionView, Pools, RuleView, Stops, StreamView};

#[cfg(test)]
mod tests;
