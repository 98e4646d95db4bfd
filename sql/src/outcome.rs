//! What a statement answers with, and what is known of it before it runs.

use crate::{
    Error,
    copy::{CopyIn, CopyOut},
    statement::Statement,
};
use arrow::datatypes::{DataType, FieldRef, SchemaRef};
use datafusion::execution::SendableRecordBatchStream;
use std::{fmt, sync::Arc};

/// A statement whose names were looked up once. They are looked up again at each run: a prepared statement sees the cut, the columns
/// and the clock of its Execute.
#[derive(Debug, Clone)]
pub struct Prepared {
    pub statement: Arc<Statement>,
    /// One for each parameter, marked with what it was declared as; Utf8 where nothing says more.
    pub parameters: Vec<FieldRef>,
    /// Of the rows it answers with; `None` where it answers with none.
    pub result: Option<SchemaRef>,
    /// Why the columns of its rows are not known before its parameters are; [`crate::Session::columns`] tells them then.
    pub undecided: Option<Error>,
}

impl Prepared {
    pub fn parameter_types(&self) -> Vec<DataType> {
        self.parameters.iter().map(|f| f.data_type().clone()).collect()
    }
}

pub enum Outcome {
    Rows {
        schema: SchemaRef,
        stream: SendableRecordBatchStream,
        tag: RowTag,
    },
    /// Done; PostgreSQL's command tag with its count: `INSERT 0 3`.
    Command {
        tag: String,
    },
    /// Waits for data.
    CopyIn(CopyIn),
    CopyOut(CopyOut),
    /// There was no statement.
    Empty,
}

/// The command tag of rows, which is sent when all are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowTag {
    /// `SELECT n`
    Select,
    /// As it is: `SHOW`, `EXPLAIN`, `OPTIMIZE STREAM`.
    Fixed(&'static str),
}

impl RowTag {
    pub fn text(self, rows: u64) -> String {
        match self {
            Self::Select => format!("SELECT {rows}"),
            Self::Fixed(tag) => tag.to_owned(),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    Notice,
    Warning,
}

/// What the client should know about a statement that succeeded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    pub severity: Severity,
    pub sqlstate: &'static str,
    pub message: String,
}

impl Notice {
    #[allow(clippy::self_named_constructors, reason = "the severity is called so, beside `warning`")]
    pub fn notice(message: impl Into<String>) -> Self {
        Self { severity: Severity::Notice, sqlstate: "00000", message: message.into() }
    }
    pub fn warning(sqlstate: &'static str, message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, sqlstate, message: message.into() }
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Notice => "NOTICE",
            Self::Warning => "WARNING",
        })
    }
}

impl fmt::Debug for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rows { tag, .. } => write!(f, "Rows({tag:?})"),
            Self::Command { tag } => write!(f, "Command({tag})"),
            Self::CopyIn(_) => f.write_str("CopyIn"),
            Self::CopyOut(_) => f.write_str("CopyOut"),
            Self::Empty => f.write_str("Empty"),
        }
    }
}
