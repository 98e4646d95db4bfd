//! The changes a commit can make. Data only; applying them is pure and lives in `manifest.rs`'s neighbours.

use super::runs::Runs;
use crate::{
    clock::Timestamp,
    disk::{DiskDef, StoragePolicy},
    ids::{BranchId, ColumnId, CommitNo, DiskId, Epoch, Fingerprint, Generation, Lsn, PartId, SchemaVersion, Sn, StreamId},
    lineage::{Lineage, SnRange},
    part::meta::{ExpiredRows, PartMeta, Placement, RuleFacts},
    refs::{Reader, Ref},
    stream_def::{SettingValue, StreamDef},
    verb::Verb,
};
use serde::{Deserialize, Serialize};

/// One numbered, atomic change of the manifest.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Commit {
    pub no: CommitNo,
    pub epoch: Epoch,
    /// Tells a commit that landed from another's with the same number, after a time-out.
    pub nonce: String,
    /// Never falls from one commit to the next (I3).
    pub time: Timestamp,
    pub edits: Vec<Edit>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Edit {
    /// A new opening; older epochs' commits are refused from here (I7).
    TakeEpoch(Epoch),
    CreateDatabase {
        name: String,
    },
    DropDatabase {
        name: String,
    },
    /// Its lineage starts whole, its applied sn at 0.
    CreateStream(Box<StreamDef>),
    /// New columns, rules, settings, names, comment. The id stays.
    AlterStream(Box<StreamDef>),
    /// The stream with its parts, refs and readers.
    DropStream(StreamId),
    /// The log is folded up to `sn`; `records` are those newly folded, one line each; old appends are summed up then, where there are too
    /// many lines.
    Apply {
        stream: StreamId,
        sn: Sn,
        records: Vec<RecordInfo>,
    },
    /// The log is needed only behind this lsn: what lies before is in parts, or of dropped streams.
    LogApplied {
        lsn: Lsn,
    },
    /// A branch sees other sns from `lineage.from` on.
    SetLineage {
        stream: StreamId,
        branch: BranchId,
        lineage: Lineage,
    },
    /// A new ref, or a known one changed; a new branch with what it sees.
    SetRef {
        stream: StreamId,
        r: Box<Ref>,
        lineage: Option<Lineage>,
    },
    /// The ref, and what only it held: its records that no other ref and not main's history has.
    DropRef {
        stream: StreamId,
        name: String,
    },
    /// These sns can no longer be read or named.
    Forget {
        stream: StreamId,
        sns: Vec<SnRange>,
    },
    SetReader(Box<Reader>),
    DropReader {
        name: String,
    },
    AddPart(Box<PartMeta>),
    /// The part is no longer listed; vacuum deletes its object once nothing pins it.
    RemovePart {
        stream: StreamId,
        part: PartId,
        why: RemoveReason,
    },
    /// Same rows, other place or codec (move, recompress).
    Place {
        stream: StreamId,
        part: PartId,
        placement: Placement,
    },
    /// The bytes of the part's newest generation say for all rows that they are of one record of main.
    Rounded {
        stream: StreamId,
        part: PartId,
        sn: Sn,
        sn_bytes: u64,
    },
    /// Measured facts join those of other rules.
    Measured {
        stream: StreamId,
        part: PartId,
        facts: Vec<RuleFacts>,
    },
    Marked {
        stream: StreamId,
        part: PartId,
        marker: u64,
    },
    AddDeletion {
        stream: StreamId,
        part: PartId,
        deletion: crate::part::meta::Deletion,
    },
    AddExpired {
        stream: StreamId,
        part: PartId,
        expired: ExpiredRows,
    },
    /// A job that arms a timer of a partition ended.
    TimerArmed {
        stream: StreamId,
        partition: String,
        timer: Timer,
        at: Timestamp,
    },
    /// `None` gives the setting its default back.
    ServerSetting {
        name: String,
        value: Option<SettingValue>,
    },
    /// A new disk, or a known one with other options: the id and the name stay.
    CreateDisk(Box<DiskDef>),
    DropDisk(DiskId),
    /// A new policy, or a known one with a higher version.
    SetPolicy(Box<StoragePolicy>),
    DropPolicy {
        name: String,
    },
    PartLog(Box<PartLogRow>),
    LifecycleLog(Box<LifecycleLogRow>),
    /// So many rows of the two logs, of all there ever were, now lie in the internal streams.
    LogsMoved {
        part_log: u64,
        lifecycle_log: u64,
    },
    /// Vacuum deleted the objects of these removed parts.
    Vacuumed {
        parts: Vec<(StreamId, PartId, Generation)>,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Timer {
    /// `merge_with_ttl_timeout`
    Prune,
    /// `merge_with_recompression_ttl_timeout`
    Recompress,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum RemoveReason {
    /// Its rows live on in another part.
    Replaced,
    /// A rule took it whole.
    Rule,
    /// TRUNCATE or DROP PARTITION.
    Statement,
    /// No readable cut sees it.
    History,
    StreamDropped,
}

/// A line of the stream's record list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordInfo {
    /// The last sn of the line.
    pub sn: Sn,
    /// How many records the line stands for: more than one only for coalesced appends.
    pub count: u64,
    pub parent: Sn,
    pub branch: BranchId,
    pub time: Timestamp,
    pub verb: Verb,
    pub rows_added: u64,
    pub rows_deleted: u64,
    pub schema_version: SchemaVersion,
    /// Keys of idempotent inserts, remembered as long as the line is.
    pub key: Option<String>,
    /// Its records, where those of other branches lie between them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runs: Option<Runs>,
    /// Of a line of several, the time of its first record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
}

impl RecordInfo {
    /// From its first record to its last; between them there may be others.
    pub fn hull(&self) -> SnRange {
        let first = self.runs.as_ref().and_then(|r| r.ranges().first()).map(|r| r.after);
        SnRange { after: first.unwrap_or_else(|| Sn(self.sn.0.saturating_sub(self.count))), to: self.sn }
    }

    /// The records that the line stands for.
    pub fn sns(&self) -> impl DoubleEndedIterator<Item = SnRange> {
        sns(self.hull(), self.runs.as_ref())
    }

    /// Its first record, and when that was.
    pub fn first(&self) -> (Sn, Timestamp) {
        (self.hull().after.next(), self.since.unwrap_or(self.time))
    }

    /// By when one of its records was there.
    pub fn time_of(&self, sn: Sn) -> Timestamp {
        let (first, at) = self.first();
        if sn == first { at } else { self.time }
    }

    /// Whether it stands for the record.
    pub fn contains(&self, sn: Sn) -> bool {
        self.hull().contains(sn) && self.runs.as_ref().is_none_or(|r| r.contains(sn))
    }

    /// Whether removals by rules count for its branch up to the commit that applies it, and all of them until then.
    pub fn moves_horizon(&self) -> bool {
        self.verb == Verb::FastForward && self.branch != BranchId::MAIN
    }
}

/// The records of a line.
pub fn sns(hull: SnRange, runs: Option<&Runs>) -> impl DoubleEndedIterator<Item = SnRange> {
    runs.into_iter().flat_map(|r| r.ranges().iter().copied()).chain(runs.is_none().then_some(hull))
}

/// What a commit's plan stood on. One that no longer holds refuses the commit (I13).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expect {
    Part {
        stream: StreamId,
        part: PartId,
        generation: Generation,
    },
    Policy {
        stream: StreamId,
        version: u64,
    },
    Schema {
        stream: StreamId,
        version: SchemaVersion,
    },
    /// The stream exists and has this definition exactly (both versions).
    Definition {
        stream: StreamId,
        schema: SchemaVersion,
        policy: u64,
    },
    Lineage {
        stream: StreamId,
        branch: BranchId,
        from: Sn,
    },
    Applied {
        stream: StreamId,
        sn: Sn,
    },
    /// No ref came, went or changed.
    Refs {
        stream: StreamId,
        version: u64,
    },
    NoStreamNamed {
        database: String,
        name: String,
    },
    Database {
        name: String,
    },
    /// The policy is as it was when the plan was made.
    StoragePolicy {
        name: String,
        version: u64,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum PartEvent {
    NewPart,
    MergeParts,
    PrunePart,
    RecompressPart,
    MovePart,
    DropPart,
    RemovePart,
}

impl PartEvent {
    pub const ALL: [Self; 7] =
        [Self::NewPart, Self::MergeParts, Self::PrunePart, Self::RecompressPart, Self::MovePart, Self::DropPart, Self::RemovePart];

    /// As system.part_log shows it, and as it is kept.
    pub fn name(self) -> &'static str {
        match self {
            Self::NewPart => "NewPart",
            Self::MergeParts => "MergeParts",
            Self::PrunePart => "PrunePart",
            Self::RecompressPart => "RecompressPart",
            Self::MovePart => "MovePart",
            Self::DropPart => "DropPart",
            Self::RemovePart => "RemovePart",
        }
    }
}

/// A row of system.part_log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartLogRow {
    pub time: Timestamp,
    pub event: PartEvent,
    pub database: String,
    pub stream: String,
    pub part: String,
    pub source_parts: Vec<String>,
    pub partition: String,
    pub disk: String,
    pub rows: u64,
    pub bytes: u64,
    pub rows_read: u64,
    pub bytes_read: u64,
    pub duration_ms: u64,
    pub reason: String,
    pub error: String,
}

/// A row of system.lifecycle_log: one change made by a rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LifecycleLogRow {
    pub time: Timestamp,
    pub database: String,
    pub stream: String,
    pub rule: String,
    pub fingerprint: Fingerprint,
    pub action: String,
    pub part: String,
    pub rows_before: u64,
    pub rows_after: u64,
    pub bytes_before: u64,
    pub bytes_after: u64,
    pub reason: String,
    pub duration_ms: u64,
    pub error: String,
    /// Columns that the rule read.
    pub columns: Vec<ColumnId>,
}
