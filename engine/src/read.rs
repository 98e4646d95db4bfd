//! What readers see: one cut over all streams, and the parts and tail rows of a stream in it.
//!
//! Guards: a view is atomic over all streams (a transaction is seen whole or not at all), a row is in a part or in the tail and
//! never in both, and what a view names is not deleted while it lives (I8).

use arrow::{
    array::{ArrayRef, Int64Array, RecordBatch},
    datatypes::Int64Type,
};
use ebb_storage::{
    ids::{SchemaVersion, Sn, StreamId},
    part::{PartMeta, RowSet},
    stream_def::StreamDef,
};
use object_store::{ObjectStore, path::Path};
use std::sync::Arc;

/// One cut over all streams, held until dropped. Cheap to clone.
#[derive(Clone)]
pub struct ReadView {}

/// A stream as one cut sees it.
#[derive(Clone)]
pub struct StreamView {
    pub def: Arc<StreamDef>,
    /// Parts with rows that main's head sees, in the order of their ids.
    pub parts: Vec<LivePart>,
    /// Rows that are in no part yet, in the order of their records.
    pub tail: Vec<TailRows>,
    /// The newest record of the stream.
    pub head_sn: Sn,
    /// Records up to this one are in parts.
    pub applied_sn: Sn,
}

/// A part that a view reads.
#[derive(Clone)]
pub struct LivePart {
    pub meta: Arc<PartMeta>,
    pub store: Arc<dyn ObjectStore>,
    pub key: Path,
    /// The disk's name.
    pub disk: Arc<str>,
    /// Rows of the file that main's head does not see.
    pub hidden: Option<Arc<RowSet>>,
    /// A staged part's rows all have this sn; the file's `_tp_sn` column says 0.
    pub sn_of_record: Option<Sn>,
}

/// Rows of the tail that were written under one schema version.
#[derive(Debug, Clone)]
pub struct TailRows {
    /// The newest record among them.
    pub sn: Sn,
    pub schema_version: SchemaVersion,
    /// In `row_schema` of that version.
    pub rows: RecordBatch,
    /// Where the rows are of several records: the sn of each row.
    pub sns: Option<Int64Array>,
}

impl TailRows {
    /// `_tp_sn` of each row.
    pub fn sn_column(&self) -> ArrayRef {
        match &self.sns {
            Some(sns) => Arc::new(sns.clone()),
            None => Arc::new(arrow::array::PrimitiveArray::<Int64Type>::from_value(
                i64::try_from(self.sn.0).unwrap_or(i64::MAX),
                self.rows.num_rows(),
            )),
        }
    }
}

impl ReadView {
    pub fn stream(&self, id: StreamId) -> Option<StreamView> {
        let _ = id;
        None
    }

    pub fn stream_named(&self, database: &str, name: &str) -> Option<StreamView> {
        let _ = (database, name);
        None
    }
}
