//! What is wrong with a text, and where.

use std::fmt;

/// SQLSTATE of a text that is no statement.
pub const SYNTAX_ERROR: &str = "42601";
/// SQLSTATE of SQL that Ebb knows but refuses.
pub const NOT_SUPPORTED: &str = "0A000";
/// SQLSTATE of a text nested too deeply.
pub const TOO_COMPLEX: &str = "54001";

/// The text does not parse; nothing of it was run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParseError {
    pub message: String,
    /// 1-based character offset into the text; `None` where no place is to blame.
    pub position: Option<usize>,
    /// [`SYNTAX_ERROR`], [`NOT_SUPPORTED`] or [`TOO_COMPLEX`].
    pub sqlstate: &'static str,
    /// The way out, where the message does not already say it.
    pub hint: Option<String>,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        if let Some(hint) = &self.hint {
            write!(f, ": {hint}")?;
        }
        Ok(())
    }
}

impl std::error::Error for ParseError {}
