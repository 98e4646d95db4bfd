//! What holds of one part, and why. The order of reasons is the order in which they would have to be cleared away.
//!
//! One function of the facts, called by the planner and by EXPLAIN LIFECYCLE: they cannot disagree.

use super::{
    choice::{self, Found, Spot, Spots},
    due::is_due,
    grace,
    tiers::{BESIDE_ROWS_BYTES, NoRoom, VolumeView},
    view::{Change, PartView, PartitionView, PinnedBy, RuleKind, StreamView},
};
pub use super::{
    state::{Action, State},
    view::Pools,
};
use ebb_storage::{
    Timestamp,
    codec::Codec,
    ids::{DiskId, PartId},
};
use std::{cell::OnceCell, sync::Arc};

#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    pub action: Action,
    pub state: State,
    /// When the action came or comes due.
    pub due_at: Option<Timestamp>,
    /// The next moment at which the answer may differ by itself.
    pub next_attempt_at: Option<Timestamp>,
    /// What the state alone does not say: which disk, which rule. Often empty.
    pub detail: String,
}

impl Decision {
    /// Whether a job should take the part now.
    pub fn acts(&self) -> bool {
        matches!(self.state, State::DueQueued | State::PoolBusy) || (self.state == State::Measuring && self.action == Action::Measure)
    }

    fn new(action: Action, state: State, due_at: Timestamp, next: Timestamp) -> Self {
        let known = |t: Timestamp| (t != Timestamp::MAX).then_some(t);
        Self { action, state, due_at: known(due_at), next_attempt_at: known(next), detail: String::new() }
    }

    fn saying(self, detail: String) -> Self {
        Self { detail, ..self }
    }
}

/// A partition at a moment: what all its parts' decisions look at.
pub struct Scene<'a> {
    pub stream: &'a StreamView,
    pub partition: &'a PartitionView,
    pub now: Timestamp,
    /// Where the stream's rules send parts.
    spots: Arc<Spots>,
    /// Parts that wait for a move and could be merged with another such; sorted.
    partners: OnceCell<Vec<PartId>>,
}

/// A MOVE rule that applies to a part, and where it sends it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Going {
    pub change: Change,
    pub disk: DiskId,
}

/// Says of one part what the rules that remove rows do to it at `now`.
pub fn decide(part: &PartView, partition: &PartitionView, stream: &StreamView, now: Timestamp) -> Decision {
    Scene::new(stream, partition, now).removal(part)
}

impl<'a> Scene<'a> {
    pub fn new(stream: &'a StreamView, partition: &'a PartitionView, now: Timestamp) -> Self {
        Self::with(stream, partition, now, Arc::new(Spots::of(&stream.rules, &stream.tiers)))
    }

    /// One of many of the same stream.
    pub fn with(stream: &'a StreamView, partition: &'a PartitionView, now: Timestamp, spots: Arc<Spots>) -> Self {
        Self { stream, partition, now, spots, partners: OnceCell::new() }
    }

    pub fn due(&self, at: Timestamp) -> bool {
        is_due(at, self.now)
    }

    pub fn volume(&self, part: &PartView) -> Option<&'a VolumeView> {
        self.stream.tiers.volume_of(part.disk).map(|v| &self.stream.tiers.volumes[v])
    }

    /// Whether a scheduled merge may take the part: nobody has it, it is not about to go whole, and its volume is for merges.
    pub fn may_merge(&self, part: &PartView) -> bool {
        let volume = || self.volume(part).is_none_or(|v| !v.prefer_not_to_merge && !v.merges_stopped);
        !part.busy
            && !part.unneeded
            && !part.unmeasured
            && !self.goes_whole(part)
            && part.backing_off(self.now).is_none()
            && self.away(part).is_none()
            && volume()
    }

    /// Why the part cannot be read.
    pub fn away(&self, part: &PartView) -> Option<String> {
        let disk = self.stream.tiers.disk(part.disk)?;
        disk.unavailable.as_ref().map(|why| format!("disk '{}' is unavailable: {why}", disk.name))
    }

    /// Where a rewrite of the part goes that no rule sends anywhere: its own disk, else the first that takes it from its volume on.
    ///
    /// # Errors
    /// Why its own disk does not.
    pub fn stay(&self, part: &PartView) -> Result<DiskId, NoRoom> {
        let (tiers, bytes) = (&self.stream.tiers, part.bytes.saturating_add(BESIDE_ROWS_BYTES));
        let Some(disk) = tiers.disk(part.disk) else { return tiers.for_new(bytes, part.id.0) };
        let Err(why) = disk.takes(bytes) else { return Ok(disk.id) };
        tiers.from_on(tiers.volume_of(disk.id).unwrap_or(0), bytes, part.id.0).map_err(|_| why)
    }

    /// What keeps every job from the part that rewrites or removes it.
    fn stopped(&self, part: &PartView) -> Option<(State, String)> {
        if self.stream.stops.merges {
            return Some((State::MergesStopped, String::new()));
        }
        if let Some(volume) = self.volume(part).filter(|v| v.merges_stopped) {
            return Some((State::MergesStopped, format!("ON VOLUME {}.{}", self.stream.tiers.policy, volume.name)));
        }
        self.stream.stops.ttl_merges.then_some((State::TtlMergesStopped, String::new()))
    }

    /// What the rules that remove rows do to the part.
    pub fn removal(&self, part: &PartView) -> Decision {
        let stream = self.stream;
        let (whole, rows) = (self.due(part.whole_due), self.due(part.first_due));
        let (action, due_at) = match (whole, rows, part.unmeasured) {
            (true, ..) => (Action::Drop, part.whole_due),
            (_, _, true) => (Action::Measure, Timestamp::MAX),
            (_, true, _) => (Action::Delete, part.first_due),
            _ => {
                let next = if stream.settings.only_drop_parts { part.whole_due } else { part.first_due };
                let action = match next {
                    Timestamp::MAX => Action::None,
                    _ if next == part.whole_due => Action::Drop,
                    _ => Action::Delete,
                };
                // What is pruned waits for the distance of prunes, too.
                let waits = self.partition.pruned_at.filter(|_| action == Action::Delete && next != Timestamp::MAX);
                let attempt = waits.map_or(next, |at| next.max(at.saturating_add(stream.settings.prune_every)));
                return Decision::new(action, State::NotDue, next, attempt);
            }
        };
        let state = |state, next| Decision::new(action, state, due_at, next);
        if part.busy {
            return state(State::Running, Timestamp::MAX);
        }
        if action != Action::Measure
            && let Some((why, detail)) = self.stopped(part)
        {
            return state(why, Timestamp::MAX).saying(detail);
        }
        if let Some(at) = part.backing_off(self.now) {
            return state(State::BackingOff, at);
        }
        if let Some(pin) = &part.pin
            && action != Action::Measure
        {
            // Rows that go can be recorded as gone for main; rows that change cannot be both.
            let only_changes = action == Action::Delete && !self.due(part.removes_at);
            let why = match pin.by {
                PinnedBy::Reader => Some((State::PinnedByReader, pin.until)),
                PinnedBy::Tag => only_changes.then_some((State::PinnedByTag, part.removes_at)),
                PinnedBy::Branch => only_changes.then_some((State::PinnedByBranch, part.removes_at)),
            };
            if let Some((why, next)) = why {
                return state(why, next).saying(pin.name.clone());
            }
        }
        if action == Action::Drop {
            return state(State::DueQueued, self.now);
        }
        if let Some(why) = self.away(part) {
            return state(State::DiskUnavailable, Timestamp::MAX).saying(why);
        }
        if action == Action::Measure {
            return state(State::Measuring, self.now);
        }
        if stream.settings.only_drop_parts {
            return state(State::OnlyWholeParts, part.whole_due);
        }
        let pinned = part.pinned_by_ref().is_some();
        if !pinned && self.volume(part).is_some_and(|v| v.prefer_not_to_merge) && !self.due(part.worth_at) {
            // What changes rows alone waits there for OPTIMIZE FINAL.
            let why = if part.worth_at == Timestamp::MAX { State::NoMergeVolume } else { State::SavingTooSmall };
            return state(why, part.worth_at);
        }
        if let Some(at) = waits_until(self.partition, stream, self.now) {
            return state(State::WaitingTimeout, at);
        }
        if let Some(why) = self.stay(part).err().filter(|_| !pinned) {
            return state(no_room(&why), Timestamp::MAX).saying(why.to_string());
        }
        if !stream.pools.prunes {
            return state(State::PoolBusy, Timestamp::MAX);
        }
        state(State::DueQueued, self.now)
    }

    /// What the rule in force for the part's codec does to it; `None` where none is due, or the part has that codec.
    pub fn recompression(&self, part: &PartView) -> Option<(u32, Decision)> {
        let (rule, codec) = choice::codec_due(&[part], &self.stream.rules, self.now)?;
        if part.codec == codec {
            return None;
        }
        let due_at = part.changes.iter().find(|c| c.rule == rule).map_or(self.now, |c| c.at);
        Some((rule, self.recompress(part, codec, due_at)))
    }

    fn recompress(&self, part: &PartView, codec: Codec, due_at: Timestamp) -> Decision {
        let state = |state, next| Decision::new(Action::Recompress, state, due_at, next);
        if part.busy {
            return state(State::Running, Timestamp::MAX);
        }
        if self.goes_whole(part) {
            return state(State::SupersededRule, Timestamp::MAX).saying("the part is dropped whole by another rule".to_owned());
        }
        if let Some((why, detail)) = self.stopped(part) {
            return state(why, Timestamp::MAX).saying(detail);
        }
        if let Some(at) = part.backing_off(self.now) {
            return state(State::BackingOff, at);
        }
        if let Some(why) = self.away(part) {
            return state(State::DiskUnavailable, Timestamp::MAX).saying(why);
        }
        // A job that rewrites or moves the part takes it along: it neither waits for that nor is kept out by the volume.
        let fits = |disk| self.stream.tiers.admits(disk, part.bytes_in(codec), part.bytes);
        let going = self.going(part).filter(|(d, _)| d.acts()).map(|(_, going)| going.map_or(part.disk, |g| g.disk));
        if let Some(disk) = going.or_else(|| self.is_pruned(part).then(|| self.stay(part).unwrap_or(part.disk))) {
            return match fits(disk) {
                Ok(()) => state(State::DueQueued, self.now).saying("together with the part's other work".to_owned()),
                Err(why) => state(no_room(&why), Timestamp::MAX).saying(why.to_string()),
            };
        }
        if self.volume(part).is_some_and(|v| v.prefer_not_to_merge) {
            return state(State::NoMergeVolume, Timestamp::MAX);
        }
        let again = self.partition.recompressed_at.map(|at| at.saturating_add(self.stream.settings.recompress_every));
        if let Some(at) = again.filter(|at| !self.due(*at)) {
            return state(State::WaitingTimeout, at);
        }
        if let Err(why) = fits(part.disk) {
            return state(no_room(&why), Timestamp::MAX).saying(why.to_string());
        }
        if !self.stream.pools.recompressions {
            return state(State::PoolBusy, Timestamp::MAX);
        }
        state(State::DueQueued, self.now)
    }

    /// Whether the part's records are written as one; `None` where they are told apart, where it would save too little, or where a merge
    /// may still do it on its way.
    pub fn forgetting(&self, part: &PartView) -> Option<Decision> {
        let volume = self.volume(part);
        let others = || self.partition.parts.iter().any(|p| p.id != part.id && p.family == part.family && !p.unneeded);
        let merges = others() && part.bytes.saturating_mul(2) <= self.stream.settings.max_bytes_to_merge;
        if !part.forgets || part.unneeded || self.due(part.whole_due) || merges || volume.is_some_and(|v| v.prefer_not_to_merge) {
            return None;
        }
        let state = |state, next| Decision::new(Action::Forget, state, Timestamp::MAX, next);
        Some(if part.busy {
            state(State::Running, Timestamp::MAX)
        } else if self.stream.stops.merges {
            state(State::MergesStopped, Timestamp::MAX)
        } else if let Some(volume) = volume.filter(|v| v.merges_stopped) {
            let detail = format!("ON VOLUME {}.{}", self.stream.tiers.policy, volume.name);
            state(State::MergesStopped, Timestamp::MAX).saying(detail)
        } else if let Some(at) = part.backing_off(self.now) {
            state(State::BackingOff, at)
        } else if let Some(why) = self.away(part) {
            state(State::DiskUnavailable, Timestamp::MAX).saying(why)
        } else if let Some(Err(why)) = self.stream.tiers.disk(part.disk).map(|d| d.takes(part.bytes.saturating_add(BESIDE_ROWS_BYTES))) {
            state(no_room(&why), Timestamp::MAX).saying(why.to_string())
        } else {
            state(State::DueQueued, self.now)
        })
    }

    /// Whether the part is taken out whole now: what other rules want of it does not matter any more.
    fn goes_whole(&self, part: &PartView) -> bool {
        self.due(part.whole_due) && self.removal(part).acts()
    }

    fn is_pruned(&self, part: &PartView) -> bool {
        let d = self.due(part.first_due).then(|| self.removal(part));
        d.is_some_and(|d| d.action == Action::Delete && d.acts())
    }

    /// What the MOVE rules do to the part: the decision on the one that applies, and where it sends it if it may. `None` where none is
    /// due, or the part is where it belongs.
    pub fn going(&self, part: &PartView) -> Option<(Decision, Option<Going>)> {
        self.misplaced(part)?;
        let walked = self.walk(part);
        let applies = walked.iter().find(|(_, f)| matches!(f, Found::There | Found::Goes(_)));
        let applies = applies.or_else(|| walked.iter().find(|(_, f)| matches!(f, Found::NoRoom(_))));
        let (change, found) = applies?;
        match found {
            Found::There => {
                // Where the one in force has no room: it is still overdue.
                let (change, blocked) = walked.iter().find(|(_, f)| matches!(f, Found::NoRoom(_)))?;
                Some((self.moving(part, *change, blocked), None))
            }
            Found::Goes(disk) => Some((self.moving(part, *change, found), Some(Going { change: *change, disk: *disk }))),
            _ => Some((self.moving(part, *change, found), None)),
        }
    }

    /// The MOVE rule in force for the part, and where it sends it; `None` where it is there.
    pub fn misplaced(&self, part: &PartView) -> Option<(Change, Spot)> {
        self.spots.in_force(part, self.now).filter(|(_, spot)| !self.stream.tiers.is_in(*spot, part.disk))
    }

    /// Whether the MOVE rule in force keeps the part where it is.
    pub fn is_kept(&self, part: &PartView) -> bool {
        self.spots.in_force(part, self.now).is_some_and(|(_, spot)| self.stream.tiers.is_in(spot, part.disk))
    }

    fn walk(&self, part: &PartView) -> Vec<(Change, Found)> {
        let moves = choice::moves_due(&[part], &self.stream.rules, self.now);
        choice::walk(&moves, &self.stream.tiers, part.disk, part.bytes, part.id.0)
    }

    /// What holds of one due MOVE rule, by what it comes to.
    fn moving(&self, part: &PartView, change: Change, found: &Found) -> Decision {
        let state = |state, next| Decision::new(Action::Move, state, change.at, next);
        match found {
            Found::Inert => return state(State::RuleInert, Timestamp::MAX),
            Found::There => return Decision::new(Action::None, State::NotDue, change.at, Timestamp::MAX),
            Found::Superseded { by } => {
                let by = self.stream.rules.get(*by as usize).map_or("", |r| r.text.as_str());
                return state(State::SupersededRule, Timestamp::MAX).saying(format!("in force is: {by}"));
            }
            Found::Goes(_) | Found::NoRoom(_) => {}
        }
        if part.busy {
            return state(State::Running, Timestamp::MAX);
        }
        if self.goes_whole(part) {
            return state(State::SupersededRule, Timestamp::MAX).saying("the part is dropped whole by another rule".to_owned());
        }
        if self.stream.stops.moves {
            return state(State::MovesStopped, Timestamp::MAX);
        }
        if let Some(at) = part.backing_off(self.now) {
            return state(State::BackingOff, at);
        }
        if let Some(why) = self.away(part) {
            return state(State::DiskUnavailable, Timestamp::MAX).saying(why);
        }
        let to = match found {
            Found::NoRoom(why) => return state(no_room(why), Timestamp::MAX).saying(why.to_string()),
            Found::Goes(to) => *to,
            _ => part.disk,
        };
        if let Some(wait) = grace::wait(self, part, change, to) {
            return match wait.until_lone {
                _ if self.partners().binary_search(&part.id).is_ok() => state(State::WaitingPartner, wait.bound),
                Some(until) if !self.due(until) => state(State::HeldLonePart, until),
                _ => self.queued_move(state),
            };
        }
        self.queued_move(state)
    }

    fn queued_move(&self, state: impl Fn(State, Timestamp) -> Decision) -> Decision {
        match self.stream.pools.moves {
            true => state(State::DueQueued, self.now),
            false => state(State::PoolBusy, Timestamp::MAX),
        }
    }

    /// Whether the part is kept from a move until it was merged with another.
    pub fn waits_for_merge(&self, part: &PartView) -> Option<DiskId> {
        let (change, to) = self.sent(part)?;
        grace::wait(self, part, change, to).map(|_| to)
    }

    /// When that ends at the latest.
    pub fn waits_until(&self, part: &PartView) -> Option<Timestamp> {
        let (change, to) = self.sent(part)?;
        grace::wait(self, part, change, to).map(|wait| wait.bound)
    }

    /// Where a MOVE rule sends a part that nothing but a merge might come before.
    pub fn sent(&self, part: &PartView) -> Option<(Change, DiskId)> {
        if part.changes.is_empty() || self.stream.stops.moves || !self.may_merge(part) {
            return None;
        }
        self.misplaced(part)?;
        self.walk(part).into_iter().find_map(|(c, f)| match f {
            Found::Goes(disk) => Some((c, disk)),
            _ => None,
        })
    }

    /// Where OPTIMIZE takes the part: it waits for no partner.
    pub fn would_go(&self, part: &PartView) -> Option<Going> {
        if part.busy || self.stream.stops.moves || self.away(part).is_some() {
            return None;
        }
        self.misplaced(part)?;
        self.walk(part).into_iter().find_map(|(change, f)| match f {
            Found::Goes(disk) => Some(Going { change, disk }),
            _ => None,
        })
    }

    fn partners(&self) -> &[PartId] {
        self.partners.get_or_init(|| grace::partners(self))
    }

    /// Of one rule of the stream: what it does to the part, and why not yet.
    pub fn of_rule(&self, part: &PartView, rule: usize) -> Decision {
        let kind = self.stream.rules.get(rule).map(|r| &r.kind);
        let change = part.changes.iter().find(|c| c.rule as usize == rule);
        let Some(change) = change else { return Decision::new(Action::None, State::NotDue, Timestamp::MAX, Timestamp::MAX) };
        match kind {
            Some(RuleKind::Recompress(codec)) if !self.due(change.at) => {
                let action = if part.codec == *codec { Action::None } else { Action::Recompress };
                Decision::new(action, State::NotDue, change.at, change.at)
            }
            Some(RuleKind::Recompress(codec)) => match choice::codec_due(&[part], &self.stream.rules, self.now) {
                Some((by, _)) if by as usize != rule => {
                    let by = self.stream.rules.get(by as usize).map_or("", |r| r.text.as_str());
                    Decision::new(Action::Recompress, State::SupersededRule, change.at, Timestamp::MAX).saying(format!("in force is: {by}"))
                }
                _ if part.codec == *codec => Decision::new(Action::None, State::NotDue, change.at, Timestamp::MAX),
                _ => self.recompress(part, *codec, change.at),
            },
            // It never will do anything here, due or not.
            Some(RuleKind::Move(to)) if self.stream.tiers.volume_at(to).is_none() => self.moving(part, *change, &Found::Inert),
            Some(RuleKind::Move(_)) if !self.due(change.at) => Decision::new(Action::Move, State::NotDue, change.at, change.at),
            Some(RuleKind::Move(_)) => {
                let found = self.walk(part).into_iter().find(|(c, _)| c.rule as usize == rule);
                found.map_or_else(
                    || Decision::new(Action::None, State::NotDue, change.at, Timestamp::MAX),
                    |(change, found)| self.moving(part, change, &found),
                )
            }
            _ => Decision::new(Action::None, State::NotDue, Timestamp::MAX, Timestamp::MAX),
        }
    }
}

fn no_room(why: &NoRoom) -> State {
    match why {
        NoRoom::Full { .. } | NoRoom::TooLarge { .. } => State::DestinationFull,
        NoRoom::Threshold { .. } => State::DiskThreshold,
        NoRoom::Unavailable { .. } => State::DiskUnavailable,
        NoRoom::Missing { .. } => State::RuleInert,
    }
}

/// Until when `merge_with_ttl_timeout` keeps the partition from being pruned; the first prune waits for nothing.
pub fn waits_until(partition: &PartitionView, stream: &StreamView, now: Timestamp) -> Option<Timestamp> {
    let at = partition.pruned_at?.saturating_add(stream.settings.prune_every);
    (!is_due(at, now)).then_some(at)
}
