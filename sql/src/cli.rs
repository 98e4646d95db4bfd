//! The commands of the `ebb` program.

pub mod table;
