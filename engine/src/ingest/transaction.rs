//! Several inserts over several streams as one frame of the log: durable together, visible together.
//!
//! Guards: nothing is visible or logged before the commit; a dropped transaction leaves nothing but parts that vacuum sweeps.

use crate::{
    Engine,
    append::NewRecord,
    core::Core,
    ingest::{
        InsertOptions, Inserted, StagedInsert,
        gate::admit,
        insert::{checked, current, logged, partitions_of},
        keys::{Claim, Claimed},
        staged::give_up_if_failed,
    },
    limits,
};
use arrow::array::RecordBatch;
use ebb_storage::{Error, Result, ids::StreamId};
use std::sync::Arc;

/// Inserts that wait for their commit. Dropping it forgets them.
pub struct Transaction {
    core: Arc<Core>,
    steps: Vec<Step>,
}

/// A moment of a transaction: how many inserts it had.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Savepoint(usize);

enum Step {
    /// Answered by an earlier insert with its key.
    Known(Inserted),
    Rows {
        record: NewRecord,
        rows: RecordBatch,
        claim: Option<Claimed>,
    },
    Staged(Box<StagedInsert>),
}

impl Transaction {
    /// Checks the rows and keeps them; the answer to a read of the block's own writes is [`Self::pending`].
    ///
    /// # Errors
    /// As [`Engine::insert`]; the transaction can go on without these rows.
    pub async fn insert(&mut self, stream: StreamId, batches: Vec<RecordBatch>, options: InsertOptions) -> Result<u64> {
        if self.steps.len() >= limits::TRANSACTION_RECORDS {
            return Err(Error::invalid(format!("a transaction takes {} inserts: commit more often", limits::TRANSACTION_RECORDS)));
        }
        let state = self.core.stream(stream)?;
        let compiled = current(&self.core, &state, options.schema_version)?;
        let rows = checked(&compiled, &batches)?;
        if rows.num_rows() == 0 {
            return Ok(0);
        }
        let claim = match &options.key {
            None => None,
            Some(key) => match self.core.keys.claim(stream, key).await {
                Claim::Known(inserted) => {
                    self.steps.push(Step::Known(inserted));
                    return Ok(inserted.rows);
                }
                Claim::Mine(claim) => Some(claim),
            },
        };
        admit(&self.core, stream, &partitions_of(&compiled, &rows)?).await?;
        let n = rows.num_rows() as u64;
        self.steps.push(Step::Rows { record: logged(stream, &rows, &options)?, rows, claim });
        Ok(n)
    }

    /// Takes over a staged insert that is complete: its record is written with the others.
    pub fn add_staged(&mut self, staged: StagedInsert) {
        self.steps.push(Step::Staged(Box::new(staged)));
    }

    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// What [`Self::roll_back_to`] goes back to.
    pub fn savepoint(&self) -> Savepoint {
        Savepoint(self.steps.len())
    }

    /// Forgets the inserts since `point`: their keys are free again, their staged parts are given up.
    pub fn roll_back_to(&mut self, point: Savepoint) {
        self.steps.truncate(point.0);
    }

    /// Rows that this transaction inserted into `stream` (but for staged ones), in `row_schema` of the version they were inserted with.
    pub fn pending(&self, stream: StreamId) -> Vec<RecordBatch> {
        let of = |step: &Step| match step {
            Step::Rows { record, rows, .. } if record.stream == stream => Some(rows.clone()),
            _ => None,
        };
        self.steps.iter().filter_map(of).collect()
    }

    /// One answer for each insert, in order.
    ///
    /// # Errors
    /// `Conflict` where a stream's columns changed, `NotFound` where one was dropped, `Full`; nothing of it is visible then.
    pub async fn commit(self) -> Result<Vec<Inserted>> {
        let mut records = Vec::new();
        let mut held = Vec::new();
        let mut answers = Vec::with_capacity(self.steps.len());
        let mut claims = Vec::new();
        for step in self.steps {
            match step {
                Step::Known(inserted) => answers.push(inserted),
                Step::Rows { record, rows, claim } => {
                    claims.push((records.len(), answers.len(), claim));
                    answers.push(Inserted { rows: rows.num_rows() as u64, ..Inserted::default() });
                    records.push(record);
                }
                Step::Staged(mut staged) => {
                    let claim = staged.take_claim();
                    match staged.record().await? {
                        Some((record, parts)) => {
                            claims.push((records.len(), answers.len(), claim));
                            answers.push(Inserted { rows: record.rows_added, ..Inserted::default() });
                            records.push(record);
                            held.extend(parts);
                        }
                        None => answers.push(staged.known().unwrap_or_default()),
                    }
                }
            }
        }
        if records.is_empty() {
            return Ok(answers);
        }
        let appended = self.core.appender.append(&self.core, records).await;
        give_up_if_failed(&self.core, held, appended.as_ref().err());
        let sns = appended?;
        for (record, answer, claim) in claims {
            answers[answer].sn = sns.get(record).copied().unwrap_or_default();
            if let Some(claim) = claim {
                claim.done(answers[answer]);
            }
        }
        Ok(answers)
    }
}

impl Engine {
    pub fn transaction(&self) -> Transaction {
        Transaction { core: self.core.clone(), steps: Vec::new() }
    }
}
