//! The log: content is true when its record is durable here, and not a moment before.
//!
//! `record` is one change of one stream, `frame` the bytes of a group of records (one checksum, one fsync), `rows` the body of an
//! insert, `file` the little that the log asks of a file system, `writer` the one thread that writes (group commit), `reader` replay
//! and inspection, `trim` the removal of files whose records are all applied.
//!
//! Lsns are dense over all streams and epochs; each opening starts a new file that carries its epoch (I3, I7, I11).

pub mod file;
pub mod frame;
pub mod reader;
pub mod record;
pub mod rows;
pub mod trim;
pub mod writer;

pub use file::{LogDir, LogFile, RealLogDir};
pub use reader::{Finding, Inspection, Replayed};
pub use record::{Record, RecordHeader, Verb};
pub use writer::{Durable, Limits, LogWriter, StartLog, Ticket, Unit};
