//! The parts there are, by partition, and the room that they leave: what the planner is shown.
//!
//! Guards: used bytes are the sum of the parts'; the planner's view of a part is made of its facts alone, as in a database.

use super::{
    options::SimOptions,
    sizes,
    slice::{Effect, Slice},
    watch::Watch,
    world::World,
};
use crate::plan::{self, PartView, PartitionView, Planned, Pools, Stops, StreamView, check, pressure::Pressed, tiers::BESIDE_ROWS_BYTES};
use ebb_storage::{
    Error, Result, Timestamp,
    codec::Codec,
    ids::{BranchId, DiskId, Epoch, Generation, PartId, Sn},
    lineage::SnRange,
    part::{
        PartMeta,
        meta::{Origin, Placement, RuleFacts},
    },
};
use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

pub struct Part {
    pub meta: PartMeta,
    pub slices: Vec<Slice>,
}

/// A partition and when it is to be looked at again.
pub struct Slot {
    pub view: PartitionView,
    wake: Option<Timestamp>,
    waits: bool,
}

pub struct State<'a> {
    pub world: &'a World,
    pub effects: Vec<Option<Effect>>,
    row_bytes: f64,
    /// The stream without its partitions.
    pub header: StreamView,
    pub slots: BTreeMap<Arc<str>, Slot>,
    pub parts: HashMap<PartId, Part>,
    wakes: BTreeSet<(Timestamp, Arc<str>)>,
    /// Room came free since the last look at those that wait for it.
    freed: bool,
    /// Room taken and given since the other streams were told.
    room: Vec<(DiskId, u64, u64)>,
    /// Which of the streams that are simulated together it is.
    nth: u32,
    pub rows: u64,
    counter: u32,
    sn: u64,
    /// Parts that were asked why they wait.
    pub questions: usize,
    pub watch: Watch,
}

/// What a new part is like.
pub struct About {
    pub partition: Arc<str>,
    pub codec: Codec,
    pub disk: DiskId,
    pub level: u32,
    pub now: Timestamp,
    pub move_due_since: Option<Timestamp>,
}

impl<'a> State<'a> {
    pub fn new(world: &'a World, options: &SimOptions, nth: u32) -> Self {
        let def = world.def();
        let header = StreamView {
            id: def.id,
            policy_version: def.policy_version,
            schema_version: def.schema_version,
            settings: world.compiled.settings.clone(),
            rules: world.rules.clone(),
            stops: Stops::default(),
            tiers: Arc::new(world.tiers.clone()),
            pools: Pools::default(),
            relief: None,
            partitions: Vec::new(),
        };
        Self {
            world,
            effects: world.effects(options.share),
            row_bytes: world.row_bytes(options),
            header,
            slots: BTreeMap::new(),
            parts: HashMap::new(),
            wakes: BTreeSet::new(),
            freed: false,
            room: Vec::new(),
            nth,
            rows: 0,
            counter: 0,
            sn: 0,
            questions: 0,
            watch: Watch::new(world, options),
        }
    }

    /// Rows that are there in the slices.
    pub fn rows_of(&self, slices: &[Slice]) -> u64 {
        slices.iter().map(|s| s.rows(&self.effects)).sum::<f64>().round().max(0.0) as u64
    }

    pub fn bytes_of(&self, rows: u64, codec: Codec) -> u64 {
        let bytes = rows as f64 * self.row_bytes * sizes::ratio(codec);
        (bytes.round() as u64).saturating_add(BESIDE_ROWS_BYTES)
    }

    /// No two streams have a part of one number.
    fn next_id(&self) -> PartId {
        PartId::new(Epoch(1 + self.nth), self.counter)
    }

    pub fn next_turn(&self) -> u64 {
        self.next_id().0
    }

    /// A part of these slices; not there yet.
    pub fn describe(&mut self, slices: Vec<Slice>, about: About) -> Result<Part> {
        self.counter = self.counter.checked_add(1).ok_or_else(|| Error::internal("a simulation with too many parts"))?;
        self.sn += 1;
        let (id, rows) = (self.next_id(), self.rows_of(&slices));
        let placement = Placement {
            disk: about.disk,
            generation: Generation(1),
            codec: about.codec,
            bytes: self.bytes_of(rows, about.codec),
            checksum: 0,
        };
        let def = self.world.def();
        let meta = PartMeta {
            id,
            stream: def.id,
            name: format!("{}_{}", about.partition, self.counter),
            partition: about.partition,
            schema_version: def.schema_version,
            filled: Vec::new(),
            carried: Vec::new(),
            sn_bytes: 0,
            origins: vec![Origin { branch: BranchId::MAIN, sns: SnRange { after: Sn(self.sn - 1), to: Sn(self.sn) }, rows }],
            sn_in_meta: false,
            rows,
            level: about.level,
            uncompressed_bytes: self.bytes_of(rows, Codec::None),
            placement,
            row_groups: vec![rows],
            stats: Vec::new(),
            sets: Vec::new(),
            computed: Vec::new(),
            min_time: slices.iter().map(Slice::first).min().unwrap_or_default(),
            max_time: slices.iter().map(Slice::last).max().unwrap_or_default(),
            written_at: about.now,
            modified_at: about.now,
            move_due_since: about.move_due_since,
            facts: self.facts_of(&slices, rows),
            retention_marker: None,
            deletions: Vec::new(),
            expired: Vec::new(),
        };
        Ok(Part { meta, slices })
    }

    fn facts_of(&self, slices: &[Slice], rows: u64) -> Vec<RuleFacts> {
        let of_rule = |(i, rule): (usize, &plan::RuleView)| {
            let of_slices: Vec<_> = slices.iter().map(|s| s.facts(i, &self.effects)).collect();
            let (concerned, never) = of_slices.iter().fold((0.0, 0.0), |(r, n), f| (r + f.rows, n + f.never));
            let due = of_slices.iter().filter_map(|f| f.due);
            let count = (concerned.round() as u64).min(rows);
            let (earliest, latest) = (due.clone().map(|d| d.0).min(), due.map(|d| d.1).max());
            let (earliest, latest) = if count == 0 { (None, None) } else { (earliest, latest) };
            RuleFacts { rule: rule.fingerprint, rows: count, never: (never.round() as u64).min(rows - count), earliest, latest }
        };
        self.header.rules.iter().enumerate().map(of_rule).collect()
    }

    /// Makes the part one of its partition.
    pub fn add(&mut self, part: Part) {
        let meta = &part.meta;
        self.rows += meta.rows;
        self.room(meta.placement.disk, meta.placement.bytes, 0);
        let view = PartView::of(meta, &self.header.rules);
        let empty = || PartitionView { value: meta.partition.clone(), pruned_at: None, recompressed_at: None, parts: Vec::new() };
        let slot = self.slots.entry(meta.partition.clone()).or_insert_with(|| Slot { view: empty(), wake: None, waits: false });
        slot.view.parts.push(view);
        self.parts.insert(meta.id, part);
    }

    /// # Errors
    /// `Internal` where there is none such: a plan names it twice.
    pub fn remove(&mut self, id: PartId) -> Result<Part> {
        let part = self.parts.remove(&id).ok_or_else(|| Error::internal(format!("part {id} is planned for and not there")))?;
        let meta = &part.meta;
        self.rows -= meta.rows;
        self.room(meta.placement.disk, 0, meta.placement.bytes);
        self.freed = true;
        if let Some(slot) = self.slots.get_mut(&meta.partition) {
            slot.view.parts.retain(|p| p.id != id);
        }
        Ok(part)
    }

    /// What is known of a partition goes with its last part.
    fn forget_empty(&mut self, keys: &BTreeSet<Arc<str>>) {
        for key in keys {
            if self.slots.get(key).is_some_and(|s| s.view.parts.is_empty()) {
                self.set_wake(key, None, false);
                self.slots.remove(key);
            }
        }
    }

    fn room(&mut self, disk: DiskId, taken: u64, given: u64) {
        self.reckon(disk, taken, given);
        self.room.push((disk, taken, given));
        if let Some(volume) = self.header.tiers.volume_of(disk) {
            self.watch.placed(volume, taken, given);
        }
    }

    /// What others have to be told.
    pub fn take_room(&mut self) -> Vec<(DiskId, u64, u64)> {
        std::mem::take(&mut self.room)
    }

    /// Room that another stream took and gave.
    pub fn hear(&mut self, disk: DiskId, taken: u64, given: u64) {
        self.reckon(disk, taken, given);
        self.freed |= given > 0;
    }

    fn reckon(&mut self, disk: DiskId, taken: u64, given: u64) {
        let tiers = Arc::make_mut(&mut self.header.tiers);
        for d in tiers.volumes.iter_mut().flat_map(|v| &mut v.disks).filter(|d| d.id == disk && d.total != u64::MAX) {
            // What would lie beyond the end is kept back, as the real room is.
            d.free = d.free.saturating_sub(taken).saturating_add(given).min(d.total);
        }
    }

    pub fn next_wake(&self) -> Option<Timestamp> {
        self.wakes.first().map(|(at, _)| *at)
    }

    pub fn due(&self, now: Timestamp) -> BTreeSet<Arc<str>> {
        self.wakes.iter().take_while(|(at, _)| *at <= now).map(|(_, key)| key.clone()).collect()
    }

    fn set_wake(&mut self, key: &Arc<str>, wake: Option<Timestamp>, waits: bool) {
        let Some(slot) = self.slots.get_mut(key) else { return };
        if let Some(old) = slot.wake.take() {
            self.wakes.remove(&(old, key.clone()));
        }
        (slot.wake, slot.waits) = (wake, waits);
        self.wakes.extend(wake.map(|at| (at, key.clone())));
    }

    /// Plans and does once what is due in `keys` and what room asks for; whether there was anything. What is touched joins both sets.
    ///
    /// # Errors
    /// `Internal` where plans are not sound.
    pub fn round(&mut self, keys: &mut BTreeSet<Arc<str>>, looked_at: &mut BTreeSet<Arc<str>>, now: Timestamp) -> Result<bool> {
        let mut round = keys.clone();
        round.extend(self.pressed());
        if std::mem::take(&mut self.freed) {
            let waiting: Vec<_> = self.slots.iter().filter(|(_, s)| s.waits).map(|(k, _)| k.clone()).collect();
            looked_at.extend(waiting.iter().cloned());
            round.extend(waiting);
        }
        let planned = self.plan(&round, now)?;
        for plan in &planned.plans {
            let touched: BTreeSet<Arc<str>> = plan.parts().iter().filter_map(|p| Some(self.parts.get(p)?.meta.partition.clone())).collect();
            self.apply(plan, now)?;
            keys.extend(touched.iter().cloned());
            looked_at.extend(touched);
        }
        Ok(!planned.plans.is_empty())
    }

    /// Notes when to look again at partitions in which nothing is to be done now.
    pub fn look_at(&mut self, keys: &BTreeSet<Arc<str>>, now: Timestamp) -> Result<()> {
        self.forget_empty(keys);
        keys.iter().try_for_each(|key| self.look(key, now))
    }

    /// What could leave disks on which too little is free.
    pub fn candidates(&mut self, now: Timestamp) -> Vec<Pressed> {
        let keys: BTreeSet<Arc<str>> = self.pressed().into_iter().collect();
        if keys.is_empty() { Vec::new() } else { self.shown(&keys, |view| plan::round::pressed(view, now)) }
    }

    /// When to look at a partition again in which nothing is to be done now.
    fn look(&mut self, key: &Arc<str>, now: Timestamp) -> Result<()> {
        if !self.slots.contains_key(key) {
            return Ok(());
        }
        let planned = self.plan(&BTreeSet::from([key.clone()]), now)?;
        if planned.waits_for_room {
            self.tell_what_waits(key, now);
        }
        self.set_wake(key, planned.wake_at, planned.waits_for_room);
        Ok(())
    }

    /// Partitions with parts on disks that others must leave: their parts are candidates.
    fn pressed(&self) -> Vec<Arc<str>> {
        let tiers = &self.header.tiers;
        let short: Vec<DiskId> =
            tiers.volumes.iter().flat_map(|v| &v.disks).map(|d| d.id).filter(|d| tiers.short_of(*d).is_some()).collect();
        if short.is_empty() {
            return Vec::new();
        }
        let on_one = |slot: &Slot| slot.view.parts.iter().any(|p| short.contains(&p.disk));
        self.slots.iter().filter(|(_, s)| on_one(s)).map(|(k, _)| k.clone()).collect()
    }

    /// What `look` makes of the stream with these partitions.
    fn shown<T>(&mut self, keys: &BTreeSet<Arc<str>>, look: impl FnOnce(&StreamView) -> T) -> T {
        for key in keys {
            if let Some(slot) = self.slots.get_mut(key) {
                let none = PartitionView { value: key.clone(), pruned_at: None, recompressed_at: None, parts: Vec::new() };
                self.header.partitions.push(std::mem::replace(&mut slot.view, none));
            }
        }
        let seen = look(&self.header);
        for view in self.header.partitions.drain(..) {
            if let Some(slot) = self.slots.get_mut(&view.value) {
                slot.view = view;
            }
        }
        seen
    }

    fn plan(&mut self, keys: &BTreeSet<Arc<str>>, now: Timestamp) -> Result<Planned> {
        let (planned, wrong) = self.shown(keys, |view| {
            let planned = plan::plan(view, now);
            let wrong = if planned.plans.is_empty() { Vec::new() } else { check::violations(view, &planned.plans) };
            (planned, wrong)
        });
        match wrong.first() {
            Some(first) => Err(Error::internal(format!("{}: at {now}: {first}", self.world.def().full_name()))),
            None => Ok(planned),
        }
    }

    /// # Errors
    /// `Internal` where the planner, shown everything, finds work that it was not asked for.
    pub fn nothing_was_passed_over(&mut self, now: Timestamp) -> Result<()> {
        let all = self.slots.keys().cloned().collect();
        match self.plan(&all, now)?.plans.first() {
            Some(plan) => Err(Error::internal(format!("{}: at {now} a {} was passed over", self.world.def().full_name(), plan.kind()))),
            None => Ok(()),
        }
    }

    pub fn oldest_row(&self) -> Option<Timestamp> {
        self.parts.values().map(|p| p.meta.min_time).min()
    }
}
