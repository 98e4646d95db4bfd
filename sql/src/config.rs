//! How to open a database.

use ebb_engine::Clock;
use ebb_storage::stream_def::SettingValue;
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

#[derive(Clone)]
pub struct Config {
    pub dir: PathBuf,
    /// The system's clock, or a simulated one that only statements move.
    pub clock: Clock,
    /// Server settings that hold for this opening only.
    pub settings: BTreeMap<String, SettingValue>,
    /// Whether flushes, merges and rules run by themselves; else only on request (SYSTEM FLUSH, SYSTEM SETTLE, OPTIMIZE).
    pub background: bool,
}

impl Config {
    /// The data directory `dir`, made if it is missing.
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self { dir: dir.into(), clock: Clock::System, settings: BTreeMap::new(), background: true }
    }
    pub fn with_clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }
    pub fn with_setting(mut self, name: &str, value: SettingValue) -> Self {
        self.settings.insert(name.to_owned(), value);
        self
    }
    pub fn with_background(mut self, background: bool) -> Self {
        self.background = background;
        self
    }
}

impl From<&str> for Config {
    fn from(dir: &str) -> Self {
        Self::new(dir)
    }
}

impl From<String> for Config {
    fn from(dir: String) -> Self {
        Self::new(dir)
    }
}

impl From<&Path> for Config {
    fn from(dir: &Path) -> Self {
        Self::new(dir)
    }
}

impl From<PathBuf> for Config {
    fn from(dir: PathBuf) -> Self {
        Self::new(dir)
    }
}
