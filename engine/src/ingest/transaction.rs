//! Several inserts over several streams as one frame of the log: durable together, visible together.
//!
//! Guards: nothing is visible or logged before the commit, but for the transaction's own reads; a dropped transaction leaves nothing but
//! parts that vacuum sweeps, once nobody reads them.

use crate::{
    Engine,
    append::NewRecord,
    core::Core,
    ingest::{
        InsertOptions, Inserted, StagedInsert,
        gate::admit,
        insert::{checked, current, logged, partitions_of},
        keys::{Claim, Claimed},
        staged::Waiting,
    },
    limits,
    write::surely_failed,
};
use arrow::array::RecordBatch;
use ebb_storage::{
    Error, Result,
    ids::{SchemaVersion, StreamId},
};
use std::{collections::HashMap, sync::Arc};

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
    Staged {
        record: NewRecord,
        parts: Arc<Waiting>,
        claim: Option<Claimed>,
    },
}

/// What a transaction has inserted into one stream.
#[derive(Clone, Default)]
pub struct Pending {
    /// In `row_schema` of the version that they were inserted with.
    pub rows: Vec<(SchemaVersion, RecordBatch)>,
    pub(crate) parts: Vec<Arc<Waiting>>,
}

impl Transaction {
    fn check_room(&self) -> Result<()> {
        match self.steps.len() < limits::TRANSACTION_RECORDS {
            true => Ok(()),
            false => Err(Error::invalid(format!("a transaction takes {} inserts: commit more often", limits::TRANSACTION_RECORDS))),
        }
    }

    /// Checks the rows and keeps them; the answer to a read of the block's own writes is [`Self::pending`].
    ///
    /// # Errors
    /// As [`Engine::insert`]; the transaction can go on without these rows.
    pub async fn insert(&mut self, stream: StreamId, batches: Vec<RecordBatch>, options: InsertOptions) -> Result<u64> {
        self.check_room()?;
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

    /// Takes over a staged insert that is complete: its parts are written now, its record with the others. How many rows it has.
    ///
    /// # Errors
    /// As [`StagedInsert::finish`]; the transaction can go on without these rows.
    pub async fn add_staged(&mut self, mut staged: StagedInsert) -> Result<u64> {
        self.check_room()?;
        let claim = staged.take_claim();
        let Some((record, parts)) = staged.record().await? else {
            let known = staged.known().unwrap_or_default();
            self.steps.push(Step::Known(known));
            return Ok(known.rows);
        };
        let rows = record.rows_added;
        self.steps.push(Step::Staged { record, parts: Arc::new(Waiting::new(self.core.clone(), parts)), claim });
        Ok(rows)
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

    /// What this transaction inserted, by stream.
    pub fn pending(&self) -> HashMap<StreamId, Pending> {
        let mut all: HashMap<StreamId, Pending> = HashMap::new();
        for step in &self.steps {
            match step {
                Step::Known(_) => {}
                Step::Rows { record, rows, .. } => {
                    all.entry(record.stream).or_default().rows.push((record.schema_version, rows.clone()));
                }
                Step::Staged { record, parts, .. } => all.entry(record.stream).or_default().parts.push(parts.clone()),
            }
        }
        all
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
                Step::Staged { record, parts, claim } => {
                    claims.push((records.len(), answers.len(), claim));
                    answers.push(Inserted { rows: record.rows_added, ..Inserted::default() });
                    records.push(record);
                    held.push(parts);
                }
            }
        }
        if records.is_empty() {
            return Ok(answers);
        }
        // From here on the log may name the parts, also where this call is not waited for to its end.
        held.iter().for_each(|parts| parts.set_named(true));
        let appended = self.core.appender.append(&self.core, records).await;
        if appended.as_ref().is_err_and(surely_failed) {
            held.iter().for_each(|parts| parts.set_named(false));
        }
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
