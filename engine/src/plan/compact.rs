//! Which parts of a partition to merge: size-tiered.
//!
//! Parts of like size (within a factor of [`TIER`]) form a tier; a tier that has grown to [`FANOUT`] parts is merged into one part of
//! the next. So a row is rewritten about log(bytes) / log(FANOUT) times, whatever arrives, and a partition keeps fewer than FANOUT parts
//! a tier. Nothing becomes a part of more rows than can be numbered. Of parts that wait to move to a volume without merges, two of a tier are enough.

use super::view::PartView;
use crate::settings::StreamSettings;
use ebb_storage::{ids::PartId, part::MAX_ROWS};

/// Parts of one tier that are merged together.
pub const FANOUT: usize = 8;
/// Parts that are worth a merge where each part counts.
pub const PAIR: usize = 2;
/// Sizes within this factor belong to one tier.
const TIER: u64 = 8;
/// Everything below is one tier: so small that size does not matter.
const SMALLEST_TIER_BYTES: u64 = 1 << 20;

/// The parts of one merge out of `free` ones, from [`FANOUT`] of like size on; empty where none is worth it.
pub fn choose(free: Vec<&PartView>, settings: &StreamSettings) -> Vec<PartId> {
    let free = sorted(free);
    free.chunk_by(alike).find_map(|tier| fitting(tier, settings, FANOUT)).unwrap_or_default()
}

/// The same for parts that wait to move: from two of like size on.
pub fn choose_pair(free: Vec<&PartView>, settings: &StreamSettings) -> Vec<PartId> {
    let free = sorted(free);
    free.chunk_by(alike).find_map(|tier| fitting(tier, settings, PAIR)).unwrap_or_default()
}

/// Any two or more, whatever their sizes.
pub fn choose_eagerly(free: Vec<&PartView>, settings: &StreamSettings) -> Vec<PartId> {
    fitting(&sorted(free), settings, PAIR).unwrap_or_default()
}

/// For whoever wants one part of all: as much of it as a part takes, of the rest the same, and so on. What fits with no other is in none.
pub fn choose_all(free: Vec<&PartView>) -> Vec<Vec<PartId>> {
    let mut rest = sorted(free);
    let mut groups = Vec::new();
    while !rest.is_empty() {
        let mut left = Allowance::of_rows();
        let (taken, others): (Vec<&PartView>, Vec<&PartView>) = rest.into_iter().partition(|p| left.take(p));
        match taken.len() {
            // Each of them alone is too much.
            0 => break,
            1 => {}
            _ => groups.push(ids(taken)),
        }
        rest = others;
    }
    groups
}

/// What may still become one part.
pub struct Allowance {
    bytes: u64,
    rows: u64,
}

impl Allowance {
    /// Of a merge.
    pub fn of(settings: &StreamSettings) -> Self {
        Self { bytes: settings.max_bytes_to_merge, ..Self::of_rows() }
    }

    /// However many bytes that is.
    fn of_rows() -> Self {
        Self { bytes: u64::MAX, rows: MAX_ROWS }
    }

    /// `false`, and nothing taken, where the part is too much.
    pub fn take(&mut self, part: &PartView) -> bool {
        let (Some(bytes), Some(rows)) = (self.bytes.checked_sub(part.bytes), self.rows.checked_sub(part.rows)) else { return false };
        (self.bytes, self.rows) = (bytes, rows);
        true
    }
}

/// Those of `waiting` that could be merged with another of them, sorted.
pub fn with_partner(waiting: Vec<&PartView>, settings: &StreamSettings) -> Vec<PartId> {
    let waiting = sorted(waiting);
    let mut found = Vec::new();
    for tier in waiting.chunk_by(alike) {
        let [least, next, ..] = tier else { continue };
        for part in tier {
            let other = if part.id == least.id { next } else { least };
            let mut left = Allowance::of(settings);
            if left.take(part) && left.take(other) {
                found.push(part.id);
            }
        }
    }
    found.sort_unstable();
    found
}

/// By size, then by id: no choice depends on the order of the view.
fn sorted(mut free: Vec<&PartView>) -> Vec<&PartView> {
    free.sort_by_key(|p| (p.bytes, p.id));
    free
}

fn fitting(tier: &[&PartView], settings: &StreamSettings, need: usize) -> Option<Vec<PartId>> {
    if settings.merges_off() {
        return None;
    }
    let mut left = Allowance::of(settings);
    let chosen: Vec<&PartView> = tier.iter().copied().take(settings.max_parts_to_merge).take_while(|p| left.take(p)).collect();
    let worth = chosen.len() >= need.min(settings.max_parts_to_merge) && chosen.len() >= PAIR;
    worth.then(|| ids(chosen))
}

fn ids(parts: Vec<&PartView>) -> Vec<PartId> {
    let mut ids: Vec<PartId> = parts.iter().map(|p| p.id).collect();
    ids.sort_unstable();
    ids
}

fn alike(a: &&PartView, b: &&PartView) -> bool {
    tier(a) == tier(b)
}

fn tier(part: &PartView) -> u32 {
    (part.bytes / SMALLEST_TIER_BYTES).checked_ilog(TIER).map_or(0, |t| t + 1)
}
