//! Tags, branches and readers, and what follows from them: which cut a name means, what may be forgotten, what must stay.
//!
//! All of it pure. Guards I8: nothing that a ref, a readable cut or a reader within its lag needs is called dispensable.

pub mod ancestry;
pub mod dropped;
pub mod expiry;
pub mod forget;
pub mod lag;
pub mod needs;
pub mod resolve;
pub mod rounding;
#[cfg(test)]
mod testkit;

pub use ancestry::Ancestry;
pub use dropped::Dropped;
pub use expiry::{Expiry, Keep, Overrides, Pinning, expiry};
pub use forget::Gap;
pub use lag::Lag;
pub use needs::{Needed, Needs, PinnedBy};
pub use resolve::MAIN;
pub use rounding::Rounding;

use crate::{
    clock::Timestamp,
    ids::{SchemaVersion, Sn, StreamId},
    lineage::Cut,
};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum RefKind {
    /// Immovable.
    Tag,
    /// Written to by name.
    Branch,
}

/// A named cut. Tags and branches of a stream share one name space.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ref {
    pub name: String,
    pub kind: RefKind,
    /// Of a tag what it names; of a branch its own id with no end. The horizon is the commit that made or last moved it.
    pub cut: Cut,
    /// Where a branch was cut; of a tag its sn.
    pub fork: Sn,
    pub created_at: Timestamp,
    pub max_ref_age_ms: Option<i64>,
    /// What a branch sets itself of its retention.
    pub min_snapshots: Option<u64>,
    pub max_snapshot_age_ms: Option<i64>,
    /// The columns that a tag is read with.
    pub schema_version: SchemaVersion,
}

/// A registered incremental consumer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reader {
    pub name: String,
    pub stream: StreamId,
    /// Records of main up to here are consumed.
    pub sn: Sn,
    pub max_lag_ms: Option<i64>,
    pub created_at: Timestamp,
    /// When it was cut off for lagging too far.
    pub cut_off_at: Option<Timestamp>,
}

/// Which cut of a stream is meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AsOf {
    /// The state that this record left on the branch it was written to.
    Sn(Sn),
    /// A tag's, or the head of a branch.
    Name(String),
    /// Main's newest record at or before it.
    Time(Timestamp),
}

/// A cut found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolved {
    pub cut: Cut,
    /// The record that the cut stands at.
    pub sn: Sn,
    /// Of a tag: the columns to read with. Everything else is read with those of today.
    pub schema: Option<SchemaVersion>,
}
