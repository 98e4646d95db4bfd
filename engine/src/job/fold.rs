//! GROUP BY rules in a rewrite: before rows are merged, those that are due are read once and folded; what comes of it is one more sorted
//! input of the merge, and the merge leaves out the rows that went into it.
//!
//! Several rules fold one after the other, in the order of the rules: what one makes, a later one may fold again. The result is held in
//! memory, a row a key; the rows that go into it are not. A folded row is of the first record that went into it, or of the one that stands
//! for that by now, as it does in every other row of the rewrite.

use crate::{
    core::busy,
    expr::Batches,
    facts::taken_at,
    job::source::{Counts, Found, Removal, Source, changed, rounded},
};
use arrow::{
    array::{Array, ArrayRef, AsArray, BooleanArray, Int64Array, RecordBatch, RecordBatchOptions, UInt32Array},
    compute::{concat_batches, filter_record_batch, take},
    datatypes::Int64Type,
};
use ebb_storage::{
    Error, Result, Timestamp,
    ids::{BranchId, Sn},
    part::{MergeSource, SourceBatch, reader::ReadOptions, sort::sort_permutation},
    refs::Rounding,
};
use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
};

/// Rows that are read, and handed to the merge, at a time.
const BATCH_ROWS: usize = 16_384;

/// What came of folding.
#[derive(Default)]
pub struct Folded {
    /// In `part_schema`.
    rows: Vec<RecordBatch>,
    /// By rule: rows that earlier rules made and it took, and rows that it made.
    again: BTreeMap<usize, (u64, u64)>,
    taken: Arc<Taken>,
}

/// Rows of the sources that went into folding.
#[derive(Default)]
struct Taken {
    rows: AtomicU64,
    /// Their records that other branches than main wrote.
    of_branches: Mutex<BTreeMap<Sn, BranchId>>,
}

impl Taken {
    fn count(&self, rows: &RecordBatch, source: &Source) -> Result<()> {
        self.rows.fetch_add(rows.num_rows() as u64, Ordering::Relaxed);
        if source.meta.origins.iter().all(|o| o.branch == BranchId::MAIN) {
            return Ok(());
        }
        let sns = rows.columns().last().and_then(|c| c.as_primitive_opt::<Int64Type>());
        let mut of_branches = self.of_branches.lock().map_err(|_| Error::internal("what was folded is poisoned"))?;
        for sn in sns.into_iter().flat_map(Int64Array::values) {
            let sn = Sn(*sn as u64);
            let branch = source.fate.branch_of(sn);
            if branch != BranchId::MAIN {
                of_branches.insert(sn, branch);
            }
        }
        Ok(())
    }
}

/// Folds what is due in `sources` at the removal's cutoff.
pub async fn fold(removal: &Removal, sources: &[Source]) -> Result<Folded> {
    let Some(cutoff) = removal.cutoff else { return Ok(Folded::default()) };
    if !removal.folds || removal.compiled.rules.iter().all(|r| r.fold.is_none()) {
        return Ok(Folded::default());
    }
    let (removal, sources) = (removal.clone(), sources.to_vec());
    busy(move || {
        let mut folded = Folded::default();
        for (i, rule) in removal.compiled.rules.iter().enumerate() {
            let Some(folder) = &rule.fold else { continue };
            let mut due = Vec::new();
            let mut left = Vec::new();
            for batch in folded.rows.drain(..) {
                let taken = BooleanArray::from(taken_at(rule, &batch, cutoff));
                due.push(filter_record_batch(&batch, &taken)?);
                left.push(filter_record_batch(&batch, &arrow::compute::not(&taken)?)?);
            }
            let again: u64 = due.iter().map(|b| b.num_rows() as u64).sum();
            let mut rows = due_rows(&removal, &sources, i, cutoff, &folded.taken)?
                .chain(due.into_iter().map(Ok))
                .filter(|b| !matches!(b, Ok(b) if b.num_rows() == 0))
                .peekable();
            if rows.peek().is_some() {
                let rows: Batches = Box::new(rows);
                let made = folder.fold(rows)?;
                folded.again.insert(i, (again, made.iter().map(|b| b.num_rows() as u64).sum()));
                left.extend(made);
            }
            folded.rows = left;
        }
        Ok(folded)
    })
    .await
}

/// Rows of the sources that rule `i` is the first to take.
fn due_rows(
    removal: &Removal,
    sources: &[Source],
    i: usize,
    cutoff: Timestamp,
    taken: &Arc<Taken>,
) -> Result<impl Iterator<Item = Result<RecordBatch>> + Send + use<>> {
    let mut all: Vec<Batches> = Vec::with_capacity(sources.len());
    for source in sources {
        let read = source.reader.read(&ReadOptions { batch_rows: BATCH_ROWS, ..ReadOptions::default() })?;
        let (removal, source, count) = (removal.clone(), source.clone(), taken.clone());
        let mut at = 0;
        let rows = read.map(move |batch| {
            let batch = batch?;
            let (from, n) = (at, batch.num_rows());
            at += n as u64;
            let (rows, sns) = removal.today(&batch, &source, &mut Counts::default())?;
            let columns: Vec<ArrayRef> = rows.columns().iter().cloned().chain([sns]).collect();
            let options = RecordBatchOptions::new().with_row_count(Some(n));
            let rows = RecordBatch::try_new_with_options(removal.compiled.part_schema.clone(), columns, &options)?;
            let fates = source.fate.of_rows(from, n, rows.columns().last().and_then(|c| c.as_primitive_opt()));
            let is = |of: &Option<Vec<bool>>, row: usize| of.as_ref().is_some_and(|of| of[row]);
            let mut free: Vec<bool> = (0..n).map(|row| !is(&fates.gone, row) && !is(&fates.spared, row)).collect();
            let mut wanted = vec![false; n];
            for (k, rule) in removal.takers() {
                let due = taken_at(rule, &rows, cutoff).into_iter().enumerate().filter(|(_, taken)| *taken);
                for (row, _) in due.filter(|(row, _)| rule.fold.is_none() || !is(&fates.apart, *row)) {
                    wanted[row] |= free[row] && k == i;
                    free[row] = false;
                }
            }
            let rows = filter_record_batch(&rows, &BooleanArray::from(wanted))?;
            count.count(&rows, &source)?;
            Ok(rows)
        });
        all.push(Box::new(rows));
    }
    Ok(all.into_iter().flatten())
}

impl Folded {
    /// How many rows of the sources the merge must leave out (I4).
    pub fn taken(&self) -> u64 {
        self.taken.rows.load(Ordering::Relaxed) + self.again.values().map(|(taken, _)| taken).sum::<u64>()
    }

    pub fn is_empty(&self) -> bool {
        self.again.is_empty()
    }

    /// The folded rows as an input of the merge, of which rows of main say the records that stand for theirs.
    pub fn into_source(self, removal: Removal, rounding: &Rounding, found: Arc<Mutex<Found>>) -> Result<Box<dyn MergeSource>> {
        let poisoned = |_| Error::internal("what was folded is poisoned");
        let of_branches = std::mem::take(&mut *self.taken.of_branches.lock().map_err(poisoned)?);
        let branch = move |sn: Sn| of_branches.get(&sn).copied().unwrap_or(BranchId::MAIN);
        let rows = concat_batches(&removal.compiled.part_schema, &self.rows)?;
        let rows = match rows.columns().split_last() {
            Some((sns, others)) if !rounding.changes_nothing() => {
                let columns = others.iter().cloned().chain([rounded(sns, &branch, rounding)]).collect();
                RecordBatch::try_new(rows.schema(), columns)?
            }
            _ => rows,
        };
        let rows = match sort_permutation(&removal.compiled.order_values(&rows)?)? {
            None => rows,
            Some(order) => {
                let order = UInt32Array::from(order);
                let columns = rows.columns().iter().map(|c| take(c.as_ref() as &dyn Array, &order, None)).collect::<Result<_, _>>()?;
                RecordBatch::try_new(rows.schema(), columns)?
            }
        };
        let mut at = 0;
        let mut again = Some(self.again);
        let next = move || -> Result<Option<SourceBatch>> {
            let mut found = found.lock().map_err(|_| Error::internal("what a rewrite found is poisoned"))?;
            let found = &mut *found;
            for (rule, (taken, made)) in again.take().into_iter().flatten() {
                let counted = found.counts.folded.entry(rule).or_default();
                (counted.0, counted.1) = (counted.0 + taken, counted.1 + made);
            }
            let n = BATCH_ROWS.min(rows.num_rows() - at);
            if n == 0 {
                return Ok(None);
            }
            let (values, origin) = (rows.slice(at, n), vec![(at as u32, n as u32)]);
            at += n;
            let (rows, values) = changed(values.clone(), values, None, &removal, &mut found.counts)?;
            found.count(values.column(values.num_columns() - 1), &branch);
            for (rule, facts) in removal.compiled.rules.iter().zip(&mut found.facts) {
                facts.add(rule, &values);
            }
            let keys = removal.compiled.order_values(&values)?;
            Ok(Some(SourceBatch { rows, values, keys, origin }))
        };
        Ok(Box::new(next))
    }
}
