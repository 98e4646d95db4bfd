//! What should happen to parts, and why. Pure: plain values in, plain values out; `now` is an argument, nothing is minted, nothing is read.
//!
//! `view` are the facts, `tiers` the disks and the room on them, `due` the one place that compares times. `decide` says of one part and
//! rule what holds (`choice` among due rules, `grace` before a move). `compact`, `fold` and `pressure` choose parts, `target` says where what is
//! written goes, `round` puts a round of work together, `optimize` does it on demand, `explain` and `words` print what `decide` says,
//! `check` guards plans. The scheduler and EXPLAIN LIFECYCLE call the same `decide`, so they cannot disagree.

pub mod check;
pub mod choice;
pub mod compact;
pub mod decide;
pub mod due;
pub mod explain;
pub mod fold;
pub mod grace;
pub mod optimize;
pub mod pressure;
pub mod round;
pub mod state;
pub mod target;
pub mod tiers;
pub mod view;
pub mod words;
pub mod work;

pub use decide::{Action, Decision, Scene, State, decide};
pub use pressure::Relief;
pub use round::{Planned, plan};
pub use tiers::{DiskView, NoRoom, TierView, VolumeView};
pub use view::{Change, Failure, PartView, PartitionView, Pin, PinnedBy, Pools, RuleView, Stops, StreamView};
pub use work::{MoveWhy, Plan, Target};

#[cfg(test)]
mod tests;
