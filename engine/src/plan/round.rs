//! One round of planning over one stream: what should be done now, most urgent first, and when to look again.
//!
//! Priority: whole parts out (they cost nothing), due rows out or folded, facts measured, parts moved and recompressed, parts merged, and
//! last those whose records nothing tells apart any more. What is due
//! together is done in one rewrite: a prune or merge also gives its rows the codec and the place that they are due for.

use super::choice::{self, Spots};
pub use super::work::{MoveWhy, Plan, Target};
use super::{
    compact,
    decide::{Action, Going, Scene, State, waits_until},
    due::WakeUp,
    fold,
    pressure::{Candidate, Pressed, Relief},
    target::{self, Ledger},
    tiers::BESIDE_ROWS_BYTES,
    view::{PartView, PartitionView, StreamView},
};
use ebb_storage::{Timestamp, ids::PartId};
use std::{collections::HashSet, sync::Arc};

/// Parts that one commit drops at the most.
pub const DROP_BATCH: usize = 10_000;

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Planned {
    /// Most urgent first; no part in two of them.
    pub plans: Vec<Plan>,
    /// When something becomes due that is not yet.
    pub wake_at: Option<Timestamp>,
    /// Something waits for room, a disk, or work elsewhere: it is to be looked at again though nothing of the stream changes.
    pub waits_for_room: bool,
}

/// All that is to be done at `now`, whatever places are free.
pub fn plan(stream: &StreamView, now: Timestamp) -> Planned {
    make(stream, now, |round, partitions| round.relieve(partitions))
}

/// What could leave disks on which too little is free, beside what leaves them anyway.
pub fn pressed(stream: &StreamView, now: Timestamp) -> Vec<Pressed> {
    let mut found = Vec::new();
    make(stream, now, |round, partitions| {
        found = round.pressed(partitions);
        Vec::new()
    });
    found
}

fn make(stream: &StreamView, now: Timestamp, relieve: impl FnOnce(&mut Round<'_>, &[Wanted<'_>]) -> Vec<Plan>) -> Planned {
    let mut wake = WakeUp::after(now);
    let spots = Arc::new(Spots::of(&stream.rules, &stream.tiers));
    let scene = |p| Scene::with(stream, p, now, spots.clone());
    let mut partitions: Vec<Wanted<'_>> = stream.partitions.iter().map(|p| Wanted::of(scene(p), &mut wake)).collect();
    // Room is given out in an order that does not depend on the view's.
    partitions.sort_by(|a, b| a.scene.partition.value.cmp(&b.scene.partition.value));
    let mut releases: Vec<PartId> =
        stream.partitions.iter().flat_map(|p| &p.parts).filter(|p| p.unneeded && !p.busy).map(|p| p.id).collect();
    releases.sort_unstable();
    let mut round = Round { stream, ledger: Ledger::new(&stream.tiers), taken: HashSet::new(), waits_for_room: false };
    let mut drops: Vec<PartId> = partitions.iter().flat_map(|w| &w.drops).copied().collect();
    let mut measures: Vec<PartId> = partitions.iter().flat_map(|w| &w.measures).copied().collect();
    drops.sort_unstable();
    measures.sort_unstable();
    round.taken.extend(drops.iter().chain(&measures).chain(&releases));
    let expiries: Vec<Plan> = partitions.iter().filter_map(|w| round.expiry(w)).collect();
    // Before merges: these would fold some of the parts, and leave the others.
    let folds: Vec<Plan> = partitions.iter().flat_map(|w| round.folds(&w.scene)).collect();
    let merges: Vec<Plan> = partitions.iter().flat_map(|w| round.merges(w)).collect();
    let prunes: Vec<Plan> = partitions.iter().filter_map(|w| round.prune(w)).collect();
    let mut moves = round.moves(&partitions);
    moves.extend(relieve(&mut round, &partitions));
    let recompressions: Vec<Plan> = partitions.iter().filter_map(|w| round.recompression(w)).collect();
    let forgets: Vec<Plan> = partitions.iter().flat_map(|w| round.forgets(&w.scene)).collect();
    let mut plans: Vec<Plan> = drops.chunks(DROP_BATCH).map(|c| Plan::Drop { stream: stream.id, parts: c.to_vec(), cutoff: now }).collect();
    plans.extend(releases.chunks(DROP_BATCH).map(|c| Plan::Release { stream: stream.id, parts: c.to_vec() }));
    plans.extend(expiries.into_iter().chain(folds).chain(prunes));
    if !measures.is_empty() {
        plans.push(Plan::Measure { stream: stream.id, parts: measures });
    }
    plans.extend(moves.into_iter().chain(recompressions).chain(merges).chain(forgets));
    let waits_for_room = round.waits_for_room || partitions.iter().any(|w| w.waits_for_room);
    Planned { plans, wake_at: wake.at(), waits_for_room }
}

/// What a partition's parts want, each by itself.
struct Wanted<'a> {
    scene: Scene<'a>,
    drops: Vec<PartId>,
    measures: Vec<PartId>,
    /// Their due rows stay in the file for a ref.
    expiries: Vec<PartId>,
    prunes: Vec<&'a PartView>,
    moves: Vec<(&'a PartView, Going)>,
    recompressions: Vec<&'a PartView>,
    /// A part waits for a partner.
    waiting: bool,
    waits_for_room: bool,
}

impl<'a> Wanted<'a> {
    fn of(scene: Scene<'a>, wake: &mut WakeUp) -> Self {
        let mut wanted = Self {
            scene,
            drops: Vec::new(),
            measures: Vec::new(),
            expiries: Vec::new(),
            prunes: Vec::new(),
            moves: Vec::new(),
            recompressions: Vec::new(),
            waiting: false,
            waits_for_room: false,
        };
        for part in &wanted.scene.partition.parts {
            // It goes for its own reason.
            if part.unneeded {
                continue;
            }
            // What failed may be merged again from then on, whatever its rules say.
            if let Some(at) = part.backing_off(wanted.scene.now) {
                wake.consider(at);
            }
            part.changes.iter().for_each(|c| wake.consider(c.at));
            // What is still to come for a part, whatever waits now.
            wake.consider(part.whole_due);
            wake.consider(part.folds_at);
            // The common case first: nothing of the part is due and nothing is unknown.
            let due = |at| wanted.scene.due(at);
            if !part.unmeasured && !due(part.first_due) && !due(part.whole_due) && !part.changes.iter().any(|c| due(c.at)) {
                if !wanted.scene.stream.settings.only_drop_parts {
                    wake.consider(part.first_due);
                }
                continue;
            }
            wanted.ask(part, wake);
        }
        fold::wakes_at(&wanted.scene).into_iter().for_each(|at| wake.consider(at));
        wanted.prunes.sort_by_key(|p| p.id);
        wanted.recompressions.sort_by_key(|p| p.id);
        wanted
    }

    fn ask(&mut self, part: &'a PartView, wake: &mut WakeUp) {
        let mut note = |d: &super::Decision, also: Option<Timestamp>| {
            d.next_attempt_at.into_iter().chain(also).for_each(|at| wake.consider(at));
            matches!(d.state, State::DestinationFull | State::DiskThreshold | State::DiskUnavailable | State::PoolBusy)
        };
        let removal = self.scene.removal(part);
        self.waits_for_room |= note(&removal, None);
        match (removal.acts(), removal.action) {
            (true, Action::Drop | Action::Delete) if part.pinned_by_ref().is_some() => return self.expiries.push(part.id),
            (true, Action::Drop) => return self.drops.push(part.id),
            (true, Action::Measure) => return self.measures.push(part.id),
            (true, _) => self.prunes.push(part),
            _ => {}
        }
        if part.changes.is_empty() {
            return;
        }
        if let Some((d, going)) = self.scene.going(part) {
            // One that need not wait is merged with others as one that does, until then.
            let joins = d.acts() && self.scene.stream.tiers.has_unmerged_volume();
            self.waits_for_room |= note(&d, joins.then(|| self.scene.waits_until(part)).flatten());
            self.waiting |= d.state == State::WaitingPartner;
            self.moves.extend(going.filter(|_| d.acts()).map(|g| (part, g)));
        }
        if let Some((_, d)) = self.scene.recompression(part) {
            self.waits_for_room |= note(&d, None);
            if d.acts() {
                self.recompressions.push(part);
            }
        }
    }

    fn going(&self, part: PartId) -> Option<Going> {
        self.moves.iter().find(|(p, _)| p.id == part).map(|(_, g)| *g)
    }
}

/// Why parts are merged together: only those of one kind are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Class {
    /// No move is due that may be made: they stay on their volume, so that no row becomes cold by its neighbours.
    Plain(usize),
    /// Due for a volume without merges, waiting for a partner.
    Waiting(usize),
    /// On the way to a volume.
    Going(usize),
}

struct Round<'a> {
    stream: &'a StreamView,
    ledger: Ledger,
    /// Parts of plans.
    taken: HashSet<PartId>,
    waits_for_room: bool,
}

impl Round<'_> {
    /// Merges of parts that are due for the same, each kind by itself.
    fn merges(&mut self, wanted: &Wanted<'_>) -> Vec<Plan> {
        let (stream, scene) = (self.stream, &wanted.scene);
        // Most partitions have too few parts for a merge.
        let ruled = stream.rules.iter().any(|r| r.changes());
        let least = if wanted.waiting { compact::PAIR } else { compact::FANOUT.min(stream.settings.max_parts_to_merge) };
        if stream.stops.merges || stream.settings.merges_off() || scene.partition.parts.len() < least {
            return Vec::new();
        }
        let volume = |disk| stream.tiers.volume_of(disk).unwrap_or(0);
        let class = |part: &PartView| {
            if part.changes.is_empty() {
                return (Class::Plain(volume(part.disk)), part.family, None);
            }
            let codec = choice::codec_due(&[part], &stream.rules, scene.now).map(|(rule, _)| rule);
            let class = match (scene.waits_for_merge(part), wanted.going(part.id)) {
                (Some(to), _) => Class::Waiting(volume(to)),
                (_, Some(going)) => Class::Going(volume(going.disk)),
                _ => Class::Plain(volume(part.disk)),
            };
            (class, part.family, codec)
        };
        let pressed =
            |part: &PartView| !part.changes.is_empty() && stream.tiers.short_of(part.disk).is_some() && wanted.going(part.id).is_some();
        let free = scene.partition.parts.iter().filter(|p| !self.taken.contains(&p.id) && scene.may_merge(p) && !pressed(p));
        let mut free: Vec<_> = free.map(|p| (class(p), p)).collect();
        if ruled || stream.tiers.volumes.len() > 1 || free.iter().any(|(_, p)| p.family != 0) {
            free.sort_by_key(|(class, p)| (*class, p.id));
        }
        let mut plans = Vec::new();
        for group in free.chunk_by(|(a, _), (b, _)| a == b) {
            let (class, parts) = (group[0].0.0, group.iter().map(|(_, p)| *p).collect::<Vec<_>>());
            let (all, by_id) = (parts.len(), parts.clone());
            let chosen = match class {
                Class::Waiting(_) => compact::choose_pair(parts, &stream.settings),
                _ => compact::choose(parts, &stream.settings),
            };
            if chosen.is_empty() {
                continue;
            }
            let sources: Vec<&PartView> = by_id.into_iter().filter(|p| chosen.binary_search(&p.id).is_ok()).collect();
            // Where nothing is waited for after the merge, it goes where it is due for at once.
            let direct = match class {
                Class::Plain(_) => false,
                Class::Waiting(_) => stream.settings.move_grace.is_zero() && chosen.len() == all,
                Class::Going(_) => true,
            };
            let Some(target) = target::of_merge(scene, &sources, direct, &mut self.ledger) else {
                self.waits_for_room = true;
                continue;
            };
            let reason = match class {
                Class::Waiting(_) => format!("{} parts that are due for a volume without merges", chosen.len()),
                _ => format!("{} parts of like size", chosen.len()),
            };
            self.taken.extend(&chosen);
            plans.push(Plan::Merge {
                stream: stream.id,
                partition: scene.partition.value.clone(),
                parts: chosen,
                target,
                cutoff: scene.now,
                delete_due: deletes_due(stream) && sources.iter().all(|p| p.pin.is_none()),
                reason,
            });
        }
        plans
    }

    /// Parts whose due rows of one key become one, together.
    fn folds(&mut self, scene: &Scene<'_>) -> Vec<Plan> {
        let mut plans = Vec::new();
        for sources in fold::together(scene, |p| self.taken.contains(&p.id)) {
            // As merges: where they wait for a partner and are now each other's, they go on by themselves.
            let waits = sources.iter().any(|p| scene.waits_for_merge(p).is_some());
            let direct = scene.sent(sources[0]).is_some() && (!waits || self.stream.settings.move_grace.is_zero());
            let Some(target) = target::of_merge(scene, &sources, direct, &mut self.ledger) else {
                self.waits_for_room = true;
                continue;
            };
            let parts: Vec<PartId> = sources.iter().map(|p| p.id).collect();
            self.taken.extend(&parts);
            let (partition, cutoff) = (scene.partition.value.clone(), scene.now);
            plans.push(Plan::Fold { stream: self.stream.id, partition, parts, target, cutoff });
        }
        plans
    }

    fn expiry(&mut self, wanted: &Wanted<'_>) -> Option<Plan> {
        let mut parts = wanted.expiries.clone();
        parts.sort_unstable();
        self.taken.extend(&parts);
        let (partition, cutoff) = (wanted.scene.partition.value.clone(), wanted.scene.now);
        (!parts.is_empty()).then_some(Plan::Expire { stream: self.stream.id, partition, parts, cutoff })
    }

    fn prune(&mut self, wanted: &Wanted<'_>) -> Option<Plan> {
        let (mut parts, mut targets) = (Vec::new(), Vec::new());
        for part in &wanted.prunes {
            if self.taken.contains(&part.id) {
                continue;
            }
            match target::of_prune(&wanted.scene, part, wanted.going(part.id), &mut self.ledger) {
                Some(target) => {
                    parts.push(part.id);
                    targets.push(target);
                }
                None => self.waits_for_room = true,
            }
        }
        self.taken.extend(&parts);
        let (partition, cutoff) = (wanted.scene.partition.value.clone(), wanted.scene.now);
        (!parts.is_empty()).then_some(Plan::Prune { stream: self.stream.id, partition, parts, targets, cutoff })
    }

    /// Moves by rules, those due first first.
    fn moves(&mut self, partitions: &[Wanted<'_>]) -> Vec<Plan> {
        let mut wanted: Vec<_> =
            partitions.iter().flat_map(|w| w.moves.iter().map(move |(p, g)| (g.change.at, *p, *g, &w.scene))).collect();
        wanted.sort_by_key(|(at, part, ..)| (*at, part.id));
        let mut plans = Vec::new();
        for (_, part, going, scene) in wanted {
            if self.taken.contains(&part.id) {
                continue;
            }
            let Some(target) = target::of_move(scene, part, going, &mut self.ledger) else {
                self.waits_for_room = true;
                continue;
            };
            self.taken.insert(part.id);
            plans.push(Plan::Move { stream: self.stream.id, part: part.id, target, why: MoveWhy::Rule });
        }
        plans
    }

    /// Disks of which too little is free, and what could leave them.
    fn pressed(&self, partitions: &[Wanted<'_>]) -> Vec<Pressed> {
        let (stream, mut all) = (self.stream, Vec::new());
        let Some((_, hotter)) = stream.tiers.volumes.split_last() else { return all };
        for disk in hotter.iter().flat_map(|v| &v.disks) {
            let Some(short) = stream.tiers.short_of(disk.id) else { continue };
            let mut pressed = Pressed { disk: disk.id, short, leaving: 0, candidates: Vec::new() };
            let may = !stream.stops.moves && disk.unavailable.is_none();
            for (part, scene) in partitions.iter().flat_map(|w| w.scene.partition.parts.iter().map(move |p| (p, &w.scene))) {
                if part.disk != disk.id {
                } else if self.taken.contains(&part.id) {
                    pressed.leaving = pressed.leaving.saturating_add(part.bytes);
                } else if may && may_leave(part, scene) {
                    pressed.candidates.push(Candidate::of(part, due_next(part, scene)));
                }
            }
            all.push(pressed);
        }
        all
    }

    /// Moves off disks of which too little is free: what was decided over all streams, or by this one alone.
    fn relieve(&mut self, partitions: &[Wanted<'_>]) -> Vec<Plan> {
        let (stream, mut plans) = (self.stream, Vec::new());
        let pressed = self.pressed(partitions);
        if pressed.is_empty() {
            return plans;
        }
        self.waits_for_room = true;
        let here: HashSet<PartId> = pressed.iter().flat_map(|p| p.candidates.iter().map(|c| c.id)).collect();
        let relief = stream.relief.clone().unwrap_or_else(|| Arc::new(Relief::of(pressed)));
        let parts = partitions.iter().flat_map(|w| w.scene.partition.parts.iter().map(move |p| (p, &w.scene)));
        let mut leaving: Vec<_> = parts.filter(|(p, _)| here.contains(&p.id) && relief.takes(p.id)).collect();
        leaving.sort_by_key(|(p, _)| (std::cmp::Reverse(p.bytes), p.id));
        for (part, scene) in leaving {
            if let Some(target) = target::of_pressure(scene, part, &mut self.ledger) {
                self.taken.insert(part.id);
                plans.push(Plan::Move { stream: stream.id, part: part.id, target, why: MoveWhy::Pressure });
            }
        }
        plans
    }

    /// Parts that nothing else is to be done with.
    fn forgets(&mut self, scene: &Scene<'_>) -> Vec<Plan> {
        let mut plans = Vec::new();
        for part in scene.partition.parts.iter().filter(|p| p.forgets && !self.taken.contains(&p.id)) {
            if scene.forgetting(part).is_some_and(|d| d.acts()) && self.ledger.take(part.disk, part.bytes.saturating_add(BESIDE_ROWS_BYTES))
            {
                let target = Target { move_due_since: part.move_due_since, ..Target::new(part.codec, part.disk) };
                plans.push(Plan::Forget { stream: self.stream.id, part: part.id, target });
            }
        }
        plans.sort_by_key(|p| p.parts()[0]);
        self.taken.extend(plans.iter().flat_map(|p| p.parts()));
        plans
    }

    fn recompression(&mut self, wanted: &Wanted<'_>) -> Option<Plan> {
        let (mut parts, mut targets) = (Vec::new(), Vec::new());
        for part in &wanted.recompressions {
            if self.taken.contains(&part.id) {
                continue;
            }
            // One that was to ride on work that found no room waits for its own turn.
            let alone = wanted.scene.volume(part).is_none_or(|v| !v.prefer_not_to_merge) && wanted.going(part.id).is_none();
            match target::of_recompression(&wanted.scene, part, &mut self.ledger).filter(|_| alone) {
                Some(target) => {
                    parts.push(part.id);
                    targets.push(target);
                }
                None => self.waits_for_room = true,
            }
        }
        self.taken.extend(&parts);
        let partition = wanted.scene.partition.value.clone();
        (!parts.is_empty()).then_some(Plan::Recompress { stream: self.stream.id, partition, parts, targets })
    }
}

/// Whether a part may be taken off its disk for lack of room: nobody has it, and no due rule keeps it there.
fn may_leave(part: &PartView, scene: &Scene<'_>) -> bool {
    !part.busy && !scene.is_kept(part) && part.backing_off(scene.now).is_none()
}

/// When a rule would move the part, or remove it.
fn due_next(part: &PartView, scene: &Scene<'_>) -> Timestamp {
    let moves = part.changes.iter().filter(|c| scene.stream.rules.get(c.rule as usize).is_some_and(|r| r.moves()));
    moves.map(|c| c.at).min().unwrap_or(part.whole_due)
}

/// Whether a scheduled merge takes due rows out on its way.
pub fn deletes_due(stream: &StreamView) -> bool {
    !stream.stops.ttl_merges && !stream.settings.only_drop_parts
}

/// Whether nothing more is to be done at `now`: what waits for a time, a stop or a retry is not due.
pub fn is_settled(stream: &StreamView, now: Timestamp) -> bool {
    plan(stream, now).plans.is_empty() && stream.partitions.iter().all(|p| p.parts.iter().all(|part| !part.busy))
}

/// Until when the partition's prunes wait, for status.
pub fn prune_wait(stream: &StreamView, partition: &PartitionView, now: Timestamp) -> Option<Timestamp> {
    waits_until(partition, stream, now)
}
