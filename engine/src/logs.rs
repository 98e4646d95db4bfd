//! What was done to parts and why, kept as streams of Ebb's own: `system.part_log` for 30 days, `system.lifecycle_log` for a year.
//!
//! A row rides in the commit of its change and waits in the manifest; `moving` inserts the waiting rows into the log's stream and then
//! commits that they are there. The newest record of the stream says in its key how many rows of all there ever were it holds: whatever
//! a crash leaves in both places is read, and moved, once. Changes of these streams leave no rows in either log.
//! `streams` are their definitions, `rows` turns log rows into batches and back.

pub mod moving;
pub mod rows;
pub mod streams;

use crate::{live::Live, read::ReadView};
use arrow::array::RecordBatch;
use ebb_storage::{
    Result,
    ids::StreamId,
    manifest::{Manifest, StreamState, edit::RecordInfo},
};
use std::sync::Arc;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Log {
    Part,
    Lifecycle,
}

impl Log {
    pub const ALL: [Self; 2] = [Self::Part, Self::Lifecycle];

    /// The stream's name, in the database `system`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Part => "part_log",
            Self::Lifecycle => "lifecycle_log",
        }
    }

    fn stream(self, m: &Manifest) -> Option<&Arc<StreamState>> {
        m.stream_named(ebb_storage::stream_def::SYSTEM_DATABASE, self.name())
    }

    /// How many rows of all there ever were lie in the stream.
    fn held(self, live: &Live) -> u64 {
        let Some(state) = self.stream(&live.manifest) else { return 0 };
        let tail = live.tail(state.def.id);
        let newest = tail.newest().or_else(|| state.records.last().map(|(_, r)| r.as_ref()));
        let from = match self {
            Self::Part => live.manifest.part_log.from(),
            Self::Lifecycle => live.manifest.lifecycle_log.from(),
        };
        newest.and_then(through).unwrap_or(0).max(from)
    }

    /// The rows that the stream does not hold, `most` of them, in its `row_schema`; and how many of all there ever were it then holds.
    fn waiting(self, live: &Live, most: usize) -> Result<(RecordBatch, u64)> {
        let held = self.held(live);
        let m = &live.manifest;
        let batch = match self {
            Self::Part => rows::of_part_log(m.part_log.behind(held).take(most))?,
            Self::Lifecycle => rows::of_lifecycle_log(m.lifecycle_log.behind(held).take(most))?,
        };
        let through = held + batch.num_rows() as u64;
        Ok((batch, through))
    }
}

/// The key of the record with which the stream holds that many rows.
fn key(through: u64) -> String {
    through.to_string()
}

fn through(record: &RecordInfo) -> Option<u64> {
    record.key.as_ref()?.parse().ok()
}

impl ReadView {
    /// The log's stream, and those rows of the log that are not in it, in its `row_schema`.
    ///
    /// # Errors
    /// `NotFound` before the first opening has made the streams.
    pub fn log(&self, log: Log) -> Result<(crate::StreamView, RecordBatch)> {
        let missing = || ebb_storage::Error::not_found(format!("stream system.{} is not made yet", log.name()));
        let id: StreamId = log.stream(&self.live.manifest).ok_or_else(missing)?.def.id;
        let view = self.stream(id).ok_or_else(missing)?;
        Ok((view, log.waiting(&self.live, usize::MAX)?.0))
    }
}
