//! The clock: from flush to flush and from wake-up to wake-up, and nothing in between.
//!
//! A partition is planned when something of it changed, when its wake-up came, when room came free for which it waits, or when its
//! parts are on a disk that others must leave: in between the planner has nothing to say of it (its wake-ups are honest).

use super::{
    arrivals::{Arrivals, Share},
    options::{ROUNDS_MAX, SimOptions},
    report::Report,
    slice::Slice,
    state::{About, State},
    world::World,
};
use crate::{
    place,
    plan::{Relief, Scene, State as Why, explain, pressure::Pressed},
    simulate::sizes,
};
use ebb_storage::{Error, Result, Timestamp, codec::Codec, ids::DiskId, rules::Action};
use std::{collections::BTreeSet, sync::Arc};

/// Each so many moments everything is planned anew, to show that nothing was passed over.
const CHECK_EVERY: u64 = 1009;
/// Parts that are asked why they wait.
const QUESTIONS_MAX: usize = 1000;
/// From so many bytes pruned for each byte inserted on, a better way is told.
const PRUNED_MUCH: f64 = 0.5;

/// The stream from empty to the end of the years, alone on its disks.
///
/// # Errors
/// `Invalid` for options out of bounds, what a partition expression says, `Internal` where the planner contradicts itself.
pub fn simulate(world: &World, options: &SimOptions) -> Result<Report> {
    let report = together(std::slice::from_ref(world), options)?.pop();
    report.ok_or_else(|| Error::internal("a simulation without a report"))
}

/// [`simulate`] of several streams, which share the disks that their policies name; a report of each.
///
/// # Errors
/// As `simulate`.
pub fn together(worlds: &[World], options: &SimOptions) -> Result<Vec<Report>> {
    options.check()?;
    let mut states: Vec<State<'_>> = (0u32..).zip(worlds).map(|(nth, world)| State::new(world, options, nth)).collect();
    let mut arrivals: Vec<Arrivals<'_>> = worlds.iter().map(|world| Arrivals::new(world, options)).collect();
    let (end, every) = (options.end(), options.look_every());
    let (mut looked_at, mut moments) = (vec![options.start; worlds.len()], 0u64);
    loop {
        let flushes = arrivals.iter().filter_map(Arrivals::at);
        let wakes = states.iter().zip(&looked_at).filter_map(|(s, looked)| Some(s.next_wake()?.max(looked.saturating_add(every))));
        let Some(now) = flushes.chain(wakes).min().filter(|at| *at <= end) else { break };
        let mut keys: Vec<BTreeSet<Arc<str>>> = Vec::with_capacity(states.len());
        for (state, looked) in states.iter_mut().zip(&mut looked_at) {
            state.write_down(now);
            let due = state.due(now);
            if !due.is_empty() {
                *looked = now;
            }
            keys.push(due);
        }
        for nth in 0..states.len() {
            if arrivals[nth].at() == Some(now) {
                for share in arrivals[nth].next()? {
                    keys[nth].extend(states[nth].insert(share, now)?);
                    tell_of_room(&mut states, nth);
                }
            }
        }
        settle(&mut states, keys, now)?;
        moments += 1;
        if moments.is_multiple_of(CHECK_EVERY) || moments < CHECK_EVERY && moments.is_power_of_two() {
            relieve(&mut states, now);
            states.iter_mut().try_for_each(|state| state.nothing_was_passed_over(now))?;
        }
    }
    let mut reports = Vec::with_capacity(states.len());
    for mut state in states {
        state.write_down(end.saturating_add(std::time::Duration::from_micros(1)));
        state.judge(end);
        let mut assumptions = assumptions(state.world, options);
        if worlds.len() > 1 {
            assumptions.push(format!(
                "disks are shared by the {} streams of the file, {} rows a day each",
                worlds.len(),
                options.rows_per_day
            ));
        }
        reports.push(state.watch.report(state.world, options, assumptions));
    }
    Ok(reports)
}

/// Does what is due in these partitions of each stream at `now`, until nothing is; and notes when to look at them again.
///
/// # Errors
/// `Internal` where plans are not sound, or do not come to an end.
fn settle(states: &mut [State<'_>], mut keys: Vec<BTreeSet<Arc<str>>>, now: Timestamp) -> Result<()> {
    let mut looked_at = keys.clone();
    for _ in 0..ROUNDS_MAX {
        relieve(states, now);
        let mut any = false;
        for nth in 0..states.len() {
            any |= states[nth].round(&mut keys[nth], &mut looked_at[nth], now)?;
            tell_of_room(states, nth);
        }
        if !any {
            return states.iter_mut().zip(&looked_at).try_for_each(|(state, keys)| state.look_at(keys, now));
        }
    }
    let names: Vec<String> = states.iter().map(|s| s.world.def().full_name()).collect();
    Err(Error::internal(format!("{}: at {now} plans do not come to an end", names.join(", "))))
}

/// What leaves disks on which too little is free is decided over all streams, as a database does.
fn relieve(states: &mut [State<'_>], now: Timestamp) {
    let pressed: Vec<Pressed> = states.iter_mut().flat_map(|state| state.candidates(now)).collect();
    let relief = (!pressed.is_empty()).then(|| Arc::new(Relief::of(pressed)));
    states.iter_mut().for_each(|state| state.header.relief = relief.clone());
}

fn tell_of_room(states: &mut [State<'_>], of: usize) {
    for (disk, taken, given) in states[of].take_room() {
        let others = states.iter_mut().enumerate().filter(|(nth, _)| *nth != of);
        others.for_each(|(_, state)| state.hear(disk, taken, given));
    }
}

impl State<'_> {
    /// What was until `now`.
    fn write_down(&mut self, now: Timestamp) {
        self.watch.draw_until(now);
        while let Some(at) = self.watch.moment_before(now) {
            let counts = (self.rows, self.parts.len() as u64, self.slots.len() as u64);
            let oldest = self.oldest_row();
            self.watch.moment(at, counts, oldest);
        }
        self.watch.at(now);
    }

    /// A flush's part of one partition; the partition, where it was taken.
    fn insert(&mut self, share: Share, now: Timestamp) -> Result<Option<Arc<str>>> {
        let (rows, codec) = (share.rows, self.header.settings.codec);
        let there = self.slots.get(&share.partition).map_or(0, |s| s.view.parts.len() as u64);
        let (delay, refuse) = (self.header.settings.parts_to_delay, self.header.settings.parts_to_refuse);
        if there >= delay {
            let text =
                || format!("partition {} has {there} parts: inserts are slowed from {delay} on (parts_to_delay_insert)", share.partition);
            self.watch.warn("delay", Some(now), text);
        }
        if there >= refuse {
            let text = || format!("partition {} has {there} parts: inserts are refused (parts_to_throw_insert)", share.partition);
            self.watch.warn("refuse", Some(now), text);
            self.watch.totals.refused_rows += rows;
            return Ok(None);
        }
        let slice = Slice::new(share.began, share.to, rows as f64, share.due);
        let about = About { partition: share.partition, codec, disk: DiskId::DEFAULT, level: 0, now, move_due_since: None };
        let turn = self.next_turn();
        let mut part = self.describe(vec![slice], about)?;
        let (bytes, tiers) = (part.meta.placement.bytes, &self.header.tiers);
        let wishes = place::due_places(tiers, self.world.def(), &part.meta.facts, (rows, now), bytes, turn);
        let wish = wishes.into_iter().find(|d| tiers.disk(*d).is_some_and(|d| d.takes(bytes).is_ok()));
        let at_once = wish.is_some();
        match wish.map_or_else(|| tiers.for_new(bytes, turn), Ok) {
            Ok(disk) => part.meta.placement.disk = disk,
            Err(why) => {
                self.watch.warn("room", Some(now), || format!("inserts are refused: no volume takes new parts ({why})"));
                self.watch.totals.refused_rows += rows;
                return Ok(None);
            }
        }
        if at_once {
            // The rule that came due last, of equals the later one.
            let latest = |r: &crate::plan::RuleView| part.meta.facts_of(r.fingerprint).and_then(|f| f.latest).filter(|at| *at <= now);
            let moves = self.header.rules.iter().enumerate().filter(|(_, r)| r.moves());
            let by = moves.filter_map(|(i, r)| Some((latest(r)?, i))).max().map(|(_, i)| i);
            by.into_iter().for_each(|i| self.watch.acted(i, 1, rows, now));
        }
        self.watch.inserted(rows, bytes, now);
        let partition = part.meta.partition.clone();
        self.add(part);
        Ok(Some(partition))
    }

    /// Why parts of a partition that wait for room do so, the first time that is seen.
    pub(super) fn tell_what_waits(&mut self, key: &Arc<str>, now: Timestamp) {
        let tiers = self.header.tiers.clone();
        // Nothing leaves the coldest one.
        let hotter = tiers.volumes.split_last().map_or(&[][..], |(_, hotter)| hotter);
        for disk in hotter.iter().flat_map(|v| &v.disks).filter(|d| tiers.short_of(d.id).is_some()) {
            let free = tiers.move_factor * 100.0;
            let text =
                || format!("disk '{}': less than {free:.0} % is free (move_factor), and no colder volume takes its parts", disk.name);
            self.watch.warn(&format!("short {}", disk.id), Some(now), text);
        }
        if self.questions >= QUESTIONS_MAX {
            return;
        }
        self.questions += 1;
        let Some(slot) = self.slots.get(key) else { return };
        let scene = Scene::new(&self.header, &slot.view, now);
        let mut found = Vec::new();
        for part in &slot.view.parts {
            let Some(meta) = self.parts.get(&part.id).map(|p| &p.meta) else { continue };
            let rows = explain::explain(meta, part, &scene, false);
            found.extend(rows.into_iter().filter(|r| matches!(r.state, Why::DestinationFull | Why::DiskThreshold)));
            if !found.is_empty() {
                break;
            }
        }
        for row in found {
            self.watch.warn(&format!("full {}", row.rule), Some(now), || format!("{}: {} waits: {}", row.rule, row.action, row.reason));
        }
    }

    /// What the whole says that no moment did.
    fn judge(&mut self, end: Timestamp) {
        let rules = self.header.rules.clone();
        if !rules.iter().any(|r| r.deletes()) {
            self.watch.warn("grows", None, || "no rule removes rows: the stream grows without end".to_owned());
        }
        if !self.world.def().policy.retention.is_empty() {
            self.watch.warn("retention", None, || "RETENTION is not simulated: rows are kept that it would remove".to_owned());
        }
        let idle: Vec<usize> = (0..rules.len()).filter(|i| self.watch.rules()[*i].parts == 0).collect();
        for i in idle {
            let why = self.why_idle(i, end);
            self.watch.warn(&format!("idle {i}"), None, || format!("{}: it did nothing: {why}", rules[i].text));
        }
        let totals = &self.watch.totals;
        let pruned = totals.cause("prune").map_or(0, |c| c.written_bytes) as f64 / totals.inserted_bytes.max(1) as f64;
        if pruned >= PRUNED_MUCH && rules.iter().any(|r| r.deletes()) {
            let text = || {
                format!(
                    "prunes wrote {pruned:.1} bytes for each byte inserted: smaller partitions of time, ttl_only_drop_parts or a larger \
                     merge_with_ttl_timeout let more rows go with whole parts"
                )
            };
            self.watch.warn("pruned", None, text);
        }
    }

    fn why_idle(&self, rule: usize, end: Timestamp) -> String {
        let Some(view) = self.header.rules.get(rule) else { return String::new() };
        if matches!(&view.kind, crate::plan::view::RuleKind::Recompress(codec) if *codec == self.header.settings.codec) {
            return format!("parts are written as {} already", self.header.settings.codec);
        }
        // Of the parts that are there the one whose rows are due first.
        let due = |p: &super::state::Part| p.meta.facts_of(view.fingerprint).and_then(|f| Some((f.earliest?, p.meta.id)));
        match self.parts.values().filter_map(due).min() {
            Some((at, _)) if at > end => format!("its first rows are due at {at}, after the end"),
            Some((_, id)) => {
                let Some(part) = self.parts.get(&id) else { return String::new() };
                let Some(slot) = self.slots.get(&part.meta.partition) else { return String::new() };
                let scene = Scene::new(&self.header, &slot.view, end);
                let Some(seen) = slot.view.parts.iter().find(|p| p.id == id) else { return String::new() };
                let rows = explain::explain(&part.meta, seen, &scene, false);
                let row = rows.into_iter().find(|r| r.rule == view.text);
                row.map_or_else(String::new, |r| format!("{}, {}", r.state, r.reason))
            }
            None if self.parts.is_empty() => "no rows were left for it".to_owned(),
            None => "its time never comes due for these rows, or others took them before".to_owned(),
        }
    }
}

fn assumptions(world: &World, options: &SimOptions) -> Vec<String> {
    let def = world.def();
    let plural = |n: u64| if n == 1 { "" } else { "s" };
    let flushes = u64::from(options.parts_per_day);
    let mut all = vec![format!(
        "{} rows a day in {flushes} flush{} a day, evenly, in order of time",
        options.rows_per_day,
        if flushes == 1 { "" } else { "es" }
    )];
    let by = if options.row_bytes.is_some() { "as given" } else { "by column types: --row-bytes says better" };
    all.push(format!("{:.1} bytes a row in LZ4 ({by})", world.row_bytes(options)));
    let recompress = |r: &ebb_storage::rules::Rule| match &r.action {
        Action::Recompress(codec) => Some(*codec),
        _ => None,
    };
    let mut codecs: Vec<Codec> = [world.compiled.settings.codec].into_iter().chain(def.rules().iter().filter_map(recompress)).collect();
    let mut seen = BTreeSet::new();
    codecs.retain(|c| *c != Codec::Lz4 && seen.insert(c.to_string()));
    let ratios: Vec<String> = codecs.iter().map(|c| format!("{c} {:.2}", sizes::ratio(*c))).collect();
    if !ratios.is_empty() {
        all.push(format!("bytes for each byte in LZ4: {}", ratios.join(", ")));
    }
    if !def.partition_by.is_empty() || !world.rules.is_empty() {
        all.push("dates and times of a row are its event time, other columns hold their default or zero".to_owned());
    }
    let percent = |share: f64| format!("{:.0} %", share * 100.0);
    if def.rules().iter().any(|r| matches!(&r.action, Action::Delete { only: Some(_) })) {
        all.push(format!("each DELETE WHERE matches {} of due rows (--share)", percent(options.share)));
    }
    if def.rules().iter().any(|r| matches!(&r.action, Action::GroupBy { .. })) {
        all.push(format!("each GROUP BY leaves {} of due rows (--share)", percent(options.share)));
    }
    let endless = world.tiers.volumes.iter().flat_map(|v| &v.disks).filter(|d| d.total == u64::MAX);
    let endless: Vec<String> = endless.map(|d| format!("'{}'", d.name)).collect();
    if !endless.is_empty() {
        all.push(format!("disk{} {} without end (no capacity_bytes)", plural(endless.len() as u64), endless.join(", ")));
    }
    let every = options.look_every().as_secs();
    all.push(format!("jobs end at once; due work is looked for at each flush and at most every {every} s"));
    all
}
