//! The one error that Ebb's users see: what to do, five letters for programs, a sentence for people, and where in the text.
//!
//! Errors of the layers below become this one here and nowhere else; an `Error` that travelled through DataFusion comes out as it
//! went in.

mod datafusion;

#[cfg(test)]
mod tests;

use crate::{parse::ParseError, sqlstate};
pub use ebb_storage::ErrorKind;
use std::fmt;

pub type Result<T, E = Error> = std::result::Result<T, E>;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    kind: ErrorKind,
    sqlstate: &'static str,
    message: String,
    /// 1-based character offset into the statement's text.
    position: Option<usize>,
    hint: Option<String>,
}

impl Error {
    /// With the SQLSTATE that the table gives for `kind`.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, sqlstate: sqlstate::of_kind(kind), message: message.into(), position: None, hint: None }
    }
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Invalid, message)
    }
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::NotFound, message)
    }
    pub fn conflict(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Conflict, message)
    }
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Internal, message)
    }
    /// SQL that Ebb knows but does not do.
    pub fn unsupported(message: impl Into<String>) -> Self {
        Self::invalid(message).with_sqlstate(sqlstate::FEATURE_NOT_SUPPORTED)
    }
    pub fn cancelled(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Unavailable, message).with_sqlstate(sqlstate::QUERY_CANCELED)
    }

    pub fn with_sqlstate(mut self, sqlstate: &'static str) -> Self {
        self.sqlstate = sqlstate;
        self
    }
    /// `position`: 1-based character offset; an earlier one stays.
    pub fn at(mut self, position: usize) -> Self {
        self.position.get_or_insert(position);
        self
    }
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
    /// Puts `context: ` before the message.
    pub fn context(mut self, context: impl fmt::Display) -> Self {
        self.message = format!("{context}: {}", self.message);
        self
    }

    pub fn kind(&self) -> ErrorKind {
        self.kind
    }
    pub fn sqlstate(&self) -> &'static str {
        self.sqlstate
    }
    pub fn message(&self) -> &str {
        &self.message
    }
    pub fn position(&self) -> Option<usize> {
        self.position
    }
    pub fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match &self.hint {
            Some(hint) => write!(f, " ({hint})"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Error {}

impl From<ParseError> for Error {
    fn from(e: ParseError) -> Self {
        let error = Self { kind: ErrorKind::Invalid, sqlstate: e.sqlstate, message: e.message, position: e.position, hint: None };
        match e.hint {
            Some(hint) => error.with_hint(hint),
            None => error,
        }
    }
}

impl From<ebb_storage::Error> for Error {
    fn from(e: ebb_storage::Error) -> Self {
        Self::new(e.kind(), e.to_string())
    }
}

impl From<std::io::Error> for Error {
    fn from(e: std::io::Error) -> Self {
        ebb_storage::Error::from(e).into()
    }
}
