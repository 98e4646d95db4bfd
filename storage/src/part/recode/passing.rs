//! The checksum of a file whose column chunks are read anyway, by several threads: each chunk passes here once, and what lies between
//! chunks is read for it. The file is not read a second time to know that its bytes are those that were written.

use crate::{
    Error, Result,
    part::{
        reader::PartReader,
        store::{self, VERIFY_BYTES},
    },
};
use bytes::Bytes;
use parking_lot::Mutex;
use parquet::file::reader::{ChunkReader, Length};
use std::{collections::BTreeMap, ops::Range};
use xxhash_rust::xxh3::Xxh3;

pub struct Passing<'a> {
    from: &'a PartReader,
    /// Of the chunks that pass, in the order in which they are read.
    chunks: Vec<Range<u64>>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    hash: Xxh3,
    /// Bytes that were hashed.
    at: u64,
    /// Chunks that were hashed.
    passed: usize,
    /// Chunks that wait for an earlier one, of the few row groups that are recoded at a time.
    early: BTreeMap<usize, Bytes>,
}

impl<'a> Passing<'a> {
    /// For chunks of these (row group, leaf)s.
    ///
    /// # Errors
    /// `Corrupt` where the footer makes no sense.
    pub fn of(from: &'a PartReader, places: impl Iterator<Item = (usize, usize)>) -> Result<Self> {
        let range = |(group, leaf): (usize, usize)| {
            let (start, length) = from.metadata().row_group(group).column(leaf).byte_range();
            start..start.saturating_add(length)
        };
        let chunks = from.guarded(|| Ok(places.map(range).collect()))?;
        Ok(Self { from, chunks, state: Mutex::default() })
    }

    /// The `i`th chunk was read.
    ///
    /// # Errors
    /// `Corrupt` where chunks lie over one another, or what lies between them cannot be read.
    pub fn saw(&self, i: usize, bytes: Bytes) -> Result<()> {
        let mut state = self.state.lock();
        state.early.insert(i, bytes);
        while let Some((range, bytes)) = state.next(&self.chunks) {
            self.between(&mut state, range.start)?;
            state.hash.update(&bytes);
            (state.at, state.passed) = (range.end, state.passed + 1);
        }
        Ok(())
    }

    /// `made` of the file, where its length and checksum are those that were written.
    ///
    /// # Errors
    /// `Corrupt` where they differ: that is the cause, whatever `made` failed of. Else what `made` says.
    pub fn compare<T>(&self, written: (u64, u64), made: Result<T>) -> Result<T> {
        let mut state = std::mem::take(&mut *self.state.lock());
        if state.passed != self.chunks.len() {
            if made.is_ok() {
                return Err(Error::internal("a column chunk did not pass its checksum"));
            }
            // Not all of it was read, by far.
            state = State::default();
        }
        let length = self.from.source().len();
        match self.between(&mut state, length) {
            Ok(()) => store::as_written(self.from.key(), (length, state.hash.digest()), written).and(made),
            Err(e) => made.and(Err(e)),
        }
    }

    /// Hashes what no chunk is of, up to `end`.
    fn between(&self, state: &mut State, end: u64) -> Result<()> {
        if state.at > end {
            return Err(Error::corrupt(format!("{}: column chunks lie over one another", self.from.key())));
        }
        while state.at < end {
            let length = (end - state.at).min(VERIFY_BYTES as u64);
            let bytes = self.from.guarded(|| self.from.source().get_bytes(state.at, length as usize))?;
            state.hash.update(&bytes);
            state.at += length;
        }
        Ok(())
    }
}

impl State {
    fn next(&mut self, chunks: &[Range<u64>]) -> Option<(Range<u64>, Bytes)> {
        let bytes = self.early.remove(&self.passed)?;
        Some((chunks.get(self.passed)?.clone(), bytes))
    }
}
