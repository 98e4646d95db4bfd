//! Ebb.

pub mod cli;
pub mod dialect;
pub mod error;
pub mod format;
pub mod functions;
pub mod nearest;
pub mod parse;
pub mod sqlstate;
pub mod statement;
pub mod wire;

pub use error::{Error, ErrorKind, Result};
