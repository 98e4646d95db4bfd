//! A text and its places: tokens know lines and columns, people and clients count characters, slices need bytes.

use datafusion::sql::sqlparser::tokenizer::{Location, Span};
use std::{borrow::Cow, ops::Range, sync::Arc};

pub(super) struct Text {
    pub(super) sql: Arc<str>,
    /// Of each line: the byte and the character it starts at.
    lines: Vec<(usize, usize)>,
    ascii: bool,
}

impl Text {
    pub(super) fn new(sql: &str) -> Self {
        // Some editors begin files with a byte order mark; a blank of its width in characters says as much.
        let sql: Cow<'_, str> = sql.strip_prefix('\u{feff}').map_or(sql.into(), |rest| format!(" {rest}").into());
        let mut lines = vec![(0, 0)];
        let mut chars = 0;
        for (byte, c) in sql.char_indices() {
            chars += 1;
            if c == '\n' {
                lines.push((byte + 1, chars));
            }
        }
        Self { lines, ascii: sql.is_ascii(), sql: Arc::from(sql.as_ref()) }
    }

    /// Byte and 0-based character offset; the end of the text for places that it does not have.
    fn offsets(&self, at: Location) -> (usize, usize) {
        let line = usize::try_from(at.line).ok().and_then(|l| l.checked_sub(1)).and_then(|l| self.lines.get(l));
        let column = usize::try_from(at.column).ok().and_then(|c| c.checked_sub(1));
        let (Some(&(byte, chars)), Some(column)) = (line, column) else { return self.end() };
        if self.ascii {
            let within = column.min(self.sql.len() - byte);
            return (byte + within, chars + within);
        }
        let rest = &self.sql[byte..];
        match rest.char_indices().nth(column) {
            Some((within, _)) => (byte + within, chars + column),
            None => self.end(),
        }
    }

    fn end(&self) -> (usize, usize) {
        let (byte, chars) = self.lines.last().copied().unwrap_or((0, 0));
        (self.sql.len(), chars + self.sql[byte..].chars().count())
    }

    /// 1-based character offset.
    pub(super) fn position(&self, at: Location) -> usize {
        self.offsets(at).1 + 1
    }

    pub(super) fn range(&self, span: Span) -> Range<usize> {
        let (start, end) = (self.offsets(span.start).0, self.offsets(span.end).0);
        start..end.max(start)
    }
}
