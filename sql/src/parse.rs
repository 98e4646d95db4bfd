//! Text to [`Statement`]: one file per verb or family. Nothing is looked up here, and nothing is silently ignored: what Ebb does not
//! do is refused with the way out.
//!
//! `text` knows places, `lex` makes tokens, `cursor` walks them; `dispatch` chooses by the first words. sqlparser reads expressions,
//! types of casts and queries; `canonical` prints expressions that are kept.

mod alter_stream;
mod call;
mod canonical;
mod codec;
mod columns;
mod copy;
mod create_stream;
mod cursor;
mod disk;
mod dispatch;
mod error;
mod explain;
mod expression;
mod insert;
mod interval;
mod lex;
mod query;
mod reader;
mod refs;
mod retention;
mod set;
mod settings;
mod show;
mod stream;
mod system;
mod text;
mod transaction;
mod ttl;
mod types;

#[cfg(test)]
mod tests;

pub use call::PROCEDURES;
pub use error::{NOT_SUPPORTED, ParseError, SYNTAX_ERROR, TOO_COMPLEX};

use crate::statement::{Expression, Statement};
use datafusion::sql::sqlparser::tokenizer::Location;
use ebb_storage::{column_type::ColumnType, interval::Interval};

/// Every statement of `sql`, in order; empty ones are left out.
///
/// # Errors
/// The first thing that is wrong; then nothing of `sql` counts as parsed.
pub fn parse(sql: &str) -> Result<Vec<Statement>, ParseError> {
    let text = text::Text::new(sql);
    lex::statements(&text)?.iter().map(|tokens| cursor::Cursor::new(&text, tokens).statement()).collect()
}

/// An expression over one row, canonical; stored texts are read back with this.
///
/// # Errors
/// Where `sql` is no expression, or more than one.
pub fn parse_expression(sql: &str) -> Result<Expression, ParseError> {
    let text = text::Text::new(sql);
    let statements = lex::statements(&text)?;
    let [tokens] = statements.as_slice() else { return Err(error::syntax("expected one expression", 1)) };
    let mut cursor = cursor::Cursor::new(&text, tokens);
    let expression = cursor.expression("an expression")?;
    cursor.expect_end()?;
    Ok(expression)
}

/// A column type's text, as definitions have it.
///
/// # Errors
/// Where `sql` is no type, or more than one.
pub fn parse_type(sql: &str) -> Result<ColumnType, ParseError> {
    let text = text::Text::new(sql);
    let statements = lex::statements(&text)?;
    let [tokens] = statements.as_slice() else { return Err(error::syntax("expected one type", 1)) };
    let mut cursor = cursor::Cursor::new(&text, tokens);
    let (ty, _) = cursor.column_type()?;
    cursor.expect_end()?;
    Ok(ty)
}

/// An interval's text as SQL writes it between quotes: `7 days`, `1 year 6 months`.
///
/// # Errors
/// Says what is wrong with it.
pub fn parse_interval(text: &str) -> Result<Interval, ParseError> {
    interval::of_text(text, None).map_err(|message| error::syntax(message, 1))
}

/// 1-based character offset of a line and column as sqlparser and DataFusion count them; `None` for their empty location and for
/// places outside of `sql`.
pub fn position_of(sql: &str, at: Location) -> Option<usize> {
    let (line, column) = (usize::try_from(at.line).ok()?.checked_sub(1)?, usize::try_from(at.column).ok()?);
    let before: usize = sql.split_inclusive('\n').take(line).map(|l| l.chars().count()).sum();
    let position = before.checked_add(column)?;
    (column > 0 && position <= sql.chars().count() + 1).then_some(position)
}
