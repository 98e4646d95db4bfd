//! Inserts of any size in bounded memory: parts are written as rows come, then one record names them all.
//!
//! Guards: until that record is durable nothing is visible; a dropped insert leaves only objects that vacuum sweeps, and while it runs
//! vacuum leaves them alone (I9). Both cores work: parts are sorted and encoded beside the caller, who only splits rows.

use crate::{
    Engine,
    append::NewRecord,
    core::Core,
    ingest::{
        InsertOptions, Inserted,
        content::{Content, encode_parts},
        gate::admit,
        insert::{branch_of, current},
        keys::{Claim, Claimed},
        partition, rows,
        unsorted::{Gathered, Unsorted},
    },
    limits,
    place::Places,
    stream::Compiled,
    write::{self, About, Stored},
};
use arrow::array::{ArrayRef, DictionaryArray, Int32Array, Int64Array, RecordBatch};
use ebb_storage::{
    Error, Result,
    ids::{BranchId, StreamId},
    part::{PartMeta, WriteOptions},
    verb::Verb,
};
use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};
use tokio::task::JoinSet;

/// A running insert of many batches. Dropping it aborts it.
pub struct StagedInsert {
    core: Arc<Core>,
    stream: StreamId,
    branch: BranchId,
    options: InsertOptions,
    compiled: Arc<Compiled>,
    buffers: HashMap<Arc<str>, Buffer>,
    buffered_rows: usize,
    buffered_bytes: usize,
    partitions: usize,
    running: JoinSet<Result<Stored>>,
    stored: Vec<Stored>,
    rows: u64,
    claim: Option<Claimed>,
    /// The key was used before: nothing is to be done.
    known: Option<Inserted>,
}

/// A partition's rows that are in no part yet.
struct Buffer {
    unsorted: Unsorted,
    rows: usize,
    bytes: usize,
    /// Parts cut off so far.
    cut: usize,
}

impl Buffer {
    fn new(compiled: &Compiled, expected: usize) -> Self {
        Self { unsorted: Unsorted::new(compiled, expected), rows: 0, bytes: 0, cut: 0 }
    }
}

impl StagedInsert {
    /// Takes complete rows in `row_schema` of the version that the insert was begun with; texts may be dictionaries.
    ///
    /// # Errors
    /// As [`Engine::insert`]; the insert is then to be dropped.
    pub async fn push(&mut self, batch: RecordBatch) -> Result<()> {
        if self.known.is_some() || batch.num_rows() == 0 {
            return Ok(());
        }
        let rows = rows::fit_coded(&batch, &self.compiled.row_schema).map_err(|e| e.context(self.compiled.def.full_name()))?;
        self.rows += rows.num_rows() as u64;
        let name = self.compiled.def.full_name();
        let values = self.compiled.partition_values(&rows).map_err(|e| e.context(format_args!("PARTITION BY of {name}")))?;
        let limit = self.compiled.settings.max_partitions_per_insert;
        let shares = partition::split(&values, rows.num_rows(), limit).map_err(|e| e.context(&name))?;
        let mut new = Vec::new();
        for share in shares {
            let share_rows = write::share_of(&rows, share.rows.as_ref())?;
            let bytes = size_of(&share_rows, &rows, batch.get_array_memory_size());
            if !self.buffers.contains_key(&share.partition) {
                new.push(share.partition.clone());
            }
            // Where all rows are of one partition, there will be enough for a part.
            let expected = if self.buffers.is_empty() { limits::STAGED_PART_ROWS + share_rows.num_rows() } else { 0 };
            let buffer = self.buffers.entry(share.partition).or_insert_with(|| Buffer::new(&self.compiled, expected));
            buffer.unsorted.push(&self.compiled, &share_rows).map_err(|e| e.context(format_args!("ORDER BY of {name}")))?;
            buffer.rows += share_rows.num_rows();
            buffer.bytes += bytes;
            self.buffered_rows += share_rows.num_rows();
            self.buffered_bytes += bytes;
        }
        if self.buffers.len() > limit {
            return Err(Error::invalid(format!(
                "{name}: the rows fall into more than {limit} partitions: insert fewer at a time, partition more coarsely, or raise \
                 max_partitions_per_insert"
            )));
        }
        admit(&self.core, self.stream, &new).await?;
        self.cut_what_is_full().await
    }

    async fn cut_what_is_full(&mut self) -> Result<()> {
        loop {
            let over = self.buffered_rows > limits::STAGED_BUFFER_ROWS || self.buffered_bytes > limits::STAGED_BUFFER_BYTES;
            let largest = self.buffers.iter().max_by_key(|(_, b)| b.rows).map(|(p, b)| (p.clone(), b.rows));
            match largest {
                Some((partition, rows)) if rows > 0 && (rows >= limits::STAGED_PART_ROWS || over) => self.cut(partition, 1).await?,
                _ => return Ok(()),
            }
        }
    }

    /// Gives a partition's rows to an encoder of so many threads, when one is free.
    async fn cut(&mut self, partition: Arc<str>, threads: usize) -> Result<()> {
        let Some(buffer) = self.buffers.get_mut(&partition) else { return Ok(()) };
        let unsorted = buffer.unsorted.split_off(&self.compiled);
        self.buffered_rows -= std::mem::take(&mut buffer.rows);
        let bytes = std::mem::take(&mut buffer.bytes);
        self.buffered_bytes -= bytes;
        buffer.cut += 1;
        self.partitions += 1;
        if self.partitions > limits::STAGED_PARTS {
            return Err(Error::invalid(format!("an insert may write {} parts: insert fewer rows at a time", limits::STAGED_PARTS)));
        }
        while self.running.len() >= limits::STAGED_ENCODERS {
            self.one_done().await?;
        }
        let (core, stream, compiled) = (self.core.clone(), self.stream, self.compiled.clone());
        self.running.spawn(async move {
            let (schema_version, for_encoder) = (compiled.def.schema_version, compiled.clone());
            let options = WriteOptions { threads, ..compiled.write.clone() };
            let gathered = unsorted.gathered()?;
            let places = Places::of_new(&core, &compiled.def, gathered.raw_bytes(&compiled), &gathered.facts, gathered.rows as u64);
            let fill = move |gathered: Gathered, encoder: &mut write::Encoder| {
                let sns = no_sns(gathered.rows)?;
                gathered.encode(&for_encoder, &sns, encoder)
            };
            let (written, facts) = write::write(&core, stream, places, options, gathered, fill).await?;
            let written = written.ok_or_else(|| Error::internal("a part without rows was cut off"))?;
            let about = About {
                partition,
                schema_version,
                filled: Vec::new(),
                carried: Vec::new(),
                facts,
                origins: Vec::new(),
                sn_in_meta: true,
                level: 0,
                written_at: core.now(),
            };
            Ok(write::describe(written, about))
        });
        Ok(())
    }

    async fn one_done(&mut self) -> Result<()> {
        match self.running.join_next().await {
            None => Ok(()),
            Some(Ok(stored)) => {
                self.stored.push(stored?);
                Ok(())
            }
            Some(Err(e)) => Err(Error::internal(format!("an encoder was cut off: {e}"))),
        }
    }

    /// Makes all of it durable and visible.
    ///
    /// # Errors
    /// As [`Engine::insert`]; nothing of it is visible then.
    pub async fn finish(mut self) -> Result<Inserted> {
        if let Some(known) = self.known {
            return Ok(known);
        }
        let core = self.core.clone();
        let Some((record, held)) = self.record().await? else {
            return Ok(Inserted { sn: core.live.read().tail(self.stream).head(), rows: 0 });
        };
        let appended = core.appender.append(&core, vec![record]).await;
        give_up_if_failed(&core, held, appended.as_ref().err());
        let sns = appended?;
        let inserted = Inserted { sn: sns.first().copied().unwrap_or_default(), rows: self.rows };
        if let Some(claim) = self.claim.take() {
            claim.done(inserted);
        }
        Ok(inserted)
    }

    pub(crate) fn take_claim(&mut self) -> Option<Claimed> {
        self.claim.take()
    }

    /// The answer of an earlier insert with the same key.
    pub(crate) fn known(&self) -> Option<Inserted> {
        self.known
    }

    /// The record that names all parts, and what keeps them from being swept until it is appended; `None` without rows.
    pub(crate) async fn record(&mut self) -> Result<Option<(NewRecord, Vec<Stored>)>> {
        let rest: Vec<Arc<str>> = self.buffers.iter().filter(|(_, b)| b.rows > 0).map(|(p, _)| p.clone()).collect();
        // Parts are encoded side by side: their columns need not be, but for the last one.
        let threads = if rest.len() == 1 { self.compiled.write.threads } else { 1 };
        for partition in rest {
            self.cut(partition, threads).await?;
        }
        while !self.running.is_empty() {
            self.one_done().await?;
        }
        let stored = std::mem::take(&mut self.stored);
        if stored.is_empty() {
            return Ok(None);
        }
        let parts: Vec<Arc<PartMeta>> = stored.iter().map(|s| Arc::new(s.meta.clone())).collect();
        let record = NewRecord {
            stream: self.stream,
            branch: self.branch,
            verb: Verb::InsertStaged,
            expects_head: None,
            schema_version: self.options.schema_version,
            key: self.options.key.clone(),
            rows_added: self.rows,
            body: encode_parts(&parts)?,
            content: Content::Parts(parts.into()),
        };
        Ok(Some((record, stored)))
    }
}

/// Parts whose record certainly is not in the log are garbage at once; all others wait for the next opening to tell.
pub(crate) fn give_up_if_failed(core: &Core, parts: Vec<Stored>, error: Option<&Error>) {
    if error.is_some_and(write::surely_failed) {
        parts.into_iter().for_each(|p| p.abandon(core));
    }
}

/// Parts of a transaction that wait for their record; readers of the transaction's own rows keep them too. Whoever lets go of them
/// last gives them up, if no record names them.
pub(crate) struct Waiting {
    core: Arc<Core>,
    parts: Vec<Stored>,
    metas: Vec<Arc<PartMeta>>,
    named: AtomicBool,
}

impl Waiting {
    pub fn new(core: Arc<Core>, parts: Vec<Stored>) -> Self {
        let metas = parts.iter().map(|p| Arc::new(p.meta.clone())).collect();
        Self { core, parts, metas, named: AtomicBool::new(false) }
    }

    pub fn metas(&self) -> &[Arc<PartMeta>] {
        &self.metas
    }

    /// Whether a record names them, or may: then only the log tells what they are.
    pub fn set_named(&self, named: bool) {
        self.named.store(named, Ordering::Release);
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if !self.named.load(Ordering::Acquire) {
            std::mem::take(&mut self.parts).into_iter().for_each(|p| p.abandon(&self.core));
        }
    }
}

impl Drop for StagedInsert {
    fn drop(&mut self) {
        for part in std::mem::take(&mut self.stored) {
            part.abandon(&self.core);
        }
    }
}

/// All rows have the sn of their record, which the part's meta tells.
fn no_sns(rows: usize) -> Result<ArrayRef> {
    let numbers = Int32Array::from_value(0, rows);
    Ok(Arc::new(DictionaryArray::try_new(numbers, Arc::new(Int64Array::from_value(0, 1)))?))
}

/// A share's part of the bytes of its batch.
fn size_of(share: &RecordBatch, rows: &RecordBatch, bytes: usize) -> usize {
    bytes / rows.num_rows().max(1) * share.num_rows()
}

impl Engine {
    /// Begins an insert of many batches.
    ///
    /// # Errors
    /// As [`Engine::insert`].
    pub async fn stage(&self, stream: StreamId, options: InsertOptions) -> Result<StagedInsert> {
        let core = self.core.clone();
        let state = core.stream(stream)?;
        let compiled = current(&core, &state, options.schema_version)?;
        let branch = branch_of(&core, &state, options.branch.as_deref())?;
        let (claim, known) = match &options.key {
            None => (None, None),
            Some(key) => match core.keys.claim(stream, key).await {
                Claim::Known(inserted) => (None, Some(inserted)),
                Claim::Mine(claim) => (Some(claim), None),
            },
        };
        Ok(StagedInsert {
            core,
            stream,
            branch,
            options,
            compiled,
            buffers: HashMap::new(),
            buffered_rows: 0,
            buffered_bytes: 0,
            partitions: 0,
            running: JoinSet::new(),
            stored: Vec::new(),
            rows: 0,
            claim,
            known,
        })
    }
}
