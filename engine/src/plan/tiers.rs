//! A storage policy with the room its disks have now, as decisions see it: which disk takes how many bytes. Pure: nothing is reserved.
//!
//! A volume's index says how cold it is. Guards: `TO VOLUME` obeys the volume's load balancing and maximum part size, `TO DISK` takes
//! that disk, and nothing goes to a disk that is away or has no room.

use super::choice::Spot;
use ebb_storage::{
    Error,
    disk::volume::LoadBalancing,
    ids::DiskId,
    rules::{Destination, DestinationKind},
};
use std::{fmt, sync::Arc};

/// What a part takes beside its rows, at least: footer and indexes.
pub const BESIDE_ROWS_BYTES: u64 = 4096;

#[derive(Debug, Clone, PartialEq)]
pub struct TierView {
    pub policy: String,
    /// Of the policy; grows with every REPLACE.
    pub version: u64,
    /// At least one, the hottest first.
    pub volumes: Vec<VolumeView>,
    pub move_factor: f64,
}

#[derive(Debug, Clone, PartialEq)]
pub struct VolumeView {
    pub name: String,
    pub disks: Vec<DiskView>,
    /// Bytes and ratio resolved; `u64::MAX` where any size will do.
    pub max_part_bytes: u64,
    pub load_balancing: LoadBalancing,
    /// `perform_ttl_move_on_insert`
    pub move_on_insert: bool,
    pub prefer_not_to_merge: bool,
    /// SYSTEM STOP MERGES ON VOLUME.
    pub merges_stopped: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub struct DiskView {
    pub id: DiskId,
    pub name: Arc<str>,
    /// Without what `max_usage_pct` keeps back; `u64::MAX` where unlimited.
    pub total: u64,
    /// Less reservations and what `max_usage_pct` keeps back; `u64::MAX` where unlimited.
    pub free: u64,
    /// Of the disk's own room, what `max_usage_pct` keeps back.
    pub kept_back: u64,
    /// Objects of removed parts that vacuum has still to delete: room to come.
    pub leaving: u64,
    /// Why it cannot be used.
    pub unavailable: Option<Arc<str>>,
}

/// Why a place does not take a part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoRoom {
    Full {
        place: String,
        free: u64,
        needed: u64,
    },
    /// There is room, but `max_usage_pct` keeps it back.
    Threshold {
        place: String,
        free: u64,
        needed: u64,
    },
    /// Larger than the volume's `max_data_part_size`.
    TooLarge {
        volume: String,
        max: u64,
        bytes: u64,
    },
    Unavailable {
        disk: String,
        why: String,
    },
    /// The policy has no such disk or volume.
    Missing {
        place: String,
        policy: String,
    },
}

impl DiskView {
    /// A disk that always has room.
    pub fn unlimited(id: DiskId, name: &str) -> Self {
        Self { id, name: name.into(), total: u64::MAX, free: u64::MAX, kept_back: 0, leaving: 0, unavailable: None }
    }

    /// # Errors
    /// Why it does not take so many bytes.
    pub fn takes(&self, bytes: u64) -> Result<(), NoRoom> {
        let place = || format!("disk '{}'", self.name);
        if let Some(why) = &self.unavailable {
            return Err(NoRoom::Unavailable { disk: self.name.to_string(), why: why.to_string() });
        }
        if bytes <= self.free {
            return Ok(());
        }
        let free = self.free;
        Err(match bytes <= free.saturating_add(self.kept_back) {
            true => NoRoom::Threshold { place: place(), free, needed: bytes },
            false => NoRoom::Full { place: place(), free, needed: bytes },
        })
    }
}

impl VolumeView {
    /// A volume without conditions.
    pub fn plain(name: &str, disks: Vec<DiskView>) -> Self {
        Self {
            name: name.to_owned(),
            disks,
            max_part_bytes: u64::MAX,
            load_balancing: LoadBalancing::RoundRobin,
            move_on_insert: true,
            prefer_not_to_merge: false,
            merges_stopped: false,
        }
    }

    pub fn disk(&self, id: DiskId) -> Option<&DiskView> {
        self.disks.iter().find(|d| d.id == id)
    }
}

impl TierView {
    /// The policy `default` over one disk.
    pub fn of_one(disk: DiskView) -> Self {
        Self { policy: "default".to_owned(), version: 0, volumes: vec![VolumeView::plain("default", vec![disk])], move_factor: 0.0 }
    }

    /// How cold the volume of `disk` is; `None` for a disk outside the policy.
    pub fn volume_of(&self, disk: DiskId) -> Option<usize> {
        self.volumes.iter().position(|v| v.disk(disk).is_some())
    }

    pub fn disk(&self, id: DiskId) -> Option<&DiskView> {
        self.volumes.iter().find_map(|v| v.disk(id))
    }

    pub fn volume_named(&self, name: &str) -> Option<usize> {
        self.volumes.iter().position(|v| v.name == name)
    }

    pub fn disk_named(&self, name: &str) -> Option<&DiskView> {
        self.volumes.iter().flat_map(|v| &v.disks).find(|d| &*d.name == name)
    }

    /// Counts what other work brings to a disk and takes off it, before it is seen in its room.
    pub fn reckon(&mut self, disk: DiskId, coming: u64, leaving: u64) {
        for d in self.volumes.iter_mut().flat_map(|v| &mut v.disks).filter(|d| d.id == disk && d.total != u64::MAX) {
            d.free = d.free.saturating_sub(coming);
            d.leaving = d.leaving.saturating_add(leaving);
        }
    }

    /// Whether any volume is kept from merges: only then do parts wait for a partner before they move.
    pub fn has_unmerged_volume(&self) -> bool {
        self.volumes.iter().any(|v| v.prefer_not_to_merge)
    }

    /// A disk of the volume for a part of so many bytes, by its load balancing: in turn from the `turn`th on, or the one with most room.
    ///
    /// # Errors
    /// Why none takes it.
    pub fn pick(&self, volume: usize, bytes: u64, turn: u64) -> Result<DiskId, NoRoom> {
        let missing = || NoRoom::Missing { place: format!("volume {volume}"), policy: self.policy.clone() };
        let v = self.volumes.get(volume).ok_or_else(missing)?;
        if bytes > v.max_part_bytes {
            return Err(NoRoom::TooLarge { volume: v.name.clone(), max: v.max_part_bytes, bytes });
        }
        let fitting = v.disks.iter().enumerate().filter(|(_, d)| d.takes(bytes).is_ok());
        let n = v.disks.len().max(1);
        let first = (turn % n as u64) as usize;
        let found = match v.load_balancing {
            LoadBalancing::RoundRobin => fitting.min_by_key(|(i, _)| (i + n - first) % n),
            LoadBalancing::LeastUsed => fitting.max_by_key(|(i, d)| (d.free, std::cmp::Reverse(*i))),
        };
        match found {
            Some((_, disk)) => Ok(disk.id),
            // Of several causes the one that time may clear first: room before a disk that is away.
            None => {
                let causes = || v.disks.iter().filter_map(|d| d.takes(bytes).err());
                let room = causes().find(|c| !matches!(c, NoRoom::Unavailable { .. }));
                Err(room.or_else(|| causes().next()).unwrap_or_else(missing))
            }
        }
    }

    /// Whether what becomes of a part may take so many bytes on a disk: as many as its volume and its room allow, and no part is kept
    /// out for a size that it had before.
    ///
    /// # Errors
    /// Why not.
    pub fn admits(&self, disk: DiskId, bytes: u64, before: u64) -> Result<(), NoRoom> {
        self.sized(disk, bytes, before)?;
        self.disk(disk).map_or(Ok(()), |d| d.takes(bytes))
    }

    /// The same, whatever room there is.
    ///
    /// # Errors
    /// `TooLarge`
    pub fn sized(&self, disk: DiskId, bytes: u64, before: u64) -> Result<(), NoRoom> {
        match self.volume_of(disk).and_then(|v| self.volumes.get(v)) {
            Some(v) if bytes > v.max_part_bytes.max(before) => {
                Err(NoRoom::TooLarge { volume: v.name.clone(), max: v.max_part_bytes, bytes })
            }
            _ => Ok(()),
        }
    }

    /// The first volume from `from` on that takes a part of so many bytes.
    ///
    /// # Errors
    /// Why `from` itself does not.
    pub fn from_on(&self, from: usize, bytes: u64, turn: u64) -> Result<DiskId, NoRoom> {
        let mut first = None;
        for volume in from..self.volumes.len().max(from + 1) {
            match self.pick(volume, bytes, turn) {
                Ok(disk) => return Ok(disk),
                Err(why) => _ = first.get_or_insert(why),
            }
        }
        Err(first.unwrap_or_else(|| NoRoom::Missing { place: format!("volume {from}"), policy: self.policy.clone() }))
    }

    /// Where a new part goes that no rule sends anywhere: the first volume that takes it.
    ///
    /// # Errors
    /// Why the first does not, where none does.
    pub fn for_new(&self, bytes: u64, turn: u64) -> Result<DiskId, NoRoom> {
        self.from_on(0, bytes, turn)
    }

    /// Where a rule or statement sends a part. `None`: the rule is inert, its place does not exist.
    ///
    /// # Errors
    /// Why the place does not take it.
    pub fn destination(&self, to: &Destination, bytes: u64, turn: u64) -> Result<Option<DiskId>, NoRoom> {
        let there = match to.kind {
            DestinationKind::Disk => self.disk_named(&to.name).map(|d| d.takes(bytes).map(|()| d.id)),
            DestinationKind::Volume => self.volume_named(&to.name).map(|v| self.pick(v, bytes, turn)),
        };
        match there {
            Some(answer) => answer.map(Some),
            None if to.if_exists => Ok(None),
            None => Err(NoRoom::Missing { place: place(to), policy: self.policy.clone() }),
        }
    }

    /// The place that a rule names; `None` where the policy has none such.
    pub fn spot(&self, to: &Destination) -> Option<Spot> {
        match to.kind {
            DestinationKind::Disk => self.disk_named(&to.name).map(|d| Spot::Disk(d.id)),
            DestinationKind::Volume => self.volume_named(&to.name).map(Spot::Volume),
        }
    }

    /// Whether a part on `disk` is in the place.
    pub fn is_in(&self, spot: Spot, disk: DiskId) -> bool {
        match spot {
            Spot::Disk(id) => id == disk,
            Spot::Volume(v) => self.volumes.get(v).is_some_and(|v| v.disk(disk).is_some()),
        }
    }

    /// How cold the place is that a rule names; `None` where the policy has none such.
    pub fn volume_at(&self, to: &Destination) -> Option<usize> {
        match to.kind {
            DestinationKind::Disk => self.volume_of(self.disk_named(&to.name)?.id),
            DestinationKind::Volume => self.volume_named(&to.name),
        }
    }

    /// Whether a part on `disk` is where `to` sends it.
    pub fn is_there(&self, to: &Destination, disk: DiskId) -> bool {
        self.spot(to).is_some_and(|spot| self.is_in(spot, disk))
    }
}

/// As messages name it.
pub fn place(to: &Destination) -> String {
    match to.kind {
        DestinationKind::Disk => format!("disk '{}'", to.name),
        DestinationKind::Volume => format!("volume '{}'", to.name),
    }
}

impl fmt::Display for NoRoom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full { place, free, needed } => write!(f, "{place} has {free} bytes free, {needed} are needed"),
            Self::Threshold { place, free, needed } => {
                write!(f, "{place} has {free} bytes free below its max_usage_pct, {needed} are needed")
            }
            Self::TooLarge { volume, max, bytes } => {
                write!(f, "volume '{volume}' takes parts of {max} bytes at the most, this one would have {bytes}")
            }
            Self::Unavailable { disk, why } => write!(f, "disk '{disk}' is unavailable: {why}"),
            Self::Missing { place, policy } => write!(f, "storage policy '{policy}' has no {place}"),
        }
    }
}

impl From<NoRoom> for Error {
    fn from(why: NoRoom) -> Self {
        match why {
            NoRoom::Unavailable { .. } => Self::unavailable(why.to_string()),
            NoRoom::Missing { .. } => Self::not_found(why.to_string()),
            _ => Self::full(format!("{why}: free space, add a disk, or change the storage policy")),
        }
    }
}

#[cfg(test)]
mod tests;
