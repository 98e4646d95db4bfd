//! A volume: disks in order, and what may lie on them. Plain data; choosing a disk is the engine's.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LoadBalancing {
    #[default]
    RoundRobin,
    LeastUsed,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Volume {
    pub name: String,
    /// Names, in order, at least one.
    pub disks: Vec<String>,
    pub max_data_part_size_bytes: Option<u64>,
    /// Of the smallest disk's size.
    pub max_data_part_size_ratio: Option<f64>,
    pub load_balancing: LoadBalancing,
    pub perform_ttl_move_on_insert: bool,
    pub prefer_not_to_merge: bool,
    pub volume_priority: Option<u64>,
}

impl Volume {
    pub fn new(name: impl Into<String>, disks: Vec<String>) -> Self {
        Self {
            name: name.into(),
            disks,
            max_data_part_size_bytes: None,
            max_data_part_size_ratio: None,
            load_balancing: LoadBalancing::default(),
            perform_ttl_move_on_insert: true,
            prefer_not_to_merge: false,
            volume_priority: None,
        }
    }
}
