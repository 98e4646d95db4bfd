//! Where and how what a job writes is to lie, with the room that is left after what was planned before. Pure.
//!
//! Guards: what is written together goes to no hotter volume than the coldest source, but where the rule in force names one.

use super::{
    choice::{self, Found},
    decide::{Going, Scene},
    grace,
    tiers::{BESIDE_ROWS_BYTES, TierView},
    view::{PartView, StreamView},
    work::Target,
};
use ebb_storage::{
    Timestamp,
    codec::Codec,
    ids::{DiskId, Fingerprint},
};
use std::sync::Arc;

/// The room of a round: each plan takes its share of it.
pub struct Ledger {
    tiers: Arc<TierView>,
}

impl Ledger {
    pub fn new(tiers: &Arc<TierView>) -> Self {
        Self { tiers: tiers.clone() }
    }

    pub fn tiers(&self) -> &TierView {
        &self.tiers
    }

    /// Takes room; `false`, and nothing taken, where it is not there any more.
    pub fn take(&mut self, disk: DiskId, bytes: u64) -> bool {
        let Some(found) = self.tiers.disk(disk) else { return true };
        if found.takes(bytes).is_err() {
            return false;
        }
        if found.free != u64::MAX {
            let disks = Arc::make_mut(&mut self.tiers).volumes.iter_mut().flat_map(|v| &mut v.disks);
            disks.filter(|d| d.id == disk).for_each(|d| d.free -= bytes);
        }
        true
    }

    /// Takes room on the first disk from the volume on that has it.
    fn take_from_on(&mut self, volume: usize, bytes: u64, turn: u64) -> Option<DiskId> {
        let disk = self.tiers.from_on(volume, bytes, turn).ok()?;
        self.take(disk, bytes).then_some(disk)
    }
}

fn fingerprint(stream: &StreamView, rule: u32) -> Option<Fingerprint> {
    stream.rules.get(rule as usize).map(|r| r.fingerprint)
}

/// The codec that a rewrite of one part gives it: the one its rows are due for, else the one it has.
fn codec_of(stream: &StreamView, part: &PartView, now: Timestamp) -> Target {
    let as_is = Target::new(part.codec, part.disk);
    if stream.stops.ttl_merges {
        return as_is;
    }
    match choice::codec_due(&[part], &stream.rules, now) {
        Some((rule, codec)) if codec != part.codec => Target { codec, recompressed_by: fingerprint(stream, rule), ..as_is },
        _ => as_is,
    }
}

/// Of a part whose due rows go: where the rule in force sends what stays, if it may go now, else where it is.
pub fn of_prune(scene: &Scene<'_>, part: &PartView, going: Option<Going>, ledger: &mut Ledger) -> Option<Target> {
    let target = Target { move_due_since: grace::carried(scene, &[part]), ..codec_of(scene.stream, part, scene.now) };
    if let Some(going) = going
        && let Some(there) = placed(part, target, going.disk, BESIDE_ROWS_BYTES, ledger)
    {
        return Some(Target { moved_by: fingerprint(scene.stream, going.change.rule), move_due_since: None, ..there });
    }
    if let Some(here) = placed(part, target, part.disk, BESIDE_ROWS_BYTES, ledger) {
        return Some(here);
    }
    let volume = scene.stream.tiers.volume_of(part.disk).unwrap_or(0);
    let disk = ledger.tiers().from_on(volume, part.bytes.saturating_add(BESIDE_ROWS_BYTES), part.id.0).ok()?;
    placed(part, target, disk, BESIDE_ROWS_BYTES, ledger)
}

/// Of a part that a rule moves. `None` where the room it would go to is taken by now.
pub fn of_move(scene: &Scene<'_>, part: &PartView, going: Going, ledger: &mut Ledger) -> Option<Target> {
    let moves = choice::moves_due(&[part], &scene.stream.rules, scene.now);
    let walked = choice::walk(&moves, ledger.tiers(), part.disk, part.bytes, part.id.0);
    let disk = walked.into_iter().find_map(|(c, f)| match f {
        Found::Goes(disk) if c.rule == going.change.rule => Some(disk),
        _ => None,
    })?;
    let moved_by = fingerprint(scene.stream, going.change.rule);
    Some(Target { moved_by, ..placed(part, riding(scene, part), disk, 0, ledger)? })
}

/// Of a part that leaves its disk for lack of room, to the next volumes.
pub fn of_pressure(scene: &Scene<'_>, part: &PartView, ledger: &mut Ledger) -> Option<Target> {
    let next = scene.stream.tiers.volume_of(part.disk)?.checked_add(1)?;
    let disk = ledger.tiers().from_on(next, part.bytes, part.id.0).ok()?;
    placed(part, riding(scene, part), disk, 0, ledger)
}

/// On a disk in the codec of `target` where it is reckoned to fit there, else in the one that the part has. It takes its room, and so
/// much to `spare`.
fn placed(part: &PartView, target: Target, disk: DiskId, spare: u64, ledger: &mut Ledger) -> Option<Target> {
    if takes(part, target.codec, disk, spare, ledger) {
        return Some(Target { disk, ..target });
    }
    let as_it_is = Target { disk, codec: part.codec, recompressed_by: None, ..target };
    (target.codec != part.codec && takes(part, part.codec, disk, spare, ledger)).then_some(as_it_is)
}

/// Takes room on a disk for the part in a codec; `false`, and nothing taken, where it is not admitted there.
fn takes(part: &PartView, codec: Codec, disk: DiskId, spare: u64, ledger: &mut Ledger) -> bool {
    let bytes = part.bytes_in(codec);
    ledger.tiers().admits(disk, bytes, part.bytes).is_ok() && ledger.take(disk, bytes.saturating_add(spare))
}

/// The codec that a part gets on its way to another disk.
fn riding(scene: &Scene<'_>, part: &PartView) -> Target {
    let stopped = scene.stream.stops.merges || scene.volume(part).is_some_and(|v| v.merges_stopped);
    match stopped {
        true => Target::new(part.codec, part.disk),
        false => codec_of(scene.stream, part, scene.now),
    }
}

/// Of a part that is recompressed where it is.
pub fn of_recompression(scene: &Scene<'_>, part: &PartView, ledger: &mut Ledger) -> Option<Target> {
    let target = codec_of(scene.stream, part, scene.now);
    (target.codec != part.codec && takes(part, target.codec, part.disk, 0, ledger)).then_some(target)
}

/// Of parts that become one: the codec that all their rows are due for, else the stream's; the destination that all are due for where
/// `direct`, else a disk of the coldest source's volume or a colder one.
pub fn of_merge(scene: &Scene<'_>, parts: &[&PartView], direct: bool, ledger: &mut Ledger) -> Option<Target> {
    let (stream, tiers) = (scene.stream, &scene.stream.tiers);
    let turn = parts.iter().map(|p| p.id.0).min()?;
    let bytes = parts.iter().map(|p| p.bytes).fold(BESIDE_ROWS_BYTES, u64::saturating_add);
    let coldest = parts.iter().map(|p| tiers.volume_of(p.disk).unwrap_or(0)).max()?;
    let same = parts.iter().all(|p| p.codec == parts[0].codec).then_some(parts[0].codec);
    let due = choice::codec_due(parts, &stream.rules, scene.now).filter(|_| !stream.stops.ttl_merges);
    let codec = match due {
        Some((_, codec)) => codec,
        // Rules are stopped: what they did before is not undone.
        None => same.filter(|_| stream.stops.ttl_merges).unwrap_or(stream.settings.codec),
    };
    let recompressed_by = due.filter(|_| same != Some(codec)).and_then(|(rule, _)| fingerprint(stream, rule));
    let move_due_since = grace::carried(scene, parts);
    let target = |disk, moved_by| Target { codec, disk, recompressed_by, moved_by, move_due_since };
    if direct && !stream.stops.moves {
        // From the coldest source: what stands in for a full destination is colder than all of them.
        let from = parts.iter().max_by_key(|p| (tiers.volume_of(p.disk), p.id))?.disk;
        let moves = choice::moves_due(parts, &stream.rules, scene.now);
        for (change, found) in choice::walk(&moves, ledger.tiers(), from, bytes, turn) {
            match found {
                Found::Goes(disk) if ledger.take(disk, bytes) => {
                    return Some(Target { move_due_since: None, ..target(disk, fingerprint(stream, change.rule)) });
                }
                Found::There if ledger.take(from, bytes) => return Some(target(from, None)),
                Found::There => break,
                _ => {}
            }
        }
    }
    Some(target(ledger.take_from_on(coldest, bytes, turn)?, None))
}
