//! The envelope of commits and checkpoints: magic, format version, kind, length, checksum, body.
//!
//! ```text
//! "EBBM"  version u16  kind u8  compressed u8  length u64  xxh3-64 of the body u64  body (JSON, with zstd where it is longer)
//! ```
//! Numbers are little-endian; the length is the body's as stored.

use crate::{Error, Result};
use serde::{Serialize, de::DeserializeOwned};

/// 2 knows disks and storage policies, 3 refs and readers; objects of older versions are read as they are.
pub const VERSION: u16 = 3;
const MAGIC: &[u8; 4] = b"EBBM";
const HEADER: usize = 24;
/// Bodies above this are compressed.
const COMPRESS_ABOVE: usize = 4096;
/// A stored body that says it is longer than this when unpacked is damaged.
const UNPACKED_MAX: u64 = 8 << 30;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    Commit = 1,
    Checkpoint = 2,
    Boundary = 3,
}

/// # Errors
/// `Internal` where the value has no JSON form, which is a defect.
pub fn encode<T: Serialize>(kind: Kind, value: &T) -> Result<Vec<u8>> {
    let fail = |e: &dyn std::fmt::Display| Error::internal(format!("encoding {kind:?}: {e}"));
    let json = serde_json::to_vec(value).map_err(|e| fail(&e))?;
    if json.len() as u64 > UNPACKED_MAX {
        return Err(fail(&format_args!("{} bytes are more than could be read again", json.len())));
    }
    let (body, compressed) = match json.len() > COMPRESS_ABOVE {
        true => (zstd::bulk::compress(&json, 1).map_err(|e| fail(&e))?, true),
        false => (json, false),
    };
    let mut out = Vec::with_capacity(HEADER + body.len());
    out.extend_from_slice(MAGIC);
    out.extend_from_slice(&VERSION.to_le_bytes());
    out.push(kind as u8);
    out.push(u8::from(compressed));
    out.extend_from_slice(&(body.len() as u64).to_le_bytes());
    out.extend_from_slice(&checksum(VERSION, kind, compressed, &body).to_le_bytes());
    out.extend_from_slice(&body);
    Ok(out)
}

/// The checksum covers what the header says of the body too.
fn checksum(version: u16, kind: Kind, compressed: bool, body: &[u8]) -> u64 {
    xxhash_rust::xxh3::xxh3_64_with_seed(body, u64::from(version) << 16 | u64::from(kind as u8) << 8 | u64::from(compressed))
}

fn damaged(name: &str, why: &str) -> Error {
    Error::corrupt(format!("{name} is damaged: {why}; restore it from a backup"))
}

/// Compares the bytes with what was written, without making anything of them; the body, and whether it is compressed. `name` is the
/// object's, for the message.
///
/// # Errors
/// As [`decode`].
pub fn verify<'a>(kind: Kind, name: &str, bytes: &'a [u8]) -> Result<(&'a [u8], bool)> {
    let damaged = |why: &str| damaged(name, why);
    let header = bytes.get(..HEADER).ok_or_else(|| damaged("it is cut short"))?;
    if &header[..4] != MAGIC {
        return Err(damaged("it does not begin as a manifest object"));
    }
    let word = |at: usize| u64::from_le_bytes(header[at..at + 8].try_into().expect("eight bytes of the header"));
    let version = u16::from_le_bytes([header[4], header[5]]);
    if version == 0 {
        return Err(damaged("its format version is 0"));
    }
    if version > VERSION {
        return Err(Error::invalid(format!(
            "{name} has format version {version}, this Ebb reads up to {VERSION}: open it with a newer one"
        )));
    }
    let body = &bytes[HEADER..];
    if header[6] != kind as u8 || header[7] > 1 || word(8) != body.len() as u64 {
        return Err(damaged("its header does not fit its body"));
    }
    if word(16) != checksum(version, kind, header[7] == 1, body) {
        return Err(damaged("its checksum differs"));
    }
    Ok((body, header[7] == 1))
}

/// `name` is the object's, for the message.
///
/// # Errors
/// `Corrupt` where anything differs from what was written; `Invalid` for a newer format version.
pub fn decode<T: DeserializeOwned>(kind: Kind, name: &str, bytes: &[u8]) -> Result<T> {
    let damaged = |why: &str| damaged(name, why);
    let (body, compressed) = verify(kind, name, bytes)?;
    let unpacked;
    let json = match compressed {
        false => body,
        true => {
            let size = zstd::zstd_safe::get_frame_content_size(body).ok().flatten().filter(|s| *s <= UNPACKED_MAX);
            let size = size.ok_or_else(|| damaged("its size is not stated"))?;
            unpacked = zstd::bulk::decompress(body, size as usize).map_err(|e| damaged(&e.to_string()))?;
            &unpacked
        }
    };
    serde_json::from_slice(json).map_err(|e| damaged(&e.to_string()))
}
