//! A storage policy: volumes in priority order. Plain data.

use super::volume::Volume;
use serde::{Deserialize, Serialize};

pub const DEFAULT: &str = "default";

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StoragePolicy {
    pub name: String,
    /// Grows with every REPLACE; 0 is the built-in one.
    #[serde(default)]
    pub version: u64,
    /// The order they are filled in, at least one.
    pub volumes: Vec<Volume>,
    /// Parts move to the next volume while less than this share of a disk is free.
    pub move_factor: f64,
}

/// What a policy of two or more volumes has unless it says otherwise.
pub const MOVE_FACTOR: f64 = 0.1;

impl StoragePolicy {
    /// One volume on the data directory.
    pub fn default_policy() -> Self {
        Self { name: DEFAULT.into(), version: 0, volumes: vec![Volume::new(DEFAULT, vec![DEFAULT.into()])], move_factor: 0.0 }
    }
    pub fn volume(&self, name: &str) -> Option<&Volume> {
        self.volumes.iter().find(|v| v.name == name)
    }
    /// The volume that holds `disk`.
    pub fn volume_of_disk(&self, disk: &str) -> Option<&Volume> {
        self.volumes.iter().find(|v| v.disks.iter().any(|d| d == disk))
    }
}
