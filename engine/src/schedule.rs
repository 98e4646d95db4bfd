//! When work runs: the driver around the pure core, and the statements that ask for work.

pub mod statements;

pub use statements::{Optimized, Stop};
