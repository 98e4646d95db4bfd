//! How rows come in: partitions, admission, the log, the tail, flushes into parts, staged parts, transactions.

pub mod admission;
pub mod content;
pub mod flush;
pub mod gate;
pub mod insert;
pub mod keys;
pub mod partition;
pub mod rows;
pub mod staged;
pub mod tail;
pub mod transaction;
pub mod unsorted;

pub use insert::{InsertOptions, Inserted};
pub use staged::StagedInsert;
pub(crate) use staged::Waiting;
pub use transaction::{Pending, PendingRows, Savepoint, Transaction};
