//! A part's file on a store that has no files: ranges of it are fetched as they are needed, and a few stretches are kept, since decoders
//! read in small steps. Memory does not grow with the part.
//!
//! Blocks: to be read from threads that may.

use super::reader::Failure;
use bytes::Bytes;
use object_store::{ObjectStore, ObjectStoreExt, path::Path};
use parking_lot::Mutex;
use parquet::errors::{ParquetError, Result};
use std::{collections::VecDeque, sync::Arc};
use tokio::runtime::Handle;

/// Bytes fetched at a time where less is asked for.
pub(super) const STRETCH_BYTES: u64 = 1 << 20;
/// Stretches kept: one for each of the columns that are read side by side, within reason.
const STRETCHES_MAX: usize = 16;

pub struct Remote {
    store: Arc<dyn ObjectStore>,
    key: Path,
    pub bytes: u64,
    runtime: Handle,
    /// The newest last.
    kept: Mutex<VecDeque<(u64, Bytes)>>,
    pub failure: Failure,
}

impl Remote {
    pub fn new(store: Arc<dyn ObjectStore>, key: Path, bytes: u64, runtime: Handle) -> Self {
        Self { store, key, bytes, runtime, kept: Mutex::default(), failure: Failure::default() }
    }

    /// With a stretch that is known already.
    pub fn with(self, start: u64, bytes: Bytes) -> Self {
        self.kept.lock().push_back((start, bytes));
        self
    }

    /// # Errors
    /// The store's, which `failure` keeps; `EOF` beyond the end.
    pub fn get(&self, start: u64, length: usize) -> Result<Bytes> {
        let end = start.checked_add(length as u64).filter(|end| *end <= self.bytes);
        let end = end.ok_or_else(|| ParquetError::EOF(format!("bytes {start}+{length} of {}", self.bytes)))?;
        if length as u64 >= STRETCH_BYTES {
            return self.fetch(start, end);
        }
        if let Some(found) = self.known(start, end) {
            return Ok(found);
        }
        let stretch = self.fetch(start, self.bytes.min(end.max(start + STRETCH_BYTES)))?;
        let asked = stretch.slice(..length);
        let mut kept = self.kept.lock();
        if kept.len() >= STRETCHES_MAX {
            kept.pop_front();
        }
        kept.push_back((start, stretch));
        Ok(asked)
    }

    fn known(&self, start: u64, end: u64) -> Option<Bytes> {
        let mut kept = self.kept.lock();
        let at = kept.iter().position(|(from, bytes)| *from <= start && end <= from + bytes.len() as u64)?;
        let (from, bytes) = kept.remove(at)?;
        let found = bytes.slice((start - from) as usize..(end - from) as usize);
        kept.push_back((from, bytes));
        Some(found)
    }

    fn fetch(&self, start: u64, end: u64) -> Result<Bytes> {
        if start == end {
            return Ok(Bytes::new());
        }
        let got = self.runtime.block_on(self.store.get_range(&self.key, start..end));
        let got = got.map_err(|e| {
            let told = e.to_string();
            self.failure.note(e.into());
            ParquetError::General(told)
        })?;
        match got.len() as u64 == end - start {
            true => Ok(got),
            false => Err(ParquetError::EOF(format!("{} bytes came of {}", got.len(), end - start))),
        }
    }
}

#[cfg(test)]
mod tests;
