//! The folder for what queries write aside. What is in it belongs to no one once the process that wrote it is gone.

use crate::{Error, ErrorKind, Result};
use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// Below the data directory.
pub const FOLDER: &str = "spill";

/// The folder below `dir`, empty. Only for who holds the directory's lock.
///
/// # Errors
/// `Unavailable` where it cannot be emptied or made.
pub fn emptied(dir: &Path) -> Result<PathBuf> {
    let folder = dir.join(FOLDER);
    let failed = |e: io::Error| Error::new(ErrorKind::Unavailable, format!("the folder for spilled rows, {}: {e}", folder.display()));
    match fs::remove_dir_all(&folder) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(failed(e)),
        _ => {}
    }
    fs::create_dir_all(&folder).map_err(failed)?;
    Ok(folder)
}
