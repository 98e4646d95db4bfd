//! What a simulation found, as plain values.

use ebb_storage::Timestamp;

#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// `database.name`
    pub stream: String,
    pub start: Timestamp,
    pub end: Timestamp,
    pub policy: String,
    /// What the numbers stand on, in words.
    pub assumptions: Vec<String>,
    /// The hottest first.
    pub volumes: Vec<VolumeLine>,
    /// About two dozen, the end last.
    pub moments: Vec<Moment>,
    /// Bytes of each volume at even distances, from the start to the end.
    pub curve: Curve,
    pub totals: Totals,
    pub rules: Vec<RuleLine>,
    /// In the order in which they came up.
    pub warnings: Vec<Warning>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct VolumeLine {
    pub name: String,
    pub disks: Vec<String>,
    /// `None` where it has no end.
    pub capacity_bytes: Option<u64>,
    pub peak_bytes: u64,
    pub peak_at: Timestamp,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Moment {
    pub at: Timestamp,
    pub rows: u64,
    pub parts: u64,
    pub partitions: u64,
    /// By volume.
    pub bytes: Vec<u64>,
    /// By flushes and all rewriting, from the start.
    pub written_bytes: u64,
    /// To another volume or disk, from the start.
    pub moved_bytes: u64,
    /// Event time of the oldest row.
    pub oldest_row: Option<Timestamp>,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Curve {
    pub at: Vec<Timestamp>,
    /// By volume, then by moment.
    pub bytes: Vec<Vec<u64>>,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Totals {
    pub inserted_rows: u64,
    pub inserted_bytes: u64,
    /// Rows for which there was no room, or too many parts.
    pub refused_rows: u64,
    /// Taken out by rules, with whole parts or out of parts.
    pub removed_rows: u64,
    pub dropped_parts: u64,
    /// Of dropped parts: freed without being read.
    pub dropped_bytes: u64,
    pub written_bytes: u64,
    /// flush, merge, prune, recompress, move, move_factor
    pub causes: Vec<Cause>,
}

impl Totals {
    /// All bytes written for each byte inserted.
    pub fn write_amplification(&self) -> f64 {
        if self.inserted_bytes == 0 { 0.0 } else { self.written_bytes as f64 / self.inserted_bytes as f64 }
    }

    pub fn cause(&self, name: &str) -> Option<&Cause> {
        self.causes.iter().find(|c| c.name == name)
    }
}

/// Why bytes were written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cause {
    pub name: &'static str,
    pub jobs: u64,
    /// Parts that went in.
    pub parts: u64,
    pub read_bytes: u64,
    pub written_bytes: u64,
}

#[derive(Debug, Clone, PartialEq)]
pub struct RuleLine {
    /// Canonical SQL.
    pub rule: String,
    /// Parts it took out, changed, moved or gave another codec.
    pub parts: u64,
    /// Rows that it removed, folded or changed, or that were in parts that it moved or recompressed.
    pub rows: u64,
    pub first_at: Option<Timestamp>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Warning {
    pub at: Option<Timestamp>,
    pub text: String,
}
