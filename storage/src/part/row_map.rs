//! Where the rows of a rewrite's sources went: run-length, so that it costs what the merge was broken into.
//!
//! Kept until the rewrite's commit and until every DELETE begun before it has ended, to translate the rows they found. Rows that are
//! taken out one by one make millions of runs: each is kept as what differs from the one before, four bytes mostly.

use crate::part::row_set::RowSet;
use std::collections::BTreeMap;

/// Bytes of a block of runs: what grows by blocks is not copied to grow.
const BLOCK_BYTES: usize = 64 << 10;
/// A run takes no more: four numbers of at most five bytes.
const RUN_BYTES_MAX: usize = 20;

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
    /// All runs but the last.
    blocks: Vec<Vec<u8>>,
    before: Before,
    last: Option<Run>,
}

/// What a run is told apart from: where each source's last run ended, and where its rows went.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Before {
    ends: BTreeMap<u32, u32>,
    to: u32,
}

impl Before {
    /// Takes note of a run that follows.
    fn follow(&mut self, run: Run) {
        self.ends.insert(run.source, run.from.wrapping_add(run.len));
        self.to = run.to.wrapping_add(run.len);
    }
}

impl RowMap {
    /// Appends rows; neighbouring runs become one.
    pub fn push(&mut self, run: Run) {
        match &mut self.last {
            Some(last) if last.source == run.source && last.from + last.len == run.from && last.to + last.len == run.to => {
                last.len += run.len
            }
            _ if run.len > 0 => {
                if let Some(before) = self.last.replace(run) {
                    self.keep(before);
                }
            }
            _ => {}
        }
    }

    fn keep(&mut self, run: Run) {
        if self.blocks.last().is_none_or(|b| b.len() + RUN_BYTES_MAX > BLOCK_BYTES) {
            self.blocks.push(Vec::with_capacity(BLOCK_BYTES));
        }
        let Some(block) = self.blocks.last_mut() else { return };
        let end = self.before.ends.get(&run.source).copied().unwrap_or(0);
        for number in [run.source, run.from.wrapping_sub(end), run.to.wrapping_sub(self.before.to), run.len] {
            put(block, number);
        }
        self.before.follow(run);
    }

    /// In the order in which they came.
    pub fn runs(&self) -> impl Iterator<Item = Run> {
        let mut before = Before::default();
        let kept = self.blocks.iter().flat_map(|block| {
            let mut rest = block.as_slice();
            std::iter::from_fn(move || Some([take(&mut rest)?, take(&mut rest)?, take(&mut rest)?, take(&mut rest)?]))
        });
        let kept = kept.map(move |[source, from, to, len]| {
            let end = before.ends.get(&source).copied().unwrap_or(0);
            let run = Run { source, from: from.wrapping_add(end), to: to.wrapping_add(before.to), len };
            before.follow(run);
            run
        });
        kept.chain(self.last)
    }

    /// Where `rows` of source `source` are now; rows that the rewrite removed are nowhere.
    pub fn translate(&self, source: u32, rows: &RowSet) -> RowSet {
        let mut out = RowSet::default();
        for run in self.runs().filter(|r| r.source == source) {
            for row in rows.0.range(run.from..run.from.saturating_add(run.len)) {
                out.0.insert(run.to + (row - run.from));
            }
        }
        out
    }
}

/// Seven bits a byte, the lowest first; all but the last byte have the highest bit.
fn put(block: &mut Vec<u8>, mut number: u32) {
    while number >= 0x80 {
        block.push(number as u8 | 0x80);
        number >>= 7;
    }
    block.push(number as u8);
}

fn take(bytes: &mut &[u8]) -> Option<u32> {
    let (mut number, mut shift) = (0u32, 0);
    loop {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u32::from(byte & 0x7f).checked_shl(shift)?;
        if byte & 0x80 == 0 {
            return Some(number);
        }
        shift += 7;
    }
}

#[cfg(test)]
mod tests;
