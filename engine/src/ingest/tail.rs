//! Rows that are in the log but in no part yet: in memory, visible to everyone.
//!
//! A value: publishing a record makes a new tail that shares almost all of the old one. Small records are run together as they come
//! (each row is copied a logarithmic number of times), so that a scan sees few batches however small the inserts were.
//!
//! Rows of one chunk are of one branch. What records change beside rows (what branches see, which rows of parts are gone) stays here
//! until the flush tells the manifest.
//!
//! Guards: a row is in exactly one chunk, chunks and records are in the order of their sns.

use crate::{
    ingest::{
        content::{Content, Deleting},
        rows,
    },
    read::TailRows,
};
use arrow::{array::Int64Array, compute::concat_batches};
use ebb_storage::{
    Result, Timestamp,
    ids::{BranchId, Lsn, PartId, Sn},
    lineage::Lineage,
    manifest::edit::RecordInfo,
    part::PartMeta,
};
use rpds::VectorSync;
use std::sync::Arc;

/// Chunks are run together up to this many rows.
const CHUNK_ROWS: usize = 16_384;

/// Parts that records name, each with its record and that record's branch.
pub type StagedParts = (Sn, BranchId, Arc<[Arc<PartMeta>]>);

/// A record that removes rows of parts.
#[derive(Debug, Clone)]
pub struct TailDeletion {
    pub branch: BranchId,
    pub sn: Sn,
    pub what: Arc<Deleting>,
}

#[derive(Debug, Clone, Default)]
pub struct Tail {
    chunks: Vec<Arc<TailRows>>,
    staged: Vec<StagedParts>,
    records: VectorSync<Arc<(RecordInfo, Lsn)>>,
    lineages: Vec<(BranchId, Lineage)>,
    deletions: Vec<TailDeletion>,
    /// The newest record of each branch that has one here.
    heads: Vec<(BranchId, Sn)>,
    head: Sn,
    rows: u64,
    bytes: u64,
}

impl Tail {
    /// The tail of a stream whose records up to `applied` are in parts.
    pub fn new(applied: Sn) -> Self {
        Self { head: applied, ..Self::default() }
    }

    pub fn chunks(&self) -> &[Arc<TailRows>] {
        &self.chunks
    }
    pub fn staged(&self) -> &[StagedParts] {
        &self.staged
    }
    pub fn records(&self) -> impl Iterator<Item = &RecordInfo> {
        self.records.iter().map(|r| &r.0)
    }
    /// Whether a record names that part.
    pub fn names(&self, part: PartId) -> bool {
        let staged = || self.staged.iter().any(|(.., parts)| parts.iter().any(|p| p.id == part));
        staged() || self.deletions.iter().any(|d| d.what.targets.iter().any(|t| t.part == part))
    }
    /// What branches see from records of the tail on, in the order of the records.
    pub fn lineages(&self) -> &[(BranchId, Lineage)] {
        &self.lineages
    }
    pub fn deletions(&self) -> &[TailDeletion] {
        &self.deletions
    }
    /// Each branch with records here, with the newest of them.
    pub fn heads(&self) -> &[(BranchId, Sn)] {
        &self.heads
    }
    pub fn head_of(&self, branch: BranchId) -> Option<Sn> {
        self.heads.iter().find(|(b, _)| *b == branch).map(|(_, sn)| *sn)
    }
    /// The newest record.
    pub fn head(&self) -> Sn {
        self.head
    }
    pub fn rows(&self) -> u64 {
        self.rows
    }
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }
    pub fn newest(&self) -> Option<&RecordInfo> {
        self.records.last().map(|r| &r.0)
    }
    /// When its oldest record was written.
    pub fn oldest_at(&self) -> Option<Timestamp> {
        self.records.first().map(|r| r.0.time)
    }

    /// The log's number of its oldest record behind `sn`: the log is needed from there.
    pub fn first_lsn_after(&self, sn: Sn) -> Option<Lsn> {
        // Sns are dense.
        let first = self.records.first()?.0.sn;
        let place = usize::try_from(sn.0.saturating_add(1).saturating_sub(first.0)).ok()?;
        self.records.get(place).map(|r| r.1)
    }

    /// With one more record.
    pub fn push(&mut self, record: RecordInfo, lsn: Lsn, content: Content) {
        let (sn, branch, schema_version) = (record.sn, record.branch, record.schema_version);
        self.head = sn;
        match self.heads.iter_mut().find(|(b, _)| *b == branch) {
            Some((_, head)) => *head = sn,
            None => self.heads.push((branch, sn)),
        }
        self.records.push_back_mut(Arc::new((record, lsn)));
        match content {
            Content::Rows(rows) if rows.num_rows() > 0 => self.push_rows(TailRows { sn, branch, schema_version, rows, sns: None }),
            Content::Rows(_) => {}
            Content::Parts(parts) => self.staged.push((sn, branch, parts)),
            Content::Lineage(new) => self.lineages.push((branch, Lineage::edited(branch, sn, &new.base))),
            Content::Delete(what) => self.deletions.push(TailDeletion { branch, sn, what }),
        }
        self.count();
    }

    fn push_rows(&mut self, mut last: TailRows) {
        // Like a binary counter: two neighbours of about the same size become one.
        while let Some(before) = self.chunks.last()
            && before.schema_version == last.schema_version
            && before.branch == last.branch
            && before.rows.num_rows() + last.rows.num_rows() <= CHUNK_ROWS
            && before.rows.num_rows() <= 2 * last.rows.num_rows()
        {
            // Rows that cannot be run together stay apart.
            let Ok(joined) = run_together(before, &last) else { break };
            last = joined;
            self.chunks.pop();
        }
        self.chunks.push(Arc::new(last));
    }

    /// Without the records up to `applied`, which parts hold now.
    pub fn trimmed(&self, applied: Sn) -> Self {
        let chunks = self.chunks.iter().filter_map(|c| if c.sn <= applied { None } else { Some(after(c, applied)) }).collect();
        let mut tail = Self {
            chunks,
            staged: self.staged.iter().filter(|(sn, ..)| *sn > applied).cloned().collect(),
            records: self.records.iter().filter(|r| r.0.sn > applied).cloned().collect(),
            lineages: self.lineages.iter().filter(|(_, l)| l.from > applied).cloned().collect(),
            deletions: self.deletions.iter().filter(|d| d.sn > applied).cloned().collect(),
            heads: self.heads.iter().filter(|(_, sn)| *sn > applied).copied().collect(),
            head: self.head.max(applied),
            rows: 0,
            bytes: 0,
        };
        tail.count();
        tail
    }

    fn count(&mut self) {
        let staged: u64 = self.staged.iter().flat_map(|(.., parts)| parts.iter()).map(|p| p.rows).sum();
        self.rows = staged + self.chunks.iter().map(|c| c.rows.num_rows() as u64).sum::<u64>();
        self.bytes = self.chunks.iter().map(|c| c.rows.get_array_memory_size() as u64).sum();
    }
}

fn sns_of(chunk: &TailRows) -> Int64Array {
    match &chunk.sns {
        Some(sns) => sns.clone(),
        None => Int64Array::from_value(chunk.sn.0 as i64, chunk.rows.num_rows()),
    }
}

fn run_together(a: &TailRows, b: &TailRows) -> Result<TailRows> {
    let joined = rows::compact(&concat_batches(&a.rows.schema(), [&a.rows, &b.rows])?)?;
    let sns = sns_of(a).values().iter().chain(sns_of(b).values()).copied().collect::<Vec<i64>>();
    Ok(TailRows { sn: b.sn, branch: b.branch, schema_version: b.schema_version, rows: joined, sns: Some(sns.into()) })
}

/// The rows of a chunk that come after record `applied`.
fn after(chunk: &Arc<TailRows>, applied: Sn) -> Arc<TailRows> {
    let Some(sns) = &chunk.sns else { return chunk.clone() };
    let from = sns.values().partition_point(|sn| *sn <= applied.0 as i64);
    if from == 0 {
        return chunk.clone();
    }
    let left = sns.len() - from;
    Arc::new(TailRows {
        sn: chunk.sn,
        branch: chunk.branch,
        schema_version: chunk.schema_version,
        rows: chunk.rows.slice(from, left),
        sns: Some(sns.slice(from, left)),
    })
}

#[cfg(test)]
mod tests;
