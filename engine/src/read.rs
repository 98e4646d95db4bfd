//! What readers see: one cut over all streams, and the parts and tail rows of a stream in it.
//!
//! Guards: a view is atomic over all streams (a transaction is seen whole or not at all), a row is in a part or in the tail and
//! never in both, and what a view names is not deleted while it lives (I8).

use crate::{
    disks::Disks,
    ingest::{Pending, Waiting},
    live::Live,
    write::stamped,
};
use arrow::array::{ArrayRef, Int64Array, RecordBatch};
use ebb_storage::{
    ids::{BranchId, SchemaVersion, Sn, StreamId},
    manifest::{Manifest, StreamState},
    part::{PartMeta, RowSet, meta::RowsAt},
    stream_def::StreamDef,
};
use object_store::{ObjectStore, path::Path};
use std::sync::Arc;

/// One cut over all streams, held until dropped. Cheap to clone.
#[derive(Clone)]
pub struct ReadView {
    pub(crate) live: Arc<Live>,
    pub(crate) disks: Arc<Disks>,
}

/// A stream as one cut sees it. It holds its parts as long as the view that it came from lives, or it itself.
#[derive(Clone)]
pub struct StreamView {
    pub def: Arc<StreamDef>,
    pub state: Arc<StreamState>,
    /// Parts with rows that main's head sees, in the order of their ids.
    pub parts: Vec<LivePart>,
    /// Rows that are in no part yet, in the order of their records.
    pub tail: Vec<TailRows>,
    /// The newest record of the stream.
    pub head_sn: Sn,
    /// Records up to this one are in parts.
    pub applied_sn: Sn,
    _held: Hold,
}

/// A part that a view reads. Its file stays as long as this lives, the view or not.
#[derive(Clone)]
pub struct LivePart {
    pub meta: Arc<PartMeta>,
    pub store: Arc<dyn ObjectStore>,
    pub key: Path,
    /// The disk's name.
    pub disk: Arc<str>,
    /// Reading it goes over the network.
    pub remote: bool,
    /// Rows of the file that main's head does not see.
    pub hidden: Option<Arc<RowSet>>,
    /// A staged part's rows all have this sn; the file's `_tp_sn` column says 0.
    pub sn_of_record: Option<Sn>,
    /// Whoever opens the file later than the view ends keeps this.
    pub hold: Hold,
}

/// What is named by a cut is not deleted as long as this lives (I8).
#[derive(Clone)]
pub struct Hold {
    _live: Arc<Live>,
    /// A transaction's own part.
    _own: Option<Arc<Waiting>>,
}

impl Hold {
    fn of(live: &Arc<Live>) -> Self {
        Self { _live: live.clone(), _own: None }
    }
}

/// Rows of the tail that were written under one schema version.
#[derive(Debug, Clone)]
pub struct TailRows {
    /// The newest record among them.
    pub sn: Sn,
    pub schema_version: SchemaVersion,
    /// In `row_schema` of that version.
    pub rows: RecordBatch,
    /// Where the rows are of several records: the sn of each row.
    pub sns: Option<Int64Array>,
}

impl TailRows {
    /// `_tp_sn` of each row.
    pub fn sn_column(&self) -> ArrayRef {
        match &self.sns {
            Some(sns) => Arc::new(sns.clone()),
            None => Arc::new(Int64Array::from_value(self.sn.0 as i64, self.rows.num_rows())),
        }
    }
}

impl ReadView {
    pub fn manifest(&self) -> &Arc<Manifest> {
        &self.live.manifest
    }

    /// Those that people made.
    pub fn streams(&self) -> impl Iterator<Item = &Arc<StreamState>> {
        self.live.manifest.user_streams()
    }

    pub fn stream(&self, id: StreamId) -> Option<StreamView> {
        self.live.manifest.stream(id).map(|s| self.view(s))
    }

    pub fn stream_named(&self, database: &str, name: &str) -> Option<StreamView> {
        self.live.manifest.stream_named(database, name).map(|s| self.view(s))
    }

    /// `view` with the staged parts that a transaction inserted; its other rows are [`Pending::rows`]. What a transaction inserts comes
    /// behind all records of the cut.
    pub fn with_pending(&self, mut view: StreamView, pending: &Pending) -> StreamView {
        let sn = Sn(view.head_sn.0.saturating_add(1));
        for waiting in &pending.parts {
            let parts = waiting.metas().iter().filter_map(|p| self.part(&Arc::new(stamped(p, sn)), Some(sn)));
            view.parts.extend(parts.map(|p| LivePart { hold: Hold { _own: Some(waiting.clone()), ..p.hold }, ..p }));
        }
        view
    }

    fn view(&self, state: &Arc<StreamState>) -> StreamView {
        let id = state.def.id;
        let tail = self.live.tail(id);
        let seen = |p: &&Arc<PartMeta>| tail.truncated_at().is_none_or(|at| p.max_sn() > at);
        let listed = state.parts.values().filter(seen).filter_map(|p| self.part(p, p.sn_in_meta.then(|| p.max_sn())));
        let staged = tail.staged().iter().flat_map(|(sn, parts)| parts.iter().map(|p| (*sn, p)));
        let staged = staged.filter_map(|(sn, p)| self.part(&Arc::new(stamped(p, sn)), Some(sn)));
        StreamView {
            def: state.def.clone(),
            state: state.clone(),
            parts: listed.chain(staged).collect(),
            tail: tail.chunks().iter().map(|c| c.as_ref().clone()).collect(),
            head_sn: tail.head(),
            applied_sn: state.applied_sn,
            _held: Hold::of(&self.live),
        }
    }

    /// `None` where main's head sees nothing of it. A part on a disk that is away is listed with a store that says so.
    fn part(&self, meta: &Arc<PartMeta>, sn_of_record: Option<Sn>) -> Option<LivePart> {
        let hidden = hidden_rows(meta);
        if hidden.as_ref().is_some_and(|h| h.len() >= meta.rows) {
            return None;
        }
        let disk = self.disks.disk_or_away(meta.placement.disk);
        Some(LivePart {
            key: self.disks.key(meta.stream, meta.id, meta.placement.generation),
            store: disk.store.clone(),
            disk: disk.name.clone(),
            remote: disk.def.as_ref().is_some_and(|d| d.is_remote()),
            meta: meta.clone(),
            hidden: hidden.map(Arc::new),
            sn_of_record,
            hold: Hold::of(&self.live),
        })
    }
}

/// Rows of the file that main's head does not see: deleted on main, or expired. Only what the manifest itself holds; sets that lie
/// beside the part do not occur before there is DELETE FROM.
pub(crate) fn hidden_rows(meta: &PartMeta) -> Option<RowSet> {
    let deleted = meta.deletions.iter().filter(|d| d.branch == BranchId::MAIN).map(|d| &d.rows);
    let expired = meta.expired.iter().map(|e| &e.rows);
    let mut hidden = RowSet::default();
    for rows in deleted.chain(expired) {
        match rows {
            RowsAt::Inline(rows) => hidden.0 |= &rows.0,
            RowsAt::All => _ = hidden.0.insert_range(0..meta.rows as u32),
            RowsAt::Beside { .. } => {}
        }
    }
    (!hidden.is_empty()).then_some(hidden)
}
