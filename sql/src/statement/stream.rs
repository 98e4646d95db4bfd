//! Definitions of streams and their changes, and the work one can ask for on a stream.

use super::{CreateRef, DropRef, Expression, Literal, Name, Query, StreamName};
use ebb_storage::{
    codec::{Codec, ColumnCodec},
    column_type::ColumnType,
    interval::Interval,
    rules::Destination,
    stream_def::{DefaultKind, IndexKind, SettingValue},
};

#[derive(Debug, Clone, PartialEq)]
pub struct CreateStream {
    pub if_not_exists: bool,
    pub name: StreamName,
    /// May be empty only with `query`.
    pub columns: Vec<Column>,
    pub indexes: Vec<Index>,
    /// `None`: not said; `Some` of an empty list: `tuple()`.
    pub partition_by: Option<Vec<Expression>>,
    /// `None`: not said; `Some` of an empty list: `tuple()`.
    pub order_by: Option<Vec<Expression>>,
    /// From the clause, the column list or a column; said once.
    pub primary_key: Option<Vec<Expression>>,
    pub series_key: Vec<Name>,
    pub ttl: Vec<Rule>,
    pub retention: Vec<Stage>,
    /// In the order written; no name twice.
    pub settings: Vec<Setting>,
    pub comment: Option<String>,
    /// `AS SELECT ...`
    pub query: Option<Query>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    pub name: Name,
    pub ty: ColumnType,
    pub nullable: bool,
    pub default: Option<Default>,
    pub comment: Option<String>,
    pub codec: Option<ColumnCodec>,
    pub ttl: Option<Expression>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Default {
    pub kind: DefaultKind,
    pub expr: Expression,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Index {
    pub name: Name,
    pub expr: Expression,
    pub kind: IndexKind,
    pub granularity: u64,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Setting {
    pub name: Name,
    pub value: SettingValue,
}

/// One line of a TTL clause. Bind makes it storage's rule, which carries a fingerprint.
#[derive(Debug, Clone, PartialEq)]
pub struct Rule {
    pub when: Expression,
    pub action: Action,
    /// 1-based character offset in the parsed text; no part of equality.
    pub position: Position,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    Delete { only: Option<Expression> },
    Recompress(Codec),
    Move(Destination),
    GroupBy { keys: Vec<Expression>, set: Vec<(Name, Expression)> },
}

/// One line of a RETENTION clause.
#[derive(Debug, Clone, PartialEq)]
pub enum Stage {
    Keep { after: Interval, keep: Expression },
    Drop { after: Interval },
    MaxAge(Interval),
    MaxBytes(u64),
    MaxRows(u64),
}

/// A place in the text that two equal statements need not share.
#[derive(Debug, Clone, Copy)]
pub struct Position(pub usize);

impl PartialEq for Position {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct AlterStream {
    pub if_exists: bool,
    pub name: StreamName,
    /// One or more, in the order written; to be carried out together or not at all.
    pub actions: Vec<AlterAction>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum AlterAction {
    /// Replaces the whole list.
    ModifyTtl(Vec<Rule>),
    RemoveTtl,
    MaterializeTtl {
        partition: Option<Partition>,
    },
    ModifyRetention(Vec<Stage>),
    RemoveRetention,
    ModifySetting(Vec<Setting>),
    ResetSetting(Vec<Name>),
    AddColumn {
        if_not_exists: bool,
        column: Column,
    },
    DropColumn {
        if_exists: bool,
        name: Name,
    },
    RenameColumn {
        from: Name,
        to: Name,
    },
    ModifyColumn(ModifyColumn),
    CommentColumn {
        name: Name,
        comment: String,
    },
    ModifyComment(String),
    DropPartition(Partition),
    Move {
        what: Movable,
        to: Destination,
    },
    CreateRef(CreateRef),
    DropRef(DropRef),
}

/// Only what is named changes; at least one thing is.
#[derive(Debug, Clone, PartialEq)]
pub struct ModifyColumn {
    pub name: Name,
    pub ty: Option<ColumnType>,
    /// Said by NULL, NOT NULL or nullable(T).
    pub nullable: Option<bool>,
    pub default: Option<Default>,
    pub comment: Option<String>,
    pub codec: Option<ColumnCodec>,
    pub ttl: Option<Expression>,
}

/// A partition of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Partition {
    /// `PARTITION v` or `PARTITION (v, ...)`: values of the partition expressions; empty for `tuple()`.
    Value(Vec<Literal>),
    /// `PARTITION ID 'x'`: the text of system.parts.partition.
    Id(String),
}

/// What `MOVE` moves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Movable {
    Partition(Partition),
    /// A part by name.
    Part(String),
}

#[derive(Debug, Clone, PartialEq)]
pub struct DropStream {
    pub if_exists: bool,
    /// One or more.
    pub names: Vec<StreamName>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct TruncateStream {
    pub if_exists: bool,
    pub name: StreamName,
}

#[derive(Debug, Clone, PartialEq)]
pub struct RenameStream {
    pub if_exists: bool,
    pub from: StreamName,
    pub to: StreamName,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Optimize {
    pub name: StreamName,
    pub partition: Option<Partition>,
    pub final_: bool,
    pub deduplicate: Option<Deduplicate>,
}

/// Which columns make two rows the same.
#[derive(Debug, Clone, PartialEq)]
pub enum Deduplicate {
    /// All of them.
    All,
    By(Vec<Name>),
}
