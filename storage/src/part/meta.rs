//! What the manifest knows of a part. All that can be asked of a part without opening its file is here.
//!
//! Everything but `placement`, `deletions`, `expired`, `facts` and `retention_marker` is fixed when the part is written.

use crate::{
    clock::Timestamp,
    codec::Codec,
    ids::{BranchId, ColumnId, CommitNo, DiskId, Fingerprint, Generation, PartId, SchemaVersion, Sn, StreamId},
    lineage::SnRange,
    part::{computed::ComputedValues, row_set::RowSet, stats::ColumnStats, value_set::ColumnSet},
};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PartMeta {
    pub id: PartId,
    pub stream: StreamId,
    /// `<partition>_<min_sn>_<max_sn>_<level>_<id in base 36>`.
    pub name: String,
    /// The partition's value as text: `202603`, `(a,202603)`, `NULL`, `all`.
    pub partition: Arc<str>,
    pub schema_version: SchemaVersion,
    /// Columns younger than `schema_version` or the data, written out by a merge from their defaults.
    pub filled: Vec<ColumnId>,
    /// Columns of the file that were dropped before it was written, for tags that read them. Rising.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub carried: Vec<ColumnId>,
    /// Which branch wrote which sns, with row counts. Rising by branch, then sn.
    pub origins: Vec<Origin>,
    /// A staged part was written before its sn was known: its `_tp_sn` column holds 0 and every row has the sn of its one origin.
    pub sn_in_meta: bool,
    /// Rows in the file.
    pub rows: u64,
    /// How many merges lie behind it: 0 as flushed.
    pub level: u32,
    pub placement: Placement,
    /// Of the file's `_tp_sn` column, as it lies there; 0 where that was not told.
    #[serde(default)]
    pub sn_bytes: u64,
    /// Bytes of the same rows before encoding and compression.
    pub uncompressed_bytes: u64,
    /// Rows per row group, in file order.
    pub row_groups: Vec<u64>,
    /// Stored columns and `_tp_time`; a column that the part lacks is missing here too.
    pub stats: Vec<ColumnStats>,
    /// Of columns with an INDEX of type set, while their values are few.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sets: Vec<ColumnSet>,
    /// Of each INDEX over an expression, where it covers all rows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub computed: Vec<ComputedValues>,
    /// `_tp_time` of the rows, included.
    pub min_time: Timestamp,
    pub max_time: Timestamp,
    /// When these rows were last written together: by a flush, merge or prune, not by a move or recompression.
    pub written_at: Timestamp,
    /// When the bytes last changed.
    pub modified_at: Timestamp,
    /// The earliest moment at which one of the parts it was merged from was both written and due for a move.
    pub move_due_since: Option<Timestamp>,
    /// Exact, per rule of the stream; a rule without an entry is still to be measured.
    pub facts: Vec<RuleFacts>,
    /// The hash of the RETENTION clauses that applied.
    pub retention_marker: Option<u64>,
    /// Rows removed by records.
    pub deletions: Vec<Deletion>,
    /// Rows that a rule or budget removed while the file still holds them.
    pub expired: Vec<ExpiredRows>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    pub branch: BranchId,
    pub sns: SnRange,
    pub rows: u64,
}

/// Where and how a part's bytes lie. Exactly one for each part (I1).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Placement {
    pub disk: DiskId,
    pub generation: Generation,
    pub codec: Codec,
    pub bytes: u64,
    /// xxh3-64 of the file.
    pub checksum: u64,
}

/// What a rule will do to a part, in numbers: rows that it concerns (for DELETE WHERE: matching rows only) and when they are due.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleFacts {
    pub rule: Fingerprint,
    /// Rows that will come due or are.
    pub rows: u64,
    /// Rows concerned whose value never comes due: NULL, zero, not representable, or an evaluation that failed.
    pub never: u64,
    /// Of the `rows`; `None` where `rows` is 0.
    pub earliest: Option<Timestamp>,
    pub latest: Option<Timestamp>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Deletion {
    pub branch: BranchId,
    pub sn: Sn,
    pub rows: RowsAt,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExpiredRows {
    pub commit: CommitNo,
    pub rows: RowsAt,
}

/// A row set, in the manifest while small, else in an object beside the part.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum RowsAt {
    /// Every row of the file.
    All,
    Inline(RowSet),
    /// `<part id>.<number>.del` or `.exp` on the data directory's disk, wherever the part lies, with how many rows it names.
    Beside {
        suffix: BesideName,
        count: u64,
    },
}

/// The numbers are minted like those of parts: none is used twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum BesideName {
    Deletion(PartId),
    Expired(PartId),
}

impl RowsAt {
    /// How many rows of a part with `rows` rows it names.
    pub fn count(&self, rows: u64) -> u64 {
        match self {
            Self::All => rows,
            Self::Inline(set) => set.len(),
            Self::Beside { count, .. } => *count,
        }
    }
}

impl PartMeta {
    pub fn min_sn(&self) -> Sn {
        self.origins.iter().map(|o| o.sns.after.next()).min().unwrap_or_default()
    }
    pub fn max_sn(&self) -> Sn {
        self.origins.iter().map(|o| o.sns.to).max().unwrap_or_default()
    }
    pub fn facts_of(&self, rule: Fingerprint) -> Option<&RuleFacts> {
        self.facts.iter().find(|f| f.rule == rule)
    }
    pub fn stats_of(&self, column: ColumnId) -> Option<&ColumnStats> {
        self.stats.iter().find(|s| s.column == column)
    }
}
