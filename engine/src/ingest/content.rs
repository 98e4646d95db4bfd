//! What records do to a stream's content, and the bodies that say so in the log.
//!
//! A body says all that replay needs: it never asks the history again what a tag or a version meant (I11).

use bytes::Bytes;
use ebb_storage::{
    Error, Result,
    ids::{BranchId, PartId, Sn},
    lineage::SnSet,
    part::{PartMeta, meta::RowsAt},
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::sync::Arc;

/// What one record does.
#[derive(Debug, Clone)]
pub enum Content {
    /// Adds rows, in `row_schema` of the record's schema version.
    Rows(arrow::array::RecordBatch),
    /// Adds parts written before the record, each with its sn in its meta.
    Parts(Arc<[Arc<PartMeta>]>),
    /// The branch sees this of what came before, and all that comes: TRUNCATE, rollback, fast-forward, cherry-pick.
    Lineage(Arc<NewLineage>),
    /// Rows of parts are gone for whoever sees the record: DELETE, DROP PARTITION, DEDUPLICATE.
    Delete(Arc<Deleting>),
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewLineage {
    pub base: Vec<(BranchId, SnSet)>,
    /// The record that the branch goes on from, where it is not its head.
    pub parent: Option<Sn>,
    /// For the record list: rows that come to be seen, and rows that no longer are.
    pub rows_added: u64,
    pub rows_deleted: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Deleting {
    /// Rows of later records are not touched.
    pub read: Sn,
    pub rows: u64,
    pub targets: Vec<Target>,
}

/// Rows of a part. A part that is gone by the time it is looked for was replaced by one that carries the deletion.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Target {
    pub part: PartId,
    pub rows: RowsAt,
}

fn body<T: Serialize>(of: &T) -> Result<Bytes> {
    let text = serde_json::to_vec(of).map_err(|e| Error::internal(format!("the body of a record does not encode: {e}")))?;
    Ok(text.into())
}

fn read<T: DeserializeOwned>(body: &[u8], what: &str) -> Result<T> {
    serde_json::from_slice(body).map_err(|e| Error::corrupt(format!("{what} that a log record names does not decode: {e}")))
}

impl NewLineage {
    pub fn encode(&self) -> Result<Bytes> {
        body(self)
    }
    /// # Errors
    /// `Corrupt` where the bytes are none.
    pub fn decode(body: &[u8]) -> Result<Self> {
        read(body, "a lineage")
    }
}

impl Deleting {
    pub fn encode(&self) -> Result<Bytes> {
        body(self)
    }
    /// # Errors
    /// `Corrupt` where the bytes are none.
    pub fn decode(body: &[u8]) -> Result<Self> {
        read(body, "a deletion")
    }
}

/// The body of a record that names parts.
pub fn encode_parts(parts: &[Arc<PartMeta>]) -> Result<Bytes> {
    body(&parts)
}

/// # Errors
/// `Corrupt` where the bytes are no part metas.
pub fn decode_parts(body: &[u8]) -> Result<Vec<Arc<PartMeta>>> {
    read(body, "a part")
}
