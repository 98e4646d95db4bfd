//! What the log asks of a file system, and the real one.
//!
//! Calls block: the log's writer is a thread of its own. `create` and `remove` make the change of the directory durable before they
//! return; `write_at` and `truncate` are durable only after `sync`. The second implementation is the testkit's crash double.

use crate::disk::durable_fs::{make_durable, sync_dir};
use std::{
    fmt,
    fs::{self, File, OpenOptions},
    io,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
};

/// The folder of log files. Names are plain file names.
pub trait LogDir: fmt::Debug + Send + Sync {
    /// A new empty file; `AlreadyExists` if the name is taken.
    fn create(&self, name: &str) -> io::Result<Box<dyn LogFile>>;
    /// An existing file, to read and write.
    fn open(&self, name: &str) -> io::Result<Box<dyn LogFile>>;
    /// All names, sorted.
    fn list(&self) -> io::Result<Vec<String>>;
    fn remove(&self, name: &str) -> io::Result<()>;
}

pub trait LogFile: fmt::Debug + Send {
    fn read_all(&self) -> io::Result<Vec<u8>>;
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;
    fn truncate(&self, length: u64) -> io::Result<()>;
    /// Makes bytes and length durable.
    fn sync(&self) -> io::Result<()>;
}

/// A folder of the local file system.
#[derive(Debug, Clone)]
pub struct RealLogDir(PathBuf);

impl RealLogDir {
    /// The folder, made durably if it is missing.
    pub fn create(dir: &Path) -> io::Result<Self> {
        let dir = std::path::absolute(dir)?;
        make_durable(&dir)?;
        Ok(Self(dir))
    }

    /// The folder as it is: for inspection, which makes nothing.
    pub fn existing(dir: &Path) -> Self {
        Self(dir.to_path_buf())
    }
}

impl LogDir for RealLogDir {
    fn create(&self, name: &str) -> io::Result<Box<dyn LogFile>> {
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(self.0.join(name))?;
        sync_dir(&self.0)?;
        Ok(Box::new(RealLogFile(file)))
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn LogFile>> {
        let path = self.0.join(name);
        match OpenOptions::new().read(true).write(true).open(&path) {
            // Inspection of a directory that may only be read.
            Err(e) if matches!(e.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem) => {
                Ok(Box::new(RealLogFile(File::open(path)?)))
            }
            opened => Ok(Box::new(RealLogFile(opened?))),
        }
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.0)? {
            let entry = entry?;
            if entry.file_type()?.is_file()
                && let Ok(name) = entry.file_name().into_string()
            {
                names.push(name);
            }
        }
        names.sort();
        Ok(names)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.0.join(name))?;
        sync_dir(&self.0)
    }
}

#[derive(Debug)]
struct RealLogFile(File);

impl LogFile for RealLogFile {
    fn read_all(&self) -> io::Result<Vec<u8>> {
        let length = usize::try_from(self.0.metadata()?.len()).map_err(io::Error::other)?;
        let mut bytes = vec![0; length];
        self.0.read_exact_at(&mut bytes, 0)?;
        Ok(bytes)
    }
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.0.write_all_at(bytes, offset)
    }
    fn truncate(&self, length: u64) -> io::Result<()> {
        self.0.set_len(length)
    }
    fn sync(&self) -> io::Result<()> {
        self.0.sync_data()
    }
}
