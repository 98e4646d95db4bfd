//! When work runs: `views` turns the state into the plain values that `plan` decides on, `quiet` remembers where nothing is due, `driver` runs what it planned, `chores` is
//! what it sees to beside that, `tails` says when rows are to be brought into parts, `statements` and `relocate` are the statements that ask for work.

pub mod chores;
pub mod driver;
pub mod quiet;
pub mod relocate;
pub mod statements;
pub mod tails;
pub mod views;

pub use relocate::{Moved, Which};
pub use statements::{Optimized, Stop};
