//! Refs, readers and forgotten snapshots as commits change them.

use super::*;
use crate::{
    ids::{BranchId, CommitNo},
    lineage::Cut,
    refs::{Ancestry, AsOf, Keep, Overrides, Pinning, Reader, Ref, RefKind, expiry},
    stream_def::SettingValue,
};

pub fn tag(name: &str, sn: u64) -> Ref {
    Ref {
        name: name.into(),
        kind: RefKind::Tag,
        cut: Cut { branch: BranchId::MAIN, sn: Sn(sn), horizon: CommitNo(1) },
        fork: Sn(sn),
        created_at: Timestamp(0),
        max_ref_age_ms: Some(315_360_000_000),
        min_snapshots: None,
        max_snapshot_age_ms: None,
        schema_version: SchemaVersion(1),
    }
}

pub fn branch(name: &str, id: u32, fork: u64) -> Ref {
    let cut = Cut { branch: BranchId(id), sn: Sn(u64::MAX), horizon: CommitNo(1) };
    Ref { kind: RefKind::Branch, cut, fork: Sn(fork), min_snapshots: Some(5), ..tag(name, fork) }
}

pub fn fork(id: u32, at: u64) -> Lineage {
    Lineage::forked(&Lineage::whole(BranchId::MAIN), Sn(at), BranchId(id))
}

pub fn reader(name: &str, stream: u64, sn: u64) -> Reader {
    let max_lag_ms = Some(1000);
    Reader { name: name.into(), stream: StreamId(stream), sn: Sn(sn), max_lag_ms, created_at: Timestamp(0), cut_off_at: None }
}

struct World(Manifest);

impl World {
    fn new() -> Self {
        let mut world = Self(Manifest::empty());
        world.apply(vec![Edit::CreateStream(Box::new(def(1, "a")))]).unwrap();
        for sn in 1..=5 {
            world.apply(vec![applied(1, sn)]).unwrap();
        }
        world
    }
    fn apply(&mut self, edits: Vec<Edit>) -> crate::Result<()> {
        let commit = Commit { no: self.0.no.next(), epoch: Epoch(0), nonce: String::new(), time: Timestamp(0), edits };
        self.0 = self.0.apply(&commit)?;
        assert_eq!(violations(&self.0), Vec::<String>::new());
        // A checkpoint keeps all of it.
        let image: Image = serde_json::from_str(&shown(&self.0)).unwrap();
        assert_eq!(shown(&image.into_manifest().unwrap()), shown(&self.0));
        Ok(())
    }
    fn state(&self) -> &StreamState {
        self.0.stream(StreamId(1)).unwrap()
    }
}

fn on_branch(id: u32, sn: u64, parent: u64) -> Edit {
    let record = RecordInfo { branch: BranchId(id), parent: Sn(parent), ..record(sn, Verb::Insert) };
    Edit::Apply { stream: StreamId(1), sn: Sn(sn), records: vec![record] }
}

#[test]
fn a_branch_comes_with_what_it_sees_and_goes_with_what_it_wrote() {
    let mut w = World::new();
    let s = StreamId(1);
    w.apply(vec![Edit::SetRef { stream: s, r: Box::new(branch("dev", 1, 5)), lineage: Some(fork(1, 5)) }]).unwrap();
    assert_eq!((w.state().head_of(BranchId(1)), w.state().next_branch), (Sn(5), BranchId(2)));
    w.apply(vec![on_branch(1, 6, 5)]).unwrap();
    assert_eq!((w.state().head_of(BranchId(1)), w.state().head_of(BranchId::MAIN)), (Sn(6), Sn(5)));
    let version = w.state().refs_version;
    w.apply(vec![Edit::DropRef { stream: s, name: "dev".into() }]).unwrap();
    assert!(w.state().refs_version > version);
    assert!(!w.state().records.contains_key(&Sn(6)) && !w.state().lineages.contains_key(&BranchId(1)));
    // What was on its way to it is dropped too, and its id is not given again.
    w.apply(vec![on_branch(1, 7, 6)]).unwrap();
    assert!(!w.state().readable.contains(Sn(7)) && w.state().applied_sn == Sn(7));
    let again = Edit::SetRef { stream: s, r: Box::new(branch("dev", 1, 5)), lineage: Some(fork(1, 5)) };
    assert_eq!(w.apply(vec![again]).unwrap_err().kind(), ErrorKind::Conflict);
}

#[test]
fn what_is_forgotten_is_never_readable_again() {
    let mut w = World::new();
    let s = StreamId(1);
    w.apply(vec![Edit::Forget { stream: s, sns: vec![SnRange { after: Sn(1), to: Sn(4) }] }]).unwrap();
    assert_eq!(w.state().records.keys().map(|sn| sn.0).collect::<Vec<_>>(), [1, 5]);
    assert_eq!(w.state().history_from(), Some(Sn(5)));
    w.apply(vec![applied(1, 6)]).unwrap();
    assert!(!w.state().readable.contains(Sn(3)));
    let late = Edit::SetRef { stream: s, r: Box::new(tag("late", 3)), lineage: None };
    assert_eq!(w.apply(vec![late]).unwrap_err().kind(), ErrorKind::Conflict);
}

#[test]
fn readers_go_with_their_stream() {
    let mut w = World::new();
    w.apply(vec![Edit::SetReader(Box::new(reader("r", 1, 3))), Edit::SetReader(Box::new(reader("q", 1, 3)))]).unwrap();
    w.apply(vec![Edit::DropReader { name: "q".into() }]).unwrap();
    assert_eq!(w.apply(vec![Edit::DropReader { name: "q".into() }]).unwrap_err().kind(), ErrorKind::NotFound);
    w.apply(vec![Edit::DropStream(StreamId(1))]).unwrap();
    assert!(w.0.readers.is_empty());
}

// proves I77
#[test]
fn a_stream_says_how_many_lines_its_history_may_have() {
    let mut w = World::new();
    let mut shorter = def(1, "a");
    shorter.settings.insert("history_max_snapshots".into(), SettingValue::Int(8));
    w.apply(vec![Edit::AlterStream(Box::new(shorter))]).unwrap();
    for sn in 6..=100 {
        w.apply(vec![applied(1, sn)]).unwrap();
        assert!(w.state().records.size() <= 8);
    }
    assert_eq!(w.state().records.values().map(|r| r.count).sum::<u64>(), 100);
    assert!((1..=100).all(|sn| w.state().line_of(Sn(sn)).is_some()));
    // The older, the more records one line is; the newest stand alone.
    let counts: Vec<u64> = w.state().records.values().map(|r| r.count).collect();
    assert!(counts.iter().rev().take(4).all(|n| *n == 1), "{counts:?}");
}

/// proves I77: two branches that are written to by turns take no more lines than one, every record is read as what it is, and the count
/// of a policy counts records.
#[test]
fn branches_that_are_written_by_turns_are_summed_up() {
    let mut m = Manifest::empty();
    let mut apply = |edits| {
        m = m.apply(&Commit { no: m.no.next(), epoch: Epoch(0), nonce: String::new(), time: Timestamp(0), edits }).unwrap();
        m.clone()
    };
    let mut few = def(1, "a");
    few.settings.insert("history_max_snapshots".into(), SettingValue::Int(100));
    let stream = few.id;
    apply(vec![Edit::CreateStream(Box::new(few)), applied(1, 1)]);
    let mut last = apply(vec![Edit::SetRef { stream, r: Box::new(branch("b", 1, 1)), lineage: Some(fork(1, 1)) }]);
    const N: u64 = 30_000;
    // A flush takes some records at a time.
    for from in (2..=N).step_by(60) {
        let to = (from + 59).min(N);
        let of = |sn: u64| {
            let parent = if sn <= 3 { 1 } else { sn - 2 };
            RecordInfo { branch: BranchId((sn % 2) as u32), parent: Sn(parent), ..record(sn, Verb::Insert) }
        };
        last = apply(vec![Edit::Apply { stream, sn: Sn(to), records: (from..=to).map(of).collect() }]);
        assert!(last.stream(stream).unwrap().records.size() <= 160);
    }
    let s = last.stream(stream).unwrap();
    assert!(s.records.size() <= 100, "{} lines", s.records.size());
    assert_eq!(violations(&last), Vec::<String>::new());
    assert_eq!(s.records.values().map(|r| (r.count, r.rows_added)).fold((0, 0), |a, b| (a.0 + b.0, a.1 + b.1)), (N, N));
    for sn in 2..=N {
        let found = s.resolve(&AsOf::Sn(Sn(sn)), Timestamp(0), None).unwrap();
        assert_eq!((found.sn, found.cut.branch), (Sn(sn), BranchId((sn % 2) as u32)), "sn {sn}");
    }
    let ancestry = Ancestry::of(s);
    assert_eq!(ancestry.between(Sn(1), Sn(N), usize::MAX).len() as u64, N / 2, "all that main wrote");
    assert_eq!((ancestry.common(Sn(N), Sn(N - 1)), s.history_from()), (Sn(1), Some(Sn(1))));
    let keep = Keep { max_age_ms: 0, min_snapshots: 500, max_ref_age_ms: None };
    let due = expiry(s, &keep, &Overrides::default(), &Pinning::default(), Timestamp(1_000_000));
    let kept = s.readable.minus(&SnSet::new(due.forget.iter().copied()));
    // Its own number is five, and what main keeps is main's.
    let count = |branch: u64| (1..=N).filter(|sn| sn % 2 == branch && kept.contains(Sn(*sn))).count();
    assert_eq!((count(0), count(1)), (500, 5));
    // What is written of it is a few bytes a record, and is read again.
    let text = shown(&last);
    assert!(text.len() < N as usize * 6, "{} bytes", text.len());
    let image: Image = serde_json::from_str(&text).unwrap();
    assert_eq!(shown(&image.into_manifest().unwrap()), text);
}
