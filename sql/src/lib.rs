//! Ebb.

pub mod wire;
