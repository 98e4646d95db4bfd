//! The engine's history beside a model of it: one seed drives inserts, deletes, transactions, columns, rollbacks, fast-forwards,
//! cherry-picks, branches, tags, readers, leases, copies, merges, rules, expiry, a moving clock and losses of power, between statements and
//! inside of them; every cut that is kept reads exactly what the model says.
//!
//! The model knows nothing of intervals, parts or files: a state is the set of records that it sees, a row is there if one of them wrote it
//! and none of them deleted it, and a rule takes it from whoever had not named it before. What is kept is the engine's own word, checked
//! against what must be: heads, tags and what a rollback may go back to.
//! `EBB_MODEL_SEEDS=from..to` runs other seeds.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

#[path = "history_model/beside.rs"]
mod beside;
mod support;

use arrow::array::{RecordBatch, new_null_array};
use beside::Reading;
use ebb_engine::{
    AsOf, DeleteRequest, Engine, ErrorKind, InsertOptions, LivePart, StreamView, Timestamp,
    history::{NewRef, Overrides, ReadLease, RefMode, RollbackTo},
};
use ebb_storage::{
    column_type::ColumnType,
    ids::{Generation, PartId, SchemaVersion, Sn, StreamId},
    interval::Interval,
    manifest::invariants,
    refs::RefKind,
    stream_def::ColumnDef,
    testkit::crash_store::CrashDisk,
};
use std::{
    collections::{BTreeMap, BTreeSet, HashMap, hash_map::Entry},
    sync::Arc,
};
use support::*;

const SEEDS: std::ops::Range<u64> = 0..24;
const STEPS: usize = 40;
/// Rows come due this long after their time.
const LIFE_DAYS: i64 = 3;

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
    fn one_of<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len() as u64) as usize]
    }
}

/// Which branch, in the order of their making; 0 is main.
type Branch = usize;

#[derive(Debug, Clone)]
enum What {
    Inserted(Vec<i64>),
    Deleted(BTreeSet<i64>),
    Moved,
}

#[derive(Debug, Clone)]
struct Record {
    branch: Branch,
    what: What,
    /// What its branch sees from it on: records.
    sees: BTreeSet<u64>,
    /// The record that it stands on.
    parent: u64,
    at: Timestamp,
}

#[derive(Debug, Clone)]
struct Row {
    ts: i64,
    branch: Branch,
    sn: u64,
    /// At which of the model's moments a rule took it.
    expired: Option<u64>,
}

#[derive(Debug, Clone)]
struct Name {
    kind: RefKind,
    /// Of a tag the record it names.
    sn: u64,
    branch: Branch,
    /// Removals by rules before this moment count.
    horizon: u64,
    ends: Option<Timestamp>,
}

struct Model {
    records: BTreeMap<u64, Record>,
    rows: BTreeMap<i64, Row>,
    names: BTreeMap<String, Name>,
    /// Of each branch its newest record; 0: none.
    heads: Vec<u64>,
    moment: u64,
    next_v: i64,
    now: Timestamp,
}

impl Model {
    fn sees(&self, sn: u64) -> BTreeSet<u64> {
        self.records.get(&sn).map(|r| r.sees.clone()).unwrap_or_default()
    }
    fn head(&self, branch: Branch) -> u64 {
        self.heads[branch]
    }
    fn new_record(&mut self, branch: Branch, sn: u64, what: What, sees: BTreeSet<u64>) {
        self.new_on(branch, sn, what, sees, self.heads[branch]);
    }
    fn new_on(&mut self, branch: Branch, sn: u64, what: What, sees: BTreeSet<u64>, parent: u64) {
        assert_eq!(sn, self.records.len() as u64 + 1, "sns are dense");
        let mut sees = sees;
        sees.insert(sn);
        self.records.insert(sn, Record { branch, what, sees, parent, at: self.now });
        self.heads[branch] = sn;
    }
    /// Values seen by a set of records, by somebody for whom removals by rules count up to `horizon`.
    fn values(&self, sees: &BTreeSet<u64>, horizon: u64) -> Vec<i64> {
        let mut seen = BTreeSet::new();
        let mut gone = BTreeSet::new();
        for sn in sees {
            match &self.records[sn].what {
                What::Inserted(vs) => seen.extend(vs.iter().copied()),
                What::Deleted(vs) => gone.extend(vs.iter().copied()),
                What::Moved => {}
            }
        }
        let expired = |v: &i64| self.rows[v].expired.is_some_and(|at| at <= horizon);
        seen.into_iter().filter(|v| !gone.contains(v) && !expired(v)).collect()
    }
    /// As a record's number reads it: of main, or of a branch that has no name any more, by the newest horizon.
    fn at(&self, sn: u64) -> Vec<i64> {
        let branch = self.records[&sn].branch;
        let named = self.names.values().find(|n| n.kind == RefKind::Branch && n.branch == branch);
        self.values(&self.sees(sn), named.map_or(u64::MAX, |n| n.horizon))
    }
    fn named(&self, name: &Name) -> Vec<i64> {
        let sn = if name.kind == RefKind::Tag { name.sn } else { self.head(name.branch) };
        self.values(&self.sees(sn), name.horizon)
    }
    /// Rules take what is due from main, and from what main has taken over.
    fn age(&mut self, now: Timestamp) {
        self.take_due(now, |_, _| true);
    }
    /// Those of which `gone` says so.
    fn take_due(&mut self, now: Timestamp, gone: impl Fn(i64, &Row) -> bool) {
        self.moment += 1;
        let main = self.sees(self.head(0));
        for (v, row) in &mut self.rows {
            let aged = row.branch == 0 || main.contains(&row.sn);
            if aged && row.expired.is_none() && row.ts + LIFE_DAYS * DAY <= now.0 && gone(*v, row) {
                row.expired = Some(self.moment);
            }
        }
    }
    fn is_due(&self, row: &Row, now: Timestamp) -> bool {
        row.ts + LIFE_DAYS * DAY <= now.0
    }
    /// Whether `of` is `sn` or stands on it.
    fn is_ancestor(&self, sn: u64, of: u64) -> bool {
        let mut at = of;
        while at > sn {
            at = self.records[&at].parent;
        }
        at == sn
    }
    fn end_names(&mut self, now: Timestamp) {
        self.names.retain(|_, n| n.ends.is_none_or(|at| at > now));
    }
    fn branches(&self) -> Vec<(String, Branch)> {
        let named = self.names.iter().filter(|(_, n)| n.kind == RefKind::Branch);
        std::iter::once(("main".to_owned(), 0)).chain(named.map(|(name, n)| (name.clone(), n.branch))).collect()
    }
}

struct World {
    dice: Dice,
    machine: CrashDisk,
    e: Arc<Engine>,
    s: StreamId,
    model: Model,
    readable: BTreeSet<u64>,
    seed: u64,
    step: usize,
    did: String,
    /// Rows of files, which never change.
    files: HashMap<(PartId, Generation), Vec<(i64, i64)>>,
    readers: BTreeMap<String, Reading>,
    /// With the record that each keeps, and until when.
    leases: Vec<(ReadLease, u64, Timestamp)>,
    /// Records that removed copies: they cannot be picked.
    copies: BTreeSet<u64>,
}

impl World {
    async fn new(seed: u64) -> Self {
        let machine = CrashDisk::default();
        let e = open_on(&machine, START).await.unwrap();
        let mut d = with(def("s", vec![delete(&format!("ts + {LIFE_DAYS} days"), None, 1)]), "merge_with_ttl_timeout", 0);
        // Less than a day: most of what is left aside goes on the way.
        d = with(d, "history_max_snapshot_age_ms", 1 + (seed % 3) as i64 * 40_000_000);
        d = with(d, "history_min_snapshots_to_keep", 1 + (seed % 4) as i64);
        if seed.is_multiple_of(5) {
            d = with(d, "history_max_snapshots", 6);
        }
        let s = e.create_stream(d, false).await.unwrap();
        let (records, rows, names) = Default::default();
        let model = Model { records, rows, names, heads: vec![0], moment: 0, next_v: 0, now: START };
        Self {
            dice: Dice(seed),
            machine,
            e,
            s,
            model,
            readable: BTreeSet::new(),
            seed,
            step: 0,
            did: String::new(),
            files: HashMap::new(),
            readers: BTreeMap::new(),
            leases: Vec::new(),
            copies: BTreeSet::new(),
        }
    }

    fn told(&self) -> String {
        format!("seed {} step {} after {}", self.seed, self.step, self.did)
    }

    /// What the engine says can be read; only an expiry or a dropped ref takes from it.
    fn look(&mut self, may_shrink: bool) {
        let state = self.e.read().state(self.s).unwrap();
        let now: BTreeSet<u64> = (1..=self.model.records.len() as u64).filter(|sn| state.readable.contains(Sn(*sn))).collect();
        let before: BTreeSet<u64> = self.readable.clone();
        if !may_shrink {
            assert!(now.is_superset(&before), "{}: {:?} were forgotten", self.told(), before.difference(&now).collect::<Vec<_>>());
        }
        let newest: BTreeSet<u64> = now.difference(&before).copied().collect();
        assert!(newest.iter().all(|sn| before.last().is_none_or(|last| sn > last)), "{}: {newest:?} came back", self.told());
        let live = self.model.names.values().filter(|n| n.ends.is_none_or(|at| at > self.e.now()));
        let kept = live.map(|n| if n.kind == RefKind::Tag { n.sn } else { self.model.head(n.branch) });
        let leased = self.leases.iter().filter(|(.., until)| *until > self.e.now()).map(|(_, sn, _)| *sn);
        for sn in kept.chain([self.model.head(0)]).chain(leased).filter(|sn| *sn > 0) {
            assert!(now.contains(&sn), "{}: {sn} is a head or named, and forgotten", self.told());
        }
        self.readers_keep(&now);
        self.readable = now;
    }

    /// (v, sn) of the rows of a view.
    async fn rows(&mut self, view: &StreamView) -> Vec<(i64, i64)> {
        let mut out = Vec::new();
        for part in &view.parts {
            let key = (part.meta.id, part.meta.placement.generation);
            if let Entry::Vacant(file) = self.files.entry(key) {
                let whole = LivePart { hidden: None, sns: None, ..part.clone() };
                let mut alone = view.clone();
                (alone.parts, alone.tail) = (vec![whole], Vec::new());
                let in_order = rows_in_order(&alone).await;
                file.insert(in_order);
            }
            for (i, (v, sn)) in self.files[&key].iter().enumerate() {
                let seen = part.sns.as_ref().is_none_or(|set| set.contains(Sn(*sn as u64)));
                if seen && part.hidden.as_ref().is_none_or(|h| !h.0.contains(i as u32)) {
                    out.push((*v, *sn));
                }
            }
        }
        let mut rest = view.clone();
        rest.parts.clear();
        out.extend(rows_of(&rest).await);
        out.sort_unstable();
        out
    }

    async fn reads(&mut self, at: AsOf, expected: Vec<i64>) {
        let view = self.e.read().stream_as_of(self.s, &at, self.e.now()).unwrap_or_else(|e| panic!("{}: {at:?}: {e}", self.told()));
        let found: Vec<i64> = self.rows(&view).await.into_iter().map(|(v, _)| v).collect();
        assert_eq!(found, expected, "{}: {at:?}", self.told());
    }

    /// All cuts, or some.
    async fn check(&mut self, all: bool) {
        assert_eq!(invariants::violations(&self.e.manifest()), Vec::<String>::new(), "{}", self.told());
        assert_eq!(self.e.faults_of_records().await.unwrap(), Vec::<String>::new(), "{}", self.told());
        self.reads(AsOf::Name("main".into()), self.model.values(&self.model.sees(self.model.head(0)), u64::MAX)).await;
        for (name, n) in self.model.names.clone() {
            match n.ends.is_none_or(|at| at > self.e.now()) {
                true => self.reads(AsOf::Name(name), self.model.named(&n)).await,
                false => {
                    let refused = self.e.read().stream_as_of(self.s, &AsOf::Name(name), self.e.now());
                    assert_eq!(refused.err().unwrap().kind(), ErrorKind::NotFound, "{}", self.told());
                }
            }
        }
        for sn in self.readable.clone() {
            if all || self.dice.below(4) == 0 {
                self.reads(AsOf::Sn(Sn(sn)), self.model.at(sn)).await;
            }
        }
        self.check_readers().await;
        let gone: Vec<u64> = (1..=self.model.records.len() as u64).filter(|sn| !self.readable.contains(sn)).collect();
        if !gone.is_empty() {
            let sn = *self.dice.one_of(&gone);
            assert!(self.e.read().stream_as_of(self.s, &AsOf::Sn(Sn(sn)), self.e.now()).is_err(), "{}: {sn}", self.told());
        }
    }

    async fn insert(&mut self) {
        let (name, branch) = {
            let of = self.model.branches();
            self.dice.one_of(&of).clone()
        };
        let n = 1 + self.dice.below(6) as i64;
        let vs: Vec<i64> = (self.model.next_v..self.model.next_v + n).collect();
        self.model.next_v += n;
        let of: Vec<(i64, i64)> = vs.iter().map(|v| (self.some_time() + v, *v)).collect();
        let (batch, schema_version) = rows_of_values(&self.e, self.s, &of);
        let options = InsertOptions { branch: (branch > 0).then_some(name.clone()), schema_version, ..v1() };
        self.did = format!("insert of {vs:?} to {name}");
        let expired = self.model.names.get(&name).is_some_and(|n| n.ends.is_some_and(|at| at <= self.e.now()));
        self.may_cut();
        let sn = match self.dice.below(4) {
            0 => {
                let staged = self.e.stage(self.s, options).await;
                match staged {
                    Ok(mut staged) => match staged.push(batch).await {
                        Ok(_) => staged.finish().await.map(|i| i.sn.0),
                        Err(e) => Err(e),
                    },
                    Err(e) => Err(e),
                }
            }
            _ => self.e.insert(self.s, vec![batch], options).await.map(|i| i.sn.0),
        };
        let Some(sn) = self.done_or_found(sn).await else { return };
        let Ok(sn) = sn else { return assert!(expired, "{}: {}", self.told(), sn.unwrap_err()) };
        for (ts, v) in of {
            self.model.rows.insert(v, Row { ts, branch, sn, expired: None });
        }
        let sees = self.model.sees(self.model.head(branch));
        self.model.new_record(branch, sn, What::Inserted(vs), sees);
    }

    /// Some are old already, some of another partition.
    fn some_time(&mut self) -> i64 {
        self.e.now().0 - self.dice.below(5) as i64 * DAY + self.dice.below(2) as i64 * 30 * DAY
    }

    async fn delete(&mut self) {
        let (name, branch) = {
            let of = self.model.branches();
            self.dice.one_of(&of).clone()
        };
        let live = self.model.names.get(&name);
        if live.is_some_and(|n| n.ends.is_some_and(|at| at <= self.e.now())) {
            return;
        }
        let horizon = live.map_or(u64::MAX, |n| n.horizon);
        let sees = self.model.sees(self.model.head(branch));
        let there = self.model.values(&sees, horizon);
        let v = if there.is_empty() || self.dice.below(8) == 0 { -1 } else { *self.dice.one_of(&there) };
        self.did = format!("delete of {v} from {name}");
        let request = DeleteRequest { branch: (branch > 0).then_some(name), ..deleting(&self.e, self.s, &format!("v = {v}")) };
        self.may_cut();
        let done = self.e.delete(request).await;
        if let Ok(done) = &done {
            assert_eq!((done.rows, done.sn.is_some()), (u64::from(v >= 0), v >= 0), "{}", self.told());
        }
        if v < 0 {
            return self.ends_cut().await;
        }
        if let Some(sn) = self.done_or_found(done.map(|d| d.sn.map_or(0, |sn| sn.0))).await {
            self.model.new_record(branch, sn.unwrap(), What::Deleted(BTreeSet::from([v])), sees);
        }
    }

    async fn rollback(&mut self) {
        if self.readable.is_empty() {
            return;
        }
        let all: Vec<u64> = self.readable.iter().copied().collect();
        let to = *self.dice.one_of(&all);
        self.did = format!("rollback to {to}");
        self.may_cut();
        let done = self.e.rollback(self.s, RollbackTo::Sn(Sn(to))).await;
        if let Ok(done) = &done {
            assert_eq!((done.previous_sn.0, done.target_sn.0), (self.model.head(0), to), "{}", self.told());
        }
        match self.done_or_found(done.map(|d| d.current_sn.0)).await {
            None => {}
            Some(Ok(sn)) => {
                let sees = self.model.sees(to);
                self.model.new_on(0, sn, What::Moved, sees, to);
            }
            Some(Err(e)) => {
                assert!(e.kind() == ErrorKind::Invalid && self.model.records[&to].branch > 0, "{}: {e}", self.told());
            }
        }
    }

    async fn fast_forward(&mut self) {
        let of = self.model.branches();
        let ((branch, moved), (to, target)) = (self.dice.one_of(&of).clone(), self.dice.one_of(&of).clone());
        let over = |name: &str| self.model.names.get(name).is_some_and(|n| n.ends.is_some_and(|at| at <= self.e.now()));
        if over(&branch) || over(&to) {
            return;
        }
        self.did = format!("fast_forward of {branch} to {to}");
        self.may_cut();
        let done = self.e.fast_forward(self.s, &branch, &to).await;
        if done.as_ref().is_ok_and(|d| d.current_sn == d.previous_sn) {
            return self.ends_cut().await;
        }
        if let Ok(done) = &done {
            assert_eq!(done.target_sn.0, self.model.head(target), "{}", self.told());
        }
        match self.done_or_found(done.map(|d| d.current_sn.0)).await {
            None => {}
            Some(Ok(sn)) => {
                let target = self.model.head(target);
                // Nothing that the branch had is lost but what a record of its own took.
                let sees = self.model.sees(target);
                self.model.new_on(moved, sn, What::Moved, sees, target);
                self.model.moment += 1;
                let moment = self.model.moment;
                if let Some(n) = self.model.names.get_mut(&branch) {
                    n.horizon = moment;
                }
            }
            Some(Err(e)) => assert_eq!(e.kind(), ErrorKind::Conflict, "{}: {e}", self.told()),
        }
    }

    async fn cherry_pick(&mut self) {
        if self.readable.is_empty() {
            return;
        }
        let all: Vec<u64> = self.readable.iter().copied().collect();
        let n = *self.dice.one_of(&all);
        self.did = format!("cherrypick of {n}");
        let mut sees = self.model.sees(self.model.head(0));
        let (has, moved) = (sees.contains(&n), matches!(self.model.records[&n].what, What::Moved) || self.copies.contains(&n));
        // A delete of rows that main does not have is picked after them.
        let main = self.model.values(&sees, u64::MAX);
        let idle = matches!(&self.model.records[&n].what, What::Deleted(vs) if !vs.iter().any(|v| main.contains(v)));
        self.may_cut();
        let done = self.e.cherrypick(self.s, Sn(n)).await;
        match self.done_or_found(done.map(|d| d.current_sn.0)).await {
            None => {}
            Some(Ok(sn)) => {
                assert!(!has && !moved, "{}", self.told());
                sees.insert(n);
                self.model.new_record(0, sn, What::Moved, sees);
            }
            Some(Err(e)) => {
                assert!((has || moved || idle) && matches!(e.kind(), ErrorKind::Conflict | ErrorKind::Invalid), "{}: {e}", self.told())
            }
        }
    }

    async fn name(&mut self) {
        let kind = if self.dice.below(2) == 0 { RefKind::Tag } else { RefKind::Branch };
        let name = format!("{}{}", if kind == RefKind::Tag { "t" } else { "b" }, self.dice.below(3));
        let all: Vec<u64> = self.readable.iter().copied().collect();
        let as_of = (!all.is_empty() && self.dice.below(2) == 0).then(|| *self.dice.one_of(&all));
        let retain_ms = (self.dice.below(2) == 0).then_some(86_400_000 * (1 + self.dice.below(4)) as i64);
        let mode = *self.dice.one_of(&[RefMode::Create, RefMode::CreateOrReplace]);
        let min_snapshots = (kind == RefKind::Branch && self.dice.below(2) == 0).then_some(self.dice.below(5));
        let new = NewRef {
            kind,
            mode,
            if_not_exists: false,
            name: name.clone(),
            as_of: as_of.map(|sn| AsOf::Sn(Sn(sn))),
            retain_ms,
            min_snapshots,
            max_snapshot_age_ms: None,
        };
        self.did = format!("{mode:?} of {kind:?} {name} at {as_of:?}");
        let exists = self.model.names.get(&name).is_some_and(|n| n.ends.is_none_or(|at| at > self.e.now()));
        let sn = as_of.unwrap_or(self.model.head(0));
        match self.e.create_ref(self.s, new).await {
            Ok(made) => {
                assert!(made.made && (!exists || mode == RefMode::CreateOrReplace), "{}", self.told());
                self.model.moment += 1;
                let branch = match kind {
                    RefKind::Tag => self.model.records[&sn].branch,
                    RefKind::Branch => {
                        self.model.heads.push(sn);
                        self.model.heads.len() - 1
                    }
                };
                let ends = retain_ms.map(|ms| Timestamp(self.e.now().0 + ms * 1000));
                self.model.names.insert(name, Name { kind, sn, branch, horizon: self.model.moment, ends });
                self.look(true);
            }
            Err(e) => assert!(exists || sn == 0, "{}: {e}", self.told()),
        }
    }

    async fn drop_name(&mut self) {
        let names: Vec<String> = self.model.names.keys().cloned().collect();
        if names.is_empty() {
            return;
        }
        let name = self.dice.one_of(&names).clone();
        self.did = format!("drop of {name}");
        self.e.drop_ref(self.s, self.model.names[&name].kind, &name, false).await.unwrap();
        self.model.names.remove(&name);
        self.look(true);
    }

    async fn expire(&mut self) {
        let retain_last = (self.dice.below(2) == 0).then(|| 1 + self.dice.below(4));
        let older_than = (self.dice.below(2) == 0).then_some(Timestamp::MAX);
        self.did = format!("expire {older_than:?} {retain_last:?}");
        let overrides = Overrides { older_than, retain_last, dry_run: false };
        let tried = self.e.expire_snapshots(self.s, Overrides { dry_run: true, ..overrides }).await.unwrap();
        self.may_cut();
        match self.e.expire_snapshots(self.s, overrides).await {
            Ok(done) => assert!(tried.snapshots_removed <= done.snapshots_removed, "{}: {tried:?} {done:?}", self.told()),
            Err(e) => assert!(self.machine.power.is_off(), "{}: {e}", self.told()),
        }
        if self.ended_cut().await {
            self.e.expire_snapshots(self.s, overrides).await.unwrap();
        }
        self.model.end_names(self.e.now());
        self.look(true);
    }

    async fn alter(&mut self) {
        self.did = "a new column".to_owned();
        let add = |d: &ebb_storage::stream_def::StreamDef| {
            let mut d = d.clone();
            let id = d.next_column;
            d.columns.push(ColumnDef { nullable: true, ..column(id.0, &format!("c{id}"), ColumnType::Int64) });
            d.next_column = id.next();
            Ok(d)
        };
        self.e.alter_stream(self.s, add).await.unwrap();
    }

    async fn power_loss(&mut self) {
        self.did = "loss of power".to_owned();
        self.machine.power.turn_off();
        self.ends_cut().await;
    }

    async fn step(&mut self) {
        match self.dice.below(42) {
            0..=8 => self.insert().await,
            9..=12 => self.delete().await,
            13..=14 => self.rollback().await,
            15..=16 => self.fast_forward().await,
            17..=18 => self.cherry_pick().await,
            19..=21 => self.name().await,
            22 => self.drop_name().await,
            23 => self.expire().await,
            24 => self.power_loss().await,
            25 if self.dice.below(3) == 0 => self.alter().await,
            25 => {
                self.did = "truncate".to_owned();
                self.may_cut();
                let done = self.e.truncate(self.s).await.map(|sn| sn.0);
                if let Some(sn) = self.done_or_found(done).await {
                    self.model.new_record(0, sn.unwrap(), What::Moved, BTreeSet::new());
                }
            }
            26 => {
                self.did = "flush".to_owned();
                self.may_cut();
                let done = self.e.flush(None).await;
                assert!(done.is_ok() || self.machine.power.is_off(), "{}", self.told());
                self.ends_cut().await;
            }
            27 => {
                self.did = "optimize".to_owned();
                let final_ = self.dice.below(2) == 0;
                self.may_cut();
                let done = self.e.optimize(self.s, None, final_).await;
                assert!(done.is_ok() || self.machine.power.is_off(), "{}", self.told());
                if self.ended_cut().await {
                    self.e.optimize(self.s, None, final_).await.unwrap();
                }
                self.age().await;
                self.look(false);
                return self.check(true).await;
            }
            28 => {
                self.did = "settle".to_owned();
                self.may_cut();
                let done = self.e.settle(None).await;
                assert!(done.is_ok() || self.machine.power.is_off(), "{}", self.told());
                if self.ended_cut().await {
                    self.e.settle(None).await.unwrap();
                }
                self.model.end_names(self.e.now());
                self.age().await;
                self.look(true);
                return self.check(true).await;
            }
            29..=30 => self.create_reader().await,
            31..=32 => self.advance_reader().await,
            33 => self.drop_reader().await,
            34..=35 => self.lease(),
            36..=38 => self.transaction().await,
            39 if self.dice.below(2) == 0 => return self.deduplicate().await,
            _ => {
                let hours = 1 + self.dice.below(40) as i64;
                self.did = format!("{hours} hours");
                self.e.advance_clock(Interval::seconds(hours * 3600)).unwrap();
                return;
            }
        }
        self.look(false);
        self.check(false).await;
    }
}

/// (ts, v) with NULL for columns that came later.
fn rows_of_values(e: &Engine, s: StreamId, of: &[(i64, i64)]) -> (RecordBatch, SchemaVersion) {
    let def = e.read().stream(s).unwrap().def;
    let plain = rows(&of.iter().map(|(ts, v)| ("h", *ts, *v)).collect::<Vec<_>>());
    let schema = def.row_schema();
    let mut columns = plain.columns().to_vec();
    let last = columns.pop().unwrap();
    while columns.len() + 1 < schema.fields().len() {
        columns.push(new_null_array(schema.field(columns.len()).data_type(), of.len()));
    }
    columns.push(last);
    (RecordBatch::try_new(schema, columns).unwrap(), def.schema_version)
}

fn seeds() -> std::ops::Range<u64> {
    let Ok(text) = std::env::var("EBB_MODEL_SEEDS") else { return SEEDS };
    let (from, to) = text.split_once("..").expect("from..to");
    from.parse().unwrap()..to.parse().unwrap()
}

// proves F11, F12
#[tokio::test]
async fn every_cut_that_is_kept_reads_what_it_read() {
    for seed in seeds() {
        let mut w = World::new(seed).await;
        for step in 0..STEPS {
            w.step = step;
            // Time goes by itself, too.
            w.e.advance_clock(Interval::seconds(w.dice.below(3) as i64)).unwrap();
            w.model.now = w.e.now();
            w.step().await;
        }
        w.did = "all of it".to_owned();
        w.check(true).await;
    }
}
