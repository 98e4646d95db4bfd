//! What a record does to its stream's content.

use serde::{Deserialize, Serialize};
use std::fmt;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Verb {
    /// Rows in the record itself.
    Insert,
    /// Rows in parts that the record names.
    InsertStaged,
    Delete,
    Truncate,
    DropPartition,
    Deduplicate,
    Rollback,
    FastForward,
    CherryPick,
    Restore,
}

/// The word of `snapshots('s').operation`.
impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Insert | Self::InsertStaged => "append",
            Self::Delete => "delete",
            Self::Truncate => "truncate",
            Self::DropPartition => "drop_partition",
            Self::Deduplicate => "deduplicate",
            Self::Rollback => "rollback",
            Self::FastForward => "fast_forward",
            Self::CherryPick => "cherrypick",
            Self::Restore => "restore",
        })
    }
}
