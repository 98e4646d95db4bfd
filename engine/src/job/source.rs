//! The rows of a part as a rewrite takes them: in the columns of today, with their true sns, without what rules remove.

use crate::{
    core::Core,
    expr::ExprCompiler,
    facts::{Gathering, taken_at},
    job::fate::{Fate, Fates, Judge},
    plan::due::is_due,
    stream::{Compiled, CompiledRule},
    upgrade::{defaults, field_id, place_of, upgrade},
};
use arrow::{
    array::{ArrayRef, AsArray, BooleanArray, Int64Array, RecordBatch, RecordBatchOptions},
    compute::{and, filter, filter_record_batch, kernels::zip::zip, not},
    datatypes::{Field, Int64Type, Schema},
};
use ebb_storage::{
    Error, Result, Timestamp,
    ids::{BranchId, ColumnId, Sn},
    part::{CodedRows, MergeSource, PartMeta, PartReader, SourceBatch, values_by_row},
    refs::Rounding,
    rules::Action,
    stream_def::StreamDef,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, atomic::AtomicU64},
};

/// Rows that a source reads at a time.
pub const BATCH_ROWS: usize = 16_384;

/// A part opened for a rewrite.
#[derive(Clone)]
pub struct Source {
    pub meta: Arc<PartMeta>,
    pub reader: PartReader,
    pub fate: Arc<Fate>,
    /// Columns that the file lacks, that the rewrite carries for a tag, and the columns by which the tag reads its rows.
    pub fills: Vec<(ColumnId, Arc<StreamDef>)>,
}

impl Source {
    pub async fn open(core: &Core, meta: Arc<PartMeta>, judge: &Judge) -> Result<Self> {
        let disk = core.disks.disk(meta.placement.disk)?;
        let key = core.disks.key(meta.stream, meta.id, meta.placement.generation);
        let reader = PartReader::open_verified(&disk.store, &key, &meta).await?;
        let fate = Arc::new(judge.of(&meta)?);
        Ok(Self { reader, fate, meta, fills: Vec::new() })
    }

    /// The sn that all its rows have, where the file does not say.
    pub fn sn_of_record(&self) -> Option<Sn> {
        self.meta.sn_in_meta.then(|| self.meta.max_sn())
    }

    /// Rows of the file with what a tag reads in columns that it lacks.
    fn with_fills(&self, rows: RecordBatch, compiler: &dyn ExprCompiler) -> Result<RecordBatch> {
        if self.fills.is_empty() {
            return Ok(rows);
        }
        let (mut fields, mut columns) = (rows.schema_ref().fields().to_vec(), rows.columns().to_vec());
        for (id, def) in &self.fills {
            let (read, _) = upgrade(&rows, def, compiler)?;
            let at = place_of(read.schema_ref(), *id);
            let at = at.ok_or_else(|| Error::internal(format!("a tag does not read column {id}")))?;
            fields.push(read.schema_ref().fields()[at].clone());
            columns.push(read.column(at).clone());
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows.num_rows()));
        Ok(RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), columns, &options)?)
    }
}

/// What a rewrite has counted, over all its sources.
#[derive(Debug, Default, Clone)]
pub struct Counts {
    pub read: u64,
    /// Left to another pass over the same rows.
    pub elsewhere: u64,
    /// Gone because nobody needs them.
    pub gone: u64,
    /// By rule, in the order of the rules.
    pub removed: BTreeMap<usize, u64>,
    /// By rule: rows that were folded, and those that came of it.
    pub folded: BTreeMap<usize, (u64, u64)>,
    /// By rule: values that became their column's default.
    pub reset: BTreeMap<usize, u64>,
    /// Columns that were written out from their defaults.
    pub filled: BTreeSet<ColumnId>,
}

impl Counts {
    /// What another pass over the same rows has counted.
    pub fn add(&mut self, other: Self) {
        self.read = self.read.max(other.read);
        self.elsewhere += other.elsewhere;
        self.gone += other.gone;
        other.removed.into_iter().for_each(|(rule, n)| *self.removed.entry(rule).or_default() += n);
        other.reset.into_iter().for_each(|(rule, n)| *self.reset.entry(rule).or_default() += n);
        for (rule, (taken, made)) in other.folded {
            let folded = self.folded.entry(rule).or_default();
            (folded.0, folded.1) = (folded.0 + taken, folded.1 + made);
        }
        self.filled.extend(other.filled);
    }

    pub fn removed_rows(&self) -> u64 {
        self.removed.values().sum()
    }

    /// Rows that came of folding, less those that went into it.
    pub fn folded_rows(&self) -> i64 {
        self.folded.values().map(|(taken, made)| *made as i64 - *taken as i64).sum()
    }
}

/// Which rows a pass writes, where there are two over the same sources.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Rows that main's head sees.
    Seen,
    Unseen,
}

/// Which rules remove rows, and when.
#[derive(Clone)]
pub struct Removal {
    pub compiled: Arc<Compiled>,
    /// `None`: rows stay whatever is due.
    pub cutoff: Option<Timestamp>,
    pub compiler: Arc<dyn ExprCompiler>,
    /// Whether due rows of one key are folded. Rows that were folded before are as due as ever: either all that are due are read and
    /// folded anew, or none is touched.
    pub folds: bool,
    /// `None`: all rows.
    pub side: Option<Side>,
}

impl Removal {
    /// Of rows in `row_schema`, those that stay; `None` where all do.
    pub fn kept(&self, rows: &RecordBatch, fates: &Fates, counts: &mut Counts) -> Option<BooleanArray> {
        let is = |of: &Option<Vec<bool>>, row: usize| of.as_ref().is_some_and(|of| of[row]);
        let mut keep = vec![true; rows.num_rows()];
        for (row, keep) in keep.iter_mut().enumerate() {
            if self.side.is_some_and(|side| (side == Side::Unseen) != is(&fates.unseen, row)) {
                *keep = false;
                counts.elsewhere += 1;
            } else if is(&fates.gone, row) {
                *keep = false;
                counts.gone += 1;
            }
        }
        if let Some(cutoff) = self.cutoff {
            for (i, rule) in self.takers() {
                let folds = rule.fold.is_some();
                let mut taken = 0;
                for (row, removed) in taken_at(rule, rows, cutoff).into_iter().enumerate() {
                    if keep[row] && removed && !is(&fates.spared, row) && !(folds && is(&fates.apart, row)) {
                        keep[row] = false;
                        taken += 1;
                    }
                }
                match taken {
                    0 => {}
                    _ if rule.fold.is_some() => counts.folded.entry(i).or_default().0 += taken,
                    _ => *counts.removed.entry(i).or_default() += taken,
                }
            }
        }
        (!keep.iter().all(|k| *k)).then(|| BooleanArray::from(keep))
    }

    /// Rules that take rows out of their part, in the order in which they do: what is deleted is not folded.
    pub fn takers(&self) -> impl Iterator<Item = (usize, &CompiledRule)> {
        let all = || self.compiled.rules.iter().enumerate();
        let deletes = all().filter(|(_, r)| matches!(r.rule.action, Action::Delete { .. }));
        deletes.chain(all().filter(|(_, r)| self.folds && r.fold.is_some()))
    }

    /// Whether a rule that changes rows and leaves them there has something to do in a part.
    pub fn changes(&self, part: &PartMeta) -> bool {
        let Some(cutoff) = self.cutoff else { return false };
        let due = |r: &CompiledRule| part.facts_of(r.rule.fingerprint).is_none_or(|f| f.earliest.is_some_and(|at| is_due(at, cutoff)));
        self.compiled.rules.iter().any(|r| r.rule.action.changes_rows() && due(r))
    }

    /// The columns of `rows` (in `part_schema`) in which due values become defaults, as they are then. A column of several rules has
    /// what all of them leave.
    pub fn resets(&self, rows: &RecordBatch, spared: Option<&BooleanArray>, counts: &mut Counts) -> Result<BTreeMap<usize, ArrayRef>> {
        let mut changed = BTreeMap::new();
        let Some(cutoff) = self.cutoff else { return Ok(changed) };
        for (i, rule) in self.compiled.rules.iter().enumerate() {
            let Action::Reset { column, .. } = &rule.rule.action else { continue };
            let mut due = BooleanArray::from(taken_at(rule, rows, cutoff));
            if let Some(spared) = spared {
                due = and(&due, &not(spared)?)?;
            }
            if due.true_count() == 0 {
                continue;
            }
            let def = &self.compiled.def;
            let (Some(of), Some(at)) = (def.columns.iter().find(|c| c.id == *column), place_of(rows.schema_ref(), *column)) else {
                return Err(Error::internal(format!("column {column} of a rule is not there")));
            };
            let new = zip(&due, &defaults(of, def, rows, self.compiler.as_ref())?, rows.column(at))?;
            *counts.reset.entry(i).or_default() += due.true_count() as u64;
            changed.insert(at, new);
        }
        Ok(changed)
    }

    /// Rows of a part's file (in any schema version, `_tp_sn` last) in the columns that are written today, and their sns.
    pub fn today(&self, rows: &RecordBatch, source: &Source, counts: &mut Counts) -> Result<(RecordBatch, ArrayRef)> {
        let last = rows.num_columns().checked_sub(1).ok_or_else(|| Error::corrupt("a part without columns"))?;
        if field_id(rows.schema_ref().field(last))? != ColumnId::TP_SN {
            return Err(Error::corrupt("the last column of a part is not _tp_sn"));
        }
        let sns: ArrayRef = match source.sn_of_record() {
            Some(sn) => Arc::new(Int64Array::from_value(sn.0 as i64, rows.num_rows())),
            None => rows.column(last).clone(),
        };
        if sns.as_primitive_opt::<Int64Type>().is_none() {
            return Err(Error::corrupt("_tp_sn of a part is not int64"));
        }
        let without: Vec<usize> = (0..last).collect();
        let rows = source.with_fills(rows.project(&without)?, self.compiler.as_ref())?;
        let (rows, filled) = upgrade(&rows, &self.compiled.def, self.compiler.as_ref())?;
        counts.filled.extend(filled);
        Ok((rows, sns))
    }
}

/// Those of `rows` that rules look at.
pub fn ruled(rows: &RecordBatch, spared: Option<&BooleanArray>) -> Result<RecordBatch> {
    Ok(match spared {
        Some(spared) => filter_record_batch(rows, &not(spared)?)?,
        None => rows.clone(),
    })
}

/// Of each record that has rows which stay, its branch and how many.
pub type Records = BTreeMap<Sn, (BranchId, u64)>;

/// What the sources of a merge find out, together.
pub struct Found {
    pub counts: Counts,
    /// Of the rows that stay, in the order of the policy.
    pub facts: Vec<Gathering>,
    /// Where asked for.
    pub records: Option<Records>,
}

impl Found {
    pub fn count(&mut self, sns: &ArrayRef, branch: impl Fn(Sn) -> BranchId) {
        if let (Some(records), Some(sns)) = (&mut self.records, sns.as_primitive_opt::<Int64Type>()) {
            count(records, sns, branch);
        }
    }
}

/// Counts rows by their record.
pub fn count(records: &mut Records, sns: &Int64Array, branch: impl Fn(Sn) -> BranchId) {
    // Neighbours are often of one record.
    for stretch in sns.values().chunk_by(|a, b| a == b) {
        let sn = Sn(stretch[0] as u64);
        records.entry(sn).or_insert_with(|| (branch(sn), 0)).1 += stretch.len() as u64;
    }
}

/// A part's rows for a merge.
pub fn rows_of(
    source: Source,
    removal: Removal,
    rounding: Arc<Rounding>,
    found: Arc<Mutex<Found>>,
    progress: Arc<crate::job::registry::Running>,
) -> Result<Box<dyn MergeSource>> {
    let mut batches = CodedRows::new(&source.reader, 0..source.reader.row_groups(), BATCH_ROWS);
    let rounds = !rounding.changes_nothing() && source.meta.origins.iter().any(|o| o.branch == BranchId::MAIN);
    let passed = passed_columns(&source, &removal, rounds)?;
    let mut at = 0u64;
    let count = |a: &AtomicU64, n: u64| a.fetch_add(n, std::sync::atomic::Ordering::Relaxed);
    let next = move || -> Result<Option<SourceBatch>> {
        loop {
            let Some(coded) = batches.next() else { return Ok(None) };
            let coded = coded?;
            let (from, n) = (at, coded.num_rows());
            at += n as u64;
            count(&progress.rows_read, n as u64);
            let mut found = found.lock().map_err(|_| Error::internal("what a rewrite found is poisoned"))?;
            let found = &mut *found;
            found.counts.read += n as u64;
            let (values, sns) = removal.today(&values_by_row(&coded, source.reader.schema())?, &source, &mut found.counts)?;
            let fates = source.fate.of_rows(from, n, sns.as_primitive_opt());
            let keep = removal.kept(&values, &fates, &mut found.counts);
            let mut spared = fates.spared.map(BooleanArray::from);
            let sns = if rounds { rounded(&sns, |sn| source.fate.branch_of(sn), &rounding) } else { sns };
            let columns = values.columns().iter().cloned().chain([sns]).collect::<Vec<_>>();
            let best = columns.iter().zip(&passed).map(|(c, p)| p.map_or(c, |p| coded.column(p)).clone()).collect();
            let mut rows = of_columns(best, &removal, n)?;
            let mut values = in_part_schema(columns, &removal, n)?;
            let mut origin = vec![(from as u32, n as u32)];
            if let Some(keep) = keep {
                rows = filter_record_batch(&rows, &keep)?;
                values = filter_record_batch(&values, &keep)?;
                origin = stretches(&keep, from as u32);
                spared = spared.map(|s| Ok::<_, Error>(filter(&s, &keep)?.as_boolean().clone())).transpose()?;
            }
            if values.num_rows() > 0 {
                (rows, values) = changed(rows, values, spared.as_ref(), &removal, &mut found.counts)?;
                found.count(values.column(values.num_columns() - 1), |sn| source.fate.branch_of(sn));
                let aged = ruled(&values, spared.as_ref())?;
                for (rule, facts) in removal.compiled.rules.iter().zip(&mut found.facts) {
                    facts.add(rule, &aged);
                }
                let keys = removal.compiled.order_values(&values)?;
                return Ok(Some(SourceBatch { rows, values, keys, origin }));
            }
        }
    };
    Ok(Box::new(next))
}

/// `rows` and the same as `values`, with defaults where values are due to become them.
pub fn changed(
    rows: RecordBatch,
    values: RecordBatch,
    spared: Option<&BooleanArray>,
    removal: &Removal,
    counts: &mut Counts,
) -> Result<(RecordBatch, RecordBatch)> {
    let new = removal.resets(&values, spared, counts)?;
    if new.is_empty() {
        return Ok((rows, values));
    }
    let with = |batch: &RecordBatch| -> Vec<ArrayRef> {
        batch.columns().iter().enumerate().map(|(i, c)| new.get(&i).unwrap_or(c).clone()).collect()
    };
    let n = values.num_rows();
    Ok((of_columns(with(&rows), removal, n)?, in_part_schema(with(&values), removal, n)?))
}

fn in_part_schema(columns: Vec<ArrayRef>, removal: &Removal, rows: usize) -> Result<RecordBatch> {
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    Ok(RecordBatch::try_new_with_options(removal.compiled.part_schema.clone(), columns, &options)?)
}

/// Rows of main say the records that stand for theirs.
pub fn rounded(sns: &ArrayRef, branch: impl Fn(Sn) -> BranchId, rounding: &Rounding) -> ArrayRef {
    let Some(sns) = sns.as_primitive_opt::<Int64Type>() else { return sns.clone() };
    // Neighbours are often of one record.
    let mut last = (i64::MIN, i64::MIN);
    let mut one = |sn: i64| {
        if sn != last.0 {
            let of = Sn(sn as u64);
            last = (sn, if branch(of) == BranchId::MAIN { rounding.of_row(of).0 as i64 } else { sn });
        }
        last.1
    };
    Arc::new(Int64Array::from_iter_values(sns.values().iter().map(|sn| one(*sn))))
}

/// For each column of today, where the file has it as it is.
fn passed_columns(source: &Source, removal: &Removal, rounds: bool) -> Result<Vec<Option<usize>>> {
    let file = source.reader.schema().fields();
    let place = |today: &Arc<Field>| -> Result<Option<usize>> {
        let id = field_id(today)?;
        // The file does not know the sn of its record, or another stands for it.
        let known = id != ColumnId::TP_SN || source.sn_of_record().is_none() && !rounds;
        Ok(file.iter().position(|f| known && field_id(f).is_ok_and(|i| i == id) && f.data_type() == today.data_type()))
    };
    removal.compiled.part_schema.fields().iter().map(place).collect()
}

fn of_columns(columns: Vec<ArrayRef>, removal: &Removal, rows: usize) -> Result<RecordBatch> {
    let fields = removal.compiled.part_schema.fields().iter().zip(&columns);
    let fields: Vec<Field> = fields.map(|(f, c)| f.as_ref().clone().with_data_type(c.data_type().clone())).collect();
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    Ok(RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), columns, &options)?)
}

/// Row numbers of the rows that stay, as stretches.
pub fn stretches(keep: &BooleanArray, from: u32) -> Vec<(u32, u32)> {
    let mut out: Vec<(u32, u32)> = Vec::new();
    for (i, kept) in keep.values().iter().enumerate() {
        let row = from + i as u32;
        match out.last_mut() {
            Some((start, len)) if kept && *start + *len == row => *len += 1,
            _ if kept => out.push((row, 1)),
            _ => {}
        }
    }
    out
}
