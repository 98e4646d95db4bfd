//! Ebb: streams whose rows age by rules, in SQL. Inside a program ([`Database`]) or behind the PostgreSQL wire ([`wire`]).
//!
//! The way of a statement: `parse` makes a [`statement::Statement`] of the text and looks nothing up; a [`Session`] says what names
//! mean; `bind` makes engine values of it and sees no tokens; `execute` has one file per family of verbs. Queries go through
//! DataFusion over `provider`, which reads one pinned cut; `analyze` makes its expressions mean what PostgreSQL means. The Rust API and the wire both speak to a [`Session`], so that every
//! statement works the same through both.

mod analyze;
mod bind;
pub mod cli;
pub mod config;
pub mod copy;
pub mod database;
pub mod dialect;
pub mod error;
mod execute;
pub mod expr;
mod fold;
pub mod format;
pub mod functions;
mod memory;
pub mod outcome;
pub mod parse;
mod pg_catalog;
pub mod provider;
mod relation;
pub mod session;
pub mod sqlstate;
pub mod statement;
mod system;
pub mod types;
pub mod wire;
mod workers;

pub use config::Config;
pub use copy::{CopyIn, CopyOut};
pub use database::{Database, Rows, StreamHandle, Summary};
pub(crate) use ebb_engine::nearest;
pub use error::{Error, ErrorKind, Result};
pub use outcome::{Notice, Outcome, Prepared, RowTag, Severity};
pub use session::{Session, TransactionStatus};
