//! Those who read along: registered readers and leased cuts, what they keep, and what they are told when they are too late.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod support;

use arrow::array::{ArrayRef, RecordBatch};
use ebb_engine::{
    AsOf, Engine, ErrorKind, Timestamp,
    expr::{ExprCompiler, RowExpr},
    history::{NewReader, Overrides, ReaderFrom, RollbackTo},
    limits,
};
use ebb_storage::{
    ids::{ColumnId, Sn, StreamId},
    interval::Interval,
    stream_def::StreamDef,
};
use std::sync::{Arc, Mutex};
use support::*;

struct World {
    e: Arc<Engine>,
    s: StreamId,
    dir: tempfile::TempDir,
    next: i64,
}

impl World {
    async fn new(d: StreamDef) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let e = open(dir.path()).await;
        let d = with(with(d, "history_max_snapshot_age_ms", 1), "merge_with_ttl_timeout", 0);
        let s = e.create_stream(d, false).await.unwrap();
        Self { e, s, dir, next: 0 }
    }
    /// Records of one row, a second apart.
    async fn write(&mut self, records: usize) {
        for _ in 0..records {
            self.e.advance_clock(Interval::seconds(1)).unwrap();
            self.e.insert(self.s, vec![rows(&[("h", START.0 + self.next, self.next)])], v1()).await.unwrap();
            self.next += 1;
        }
    }
    async fn reader(&self, name: &str, from: ReaderFrom, max_lag_ms: Option<i64>) -> ebb_engine::Result<bool> {
        self.e.create_reader(NewReader { name: name.into(), stream: self.s, from, max_lag_ms, if_not_exists: false }).await
    }
    async fn expire(&self) -> u64 {
        self.e.expire_snapshots(self.s, Overrides::default()).await.unwrap().snapshots_removed
    }
    fn unread(&self, name: &str) -> ebb_engine::Result<Sn> {
        self.e.reader(&self.e.read(), name).map(|(_, sn)| sn)
    }
    async fn new_rows(&self, name: &str) -> Vec<i64> {
        let view = self.e.read();
        let (s, from) = self.e.reader(&view, name).unwrap();
        rows_of(&view.changes(s, from, None).unwrap().added).await.into_iter().map(|(v, _)| v).collect()
    }
    fn info(&self, name: &str) -> (u64, u64, u64, &'static str) {
        let r = self.e.readers().into_iter().find(|r| r.name == name).unwrap();
        (r.sn.0, r.lag_rows, r.lag_ms, r.state)
    }
}

// proves I43, I46, I47, I48, I49
#[tokio::test]
async fn a_reader_within_its_lag_reads_all_and_a_late_one_is_told() {
    let mut w = World::new(def("s", vec![])).await;
    w.write(3).await;
    assert!(w.reader("r", ReaderFrom::Sn(Sn(1)), Some(60_000)).await.unwrap());
    assert!(w.reader("all", ReaderFrom::Earliest, None).await.unwrap());
    assert!(w.reader("new", ReaderFrom::Latest, None).await.unwrap());
    assert_eq!(w.reader("r", ReaderFrom::Latest, None).await.unwrap_err().kind(), ErrorKind::Conflict);
    assert_eq!((w.info("r"), w.info("all"), w.info("new")), ((1, 2, 1000, "ok"), (0, 3, 2000, "ok"), (3, 0, 0, "ok")));
    assert_eq!((w.new_rows("r").await, w.new_rows("all").await, w.new_rows("new").await), (vec![1, 2], vec![0, 1, 2], vec![]));
    // Its position and what comes after stay, the rest goes.
    w.write(7).await;
    assert_eq!(w.expire().await, 0);
    w.e.advance_reader("r", Sn(5)).await.unwrap();
    assert_eq!(w.expire().await, 4);
    assert_eq!(w.new_rows("r").await, [5, 6, 7, 8, 9]);
    // The one without MAX LAG kept nothing, and says so.
    let gone = w.unread("new").unwrap_err();
    assert_eq!(gone.kind(), ErrorKind::NotFound);
    assert!(
        gone.message().contains("reader 'new' of default.s stands at sn 3, which is not kept any more: the oldest available is sn 5 of ")
    );
    assert_eq!(w.info("new").3, "expired");
    // A minute after the first record that it has not read it is cut off, expired or not.
    w.e.advance_clock(Interval::seconds(56)).unwrap();
    assert_eq!(w.unread("r").unwrap(), Sn(5));
    assert_eq!(w.expire().await, 0, "6 is of second 6");
    w.e.advance_clock(Interval::seconds(1)).unwrap();
    let late = w.unread("r").unwrap_err();
    assert_eq!(late.kind(), ErrorKind::Conflict);
    assert!(late.message().contains("was cut off at sn 5: it fell behind its MAX LAG"), "{late}");
    assert_eq!(w.info("r").3, "cut_off");
    assert_eq!(w.expire().await, 5);
    // It stays so through an opening, and goes on when it is moved to what there is.
    let now = w.e.now();
    w.e.close().await.unwrap();
    drop(std::mem::replace(&mut w.e, open(tempfile::tempdir().unwrap().path()).await));
    w.e = Engine::open(options(w.dir.path(), ebb_engine::Clock::simulated(now), false)).await.unwrap();
    assert_eq!(w.unread("r").unwrap_err().kind(), ErrorKind::Conflict);
    let gone = w.e.advance_reader("r", Sn(6)).await.unwrap_err();
    assert!(gone.kind() == ErrorKind::NotFound && gone.message().contains("the oldest available is sn 10 of "), "{gone}");
    w.e.advance_reader("r", Sn(10)).await.unwrap();
    w.write(1).await;
    assert_eq!(w.new_rows("r").await, [10]);
    // One that would be late from the start is not made.
    let refused = w.reader("late", ReaderFrom::Sn(Sn(6)), Some(1)).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::NotFound);
    w.e.advance_clock(Interval::seconds(10)).unwrap();
    assert_eq!(w.reader("late", ReaderFrom::Sn(Sn(10)), Some(1)).await.unwrap_err().kind(), ErrorKind::Conflict);
    assert!(w.e.drop_reader("r", false).await.unwrap());
    assert!(!w.e.drop_reader("r", true).await.unwrap());
    let missing = w.e.drop_reader("al", false).await.unwrap_err();
    assert!(missing.kind() == ErrorKind::NotFound && missing.message().contains("did you mean 'all'"), "{missing}");
}

#[tokio::test]
async fn a_rollback_below_a_reader_stops_it_until_it_is_moved() {
    let mut w = World::new(def("s", vec![])).await;
    w.write(4).await;
    w.reader("r", ReaderFrom::Sn(Sn(3)), Some(3_600_000)).await.unwrap();
    w.e.rollback(w.s, RollbackTo::Sn(Sn(2))).await.unwrap(); // 5
    w.write(1).await; // 6
    let stopped = w.unread("r").unwrap_err();
    assert_eq!((stopped.kind(), w.info("r").3), (ErrorKind::Conflict, "rolled_back"));
    assert!(stopped.message().contains("which the rollback 5 cut off; both go back to sn 2"), "{stopped}");
    assert_eq!(w.e.advance_reader("r", Sn(4)).await.unwrap_err().kind(), ErrorKind::Invalid);
    w.e.advance_reader("r", Sn(5)).await.unwrap();
    assert_eq!(w.new_rows("r").await, [4]);
}

#[tokio::test]
async fn rules_wait_for_a_reader_within_its_lag() {
    let mut w = World::new(def("s", vec![delete("ts + 1 days", None, 1)])).await;
    w.write(2).await;
    w.e.flush(None).await.unwrap();
    w.write(2).await;
    w.e.flush(None).await.unwrap();
    w.reader("r", ReaderFrom::Sn(Sn(2)), Some(3 * 86_400_000)).await.unwrap();
    w.e.advance_clock(Interval::days(2)).unwrap();
    w.e.settle(None).await.unwrap();
    // What it has read goes, what it has not read waits, merged or not.
    assert_eq!(values(&w.e, w.s).await, [2, 3]);
    let line = w.e.explain_lifecycle(w.s, w.e.now()).unwrap().remove(0);
    assert_eq!((line.state.as_str(), line.blocked_by.as_deref()), ("pinned_by_reader", Some("reader 'r'")));
    w.e.optimize(w.s, None, true).await.unwrap();
    assert_eq!(w.new_rows("r").await, [2, 3]);
    w.e.advance_reader("r", Sn(4)).await.unwrap();
    w.e.settle(None).await.unwrap();
    assert_eq!(values(&w.e, w.s).await, [] as [i64; 0]);
    // One that falls behind keeps nothing any more.
    w.e.insert(w.s, vec![rows(&[("h", START.0, 9)])], v1()).await.unwrap();
    w.e.settle(None).await.unwrap();
    assert_eq!(values(&w.e, w.s).await, [9]);
    w.e.advance_clock(Interval::days(4)).unwrap();
    w.e.settle(None).await.unwrap();
    assert_eq!(values(&w.e, w.s).await, [] as [i64; 0]);
    assert_eq!(w.info("r").3, "cut_off");
}

// proves U9
#[tokio::test]
async fn a_leased_cut_stays_readable_for_its_time() {
    let mut w = World::new(def("s", vec![])).await;
    w.write(3).await;
    let at = |sn| AsOf::Sn(Sn(sn));
    let until = w.e.now().saturating_add(std::time::Duration::from_secs(600));
    let lease = w.e.lease(w.s, &at(2), until).unwrap();
    w.e.truncate(w.s).await.unwrap();
    w.e.advance_clock(Interval::seconds(599)).unwrap();
    assert_eq!(w.expire().await, 2);
    w.e.settle(None).await.unwrap();
    assert_eq!(values_at(&w.e, w.s, at(2)).await.unwrap(), [0, 1]);
    assert_eq!(w.e.lease(w.s, &at(1), until).err().unwrap().kind(), ErrorKind::NotFound);
    let longest = w.e.now().saturating_add(limits::READ_LEASE_LONGEST);
    assert_eq!(w.e.lease(w.s, &at(2), Timestamp(longest.0 + 1)).err().unwrap().kind(), ErrorKind::Invalid);
    // Two hold it: the time of the one, the life of the other.
    let other = w.e.lease(w.s, &at(2), longest).unwrap();
    w.e.advance_clock(Interval::seconds(1)).unwrap();
    assert_eq!((lease.until, w.expire().await), (until, 0));
    drop(lease);
    drop(other);
    assert_eq!(w.expire().await, 1);
    assert!(values_at(&w.e, w.s, at(2)).await.is_err());
    w.e.settle(None).await.unwrap();
    assert_eq!(files(w.dir.path()), 0);
}

// Main's changes across a fast-forward begin where their first snapshot stood.
#[tokio::test]
async fn what_changed_since_a_branch_s_snapshot_is_what_came_after_it() {
    use ebb_engine::{
        InsertOptions,
        history::{NewRef, RefMode},
    };
    use ebb_storage::refs::RefKind;
    let mut w = World::new(def("s", vec![])).await;
    w.write(1).await; // 1: 0
    let dev = NewRef {
        kind: RefKind::Branch,
        mode: RefMode::Create,
        if_not_exists: false,
        name: "dev".into(),
        as_of: None,
        retain_ms: None,
        min_snapshots: None,
        max_snapshot_age_ms: None,
    };
    w.e.create_ref(w.s, dev).await.unwrap();
    let options = InsertOptions { branch: Some("dev".into()), ..v1() };
    w.e.insert(w.s, vec![rows(&[("h", START.0, 100)])], options).await.unwrap(); // 2
    w.e.fast_forward(w.s, "main", "dev").await.unwrap(); // 3
    w.write(1).await; // 4: 1
    let view = w.e.read();
    let added = async |from, to| {
        let changes = view.changes(w.s, Sn(from), Some(Sn(to))).unwrap();
        rows_of(&changes.added).await.into_iter().map(|(v, _)| v).collect::<Vec<_>>()
    };
    assert_eq!((added(2, 4).await, added(1, 3).await, added(0, 4).await), (vec![1], vec![100], vec![0, 1, 100]));
    assert_eq!(view.changes(w.s, Sn(2), Some(Sn(1))).err().unwrap().kind(), ErrorKind::Conflict);
}

/// What is to be done once, in the middle of the next rewrite.
type Meanwhile = Arc<Mutex<Option<Box<dyn FnOnce() + Send>>>>;

/// Rules' expressions that do something when they are evaluated.
struct Interrupting(Meanwhile);
struct Interrupted(Arc<dyn RowExpr>, Meanwhile);

impl ExprCompiler for Interrupting {
    fn compile(&self, text: &str, def: &StreamDef) -> ebb_engine::Result<Arc<dyn RowExpr>> {
        Ok(Arc::new(Interrupted(Words.compile(text, def)?, self.0.clone())))
    }
}

impl RowExpr for Interrupted {
    fn evaluate(&self, rows: &RecordBatch) -> ebb_engine::Result<ArrayRef> {
        let meanwhile = self.1.lock().unwrap().take();
        meanwhile.into_iter().for_each(|act| act());
        self.0.evaluate(rows)
    }
    fn columns(&self) -> &[ColumnId] {
        self.0.columns()
    }
    fn monotone_in(&self) -> Option<ColumnId> {
        self.0.monotone_in()
    }
}

/// A plan does not know of a reader that is made while it is carried out; its commit does.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_that_is_made_during_a_prune_is_heard() {
    let dir = tempfile::tempdir().unwrap();
    let meanwhile = Meanwhile::default();
    let compiler = Arc::new(Interrupting(meanwhile.clone()));
    let options = ebb_engine::OpenOptions { compiler, ..options(dir.path(), ebb_engine::Clock::simulated(START), false) };
    let e = Engine::open(options).await.unwrap();
    let d = with(def("s", vec![delete("ts + 1 days", None, 1)]), "merge_with_ttl_timeout", 0);
    let s = e.create_stream(d, false).await.unwrap();
    e.insert(s, vec![rows(&[("h", START.0, 1), ("h", START.0 + 5 * DAY, 2)])], v1()).await.unwrap();
    e.flush(None).await.unwrap();
    e.advance_clock(Interval::seconds(2 * 86_400)).unwrap();
    let (runtime, engine) = (tokio::runtime::Handle::current(), Arc::downgrade(&e));
    *meanwhile.lock().unwrap() = Some(Box::new(move || {
        let new =
            NewReader { name: "r".into(), stream: s, from: ReaderFrom::Earliest, max_lag_ms: Some(30 * 86_400_000), if_not_exists: false };
        let e = engine.upgrade().unwrap();
        assert!(runtime.block_on(e.create_reader(new)).unwrap());
    }));
    e.settle(None).await.unwrap();
    assert!(meanwhile.lock().unwrap().is_none(), "the prune was under way");
    let read = async || {
        let view = e.read();
        let (stream, from) = e.reader(&view, "r").unwrap();
        rows_of(&view.changes(stream, from, None).unwrap().added).await.len()
    };
    assert_eq!(read().await, 2, "it finds all that was there when it was made");
    e.advance_reader("r", Sn(1)).await.unwrap();
    e.settle(None).await.unwrap();
    assert_eq!(e.manifest().stream(s).unwrap().parts.values().map(|p| p.rows).sum::<u64>(), 1);
}

/// Parts that wait for a reader are looked at again when its lag is over, though nothing happens until then.
#[tokio::test]
async fn what_waits_for_a_reader_says_until_when() {
    let mut w = World::new(def("s", vec![delete("ts", None, 1)])).await;
    w.write(3).await;
    w.e.flush(None).await.unwrap();
    w.reader("r", ReaderFrom::Earliest, Some(3_600_000)).await.unwrap();
    w.reader("sooner", ReaderFrom::Earliest, Some(60_000)).await.unwrap();
    w.e.settle(None).await.unwrap();
    let told = w.e.explain_lifecycle(w.s, w.e.now()).unwrap().remove(0);
    let over = Timestamp(START.0 + 3_601_000_000 + 1);
    assert_eq!((told.state.as_str(), told.next_attempt_at), ("pinned_by_reader", Some(over)));
    w.e.advance_clock(Interval::seconds(3598)).unwrap();
    w.e.settle(None).await.unwrap();
    assert_eq!(values(&w.e, w.s).await.len(), 3, "within its lag");
    w.e.advance_clock(Interval::seconds(1)).unwrap();
    w.e.settle(None).await.unwrap();
    assert!(values(&w.e, w.s).await.is_empty());
}

/// proves I46: rules wait for a reader no longer than its lag, in a stream of which nothing else wakes anybody.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn due_rows_go_when_the_lag_of_a_reader_ends() {
    let dir = tempfile::tempdir().unwrap();
    let e = ebb_engine::Engine::open(options(dir.path(), ebb_engine::Clock::simulated(START), true)).await.unwrap();
    let s = e.create_stream(with(def("s", vec![delete("ts + 1 days", None, 1)]), "merge_with_ttl_timeout", 0), false).await.unwrap();
    e.insert(s, vec![rows(&[("h", START.0, 1), ("h", START.0 + 9 * DAY, 2)])], v1()).await.unwrap();
    e.flush(None).await.unwrap();
    let new = NewReader { name: "r".into(), stream: s, from: ReaderFrom::Earliest, max_lag_ms: Some(2 * 86_400_000), if_not_exists: false };
    e.create_reader(new).await.unwrap();
    e.advance_clock(Interval::days(1)).unwrap();
    e.settle(None).await.unwrap();
    let told = |e: &Engine| e.explain_lifecycle(s, e.now()).unwrap().remove(0);
    let ends = START.saturating_add(std::time::Duration::from_secs(2 * 86_400)).0 + 1;
    assert_eq!((told(&e).state, told(&e).next_attempt_at), ("pinned_by_reader".to_owned(), Some(Timestamp(ends))));
    e.advance_clock(Interval::days(1)).unwrap();
    e.advance_clock(Interval::seconds(1)).unwrap();
    // Rounds that do not look at the stream, whose state is the same, find nothing to do in it.
    for i in 0..20_000 {
        if values(&e, s).await == [2] {
            break;
        }
        e.create_database(&format!("d{i}"), false).await.unwrap();
        tokio::task::yield_now().await;
    }
    assert_eq!(values(&e, s).await, [2]);
    assert_eq!(e.readers()[0].state, "cut_off");
    e.close().await.unwrap();
}
