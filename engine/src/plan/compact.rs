//! Which parts of a partition to merge: size-tiered.
//!
//! Parts of like size (within a factor of [`TIER`]) form a tier; a tier that has grown to [`FANOUT`] parts is merged into one part of
//! the next. So a row is rewritten about log(bytes) / log(FANOUT) times, whatever arrives, and a partition keeps fewer than FANOUT parts
//! a tier.

use super::{
    due::is_due,
    view::{PartView, StreamView},
};
use ebb_storage::{Timestamp, ids::PartId};

/// Parts of one tier that are merged together.
pub const FANOUT: usize = 8;
/// Sizes within this factor belong to one tier.
const TIER: u64 = 8;
/// Everything below is one tier: so small that size does not matter.
const SMALLEST_TIER_BYTES: u64 = 1 << 20;

/// Whether a merge may take the part: not busy, not about to be dropped whole, not just failed.
pub fn may_merge(part: &PartView, now: Timestamp) -> bool {
    !part.busy && !is_due(part.whole_due, now) && part.backing_off(now).is_none()
}

/// The parts of one merge; empty where none is worth it. Eagerly, two of any size are.
pub fn choose(parts: &[PartView], stream: &StreamView, eager: bool, now: Timestamp) -> Vec<PartId> {
    let settings = &stream.settings;
    if settings.merges_off() {
        return Vec::new();
    }
    let mut free: Vec<&PartView> = parts.iter().filter(|p| may_merge(p, now)).collect();
    // By size, then by id: the choice does not depend on the order of the view.
    free.sort_by_key(|p| (p.bytes, p.id));
    let (need, tiers): (usize, Vec<&[&PartView]>) = match eager {
        true => (2, vec![&free]),
        false => (FANOUT, free.chunk_by(|a, b| tier(a) == tier(b)).collect()),
    };
    for tier in tiers {
        let mut bytes = 0u64;
        let fitting = tier.iter().take(settings.max_parts_to_merge).take_while(|p| {
            bytes = bytes.saturating_add(p.bytes);
            bytes <= settings.max_bytes_to_merge
        });
        let mut chosen: Vec<PartId> = fitting.map(|p| p.id).collect();
        if chosen.len() >= need.min(settings.max_parts_to_merge) && chosen.len() >= 2 {
            chosen.sort_unstable();
            return chosen;
        }
    }
    Vec::new()
}

fn tier(part: &PartView) -> u32 {
    (part.bytes / SMALLEST_TIER_BYTES).checked_ilog(TIER).map_or(0, |t| t + 1)
}
