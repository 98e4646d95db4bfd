//! DELETE FROM: finding the rows, and one record that names them.
//!
//! The tail is flushed first, so that every row up to the read cut lies in a part; what comes later is not touched. Rows are found
//! without holding anybody up; if a part was rewritten meanwhile they are sought again with rewrites of the stream held back, so a record
//! names only parts that are there when it is appended (I13). Guards: all rows that match at the cut, and no other; no row, no record.

use crate::{
    Engine,
    append::{Held, NewRecord},
    core::{Core, busy},
    deduplicate::CopiesOf,
    expr::RowExpr,
    ingest::{
        content::{Content, Deleting, Target},
        flush,
        insert::branch_of,
    },
    read::{LivePart, ReadView, StreamView},
    sets,
    upgrade::{field_id, place_of, upgrade},
};
use arrow::{
    array::{Array, ArrayRef, AsArray, BooleanArray, Int64Array, RecordBatch, RecordBatchOptions},
    datatypes::Int64Type,
};
use ebb_storage::{
    Error, Result,
    ids::{BranchId, ColumnId, PartId, SchemaVersion, Sn, StreamId},
    manifest::StreamState,
    part::{PartMeta, PartReader, RowSet, meta::RowsAt, reader::ReadOptions},
    refs::AsOf,
    stream_def::StreamDef,
    verb::Verb,
};
use futures::{StreamExt, TryStreamExt, stream};
use std::{collections::BTreeSet, sync::Arc};

/// Rows evaluated at a time.
const BATCH_ROWS: usize = 65_536;
/// Parts that are looked through at the same time.
const PARTS_AT_ONCE: usize = 2;

/// What to delete.
#[derive(Clone)]
pub struct DeleteRequest {
    pub stream: StreamId,
    /// `None`: main.
    pub branch: Option<String>,
    /// Yes or no for each row in the stream's `part_schema`; NULL is no.
    pub matches: Arc<dyn RowExpr>,
    /// The version that `matches` was compiled for.
    pub schema_version: SchemaVersion,
    /// Whether what the manifest knows of a part proves that no row matches.
    pub skip: Arc<dyn Fn(&PartMeta) -> bool + Send + Sync>,
}

/// What a DELETE did; without rows there is no record.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Deleted {
    pub sn: Option<Sn>,
    pub rows: u64,
}

/// Rows that match, of parts.
#[derive(Default)]
pub(crate) struct Found {
    pub parts: Vec<(Arc<PartMeta>, RowSet)>,
}

impl Found {
    pub fn rows(&self) -> u64 {
        self.parts.iter().map(|(_, rows)| rows.len()).sum()
    }
}

impl Engine {
    /// Removes the rows that match for every later cut of the branch; earlier cuts keep them.
    ///
    /// # Errors
    /// `NotFound` without the stream or branch, `Conflict` where the columns changed since `schema_version`, what evaluating says, `Full`;
    /// nothing is removed then.
    pub async fn delete(&self, request: DeleteRequest) -> Result<Deleted> {
        let core = &self.core;
        let one = core.change_lock(request.stream).lock_owned().await;
        remove(core, &Search::Matching(&request), one).await.map(|(deleted, _)| deleted)
    }
}

/// Which rows a record removes.
pub(crate) enum Search<'a> {
    Matching(&'a DeleteRequest),
    Copies(&'a CopiesOf<'a>),
}

impl Search<'_> {
    fn stream(&self) -> StreamId {
        match self {
            Self::Matching(of) => of.stream,
            Self::Copies(of) => of.stream,
        }
    }

    fn branch(&self) -> Option<&str> {
        match self {
            Self::Matching(of) => of.branch.as_deref(),
            Self::Copies(_) => None,
        }
    }

    fn schema_version(&self) -> SchemaVersion {
        match self {
            Self::Matching(of) => of.schema_version,
            Self::Copies(of) => of.copies.schema_version,
        }
    }

    fn verb(&self) -> Verb {
        match self {
            Self::Matching(_) => Verb::Delete,
            Self::Copies(_) => Verb::Deduplicate,
        }
    }

    async fn found_now(&self, core: &Arc<Core>) -> Result<Found> {
        match self {
            Self::Matching(of) => found_now(core, of, None).await,
            Self::Copies(of) => of.found_now(core).await,
        }
    }
}

/// Removes what is sought, as one record; in which parts the rows lie. `one` is the stream's change lock.
pub(crate) async fn remove(core: &Arc<Core>, search: &Search<'_>, one: Held) -> Result<(Deleted, Vec<PartId>)> {
    let Some((record, layout)) = prepare(core, search).await? else { return Ok(Default::default()) };
    let (rows, parts) = match &record.content {
        Content::Delete(what) => (what.rows, what.targets.iter().map(|t| t.part).collect()),
        _ => (0, Vec::new()),
    };
    let sns = core.appender.append_holding(core, vec![record], vec![layout, one]).await?;
    Ok((Deleted { sn: sns.first().copied(), rows }, parts))
}

/// The record, and what keeps its targets there until it is appended; `None` where nothing is found. The caller holds the stream's change
/// lock.
async fn prepare(core: &Arc<Core>, search: &Search<'_>) -> Result<Option<(NewRecord, Held)>> {
    let stream = search.stream();
    let (layout, mut held) = (core.layout_lock(stream), None);
    loop {
        flush::flush(core, stream).await?;
        let state = core.stream(stream)?;
        crate::ddl::not_system(&state.def.database)?;
        let branch = branch_of(core, &state, search.branch())?;
        let found = search.found_now(core).await?;
        if found.parts.is_empty() {
            return Ok(None);
        }
        let (read, rows) = (state.applied_sn, found.rows());
        let mut targets = Vec::with_capacity(found.parts.len());
        for (meta, rows) in found.parts {
            let rows = sets::keep(core, (stream, meta.id, meta.rows), sets::Kind::Deletion, rows).await?;
            targets.push(Target { part: meta.id, rows });
        }
        let again = held.is_none();
        let guard = match held.take() {
            Some(guard) => guard,
            None => layout.clone().lock_owned().await,
        };
        let now = core.stream(stream)?;
        same_columns(&now.def, search.schema_version())?;
        if targets.iter().all(|t| now.parts.contains_key(&t.part)) {
            return NewRecord::of_deletion(&now, branch, search.verb(), Deleting { read, rows, targets }).map(|r| Some((r, guard)));
        }
        targets.iter().for_each(|t| sets::abandon(core, (stream, t.part), &t.rows));
        if !again {
            return Err(Error::internal("a part went away although nothing could replace it"));
        }
        held = Some(guard);
    }
}

pub(crate) fn same_columns(def: &StreamDef, version: SchemaVersion) -> Result<()> {
    match def.schema_version == version {
        true => Ok(()),
        false => Err(Error::conflict(format!("the columns of {} changed meanwhile: try again", def.full_name()))),
    }
}

pub(crate) fn head_of(core: &Arc<Core>, state: &StreamState, branch: Option<&str>) -> Result<StreamView> {
    let view = ReadView { live: core.live.read(), disks: core.disks.clone(), sets: core.sets.clone() };
    match branch {
        None => view.stream(state.def.id).ok_or_else(|| core.is_gone(state.def.id)),
        Some(name) => view.stream_as_of(state.def.id, &AsOf::Name(name.to_owned()), core.now()),
    }
}

/// What matches now in parts that are listed, of the records up to `upto` where it is given.
pub(crate) async fn found_now(core: &Arc<Core>, request: &DeleteRequest, upto: Option<Sn>) -> Result<Found> {
    let state = core.stream(request.stream)?;
    same_columns(&state.def, request.schema_version)?;
    let view = head_of(core, &state, request.branch.as_deref())?;
    let listed = view.parts.iter().filter(|p| state.parts.contains_key(&p.meta.id)).cloned().collect();
    find(core, &view.def, listed, request, upto).await
}

/// Rows of `parts` that match and are seen.
pub(crate) async fn find(
    core: &Arc<Core>,
    def: &Arc<StreamDef>,
    parts: Vec<LivePart>,
    request: &DeleteRequest,
    upto: Option<Sn>,
) -> Result<Found> {
    let parts = parts.into_iter().filter(|p| !(request.skip)(&p.meta) && upto.is_none_or(|at| p.meta.min_sn() <= at));
    let looks = parts.map(|part| {
        let (core, def, request) = (core.clone(), def.clone(), request.clone());
        async move {
            let meta = part.meta.clone();
            let at = |e: Error| e.context(format_args!("part {}", meta.name));
            let reader = PartReader::open(&part.store, &part.key).await.map_err(at)?;
            let rows = busy(move || rows_of(&core, &def, &part, &reader, &request, upto)).await.map_err(at)?;
            Ok::<_, Error>((meta, rows))
        }
    });
    let mut found: Vec<_> = stream::iter(looks).buffer_unordered(PARTS_AT_ONCE).try_collect().await?;
    found.retain(|(_, rows): &(_, RowSet)| !rows.is_empty());
    found.sort_by_key(|(meta, _)| meta.id);
    Ok(Found { parts: found })
}

fn rows_of(
    core: &Core,
    def: &Arc<StreamDef>,
    part: &LivePart,
    reader: &PartReader,
    request: &DeleteRequest,
    upto: Option<Sn>,
) -> Result<RowSet> {
    let asked = request.matches.columns().iter().copied().collect();
    let mut out = RowSet::default();
    each_batch(core, def, (part, reader), asked, BATCH_ROWS, &mut |at, rows, sns| {
        let matches = matching(request.matches.as_ref(), rows)?;
        for (i, sn) in sns.values().iter().enumerate().filter(|(i, _)| matches.value(*i)) {
            let (row, sn) = (at + i as u32, Sn(*sn as u64));
            if upto.is_none_or(|upto| sn <= upto) && part.sees(row, sn) {
                out.0.insert(row);
            }
        }
        Ok(())
    })?;
    Ok(out)
}

/// Shows the rows of a part, at least the columns asked for, as they are today: the number of the first, the rows, their sns.
pub(crate) fn each_batch(
    core: &Core,
    def: &StreamDef,
    (part, reader): (&LivePart, &PartReader),
    mut asked: BTreeSet<ColumnId>,
    batch_rows: usize,
    see: &mut dyn FnMut(u32, &RecordBatch, &Int64Array) -> Result<()>,
) -> Result<()> {
    asked.insert(ColumnId::TP_SN);
    let mut there = 0;
    for field in reader.schema().fields() {
        there += usize::from(asked.contains(&field_id(field)?));
    }
    // A column that the part lacks reads its default, which may need any other column.
    let whole = there < asked.len() || part.meta.schema_version != def.schema_version;
    let columns = (!whole).then(|| asked.iter().copied().collect());
    let mut at = 0u32;
    for batch in reader.read(&ReadOptions { columns, batch_rows, ..ReadOptions::default() })? {
        let batch = batch?;
        let sns = sns_of(&batch, part.sn_of_record)?;
        let rows = if whole { today(&batch, &sns, def, core)? } else { with_sns(&batch, &sns)? };
        see(at, &rows, &sns)?;
        let next = u32::try_from(batch.num_rows()).ok().and_then(|n| at.checked_add(n));
        at = next.ok_or_else(|| Error::internal("a part of more rows than can be numbered"))?;
    }
    Ok(())
}

/// For each row whether the condition holds; NULL is no.
pub(crate) fn matching(condition: &dyn RowExpr, rows: &RecordBatch) -> Result<BooleanArray> {
    let values = condition.evaluate(rows)?;
    let values = values.as_boolean_opt().ok_or_else(|| Error::internal(format!("a condition is {}, not boolean", values.data_type())))?;
    Ok((0..values.len()).map(|i| Some(values.is_valid(i) && values.value(i))).collect())
}

fn sn_place(rows: &RecordBatch) -> Result<usize> {
    place_of(rows.schema_ref(), ColumnId::TP_SN).ok_or_else(|| Error::corrupt("a part without _tp_sn"))
}

fn sns_of(rows: &RecordBatch, sn: Option<Sn>) -> Result<Int64Array> {
    if let Some(sn) = sn {
        return Ok(Int64Array::from_value(sn.0 as i64, rows.num_rows()));
    }
    let column = rows.column(sn_place(rows)?);
    column.as_primitive_opt::<Int64Type>().cloned().ok_or_else(|| Error::corrupt("_tp_sn of a part is not int64"))
}

fn with_sns(rows: &RecordBatch, sns: &Int64Array) -> Result<RecordBatch> {
    let mut columns = rows.columns().to_vec();
    columns[sn_place(rows)?] = Arc::new(sns.clone());
    let options = RecordBatchOptions::new().with_row_count(Some(rows.num_rows()));
    Ok(RecordBatch::try_new_with_options(rows.schema(), columns, &options)?)
}

/// In the `part_schema` of `def`.
fn today(rows: &RecordBatch, sns: &Int64Array, def: &StreamDef, core: &Core) -> Result<RecordBatch> {
    let sn = sn_place(rows)?;
    let without: Vec<usize> = (0..rows.num_columns()).filter(|i| *i != sn).collect();
    in_part_schema(&upgrade(&rows.project(&without)?, def, core.options.compiler.as_ref())?.0, sns, def)
}

/// Rows in `row_schema` of `def` with their sns.
pub(crate) fn in_part_schema(rows: &RecordBatch, sns: &Int64Array, def: &StreamDef) -> Result<RecordBatch> {
    let columns: Vec<ArrayRef> = rows.columns().iter().cloned().chain([Arc::new(sns.clone()) as ArrayRef]).collect();
    let options = RecordBatchOptions::new().with_row_count(Some(rows.num_rows()));
    Ok(RecordBatch::try_new_with_options(def.part_schema(), columns, &options)?)
}

/// What a transaction's DELETE takes from what the transaction reads, until it is committed.
pub(crate) struct TakenRows {
    pub branch: BranchId,
    pub parts: Vec<(PartId, RowSet)>,
    /// Of each chunk of the tail that the cut has, the rows that stay.
    pub tail: Vec<BooleanArray>,
}

impl TakenRows {
    pub fn take_from(&self, view: &mut StreamView) {
        for (id, rows) in &self.parts {
            let Some(part) = view.parts.iter_mut().find(|p| p.meta.id == *id) else { continue };
            let mut hidden = part.hidden.as_deref().cloned().unwrap_or_default();
            hidden.0 |= &rows.0;
            part.hidden = Some(Arc::new(hidden));
        }
        view.parts.retain(|p| p.hidden.as_ref().is_none_or(|h| h.len() < p.meta.rows));
        if !self.tail.is_empty() {
            let kept = view.tail.iter().zip(&self.tail).filter_map(|(rows, mask)| rows.masked(mask));
            view.tail = kept.collect();
        }
    }
}

/// What matches of what a transaction reads: rows of `view`, its own staged parts among them.
pub(crate) async fn take(core: &Arc<Core>, view: &StreamView, request: &DeleteRequest) -> Result<(TakenRows, u64)> {
    same_columns(&view.def, request.schema_version)?;
    let found = find(core, &view.def, view.parts.clone(), request, None).await?;
    let mut rows = found.rows();
    let mut tail = Vec::with_capacity(view.tail.len());
    for chunk in &view.tail {
        let values = upgrade(&chunk.rows, &view.def, core.options.compiler.as_ref())?.0;
        let sns = chunk.sn_column();
        let sns = sns.as_primitive_opt::<Int64Type>().ok_or_else(|| Error::internal("sns that are no int64"))?;
        let matches = matching(request.matches.as_ref(), &in_part_schema(&values, sns, &view.def)?)?;
        rows += matches.true_count() as u64;
        tail.push(arrow::compute::not(&matches)?);
    }
    let parts = found.parts.into_iter().map(|(meta, rows)| (meta.id, rows)).collect();
    Ok((TakenRows { branch: view.cut.branch, parts, tail }, rows))
}

/// Every row that a view has of a partition; `None` where it has none.
pub(crate) async fn whole_partition(core: &Arc<Core>, view: &StreamView, partition: &str) -> Result<Option<Deleting>> {
    let parts = view.parts.iter().filter(|p| &*p.meta.partition == partition && view.state.parts.contains_key(&p.meta.id));
    let (mut rows, mut targets) = (0, Vec::new());
    for part in parts {
        // Rows that the view does not see may come back one day; they are not dropped.
        let seen = seen_rows(core, view, part).await?;
        let of_part = match seen {
            None => {
                rows += part.meta.rows - part.hidden.as_ref().map_or(0, |h| h.len()).min(part.meta.rows);
                RowsAt::All
            }
            Some(seen) => {
                rows += seen.len();
                sets::keep(core, (part.meta.stream, part.meta.id, part.meta.rows), sets::Kind::Deletion, seen).await?
            }
        };
        targets.push(Target { part: part.meta.id, rows: of_part });
    }
    Ok((!targets.is_empty()).then_some(Deleting { read: view.applied_sn, rows, targets }))
}

/// How many rows a view has.
pub(crate) async fn rows_seen(core: &Arc<Core>, view: &StreamView) -> Result<u64> {
    let mut rows: u64 = view.tail.iter().map(|t| t.rows.num_rows() as u64).sum();
    for part in &view.parts {
        let hidden = part.hidden.as_ref().map_or(0, |h| h.len()).min(part.meta.rows);
        rows += seen_rows(core, view, part).await?.map_or(part.meta.rows - hidden, |seen| seen.len());
    }
    Ok(rows)
}

/// The rows of a part that a view sees; `None` where its records do not matter.
pub(crate) async fn seen_rows(core: &Arc<Core>, view: &StreamView, part: &LivePart) -> Result<Option<RowSet>> {
    if part.sns.is_none() {
        return Ok(None);
    }
    let request = DeleteRequest {
        stream: part.meta.stream,
        branch: None,
        matches: Arc::new(EveryRow),
        schema_version: view.def.schema_version,
        skip: Arc::new(|_| false),
    };
    let found = find(core, &view.def, vec![part.clone()], &request, None).await?;
    Ok(Some(found.parts.into_iter().next().map(|(_, rows)| rows).unwrap_or_default()))
}

/// A condition that holds of every row.
struct EveryRow;

impl RowExpr for EveryRow {
    fn evaluate(&self, rows: &RecordBatch) -> Result<ArrayRef> {
        Ok(Arc::new(BooleanArray::from(vec![true; rows.num_rows()])))
    }
    fn columns(&self) -> &[ColumnId] {
        &[]
    }
    fn monotone_in(&self) -> Option<ColumnId> {
        None
    }
}
