//! Statements about the connection: transactions, settings, prepared statements.

use super::{Expression, Literal, Name, Statement};
use datafusion::sql::sqlparser::ast::DataType;

/// `BEGIN [ISOLATION LEVEL ...] [READ ONLY | READ WRITE] [[NOT] DEFERRABLE]`; every level gives what Ebb has, one cut per block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TransactionModes {
    pub isolation: Option<Isolation>,
    pub read_only: Option<bool>,
    pub deferrable: Option<bool>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Isolation {
    ReadUncommitted,
    ReadCommitted,
    RepeatableRead,
    Serializable,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SetTransaction {
    /// `SET SESSION CHARACTERISTICS AS TRANSACTION`: for blocks to come.
    pub session: bool,
    pub modes: TransactionModes,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Set {
    pub scope: SetScope,
    /// Lower case, dotted names included. `SET TIME ZONE` is `timezone`, `SET NAMES` `client_encoding`, `SET SCHEMA` `search_path`.
    pub name: String,
    pub value: SetValue,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SetScope {
    /// The connection.
    #[default]
    Session,
    /// Until the block ends.
    Local,
    /// The server: `SET GLOBAL`.
    Global,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SetValue {
    Default,
    /// One or more; bare words (`on`, `utc`) are texts as written.
    Values(Vec<Literal>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reset {
    All,
    /// Lower case, dotted names included.
    Variable(String),
    /// `RESET GLOBAL name`
    Global(String),
}

#[derive(Debug, Clone, PartialEq)]
pub struct Prepare {
    pub name: Name,
    /// Types of the first parameters as said.
    pub types: Vec<DataType>,
    pub statement: Box<Statement>,
}

/// Arguments are constants or parameters.
#[derive(Debug, Clone, PartialEq)]
pub struct Execute {
    pub name: Name,
    pub args: Vec<Expression>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Deallocate {
    All,
    Name(Name),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Discard {
    All,
    Plans,
    Sequences,
    Temp,
}
