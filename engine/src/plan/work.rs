//! Work as a value: what is to be done to which parts, and where what is written goes.

use ebb_storage::{
    Timestamp,
    codec::Codec,
    ids::{DiskId, Fingerprint, PartId, StreamId},
};
use std::sync::Arc;

/// How and where a job writes rows that stay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Target {
    pub codec: Codec,
    pub disk: DiskId,
    /// The rule that asked for the codec, where one did.
    pub recompressed_by: Option<Fingerprint>,
    /// The rule that asked for the disk, where one did.
    pub moved_by: Option<Fingerprint>,
    /// For rows that still wait to move: since when one of the parts they were in was both written and due.
    pub move_due_since: Option<Timestamp>,
}

impl Target {
    pub fn new(codec: Codec, disk: DiskId) -> Self {
        Self { codec, disk, recompressed_by: None, moved_by: None, move_due_since: None }
    }
}

/// Why a part moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MoveWhy {
    Rule,
    /// Too little of its disk is free.
    Pressure,
    /// ALTER ... MOVE.
    Statement,
}

/// Work to be done together. A value: two rounds over the same facts make equal plans.
#[derive(Debug, Clone, PartialEq)]
pub enum Plan {
    /// Take parts out whole: every row of each is due.
    Drop { stream: StreamId, parts: Vec<PartId>, cutoff: Timestamp },
    /// Rewrite each part without the rows that are due at `cutoff`; of each the target.
    Prune { stream: StreamId, partition: Arc<str>, parts: Vec<PartId>, targets: Vec<Target>, cutoff: Timestamp },
    /// Make one part of several, without the rows due at `cutoff` where `delete_due`.
    Merge { stream: StreamId, partition: Arc<str>, parts: Vec<PartId>, target: Target, cutoff: Timestamp, delete_due: bool, reason: String },
    /// Make one part of several, in which due rows of one key become one, without the rows that rules remove at `cutoff`.
    Fold { stream: StreamId, partition: Arc<str>, parts: Vec<PartId>, target: Target, cutoff: Timestamp },
    /// The same rows in another codec, each part where it is; of each the target.
    Recompress { stream: StreamId, partition: Arc<str>, parts: Vec<PartId>, targets: Vec<Target> },
    /// The same rows on another disk, and in another codec where they are due for one.
    Move { stream: StreamId, part: PartId, target: Target, why: MoveWhy },
    /// Record the rows due at `cutoff` as expired, for main alone: a ref still needs them in their parts.
    Expire { stream: StreamId, partition: Arc<str>, parts: Vec<PartId>, cutoff: Timestamp },
    /// Take parts out that nothing that can be read needs any row of.
    Release { stream: StreamId, parts: Vec<PartId> },
    /// Write one record's sn for all rows of the part, whose records nothing tells apart any more.
    Forget { stream: StreamId, part: PartId, target: Target },
    /// Count when rows come due, for rules that have no facts of the part.
    Measure { stream: StreamId, parts: Vec<PartId> },
}

impl Plan {
    pub fn stream(&self) -> StreamId {
        match self {
            Self::Drop { stream, .. }
            | Self::Prune { stream, .. }
            | Self::Merge { stream, .. }
            | Self::Fold { stream, .. }
            | Self::Recompress { stream, .. }
            | Self::Move { stream, .. }
            | Self::Expire { stream, .. }
            | Self::Release { stream, .. }
            | Self::Forget { stream, .. }
            | Self::Measure { stream, .. } => *stream,
        }
    }

    pub fn parts(&self) -> &[PartId] {
        match self {
            Self::Drop { parts, .. }
            | Self::Prune { parts, .. }
            | Self::Merge { parts, .. }
            | Self::Fold { parts, .. }
            | Self::Recompress { parts, .. }
            | Self::Expire { parts, .. }
            | Self::Release { parts, .. }
            | Self::Measure { parts, .. } => parts,
            Self::Move { part, .. } | Self::Forget { part, .. } => std::slice::from_ref(part),
        }
    }

    /// The partition whose distance of prunes it keeps to, and begins anew.
    pub fn pruned_partition(&self) -> Option<(StreamId, Arc<str>)> {
        match self {
            Self::Prune { stream, partition, .. } | Self::Fold { stream, partition, .. } | Self::Expire { stream, partition, .. } => {
                Some((*stream, partition.clone()))
            }
            _ => None,
        }
    }

    /// Whether its parts become one.
    pub fn makes_one(&self) -> bool {
        matches!(self, Self::Merge { .. } | Self::Fold { .. })
    }

    /// Of each part that is written its target; of parts that become one the one.
    pub fn targets(&self) -> &[Target] {
        match self {
            Self::Prune { targets, .. } | Self::Recompress { targets, .. } => targets,
            Self::Merge { target, .. } | Self::Fold { target, .. } | Self::Move { target, .. } | Self::Forget { target, .. } => {
                std::slice::from_ref(target)
            }
            Self::Drop { .. } | Self::Expire { .. } | Self::Release { .. } | Self::Measure { .. } => &[],
        }
    }

    /// Whether a rule asked for it, rather than the number of parts or a lack of room.
    pub fn is_for_rules(&self) -> bool {
        matches!(self, Self::Prune { .. } | Self::Fold { .. } | Self::Expire { .. } | Self::Measure { .. } | Self::Recompress { .. })
    }

    pub fn kind(&self) -> &'static str {
        match self {
            Self::Drop { .. } => "drop",
            Self::Prune { .. } => "prune",
            Self::Merge { .. } => "merge",
            Self::Fold { .. } => "fold",
            Self::Recompress { .. } => "recompress",
            Self::Move { .. } => "move",
            Self::Expire { .. } => "expire",
            Self::Release { .. } => "release",
            Self::Forget { .. } => "forget",
            Self::Measure { .. } => "measure",
        }
    }
}
