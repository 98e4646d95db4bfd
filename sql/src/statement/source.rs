//! Where a statement stood: a range of a shared text, so that a script of many statements keeps one copy of itself.

use std::{fmt, ops::Range, sync::Arc};

#[derive(Clone)]
pub struct Source {
    sql: Arc<str>,
    /// Byte offsets into `sql`, on character boundaries.
    range: Range<usize>,
    /// 1-based character offset of the start in `sql`.
    position: usize,
}

impl Source {
    /// `range` in bytes; a range that does not lie on character boundaries of `sql` reads as empty.
    pub fn new(sql: Arc<str>, range: Range<usize>, position: usize) -> Self {
        Self { sql, range, position }
    }

    pub fn text(&self) -> &str {
        self.sql.get(self.range.clone()).unwrap_or("")
    }

    /// The whole text that was parsed.
    pub fn whole(&self) -> &str {
        &self.sql
    }

    /// 1-based character offset in the whole text that was parsed.
    pub fn position(&self) -> usize {
        self.position
    }
}

impl From<&str> for Source {
    fn from(sql: &str) -> Self {
        Self { sql: sql.into(), range: 0..sql.len(), position: 1 }
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {:?}", self.position, self.text())
    }
}
