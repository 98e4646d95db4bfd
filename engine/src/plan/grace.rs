//! Merge before move: parts that are due for a volume without merges wait for a partner, so that fewer and larger parts get there. Pure.
//!
//! Guards: no part waits longer than the bound, counted from when the first of the parts it was made of was both written and due; and
//! none waits where nothing could merge it.

use super::{
    compact,
    decide::Scene,
    view::{Change, PartView},
};
use ebb_storage::{
    Timestamp,
    ids::{DiskId, PartId},
};
use std::{collections::BTreeMap, time::Duration};

/// All waiting is bounded by so many times the grace.
const BOUND_TIMES: u32 = 10;
/// And by this where there is no grace.
const BOUND_WITHOUT_GRACE: Duration = Duration::from_secs(3000);

/// A part that waits, if there is something to wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wait {
    /// Without a partner it waits until then.
    pub until_lone: Option<Timestamp>,
    /// With one, until then at the latest.
    pub bound: Timestamp,
}

/// Whether the part, which `change` sends to disk `to`, waits; `None` where it goes at once.
pub fn wait(scene: &Scene<'_>, part: &PartView, change: Change, to: DiskId) -> Option<Wait> {
    let (stream, tiers) = (scene.stream, &scene.stream.tiers);
    let unmerged = |disk| tiers.volume_of(disk).is_some_and(|v| tiers.volumes[v].prefer_not_to_merge);
    let merges = !stream.stops.merges && !stream.settings.merges_off();
    if !unmerged(to) || !merges || !scene.may_merge(part) || tiers.short_of(part.disk).is_some() {
        return None;
    }
    let grace = stream.settings.move_grace;
    let longest = if grace.is_zero() { BOUND_WITHOUT_GRACE } else { grace.saturating_mul(BOUND_TIMES) };
    let bound = due_since(part, change).saturating_add(longest);
    if scene.due(bound) {
        return None;
    }
    let until_lone = (!grace.is_zero()).then(|| part.written_at.saturating_add(grace).min(bound));
    Some(Wait { until_lone, bound })
}

/// The earliest moment at which one of the parts that this one was made of was both written and due for this move.
pub fn due_since(part: &PartView, change: Change) -> Timestamp {
    // What is from before the first row was due stems from another move.
    let carried = part.move_due_since.filter(|t| *t >= change.first);
    carried.unwrap_or_else(|| part.written_at.max(change.at))
}

/// What the part that these become carries on: the earliest such moment among those that are due and not where they belong.
pub fn carried(scene: &Scene<'_>, parts: &[&PartView]) -> Option<Timestamp> {
    let since = |part: &&PartView| {
        let (change, _) = scene.misplaced(part)?;
        Some(due_since(part, change))
    };
    parts.iter().filter_map(since).min()
}

/// Parts of the partition that wait and could be merged with another that does, for the same volume; sorted.
pub fn partners(scene: &Scene<'_>) -> Vec<PartId> {
    let mut found: Vec<PartId> = groups(scene).into_iter().flat_map(|g| compact::with_partner(g, &scene.stream.settings)).collect();
    found.sort_unstable();
    found
}

/// Waiting parts by the volume they are due for, each family by itself.
fn groups<'a>(scene: &Scene<'a>) -> Vec<Vec<&'a PartView>> {
    let mut groups: BTreeMap<(usize, u32), Vec<&PartView>> = BTreeMap::new();
    for part in &scene.partition.parts {
        if let Some(volume) = scene.waits_for_merge(part).and_then(|to| scene.stream.tiers.volume_of(to)) {
            groups.entry((volume, part.family)).or_default().push(part);
        }
    }
    groups.into_values().collect()
}
