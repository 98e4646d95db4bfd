//! Tags, branches, going back and forgetting, through the engine: the experiments of a chapter on snapshot retention with their numbers,
//! a tenth of their rows, and what is known to go wrong with such systems.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod support;

use ebb_engine::{
    AsOf, DeleteRequest, Engine, ErrorKind, InsertOptions, Stop, Timestamp,
    expr::ExprCompiler,
    history::{Changed, Expired, NewRef, Overrides, RefMode, RollbackTo},
};
use ebb_storage::{
    ids::{Sn, StreamId},
    interval::Interval,
    manifest::invariants::violations,
    refs::RefKind,
    stream_def::SettingValue,
};
use std::{path::Path, sync::Arc};
use support::*;

const FUTURE: Timestamp = Timestamp(START.0 + 10_000 * DAY);

fn at(sn: u64) -> Option<AsOf> {
    Some(AsOf::Sn(Sn(sn)))
}

/// A stream and a count of what was written: each record is of a second of its own.
struct World {
    e: Arc<Engine>,
    s: StreamId,
    next: i64,
    _dir: tempfile::TempDir,
}

impl World {
    async fn new(settings: &[(&str, i64)]) -> Self {
        Self::with(def("s", vec![]), settings).await
    }
    async fn with(mut d: ebb_storage::stream_def::StreamDef, settings: &[(&str, i64)]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let e = open(dir.path()).await;
        for (name, value) in settings {
            d.settings.insert((*name).to_owned(), SettingValue::Int(*value));
        }
        let s = e.create_stream(d, false).await.unwrap();
        Self { e, s, next: 0, _dir: dir }
    }
    fn dir(&self) -> &Path {
        self._dir.path()
    }
    async fn reopen(&mut self) {
        let now = self.e.now();
        self.e.close().await.unwrap();
        let dir = self.dir().to_owned();
        // The old engine holds the directory until it is gone.
        let last = std::mem::replace(&mut self.e, open(tempfile::tempdir().unwrap().path()).await);
        drop(last);
        self.e = Engine::open(options(&dir, ebb_engine::Clock::simulated(now), false)).await.unwrap();
    }

    /// `records` of `rows` rows each.
    async fn write_to(&mut self, branch: Option<&str>, records: usize, rows_each: i64) {
        for _ in 0..records {
            self.e.advance_clock(Interval::seconds(1)).unwrap();
            let from = self.next;
            self.next += rows_each;
            let of: Vec<(&str, i64, i64)> = (from..self.next).map(|v| ("h", START.0 + v, v)).collect();
            let options = InsertOptions { branch: branch.map(str::to_owned), ..v1() };
            self.e.insert(self.s, vec![rows(&of)], options).await.unwrap();
        }
    }
    async fn write(&mut self, records: usize, rows_each: i64) {
        self.write_to(None, records, rows_each).await;
    }
    async fn delete(&self, branch: Option<&str>, v: i64) -> Option<Sn> {
        self.e.advance_clock(Interval::seconds(1)).unwrap();
        let d = self.e.manifest().stream(self.s).unwrap().def.clone();
        let request = DeleteRequest {
            stream: self.s,
            branch: branch.map(str::to_owned),
            matches: Words.compile(&format!("v = {v}"), &d).unwrap(),
            schema_version: d.schema_version,
            skip: Arc::new(|_| false),
        };
        self.e.delete(request).await.unwrap().sn
    }

    async fn make(&self, new: NewRef) -> bool {
        self.e.create_ref(self.s, new).await.unwrap().made
    }
    async fn expire(&self) -> Expired {
        self.e.expire_snapshots(self.s, Overrides::default()).await.unwrap()
    }
    async fn rows_at(&self, at: AsOf) -> usize {
        let view = self.e.read().stream_as_of(self.s, &at, self.e.now()).unwrap();
        rows_of(&view).await.len()
    }
    async fn values_at(&self, at: AsOf) -> Vec<i64> {
        let view = self.e.read().stream_as_of(self.s, &at, self.e.now()).unwrap();
        rows_of(&view).await.into_iter().map(|(v, _)| v).collect()
    }
    async fn named(&self, name: &str) -> usize {
        self.rows_at(AsOf::Name(name.into())).await
    }
    fn refused(&self, at: AsOf) -> String {
        let e = self.e.read().stream_as_of(self.s, &at, self.e.now()).err().expect("it is refused");
        assert_eq!(e.kind(), ErrorKind::NotFound);
        e.message().to_owned()
    }
    /// What can be read, tail included.
    fn snapshots(&self) -> u64 {
        self.e.read().state(self.s).unwrap().readable.ranges().iter().map(|r| r.to.0 - r.after.0).sum()
    }
    fn refs(&self) -> Vec<String> {
        self.e.refs(&self.e.read(), self.s).into_iter().map(|r| r.name).collect()
    }
    fn part_rows(&self) -> u64 {
        self.e.manifest().stream(self.s).unwrap().parts.values().map(|p| p.rows).sum()
    }
    fn sound(&self) {
        assert_eq!(violations(&self.e.manifest()), Vec::<String>::new());
    }
    /// Of a closed database, its files too.
    async fn sound_on_disk(self) {
        self.sound();
        self.e.close().await.unwrap();
        assert_eq!(ebb_engine::inspect::check(self.dir()).await.unwrap().damage, Vec::<String>::new());
    }
}

// proves I1, I2, I4, I17, I18, I19, I20, I21, I23
#[tokio::test]
async fn eight_survivors_of_forty_four() {
    let mut w = World::new(&[]).await;
    w.write(10, 100).await;
    w.make(NewRef { retain_ms: Some(3650 * 86_400_000), ..tag("q2_close") }).await;
    w.write(20, 100).await;
    w.make(NewRef { min_snapshots: Some(5), ..branch("dev") }).await;
    w.write(10, 100).await;
    w.write_to(Some("dev"), 4, 100).await;
    assert_eq!(w.snapshots(), 44);
    let overrides = Overrides { older_than: Some(FUTURE), retain_last: Some(2), dry_run: false };
    let tried = w.e.expire_snapshots(w.s, Overrides { dry_run: true, ..overrides }).await.unwrap();
    assert_eq!(w.snapshots(), 44);
    let done = w.e.expire_snapshots(w.s, overrides).await.unwrap();
    assert_eq!(done, Expired { snapshots_removed: 36, ..Expired::default() });
    assert_eq!(tried.rows_reclaimable, done.rows_reclaimable);
    assert_eq!(w.snapshots(), 8);
    assert_eq!((w.named("q2_close").await, w.named("dev").await, w.named("main").await), (1000, 3400, 4000));
    let refs = w.e.refs(&w.e.read(), w.s);
    let lines: Vec<_> = refs.iter().map(|r| (r.name.as_str(), r.sn.0, r.max_ref_age_ms, r.min_snapshots_to_keep)).collect();
    assert_eq!(lines, [("main", 40, None, None), ("dev", 44, None, Some(5)), ("q2_close", 10, Some(315_360_000_000), None)]);
    // All of it again after an opening.
    w.reopen().await;
    assert_eq!((w.named("q2_close").await, w.named("dev").await, w.named("main").await, w.snapshots()), (1000, 3400, 4000, 8));
    w.sound();
}

// proves I6, I50, I51, I52, I53, I66
#[tokio::test]
async fn the_policy_is_in_the_stream_and_the_call_takes_no_arguments() {
    let mut w = World::new(&[]).await;
    w.write(10, 1).await;
    assert_eq!((w.expire().await.snapshots_removed, w.snapshots()), (0, 10));
    let change = |d: &ebb_storage::stream_def::StreamDef| {
        let mut d = with(d.clone(), "history_max_snapshot_age_ms", 1);
        d.settings.insert("history_min_snapshots_to_keep".into(), SettingValue::Int(3));
        Ok(d)
    };
    w.e.alter_stream(w.s, change).await.unwrap();
    w.e.advance_clock(Interval::seconds(1)).unwrap();
    assert_eq!((w.expire().await.snapshots_removed, w.snapshots()), (7, 3));
    w.make(NewRef { min_snapshots: Some(5), ..branch("keep_more") }).await;
    w.write_to(Some("keep_more"), 6, 1).await;
    w.e.advance_clock(Interval::seconds(1)).unwrap();
    assert_eq!((w.expire().await.snapshots_removed, w.snapshots()), (1, 8));
    w.sound();
}

// proves I26, I55, I56, I57, I58, I60
#[tokio::test]
async fn three_classes_expired_together() {
    let hot = [("history_max_snapshot_age_ms", 1), ("history_min_snapshots_to_keep", 2)];
    let mut h = World::new(&hot).await;
    h.write(12, 100).await;
    let mut audit = World::new(&hot).await;
    audit.write(6, 100).await;
    audit.make(NewRef { retain_ms: Some(2555 * 86_400_000), ..tag("month_end") }).await;
    audit.write(4, 100).await;
    audit.make(NewRef { retain_ms: Some(30 * 86_400_000), ..tag("week_end") }).await;
    audit.write(2, 100).await;
    let mut dev = World::new(&hot).await;
    dev.write(12, 100).await;
    dev.make(NewRef { retain_ms: Some(7 * 86_400_000), min_snapshots: Some(10), ..branch("feature") }).await;
    dev.write_to(Some("feature"), 6, 100).await;
    assert_eq!((h.snapshots(), audit.snapshots(), dev.snapshots()), (12, 12, 18));
    for w in [&h, &audit, &dev] {
        w.e.advance_clock(Interval::seconds(1)).unwrap();
        w.expire().await;
        w.sound();
    }
    assert_eq!((h.snapshots(), audit.snapshots(), dev.snapshots()), (2, 4, 10));
    assert_eq!((audit.named("month_end").await, audit.named("week_end").await, audit.named("main").await), (600, 1000, 1200));
    assert_eq!((dev.named("main").await, dev.named("feature").await), (1200, 1800));
    // The hold ends on its day with nobody deciding, and the branch removes itself.
    for w in [&audit, &dev] {
        w.e.advance_clock(Interval::days(31)).unwrap();
        w.e.settle(None).await.unwrap();
        w.sound();
    }
    assert_eq!((audit.refs(), audit.snapshots()), (vec!["main".to_owned(), "month_end".to_owned()], 3));
    assert_eq!((dev.refs(), dev.snapshots()), (vec!["main".to_owned()], 2));
}

// proves I27, I28, I29, I30, I31
#[tokio::test]
async fn a_ref_that_lived_its_minute_is_refused_at_once_and_gone_at_the_next_pass() {
    let mut w = World::new(&[]).await;
    w.write(3, 10).await;
    w.make(NewRef { retain_ms: Some(60_000), ..branch("short_lived") }).await;
    w.write_to(Some("short_lived"), 1, 10).await;
    w.expire().await;
    assert_eq!(w.refs(), ["main", "short_lived"]);
    w.e.advance_clock(Interval::seconds(70)).unwrap();
    // Nothing has run yet.
    assert!(w.refused(AsOf::Name("short_lived".into())).starts_with("branch 'short_lived' of default.s ended at "));
    assert_eq!(w.refs(), ["main"]);
    assert!(w.e.manifest().stream(w.s).unwrap().refs.contains_key("short_lived"));
    let options = InsertOptions { branch: Some("short_lived".into()), ..v1() };
    assert_eq!(w.e.insert(w.s, vec![rows(&[("h", 0, 0)])], options).await.unwrap_err().kind(), ErrorKind::NotFound);
    let done = w.expire().await;
    assert!(done.bytes_freed > 0);
    assert_eq!(
        Expired { bytes_freed: 0, ..done },
        Expired { snapshots_removed: 1, refs_removed: 1, parts_removed: 1, ..Expired::default() }
    );
    assert!(!w.e.manifest().stream(w.s).unwrap().refs.contains_key("short_lived"));
    assert_eq!((w.snapshots(), w.part_rows()), (3, 30));
    w.sound();
}

// proves I32, I33, I34: elsewhere the tagged twin doubles.
#[tokio::test]
async fn a_tag_costs_nothing_when_the_stream_is_merged() {
    let hot = [("history_max_snapshot_age_ms", 1), ("merge_with_ttl_timeout", 0)];
    let (mut held, mut free) = (World::new(&hot).await, World::new(&hot).await);
    let mut sizes = Vec::new();
    for (w, tagged) in [(&mut held, true), (&mut free, false)] {
        for _ in 0..20 {
            w.write(1, 1000).await;
            w.e.flush(None).await.unwrap();
        }
        if tagged {
            w.make(tag("hold")).await;
        }
        assert_eq!(parts(&w.e, w.s), 20);
        w.e.optimize(w.s, None, true).await.unwrap();
        w.e.advance_clock(Interval::seconds(1)).unwrap();
        w.expire().await;
        w.e.settle(None).await.unwrap();
        let state = w.e.manifest().stream(w.s).unwrap().clone();
        sizes.push((state.parts.size(), state.parts.values().map(|p| p.placement.bytes).sum::<u64>(), files(w.dir())));
        w.sound();
    }
    assert_eq!(sizes[0], sizes[1], "tagged and not");
    assert_eq!((sizes[0].0, sizes[0].2), (1, 1));
    assert_eq!((held.named("hold").await, held.named("main").await), (20_000, 20_000));
    assert_eq!((held.snapshots(), free.snapshots()), (1, 1));
}

// proves I35, I36, I37, I38, I39, I40, I41, I42
#[tokio::test]
async fn what_was_kept_can_be_gone_back_to_and_what_was_not_cannot() {
    let mut w = World::new(&[("history_max_snapshot_age_ms", 1)]).await;
    w.write(20, 10).await;
    w.make(tag("hold")).await;
    w.write(1, 10).await;
    w.expire().await;
    assert_eq!(w.named("hold").await, 200);
    let before = w.refused(AsOf::Time(START));
    assert!(before.contains("the oldest available is sn 20 of "), "{before}");
    let changed = w.e.rollback(w.s, RollbackTo::Sn(Sn(20))).await.unwrap();
    assert_eq!(changed, Changed { previous_sn: Sn(21), target_sn: Sn(20), current_sn: Sn(22) });
    assert_eq!((w.named("main").await, w.refs()), (200, vec!["main".to_owned(), "hold".to_owned()]));
    // What was rolled past can be read until the next expiry.
    assert_eq!(w.rows_at(AsOf::Sn(Sn(21))).await, 210);
    w.e.advance_clock(Interval::seconds(1)).unwrap();
    let done = w.expire().await;
    assert_eq!((done.snapshots_removed, done.parts_removed), (1, 1), "{done:?}");
    let gone = w.e.rollback(w.s, RollbackTo::Sn(Sn(21))).await.unwrap_err();
    assert_eq!(gone.kind(), ErrorKind::NotFound);
    assert!(gone.message().contains("snapshot 21 of default.s is not kept any more: the oldest available is sn "), "{gone}");
    assert!(w.e.rollback(w.s, RollbackTo::Sn(Sn(1_234_567_890))).await.unwrap_err().message().contains("does not exist"));
    assert_eq!(w.part_rows(), 200);
    w.sound();
}

#[tokio::test]
async fn a_rollback_is_undone_by_a_rollback_and_brings_deleted_rows_back() {
    let mut w = World::new(&[]).await;
    w.write(3, 2).await; // 0..6
    assert_eq!(w.delete(None, 1).await, Some(Sn(4)));
    w.write(1, 1).await; // 5: v 6
    assert_eq!(w.values_at(AsOf::Name("main".into())).await, [0, 2, 3, 4, 5, 6]);
    w.e.rollback(w.s, RollbackTo::Sn(Sn(2))).await.unwrap(); // 6
    assert_eq!(w.values_at(AsOf::Name("main".into())).await, [0, 1, 2, 3]);
    w.write(1, 1).await; // 7: v 7
    let undone = w.e.rollback(w.s, RollbackTo::Sn(Sn(5))).await.unwrap(); // 8
    assert_eq!(undone, Changed { previous_sn: Sn(7), target_sn: Sn(5), current_sn: Sn(8) });
    for _ in 0..2 {
        assert_eq!(w.values_at(AsOf::Name("main".into())).await, [0, 2, 3, 4, 5, 6]);
        assert_eq!(w.values_at(AsOf::Sn(Sn(7))).await, [0, 1, 2, 3, 7]);
        assert_eq!(w.values_at(AsOf::Sn(Sn(6))).await, [0, 1, 2, 3]);
        assert_eq!(w.values_at(AsOf::Sn(Sn(3))).await, [0, 1, 2, 3, 4, 5]);
        // What is merged reads the same.
        w.e.optimize(w.s, None, true).await.unwrap();
        w.reopen().await;
    }
    // By time: the newest of main then.
    let t = w.e.read().state(w.s).unwrap().line_of(Sn(5)).unwrap().time;
    w.e.advance_clock(Interval::seconds(1)).unwrap();
    let back = w.e.rollback(w.s, RollbackTo::Time(Timestamp(t.0 - 1))).await.unwrap();
    assert_eq!(back.target_sn, Sn(4));
    w.sound();
}

#[tokio::test]
async fn a_rollback_over_a_branch_point_leaves_the_branch_whole() {
    let mut w = World::new(&[("history_max_snapshot_age_ms", 1)]).await;
    w.write(5, 10).await;
    w.make(branch("dev")).await;
    w.write_to(Some("dev"), 2, 10).await; // 6, 7
    w.e.rollback(w.s, RollbackTo::Sn(Sn(2))).await.unwrap(); // 8
    w.e.advance_clock(Interval::seconds(1)).unwrap();
    w.expire().await;
    assert_eq!((w.named("main").await, w.named("dev").await), (20, 70));
    w.e.optimize(w.s, None, true).await.unwrap();
    assert_eq!((w.named("main").await, w.named("dev").await), (20, 70));
    let foreign = w.e.rollback(w.s, RollbackTo::Sn(Sn(7))).await.unwrap_err();
    assert!(foreign.message().contains("was written to branch 'dev' and never was main"), "{foreign}");
    // What only the branch holds goes with it.
    w.e.drop_ref(w.s, RefKind::Branch, "dev", false).await.unwrap();
    w.e.optimize(w.s, None, true).await.unwrap();
    assert_eq!((w.named("main").await, w.part_rows(), w.snapshots()), (20, 20, 1));
    w.sound();
}

#[tokio::test]
async fn a_branch_is_audited_and_published() {
    let mut w = World::new(&[]).await;
    w.write(2, 10).await;
    w.make(branch("dev")).await;
    w.write_to(Some("dev"), 2, 10).await; // 3, 4
    assert_eq!(w.delete(Some("dev"), 0).await, Some(Sn(5)));
    assert_eq!((w.named("main").await, w.named("dev").await), (20, 39));
    let published = w.e.fast_forward(w.s, "main", "dev").await.unwrap();
    assert_eq!(published, Changed { previous_sn: Sn(2), target_sn: Sn(5), current_sn: Sn(6) });
    assert_eq!(w.named("main").await, 39);
    // The branch goes on by itself.
    w.write_to(Some("dev"), 1, 10).await; // 7
    w.write(1, 10).await; // 8
    assert_eq!((w.named("main").await, w.named("dev").await), (49, 49));
    let refused = w.e.fast_forward(w.s, "main", "dev").await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Conflict);
    assert!(refused.message().contains("has snapshots that 'dev' (head 7) does not stand on: 8, 6"), "{refused}");
    // One record of it is picked, once.
    let picked = w.e.cherrypick(w.s, Sn(7)).await.unwrap();
    assert_eq!(picked, Changed { previous_sn: Sn(8), target_sn: Sn(7), current_sn: Sn(9) });
    assert_eq!(w.named("main").await, 59);
    for (sn, kind) in [(7, ErrorKind::Conflict), (3, ErrorKind::Conflict), (6, ErrorKind::Invalid), (99, ErrorKind::NotFound)] {
        assert_eq!(w.e.cherrypick(w.s, Sn(sn)).await.unwrap_err().kind(), kind, "{sn}");
    }
    // Main's rows stay with main, merged or not, when the branch goes.
    w.e.drop_ref(w.s, RefKind::Branch, "dev", false).await.unwrap();
    for _ in 0..2 {
        assert_eq!(w.named("main").await, 59);
        assert_eq!(w.rows_at(AsOf::Sn(Sn(6))).await, 39);
        w.e.optimize(w.s, None, true).await.unwrap();
        w.reopen().await;
    }
    assert_eq!(w.e.fast_forward(w.s, "main", "dev").await.unwrap_err().kind(), ErrorKind::NotFound);
    w.sound();
}

#[tokio::test]
async fn a_delete_is_picked_as_an_append_is() {
    let mut w = World::new(&[]).await;
    w.write(1, 4).await;
    w.make(branch("dev")).await;
    assert_eq!(w.delete(Some("dev"), 2).await, Some(Sn(2)));
    w.e.cherrypick(w.s, Sn(2)).await.unwrap();
    assert_eq!(w.values_at(AsOf::Name("main".into())).await, [0, 1, 3]);
    assert_eq!(w.values_at(AsOf::Sn(Sn(1))).await, [0, 1, 2, 3]);
    // Also what a rollback cut off.
    w.write(1, 1).await; // 4: v 4
    w.e.rollback(w.s, RollbackTo::Sn(Sn(1))).await.unwrap();
    w.e.cherrypick(w.s, Sn(4)).await.unwrap();
    assert_eq!(w.values_at(AsOf::Name("main".into())).await, [0, 1, 2, 3, 4]);
    w.sound();
}

#[tokio::test]
async fn names_and_what_is_wrong_with_them() {
    let mut w = World::new(&[]).await;
    let e = w.e.clone();
    let s = w.s;
    let fails = async |new: NewRef| e.create_ref(s, new).await.unwrap_err();
    assert_eq!(fails(tag("t")).await.kind(), ErrorKind::Invalid, "there is no snapshot yet");
    w.write(5, 1).await;
    for name in ["", "main", "42"] {
        assert_eq!(fails(tag(name)).await.kind(), ErrorKind::Invalid);
        assert_eq!(fails(branch(name)).await.kind(), ErrorKind::Invalid);
    }
    assert!(w.make(tag("x")).await);
    assert!(!w.make(NewRef { if_not_exists: true, ..tag("x") }).await);
    assert_eq!(fails(tag("x")).await.kind(), ErrorKind::Conflict);
    assert!(fails(NewRef { if_not_exists: true, ..branch("x") }).await.message().contains("is a tag"));
    assert_eq!(fails(NewRef { as_of: at(77), ..tag("y") }).await.kind(), ErrorKind::NotFound);
    assert_eq!(fails(NewRef { min_snapshots: Some(1), ..tag("y") }).await.kind(), ErrorKind::Invalid);
    assert_eq!(fails(NewRef { mode: RefMode::Replace, ..tag("y") }).await.kind(), ErrorKind::NotFound);
    let wrong = e.drop_ref(s, RefKind::Branch, "x", false).await.unwrap_err();
    assert_eq!(wrong.kind(), ErrorKind::Conflict);
    assert!(!e.drop_ref(s, RefKind::Tag, "y", true).await.unwrap());
    assert_eq!(e.drop_ref(s, RefKind::Tag, "y", false).await.unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(e.drop_ref(s, RefKind::Branch, "main", true).await.unwrap_err().kind(), ErrorKind::Invalid);
    // REPLACE keeps what it does not name, and the age starts again.
    w.make(NewRef { as_of: at(2), retain_ms: Some(60_000), ..tag("old") }).await;
    e.advance_clock(Interval::seconds(50)).unwrap();
    w.make(NewRef { mode: RefMode::Replace, ..tag("old") }).await;
    e.advance_clock(Interval::seconds(50)).unwrap();
    assert_eq!(w.named("old").await, 2);
    w.make(NewRef { mode: RefMode::Replace, as_of: at(3), retain_ms: Some(1000), ..tag("old") }).await;
    assert_eq!(w.named("old").await, 3);
    e.advance_clock(Interval::seconds(1)).unwrap();
    // A name whose time is over is free.
    assert!(w.make(branch("old")).await);
    // CREATE OR REPLACE is a new one: at the head, with no more than it says.
    w.make(NewRef { mode: RefMode::CreateOrReplace, ..tag("x") }).await;
    assert_eq!(w.named("x").await, 5);
    w.write_to(Some("old"), 1, 1).await;
    assert_eq!((w.named("old").await, w.snapshots()), (6, 6));
    // A branch that is cut anew leaves what it was.
    w.make(NewRef { mode: RefMode::Replace, as_of: at(1), ..branch("old") }).await;
    assert_eq!((w.named("old").await, w.snapshots()), (1, 5));
    w.sound();
}

// proves U7, U8, U13, U14, U15, U17
#[tokio::test]
async fn deleted_rows_are_gone_for_good_when_nothing_can_see_them_and_not_before() {
    // Kudu's default: fifteen minutes.
    let mut w = World::new(&[("history_max_snapshot_age_ms", 900_000), ("merge_with_ttl_timeout", 0)]).await;
    w.write(2, 50).await;
    w.delete(None, 7).await; // 3
    w.write(1, 50).await; // 4
    w.e.flush(None).await.unwrap();
    w.e.optimize(w.s, None, true).await.unwrap();
    assert_eq!((w.part_rows(), w.named("main").await, w.rows_at(AsOf::Sn(Sn(2))).await), (150, 149, 100));
    w.e.advance_clock(Interval::seconds(800)).unwrap();
    w.expire().await;
    assert_eq!(w.rows_at(AsOf::Sn(Sn(2))).await, 100, "still in the window");
    let open = w.e.read().stream_as_of(w.s, &AsOf::Sn(Sn(2)), w.e.now()).unwrap();
    w.e.advance_clock(Interval::seconds(200)).unwrap();
    let done = w.expire().await;
    assert_eq!((done.snapshots_removed, done.rows_reclaimable, done.parts_removed), (3, 1, 0));
    assert!(w.refused(AsOf::Sn(Sn(2))).contains("the oldest available is sn 4 of "));
    // Nothing is rewritten for that alone.
    w.e.settle(None).await.unwrap();
    assert_eq!(w.part_rows(), 150);
    w.e.optimize(w.s, None, true).await.unwrap();
    assert_eq!((w.part_rows(), w.named("main").await), (149, 149));
    // Who had it open goes on reading.
    assert_eq!(rows_of(&open).await.len(), 100);
    w.sound();
}

#[tokio::test]
async fn a_tag_on_an_emptied_stream_holds_what_it_names() {
    let mut w = World::new(&[("history_max_snapshot_age_ms", 1)]).await;
    w.write(3, 10).await;
    w.make(tag("before")).await;
    w.e.truncate(w.s).await.unwrap(); // 4
    w.make(tag("empty")).await;
    w.e.advance_clock(Interval::seconds(1)).unwrap();
    let done = w.expire().await;
    assert_eq!((done.snapshots_removed, done.parts_removed), (2, 0));
    assert_eq!((w.named("before").await, w.named("empty").await, w.named("main").await), (30, 0, 0));
    let held = |w: &World| w.e.refs(&w.e.read(), w.s).into_iter().map(|r| (r.name, r.held_bytes > 0)).collect::<Vec<_>>();
    assert_eq!(held(&w), [("main".to_owned(), false), ("before".to_owned(), true), ("empty".to_owned(), false)]);
    w.e.drop_ref(w.s, RefKind::Tag, "before", false).await.unwrap();
    w.e.stop(Stop::Merges, None);
    w.e.settle(None).await.unwrap();
    assert_eq!((w.part_rows(), parts(&w.e, w.s), files(w.dir())), (0, 0, 0), "history goes on under STOP MERGES");
    w.sound();
}

#[tokio::test]
async fn history_forgets_itself_when_it_is_due() {
    let mut w = World::new(&[("history_max_snapshot_age_ms", 10_000)]).await;
    w.write(20, 1).await;
    w.e.settle(None).await.unwrap();
    // 9 was superseded ten seconds ago, just as long as it is kept.
    assert_eq!(w.snapshots(), 12);
    let commit = w.e.manifest().no;
    w.e.settle(None).await.unwrap();
    assert_eq!(w.e.manifest().no, commit, "settled");
    w.e.advance_clock(Interval::days(1)).unwrap();
    w.e.settle(None).await.unwrap();
    assert_eq!(w.snapshots(), 1);
    assert_eq!(w.named("main").await, 20);
    w.sound();
}

// proves I66, I73: the house does it by itself, beside a writer that does not pause.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_driver_forgets_without_being_asked() {
    let dir = tempfile::tempdir().unwrap();
    let e = Engine::open(options(dir.path(), ebb_engine::Clock::simulated(START), true)).await.unwrap();
    let s = e.create_stream(with(def("s", vec![]), "history_max_snapshot_age_ms", 60_000), false).await.unwrap();
    e.insert(s, vec![rows(&[("h", START.0, 0)])], v1()).await.unwrap();
    e.create_ref(s, NewRef { retain_ms: Some(120_000), ..branch("short") }).await.unwrap();
    let mut changes = e.changes();
    for v in 1..10 {
        e.insert(s, vec![rows(&[("h", START.0, v)])], v1()).await.unwrap();
        e.flush(Some(s)).await.unwrap();
        e.advance_clock(Interval::seconds(30)).unwrap();
    }
    // Once it has caught up, what is left is what is young, and the ref is gone.
    loop {
        let state = e.manifest().stream(s).unwrap().clone();
        let snapshots: u64 = state.readable.ranges().iter().map(|r| r.to.0 - r.after.0).sum();
        if snapshots <= 3 && state.refs.is_empty() {
            break;
        }
        changes.changed().await.unwrap();
    }
    assert_eq!(values(&e, s).await, (0..10).collect::<Vec<_>>());
    e.close().await.unwrap();
}

/// Rows due a day after START.
fn aged(name: &str) -> ebb_storage::stream_def::StreamDef {
    with(def(name, vec![delete("ts + 1 days", None, 1)]), "merge_with_ttl_timeout", 0)
}

#[tokio::test]
async fn a_tag_keeps_rows_that_a_rule_took_from_main_and_frees_them_when_it_goes() {
    for whole in [true, false] {
        let mut w = World::with(aged("s"), &[]).await;
        w.write(2, 10).await;
        w.make(tag("t")).await;
        if !whole {
            // A row that is not due, and that the tag does not see.
            let late = rows(&[("h", START.0 + 5 * DAY, 500)]);
            w.e.insert(w.s, vec![late], v1()).await.unwrap();
        }
        w.e.flush(None).await.unwrap();
        w.e.optimize(w.s, None, true).await.unwrap();
        let bytes: u64 = w.e.manifest().stream(w.s).unwrap().parts.values().map(|p| p.placement.bytes).sum();
        w.e.advance_clock(Interval::days(2)).unwrap();
        w.e.settle(None).await.unwrap();
        let left = usize::from(!whole);
        assert_eq!((w.named("main").await, w.named("t").await), (left, 20), "whole: {whole}");
        // Past cuts of main, too; the tag's bare number is one of them.
        assert_eq!(w.rows_at(AsOf::Sn(Sn(2))).await, 0);
        let state = w.e.manifest().stream(w.s).unwrap().clone();
        assert_eq!(state.parts.values().map(|p| p.placement.bytes).sum::<u64>(), bytes, "no byte was written");
        // Quiet after.
        let commit = w.e.manifest().no;
        w.e.settle(None).await.unwrap();
        assert_eq!(w.e.manifest().no, commit);
        // A tag made after that does not see them.
        w.make(tag("later")).await;
        assert_eq!(w.named("later").await, left);
        let held = w.e.refs(&w.e.read(), w.s).into_iter().find(|r| r.name == "t").unwrap().held_bytes;
        assert!(held > bytes / 2, "{held} of {bytes}");
        // Merged, moved or read again, all is as it was.
        w.reopen().await;
        w.e.optimize(w.s, None, true).await.unwrap();
        assert_eq!((w.named("main").await, w.named("t").await, w.part_rows()), (left, 20, 20 + left as u64));
        w.e.drop_ref(w.s, RefKind::Tag, "t", false).await.unwrap();
        w.e.settle(None).await.unwrap();
        w.e.optimize(w.s, None, true).await.unwrap();
        assert_eq!((w.named("main").await, w.part_rows()), (left, left as u64));
        w.sound();
    }
}

#[tokio::test]
async fn what_changes_rows_waits_for_a_tag() {
    let mut w = World::with(with(def("s", vec![sum_by_host("ts + 1 days", 1)]), "merge_with_ttl_timeout", 0), &[]).await;
    w.write(2, 3).await;
    w.make(tag("t")).await;
    w.e.advance_clock(Interval::days(2)).unwrap();
    w.e.settle(None).await.unwrap();
    let lines = w.e.explain_lifecycle(w.s, w.e.now()).unwrap();
    assert!(lines.iter().all(|l| l.state == "pinned_by_tag" && l.blocked_by.as_deref() == Some("tag 't'")), "{lines:?}");
    assert_eq!((w.named("main").await, w.named("t").await), (6, 6));
    w.e.drop_ref(w.s, RefKind::Tag, "t", false).await.unwrap();
    w.e.settle(None).await.unwrap();
    w.e.optimize(w.s, None, true).await.unwrap();
    assert_eq!(w.values_at(AsOf::Name("main".into())).await, [15]);
    w.sound();
}

#[tokio::test]
async fn rules_age_main_and_what_main_takes_over() {
    let mut w = World::with(aged("s"), &[]).await;
    w.write(1, 5).await;
    w.make(branch("dev")).await;
    w.write_to(Some("dev"), 1, 5).await;
    w.e.advance_clock(Interval::days(2)).unwrap();
    w.e.settle(None).await.unwrap();
    assert_eq!((w.named("main").await, w.named("dev").await), (0, 10), "a branch's own rows age when they come to main");
    w.e.fast_forward(w.s, "main", "dev").await.unwrap();
    w.e.settle(None).await.unwrap();
    assert_eq!((w.named("main").await, w.named("dev").await), (0, 10));
    w.e.drop_ref(w.s, RefKind::Branch, "dev", false).await.unwrap();
    w.e.settle(None).await.unwrap();
    assert_eq!((w.named("main").await, w.part_rows()), (0, 0));
    w.sound();
}

/// Rows of a lone part keep the branch that wrote them, whatever is taken out of it.
#[tokio::test]
async fn what_came_from_a_branch_stays_when_its_part_is_pruned() {
    let mut w = World::new(&[]).await;
    w.write(1, 20).await;
    w.make(branch("c")).await;
    w.write_to(Some("c"), 1, 20).await;
    w.e.fast_forward(w.s, "main", "c").await.unwrap();
    assert!(w.delete(None, 0).await.is_some());
    w.e.optimize(w.s, None, true).await.unwrap();
    assert_eq!(w.part_rows(), 40, "so few rows that are not seen lie with the others");
    w.e.drop_ref(w.s, RefKind::Branch, "c", false).await.unwrap();
    w.e.advance_clock(Interval::seconds(1)).unwrap();
    let done = w.e.expire_snapshots(w.s, Overrides { older_than: Some(FUTURE), ..Overrides::default() }).await.unwrap();
    assert_eq!((done.rows_reclaimable, w.snapshots()), (1, 1));
    w.e.optimize(w.s, None, true).await.unwrap();
    let left: Vec<i64> = (1..40).collect();
    assert_eq!((w.values_at(AsOf::Name("main".into())).await, w.part_rows()), (left.clone(), 39));
    w.reopen().await;
    assert_eq!(w.values_at(AsOf::Name("main".into())).await, left);
    w.sound_on_disk().await;
}

/// What main takes over of a part bit by bit ages bit by bit.
#[tokio::test]
async fn rows_of_a_branch_come_due_when_main_takes_them_over_whatever_was_counted_before() {
    for whole in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let e = open(dir.path()).await;
        let s = e.create_stream(aged("s"), false).await.unwrap();
        e.insert(s, vec![rows(&[("h", START.0, 0)])], v1()).await.unwrap();
        e.create_ref(s, branch("b")).await.unwrap();
        let old = START.0 - 5 * DAY;
        let add = async |v: i64, ts: i64| {
            let of_branch = InsertOptions { branch: Some("b".into()), ..v1() };
            e.insert(s, vec![rows(&[("h", ts, v)])], of_branch).await.unwrap();
        };
        add(1, old).await;
        add(2, old).await;
        add(3, if whole { old } else { START.0 }).await;
        e.flush(Some(s)).await.unwrap();
        e.cherrypick(s, Sn(2)).await.unwrap();
        e.settle(None).await.unwrap();
        assert_eq!(values(&e, s).await, [0], "1 is main's, and due");
        for sn in [3, 4] {
            e.cherrypick(s, Sn(sn)).await.unwrap();
        }
        e.settle(None).await.unwrap();
        assert_eq!(values(&e, s).await, if whole { vec![0] } else { vec![0, 3] });
        assert_eq!(values_at(&e, s, AsOf::Name("b".into())).await.unwrap(), [0, 1, 2, 3]);
        assert_eq!(e.faults_of_records().await.unwrap(), Vec::<String>::new());
    }
}
