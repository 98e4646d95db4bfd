//! OPTIMIZE: one round chosen eagerly, or with FINAL one part a partition; everything due applied, whatever the timers say.

use super::{
    choice, compact,
    decide::Scene,
    fold,
    round::Plan,
    target::{self, Ledger},
    view::{PartView, StreamView},
    work::{MoveWhy, Target},
};
use ebb_storage::{Timestamp, ids::PartId};

/// Work of one OPTIMIZE over partition `only`, or all of them. Busy parts are left to their jobs: the caller waits for them first.
pub fn optimize(stream: &StreamView, only: Option<&str>, whole: bool, now: Timestamp) -> Vec<Plan> {
    // What failed before is tried again.
    let mut eager = stream.clone();
    eager.partitions.retain(|p| only.is_none_or(|o| o == &*p.value));
    eager.partitions.iter_mut().flat_map(|p| &mut p.parts).for_each(|p| p.failure = None);
    let mut ledger = Ledger::new(&stream.tiers);
    let mut drops: Vec<PartId> = Vec::new();
    let mut plans = Vec::new();
    for partition in &eager.partitions {
        let scene = Scene::new(&eager, partition, now);
        plans.extend(of_partition(&scene, whole, &mut drops, &mut ledger));
    }
    if !drops.is_empty() {
        drops.sort_unstable();
        plans.insert(0, Plan::Drop { stream: stream.id, parts: drops, cutoff: now });
    }
    plans
}

fn of_partition(scene: &Scene<'_>, whole: bool, drops: &mut Vec<PartId>, ledger: &mut Ledger) -> Vec<Plan> {
    let (stream, now) = (scene.stream, scene.now);
    let (id, partition) = (stream.id, scene.partition.value.clone());
    let delete_due = !stream.stops.ttl_merges;
    let stopped = |p: &PartView| scene.volume(p).is_some_and(|v| v.merges_stopped);
    let free = scene.partition.parts.iter().filter(|p| !p.busy && !stopped(p) && scene.away(p).is_none());
    let (unneeded, free): (Vec<&PartView>, Vec<&PartView>) = free.partition(|p| p.unneeded);
    let removes = |p: &&PartView| delete_due && p.pinned_by_ref().is_some() && scene.due(p.removes_at.min(p.whole_due));
    let (expired, free): (Vec<&PartView>, Vec<&PartView>) = free.into_iter().partition(removes);
    let goes = |p: &&PartView| delete_due && p.pin.is_none() && scene.due(p.whole_due);
    let (gone, mut left): (Vec<&PartView>, Vec<&PartView>) = free.into_iter().partition(goes);
    drops.extend(gone.iter().map(|p| p.id));
    left.sort_by_key(|p| p.id);
    let ids = |parts: &[&PartView]| {
        let mut ids: Vec<PartId> = parts.iter().map(|p| p.id).collect();
        ids.sort_unstable();
        ids
    };
    // Rows of one key become one together; what is merged whole is folded with all others anyway.
    let is_left = |p: &PartView| left.iter().any(|l| l.id == p.id);
    let folds = if whole || !delete_due { Vec::new() } else { fold::eagerly(scene, |p| !is_left(p)) };
    let folds: Vec<Vec<PartId>> = folds.iter().map(|parts| ids(parts)).collect();
    let mut families: Vec<u32> = left.iter().map(|p| p.family).collect();
    families.sort_unstable();
    families.dedup();
    let merges = families.into_iter().flat_map(|family| {
        let in_family = || left.iter().copied().filter(move |p| p.family == family);
        // Due rows that nothing needs go by themselves first, where others are merged for which they would have to stay.
        let pinned = in_family().any(|p| p.pin.is_some());
        let goes_first = move |p: &PartView| pinned && delete_due && p.pin.is_none() && scene.due(p.first_due);
        let of_family = || in_family().filter(move |p| !goes_first(p));
        if whole {
            return compact::choose_all(of_family().collect());
        }
        let is_folded = |p: &PartView| folds.iter().any(|f| f.binary_search(&p.id).is_ok());
        let merges = |p: &&PartView| scene.volume(p).is_none_or(|v| !v.prefer_not_to_merge) && !is_folded(p);
        // Of one volume, the hottest that has two: no row becomes cold by its neighbours.
        let volume = |p: &PartView| stream.tiers.volume_of(p.disk);
        let mut volumes: Vec<_> = of_family().filter(merges).map(volume).collect();
        volumes.sort_unstable();
        volumes.dedup();
        let of = |v| of_family().filter(|p| merges(p) && volume(p) == v).collect();
        volumes.into_iter().map(|v| compact::choose_eagerly(of(v), &stream.settings)).find(|c| !c.is_empty()).into_iter().collect()
    });
    let merges: Vec<Vec<PartId>> = folds.iter().cloned().chain(merges).collect();
    let mut plans = Vec::new();
    if !unneeded.is_empty() {
        plans.push(Plan::Release { stream: id, parts: ids(&unneeded) });
    }
    if !expired.is_empty() {
        plans.push(Plan::Expire { stream: id, partition: partition.clone(), parts: ids(&expired), cutoff: now });
    }
    for merged in merges {
        let sources: Vec<&PartView> = left.iter().copied().filter(|p| merged.binary_search(&p.id).is_ok()).collect();
        let reason = if whole { "OPTIMIZE FINAL" } else { "OPTIMIZE" }.to_owned();
        // Without room it is tried all the same: the error says which disk is full.
        let full =
            || sources.iter().max_by_key(|p| (stream.tiers.volume_of(p.disk), p.id)).map(|p| Target::new(stream.settings.codec, p.disk));
        if let Some(target) = target::of_merge(scene, &sources, true, ledger).or_else(full) {
            plans.push(Plan::Merge {
                stream: id,
                partition: partition.clone(),
                parts: merged.clone(),
                target,
                cutoff: now,
                delete_due: delete_due && sources.iter().all(|p| p.pin.is_none()),
                reason,
            });
            left.retain(|p| merged.binary_search(&p.id).is_err());
        }
    }
    let (mut pruned, mut pruned_to) = (Vec::new(), Vec::new());
    let (mut recompressed, mut recompressed_to) = (Vec::new(), Vec::new());
    for part in left {
        let going = scene.would_go(part);
        // On a volume without merges only FINAL rewrites what is not worth it by itself.
        let rewrites = whole || scene.volume(part).is_none_or(|v| !v.prefer_not_to_merge);
        // What a ref or reader needs as it is waits for it.
        let delete_due = delete_due && part.pin.is_none();
        let reclaims = whole && part.reclaimable && (part.pin.is_none() || !scene.due(part.first_due));
        if reclaims
            || delete_due && ((scene.due(part.first_due) && (rewrites || scene.due(part.worth_at))) || (part.unmeasured && rewrites))
        {
            pruned.push(part.id);
            pruned_to.push(target::of_prune(scene, part, going, ledger).unwrap_or(Target::new(part.codec, part.disk)));
        } else if let Some(going) = going {
            let target = target::of_move(scene, part, going, ledger);
            plans.extend(target.map(|target| Plan::Move { stream: id, part: part.id, target, why: MoveWhy::Rule }));
        } else if delete_due
            && rewrites
            && choice::codec_due(&[part], &stream.rules, now).is_some_and(|(_, c)| c != part.codec)
            && let Some(target) = target::of_recompression(scene, part, ledger)
        {
            recompressed.push(part.id);
            recompressed_to.push(target);
        }
    }
    if !pruned.is_empty() {
        plans.push(Plan::Prune { stream: id, partition: partition.clone(), parts: pruned, targets: pruned_to, cutoff: now });
    }
    if !recompressed.is_empty() {
        plans.push(Plan::Recompress { stream: id, partition, parts: recompressed, targets: recompressed_to });
    }
    plans
}
