//! Histories made by hand, for the tests of this folder: record n is of second n.

use super::{Ref, RefKind};
use crate::{
    clock::Timestamp,
    ids::{BranchId, CommitNo, SchemaVersion, Sn},
    lineage::{Cut, Lineage, SnRange, SnSet},
    manifest::{StreamState, apply::coalesced, edit::RecordInfo},
    testkit::defs,
    verb::Verb,
};
use std::sync::Arc;

pub struct History {
    pub state: StreamState,
    /// The next commit.
    pub commit: u64,
}

impl History {
    pub fn new() -> Self {
        Self { state: StreamState::new(defs::stream("s", vec![])), commit: 1 }
    }

    pub fn time(&self, sn: u64) -> Timestamp {
        Timestamp::from_secs(sn as i64)
    }

    fn record(&mut self, branch: BranchId, verb: Verb, parent: Option<Sn>) -> Sn {
        let sn = self.state.applied_sn.next();
        let parent = parent.unwrap_or_else(|| self.state.head_of(branch));
        let record = RecordInfo {
            sn,
            count: 1,
            parent,
            branch,
            time: self.time(sn.0),
            verb,
            rows_added: if verb == Verb::Insert { 10 } else { 0 },
            rows_deleted: 0,
            schema_version: SchemaVersion(1),
            key: None,
            runs: None,
            since: None,
        };
        self.state.readable.insert(record.hull());
        self.state.applied_sn = sn;
        self.state.heads.insert_mut(branch, sn);
        self.state.records.insert_mut(sn, Arc::new(record));
        sn
    }

    pub fn insert(&mut self) -> Sn {
        self.insert_on(BranchId::MAIN)
    }
    pub fn insert_on(&mut self, branch: BranchId) -> Sn {
        self.record(branch, Verb::Insert, None)
    }
    pub fn inserts(&mut self, n: u64) {
        (0..n).for_each(|_| _ = self.insert());
    }
    pub fn delete_on(&mut self, branch: BranchId) -> Sn {
        self.record(branch, Verb::Delete, None)
    }

    pub fn edit_lineage(&mut self, branch: BranchId, verb: Verb, parent: Option<Sn>, base: &[(BranchId, SnSet)]) -> Sn {
        let sn = self.record(branch, verb, parent);
        let mut all = self.state.lineages.get(&branch).unwrap().as_ref().clone();
        all.push(Lineage::edited(branch, sn, base));
        self.state.lineages.insert_mut(branch, Arc::new(all));
        sn
    }
    pub fn rollback(&mut self, to: u64) -> Sn {
        let of = self.state.line_of(Sn(to)).unwrap().branch;
        let base = self.state.lineage(of, Sn(to)).unwrap().clipped(Sn(to));
        self.edit_lineage(BranchId::MAIN, Verb::Rollback, Some(Sn(to)), &base)
    }
    pub fn fast_forward(&mut self, to: BranchId) -> Sn {
        let head = self.state.head_of(to);
        let base = self.state.lineage(to, head).unwrap().clipped(head);
        self.edit_lineage(BranchId::MAIN, Verb::FastForward, Some(head), &base)
    }
    pub fn cherry_pick(&mut self, n: Sn) -> Sn {
        let of = self.state.line_of(n).unwrap().branch;
        let head = self.state.applied_sn;
        let mut base = self.state.lineage(BranchId::MAIN, head).unwrap().clipped(head);
        match base.iter_mut().find(|(b, _)| *b == of) {
            Some((_, set)) => set.insert(SnRange { after: Sn(n.0 - 1), to: n }),
            None => base.push((of, SnSet::one(n))),
        }
        self.edit_lineage(BranchId::MAIN, Verb::CherryPick, None, &base)
    }

    fn horizon(&mut self) -> CommitNo {
        self.commit += 1;
        CommitNo(self.commit - 1)
    }

    pub fn tag(&mut self, name: &str, sn: u64) -> Ref {
        let branch = self.state.line_of(Sn(sn)).unwrap().branch;
        let cut = Cut { branch, sn: Sn(sn), horizon: self.horizon() };
        let r = plain(name, RefKind::Tag, cut, Sn(sn));
        self.state.set_ref(&r, None).unwrap();
        r
    }
    pub fn branch(&mut self, name: &str) -> BranchId {
        let head = self.state.head_of(BranchId::MAIN);
        self.branch_at(name, head.0)
    }
    pub fn branch_at(&mut self, name: &str, sn: u64) -> BranchId {
        let id = self.state.next_branch;
        let of = self.state.line_of(Sn(sn)).map_or(BranchId::MAIN, |l| l.branch);
        let lineage = Lineage::forked(self.state.lineage(of, Sn(sn)).unwrap(), Sn(sn), id);
        let r = plain(name, RefKind::Branch, Cut { branch: id, sn: Sn(u64::MAX), horizon: self.horizon() }, Sn(sn));
        self.state.set_ref(&r, Some(&lineage)).unwrap();
        id
    }
    pub fn change(&mut self, name: &str, change: impl FnOnce(&mut Ref)) {
        let mut r = self.state.refs.get(name).unwrap().as_ref().clone();
        change(&mut r);
        self.state.refs.insert_mut(name.to_owned(), Arc::new(r));
    }

    pub fn forget(&mut self, after: u64, to: u64) {
        self.state.forget(&[SnRange { after: Sn(after), to: Sn(to) }]);
    }

    /// Lines `from..=to` as one.
    pub fn join(&mut self, from: u64, to: u64) {
        let mut line = self.state.records.get(&Sn(from)).unwrap().as_ref().clone();
        for sn in from + 1..=to {
            let next = self.state.records.get(&Sn(sn)).unwrap().clone();
            self.state.records.remove_mut(&line.sn);
            line = coalesced(&line, &next).unwrap();
            self.state.records.insert_mut(line.sn, Arc::new(line.clone()));
        }
    }

    /// What can be read.
    pub fn readable(&self) -> Vec<u64> {
        (1..=self.state.applied_sn.0).filter(|sn| self.state.readable.contains(Sn(*sn))).collect()
    }
}

fn plain(name: &str, kind: RefKind, cut: Cut, fork: Sn) -> Ref {
    Ref {
        name: name.to_owned(),
        kind,
        cut,
        fork,
        created_at: Timestamp(0),
        max_ref_age_ms: None,
        min_snapshots: None,
        max_snapshot_age_ms: None,
        schema_version: SchemaVersion(1),
    }
}
