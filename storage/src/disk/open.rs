//! The data directory: FORMAT says what it is, EBB-DISK that it is the one, LOCK who has it, RESERVE keeps room for commits that only
//! remove.
//!
//! The lock is the operating system's: one that a killed process left blocks nobody. This file must never write below the directory
//! before it holds the lock, nor into a directory of another format. The marker is written before FORMAT and never again: a directory
//! with FORMAT and without its marker is not what was written.

use super::{
    durable_fs::{make_durable, sync_dir},
    marker::{MARKER, Marker},
};
use crate::{
    Error, Result,
    ids::{DatabaseId, DiskId},
};
use serde::{Deserialize, Serialize};
use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, Write},
    path::{Path, PathBuf},
};

pub const FORMAT_VERSION: u32 = 1;
pub const RESERVE_BYTES: u64 = 4 << 20;
/// So many reserves must be free before one is made again.
const ROOMY_TIMES: u64 = 8;

#[derive(Debug, Serialize, Deserialize)]
struct Format {
    ebb_format: u32,
    database: DatabaseId,
}

/// An opened data directory; the lock goes when this is dropped.
#[derive(Debug)]
pub struct DataDir {
    root: PathBuf,
    database: DatabaseId,
    reserve_bytes: u64,
    _lock: File,
}

impl DataDir {
    /// Opens the directory, or makes it if it is missing or empty.
    pub fn open(root: &Path, reserve_bytes: u64) -> Result<Self> {
        let at = |e: io::Error| Error::from(e).context(format!("data directory {}", root.display()));
        if fs::metadata(root).is_ok_and(|m| !m.is_dir()) {
            return Err(Error::invalid(format!("{} is a file: a data directory is a folder, name another one", root.display())));
        }
        make_durable(&std::path::absolute(root).map_err(at)?).map_err(at)?;
        let root = &fs::canonicalize(root).map_err(at)?;
        let known = root.join("FORMAT").exists();
        if !known {
            refuse_strangers(root)?;
        }
        let lock = OpenOptions::new().create(true).truncate(false).write(true).open(root.join("LOCK")).map_err(at)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(Error::conflict(format!("data directory {} is open in another process: close that one first", root.display())));
            }
            Err(TryLockError::Error(e)) => return Err(at(e)),
        }
        let database = match read_format(root)? {
            Some(database) => {
                check_marker(root, &database)?;
                database
            }
            None => create(root)?,
        };
        let dir = Self { root: root.clone(), database, reserve_bytes, _lock: lock };
        // A full disk opens all the same.
        let _ = dir.restore_reserve();
        Ok(dir)
    }

    pub fn root(&self) -> &Path {
        &self.root
    }
    pub fn database(&self) -> &DatabaseId {
        &self.database
    }
    pub fn log(&self) -> PathBuf {
        self.root.join("log")
    }
    pub fn meta(&self) -> PathBuf {
        self.root.join("meta")
    }

    /// Gives the reserve's room back to the disk. Returns whether there was any.
    pub fn release_reserve(&self) -> Result<bool> {
        match fs::remove_file(self.root.join("RESERVE")) {
            Ok(()) => Ok(true),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(e) => Err(e.into()),
        }
    }

    /// Makes the reserve again once the disk has room for several of it: whoever needed it is through by then. Whether it is there.
    pub fn restore_reserve_if_roomy(&self) -> Result<bool> {
        if fs::metadata(self.root.join("RESERVE")).is_ok_and(|m| m.len() == self.reserve_bytes) {
            return Ok(true);
        }
        let s = rustix::fs::statvfs(&self.root).map_err(io::Error::from)?;
        if s.f_bavail.saturating_mul(s.f_frsize) < self.reserve_bytes.saturating_mul(ROOMY_TIMES) {
            return Ok(false);
        }
        self.restore_reserve().map(|()| true)
    }

    /// Makes the reserve again if it is missing; an error of kind Full if there is no room yet.
    pub fn restore_reserve(&self) -> Result<()> {
        let path = self.root.join("RESERVE");
        if fs::metadata(&path).is_ok_and(|m| m.len() == self.reserve_bytes) || self.reserve_bytes == 0 {
            return Ok(());
        }
        let file = File::create(&path)?;
        let made = rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, self.reserve_bytes);
        if let Err(e) = made.map_err(io::Error::from).and_then(|()| file.sync_all()) {
            let _ = fs::remove_file(&path);
            return Err(Error::from(e).context("the reserve file"));
        }
        Ok(())
    }
}

/// The database's id if `root` is a data directory; locks and makes nothing.
pub fn read_format(root: &Path) -> Result<Option<DatabaseId>> {
    let path = root.join("FORMAT");
    let text = match fs::read(&path) {
        Ok(text) => text,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(Error::from(e).context(path.display())),
    };
    let format: Format = serde_json::from_slice(&text).map_err(|e| Error::corrupt(format!("{} is damaged: {e}", path.display())))?;
    if format.ebb_format != FORMAT_VERSION {
        return Err(Error::invalid(format!(
            "{} has format version {}, this program reads {FORMAT_VERSION}: open it with another version of Ebb",
            path.display(),
            format.ebb_format
        )));
    }
    Ok(Some(format.database))
}

/// # Errors
/// `Corrupt` where EBB-DISK is missing or another's: the directory is not as it was left.
pub fn check_marker(root: &Path, database: &DatabaseId) -> Result<()> {
    let (ours, place) = (Marker::new(DiskId::DEFAULT, database), format!("data directory {}", root.display()));
    let found = match read_marker(root)? {
        Some(found) => ours.expect(&found, &place),
        None => Err(Error::corrupt(format!("{place}: {MARKER} is missing, it stands beside FORMAT in every database: restore it"))),
    };
    found.map_err(|e| Error::corrupt(e.message()))
}

fn read_marker(root: &Path) -> Result<Option<Marker>> {
    let path = root.join(MARKER);
    match fs::read(&path) {
        Ok(bytes) => Marker::decode(&bytes, &root.display().to_string()).map(Some).map_err(|e| Error::corrupt(e.message())),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(Error::from(e).context(path.display())),
    }
}

/// The marker first, so that a directory with FORMAT has one. A creation that was cut short between the two goes on with its id.
fn create(root: &Path) -> Result<DatabaseId> {
    let database = match read_marker(root)? {
        Some(Marker { disk: DiskId::DEFAULT, database, .. }) => database,
        Some(other) => {
            return Err(Error::invalid(format!(
                "{} is disk {} of database {}, not a data directory: name another one",
                root.display(),
                other.disk,
                other.database
            )));
        }
        None => {
            let database = DatabaseId::random();
            write_new(root, MARKER, &Marker::new(DiskId::DEFAULT, &database).encode()?)?;
            database
        }
    };
    let text = serde_json::to_vec(&Format { ebb_format: FORMAT_VERSION, database: database.clone() });
    write_new(root, "FORMAT", &text.map_err(|e| Error::internal(e.to_string()))?)?;
    Ok(database)
}

/// Durable under its name, or not there.
fn write_new(root: &Path, name: &str, bytes: &[u8]) -> Result<()> {
    let staged = root.join(format!("{name}#1"));
    let write = || -> io::Result<()> {
        let mut file = File::create(&staged)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&staged, root.join(name))?;
        sync_dir(root)
    };
    write().map_err(|e| Error::from(e).context(root.join(name).display()))
}

/// A folder with other things in it is not taken over; what a crash during the first opening left is ours.
fn refuse_strangers(root: &Path) -> Result<()> {
    let at = |e: io::Error| Error::from(e).context(format!("data directory {}", root.display()));
    if root.join("meta").exists() {
        return Err(Error::corrupt(format!("{} is missing, and a database lies beside it: restore it", root.join("FORMAT").display())));
    }
    for entry in fs::read_dir(root).map_err(at)? {
        let name = entry.map_err(at)?.file_name();
        let ours = ["LOCK", "FORMAT#1", "FORMAT", "EBB-DISK", "EBB-DISK#1", "lost+found"];
        if !ours.iter().any(|o| name == *o) {
            return Err(Error::invalid(format!(
                "{} is not a data directory and not empty ({} lies there): name another one",
                root.display(),
                name.to_string_lossy()
            )));
        }
    }
    Ok(())
}
