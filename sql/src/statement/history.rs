//! Statements about history and what leans on it: tags, branches, CALL, readers, holds, rollups, backups, PREVIEW.

use super::{AlterStream, Expression, Name, Optimize, Query, StreamName};
use ebb_storage::interval::Interval;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefKind {
    Tag,
    Branch,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefMode {
    Create,
    CreateOrReplace,
    /// The ref must exist.
    Replace,
}

#[derive(Debug, Clone, PartialEq)]
pub struct CreateRef {
    pub kind: RefKind,
    pub mode: RefMode,
    pub if_not_exists: bool,
    pub name: Name,
    /// `AS OF VERSION e`: an sn, or the name of a ref; may be a parameter.
    pub as_of: Option<Expression>,
    pub retain: Option<Interval>,
    /// Branches only.
    pub snapshot_retention: Option<SnapshotRetention>,
}

/// `WITH SNAPSHOT RETENTION [n SNAPSHOTS] [n DAYS]`: at least one is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SnapshotRetention {
    pub min_snapshots: Option<u64>,
    pub max_age: Option<Interval>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct DropRef {
    pub kind: RefKind,
    pub if_exists: bool,
    pub name: Name,
}

/// Arguments are constants or parameters.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    pub procedure: Name,
    pub args: Vec<CallArg>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct CallArg {
    /// `name => value`; named ones follow the others.
    pub name: Option<Name>,
    pub value: Expression,
}

#[derive(Debug, Clone, PartialEq)]
pub struct CreateReader {
    pub if_not_exists: bool,
    pub name: Name,
    pub stream: StreamName,
    pub from: ReaderStart,
    pub max_lag: Option<Interval>,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub enum ReaderStart {
    Earliest,
    #[default]
    Latest,
    /// An sn; may be a parameter.
    Sn(Expression),
}

#[derive(Debug, Clone, PartialEq)]
pub struct DropReader {
    pub if_exists: bool,
    pub name: Name,
}

#[derive(Debug, Clone, PartialEq)]
pub struct CreateHold {
    pub if_not_exists: bool,
    pub name: Name,
    pub stream: StreamName,
    /// `None`: every row.
    pub condition: Option<Expression>,
    pub reason: Option<String>,
    pub until: Option<Expression>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct ReleaseHold {
    pub if_exists: bool,
    pub name: Name,
    pub stream: StreamName,
}

#[derive(Debug, Clone, PartialEq)]
pub struct CreateRollup {
    pub if_not_exists: bool,
    pub name: Name,
    pub stream: StreamName,
    pub query: Query,
}

#[derive(Debug, Clone, PartialEq)]
pub struct DropRollup {
    pub if_exists: bool,
    pub name: Name,
    pub stream: StreamName,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Backup {
    pub stream: StreamName,
    pub to: BackupPlace,
    pub with_history: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Restore {
    pub stream: StreamName,
    pub from: BackupPlace,
    pub as_name: Option<StreamName>,
    pub with_prune: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub enum BackupPlace {
    Disk(Name),
    Path(String),
}

#[derive(Debug, Clone, PartialEq)]
pub struct ExplainLifecycle {
    pub stream: StreamName,
    /// `None`: the clock's now.
    pub at: Option<Expression>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Preview {
    pub of: Previewed,
    /// `None`: the clock's now.
    pub at: Option<Expression>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Previewed {
    /// One action: MODIFY TTL or MODIFY RETENTION.
    Alter(AlterStream),
    Optimize(Optimize),
}
