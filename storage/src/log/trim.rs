//! Which log files may go: whole files whose records are all applied, oldest first, never the current one.
//!
//! Removing them in order keeps the log a run of lsns whatever a crash does to the removal.

use super::{file::LogDir, frame::FileName};
use crate::{Error, Result, ids::Lsn};

/// How many of `files` (oldest first, the last one current) hold no record above `applied`. Pure.
pub fn removable(files: &[FileName], applied: Lsn) -> usize {
    let mut count = 0;
    while let Some(rest) = files.get(count + 1..).filter(|r| !r.is_empty()) {
        // Everything in it is below the first lsn of what comes behind.
        let below = rest.iter().map(|f| f.first_lsn).min().unwrap_or_default();
        if below > applied.next() {
            break;
        }
        count += 1;
    }
    count
}

/// Durable; one that is gone already is fine.
pub fn remove(dir: &dyn LogDir, file: FileName) -> Result<()> {
    match dir.remove(&file.to_string()) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(Error::from(e).context(format!("log file {file}"))),
        _ => Ok(()),
    }
}
