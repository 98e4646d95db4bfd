//! What is wrong with a text, and where.

use datafusion::sql::sqlparser::{parser::ParserError, tokenizer::Location};
use std::fmt;

/// SQLSTATE of a text that is no statement.
pub const SYNTAX_ERROR: &str = crate::sqlstate::SYNTAX_ERROR;
/// SQLSTATE of SQL that Ebb knows but refuses.
pub const NOT_SUPPORTED: &str = crate::sqlstate::FEATURE_NOT_SUPPORTED;
/// SQLSTATE of a text nested too deeply.
pub const TOO_COMPLEX: &str = crate::sqlstate::TOO_COMPLEX;

/// The text does not parse; nothing of it was run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParseError {
    pub message: String,
    /// 1-based character offset into the text; `None` where no place is to blame.
    pub position: Option<usize>,
    /// [`SYNTAX_ERROR`], [`NOT_SUPPORTED`], [`TOO_COMPLEX`], or of a column that is there twice.
    pub sqlstate: &'static str,
    /// The way out, where the message does not already say it.
    pub hint: Option<String>,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        if let Some(hint) = &self.hint {
            write!(f, " ({hint})")?;
        }
        Ok(())
    }
}

impl std::error::Error for ParseError {}

pub(super) fn syntax(message: impl Into<String>, position: usize) -> ParseError {
    ParseError { message: message.into(), position: Some(position), sqlstate: SYNTAX_ERROR, hint: None }
}

/// `what` is known but not done; `way_out` says what to write instead.
pub(super) fn refused(what: impl Into<String>, way_out: impl Into<String>, position: usize) -> ParseError {
    ParseError { message: what.into(), position: Some(position), sqlstate: NOT_SUPPORTED, hint: Some(way_out.into()) }
}

/// sqlparser's message without the place it ends with, and that place.
pub(super) fn of_parser(e: ParserError) -> (String, &'static str, Option<Location>) {
    let message = match e {
        ParserError::RecursionLimitExceeded => return ("the statement is nested too deeply".to_owned(), TOO_COMPLEX, None),
        ParserError::TokenizerError(m) | ParserError::ParserError(m) => m,
    };
    let Some((head, place)) = message.rsplit_once(" at Line: ") else { return (lowered(&message), SYNTAX_ERROR, None) };
    let location = place.split_once(", Column: ").and_then(|(l, c)| Some(Location { line: l.parse().ok()?, column: c.parse().ok()? }));
    (lowered(head), SYNTAX_ERROR, location)
}

/// `Expected: x, found: y` as `expected x, found y`.
fn lowered(message: &str) -> String {
    match message.strip_prefix("Expected: ") {
        Some(rest) => format!("expected {}", rest.replacen(", found: EOF", ", found the end", 1).replacen("found: ", "found ", 1)),
        None => message.to_owned(),
    }
}
