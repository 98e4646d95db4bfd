//! Rows of the two logs from the manifest into their streams, before a checkpoint or when many wait.
//!
//! First the rows are inserted, then a commit says that they are. Between the two they are in both places, and the key of the stream's
//! newest record says so: guards that each row is moved once.

use super::{Log, key};
use crate::{
    Engine,
    core::Core,
    ingest::{InsertOptions, insert::logged},
};
use arrow::array::RecordBatch;
use ebb_storage::{
    Result,
    ids::BranchId,
    manifest::{
        Edit,
        edit::{LifecycleLogRow, PartLogRow},
    },
    part::{PartReader, reader::ReadOptions},
};

/// Rows of one record.
const RECORD_ROWS: usize = 4096;
/// So many waiting rows are moved without waiting for a checkpoint.
const WAITING_MAX: usize = 8192;

/// Whether rows should be moved, although no checkpoint is due.
pub fn is_due(core: &Core) -> bool {
    let live = core.live.read();
    live.manifest.part_log.len().max(live.manifest.lifecycle_log.len()) > WAITING_MAX
}

/// Moves what waits.
///
/// # Errors
/// `Full` where the log's disk is; rows then wait on.
pub async fn run(core: &Core) -> Result<()> {
    let _one = core.moving.lock().await;
    let mut through = [0; Log::ALL.len()];
    for (log, through) in Log::ALL.into_iter().zip(&mut through) {
        loop {
            let (batch, then) = log.waiting(&core.live.read(), RECORD_ROWS)?;
            *through = then;
            if batch.num_rows() == 0 {
                break;
            }
            insert(core, log, batch, then).await?;
        }
    }
    let [part_log, lifecycle_log] = through;
    let manifest = core.live.read().manifest.clone();
    if part_log > manifest.part_log.from() || lifecycle_log > manifest.lifecycle_log.from() {
        core.commit(vec![Edit::LogsMoved { part_log, lifecycle_log }], Vec::new()).await?;
    }
    Ok(())
}

async fn insert(core: &Core, log: Log, batch: RecordBatch, through: u64) -> Result<()> {
    let manifest = core.live.read().manifest.clone();
    let Some(state) = log.stream(&manifest) else { return Ok(()) };
    let options = InsertOptions { schema_version: state.def.schema_version, key: Some(key(through)), ..InsertOptions::default() };
    core.appender.append(core, vec![logged(state.def.id, BranchId::MAIN, &batch, &options)?]).await?;
    Ok(())
}

impl Engine {
    /// Moves the rows of the two logs that wait in the manifest into their streams, and writes a checkpoint.
    pub async fn checkpoint(&self) -> Result<()> {
        run(&self.core).await?;
        self.core.committer.checkpoint().await
    }

    /// system.part_log as of now, oldest first.
    pub async fn part_log(&self) -> Result<Vec<PartLogRow>> {
        let mut rows = Vec::new();
        for batch in batches(self, Log::Part).await? {
            rows.extend(super::rows::to_part_log(&batch)?);
        }
        rows.sort_by_key(|r: &PartLogRow| r.time);
        Ok(rows)
    }

    /// system.lifecycle_log as of now, oldest first.
    pub async fn lifecycle_log(&self) -> Result<Vec<LifecycleLogRow>> {
        let mut rows = Vec::new();
        for batch in batches(self, Log::Lifecycle).await? {
            rows.extend(super::rows::to_lifecycle_log(&batch)?);
        }
        rows.sort_by_key(|r: &LifecycleLogRow| r.time);
        Ok(rows)
    }
}

/// All rows of the log, those of the parts first.
async fn batches(engine: &Engine, log: Log) -> Result<Vec<RecordBatch>> {
    let (view, waiting) = engine.read().log(log)?;
    let mut all = Vec::new();
    for part in &view.parts {
        for batch in PartReader::open_verified(&part.store, &part.key, &part.meta).await?.read(&ReadOptions::default())? {
            all.push(batch?);
        }
    }
    all.extend(view.tail.iter().map(|t| t.rows.clone()));
    all.push(waiting);
    Ok(all)
}
