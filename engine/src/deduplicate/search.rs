//! Which rows are copies of others, found in bounded memory by looking at the rows as often as that takes.
//!
//! First only hashes are kept, of a share of them at a time; then, of the rows whose hash comes twice, one key for each. Nothing here
//! knows what a row is. Guards: rows go by their whole keys, never by a hash; of equal rows the first place stays.

use ebb_storage::{Result, ids::Sn, part::RowSet};
use std::collections::HashMap;

/// What is held at a time.
pub(super) struct Bounds {
    pub hashes: usize,
    pub key_bytes: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { hashes: 8 << 20, key_bytes: 64 << 20 }
    }
}

/// What a key costs beside its bytes.
const KEY_OVERHEAD: usize = 96;

/// Where a row is; the least of equal rows stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub sn: Sn,
    pub part: usize,
    pub row: u32,
}

pub(super) struct Row<'a> {
    pub at: Place,
    pub key: &'a [u8],
}

/// Shows all rows, in the same order each time.
pub(super) type Scan<'a> = &'a mut dyn FnMut(&mut dyn FnMut(Row<'_>)) -> Result<()>;

/// Of each of so many parts the rows that are copies; `rows` is about how many rows there are.
pub(super) fn copies(rows: u64, parts: usize, bounds: &Bounds, hash: fn(&[u8]) -> u64, scan: Scan<'_>) -> Result<Vec<RowSet>> {
    let mut out = vec![RowSet::default(); parts];
    let shares = rows.div_ceil(bounds.hashes as u64).max(1);
    for share in 0..shares {
        let (mut hashes, mut bytes) = (Vec::new(), 0usize);
        scan(&mut |row| {
            let h = hash(row.key);
            if h % shares == share {
                hashes.push(h);
                bytes += row.key.len();
            }
        })?;
        let of_a_key = bytes / hashes.len().max(1) + KEY_OVERHEAD;
        let twice = come_twice(hashes);
        for some in twice.chunks((bounds.key_bytes / of_a_key).max(1)) {
            among(some, hash, scan, &mut out)?;
        }
    }
    Ok(out)
}

/// Those that are there more than once, each once, in order.
fn come_twice(mut hashes: Vec<u64>) -> Vec<u64> {
    hashes.sort_unstable();
    let of_two = hashes.windows(2).filter(|w| w[0] == w[1]).map(|w| w[0]);
    let mut twice: Vec<u64> = of_two.collect();
    twice.dedup();
    twice
}

struct Kept {
    at: Place,
    key: Box<[u8]>,
}

/// Adds the copies among rows with these hashes, which are in order.
fn among(hashes: &[u64], hash: fn(&[u8]) -> u64, scan: Scan<'_>, out: &mut [RowSet]) -> Result<()> {
    let mut kept: HashMap<u64, Vec<Kept>> = HashMap::with_capacity(hashes.len());
    scan(&mut |row| {
        let h = hash(row.key);
        if hashes.binary_search(&h).is_err() {
            return;
        }
        let of_hash = kept.entry(h).or_default();
        let gone = match of_hash.iter_mut().find(|k| *k.key == *row.key) {
            None => {
                of_hash.push(Kept { at: row.at, key: row.key.into() });
                return;
            }
            Some(known) => {
                let gone = known.at.max(row.at);
                known.at = known.at.min(row.at);
                gone
            }
        };
        out[gone.part].0.insert(gone.row);
    })
}

#[cfg(test)]
mod tests;
