//! `move_factor`: parts that leave a disk on which too little is free, to the next volumes. Pure.
//!
//! Decided once for each disk, over all streams that lie on it. What leaves anyway counts first. Guards against ping-pong: a part only gets colder here, and one that a due rule keeps where it is
//! stays.

use super::{tiers::TierView, view::PartView};
use ebb_storage::{
    Timestamp,
    ids::{DiskId, PartId},
};
use std::collections::{BTreeMap, BTreeSet, HashSet};

impl TierView {
    /// Bytes that must leave the disk until the policy's factor of it is free, beside those that are leaving; `None` where enough is.
    pub fn short_of(&self, disk: DiskId) -> Option<u64> {
        let d = self.disk(disk).filter(|d| d.total != u64::MAX && self.move_factor > 0.0)?;
        let wanted = (d.total as f64 * self.move_factor).min(d.total as f64) as u64;
        let free = d.free.saturating_add(d.leaving);
        (free < wanted).then(|| wanted - free)
    }
}

/// Of a stream: a disk on which too little is free by its policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pressed {
    pub disk: DiskId,
    /// [`TierView::short_of`].
    pub short: u64,
    /// Bytes of parts that other work is done on.
    pub leaving: u64,
    pub candidates: Vec<Candidate>,
}

/// The parts that leave for lack of room, of all streams.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Relief(HashSet<PartId>);

impl Relief {
    /// Of each disk the smallest set that covers what is short, whatever streams its parts are of. A policy that wants more free than
    /// another takes what is still missing from the streams that have it.
    pub fn of(all: Vec<Pressed>) -> Self {
        let mut by_disk: BTreeMap<DiskId, Vec<Pressed>> = BTreeMap::new();
        for pressed in all {
            by_disk.entry(pressed.disk).or_default().push(pressed);
        }
        let mut chosen = HashSet::new();
        for pressed in by_disk.into_values() {
            let mut covered = pressed.iter().map(|p| p.leaving).fold(0, u64::saturating_add);
            let wanted: BTreeSet<u64> = pressed.iter().map(|p| p.short).collect();
            for short in wanted {
                let of = pressed.iter().filter(|p| p.short >= short).flat_map(|p| &p.candidates);
                let left = of.filter(|c| !chosen.contains(&c.id)).cloned().collect();
                for part in smallest_set(left, short.saturating_sub(covered)) {
                    covered = covered.saturating_add(part.bytes);
                    chosen.insert(part.id);
                }
            }
        }
        Self(chosen)
    }

    pub fn takes(&self, part: PartId) -> bool {
        self.0.contains(&part)
    }
}

/// A part that may leave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    pub id: PartId,
    pub bytes: u64,
    /// When its next rule would move it.
    pub due: Timestamp,
}

impl Candidate {
    pub fn of(part: &PartView, due: Timestamp) -> Self {
        Self { id: part.id, bytes: part.bytes, due }
    }
}

/// The smallest set that covers `need`: as few parts as will do, the largest first, the last one as small as suffices; among equals the
/// oldest due first. All of them where they do not cover it.
pub fn smallest_set(mut candidates: Vec<Candidate>, need: u64) -> Vec<Candidate> {
    candidates.sort_by_key(|c| (std::cmp::Reverse(c.bytes), c.due, c.id));
    let (mut left, mut chosen) = (need, Vec::new());
    for (i, candidate) in candidates.iter().enumerate() {
        if left == 0 {
            break;
        }
        if candidate.bytes < left {
            left -= candidate.bytes;
            chosen.push(candidate.clone());
            continue;
        }
        let enough = candidates[i..].iter().take_while(|c| c.bytes >= left);
        let least = enough.last().map_or(candidate.bytes, |c| c.bytes);
        chosen.extend(candidates[i..].iter().find(|c| c.bytes == least).cloned());
        break;
    }
    chosen
}
