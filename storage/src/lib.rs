//! Truth: what is on disk, and how it changes atomically.
//!
//! Words: a *stream* is a table of timestamped rows; a *record* one change of its content, numbered by an *sn*; the *log* the durable
//! file of records; the *tail* rows in the log that no *part* (immutable sorted rows of one partition, one Parquet file) holds yet;
//! a *placement* where and how a part's bytes lie; a *commit* one numbered atomic change of the *manifest*, the catalogue of all that.
//!
//! Two truths, one order: content is true when its record is durable in the log; definitions, layout and removals by rules are true
//! when their numbered commit exists. Everything else beside them is garbage, and only `vacuum` deletes.
//!
//! This crate decides nothing about ageing and never sees SQL.

pub mod clock;
pub mod codec;
pub mod column_type;
pub mod decision;
pub mod disk;
pub mod error;
pub mod ids;
pub mod interval;
pub mod lineage;
pub mod log;
pub mod manifest;
pub mod nearest;
pub mod part;
pub mod pins;
pub mod refs;
pub mod rules;
pub mod stream_def;
#[cfg(any(test, feature = "testkit"))]
pub mod testkit;
pub mod vacuum;
pub mod verb;

pub use clock::{Clock, Timestamp};
pub use error::{Error, ErrorKind, Result};
