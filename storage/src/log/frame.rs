//! The bytes of a log file: a header, then frames. A frame is a group of records with one checksum; it counts whole or not at all.
//!
//! All numbers little-endian.
//! File header: magic `EBBLOG\0\x01`, version u32, epoch u32, first lsn u64, length u16 and text of the database id, crc32 of all that.
//! Frame: magic `EbFr`, payload length u32, checksum u64, epoch u32, count u32, first lsn u64, payload (records one after the other).
//! The checksum is xxh3 over everything behind it, seeded with database id and length: bytes that a user stored, or another
//! database's frames, do not pass for frames of this log.
//!
//! Parsing never panics and never allocates by a length it has not checked.

use super::record::Record;
use crate::{
    Error, Result,
    ids::{DatabaseId, Epoch, Lsn},
};
use bytes::Bytes;
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

/// The format that this program writes.
pub const VERSION: u32 = 1;
pub const FRAME_HEADER: usize = 32;

const FILE_MAGIC: [u8; 8] = *b"EBBLOG\0\x01";
const FRAME_MAGIC: [u8; 4] = *b"EbFr";

/// `{epoch:010}.{first_lsn:020}`
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileName {
    pub epoch: Epoch,
    pub first_lsn: Lsn,
}

impl std::fmt::Display for FileName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:010}.{:020}", self.epoch.0, self.first_lsn.0)
    }
}

impl FileName {
    pub fn parse(name: &str) -> Option<Self> {
        let (epoch, lsn) = name.split_once('.')?;
        let digits = |s: &str, n| s.len() == n && s.bytes().all(|b| b.is_ascii_digit());
        if !digits(epoch, 10) || !digits(lsn, 20) {
            return None;
        }
        Some(Self { epoch: Epoch(epoch.parse().ok()?), first_lsn: Lsn(lsn.parse().ok()?) })
    }
}

/// What makes this log's checksums its own.
#[derive(Debug, Clone, Copy)]
pub struct Seed(u64);

impl Seed {
    pub fn of(database: &DatabaseId) -> Self {
        Self(xxh3_64(database.0.as_bytes()))
    }
}

pub fn encode_file_header(name: FileName, database: &DatabaseId) -> Vec<u8> {
    let mut out = FILE_MAGIC.to_vec();
    out.extend(VERSION.to_le_bytes());
    out.extend(name.epoch.0.to_le_bytes());
    out.extend(name.first_lsn.0.to_le_bytes());
    let id = &database.0.as_bytes()[..database.0.len().min(usize::from(u16::MAX))];
    out.extend((id.len() as u16).to_le_bytes());
    out.extend(id);
    out.extend(crc32fast::hash(&out).to_le_bytes());
    out
}

/// A file header that is not this log's.
#[derive(Debug, Clone)]
pub enum HeaderProblem {
    /// Too short or its checksum is wrong: torn, or damaged.
    Damaged,
    /// Readable, but to be refused with this error.
    Foreign(Error),
}

/// Checks the header against the name of the file and the database; returns its length.
pub fn decode_file_header(bytes: &[u8], name: FileName, database: &DatabaseId) -> Result<usize, HeaderProblem> {
    let damaged = HeaderProblem::Damaged;
    let Some(fixed) = bytes.get(..26) else { return Err(damaged) };
    let version = u32_at(fixed, 8);
    if fixed[..8] != FILE_MAGIC {
        return Err(damaged);
    }
    let id_end = 26 + usize::from(u16::from_le_bytes([fixed[24], fixed[25]]));
    let checked = bytes.get(..id_end).zip(bytes.get(id_end..id_end + 4));
    let whole = checked.is_some_and(|(head, crc)| crc32fast::hash(head).to_le_bytes() == crc);
    if !whole {
        return Err(damaged);
    }
    if version != VERSION {
        return Err(HeaderProblem::Foreign(Error::invalid(format!(
            "log file {name} has format version {version}, this program reads {VERSION}: open it with a newer Ebb"
        ))));
    }
    let found = FileName { epoch: Epoch(u32_at(fixed, 12)), first_lsn: Lsn(u64_at(fixed, 16)) };
    if found != name {
        return Err(HeaderProblem::Foreign(Error::corrupt(format!("log file {name} says inside that it is {found}: it was renamed"))));
    }
    let id = &bytes[26..id_end];
    if id != database.0.as_bytes() {
        return Err(HeaderProblem::Foreign(Error::corrupt(format!(
            "log file {name} belongs to database {}, expected {database}",
            String::from_utf8_lossy(id)
        ))));
    }
    Ok(id_end + 4)
}

fn u32_at(b: &[u8], at: usize) -> u32 {
    b.get(at..at + 4).and_then(|s| s.try_into().ok()).map_or(0, u32::from_le_bytes)
}

fn u64_at(b: &[u8], at: usize) -> u64 {
    b.get(at..at + 8).and_then(|s| s.try_into().ok()).map_or(0, u64::from_le_bytes)
}

/// What the frame's header says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameHeader {
    pub epoch: Epoch,
    pub count: u32,
    pub first_lsn: Lsn,
}

/// Room for a frame's header, to be followed by the payload and [`seal`].
pub fn begin(out: &mut Vec<u8>) {
    out.clear();
    out.resize(FRAME_HEADER, 0);
}

/// Fills in the header of the frame in `out`.
pub fn seal(out: &mut [u8], header: FrameHeader, seed: Seed) -> Result<()> {
    let length = out.len().checked_sub(FRAME_HEADER).and_then(|n| u32::try_from(n).ok());
    let length = length.ok_or_else(|| Error::internal("a frame of the log is above 4 GiB"))?;
    out[..4].copy_from_slice(&FRAME_MAGIC);
    out[4..8].copy_from_slice(&length.to_le_bytes());
    out[16..20].copy_from_slice(&header.epoch.0.to_le_bytes());
    out[20..24].copy_from_slice(&header.count.to_le_bytes());
    out[24..32].copy_from_slice(&header.first_lsn.0.to_le_bytes());
    let sum = checksum(&out[16..], length, seed);
    out[8..16].copy_from_slice(&sum.to_le_bytes());
    Ok(())
}

fn checksum(covered: &[u8], length: u32, seed: Seed) -> u64 {
    xxh3_64_with_seed(covered, seed.0 ^ u64::from(length))
}

/// The frame at `at`, if one with a good checksum is there: its header, its payload's range end.
pub fn parse(file: &[u8], at: usize, seed: Seed) -> Option<(FrameHeader, usize)> {
    let head = file.get(at..at.checked_add(FRAME_HEADER)?)?;
    if head[..4] != FRAME_MAGIC {
        return None;
    }
    let length = u32_at(head, 4);
    let end = at.checked_add(FRAME_HEADER)?.checked_add(usize::try_from(length).ok()?)?;
    let covered = file.get(at + 16..end)?;
    if u64_at(head, 8) != checksum(covered, length, seed) {
        return None;
    }
    Some((FrameHeader { epoch: Epoch(u32_at(head, 16)), count: u32_at(head, 20), first_lsn: Lsn(u64_at(head, 24)) }, end))
}

/// The first good frame at or after `from`.
pub fn find_after(file: &[u8], from: usize, seed: Seed) -> Option<(usize, FrameHeader)> {
    let mut at = from;
    while let Some(step) = file.get(at..)?.windows(FRAME_MAGIC.len()).position(|w| w == FRAME_MAGIC) {
        at += step;
        if let Some((header, _)) = parse(file, at, seed) {
            return Some((at, header));
        }
        at += 1;
    }
    None
}

/// The records of a payload: exactly `count`, and nothing behind them.
pub fn decode_records(mut payload: Bytes, count: u32) -> Result<Vec<Record>> {
    let mut records = Vec::new();
    for _ in 0..count {
        records.push(Record::decode(&mut payload)?);
    }
    if !payload.is_empty() {
        return Err(Error::corrupt("a frame holds more than its records"));
    }
    Ok(records)
}

#[cfg(test)]
mod tests;
