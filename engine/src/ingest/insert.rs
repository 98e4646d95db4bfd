//! One insert: checked, logged, durable, visible, acknowledged; all of it or nothing.

use crate::{
    Engine,
    append::NewRecord,
    core::Core,
    ingest::{content::Content, gate::admit, keys::Claim, partition, rows},
    limits,
    settings::max_ref_age_ms,
    stream::Compiled,
};
use arrow::array::RecordBatch;
use ebb_storage::{
    Error, Result,
    ids::{BranchId, SchemaVersion, Sn, StreamId},
    manifest::StreamState,
    refs::{MAIN, RefKind},
    verb::Verb,
};
use std::sync::Arc;

/// How to insert.
#[derive(Debug, Clone, Default)]
pub struct InsertOptions {
    /// The version that the batches' `row_schema` is of.
    pub schema_version: SchemaVersion,
    /// The branch to write to; `None`: main.
    pub branch: Option<String>,
    /// A second insert with the same key is answered as the first was, and adds nothing.
    pub key: Option<String>,
}

/// What an insert did: durable and visible.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Inserted {
    pub sn: Sn,
    pub rows: u64,
}

impl Engine {
    /// Adds complete rows (defaults filled, `_tp_time` given) as one record. Small ones go through the log, large ones into parts first.
    /// No rows, no record: the answer then names the stream's head.
    ///
    /// # Errors
    /// `NotFound` without such a stream, `Conflict` where its columns changed since `schema_version`, `Invalid` for rows that do not
    /// fit, `Full` where the disk or the partition takes no more. Nothing of it is visible then.
    pub async fn insert(&self, stream: StreamId, batches: Vec<RecordBatch>, options: InsertOptions) -> Result<Inserted> {
        let n: usize = batches.iter().map(RecordBatch::num_rows).sum();
        // Few rows may stand for much more than they hold in memory, and for much less.
        let bytes = batches.iter().map(ebb_storage::log::rows::size).sum::<Result<usize>>()?;
        if n >= limits::STAGE_ROWS || bytes >= limits::STAGE_BYTES {
            let mut staged = self.stage(stream, options).await?;
            for batch in batches {
                staged.push(batch).await?;
            }
            return staged.finish().await;
        }
        let core = &self.core;
        let state = core.stream(stream)?;
        let compiled = current(core, &state, options.schema_version)?;
        let rows = checked(&compiled, &batches)?;
        if rows.num_rows() == 0 {
            return Ok(Inserted { sn: core.live.read().tail(stream).head(), rows: 0 });
        }
        let claim = match &options.key {
            None => None,
            Some(key) => match core.keys.claim(stream, key).await {
                Claim::Known(inserted) => return Ok(inserted),
                Claim::Mine(claim) => Some(claim),
            },
        };
        let partitions = partitions_of(&compiled, &rows)?;
        admit(core, stream, &partitions).await?;
        let branch = branch_of(core, &state, options.branch.as_deref())?;
        let record = logged(stream, branch, &rows, &options)?;
        let sns = core.appender.append(core, vec![record]).await?;
        let inserted = Inserted { sn: sns.first().copied().unwrap_or_default(), rows: rows.num_rows() as u64 };
        if let Some(claim) = claim {
            claim.done(inserted);
        }
        Ok(inserted)
    }
}

/// The stream's expressions, if it may be written and still has the columns that the rows were made for.
pub(crate) fn current(core: &Core, state: &StreamState, version: SchemaVersion) -> Result<Arc<Compiled>> {
    crate::ddl::not_system(&state.def.database)?;
    if state.def.schema_version != version {
        return Err(Error::conflict(format!("the columns of {} changed meanwhile: try again", state.def.full_name())));
    }
    core.compiled(&state.def)
}

pub(crate) fn checked(compiled: &Compiled, batches: &[RecordBatch]) -> Result<RecordBatch> {
    rows::gather(batches, &compiled.row_schema).map_err(|e| e.context(compiled.def.full_name()))
}

/// The partitions that the rows fall into: what can fail on a row fails here, before anything is logged.
pub(crate) fn partitions_of(compiled: &Compiled, rows: &RecordBatch) -> Result<Vec<Arc<str>>> {
    let values = compiled.partition_values(rows).map_err(|e| e.context(format_args!("PARTITION BY of {}", compiled.def.full_name())))?;
    compiled.order_values(rows).map_err(|e| e.context(format_args!("ORDER BY of {}", compiled.def.full_name())))?;
    let shares = partition::split(&values, rows.num_rows(), compiled.settings.max_partitions_per_insert)
        .map_err(|e| e.context(compiled.def.full_name()))?;
    Ok(shares.into_iter().map(|s| s.partition).collect())
}

/// The branch that is written to.
///
/// # Errors
/// `NotFound` where there is none of that name, or no more; `Invalid` for a tag.
pub(crate) fn branch_of(core: &Core, state: &StreamState, name: Option<&str>) -> Result<BranchId> {
    let Some(name) = name.filter(|n| *n != MAIN) else { return Ok(BranchId::MAIN) };
    let found = state.live_ref(name, core.now(), max_ref_age_ms(&state.def))?;
    match found.kind {
        RefKind::Branch => Ok(found.cut.branch),
        RefKind::Tag => {
            Err(Error::invalid(format!("'{name}' of {} is a tag, which nobody writes to: write to a branch", state.def.full_name())))
        }
    }
}

pub(crate) fn logged(stream: StreamId, branch: BranchId, rows: &RecordBatch, options: &InsertOptions) -> Result<NewRecord> {
    Ok(NewRecord {
        stream,
        branch,
        verb: Verb::Insert,
        expects_head: None,
        schema_version: options.schema_version,
        key: options.key.clone(),
        rows_added: rows.num_rows() as u64,
        body: ebb_storage::log::rows::encode(rows)?,
        content: Content::Rows(rows.clone()),
    })
}
