//! Text to [`Statement`]: one file per verb or family. Nothing is looked up here, and nothing is silently ignored: what Ebb does not
//! do is refused with the way out.

mod error;

pub use error::{NOT_SUPPORTED, ParseError, SYNTAX_ERROR, TOO_COMPLEX};

use crate::statement::Statement;
use datafusion::sql::sqlparser::tokenizer::Location;

/// 1-based character offset of a line and column as sqlparser and DataFusion count them; `None` for their empty location and for
/// places outside of `sql`.
pub fn position_of(sql: &str, at: Location) -> Option<usize> {
    let (line, column) = (usize::try_from(at.line).ok()?.checked_sub(1)?, usize::try_from(at.column).ok()?);
    let before: usize = sql.split_inclusive('\n').take(line).map(|l| l.chars().count()).sum();
    let position = before.checked_add(column)?;
    (column > 0 && position <= sql.chars().count() + 1).then_some(position)
}

/// Every statement of `sql`, in order; empty ones are left out.
///
/// # Errors
/// The first thing that is wrong; then nothing of `sql` counts as parsed.
pub fn parse(sql: &str) -> Result<Vec<Statement>, ParseError> {
    let _ = sql;
    Ok(Vec::new())
}
