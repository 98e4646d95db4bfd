//! Values into column types: everything that enters a stream passes here, whatever brought it.
//!
//! `coerce` takes Arrow arrays, `text` texts as PostgreSQL writes them; both check what the type demands and name the column, the row and
//! the value they refuse. Nothing wraps, nothing turns silently into NULL.

pub mod coerce;
pub mod text;

pub use coerce::coerce;
pub use text::parse_text;

use crate::{Error, sqlstate};

/// How much of a value is shown in a message.
const SHOWN_CHARS: usize = 80;

/// The row, counted from 0 in the array, is told to the caller, who knows what it is called (line, parameter, row of VALUES).
#[derive(Debug, Clone, PartialEq)]
pub struct Refused {
    pub row: usize,
    pub sqlstate: &'static str,
    pub message: String,
}

impl Refused {
    fn new(row: usize, sqlstate: &'static str, message: impl Into<String>) -> Self {
        Self { row, sqlstate, message: message.into() }
    }

    fn value(row: usize, column: &str, value: &str, what: impl std::fmt::Display) -> Self {
        Self::new(row, sqlstate::INVALID_TEXT_REPRESENTATION, format!("column '{column}': '{}' is no {what}", shown(value)))
    }

    fn range(row: usize, column: &str, value: &str, what: impl std::fmt::Display) -> Self {
        Self::new(row, sqlstate::NUMERIC_OUT_OF_RANGE, format!("column '{column}': {} is out of range of {what}", shown(value)))
    }

    fn null(row: usize, column: &str) -> Self {
        Self::new(
            row,
            sqlstate::NOT_NULL_VIOLATION,
            format!("column '{column}' is NOT NULL and got NULL: give a value, or declare it nullable"),
        )
    }
}

impl From<Refused> for Error {
    fn from(r: Refused) -> Self {
        Self::invalid(r.message).with_sqlstate(r.sqlstate)
    }
}

fn shown(value: &str) -> String {
    let mut text: String = value.chars().take(SHOWN_CHARS).collect();
    if text.len() < value.len() {
        text.push_str("...");
    }
    text
}
