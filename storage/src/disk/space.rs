//! How much room a disk has, and who reserved it. A reservation is released when it is dropped, whatever happened to its job.

use crate::{Error, Result};
use parking_lot::Mutex;
use std::{path::PathBuf, sync::Arc};

/// Where the numbers come from.
#[derive(Debug, Clone)]
pub enum Source {
    /// The file system of this path.
    FileSystem(PathBuf),
    /// A declared capacity: free is what Ebb has not placed there.
    Declared(u64),
    /// Remote stores without a capacity.
    Unlimited,
}

#[derive(Debug)]
pub struct Space {
    disk: String,
    source: Source,
    max_usage_pct: u8,
    used: Mutex<Used>,
}

/// What a disk has room for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    pub total: u64,
    /// Less reservations.
    pub available: u64,
    /// Free, but kept back by `max_usage_pct`.
    pub kept_back: u64,
}

#[derive(Debug, Default)]
struct Used {
    placed: u64,
    reserved: u64,
}

impl Space {
    pub fn new(disk: impl Into<String>, source: Source, max_usage_pct: u8) -> Arc<Self> {
        Arc::new(Self { disk: disk.into(), source, max_usage_pct: max_usage_pct.min(100), used: Mutex::default() })
    }

    /// Bytes placed on the disk by Ebb: set at opening from the manifest, then kept by placements and removals.
    pub fn set_placed(&self, bytes: u64) {
        self.used.lock().placed = bytes;
    }
    pub fn add_placed(&self, bytes: u64) {
        let mut used = self.used.lock();
        used.placed = used.placed.saturating_add(bytes);
    }
    pub fn remove_placed(&self, bytes: u64) {
        let mut used = self.used.lock();
        used.placed = used.placed.saturating_sub(bytes);
    }
    pub fn reserved_bytes(&self) -> u64 {
        self.used.lock().reserved
    }

    /// All numbers at once, of what `max_usage_pct` leaves; `u64::MAX` if unlimited.
    pub fn room(&self) -> Result<Room> {
        let (total, free) = self.whole()?;
        let kept = self.kept_back(total);
        let reserved = self.used.lock().reserved;
        Ok(match total {
            u64::MAX => Room { total, available: u64::MAX, kept_back: 0 },
            _ => Room { total: total - kept, available: free.saturating_sub(kept).saturating_sub(reserved), kept_back: kept.min(free) },
        })
    }

    fn kept_back(&self, total: u64) -> u64 {
        (u128::from(total) * u128::from(100 - self.max_usage_pct) / 100) as u64
    }

    /// (total, free before reservations), of what `max_usage_pct` leaves; `u64::MAX` if unlimited.
    pub fn total_and_free(&self) -> Result<(u64, u64)> {
        let (total, free) = self.whole()?;
        if total == u64::MAX {
            return Ok((total, free));
        }
        let kept = self.kept_back(total);
        Ok((total - kept, free.saturating_sub(kept)))
    }

    fn whole(&self) -> Result<(u64, u64)> {
        let measured = self.measured()?;
        Ok(self.of(measured, &self.used.lock()))
    }

    /// What the file system says, where it is asked: slow, and so never under the lock.
    fn measured(&self) -> Result<Option<(u64, u64)>> {
        let Source::FileSystem(path) = &self.source else { return Ok(None) };
        let s = rustix::fs::statvfs(path)
            .map_err(|e| Error::from(std::io::Error::from(e)).context(format!("disk '{}', {}", self.disk, path.display())))?;
        Ok(Some((s.f_blocks.saturating_mul(s.f_frsize), s.f_bavail.saturating_mul(s.f_frsize))))
    }

    /// Total and free: a capacity that was declared has free what is not placed at this moment.
    fn of(&self, measured: Option<(u64, u64)>, used: &Used) -> (u64, u64) {
        match (&self.source, measured) {
            (Source::Declared(capacity), _) => (*capacity, capacity.saturating_sub(used.placed)),
            (_, Some(measured)) => measured,
            (Source::Unlimited | Source::FileSystem(_), None) => (u64::MAX, u64::MAX),
        }
    }

    /// What may still be reserved.
    pub fn available(&self) -> Result<u64> {
        let measured = self.measured()?;
        Ok(self.left(measured, &self.used.lock()))
    }

    fn left(&self, measured: Option<(u64, u64)>, used: &Used) -> u64 {
        match self.of(measured, used) {
            (u64::MAX, free) => free.saturating_sub(used.reserved),
            (total, free) => free.saturating_sub(self.kept_back(total)).saturating_sub(used.reserved),
        }
    }

    /// # Errors
    /// `Full`, naming the disk, where less is left.
    pub fn reserve(self: &Arc<Self>, bytes: u64) -> Result<Reservation> {
        let measured = self.measured()?;
        self.reserve_of(measured, bytes)
    }

    fn reserve_of(self: &Arc<Self>, measured: Option<(u64, u64)>, bytes: u64) -> Result<Reservation> {
        // What is placed and what is reserved are looked at together: a part on its way from one to the other is never in neither.
        let mut used = self.used.lock();
        let available = self.left(measured, &used);
        if bytes > available {
            return Err(Error::full(format!(
                "disk '{}' has {available} bytes free, {bytes} are needed: free space or add a disk",
                self.disk
            )));
        }
        used.reserved = used.reserved.saturating_add(bytes);
        drop(used);
        Ok(Reservation { space: self.clone(), bytes })
    }
}

/// Room that nobody else gets until this is dropped.
#[derive(Debug)]
pub struct Reservation {
    space: Arc<Space>,
    bytes: u64,
}

impl Reservation {
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Covers what has been written: more than was reserved, where as much is left. A file system has counted it already.
    ///
    /// # Errors
    /// `Full`, naming the disk, where a declared capacity would be overrun.
    pub fn covers(&mut self, written: u64) -> Result<()> {
        let more = written.saturating_sub(self.bytes);
        if more == 0 || !matches!(self.space.source, Source::Declared(_)) {
            return Ok(());
        }
        // Taken over by this one, which gives back both.
        let mut rest = self.space.reserve(more)?;
        rest.bytes = 0;
        self.bytes = written;
        Ok(())
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let mut used = self.space.used.lock();
        used.reserved = used.reserved.saturating_sub(self.bytes);
    }
}

#[cfg(test)]
mod tests;
