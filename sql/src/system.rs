//! The database `system`: what Ebb knows of itself, as tables. One file for each table.
//!
//! Rows are made when a query reads them, from the query's own cut where the cut has them. A new table is a file and a line of
//! `TABLES`; it must never write or open a part, and none but that of the disks waits. The two logs are streams: see `logs`.

mod columns;
mod disks;
mod logs;
mod merges;
mod parts;
mod queries;
mod readers;
mod settings;
pub(crate) mod sheet;
mod storage_policies;
mod stream_settings;
mod streams;
mod table;

use crate::{Result, database::Shared, provider::Cut};
use arrow::{array::RecordBatch, datatypes::SchemaRef};
use datafusion::catalog::TableProvider;
use ebb_storage::ids::StreamId;
use std::sync::Arc;

pub const DATABASE: &str = "system";

/// A table: its name, its columns, its rows in a cut.
struct Entry {
    name: &'static str,
    /// Its rows say whether disks are there: they are looked at before, each for seconds at the most.
    looks_at_disks: bool,
    schema: fn() -> SchemaRef,
    rows: fn(&Shared, &Cut) -> Result<RecordBatch>,
}

macro_rules! entry {
    ($table:ident) => {
        entry!($table, false)
    };
    ($table:ident, $looks:expr) => {
        Entry { name: stringify!($table), looks_at_disks: $looks, schema: $table::schema, rows: $table::rows }
    };
}

/// In the order of the alphabet; the two logs are streams.
static TABLES: [Entry; 10] = [
    entry!(columns),
    entry!(disks, true),
    entry!(merges),
    entry!(parts),
    entry!(queries),
    entry!(readers),
    entry!(settings),
    entry!(storage_policies),
    entry!(stream_settings),
    entry!(streams),
];

/// In the order of the alphabet.
pub const NAMES: &[&str] = &[
    "columns",
    "disks",
    "lifecycle_log",
    "merges",
    "part_log",
    "parts",
    "queries",
    "readers",
    "settings",
    "storage_policies",
    "stream_settings",
    "streams",
];

/// The table of that name over `cut`.
pub(crate) fn table(name: &str, shared: &Arc<Shared>, cut: &Cut) -> Option<datafusion::error::Result<Arc<dyn TableProvider>>> {
    if let Some(log) = logs::table(name, shared, cut) {
        return Some(log);
    }
    let entry = TABLES.iter().find(|t| t.name == name)?;
    Some(Ok(Arc::new(table::SystemTable { entry, shared: shared.clone(), cut: cut.clone() })))
}

/// The rows of `system.parts` that are of one stream.
pub(crate) fn parts_of(shared: &Shared, cut: &Cut, stream: StreamId) -> Result<RecordBatch> {
    parts::of_stream(shared, cut, stream)
}

pub(crate) fn parts_schema() -> SchemaRef {
    parts::schema()
}

#[cfg(test)]
mod tests;
