//! The life of a stream, simulated: the planner that runs a database, on a clock that jumps, over parts that are only described.
//!
//! `world` is what the definitions say, `options` what is assumed of the rows, `arrivals` makes parts of them (`sizes` says how large).
//! `state` keeps parts as `slice`s of rows that came evenly, `apply` does to them what plans say, `run` moves the clock, and `watch`
//! writes the `report`. Pure: nothing is read, written or asked of the machine; equal worlds and options make equal reports.

mod apply;
mod arrivals;
mod options;
mod report;
mod run;
mod sizes;
mod slice;
mod state;
mod watch;
mod world;

pub use options::SimOptions;
pub use report::{Cause, Curve, Moment, Report, RuleLine, Totals, VolumeLine, Warning};
pub use run::{simulate, together};
pub use world::World;
