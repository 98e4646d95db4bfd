//! Decisions: what should happen to rows as they arrive and grow old, and making it happen.
//!
//! The life of a row. An insert computes its partition, asks admission, takes the stream's next sn and appends a record to the log;
//! when the log is durable the row joins the *tail* and everyone sees it. A *flush* sorts the tail into parts, one per partition, and
//! commits "records up to sn are in parts". Large inserts write their parts first and log one record that names them. From then on
//! the row's part is merged, pruned and dropped by *jobs*: `plan` decides from plain values what should happen and why, `schedule`
//! chooses when, `job` does it and commits on condition that what the plan stood on still holds.
//!
//! Two clocks: ages follow [`ebb_storage::Clock`]; nothing that a statement waits for does.
//!
//! This crate never sees SQL beyond the canonical texts that it hands to an [`expr::ExprCompiler`].

pub mod changes;
pub mod database;
pub mod ddl;
pub mod deduplicate;
pub mod delete;
pub mod disks;
pub mod due_values;
pub mod expr;
pub mod facts;
pub mod hide;
pub mod history;
pub mod ingest;
pub mod inspect;
pub mod limits;
pub mod logs;
pub mod observe;
pub mod open;
pub mod plan;
pub mod preview;
pub mod read;
pub mod schedule;
pub mod settings;
pub mod simulate;
pub mod stream;
pub mod upgrade;

mod append;
mod core;
mod folded;
mod indexes;
mod job;
mod live;
mod nowhere;
mod part_rows;
mod place;
mod sets;
mod write;

pub use changes::Changes;
pub use database::Engine;
pub use ddl::Created;
pub use deduplicate::Copies;
pub use delete::{DeleteRequest, Deleted};
pub use disks::{Disk, DiskInfo, Disks, Existing, NewDisk};
pub use ebb_storage::{Clock, Error, ErrorKind, Result, Timestamp, nearest, refs::AsOf};
pub use hide::{Hide, Hiding};
pub use indexes::IndexOver;
pub use ingest::{InsertOptions, Inserted, Pending, PendingRows, Savepoint, StagedInsert, Transaction};
pub use logs::Log;
pub use observe::{Explained, PartPlace, RunningJob, Status};
pub use open::{OpenOptions, Places};
pub use part_rows::PartRows;
pub use preview::{Previewed, Trial};
pub use read::{Hold, LivePart, ReadView, StreamView, TailRows};
pub use schedule::{Moved, Optimized, Stop, Which};
