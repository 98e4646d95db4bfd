//! Records in their order: each gets its stream's next sn and goes into the log in the same step; when it is durable it is published.
//!
//! Guards: sns are dense per stream and rise in log order, record times never fall (I3); nothing is visible before it is durable, and
//! what is acknowledged is both (I11); records of one unit are published together. Where a full disk fails a record, all behind it in
//! the queue have failed too, and numbering starts again from what is durable.

use crate::{
    core::{Core, busy},
    ingest::{
        content::{Content, Deleting, NewLineage},
        tail::Tail,
    },
    live::LiveCell,
};
use bytes::Bytes;
use ebb_storage::{
    Error, ErrorKind, Result, Timestamp, decision,
    ids::{BranchId, Lsn, SchemaVersion, Sn, StreamId},
    log::{Durable, LogWriter, Record, RecordHeader, StartLog},
    manifest::{StreamState, edit::RecordInfo},
    verb::Verb,
};
use parking_lot::Mutex;
use std::{collections::HashMap, sync::Arc};

/// A record that has no number yet.
pub struct NewRecord {
    pub stream: StreamId,
    pub branch: BranchId,
    pub verb: Verb,
    /// It fails where the branch has another head by then.
    pub expects_head: Option<Sn>,
    pub schema_version: SchemaVersion,
    pub key: Option<String>,
    pub rows_added: u64,
    /// What the log keeps.
    pub body: Bytes,
    /// What the tail keeps.
    pub content: Content,
}

impl NewRecord {
    /// Of a record that changes what a branch sees.
    pub fn of_lineage(state: &StreamState, branch: BranchId, verb: Verb, new: NewLineage) -> Result<Self> {
        Ok(Self::without_rows(state, branch, verb, new.encode()?, Content::Lineage(Arc::new(new))))
    }

    /// Of a record that removes rows of parts.
    pub fn of_deletion(state: &StreamState, branch: BranchId, verb: Verb, what: Deleting) -> Result<Self> {
        Ok(Self::without_rows(state, branch, verb, what.encode()?, Content::Delete(Arc::new(what))))
    }

    fn without_rows(state: &StreamState, branch: BranchId, verb: Verb, body: Bytes, content: Content) -> Self {
        let (stream, schema_version) = (state.def.id, state.def.schema_version);
        Self { stream, branch, verb, expects_head: None, schema_version, key: None, rows_added: 0, body, content }
    }
}

/// A record that is in the log's queue, and on its way to the tail.
pub struct Pending {
    pub stream: StreamId,
    pub info: RecordInfo,
    pub content: Content,
    held: Vec<Held>,
}

/// What nobody else may have until a record is seen, whoever waits for that.
pub type Held = tokio::sync::OwnedMutexGuard<()>;

pub struct Appender {
    order: Mutex<Order>,
    log: Arc<LogWriter<Vec<Pending>>>,
    /// The newest lsn that was published.
    published: Arc<Mutex<Lsn>>,
}

struct Order {
    /// Of each stream that was written to.
    heads: HashMap<StreamId, Heads>,
    last_time: Timestamp,
}

/// The newest sns given.
#[derive(Clone, Default)]
struct Heads {
    stream: Sn,
    branches: HashMap<BranchId, Sn>,
}

impl Heads {
    /// As readers see them.
    fn published(tail: &Tail, state: &StreamState) -> Self {
        let mut branches: HashMap<BranchId, Sn> = state.heads.iter().map(|(b, sn)| (*b, *sn)).collect();
        branches.extend(tail.heads().iter().copied());
        Self { stream: tail.head(), branches }
    }
}

impl Appender {
    /// Starts the log behind what was replayed.
    pub fn start(log: StartLog, live: Arc<LiveCell>, last_time: Timestamp) -> Result<Self> {
        let published = Arc::new(Mutex::new(Lsn(log.replayed.next_lsn.0.saturating_sub(1))));
        let newest = published.clone();
        let sink = move |durable: Durable<Vec<Pending>>| {
            let last = durable.last_lsn;
            publish(&live, durable);
            *newest.lock() = last;
        };
        let log = Arc::new(LogWriter::start(log, sink)?);
        Ok(Self { order: Mutex::new(Order { heads: HashMap::new(), last_time }), log, published })
    }

    /// Appends records as one unit: all of them are durable and visible when this returns, or none ever is.
    ///
    /// # Errors
    /// `NotFound` where a stream was dropped, `Full` where the log's disk is full; what the log says once it is poisoned, after which
    /// it is not known whether the records are durable.
    pub async fn append(&self, core: &Core, records: Vec<NewRecord>) -> Result<Vec<Sn>> {
        self.append_holding(core, records, Vec::new()).await
    }

    /// [`Self::append`] of records that stand on what these guards keep as it is. They are let go of once the records are seen or fail,
    /// also where nobody waits for that any more.
    ///
    /// # Errors
    /// As `append`.
    pub async fn append_holding(&self, core: &Core, records: Vec<NewRecord>, held: Vec<Held>) -> Result<Vec<Sn>> {
        self.log.ready().await;
        let (sns, ticket) = {
            let mut order = self.order.lock();
            if self.log.is_halted() {
                self.number_anew(&mut order);
            }
            let live = core.live.read();
            let time = core.now().max(order.last_time);
            let mut heads: HashMap<StreamId, Heads> = HashMap::new();
            let mut sns = Vec::with_capacity(records.len());
            let (mut logged, mut pending) = (Vec::with_capacity(records.len()), Vec::with_capacity(records.len()));
            for r in records {
                let Some(state) = live.manifest.stream(r.stream) else {
                    drop(live);
                    return Err(core.is_gone(r.stream));
                };
                // Written to a branch that is dropped meanwhile, rows would be nowhere.
                if r.branch != BranchId::MAIN && state.branch(r.branch).is_none() {
                    return Err(Error::not_found(format!("the branch of {} was dropped meanwhile", state.def.full_name())));
                }
                let known = heads.remove(&r.stream).or_else(|| order.heads.get(&r.stream).cloned());
                let mut now = known.unwrap_or_else(|| Heads::published(&live.tail(r.stream), state));
                let before = now.branches.get(&r.branch).copied().unwrap_or_else(|| state.head_of(r.branch));
                if r.expects_head.is_some_and(|head| head != before) {
                    return Err(Error::conflict(format!(
                        "{} was written to meanwhile (record {before}): try again",
                        state.def.full_name()
                    )));
                }
                let sn = now.stream.next();
                now.stream = sn;
                now.branches.insert(r.branch, sn);
                heads.insert(r.stream, now);
                sns.push(sn);
                let (branch, verb, schema_version) = (r.branch, r.verb, r.schema_version);
                let header = RecordHeader { stream: r.stream, sn, branch, verb, schema_version, time, key: r.key };
                let info = info_of(&header, before, &r.content, r.rows_added);
                logged.push(Record { header, body: r.body });
                pending.push(Pending { stream: r.stream, info, content: r.content, held: Vec::new() });
            }
            if let Some(last) = pending.last_mut() {
                last.held = held;
            }
            decision::decide()?;
            let ticket = self.log.append(&logged, pending)?;
            order.heads.extend(heads);
            order.last_time = time;
            (sns, ticket)
        };
        match ticket.await {
            Ok(_) => Ok(sns),
            Err(e) => {
                if e.kind() == ErrorKind::Full {
                    self.number_anew(&mut self.order.lock());
                }
                Err(e.context("the log"))
            }
        }
    }

    /// After a full disk: nothing is in flight, so the next number follows what is published.
    fn number_anew(&self, order: &mut Order) {
        if self.log.is_halted() {
            order.heads.clear();
            self.log.resume();
        }
    }

    /// Up to which lsn the log will not be needed once the records of these streams up to these sns are in parts or dropped. Asked
    /// while a commit is made, so that no other takes records out of tails meanwhile.
    pub fn applied_once(&self, core: &Core, settled: &[(StreamId, Sn)]) -> Lsn {
        // Before the look at the tails: what is published later is above it.
        let published = *self.published.lock();
        let live = core.live.read();
        let oldest = live.tails().filter_map(|(id, tail)| match settled.iter().find(|(s, _)| s == id) {
            Some((_, sn)) => tail.first_lsn_after(*sn),
            None => tail.first_lsn_after(Sn(0)),
        });
        oldest.min().map_or(published, |l| Lsn(l.0.saturating_sub(1)).min(published))
    }

    /// Lets the log drop files whose records the manifest says are not needed.
    pub async fn trim(&self, core: &Core) {
        let (log, lock, applied) = (self.log.clone(), core.dir.clone(), core.live.read().manifest.applied_lsn);
        let trimmed = busy(move || {
            let trimmed = log.trim(applied);
            // Also where nobody waits for it any more, nothing is removed without the directory's lock.
            drop((log, lock));
            trimmed
        });
        if let Err(e) = trimmed.await {
            core.note(&e);
        }
    }

    pub fn published(&self) -> Lsn {
        *self.published.lock()
    }

    pub fn poisoned(&self) -> Option<Error> {
        self.log.poisoned()
    }

    pub fn close(&self) -> Result<()> {
        self.log.close()
    }
}

/// What the record list says of a record on a branch whose head was `before`.
pub fn info_of(header: &RecordHeader, before: Sn, content: &Content, rows_added: u64) -> RecordInfo {
    let (parent, rows_added, rows_deleted) = match content {
        Content::Lineage(new) => (new.parent.unwrap_or(before), new.rows_added, new.rows_deleted),
        Content::Delete(what) => (before, 0, what.rows),
        Content::Rows(_) | Content::Parts(_) => (before, rows_added, 0),
    };
    RecordInfo {
        sn: header.sn,
        count: 1,
        parent,
        branch: header.branch,
        time: header.time,
        verb: header.verb,
        rows_added,
        rows_deleted,
        schema_version: header.schema_version,
        key: header.key.clone(),
        runs: None,
        since: None,
    }
}

/// Shows the records of a frame, all in one step.
fn publish(live: &LiveCell, durable: Durable<Vec<Pending>>) {
    // Let go of when all is seen.
    let mut held = Vec::new();
    live.publish(|live| {
        let mut tails = HashMap::new();
        for unit in durable.units {
            for (i, mut record) in unit.attachment.into_iter().enumerate() {
                held.append(&mut record.held);
                // A stream dropped meanwhile takes its records along.
                if live.manifest.stream(record.stream).is_none() {
                    continue;
                }
                let tail = tails.entry(record.stream).or_insert_with(|| live.tail(record.stream).as_ref().clone());
                tail.push(record.info, Lsn(unit.first_lsn.0 + i as u64), record.content);
            }
        }
        for (stream, tail) in tails {
            live.set_tail(stream, tail);
        }
    });
}
