//! What readers see: one cut over all streams, and the parts and tail rows of a stream in it.
//!
//! Guards: a view is atomic over all streams (a transaction is seen whole or not at all), a row is in a part or in the tail and
//! never in both, and what a view names is not deleted while it lives (I8).

use crate::{
    disks::Disks,
    folded,
    ingest::{Pending, Waiting, tail::Tail},
    live::Live,
    part_rows::share_seen,
    sets::RowSets,
    settings::max_ref_age_ms,
    write::stamped,
};
use arrow::{
    array::{ArrayRef, AsArray, BooleanArray, Int64Array, RecordBatch},
    compute::{filter, filter_record_batch},
    datatypes::Int64Type,
};
use ebb_storage::{
    Error, Result, Timestamp,
    ids::{BranchId, CommitNo, SchemaVersion, Sn, StreamId},
    lineage::{Cut, Seen, SnRange, SnSet, Visibility},
    manifest::{Manifest, StreamState},
    part::{PartMeta, RowSet},
    refs::AsOf,
    stream_def::StreamDef,
};
use object_store::{ObjectStore, path::Path};
use std::sync::Arc;

/// One cut over all streams, held until dropped. Cheap to clone.
#[derive(Clone)]
pub struct ReadView {
    pub(crate) live: Arc<Live>,
    pub(crate) disks: Arc<Disks>,
    pub(crate) sets: Arc<RowSets>,
}

/// A stream as one cut sees it. It holds its parts as long as the view that it came from lives, or it itself.
#[derive(Clone)]
pub struct StreamView {
    /// The columns to read with: of a tag those of its moment, else those of today.
    pub def: Arc<StreamDef>,
    /// With what the tail's records change beside rows.
    pub state: Arc<StreamState>,
    pub cut: Cut,
    /// The record that the cut stands at; of main's head the newest of main.
    pub sn: Sn,
    /// Main's present or past state, where removals by rules count, rather than a tag's or branch's.
    pub of_main: bool,
    /// Parts with rows that the cut sees, in the order of their ids.
    pub parts: Vec<LivePart>,
    /// Rows that are in no part yet and that the cut sees, in the order of their records.
    pub tail: Vec<TailRows>,
    /// The newest record of the stream, whatever branch it was written to.
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
    /// Rows of the file that the cut does not see: deleted for it, or expired.
    pub hidden: Option<Arc<RowSet>>,
    /// The cut sees rows with these sns only; `None`: with any.
    pub sns: Option<SnSet>,
    /// A staged part's rows all have this sn; the file's `_tp_sn` column says 0.
    pub sn_of_record: Option<Sn>,
    /// Whoever opens the file later than the view ends keeps this.
    pub hold: Hold,
}

impl LivePart {
    /// Whether the cut sees a row of the file.
    pub fn sees(&self, row: u32, sn: Sn) -> bool {
        self.sns.as_ref().is_none_or(|set| set.contains(sn)) && self.hidden.as_ref().is_none_or(|hidden| !hidden.0.contains(row))
    }
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
    /// All of them were written to it.
    pub branch: BranchId,
    pub schema_version: SchemaVersion,
    /// In `row_schema` of that version.
    pub rows: RecordBatch,
    /// Where the rows are of several records: the sn of each row.
    pub sns: Option<Int64Array>,
}

impl TailRows {
    /// The rows that a cut sees; `None` where it sees none.
    fn seen(&self, seen: &Seen) -> Option<Self> {
        let first = self.sns.as_ref().and_then(|s| s.values().first().copied()).map_or(self.sn, |sn| Sn(sn as u64));
        let own = SnRange { after: Sn(first.0.saturating_sub(1)), to: self.sn };
        match seen.of_rows(std::iter::once((self.branch, own))) {
            Visibility::All => Some(self.clone()),
            Visibility::None => None,
            Visibility::Some(set) => self.with(|sn| set.contains(sn)),
        }
    }

    /// The rows whose sn `keep` says yes to; `None` where there are none.
    pub(crate) fn with(&self, keep: impl Fn(Sn) -> bool) -> Option<Self> {
        let Some(sns) = &self.sns else { return keep(self.sn).then(|| self.clone()) };
        self.masked(&sns.values().iter().map(|sn| keep(Sn(*sn as u64))).collect())
    }

    /// The rows that the mask says yes to; `None` where there are none.
    pub(crate) fn masked(&self, mask: &BooleanArray) -> Option<Self> {
        match mask.true_count() {
            0 => None,
            n if n == self.rows.num_rows() => Some(self.clone()),
            _ => Some(Self {
                rows: filter_record_batch(&self.rows, mask).ok()?,
                sns: self.sns.as_ref().and_then(|sns| Some(filter(sns, mask).ok()?.as_primitive::<Int64Type>().clone())),
                ..self.clone()
            }),
        }
    }

    /// `_tp_sn` of each row.
    pub fn sn_column(&self) -> ArrayRef {
        match &self.sns {
            Some(sns) => Arc::new(sns.clone()),
            None => Arc::new(Int64Array::from_value(self.sn.0 as i64, self.rows.num_rows())),
        }
    }
}

impl StreamView {
    /// How many rows there are; of a part of which only some records are seen, their share.
    pub fn rows_about(&self) -> u64 {
        let of_part = |p: &LivePart| {
            let hidden = p.hidden.as_ref().map_or(0, |h| h.len());
            let Some(sns) = &p.sns else { return p.meta.rows.saturating_sub(hidden) };
            share_seen(&p.meta, sns, p.meta.rows.saturating_sub(hidden))
        };
        let tail: u64 = self.tail.iter().map(|t| t.rows.num_rows() as u64).sum();
        tail + self.parts.iter().map(of_part).sum::<u64>()
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

    /// Main's head.
    pub fn stream(&self, id: StreamId) -> Option<StreamView> {
        self.live.manifest.stream(id).map(|s| self.head(s))
    }

    /// Main's head.
    pub fn stream_named(&self, database: &str, name: &str) -> Option<StreamView> {
        self.live.manifest.stream_named(database, name).map(|s| self.head(s))
    }

    /// A stream's state with all that the tail's records say folded in but their rows.
    pub fn state(&self, id: StreamId) -> Option<Arc<StreamState>> {
        self.live.manifest.stream(id).map(|s| folded::whole(s, &self.live.tail(id)))
    }

    /// What a cut saw.
    ///
    /// # Errors
    /// `NotFound` for a stream or ref that is not there, `Invalid` for a cut outside the history, naming the oldest there is.
    pub fn stream_as_of(&self, id: StreamId, at: &AsOf, now: Timestamp) -> Result<StreamView> {
        let state = self.state(id).ok_or_else(|| Error::not_found("the stream does not exist (any more)"))?;
        let found = state.resolve(at, now, max_ref_age_ms(&state.def))?;
        let def = found.schema.map(|v| state.schema(v).clone());
        Ok(self.view(&state, found.cut, found.sn, def))
    }

    /// `view` with what a transaction did: staged parts that it inserted (its other rows are [`Pending::rows`]), and without the rows it
    /// deleted. What a transaction inserts comes behind all records of the cut.
    pub fn with_pending(&self, mut view: StreamView, pending: &Pending) -> StreamView {
        let sn = Sn(view.head_sn.0.saturating_add(1));
        let branch = view.cut.branch;
        let own = pending.of(branch);
        for waiting in &own.parts {
            let parts = waiting.metas().iter().map(|p| self.part(&Arc::new(stamped(p, sn, branch)), Some(sn), None));
            view.parts.extend(parts.map(|p| LivePart { hold: Hold { _own: Some(waiting.clone()), ..p.hold }, ..p }));
        }
        for deleted in &own.deleted {
            deleted.take_from(&mut view);
        }
        view
    }

    fn head(&self, state: &Arc<StreamState>) -> StreamView {
        let tail = self.live.tail(state.def.id);
        let state = folded::layout(state, &tail);
        self.view(&state, state.head(), state.head_of(BranchId::MAIN), None)
    }

    /// Main's or another cut of a state that [`Self::state`] gave.
    pub(crate) fn at(&self, state: &Arc<StreamState>, cut: Cut, sn: Sn) -> StreamView {
        self.view(state, cut, sn, None)
    }

    /// Every part that is listed or staged, whoever sees it.
    pub(crate) fn all_parts(&self, state: &StreamState) -> Vec<LivePart> {
        let tail = self.live.tail(state.def.id);
        let listed = state.parts.values().map(|p| self.part(p, p.sn_in_meta.then(|| p.max_sn()), None));
        let staged = self.staged(&tail).map(|(sn, p)| self.part(&p, Some(sn), None));
        listed.chain(staged).collect()
    }

    /// Parts that the tail's records name, as they will be listed.
    fn staged<'a>(&self, tail: &'a Tail) -> impl Iterator<Item = (Sn, Arc<PartMeta>)> + 'a {
        let all = tail.staged().iter().flat_map(|(sn, branch, parts)| parts.iter().map(|p| (*sn, *branch, p)));
        all.map(|(sn, branch, p)| {
            let deletions = folded::deletions_of(tail, p.id).collect();
            (sn, Arc::new(PartMeta { deletions, ..stamped(p, sn, branch) }))
        })
    }

    /// `state` knows the tail's lineages and deletions.
    fn view(&self, state: &Arc<StreamState>, cut: Cut, sn: Sn, def: Option<Arc<StreamDef>>) -> StreamView {
        let tail = self.live.tail(state.def.id);
        let seen = state.seen(&cut);
        let origins = |p: &PartMeta| match seen.of_rows(p.origins.iter().map(|o| (o.branch, o.sns))) {
            Visibility::All => Some(None),
            Visibility::None => None,
            Visibility::Some(sns) => Some(Some(sns)),
        };
        let of_part = |p: &Arc<PartMeta>, sn_of_record: Option<Sn>| {
            let sns = origins(p)?;
            let part = match hidden_rows(&self.sets, p, &seen) {
                Ok(hidden) if hidden.as_ref().is_some_and(|h| h.len() >= p.rows) => return None,
                Ok(hidden) => LivePart { hidden: hidden.map(Arc::new), ..self.part(p, sn_of_record, sns) },
                // Reading it says so.
                Err(e) => LivePart { store: self.disks.failing(p.placement.disk, e), ..self.part(p, sn_of_record, sns) },
            };
            Some(part)
        };
        let listed = state.parts.values().filter_map(|p| of_part(p, p.sn_in_meta.then(|| p.max_sn())));
        let staged = self.staged(&tail).filter_map(|(sn, p)| of_part(&p, Some(sn)));
        StreamView {
            def: def.unwrap_or_else(|| state.def.clone()),
            parts: listed.chain(staged).collect(),
            tail: tail.chunks().iter().filter_map(|c| c.seen(&seen)).collect(),
            state: state.clone(),
            // Of a branch that was moved by a record of the tail, all removals count until that is applied.
            of_main: cut.horizon == CommitNo(u64::MAX) && (cut.branch == BranchId::MAIN || state.branch(cut.branch).is_none()),
            cut,
            sn,
            head_sn: tail.head(),
            applied_sn: state.applied_sn,
            _held: Hold::of(&self.live),
        }
    }

    /// A part on a disk that is away is listed with a store that says so.
    fn part(&self, meta: &Arc<PartMeta>, sn_of_record: Option<Sn>, sns: Option<SnSet>) -> LivePart {
        let disk = self.disks.disk_or_away(meta.placement.disk);
        LivePart {
            key: self.disks.key(meta.stream, meta.id, meta.placement.generation),
            store: disk.store.clone(),
            disk: disk.name.clone(),
            remote: disk.def.as_ref().is_some_and(|d| d.is_remote()),
            meta: meta.clone(),
            hidden: None,
            sns,
            sn_of_record,
            hold: Hold::of(&self.live),
        }
    }
}

/// Rows of the file that a cut does not see: deleted by a record that it sees, or expired within its horizon.
pub(crate) fn hidden_rows(sets: &RowSets, meta: &PartMeta, seen: &Seen) -> Result<Option<RowSet>> {
    let deleted = meta.deletions.iter().filter(|d| seen.contains(d.branch, d.sn)).map(|d| &d.rows);
    let expired = meta.expired.iter().filter(|e| e.commit <= seen.horizon).map(|e| &e.rows);
    let mut hidden = RowSet::default();
    for rows in deleted.chain(expired) {
        hidden.0 |= &sets.rows(meta, rows)?.0;
    }
    Ok((!hidden.is_empty()).then_some(hidden))
}
