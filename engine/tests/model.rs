//! The engine beside a vector of rows: one seed drives inserts, transactions, flushes, merges, rules, moves, codecs, graces, truncation,
//! a moving clock, reopenings and losses of power, and after each step both must say the same.
//!
//! A row that was due while its rule was in force may be gone (removal by rules is asynchronous) and, once gone, never comes back. After
//! SETTLE on a stream whose jobs need not keep their distance no row that is due is left, and each part has the codec and the place that
//! its rows are due for; after OPTIMIZE FINAL no row that is due is left. What a loss of power left open is settled by the first look
//! after it: all of a unit or nothing.
//! `EBB_MODEL_SEEDS=from..to` runs other seeds.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod support;

use arrow::{array::AsArray, datatypes::TimestampMicrosecondType};
use ebb_engine::{Engine, InsertOptions, ReadView, Result, Timestamp, Which};
use ebb_storage::{
    codec::Codec,
    ids::{SchemaVersion, StreamId},
    interval::Interval,
    manifest::invariants,
    part::{PartReader, reader::ReadOptions},
    testkit::{
        crash_store::{CrashDisk, Unsynced},
        power::Cut,
    },
};
use std::{collections::BTreeMap, sync::Arc};
use support::{tiered::*, *};

const SEEDS: std::ops::Range<u64> = 0..140;
const STEPS: usize = 24;
const HOSTS: [&str; 3] = ["a", "b", "c"];

/// SplitMix64.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }
}

/// (v, sn) of a stream's rows.
type Seen = Vec<(i64, i64)>;

/// What is to happen once rows, or all rows of a part, are so many days old.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Age {
    /// Rows go, of one host or of all.
    Gone(Option<usize>),
    Codec(u8),
    Volume(usize),
}

type Rules = Vec<(i64, Age)>;

const VOLUMES: [&str; 3] = ["hot", "warm", "cold"];
/// No part there is recompressed by itself.
const COLD: usize = 2;

#[derive(Debug, Clone)]
struct Row {
    host: usize,
    ts: i64,
    /// As first seen; it never changes.
    sn: Option<i64>,
    /// Was due at some time: may be gone.
    may_be_gone: bool,
}

#[derive(Debug, Clone)]
struct Stream {
    id: StreamId,
    name: String,
    rules: Rules,
    /// Prunes need not keep a distance: SETTLE leaves nothing that is due.
    exact: bool,
    rows: BTreeMap<i64, Row>,
}

impl Stream {
    fn is_due(&self, row: &Row, now: i64) -> bool {
        let takes = |age: &Age| matches!(age, Age::Gone(host) if host.is_none_or(|h| h == row.host));
        self.rules.iter().any(|(days, age)| row.ts + days * DAY <= now && takes(age))
    }
    /// The rule in force for a part whose newest row is of `ts`, among those that `of` picks.
    fn in_force<T>(&self, ts: i64, now: i64, of: impl Fn(Age) -> Option<T>) -> Option<T> {
        let due = self.rules.iter().enumerate().filter(|(_, (days, _))| ts + days * DAY <= now);
        due.filter_map(|(i, (days, age))| Some(((ts + days * DAY, i), of(*age)?))).max_by_key(|(at, _)| *at).map(|(_, what)| what)
    }
    fn mark(&mut self, now: i64) {
        let due: Vec<i64> = self.rows.iter().filter(|(_, r)| self.is_due(r, now)).map(|(v, _)| *v).collect();
        due.iter().for_each(|v| self.rows.get_mut(v).unwrap().may_be_gone = true);
    }
}

fn rules_of(rules: &Rules) -> Vec<ebb_storage::rules::Rule> {
    let rule = |(days, age): &(i64, Age)| {
        let (when, id) = (format!("ts + {days} days"), *days as u64 * 100);
        match age {
            Age::Gone(host) => {
                let only = host.map(|h| format!("host = '{}'", HOSTS[h]));
                delete(&when, only.as_deref(), id + host.map_or(9, |h| h as u64))
            }
            Age::Codec(level) => recompress(&when, Codec::Zstd(*level), id + 10 + u64::from(*level)),
            Age::Volume(v) => to(&when, volume(VOLUMES[*v]), id + 20 + *v as u64),
        }
    };
    rules.iter().map(rule).collect()
}

/// What was under way when the power went.
enum Open {
    Rows(Vec<(usize, BTreeMap<i64, Row>)>, Option<String>),
    Truncate(usize),
    Alter(usize, Rules),
    Nothing,
}

struct World {
    dice: Dice,
    machine: CrashDisk,
    now: i64,
    streams: Vec<Stream>,
    next_v: i64,
    held: Option<(ReadView, Vec<Seen>)>,
    told: Vec<String>,
}

impl World {
    async fn new(seed: u64) -> (Self, Arc<Engine>) {
        let machine = CrashDisk::default();
        let e = open_tiered(&machine, START, false).await.unwrap();
        make_tiers(&e, [ROOM; 3]).await.unwrap();
        let mut world = Self { dice: Dice(seed), machine, now: START.0, streams: Vec::new(), next_v: 1, held: None, told: Vec::new() };
        for n in 0..2 + world.dice.below(2) {
            let rules = world.rules();
            let (name, exact) = (format!("s{n}"), n != 1);
            let mut new = tiered(&name, rules_of(&rules));
            match exact {
                true => new = with(new, "ttl_move_grace_seconds", 0),
                false => {
                    new = with(new, "merge_with_ttl_timeout", 14_400);
                    new = with(new, "merge_with_recompression_ttl_timeout", 14_400);
                    new = with(new, "ttl_only_drop_parts", world.dice.below(2) as i64);
                }
            }
            let id = e.create_stream(new, false).await.unwrap();
            world.streams.push(Stream { id, name, rules, exact, rows: BTreeMap::new() });
        }
        (world, e)
    }

    fn rules(&mut self) -> Rules {
        let n = self.dice.below(5);
        let age = |dice: &mut Dice| match dice.below(6) {
            0 | 1 => Age::Gone([None, Some(0), Some(1), Some(2)][dice.below(4) as usize]),
            2 | 3 => Age::Codec(1 + dice.below(3) as u8),
            _ => Age::Volume(dice.below(3) as usize),
        };
        (0..n).map(|_| (1 + self.dice.below(30) as i64, age(&mut self.dice))).collect()
    }

    fn stream(&mut self) -> usize {
        self.dice.below(self.streams.len() as u64) as usize
    }

    fn new_rows(&mut self) -> BTreeMap<i64, Row> {
        let n = 1 + self.dice.below(6);
        let row = |w: &mut Self| {
            w.next_v += 1;
            let ts = w.now + (w.dice.below(80) as i64 - 40) * DAY / 2;
            (w.next_v, Row { host: w.dice.below(3) as usize, ts, sn: None, may_be_gone: false })
        };
        (0..n).map(|_| row(self)).collect()
    }

    fn add(&mut self, stream: usize, rows: BTreeMap<i64, Row>) {
        let (s, now) = (&mut self.streams[stream], self.now);
        s.rows.extend(rows);
        s.mark(now);
    }

    /// One step. What it leaves open is told where it fails.
    async fn step(&mut self, e: &Engine) -> (Result<()>, Open) {
        let at = self.stream();
        let id = self.streams[at].id;
        match self.dice.below(19) {
            0..=3 => {
                let rows = self.new_rows();
                let key = (self.dice.below(3) == 0).then(|| format!("k{}", self.next_v));
                self.told.push(format!("insert {at} {:?} {key:?}", rows.keys().collect::<Vec<_>>()));
                let options = InsertOptions { schema_version: SchemaVersion(1), key: key.clone(), ..InsertOptions::default() };
                let done = e.insert(id, vec![batch(&rows)], options).await;
                if done.is_ok() {
                    self.add(at, rows.clone());
                }
                (done.map(|_| ()), Open::Rows(vec![(at, rows)], key))
            }
            4 => {
                let (first, second) = (self.new_rows(), self.new_rows());
                let abort = self.dice.below(4) == 0;
                self.told.push(format!("staged {at} {:?} {:?} abort {abort}", first.keys(), second.keys()));
                let all: BTreeMap<i64, Row> = first.clone().into_iter().chain(second.clone()).collect();
                let done = async {
                    let mut staged = e.stage(id, v1()).await?;
                    staged.push(batch(&first)).await?;
                    staged.push(batch(&second)).await?;
                    match abort {
                        true => drop(staged),
                        false => _ = staged.finish().await?,
                    }
                    Ok(())
                };
                let done = done.await;
                if abort {
                    return (done, Open::Nothing);
                }
                if done.is_ok() {
                    self.add(at, all.clone());
                }
                (done, Open::Rows(vec![(at, all)], None))
            }
            5 | 6 => {
                let inserts: Vec<_> = (0..1 + self.dice.below(3)).map(|_| (self.stream(), self.new_rows())).collect();
                self.told.push(format!("transaction {:?}", inserts.iter().map(|(s, r)| (s, r.keys())).collect::<Vec<_>>()));
                let done = async {
                    let mut t = e.transaction();
                    for (s, rows) in &inserts {
                        t.insert(self.streams[*s].id, vec![batch(rows)], v1()).await?;
                    }
                    t.commit().await
                };
                let done = done.await.map(|_| ());
                if done.is_ok() {
                    inserts.iter().for_each(|(s, rows)| self.add(*s, rows.clone()));
                }
                (done, Open::Rows(inserts, None))
            }
            7 | 8 => {
                self.told.push(format!("flush {at}"));
                (e.flush(Some(id)).await, Open::Nothing)
            }
            9 => {
                let final_ = self.dice.below(2) == 0;
                self.told.push(format!("optimize {at} {final_}"));
                let done = e.optimize(id, None, final_).await.map(|_| ());
                // A job that failed for want of power is noted, and no error.
                if done.is_ok() && final_ && !self.machine.power.is_off() {
                    self.nothing_due_is_left(e, at).await;
                }
                (done, Open::Nothing)
            }
            10 => {
                let rules = self.rules();
                self.told.push(format!("alter {at} {rules:?}"));
                let change = |d: &ebb_storage::stream_def::StreamDef| {
                    let mut d = d.clone();
                    d.policy.ttl = rules_of(&rules);
                    Ok(d)
                };
                let done = e.alter_stream(id, change).await.map(|_| ());
                if done.is_ok() {
                    let now = self.now;
                    self.streams[at].rules = rules.clone();
                    self.streams[at].mark(now);
                }
                (done, Open::Alter(at, rules))
            }
            11 => {
                if self.dice.below(3) > 0 {
                    return (Ok(()), Open::Nothing);
                }
                self.told.push(format!("truncate {at}"));
                let done = e.truncate(id).await.map(|_| ());
                if done.is_ok() {
                    self.streams[at].rows.clear();
                }
                (done, Open::Truncate(at))
            }
            12 | 13 => {
                let days = self.dice.below(8) as i32;
                self.told.push(format!("advance {days}"));
                self.now = e.advance_clock(Interval::days(days)).unwrap().0;
                let now = self.now;
                self.streams.iter_mut().for_each(|s| s.mark(now));
                (Ok(()), Open::Nothing)
            }
            15 => {
                self.told.push("checkpoint".to_owned());
                (e.checkpoint().await, Open::Nothing)
            }
            14 => {
                self.told.push("settle".to_owned());
                let done = e.settle(None).await;
                if done.is_ok() && !self.machine.power.is_off() {
                    for at in 0..self.streams.len() {
                        if self.streams[at].exact {
                            self.nothing_due_is_left(e, at).await;
                            self.all_is_in_its_place(e, at).await;
                        }
                    }
                }
                (done, Open::Nothing)
            }
            17 => {
                let partitions: Vec<String> =
                    e.manifest().stream(id).map(|s| s.partitions.keys().map(|k| k.to_string()).collect()).unwrap_or_default();
                let (some, v) = (self.dice.next() as usize, self.dice.below(3) as usize);
                if partitions.is_empty() {
                    return (Ok(()), Open::Nothing);
                }
                let partition = &partitions[some % partitions.len()];
                self.told.push(format!("move {at} {partition} to {}", VOLUMES[v]));
                let moved = e.move_parts(id, Which::Partition(partition), &volume(VOLUMES[v])).await;
                (moved.map(|_| ()), Open::Nothing)
            }
            _ => {
                match self.held.take() {
                    None => {
                        let view = e.read();
                        let mut seen = Vec::new();
                        for s in &self.streams {
                            seen.push(read_view(&view, s.id).await);
                        }
                        self.told.push("hold a cut".to_owned());
                        self.held = Some((view, seen));
                    }
                    Some((view, seen)) => {
                        self.told.push("look at the cut again".to_owned());
                        for (s, then) in self.streams.iter().zip(seen) {
                            assert_eq!(read_view(&view, s.id).await, then, "I10: a cut of {} has changed", s.name);
                        }
                    }
                }
                (Ok(()), Open::Nothing)
            }
        }
    }

    async fn nothing_due_is_left(&self, e: &Engine, at: usize) {
        let s = &self.streams[at];
        for v in values(e, s.id).await {
            let row = s.rows.get(&v).unwrap_or_else(|| panic!("{}: nobody wrote {v}", s.name));
            assert!(!s.is_due(row, self.now), "{}: {v} is due and still there", s.name);
        }
    }

    /// Each part has the codec and the place that its rows are due for.
    async fn all_is_in_its_place(&self, e: &Engine, at: usize) {
        let s = &self.streams[at];
        let view = e.read().stream(s.id).unwrap();
        for part in &view.parts {
            let reader = PartReader::open_verified(&part.store, &part.key, &part.meta).await.unwrap();
            let mut newest = i64::MIN;
            for batch in reader.read(&ReadOptions::default()).unwrap() {
                let batch = batch.unwrap();
                let ts = batch.column_by_name("ts").unwrap().as_primitive::<TimestampMicrosecondType>().clone();
                newest = newest.max(ts.values().iter().copied().max().unwrap());
            }
            let (name, placement) = (&part.meta.name, &part.meta.placement);
            let here = ["h", "w", "c"].iter().position(|d| *d == &*part.disk).unwrap();
            let place = s.in_force(newest, self.now, |a| if let Age::Volume(v) = a { Some(v) } else { None });
            assert!(place.is_none_or(|v| v == here), "{}: {name} is on {here} under {:?}", s.name, s.rules);
            let codec = s.in_force(newest, self.now, |a| if let Age::Codec(l) = a { Some(Codec::Zstd(l)) } else { None });
            assert!(
                here == COLD || codec.is_none_or(|c| c == placement.codec),
                "{}: {name} is {} under {:?}",
                s.name,
                placement.codec,
                s.rules
            );
        }
    }

    /// The engine's rows against the model's.
    async fn compare(&mut self, e: &Engine) {
        for s in &mut self.streams {
            let seen = read(e, s.id).await;
            for pair in seen.windows(2) {
                assert_ne!(pair[0].0, pair[1].0, "{}: {} is there twice", s.name, pair[0].0);
            }
            let seen: BTreeMap<i64, i64> = seen.into_iter().collect();
            for (v, sn) in &seen {
                let row = s.rows.get_mut(v).unwrap_or_else(|| panic!("{}: {v} is there, and should not", s.name));
                assert_eq!(*row.sn.get_or_insert(*sn), *sn, "{}: the sn of {v} has changed", s.name);
            }
            let gone: Vec<i64> = s.rows.keys().filter(|v| !seen.contains_key(v)).copied().collect();
            for v in gone {
                let row = s.rows.remove(&v).unwrap();
                assert!(row.may_be_gone, "{}: {v} is lost: {row:?} under {:?} at {}", s.name, s.rules, self.now);
            }
            let (rules, now) = (s.clone(), self.now);
            for row in s.rows.values_mut() {
                row.may_be_gone = rules.is_due(row, now);
            }
        }
        assert_eq!(invariants::violations(&e.manifest()), Vec::<String>::new());
    }

    /// Decides what the power loss left open, by what is there.
    async fn decide(&mut self, e: &Engine, open: Open) {
        match open {
            Open::Nothing => {}
            Open::Rows(units, key) => {
                let mut any = false;
                for (at, rows) in &units {
                    any |= values(e, self.streams[*at].id).await.iter().any(|v| rows.contains_key(v));
                }
                if let (Some(key), [(at, rows)]) = (key, units.as_slice()) {
                    // Sent again: there once either way.
                    self.told.push(format!("again {key}"));
                    let options = InsertOptions { schema_version: SchemaVersion(1), key: Some(key), ..InsertOptions::default() };
                    e.insert(self.streams[*at].id, vec![batch(rows)], options).await.unwrap();
                    any = true;
                }
                if any {
                    units.into_iter().for_each(|(at, rows)| self.add(at, rows));
                }
            }
            Open::Truncate(at) => {
                if values(e, self.streams[at].id).await.is_empty() {
                    self.streams[at].rows.clear();
                }
            }
            Open::Alter(at, rules) => {
                let now = self.now;
                let s = &mut self.streams[at];
                let found = e.read().stream(s.id).unwrap().def.policy.ttl.clone();
                if found == rules_of(&rules) {
                    s.rules = rules;
                    s.mark(now);
                } else {
                    assert_eq!(found, rules_of(&s.rules), "{}: neither the old rules nor the new", s.name);
                }
            }
        }
    }

    async fn run(&mut self, mut e: Arc<Engine>) {
        let mut cut = false;
        for _ in 0..STEPS {
            match self.dice.below(12) {
                0 => {
                    let close = self.dice.below(2) == 0;
                    self.told.push(format!("reopen, closed {close}"));
                    self.held = None;
                    if close {
                        // The power may go meanwhile.
                        let _ = e.close().await;
                    }
                    drop(e);
                    e = match open_tiered(&self.machine, Timestamp(self.now), false).await {
                        Ok(e) => e,
                        Err(error) => {
                            assert!(cut, "{error}");
                            cut = false;
                            self.power_returns().await
                        }
                    };
                }
                1 | 2 if !cut => {
                    let (after, how) =
                        (1 + self.dice.below(8), [Cut::NotApplied, Cut::AppliedNotAcknowledged][self.dice.below(2) as usize]);
                    self.told.push(format!("power goes at the {after}th call, {how:?}"));
                    self.machine.power.cut_at(self.machine.power.calls() + after, how);
                    cut = true;
                }
                _ => {
                    let (done, open) = self.step(&e).await;
                    match done {
                        Ok(()) if !self.machine.power.is_off() => {}
                        done => {
                            assert!(self.machine.power.is_off(), "{done:?}");
                            self.held = None;
                            drop(e);
                            e = self.power_returns().await;
                            cut = false;
                            if done.is_err() {
                                self.decide(&e, open).await;
                            }
                            self.compare(&e).await;
                        }
                    }
                }
            }
            if self.machine.power.is_off() {
                self.held = None;
                drop(e);
                e = self.power_returns().await;
                cut = false;
                self.compare(&e).await;
            }
            if self.dice.below(4) == 0 {
                self.compare(&e).await;
            }
        }
        self.held = None;
        self.machine = self.end(e).await;
    }

    /// Opens again after a loss of power, sometimes with another one while opening.
    async fn power_returns(&mut self) -> Arc<Engine> {
        let unsynced = [Unsynced::Lost, Unsynced::Torn, Unsynced::Kept][self.dice.below(3) as usize];
        self.told.push(format!("power returns, unsynced {unsynced:?}"));
        self.machine = self.machine.reopen(unsynced);
        if self.dice.below(3) == 0 {
            self.machine.power.cut_at(1 + self.dice.below(4), Cut::AppliedNotAcknowledged);
            let _ = open_tiered(&self.machine, Timestamp(self.now), false).await;
            self.machine = self.machine.reopen(unsynced);
        }
        open_tiered(&self.machine, Timestamp(self.now), false).await.unwrap()
    }

    /// What is stored in the end is what the manifest names.
    async fn end(&mut self, e: Arc<Engine>) -> CrashDisk {
        drop(e);
        self.machine.power.turn_off();
        let e = self.power_returns().await;
        self.compare(&e).await;
        e.settle(None).await.unwrap();
        self.compare(&e).await;
        let mut listed = 0;
        for disk in ["data", "h", "w", "c"] {
            listed += stored(&self.machine, disk).await;
        }
        let named: usize = e.manifest().streams().map(|s| s.parts.size()).sum();
        assert_eq!(listed, named, "what is stored is what the manifest names");
        self.machine.clone()
    }
}

fn batch(of: &BTreeMap<i64, Row>) -> arrow::array::RecordBatch {
    rows(&of.iter().map(|(v, r)| (HOSTS[r.host], r.ts, *v)).collect::<Vec<_>>())
}

/// Says which seed failed, and what it did.
struct Tell<'a>(u64, &'a mut World);

impl Drop for Tell<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("EBB_MODEL_SEEDS={}..{}\n{}", self.0, self.0 + 1, self.1.told.join("\n"));
        }
    }
}

async fn run(every_second_from: u64) {
    let seeds = match std::env::var("EBB_MODEL_SEEDS") {
        Ok(text) => {
            let (from, to) = text.split_once("..").unwrap();
            from.parse().unwrap()..to.parse().unwrap()
        }
        Err(_) => SEEDS,
    };
    for seed in seeds.filter(|s| s % 2 == every_second_from) {
        let (mut world, e) = World::new(seed).await;
        let tell = Tell(seed, &mut world);
        tell.1.run(e).await;
    }
}

/// proves D1, D2, D7, D8; I3, I10, I11. The other half is the next test's, on another core.
#[tokio::test]
async fn the_engine_says_what_the_model_says() {
    run(0).await;
}

#[tokio::test]
async fn the_engine_says_what_the_model_says_for_odd_seeds() {
    run(1).await;
}
