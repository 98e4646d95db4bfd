//! What goes on beside the history: readers, leases, transactions, copies, and power that goes inside of a statement.

use super::{Model, Row, What, World, rows_of_values};
use crate::support::*;
use ebb_engine::{
    AsOf, Copies, DeleteRequest, ErrorKind, InsertOptions, Result, Timestamp,
    history::{NewReader, ReaderFrom},
};
use ebb_storage::{
    ids::{ColumnId, Sn},
    testkit::{crash_store::Unsynced, power::Cut},
};
use std::collections::BTreeSet;

/// A registered reader.
#[derive(Debug, Clone)]
pub struct Reading {
    position: u64,
    max_lag_ms: Option<i64>,
    /// It fell behind its MAX LAG once: what it keeps since is the engine's to say.
    lost: bool,
}

impl Model {
    /// Whether a reader keeps its promise, and so what it has not read is kept for it.
    fn keeps_up(&self, r: &Reading, now: Timestamp) -> bool {
        let Some(lag) = r.max_lag_ms else { return false };
        let unread = self.records.range(r.position + 1..).find(|(_, of)| of.branch == 0);
        !r.lost && unread.is_none_or(|(_, of)| of.at.0 + lag * 1000 >= now.0)
    }
}

impl World {
    /// Power that goes at one of the next calls, now and then.
    pub fn may_cut(&mut self) {
        if self.dice.below(5) == 0 {
            let cut = *self.dice.one_of(&[Cut::NotApplied, Cut::AppliedNotAcknowledged]);
            self.machine.power.cut_at(self.machine.power.calls() + 1 + self.dice.below(7), cut);
            self.did = format!("{}, power may go ({cut:?})", self.did);
        }
    }

    /// Opens what a cut has left, where there was one: whether there was.
    pub async fn ended_cut(&mut self) -> bool {
        if !self.machine.power.is_off() {
            self.machine.power.turn_on();
            return false;
        }
        let (now, unsynced) = (self.e.now(), *self.dice.one_of(&[Unsynced::Lost, Unsynced::Torn, Unsynced::Kept]));
        self.did = format!("{}, lost: {unsynced:?}", self.did);
        // Leases are of a running server.
        self.leases.clear();
        self.machine = self.machine.reopen(unsynced);
        self.e = open_on(&self.machine, now).await.unwrap_or_else(|e| panic!("{}: {e}", self.told()));
        true
    }

    pub async fn ends_cut(&mut self) {
        if self.ended_cut().await {
            assert_eq!(self.newest(), self.model.records.len() as u64, "{}", self.told());
        }
    }

    fn newest(&self) -> u64 {
        self.e.read().stream(self.s).unwrap().head_sn.0
    }

    /// What a statement that writes one record said; after a loss of power, whether its record is there. `None`: it never was.
    pub async fn done_or_found(&mut self, done: Result<u64>) -> Option<Result<u64>> {
        if !self.ended_cut().await {
            return Some(done);
        }
        let (newest, before) = (self.newest(), self.model.records.len() as u64);
        assert!(newest <= before + 1, "{}: {newest} after {before}", self.told());
        match done {
            Ok(sn) => assert_eq!(newest, sn, "{}: it was acknowledged", self.told()),
            Err(_) if newest == before => return None,
            Err(_) => {}
        }
        Some(Ok(newest))
    }

    /// Rules take what is due, but for what a reader with MAX LAG may keep: that is looked at.
    pub async fn age(&mut self) {
        let now = self.e.now();
        self.look_at_lags();
        if self.readers.values().all(|r| r.max_lag_ms.is_none()) {
            return self.model.age(now);
        }
        let (mut expected, mut found) = (BTreeSet::new(), BTreeSet::new());
        let state = self.e.read().state(self.s).unwrap();
        let of_main = self.model.records.iter().filter(|(_, r)| r.branch == 0).map(|(sn, _)| *sn);
        let readable: Vec<u64> = of_main.filter(|sn| state.readable.contains(Sn(*sn))).collect();
        for sn in readable {
            expected.extend(self.model.values(&self.model.sees(sn), u64::MAX));
            let view = self.e.read().stream_as_of(self.s, &AsOf::Sn(Sn(sn)), now).unwrap();
            found.extend(self.rows(&view).await.into_iter().map(|(v, _)| v));
        }
        let kept: Vec<u64> = self.readers.values().filter(|r| self.model.keeps_up(r, now)).map(|r| r.position).collect();
        let told = self.told();
        self.model.take_due(now, |v, row| {
            let there = found.contains(&v);
            if expected.contains(&v) && kept.iter().any(|at| row.sn > *at) {
                assert!(there, "{told}: a reader has not read {v} of {}", row.sn);
            }
            !there
        });
    }

    /// What a reader that keeps up has not read stays readable.
    pub fn readers_keep(&mut self, now: &BTreeSet<u64>) {
        self.look_at_lags();
        for (name, r) in self.readers.iter().filter(|(_, r)| self.model.keeps_up(r, self.e.now())) {
            let unread = self.readable.iter().filter(|sn| **sn >= r.position && self.model.records[sn].branch == 0);
            let lost: Vec<_> = unread.filter(|sn| !now.contains(sn)).collect();
            assert!(lost.is_empty(), "{}: {lost:?} were forgotten, and reader {name} stands at {}", self.told(), r.position);
        }
    }

    fn look_at_lags(&mut self) {
        let (model, now) = (&self.model, self.e.now());
        self.readers.values_mut().filter(|r| !model.keeps_up(r, now)).for_each(|r| r.lost |= r.max_lag_ms.is_some());
    }

    pub async fn check_readers(&mut self) {
        self.look_at_lags();
        let head = self.model.head(0);
        for info in self.e.readers() {
            let r = self.readers[&info.name].clone();
            assert_eq!(info.sn.0, r.position, "{}", self.told());
            let stands = self.model.is_ancestor(r.position, head);
            let expected = match (r.position, self.readable.contains(&r.position)) {
                (0, _) => "ok",
                (_, true) if stands => "ok",
                (_, true) => "rolled_back",
                _ => "expired",
            };
            let lost = info.state == "cut_off" && r.lost;
            assert!(info.state == expected || lost, "{}: {info:?}, {expected} {r:?}", self.told());
            let changes = self.e.read().changes(self.s, Sn(r.position), None);
            if expected != "ok" {
                assert!(changes.is_err(), "{}: {info:?}", self.told());
                continue;
            }
            let changes = changes.unwrap_or_else(|e| panic!("{}: {info:?}: {e}", self.told()));
            let (before, after) =
                (self.model.values(&self.model.sees(r.position), u64::MAX), self.model.values(&self.model.sees(head), u64::MAX));
            let less = |a: &[i64], b: &[i64]| a.iter().copied().filter(|v| !b.contains(v)).collect::<Vec<_>>();
            let added: Vec<i64> = self.rows(&changes.added).await.into_iter().map(|(v, _)| v).collect();
            let removed: Vec<i64> = self.rows(&changes.removed).await.into_iter().map(|(v, _)| v).collect();
            assert_eq!((added, removed), (less(&after, &before), less(&before, &after)), "{}: from {}", self.told(), r.position);
        }
        assert_eq!(self.e.readers().len(), self.readers.len(), "{}", self.told());
    }

    pub async fn create_reader(&mut self) {
        let name = format!("r{}", self.dice.below(3));
        let max_lag_ms = (self.dice.below(2) == 0).then_some(86_400_000 * (1 + self.dice.below(3)) as i64);
        let all: Vec<u64> = self.readable.iter().copied().collect();
        let (from, position) = match self.dice.below(3) {
            0 => (ReaderFrom::Earliest, 0),
            1 if !all.is_empty() => {
                let sn = *self.dice.one_of(&all);
                (ReaderFrom::Sn(Sn(sn)), sn)
            }
            _ => (ReaderFrom::Latest, self.model.head(0)),
        };
        self.did = format!("reader {name} from {position} MAX LAG {max_lag_ms:?}");
        let reading = Reading { position, max_lag_ms, lost: false };
        let new = NewReader { name: name.clone(), stream: self.s, from, max_lag_ms, if_not_exists: false };
        match self.e.create_reader(new).await {
            Ok(_) => {
                assert!(!self.readers.contains_key(&name) && self.model.is_ancestor(position, self.model.head(0)), "{}", self.told());
                self.readers.insert(name, reading);
            }
            Err(e) if e.kind() == ErrorKind::Invalid => {
                assert!(!self.model.is_ancestor(position, self.model.head(0)), "{}: {e}", self.told())
            }
            Err(e) => {
                let behind = max_lag_ms.is_some() && !self.model.keeps_up(&reading, self.e.now());
                assert!(self.readers.contains_key(&name) || behind, "{}: {e}", self.told());
            }
        }
    }

    pub async fn advance_reader(&mut self) {
        let names: Vec<String> = self.readers.keys().cloned().collect();
        let all: Vec<u64> = self.readable.iter().copied().chain([0]).collect();
        if names.is_empty() {
            return;
        }
        let (name, sn) = (self.dice.one_of(&names).clone(), *self.dice.one_of(&all));
        self.did = format!("advance of {name} to {sn}");
        let stands = self.model.is_ancestor(sn, self.model.head(0));
        match self.e.advance_reader(&name, Sn(sn)).await {
            Ok(()) => {
                assert!(stands, "{}", self.told());
                let max_lag_ms = self.readers[&name].max_lag_ms;
                self.readers.insert(name, Reading { position: sn, max_lag_ms, lost: false });
            }
            Err(e) => assert!(!stands && e.kind() == ErrorKind::Invalid, "{}: {e}", self.told()),
        }
    }

    pub async fn drop_reader(&mut self) {
        let names: Vec<String> = self.readers.keys().cloned().collect();
        if !names.is_empty() {
            let name = self.dice.one_of(&names).clone();
            self.did = format!("drop of reader {name}");
            self.e.drop_reader(&name, false).await.unwrap();
            self.readers.remove(&name);
        }
    }

    pub fn lease(&mut self) {
        self.did = "a lease".to_owned();
        let now = self.e.now();
        self.leases.retain(|(.., until)| *until > now);
        if self.leases.len() > 2 {
            let given_back = self.dice.below(3) as usize;
            self.leases.remove(given_back);
        }
        // A branch that is dropped takes its records along, leased or not.
        let all: Vec<u64> = self.readable.iter().copied().filter(|sn| self.model.records[sn].branch == 0).collect();
        if !all.is_empty() {
            let (sn, hours) = (*self.dice.one_of(&all), 1 + self.dice.below(20) as i64);
            let until = Timestamp(now.0 + hours * 3_600_000_000);
            let lease = self.e.lease(self.s, &AsOf::Sn(Sn(sn)), until).unwrap_or_else(|e| panic!("{}: {e}", self.told()));
            self.leases.push((lease, sn, until));
        }
    }

    /// A few inserts, staged or not, and a delete that may take rows of them, all or nothing.
    pub async fn transaction(&mut self) {
        let now = self.e.now();
        let mut of = self.model.branches();
        of.retain(|(name, _)| self.model.names.get(name).is_none_or(|n| n.ends.is_none_or(|at| at > now)));
        let (name, branch) = self.dice.one_of(&of).clone();
        let horizon = self.model.names.get(&name).map_or(u64::MAX, |n| n.horizon);
        let on = (branch > 0).then_some(name.clone());
        let mut inserts: Vec<(Vec<(i64, i64)>, bool)> = Vec::new();
        for _ in 0..1 + self.dice.below(3) {
            let n = 1 + self.dice.below(3) as i64;
            let vs: Vec<i64> = (self.model.next_v..self.model.next_v + n).collect();
            self.model.next_v += n;
            inserts.push((vs.iter().map(|v| (self.some_time() + v, *v)).collect(), self.dice.below(3) == 0));
        }
        self.did = format!("transaction on {name} of {inserts:?}");
        let mut transaction = self.e.transaction();
        for (of, staged) in &inserts {
            let (batch, schema_version) = rows_of_values(&self.e, self.s, of);
            let options = InsertOptions { branch: on.clone(), schema_version, ..v1() };
            match staged {
                true => {
                    let mut staged = self.e.stage(self.s, options).await.unwrap();
                    staged.push(batch).await.unwrap();
                    transaction.add_staged(staged).await.unwrap();
                }
                false => _ = transaction.insert(self.s, vec![batch], options).await.unwrap(),
            }
        }
        let sees = self.model.sees(self.model.head(branch));
        let mut there = self.model.values(&sees, horizon);
        there.extend(inserts.iter().flat_map(|(of, _)| of.iter().map(|(_, v)| *v)));
        let mut deleted = None;
        if self.dice.below(2) == 0 {
            let v = *self.dice.one_of(&there);
            self.did = format!("{}, without {v}", self.did);
            let read = self.e.read();
            let view = read.stream_as_of(self.s, &AsOf::Name(name.clone()), now).unwrap();
            let request = DeleteRequest { branch: on, ..deleting(&self.e, self.s, &format!("v = {v}")) };
            assert_eq!(transaction.delete(&read, view, request).await.unwrap(), 1, "{}", self.told());
            deleted = Some(v);
        }
        self.may_cut();
        let done = transaction.commit().await;
        // Rows of its own that it deletes again are never written, but for staged ones; an insert of which none is left is no record.
        let mut records = Vec::new();
        for (of, staged) in &inserts {
            let left: Vec<(i64, i64)> = of.iter().copied().filter(|(_, v)| *staged || deleted != Some(*v)).collect();
            let own = left.len() < of.len();
            if own {
                deleted = None;
            }
            if !left.is_empty() {
                records.push((left, What::Moved));
            }
        }
        let all = records.len() as u64 + u64::from(deleted.is_some());
        let before = self.model.records.len() as u64;
        if self.ended_cut().await {
            let newest = self.newest();
            assert!(newest == before + all || done.is_err() && newest == before, "{}: {newest} after {before}", self.told());
            if newest == before {
                return;
            }
        } else {
            done.unwrap_or_else(|e| panic!("{}: {e}", self.told()));
            assert_eq!(self.newest(), before + all, "{}", self.told());
        }
        let mut sees = sees;
        let mut sn = before;
        for (of, _) in records {
            sn += 1;
            for (ts, v) in &of {
                self.model.rows.insert(*v, Row { ts: *ts, branch, sn, expired: None });
            }
            self.model.new_record(branch, sn, What::Inserted(of.iter().map(|(_, v)| *v).collect()), sees.clone());
            sees.insert(sn);
        }
        if let Some(v) = deleted {
            self.model.new_record(branch, sn + 1, What::Deleted(BTreeSet::from([v])), sees);
        }
    }

    /// Of the rows of a host, which all have, one is left in each partition: that of the lowest record.
    pub async fn deduplicate(&mut self) {
        self.e.settle(None).await.unwrap();
        self.model.end_names(self.e.now());
        self.age().await;
        self.look(true);
        self.did = "copies of a host".to_owned();
        let view = self.e.read().stream(self.s).unwrap();
        let before = self.rows(&view).await;
        let now = self.e.now();
        let copies = Copies { by: Some(vec![ColumnId(1)]), schema_version: view.def.schema_version };
        let told = self.e.optimize_without(self.s, None, false, Some(&copies)).await.unwrap();
        let after = self.rows(&self.e.read().stream(self.s).unwrap()).await;
        let model = &self.model;
        // Rows that are due and wait for a reader take no part; the optimizing that follows may take them.
        let group = |v: i64| (!model.is_due(&model.rows[&v], now)).then(|| model.rows[&v].ts / (30 * DAY));
        let there: BTreeSet<i64> = after.iter().map(|(v, _)| *v).collect();
        let gone: BTreeSet<i64> = before.iter().map(|(v, _)| *v).filter(|v| !there.contains(v) && group(*v).is_some()).collect();
        assert_eq!(told.copies.rows, gone.len() as u64, "{}: {gone:?}", self.told());
        let groups: BTreeSet<i64> = before.iter().filter_map(|(v, _)| group(*v)).collect();
        for of in groups {
            let least = before.iter().filter(|(v, _)| group(*v) == Some(of)).map(|(_, sn)| *sn).min();
            // By the records that they said before: optimizing may have rounded them.
            let left: Vec<i64> = before.iter().filter(|(v, _)| group(*v) == Some(of) && there.contains(v)).map(|(_, sn)| *sn).collect();
            assert_eq!((left.len(), left.first().copied()), (1, least), "{}", self.told());
        }
        if let Some(sn) = told.copies.sn {
            let sees = self.model.sees(self.model.head(0));
            self.model.new_record(0, sn.0, What::Deleted(gone), sees);
            self.copies.insert(sn.0);
        }
        self.age().await;
        self.look(false);
        self.check(true).await;
    }
}
