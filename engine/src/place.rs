//! Where new bytes go: the stream's policy with the room there is now, and room taken on one of its disks.
//!
//! Guards: an insert does not fail while a volume that its policy allows has room; rows that are all due for a colder place are
//! written there at once, where that volume wants it.

use crate::{
    core::Core,
    disks::{Disk, Disks, Lease},
    plan::tiers::{BESIDE_ROWS_BYTES, DiskView, TierView, VolumeView},
};
use ebb_storage::{
    Error, Result, Timestamp,
    codec::Codec,
    disk::{Reservation, StoragePolicy, Volume},
    ids::{DiskId, PartId},
    manifest::{Manifest, StreamState},
    part::{PartMeta, meta::RuleFacts},
    rules::Action,
    stream_def::StreamDef,
};
use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Arc, atomic::Ordering},
};

/// So many of a stream's newest parts tell how small its rows become,
const TELLING_PARTS: usize = 8;
/// where they are of so many rows that their footers do not count,
const TELLING_ROWS: u64 = 1024;
/// or of no fewer than one in so many of those that are to be written.
const TELLING_ONE_IN: u64 = 2;

/// A place for a new part, and room that nobody else takes until it is written.
pub struct Room {
    pub disk: Disk,
    pub(crate) lease: Option<Lease>,
    reserved: Option<Reservation>,
    /// What was asked for.
    bytes: u64,
    recoded: Option<Recoded>,
}

/// A part that is written in another codec: nobody knows before how large it becomes.
struct Recoded {
    part: PartId,
    codec: Codec,
    before: u64,
    tiers: Arc<TierView>,
}

impl Room {
    /// Bytes that its disk is handed at a time.
    pub(crate) fn piece_bytes(&self) -> usize {
        self.disk.piece_bytes(self.bytes)
    }

    /// For what becomes of a part in another codec, of a stream with this policy.
    pub(crate) fn recoding(self, part: &PartMeta, codec: Codec, tiers: &Arc<TierView>) -> Self {
        if codec == part.placement.codec {
            return self;
        }
        Self { recoded: Some(Recoded { part: part.id, codec, before: part.placement.bytes, tiers: tiers.clone() }), ..self }
    }

    /// Whether what was written for it stays within what the disk has and its volume takes.
    ///
    /// # Errors
    /// `Full`, naming the place, where more came out than was reckoned with and is there; `Conflict` where it can be planned anew, now
    /// that it is known.
    pub(crate) fn covers(&mut self, core: &Core, written: u64) -> Result<()> {
        let within = self.reserved.as_mut().map_or(Ok(()), |r| r.covers(written));
        let Some(recoded) = &self.recoded else { return within };
        let within = within.and_then(|()| Ok(recoded.tiers.sized(self.disk.id, written, recoded.before)?));
        match within {
            Err(e) if core.jobs.came_out(recoded.part, recoded.codec, written) => {
                Err(Error::conflict(format!("in {} the part does not fit: {e}", recoded.codec)))
            }
            other => other,
        }
    }
}

impl TierView {
    /// The policy of a stream with the room that its disks have now. `stopped` says of a policy's volume whether merges there are stopped.
    pub fn of(manifest: &Manifest, def: &StreamDef, disks: &Disks, stopped: impl Fn(&str, &str) -> bool) -> Arc<Self> {
        // Every stream's policy is there; nothing would be gained by not knowing where to write.
        let policy = manifest.policy_of(def).unwrap_or_else(|_| Arc::new(StoragePolicy::default_policy()));
        let leaving = if policy.volumes.len() > 1 { leaving(manifest) } else { BTreeMap::new() };
        let volumes = policy.volumes.iter().map(|v| volume(disks, manifest, &leaving, v, stopped(&policy.name, &v.name)));
        Arc::new(Self {
            volumes: volumes.collect(),
            move_factor: move_factor(&policy),
            version: policy.version,
            policy: policy.name.clone(),
        })
    }
}

/// There is nowhere to move to from a lone volume.
pub(crate) fn move_factor(policy: &StoragePolicy) -> f64 {
    if policy.volumes.len() > 1 { policy.move_factor } else { 0.0 }
}

/// Bytes of removed parts that vacuum has still to delete, by disk.
fn leaving(m: &Manifest) -> BTreeMap<DiskId, u64> {
    let mut leaving: BTreeMap<DiskId, u64> = BTreeMap::new();
    for place in m.graveyard.values().map(|g| &g.part.placement) {
        let bytes = leaving.entry(place.disk).or_default();
        *bytes = bytes.saturating_add(place.bytes);
    }
    leaving
}

fn volume(all: &Disks, m: &Manifest, leaving: &BTreeMap<DiskId, u64>, v: &Volume, merges_stopped: bool) -> VolumeView {
    let view = |name: &String| m.disk_id(name).map(|id| disk(all, id, name, leaving.get(&id).copied().unwrap_or(0)));
    volume_over(v, v.disks.iter().filter_map(view).collect(), merges_stopped)
}

/// A volume's conditions over what its disks are.
pub(crate) fn volume_over(v: &Volume, disks: Vec<DiskView>, merges_stopped: bool) -> VolumeView {
    VolumeView {
        name: v.name.clone(),
        max_part_bytes: largest(v, &disks).unwrap_or(u64::MAX),
        load_balancing: v.load_balancing,
        move_on_insert: v.perform_ttl_move_on_insert,
        prefer_not_to_merge: v.prefer_not_to_merge,
        merges_stopped,
        disks,
    }
}

/// The largest part that a volume takes, by bytes and by its share of the smallest disk; `None` where any will do.
pub fn max_part_bytes(all: &Disks, m: &Manifest, v: &Volume) -> Option<u64> {
    let disks: Vec<DiskView> = v.disks.iter().filter_map(|name| m.disk_id(name).map(|id| disk(all, id, name, 0))).collect();
    largest(v, &disks)
}

fn largest(v: &Volume, disks: &[DiskView]) -> Option<u64> {
    let smallest = disks.iter().map(|d| d.total).min().filter(|n| *n != u64::MAX);
    let by_ratio = v.max_data_part_size_ratio.zip(smallest).map(|(ratio, bytes)| (bytes as f64 * ratio) as u64);
    [v.max_data_part_size_bytes.filter(|n| *n > 0), by_ratio].into_iter().flatten().min()
}

fn disk(all: &Disks, id: DiskId, name: &str, leaving: u64) -> DiskView {
    let view = DiskView::unlimited(id, name);
    let Some(disk) = all.known(id) else {
        return DiskView { unavailable: Some("it is not attached".into()), ..view };
    };
    let unavailable = disk.away().map(|e| Arc::from(e.message()));
    match disk.space.as_ref().map(|s| s.room()) {
        None => DiskView { unavailable, ..view },
        Some(Ok(room)) => {
            let leaving = if room.total == u64::MAX { 0 } else { leaving };
            DiskView { total: room.total, free: room.available, kept_back: room.kept_back, leaving, unavailable, ..view }
        }
        Some(Err(e)) => DiskView { unavailable: unavailable.or_else(|| Some(Arc::from(e.message()))), ..view },
    }
}

/// The places for one new part, in the order in which they are tried.
pub struct Places {
    tiers: TierView,
    wishes: VecDeque<DiskId>,
    bytes: u64,
    turn: u64,
    /// Why the first place did not do.
    refused: Option<Error>,
}

impl Places {
    /// For about so many bytes of rows.
    pub fn new(core: &Core, def: &StreamDef, bytes: u64) -> Self {
        let manifest = core.live.read().manifest.clone();
        let tiers = Arc::unwrap_or_clone(TierView::of(&manifest, def, &core.disks, |_, _| false));
        let turn = u64::from(core.part_counter.load(Ordering::Relaxed));
        Self { tiers, wishes: VecDeque::new(), bytes: bytes.saturating_add(BESIDE_ROWS_BYTES), turn, refused: None }
    }

    /// For rows with so many bytes of values that are written for the first time, of which these facts are known: where they are due
    /// already, there first.
    pub fn of_new(core: &Core, def: &StreamDef, bytes: u64, facts: &[RuleFacts], rows: u64) -> Self {
        let bytes = core.live.read().manifest.stream(def.id).map_or(bytes, |s| stored_bytes(s, rows, bytes));
        let mut places = Self::new(core, def, bytes);
        places.wishes = due_places(&places.tiers, def, facts, (rows, core.now()), places.bytes, places.turn).into();
        places
    }

    /// Whether there is another place should the next one fail.
    pub fn are_several(&self) -> bool {
        self.tiers.volumes.iter().map(|v| v.disks.len()).sum::<usize>() > 1
    }

    /// Room at the next place that takes the part.
    ///
    /// # Errors
    /// Once there is none: why the first one did not do.
    pub fn next(&mut self, core: &Core) -> Result<Room> {
        while let Some(wish) = self.wishes.pop_front() {
            match room_on(core, wish, self.bytes) {
                Ok(room) => return Ok(room),
                Err(e) => self.failed(wish, e),
            }
        }
        loop {
            let id = match self.tiers.for_new(self.bytes, self.turn) {
                Ok(id) => id,
                Err(why) => return Err(self.refused.clone().unwrap_or_else(|| why.into())),
            };
            match room_on(core, id, self.bytes) {
                Ok(room) => return Ok(room),
                // Between the look and the reservation another took the room.
                Err(e) => self.failed(id, e),
            }
        }
    }

    /// Whether a part that came out at so many bytes on a disk is larger than the volume takes, and another place takes it. Then it is to
    /// be written there.
    pub fn outgrown(&mut self, disk: DiskId, bytes: u64) -> bool {
        if self.tiers.sized(disk, bytes, 0).is_ok() || self.tiers.for_new(bytes, self.turn).is_err() {
            return false;
        }
        let tiers = &self.tiers;
        self.wishes.retain(|d| tiers.sized(*d, bytes, 0).is_ok());
        self.bytes = self.bytes.max(bytes);
        true
    }

    /// Not there again.
    pub fn failed(&mut self, disk: DiskId, e: Error) {
        for view in self.tiers.volumes.iter_mut().flat_map(|v| &mut v.disks).filter(|d| d.id == disk) {
            view.unavailable = Some(e.message().into());
        }
        self.wishes.retain(|d| *d != disk);
        self.refused.get_or_insert(e);
    }
}

/// What rows with so many bytes of values come to in a part: as many for each row as in that of the stream's newest parts in which
/// a row takes most, and a quarter more; never more than their values. Without parts that tell, as many as these.
pub fn stored_bytes(stream: &StreamState, rows: u64, values: u64) -> u64 {
    let tells = |m: &&Arc<PartMeta>| m.rows >= TELLING_ROWS || m.rows.saturating_mul(TELLING_ONE_IN) >= rows;
    let newest = stream.parts.iter().rev().map(|(_, m)| m).take(TELLING_PARTS).filter(tells);
    let of_rows = |m: &Arc<PartMeta>| u128::from(m.placement.bytes) * u128::from(rows) / u128::from(m.rows.max(1));
    let Some(expected) = newest.map(of_rows).max() else { return values };
    u64::try_from(expected + expected / 4).unwrap_or(values).min(values)
}

/// # Errors
/// `Full` or `Unavailable`, naming the disk.
pub fn room_on(core: &Core, disk: DiskId, bytes: u64) -> Result<Room> {
    let disk = core.disks.disk(disk)?;
    let lease = disk.lease()?;
    Ok(Room { reserved: disk.reserve(bytes)?, lease, disk, bytes, recoded: None })
}

/// Disks for a new part of these facts, in the order in which they are to be tried; empty where no rule concerns it. Every row must be
/// due for the rule; of several the one that came due last comes first (of equals the later in the list), then the others.
pub fn due_places(
    tiers: &TierView,
    def: &StreamDef,
    facts: &[RuleFacts],
    (rows, now): (u64, Timestamp),
    bytes: u64,
    turn: u64,
) -> Vec<DiskId> {
    let mut due: Vec<(Timestamp, usize, DiskId)> = Vec::new();
    for (i, rule) in def.policy.ttl.iter().enumerate() {
        let Action::Move(to) = &rule.action else { continue };
        let Some(f) = facts.iter().find(|f| f.rule == rule.fingerprint) else { continue };
        let Some(latest) = f.latest.filter(|at| f.rows >= rows && f.never == 0 && *at <= now) else { continue };
        let wanted = tiers.volume_at(to).is_some_and(|v| tiers.volumes[v].move_on_insert);
        if let (true, Ok(Some(disk))) = (wanted, tiers.destination(to, bytes, turn)) {
            due.push((latest, i, disk));
        }
    }
    due.sort_by_key(|(latest, i, _)| std::cmp::Reverse((*latest, *i)));
    due.into_iter().map(|(_, _, disk)| disk).collect()
}

#[cfg(test)]
mod tests;
