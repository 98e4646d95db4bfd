//! EBB-DISK: what tells a disk from an empty folder that is mounted in its place, and from the disk of another database.
//!
//! It is written once, when the disk is created, and never mended: a disk without it is unavailable.

use crate::{
    Error, Result,
    ids::{DatabaseId, DiskId},
};
use serde::{Deserialize, Serialize};

pub const MARKER: &str = "EBB-DISK";
const VERSION: u32 = 1;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Marker {
    version: u32,
    pub disk: DiskId,
    pub database: DatabaseId,
}

impl Marker {
    pub fn new(disk: DiskId, database: &DatabaseId) -> Self {
        Self { version: VERSION, disk, database: database.clone() }
    }

    pub fn encode(&self) -> Result<Vec<u8>> {
        serde_json::to_vec(self).map_err(|e| Error::internal(e.to_string()))
    }

    /// What the bytes at `place` say; `Err` says what is wrong with them.
    pub fn decode(bytes: &[u8], place: &str) -> Result<Self> {
        let marker: Self = serde_json::from_slice(bytes)
            .map_err(|e| Error::unavailable(format!("{place}: the marker {MARKER} is unreadable: {e}: restore it from a backup")))?;
        match marker.version == VERSION {
            true => Ok(marker),
            false => Err(Error::unavailable(format!(
                "{place}: the marker {MARKER} has version {}, this program reads {VERSION}: open it with a newer Ebb",
                marker.version
            ))),
        }
    }

    /// # Errors
    /// `Unavailable` where the marker found at `place` is not this one.
    pub fn expect(&self, found: &Self, place: &str) -> Result<()> {
        match self == found {
            true => Ok(()),
            false => Err(Error::unavailable(format!(
                "{place}: the marker {MARKER} is of disk {} of database {}, expected disk {} of database {}",
                found.disk, found.database, self.disk, self.database
            ))),
        }
    }

    /// What to say where there is none at `place`.
    pub fn missing(&self, place: &str) -> Error {
        Error::unavailable(format!(
            "{place}: no marker {MARKER}, expected disk {} of database {}: is it mounted, is it the right place?",
            self.disk, self.database
        ))
    }
}
