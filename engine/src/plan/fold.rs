//! GROUP BY rules: rows of one key become one whatever parts they lie in, so their parts are rewritten together. Pure.
//!
//! Of a partition, the parts of one family on one volume in which rows are due to be folded, or were folded before, become one part, at
//! the distance of prunes. A due part that has no such neighbour is pruned by itself, a folded one is quiet until a neighbour comes.
//! Parts on the way to another place are folded with those on the same way only, so that no row becomes cold by its neighbours. Guards:
//! no more parts and bytes than a merge takes, the due ones first; each such rewrite leaves fewer parts, so they come to an end, and
//! what does not fit together stays apart.

use super::{
    compact::{Allowance, PAIR},
    decide::{Scene, waits_until},
    round::deletes_due,
    view::{PartView, RuleKind},
};
use ebb_storage::Timestamp;
use std::collections::BTreeMap;

/// Parts that are folded together now, each group by itself; not of those that `other` work has. In the order of their ids.
pub fn together<'a>(scene: &Scene<'a>, other: impl Fn(&PartView) -> bool) -> Vec<Vec<&'a PartView>> {
    match waits(scene) {
        None => eagerly(scene, other),
        Some(_) => Vec::new(),
    }
}

/// Whether a part is to be folded together with others though no row of it has come due since it was folded, and until when that waits.
pub fn joins(scene: &Scene<'_>, part: &PartView) -> Option<Option<Timestamp>> {
    let joins = part.folded && eagerly(scene, |_| false).iter().flatten().any(|p| p.id == part.id);
    joins.then(|| waits(scene))
}

/// When parts of the partition are to be folded together that wait for the distance of prunes.
pub fn wakes_at(scene: &Scene<'_>) -> Option<Timestamp> {
    waits(scene).filter(|_| !eagerly(scene, |_| false).is_empty())
}

fn waits(scene: &Scene<'_>) -> Option<Timestamp> {
    waits_until(scene.partition, scene.stream, scene.now)
}

/// The same on demand, whatever the distance of prunes.
pub fn eagerly<'a>(scene: &Scene<'a>, other: impl Fn(&PartView) -> bool) -> Vec<Vec<&'a PartView>> {
    let (stream, parts) = (scene.stream, &scene.partition.parts);
    let folds = stream.rules.iter().any(|r| r.kind == RuleKind::Fold);
    if !folds || parts.len() < PAIR || stream.stops.merges || stream.settings.merges_off() || !deletes_due(stream) {
        return Vec::new();
    }
    let wanted = |p: &&PartView| (p.folded || scene.due(p.folds_at)) && p.pin.is_none() && scene.may_merge(p) && !other(p);
    let mut alike: BTreeMap<_, Vec<&PartView>> = BTreeMap::new();
    for part in parts.iter().filter(wanted) {
        let volume = |disk| stream.tiers.volume_of(disk);
        let to = scene.sent(part).and_then(|(_, disk)| volume(disk));
        // A disk that is short gets no more to write.
        if to.is_some() && stream.tiers.short_of(part.disk).is_some() {
            continue;
        }
        alike.entry((part.family, volume(part.disk), to)).or_default().push(part);
    }
    alike.into_values().map(|group| fitting(scene, group)).filter(|g| g.len() >= PAIR).collect()
}

fn fitting<'a>(scene: &Scene<'a>, mut group: Vec<&'a PartView>) -> Vec<&'a PartView> {
    let settings = &scene.stream.settings;
    group.sort_by_key(|p| (!scene.due(p.folds_at), p.bytes, p.id));
    let mut left = Allowance::of(settings);
    let mut chosen: Vec<&PartView> = group.into_iter().filter(|p| left.take(p)).take(settings.max_parts_to_merge).collect();
    chosen.sort_by_key(|p| p.id);
    chosen
}
