//! One change of one stream's content, and its bytes inside a frame.
//!
//! A record does not carry its lsn: it is the frame's first lsn plus its place. Decoding is checked: any bytes give a record or an
//! error, never a panic or an allocation beyond the input.
//!
//! Layout (varints are LEB128): flags u8 (1: has a key), verb u8, stream, sn, branch, schema version as varints, time i64 LE,
//! [key length varint, key], body length varint, body.

pub use crate::verb::Verb;
use crate::{
    Error, Result, Timestamp,
    ids::{BranchId, SchemaVersion, Sn, StreamId},
};
use bytes::Bytes;

/// An idempotency key may be this long.
pub const MAX_KEY_BYTES: usize = 64 * 1024;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordHeader {
    pub stream: StreamId,
    pub sn: Sn,
    pub branch: BranchId,
    pub verb: Verb,
    pub schema_version: SchemaVersion,
    pub time: Timestamp,
    /// The caller's idempotency key.
    pub key: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    pub header: RecordHeader,
    pub body: Bytes,
}

const HAS_KEY: u8 = 1;

/// On disk these numbers are for ever.
fn verb_code(verb: Verb) -> u8 {
    match verb {
        Verb::Insert => 1,
        Verb::InsertStaged => 2,
        Verb::Delete => 3,
        Verb::Truncate => 4,
        Verb::DropPartition => 5,
        Verb::Deduplicate => 6,
        Verb::Rollback => 7,
        Verb::FastForward => 8,
        Verb::CherryPick => 9,
        Verb::Restore => 10,
    }
}

fn verb_of(code: u8) -> Option<Verb> {
    Some(match code {
        1 => Verb::Insert,
        2 => Verb::InsertStaged,
        3 => Verb::Delete,
        4 => Verb::Truncate,
        5 => Verb::DropPartition,
        6 => Verb::Deduplicate,
        7 => Verb::Rollback,
        8 => Verb::FastForward,
        9 => Verb::CherryPick,
        10 => Verb::Restore,
        _ => return None,
    })
}

impl Record {
    /// At most this many bytes are added to body and key.
    pub const OVERHEAD: usize = 64;

    /// Appends the record's bytes.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let h = &self.header;
        out.reserve(Self::OVERHEAD + h.key.as_ref().map_or(0, String::len) + self.body.len());
        out.extend([if h.key.is_some() { HAS_KEY } else { 0 }, verb_code(h.verb)]);
        put_varint(out, h.stream.0);
        put_varint(out, h.sn.0);
        put_varint(out, u64::from(h.branch.0));
        put_varint(out, u64::from(h.schema_version.0));
        out.extend(h.time.0.to_le_bytes());
        if let Some(key) = &h.key {
            put_varint(out, key.len() as u64);
            out.extend(key.as_bytes());
        }
        put_varint(out, self.body.len() as u64);
        out.extend(&self.body);
    }

    /// The record at the front of `bytes`, which is left behind it.
    pub fn decode(bytes: &mut Bytes) -> Result<Self> {
        let mut input = Input { bytes, at: 0 };
        let flags = input.byte()?;
        if flags & !HAS_KEY != 0 {
            return Err(Error::corrupt(format!("a record has unknown flags {flags:#x}")));
        }
        let code = input.byte()?;
        let verb = verb_of(code).ok_or_else(|| Error::corrupt(format!("a record has the unknown verb {code}")))?;
        let stream = StreamId(input.varint()?);
        let sn = Sn(input.varint()?);
        let branch = BranchId(input.narrow()?);
        let schema_version = SchemaVersion(input.narrow()?);
        let time = Timestamp(i64::from_le_bytes(input.array()?));
        let key = match flags & HAS_KEY {
            0 => None,
            _ => Some(String::from_utf8(input.slice()?.to_vec()).map_err(|_| Error::corrupt("a record's key is not UTF-8"))?),
        };
        let body = input.slice()?;
        let used = input.at;
        let _ = bytes.split_to(used);
        Ok(Self { header: RecordHeader { stream, sn, branch, verb, schema_version, time, key }, body })
    }
}

pub(super) fn put_varint(out: &mut Vec<u8>, mut n: u64) {
    while n >= 0x80 {
        out.push(n as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
}

/// A checked cursor.
pub(super) struct Input<'a> {
    pub(super) bytes: &'a Bytes,
    pub(super) at: usize,
}

pub(super) fn short() -> Error {
    Error::corrupt("a record ends early")
}

impl Input<'_> {
    pub(super) fn byte(&mut self) -> Result<u8> {
        let b = *self.bytes.get(self.at).ok_or_else(short)?;
        self.at += 1;
        Ok(b)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let end = self.at.checked_add(N).ok_or_else(short)?;
        let array = self.bytes.get(self.at..end).and_then(|s| s.try_into().ok()).ok_or_else(short)?;
        self.at = end;
        Ok(array)
    }

    pub(super) fn varint(&mut self) -> Result<u64> {
        let mut n = 0u64;
        for shift in (0..64).step_by(7) {
            let b = self.byte()?;
            let bits = u64::from(b & 0x7f);
            if shift == 63 && bits > 1 {
                break;
            }
            n |= bits << shift;
            if b & 0x80 == 0 {
                return Ok(n);
            }
        }
        Err(Error::corrupt("a record holds a number above 64 bits"))
    }

    fn narrow(&mut self) -> Result<u32> {
        u32::try_from(self.varint()?).map_err(|_| Error::corrupt("a record holds a number above 32 bits"))
    }

    /// `length` bytes, sharing the input's memory.
    pub(super) fn take(&mut self, length: usize) -> Result<Bytes> {
        let end = self.at.checked_add(length).filter(|end| *end <= self.bytes.len()).ok_or_else(short)?;
        let slice = self.bytes.slice(self.at..end);
        self.at = end;
        Ok(slice)
    }

    /// A length and that many bytes.
    pub(super) fn slice(&mut self) -> Result<Bytes> {
        let length = usize::try_from(self.varint()?).map_err(|_| short())?;
        self.take(length)
    }
}
