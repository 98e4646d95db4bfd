//! Rules that change rows, beside tags, branches, readers, merges, rollbacks of power and a moving clock: one seed drives them all.
//!
//! Whatever is folded or reset, a tag and a branch read what they read when they were made; main loses nothing but what a rule takes: the
//! sum of what was folded stays, a value is what was written or, once it is due, the default. With nobody in the way all that is due is
//! done after a settling. `EBB_MODEL_SEEDS=from..to` runs other seeds.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod support;

use arrow::{
    array::AsArray,
    datatypes::{Int64Type, TimestampMicrosecondType},
};
use ebb_engine::{
    AsOf, Engine, StreamView,
    history::{NewReader, NewRef, Overrides, ReaderFrom, RefMode},
};
use ebb_storage::{
    ids::{Fingerprint, Sn, StreamId},
    interval::Interval,
    manifest::invariants,
    part::{PartReader, reader::ReadOptions},
    refs::RefKind,
    stream_def::ColumnTtl,
    testkit::{
        crash_store::{CrashDisk, Unsynced},
        power::Cut,
    },
};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};
use support::*;

const SEEDS: std::ops::Range<u64> = 0..10;
const STEPS: usize = 40;
const LIFE_DAYS: i64 = 2;

/// SplitMix64.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % n
    }
}

/// Host, ts, v.
type Row = (String, i64, i64);
/// Part, host, ts, v.
type Seen = (usize, String, i64, i64);

async fn rows_with_times(view: &StreamView) -> Vec<Seen> {
    let mut out = Vec::new();
    for (place, part) in view.parts.iter().enumerate() {
        let reader = PartReader::open_verified(&part.store, &part.key, &part.meta).await.unwrap();
        let mut at = 0u32;
        for batch in reader.read(&ReadOptions::default()).unwrap() {
            let batch = batch.unwrap();
            let sns = batch.columns().last().unwrap().as_primitive::<Int64Type>().clone();
            for i in 0..batch.num_rows() {
                let sn = part.sn_of_record.unwrap_or(Sn(sns.value(i) as u64));
                if part.sns.as_ref().is_none_or(|s| s.contains(sn)) && part.hidden.as_ref().is_none_or(|h| !h.0.contains(at)) {
                    out.push(row_of(&batch, i, place));
                }
                at += 1;
            }
        }
    }
    for tail in &view.tail {
        out.extend((0..tail.rows.num_rows()).map(|i| row_of(&tail.rows, i, usize::MAX)));
    }
    out.sort();
    out
}

fn row_of(batch: &arrow::array::RecordBatch, i: usize, place: usize) -> Seen {
    let host = batch.column_by_name("host").unwrap().as_string_view().value(i).to_owned();
    let ts = batch.column_by_name("ts").unwrap().as_primitive::<TimestampMicrosecondType>().value(i);
    (place, host, ts, batch.column_by_name("v").unwrap().as_primitive::<Int64Type>().value(i))
}

struct World {
    dice: Dice,
    machine: CrashDisk,
    e: Arc<Engine>,
    s: StreamId,
    folds: bool,
    /// Nobody names or reads anything: the past is forgotten, and what is due is folded, again and again.
    alone: bool,
    /// What was written to main, by its time, which is one's own.
    written: BTreeMap<i64, i64>,
    /// What each tag and branch read when it was made.
    named: BTreeMap<String, (RefKind, Vec<Row>)>,
    readers: BTreeSet<String>,
    next: i64,
    told: String,
}

impl World {
    async fn new(seed: u64) -> Self {
        let machine = CrashDisk::default();
        let e = open_on(&machine, START).await.unwrap();
        let (folds, alone, when) = (seed.is_multiple_of(2), seed.is_multiple_of(4), format!("ts + {LIFE_DAYS} days"));
        let rules = if folds { vec![sum_by_host(&when, 1)] } else { vec![] };
        let mut d = with(def("s", rules), "merge_with_ttl_timeout", 0);
        if !folds {
            d.columns[2].ttl = Some(ColumnTtl { when, fingerprint: Fingerprint(2) });
        }
        let s = e.create_stream(d, false).await.unwrap();
        let (written, named, readers) = Default::default();
        Self { dice: Dice(seed), machine, e, s, folds, alone, written, named, readers, next: 1, told: String::new() }
    }

    fn may_cut(&mut self) {
        if self.dice.below(4) == 0 {
            let cut = [Cut::NotApplied, Cut::AppliedNotAcknowledged][self.dice.below(2) as usize];
            self.machine.power.cut_at(self.machine.power.calls() + 1 + self.dice.below(9), cut);
        }
    }

    async fn ended_cut(&mut self) -> bool {
        if !self.machine.power.is_off() {
            self.machine.power.turn_on();
            return false;
        }
        let now = self.e.now();
        self.machine = self.machine.reopen([Unsynced::Lost, Unsynced::Torn, Unsynced::Kept][self.dice.below(3) as usize]);
        self.e = open_on(&self.machine, now).await.unwrap_or_else(|e| panic!("{}: {e}", self.told));
        true
    }

    async fn head(&self) -> Vec<Seen> {
        rows_with_times(&self.e.read().stream(self.s).unwrap()).await
    }

    async fn of(&self, name: &str) -> Vec<Row> {
        let view = self.e.read().stream_as_of(self.s, &AsOf::Name(name.into()), self.e.now()).unwrap();
        let mut rows: Vec<_> = rows_with_times(&view).await.into_iter().map(|(_, host, ts, v)| (host, ts, v)).collect();
        rows.sort();
        rows
    }

    async fn check(&self, settled: bool) {
        assert_eq!(invariants::violations(&self.e.manifest()), Vec::<String>::new(), "{}", self.told);
        assert_eq!(self.e.faults_of_records().await.unwrap(), Vec::<String>::new(), "{}", self.told);
        for (name, (_, rows)) in &self.named {
            assert_eq!(&self.of(name).await, rows, "{}: {name}", self.told);
        }
        let (head, now) = (self.head().await, self.e.now().0);
        let free = settled && self.named.is_empty() && self.readers.is_empty();
        let due = |ts: i64| ts + LIFE_DAYS * DAY <= now;
        if self.folds {
            let (sum, written) = (head.iter().map(|r| r.3).sum::<i64>(), self.written.values().sum::<i64>());
            assert_eq!(sum, written, "{}: {head:?}", self.told);
            let folded: Vec<_> = head.iter().filter(|r| due(r.2)).map(|r| (r.0, &r.1)).collect();
            let once: BTreeSet<_> = folded.iter().collect();
            assert!(!free || once.len() == folded.len(), "{}: {head:?}", self.told);
            return;
        }
        assert_eq!(head.len(), self.written.len(), "{}", self.told);
        for (_, _, ts, v) in &head {
            let was = self.written[ts];
            let right = if due(*ts) && free { *v == 0 } else { *v == was || due(*ts) && *v == 0 };
            assert!(right, "{}: {v} at {ts} was {was}", self.told);
        }
    }

    async fn insert(&mut self) {
        let of: Vec<(&str, i64, i64)> = (0..1 + self.dice.below(4))
            .map(|_| {
                self.next += 1;
                let old = self.dice.below(4) as i64 * DAY;
                (["a", "b", "c"][self.dice.below(3) as usize], self.e.now().0 - old + self.next, self.next)
            })
            .collect();
        self.may_cut();
        let before = self.e.read().stream(self.s).unwrap().head_sn;
        let done = self.e.insert(self.s, vec![rows(&of)], v1()).await;
        self.ended_cut().await;
        let there = self.e.read().stream(self.s).unwrap().head_sn > before;
        assert!(there || done.is_err(), "{}: it was acknowledged", self.told);
        if there {
            self.written.extend(of.iter().map(|(_, ts, v)| (*ts, *v)));
        }
    }

    async fn name(&mut self) {
        let kind = if self.dice.below(2) == 0 { RefKind::Tag } else { RefKind::Branch };
        let name = format!("{}{}", kind.word(), self.dice.below(2));
        if self.written.is_empty() || self.named.contains_key(&name) {
            return;
        }
        let new = NewRef { kind, mode: RefMode::Create, ..tag(&name) };
        self.e.create_ref(self.s, new).await.unwrap();
        let mut rows: Vec<_> = self.head().await.into_iter().map(|(_, host, ts, v)| (host, ts, v)).collect();
        rows.sort();
        self.named.insert(name, (kind, rows));
    }

    async fn step(&mut self) {
        let what = match self.dice.below(16) {
            6..=9 if self.alone => 10,
            what => what,
        };
        self.told = format!("{}, {what}", self.told);
        match what {
            0..=5 => self.insert().await,
            6..=7 => self.name().await,
            8 => {
                if let Some(name) = self.named.keys().nth(self.dice.below(4) as usize).cloned() {
                    let (kind, _) = self.named.remove(&name).unwrap();
                    self.e.drop_ref(self.s, kind, &name, false).await.unwrap();
                }
            }
            9 => match self.readers.pop_first() {
                Some(name) => _ = self.e.drop_reader(&name, false).await.unwrap(),
                None => {
                    let new = NewReader {
                        name: "r".into(),
                        stream: self.s,
                        from: ReaderFrom::Latest,
                        max_lag_ms: Some(86_400_000),
                        if_not_exists: false,
                    };
                    self.e.create_reader(new).await.unwrap();
                    self.readers.insert("r".into());
                }
            },
            10 => {
                let overrides = Overrides { older_than: Some(ebb_engine::Timestamp::MAX), retain_last: Some(1), dry_run: false };
                self.e.expire_snapshots(self.s, overrides).await.unwrap();
            }
            11..=12 => self.e.advance_clock(Interval::seconds(3600 * (1 + self.dice.below(30) as i64))).map(|_| ()).unwrap(),
            13 => {
                self.may_cut();
                let done = self.e.optimize(self.s, None, self.dice.below(2) == 0).await;
                assert!(self.ended_cut().await || done.is_ok(), "{}", self.told);
            }
            _ => {
                self.may_cut();
                let done = self.e.settle(None).await;
                assert!(self.ended_cut().await || done.is_ok(), "{}", self.told);
                self.e.settle(None).await.unwrap();
                return self.check(true).await;
            }
        }
        self.check(false).await;
    }
}

fn seeds() -> std::ops::Range<u64> {
    let Ok(text) = std::env::var("EBB_MODEL_SEEDS") else { return SEEDS };
    let (from, to) = text.split_once("..").expect("from..to");
    from.parse().unwrap()..to.parse().unwrap()
}

// proves I10, I11
#[tokio::test]
async fn what_rules_change_is_changed_for_main_alone() {
    for seed in seeds() {
        let mut w = World::new(seed).await;
        w.told = format!("seed {seed}");
        for _ in 0..STEPS {
            w.step().await;
        }
        w.e.settle(None).await.unwrap();
        w.check(true).await;
    }
}
