//! Where the rows of a rewrite's sources went: run-length, so that it costs what the merge was broken into.
//!
//! Kept until the rewrite's commit and until every DELETE begun before it has ended, to translate the rows they found.

use crate::part::row_set::RowSet;

/// Rows `from..from + len` of source `source` became rows `to..to + len`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    pub source: u32,
    pub from: u32,
    pub to: u32,
    pub len: u32,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RowMap {
    runs: Vec<Run>,
}

impl RowMap {
    /// Appends rows; neighbouring runs become one.
    pub fn push(&mut self, run: Run) {
        match self.runs.last_mut() {
            Some(last) if last.source == run.source && last.from + last.len == run.from && last.to + last.len == run.to => {
                last.len += run.len
            }
            _ if run.len > 0 => self.runs.push(run),
            _ => {}
        }
    }

    pub fn runs(&self) -> &[Run] {
        &self.runs
    }

    /// Where `rows` of source `source` are now; rows that the rewrite removed are nowhere.
    pub fn translate(&self, source: u32, rows: &RowSet) -> RowSet {
        let mut out = RowSet::default();
        for run in self.runs.iter().filter(|r| r.source == source) {
            for row in rows.0.range(run.from..run.from.saturating_add(run.len)) {
                out.0.insert(run.to + (row - run.from));
            }
        }
        out
    }
}

#[cfg(test)]
mod tests;
