//! The numbers that name things. One newtype each, so that a part can never be passed where a stream is meant.
//!
//! Ids are never reused (I2). Parts, their generations and jobs carry the epoch that minted them in their upper half: what a crashed
//! process wrote without committing can never collide with what the next one writes. Random ids are made here and nowhere else.

use serde::{Deserialize, Serialize};
use std::fmt;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $inner:ty) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub $inner);
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
        impl $name {
            /// The number after this one.
            pub fn next(self) -> Self {
                Self(self.0 + 1)
            }
        }
    };
}

id!(/** A stream, for its whole life, whatever it is called. */ StreamId, u64);
id!(/** A part: epoch in the upper 32 bits, a counter in the lower. */ PartId, u64);
id!(/** A running attempt at a plan: numbered like parts. */ JobId, u64);
id!(/** A disk as the manifest knows it; 0 is the data directory, named `default`. */ DiskId, u32);
id!(/** A column, for its whole life: the Parquet field id. */ ColumnId, i32);
id!(/** A branch of a stream; 0 is `main`. */ BranchId, u32);
id!(/** A record's sequence number in its stream: dense, first record 1; 0 is the empty stream. */ Sn, u64);
id!(/** A record's number in the log: dense over all streams and epochs, first record 1. */ Lsn, u64);
id!(/** A commit of the manifest: dense, first commit 1. */ CommitNo, u64);
id!(/** Which rewrite of a part's bytes this is: first 1, then numbered like parts. */ Generation, u64);
id!(/** Which opening of the database: first 1. */ Epoch, u32);
id!(/** Which shape of a stream's columns: first 1. */ SchemaVersion, u32);
id!(/** A rule's identity: the hash of its bound form with column ids, never of its text. */ Fingerprint, u64);

impl BranchId {
    pub const MAIN: Self = Self(0);
}

impl DiskId {
    pub const DEFAULT: Self = Self(0);
}

impl ColumnId {
    /// Hidden columns have ids of their own range, so that user columns can be counted from 1.
    pub const TP_TIME: Self = Self(1_000_001);
    pub const TP_SN: Self = Self(1_000_002);
}

impl PartId {
    pub fn new(epoch: Epoch, counter: u32) -> Self {
        Self(u64::from(epoch.0) << 32 | u64::from(counter))
    }
}

impl Generation {
    /// Of every new part: no other opening gives out its id.
    pub const FIRST: Self = Self(1);
    pub fn new(epoch: Epoch, counter: u32) -> Self {
        Self(u64::from(epoch.0) << 32 | u64::from(counter))
    }
}

impl JobId {
    pub fn new(epoch: Epoch, counter: u32) -> Self {
        Self(u64::from(epoch.0) << 32 | u64::from(counter))
    }
}

/// The data directory's identity, written once into FORMAT and into every disk's marker.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct DatabaseId(pub String);

impl DatabaseId {
    pub fn random() -> Self {
        Self(unique())
    }
}

impl fmt::Display for DatabaseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A text no other call returns: nonces of commits, ids of directories, secrets of wire sessions.
#[allow(clippy::disallowed_methods, reason = "this is the file that makes random ids")]
pub fn unique() -> String {
    uuid::Uuid::new_v4().simple().to_string()
}
