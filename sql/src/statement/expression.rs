//! Expressions that are kept: one canonical text per meaning of the syntax, beside the tree it was printed from.

use datafusion::sql::sqlparser::ast::Expr;
use std::fmt;

/// A value expression in canonical form: unquoted names and function names in lower case, names quoted only where needed,
/// literal intervals as storage prints them. `text` parses to `ast` again.
///
/// Equality is of the text.
#[derive(Debug, Clone)]
pub struct Expression {
    pub text: String,
    pub ast: Box<Expr>,
}

impl PartialEq for Expression {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// A constant written as such.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Literal {
    Null,
    Bool(bool),
    /// A number as written, with its sign.
    Number(String),
    /// A string; also the text of a typed one, like `DATE '2026-03-01'`.
    Text(String),
}

impl fmt::Display for Literal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("NULL"),
            Self::Bool(b) => write!(f, "{b}"),
            Self::Number(n) => f.write_str(n),
            Self::Text(t) => f.write_str(&super::quote_text(t)),
        }
    }
}
