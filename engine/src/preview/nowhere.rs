//! A log that keeps nothing: what a preview appends is never read again.

use ebb_storage::log::file::{LogDir, LogFile};
use std::io;

#[derive(Debug, Clone, Copy)]
pub struct Nowhere;

impl LogDir for Nowhere {
    fn create(&self, _: &str) -> io::Result<Box<dyn LogFile>> {
        Ok(Box::new(*self))
    }
    fn open(&self, _: &str) -> io::Result<Box<dyn LogFile>> {
        Ok(Box::new(*self))
    }
    fn list(&self) -> io::Result<Vec<String>> {
        Ok(Vec::new())
    }
    fn remove(&self, _: &str) -> io::Result<()> {
        Ok(())
    }
}

impl LogFile for Nowhere {
    fn read_all(&self) -> io::Result<Vec<u8>> {
        Ok(Vec::new())
    }
    fn write_at(&self, _: &[u8], _: u64) -> io::Result<()> {
        Ok(())
    }
    fn truncate(&self, _: u64) -> io::Result<()> {
        Ok(())
    }
    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}
