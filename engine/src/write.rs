//! From rows of one partition to a stored part: sort, encode, measure, store, describe.
//!
//! Flushes, staged inserts and rewrites all write parts here. Encoding is work for a thread that may be busy; storing is not.

use crate::{core::Core, facts::facts_of, stream::Compiled};
use arrow::{
    array::{Array, ArrayRef, AsArray, RecordBatch, RecordBatchOptions, UInt32Array},
    compute::take,
    datatypes::TimestampMicrosecondType,
};
use ebb_storage::{
    Error, Result, Timestamp,
    ids::{BranchId, ColumnId, Generation, PartId, SchemaVersion, Sn, StreamId},
    lineage::SnRange,
    part::{
        Encoded, PartEncoder, PartMeta, WriteOptions,
        meta::{Origin, Placement, RuleFacts},
        sort::sort_permutation,
        writer,
    },
    stream_def::TP_TIME,
    vacuum::InFlightGuard,
};
use std::sync::Arc;

/// Rows are handed to the encoder this many at a time.
const SLICE_ROWS: usize = 65_536;

/// An encoded part that is not stored yet.
pub struct Draft {
    pub partition: Arc<str>,
    pub encoded: Encoded,
    pub schema_version: SchemaVersion,
    pub filled: Vec<ColumnId>,
    pub facts: Vec<RuleFacts>,
    pub times: (Timestamp, Timestamp),
}

/// A stored part that no truth names yet: vacuum leaves it alone as long as this lives.
pub struct Stored {
    pub meta: PartMeta,
    _guard: InFlightGuard,
}

impl Stored {
    /// Gives the part up, so that vacuum deletes its object. Only where no truth can name it.
    pub fn abandon(self, core: &Core) {
        let place = &self.meta.placement;
        core.abandoned.lock().push((place.disk, core.disks.key(self.meta.stream, self.meta.id, place.generation)));
    }
}

/// Whether an error says for sure that nothing was committed or logged.
pub fn surely_failed(e: &Error) -> bool {
    use ebb_storage::ErrorKind::{Conflict, Full, Invalid, NotFound};
    matches!(e.kind(), Conflict | Full | Invalid | NotFound)
}

/// What the writer of a part knows beside its rows.
#[derive(Debug, Clone)]
pub struct About {
    pub origins: Vec<Origin>,
    pub sn_in_meta: bool,
    pub level: u32,
    pub written_at: Timestamp,
}

/// `rows` (in `row_schema`) with their sns, in ORDER BY order and `part_schema`. Rows of equal keys stay as they came.
pub fn sorted(compiled: &Compiled, rows: &RecordBatch, sns: &ArrayRef) -> Result<RecordBatch> {
    let order = sort_permutation(&compiled.order_values(rows)?)?;
    let columns = rows.columns().iter().chain([sns]);
    let columns: Vec<ArrayRef> = match &order {
        None => columns.cloned().collect(),
        Some(order) => columns.map(|c| take(c, order, None)).collect::<Result<_, _>>()?,
    };
    let options = RecordBatchOptions::new().with_row_count(Some(rows.num_rows()));
    Ok(RecordBatch::try_new_with_options(compiled.part_schema.clone(), columns, &options)?)
}

/// The rows of one share of a split batch.
pub fn share_of(rows: &RecordBatch, share: Option<&UInt32Array>) -> Result<RecordBatch> {
    let Some(wanted) = share else { return Ok(rows.clone()) };
    let (Some(first), Some(last)) = (wanted.values().first(), wanted.values().last()) else { return Ok(rows.slice(0, 0)) };
    // Rows next to each other need no copy.
    if (last - first) as usize + 1 == wanted.len() {
        return Ok(rows.slice(*first as usize, wanted.len()));
    }
    let columns = rows.columns().iter().map(|c| take(c, wanted, None)).collect::<Result<_, _>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(wanted.len()));
    Ok(RecordBatch::try_new_with_options(rows.schema(), columns, &options)?)
}

/// Encodes sorted rows in `part_schema`.
pub fn draft(compiled: &Compiled, options: &WriteOptions, partition: Arc<str>, rows: &RecordBatch, filled: Vec<ColumnId>) -> Result<Draft> {
    let mut encoder = PartEncoder::new(compiled.part_schema.clone(), options.clone())?;
    let mut at = 0;
    while at < rows.num_rows() {
        let n = SLICE_ROWS.min(rows.num_rows() - at);
        encoder.push(&rows.slice(at, n))?;
        at += n;
    }
    let times = times_of(rows)?.ok_or_else(|| Error::internal("a part without rows"))?;
    let facts = facts_of(&compiled.rules, rows);
    Ok(Draft { partition, encoded: encoder.finish()?, schema_version: compiled.def.schema_version, filled, facts, times })
}

/// The least and greatest `_tp_time`; `None` without rows.
pub fn times_of(rows: &RecordBatch) -> Result<Option<(Timestamp, Timestamp)>> {
    let times = rows.column_by_name(TP_TIME).and_then(|c| c.as_primitive_opt::<TimestampMicrosecondType>());
    let times = times.ok_or_else(|| Error::corrupt("rows lack _tp_time"))?;
    let (min, max) = (arrow::compute::min(times), arrow::compute::max(times));
    Ok(min.zip(max).map(|(min, max)| (Timestamp(min), Timestamp(max))))
}

/// Writes a draft durably and describes it.
pub async fn store(core: &Core, stream: StreamId, draft: Draft, about: About) -> Result<Stored> {
    let disk = core.disks.disk(ebb_storage::ids::DiskId::DEFAULT)?;
    let id = core.next_part()?;
    let guard = core.inflight.register(stream, id);
    let generation = Generation(1);
    let key = core.disks.key(stream, id, generation);
    let stored = writer::store(disk.store.as_ref(), &key, disk.id, generation, &draft.encoded).await;
    let placement = stored.map_err(|e| e.context(format_args!("writing a part to disk '{}'", disk.name)))?;
    Ok(Stored { meta: describe(stream, id, placement, draft, about), _guard: guard })
}

fn describe(stream: StreamId, id: PartId, placement: Placement, draft: Draft, about: About) -> PartMeta {
    let e = draft.encoded;
    let mut meta = PartMeta {
        id,
        stream,
        name: String::new(),
        partition: draft.partition,
        schema_version: draft.schema_version,
        filled: draft.filled,
        origins: about.origins,
        sn_in_meta: about.sn_in_meta,
        rows: e.rows,
        level: about.level,
        placement,
        uncompressed_bytes: e.uncompressed_bytes,
        row_groups: e.row_groups,
        stats: e.stats,
        min_time: draft.times.0,
        max_time: draft.times.1,
        written_at: about.written_at,
        modified_at: about.written_at,
        move_due_since: None,
        facts: draft.facts,
        retention_marker: None,
        deletions: Vec::new(),
        expired: Vec::new(),
    };
    meta.name = name_of(&meta);
    meta
}

/// A staged part once its record has its sn.
pub fn stamped(meta: &PartMeta, sn: Sn) -> PartMeta {
    let origin = Origin { branch: BranchId::MAIN, sns: SnRange { after: Sn(sn.0.saturating_sub(1)), to: sn }, rows: meta.rows };
    let mut meta = PartMeta { origins: vec![origin], sn_in_meta: true, ..meta.clone() };
    meta.name = name_of(&meta);
    meta
}

/// `<partition>_<min_sn>_<max_sn>_<level>_<id in base 36>`
fn name_of(meta: &PartMeta) -> String {
    const DIGITS: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";
    let (mut n, mut digits) = (meta.id.0, Vec::new());
    while n > 0 || digits.is_empty() {
        digits.push(char::from(DIGITS[(n % 36) as usize]));
        n /= 36;
    }
    let id: String = digits.into_iter().rev().collect();
    format!("{}_{}_{}_{}_{id}", meta.partition, meta.min_sn(), meta.max_sn(), meta.level)
}

/// One origin for rows of main whose sns lie between these.
pub fn origin_of(sns: &dyn Array, rows: u64) -> Option<Origin> {
    let sns = sns.as_primitive_opt::<arrow::datatypes::Int64Type>()?;
    let (min, max) = (arrow::compute::min(sns)?, arrow::compute::max(sns)?);
    Some(Origin { branch: BranchId::MAIN, sns: SnRange { after: Sn((min as u64).saturating_sub(1)), to: Sn(max as u64) }, rows })
}
