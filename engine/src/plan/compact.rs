//! Which parts of a partition to merge: size-tiered.
//!
//! Parts of like size (within a factor of [`TIER`]) form a tier; a tier that has grown to [`FANOUT`] parts is merged into one part of
//! the next. So a row is rewritten about log(bytes) / log(FANOUT) times, whatever arrives, and a partition keeps fewer than FANOUT parts
//! a tier. Of parts that wait to move to a volume without merges, two of a tier are enough.

use super::view::PartView;
use crate::settings::StreamSettings;
use ebb_storage::ids::PartId;

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

/// Those of `waiting` that could be merged with another of them, sorted.
pub fn with_partner(waiting: Vec<&PartView>, settings: &StreamSettings) -> Vec<PartId> {
    let waiting = sorted(waiting);
    let mut found = Vec::new();
    for tier in waiting.chunk_by(alike) {
        let [least, next, ..] = tier else { continue };
        for part in tier {
            let other = if part.id == least.id { next } else { least };
            if part.bytes.saturating_add(other.bytes) <= settings.max_bytes_to_merge {
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
    let mut bytes = 0u64;
    let fitting = tier.iter().take(settings.max_parts_to_merge).take_while(|p| {
        bytes = bytes.saturating_add(p.bytes);
        bytes <= settings.max_bytes_to_merge
    });
    let mut chosen: Vec<PartId> = fitting.map(|p| p.id).collect();
    if chosen.len() < need.min(settings.max_parts_to_merge) || chosen.len() < PAIR {
        return None;
    }
    chosen.sort_unstable();
    Some(chosen)
}

fn alike(a: &&PartView, b: &&PartView) -> bool {
    tier(a) == tier(b)
}

fn tier(part: &PartView) -> u32 {
    (part.bytes / SMALLEST_TIER_BYTES).checked_ilog(TIER).map_or(0, |t| t + 1)
}
