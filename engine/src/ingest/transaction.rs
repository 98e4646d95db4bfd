//! Several inserts and deletes over several streams as one frame of the log: durable together, visible together.
//!
//! Guards: nothing is visible or logged before the commit, but for the transaction's own reads; a dropped transaction leaves nothing but
//! parts that vacuum sweeps, once nobody reads them.

use crate::{
    Engine,
    append::Held,
    append::NewRecord,
    core::Core,
    delete::{DeleteRequest, TakenRows, found_now, in_part_schema, matching, take},
    ingest::{
        InsertOptions, Inserted, StagedInsert,
        content::{Content, Deleting, Target},
        flush::flush,
        gate::admit,
        insert::{branch_of, checked, current, logged, partitions_of},
        keys::{Claim, Claimed},
        staged::Waiting,
    },
    limits,
    read::{ReadView, StreamView},
    sets,
    upgrade::upgrade,
    write::surely_failed,
};
use arrow::{
    array::{BooleanArray, Int64Array, RecordBatch},
    compute::filter_record_batch,
};
use ebb_storage::{
    Error, Result,
    ids::{BranchId, PartId, SchemaVersion, Sn, StreamId},
    part::RowSet,
    verb::Verb,
};
use std::{
    collections::{BTreeMap, BTreeSet, HashMap, hash_map::Entry},
    sync::Arc,
};

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
    Delete {
        request: DeleteRequest,
        /// The transaction's cut.
        upto: Sn,
        taken: Arc<TakenRows>,
        /// Of rows that earlier steps insert, those that stay.
        own: Vec<(usize, BooleanArray)>,
    },
}

/// What a transaction has inserted into one stream.
#[derive(Clone, Default)]
pub struct Pending {
    branches: HashMap<BranchId, PendingRows>,
}

/// What it has done on one branch.
#[derive(Clone, Default)]
pub struct PendingRows {
    /// In `row_schema` of the version that they were inserted with.
    pub rows: Vec<(SchemaVersion, RecordBatch)>,
    pub(crate) parts: Vec<Arc<Waiting>>,
    pub(crate) deleted: Vec<Arc<TakenRows>>,
}

impl Pending {
    pub fn of(&self, branch: BranchId) -> PendingRows {
        self.branches.get(&branch).cloned().unwrap_or_default()
    }
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
        let branch = branch_of(&self.core, &state, options.branch.as_deref())?;
        self.steps.push(Step::Rows { record: logged(stream, branch, &rows, &options)?, rows, claim });
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

    /// Removes rows that match from what `view`, a cut that `read` gave, has after what this transaction did before, its own inserts among
    /// it; how many. Others see it at the commit. Each DELETE of a transaction is to be given the same cut.
    ///
    /// # Errors
    /// As [`Engine::delete`]; the transaction can go on without it.
    pub async fn delete(&mut self, read: &ReadView, view: StreamView, request: DeleteRequest) -> Result<u64> {
        self.check_room()?;
        let view = match self.pending().get(&request.stream) {
            Some(own) => read.with_pending(view, own),
            None => view,
        };
        let (taken, mut rows) = take(&self.core, &view, &request).await?;
        let mut own = Vec::new();
        for (i, step) in self.steps.iter().enumerate() {
            let Step::Rows { record, rows: batch, .. } = step else { continue };
            if record.stream != request.stream || record.branch != view.cut.branch {
                continue;
            }
            let left = self.rows_left(i, batch)?;
            let values = upgrade(&left, &view.def, self.core.options.compiler.as_ref())?.0;
            let sns = Int64Array::from_value(view.head_sn.0.saturating_add(1) as i64, values.num_rows());
            let matches = matching(request.matches.as_ref(), &in_part_schema(&values, &sns, &view.def)?)?;
            rows += matches.true_count() as u64;
            own.push((i, arrow::compute::not(&matches)?));
        }
        if rows > 0 {
            self.steps.push(Step::Delete { request, upto: view.head_sn, taken: Arc::new(taken), own });
        }
        Ok(rows)
    }

    /// Of the rows that a step inserts, those that later steps leave.
    fn rows_left(&self, step: usize, rows: &RecordBatch) -> Result<RecordBatch> {
        let later = self.steps[step..].iter().filter_map(|s| match s {
            Step::Delete { own, .. } => own.iter().find(|(i, _)| *i == step).map(|(_, mask)| mask),
            _ => None,
        });
        let mut left = rows.clone();
        for mask in later {
            left = filter_record_batch(&left, mask)?;
        }
        Ok(left)
    }

    /// What this transaction did, by stream.
    pub fn pending(&self) -> HashMap<StreamId, Pending> {
        let mut all: HashMap<StreamId, Pending> = HashMap::new();
        for (i, step) in self.steps.iter().enumerate() {
            let mut of = |stream: StreamId, branch: BranchId, add: &mut dyn FnMut(&mut PendingRows)| {
                add(all.entry(stream).or_default().branches.entry(branch).or_default());
            };
            match step {
                Step::Known(_) => {}
                Step::Rows { record, rows, .. } => {
                    // Masks were made for these rows.
                    let left = self.rows_left(i, rows).unwrap_or_else(|_| rows.clone());
                    of(record.stream, record.branch, &mut |p| p.rows.push((record.schema_version, left.clone())));
                }
                Step::Staged { record, parts, .. } => of(record.stream, record.branch, &mut |p| p.parts.push(parts.clone())),
                Step::Delete { request, taken, .. } => of(request.stream, taken.branch, &mut |p| p.deleted.push(taken.clone())),
            }
        }
        all
    }

    /// One answer for each insert, in order; deletes have none.
    ///
    /// # Errors
    /// `Conflict` where a stream's columns changed, `NotFound` where one was dropped, `Full`; nothing of it is visible then.
    pub async fn commit(mut self) -> Result<Vec<Inserted>> {
        let core = self.core.clone();
        // Whoever deletes from several streams takes them in one order.
        let deletes = self.steps.iter().filter_map(|s| match s {
            Step::Delete { request, .. } => Some(request.stream),
            _ => None,
        });
        let streams: BTreeSet<StreamId> = deletes.collect();
        let mut changing = Vec::with_capacity(streams.len());
        for stream in streams {
            changing.push(core.change_lock(stream).lock_owned().await);
        }
        let left = (0..self.steps.len()).map(|i| match &self.steps[i] {
            Step::Rows { rows, .. } => self.rows_left(i, rows).map(Some),
            _ => Ok(None),
        });
        let left = left.collect::<Result<Vec<_>>>()?;
        let (mut records, mut held, mut claims) = (Vec::new(), Vec::new(), Vec::new());
        let mut answers: Vec<Inserted> = Vec::with_capacity(self.steps.len());
        let mut layouts: HashMap<StreamId, Held> = HashMap::new();
        let mut deleting: HashMap<(StreamId, BranchId), Vec<Step>> = HashMap::new();
        for (step, left) in std::mem::take(&mut self.steps).into_iter().zip(left) {
            match step {
                Step::Known(inserted) => answers.push(inserted),
                Step::Rows { mut record, rows, claim } => {
                    let n = rows.num_rows() as u64;
                    let left = left.unwrap_or_else(|| rows.clone());
                    if left.num_rows() < rows.num_rows() {
                        record.rows_added = left.num_rows() as u64;
                        record.body = ebb_storage::log::rows::encode(&left)?;
                        record.content = Content::Rows(left);
                    }
                    let place = (record.rows_added > 0).then_some(records.len());
                    claims.push((place, answers.len(), claim));
                    answers.push(Inserted { rows: n, ..Inserted::default() });
                    records.extend(place.map(|_| record));
                }
                Step::Staged { record, parts, claim } => {
                    claims.push((Some(records.len()), answers.len(), claim));
                    answers.push(Inserted { rows: record.rows_added, ..Inserted::default() });
                    records.push(record);
                    held.push(parts);
                }
                Step::Delete { request, upto, taken, own } => {
                    let key = (request.stream, taken.branch);
                    deleting.entry(key).or_default().push(Step::Delete { request, upto, taken, own });
                }
            }
        }
        // Deletes come behind the inserts whose rows they have taken already.
        for ((stream, branch), steps) in deleting {
            if let Some(record) = self.deletion(stream, branch, &steps, &held, &mut layouts).await? {
                records.push(record);
            }
        }
        if records.is_empty() {
            return Ok(answers);
        }
        // From here on the log may name the parts, also where this call is not waited for to its end.
        held.iter().for_each(|parts| parts.set_named(true));
        let guards = changing.into_iter().chain(layouts.into_values()).collect();
        let appended = core.appender.append_holding(&core, records, guards).await;
        if appended.as_ref().is_err_and(surely_failed) {
            held.iter().for_each(|parts| parts.set_named(false));
        }
        let sns = appended?;
        for (record, answer, claim) in claims {
            answers[answer].sn = record.and_then(|r| sns.get(r)).copied().unwrap_or_default();
            if let Some(claim) = claim {
                claim.done(answers[answer]);
            }
        }
        Ok(answers)
    }

    /// One record for all rows that deletes take on a branch: of parts that are there, sought anew, and of this transaction's own.
    async fn deletion(
        &self,
        stream: StreamId,
        branch: BranchId,
        steps: &[Step],
        held: &[Arc<Waiting>],
        layouts: &mut HashMap<StreamId, Held>,
    ) -> Result<Option<NewRecord>> {
        let core = &self.core;
        let mut all: BTreeMap<PartId, RowSet> = BTreeMap::new();
        let (mut read, mut sizes) = (Sn(0), HashMap::new());
        let requests = steps.iter().filter_map(|s| match s {
            Step::Delete { request, upto, taken, .. } => Some((request, *upto, taken)),
            _ => None,
        });
        if let Entry::Vacant(place) = layouts.entry(stream) {
            flush(core, stream).await?;
            place.insert(core.layout_lock(stream).lock_owned().await);
        }
        for (request, upto, taken) in requests {
            read = upto;
            for (meta, rows) in found_now(core, request, Some(upto)).await?.parts {
                sizes.insert(meta.id, meta.rows);
                all.entry(meta.id).or_default().0 |= rows.0;
            }
            let own = |id: &PartId| held.iter().flat_map(|w| w.metas()).find(|m| m.id == *id);
            for (id, rows) in &taken.parts {
                if let Some(meta) = own(id) {
                    sizes.insert(*id, meta.rows);
                    all.entry(*id).or_default().0 |= &rows.0;
                }
            }
        }
        let rows = all.values().map(RowSet::len).sum();
        let mut targets = Vec::with_capacity(all.len());
        for (part, rows) in all {
            let size = sizes.get(&part).copied().unwrap_or(u64::MAX);
            targets.push(Target { part, rows: sets::keep(core, (stream, part, size), sets::Kind::Deletion, rows).await? });
        }
        if targets.is_empty() {
            return Ok(None);
        }
        let state = core.stream(stream)?;
        NewRecord::of_deletion(&state, branch, Verb::Delete, Deleting { read, rows, targets }).map(Some)
    }
}

impl Engine {
    pub fn transaction(&self) -> Transaction {
        Transaction { core: self.core.clone(), steps: Vec::new() }
    }
}
