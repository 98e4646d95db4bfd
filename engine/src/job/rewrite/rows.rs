//! Writing the rows of a rewrite: a lone part row group by row group, several merged on a second thread.
//!
//! Guards I4: what was read, removed, folded and left to another part is counted, and where every row went is kept.

use super::{BATCH_ROWS, QUEUED_BATCHES};
use crate::{
    facts::Gathering,
    job::{
        fold::Folded,
        registry::Running,
        source::{self, Counts, Found, Records, Removal, Source, count, ruled, stretches},
    },
    stream::Compiled,
    upgrade::field_id,
    write::Encoder,
};
use arrow::{
    array::{AsArray, BooleanArray, Int64Array, RecordBatch},
    compute::{filter, filter_record_batch},
    datatypes::Int64Type,
};
use ebb_storage::{
    Error, Result,
    ids::ColumnId,
    part::{CodedRows, Merge, RowMap, Run, meta::RuleFacts, reader::ReadOptions},
    refs::Rounding,
};
use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, atomic::Ordering, mpsc},
};

/// What a rewrite found out while it wrote.
pub(super) struct Rewritten {
    pub counts: Counts,
    pub facts: Vec<RuleFacts>,
    pub filled: Vec<ColumnId>,
    pub map: RowMap,
    /// Where they were asked for.
    pub records: Option<Records>,
    /// Records of main may stand for others.
    pub rounded: bool,
    /// `_tp_sn` is as the lone source's file had it.
    pub sns_untouched: bool,
}

/// Whether the file has exactly the columns of today, so that its row groups can be taken over.
pub(super) fn same_columns(source: &Source, compiled: &Compiled) -> bool {
    let (file, today) = (source.reader.schema().fields(), compiled.part_schema.fields());
    let same = |(f, t): (&Arc<arrow::datatypes::Field>, &Arc<arrow::datatypes::Field>)| {
        f.name() == t.name() && f.data_type() == t.data_type() && f.is_nullable() == t.is_nullable() && field_id(f).ok() == field_id(t).ok()
    };
    file.len() == today.len() && file.iter().zip(today).all(same)
}

/// A lone part, row group by row group; in another codec where it `recodes`. Records are counted where asked for.
pub(super) fn prune(
    source: &Source,
    removal: &Removal,
    (recodes, records): (bool, bool),
    running: &Running,
    encoder: &mut Encoder,
) -> Result<Rewritten> {
    let compiled = &removal.compiled;
    encoder.takes_over(&source.meta);
    let mut counts = Counts::default();
    let mut facts: Vec<Gathering> = compiled.rules.iter().map(|r| Gathering::new(r, removal.cutoff)).collect();
    let asked = asked_columns(compiled, records || source.fate.asks_sns());
    let mut records = records.then(Records::new);
    let mut map = RowMap::default();
    let mut written = 0u32;
    let read = |group: usize| {
        let columns = Some(asked.clone());
        source.reader.read(&ReadOptions { columns, row_groups: Some(vec![group]), batch_rows: BATCH_ROWS, ..ReadOptions::default() })
    };
    let mut at = 0u64;
    for group in 0..source.reader.row_groups() {
        let n = source.reader.rows_of(group) as u64;
        let mut keep: Vec<Option<BooleanArray>> = Vec::new();
        let (mut from, mut kept_rows) = (at, 0u64);
        for batch in read(group)? {
            let batch = batch?;
            let sns = match source.sn_of_record() {
                Some(sn) => Some(Int64Array::from_value(sn.0 as i64, batch.num_rows())),
                None => batch.columns().last().and_then(|c| c.as_primitive_opt::<Int64Type>().cloned()),
            };
            let fates = source.fate.of_rows(from, batch.num_rows(), sns.as_ref());
            let kept = removal.kept(&batch, &fates, &mut counts);
            let mut spared = fates.spared.map(BooleanArray::from);
            let left = match &kept {
                Some(mask) => {
                    spared = spared.map(|s| Ok::<_, Error>(filter(&s, mask)?.as_boolean().clone())).transpose()?;
                    filter_record_batch(&batch, mask)?
                }
                None => batch.clone(),
            };
            if let (Some(records), Some(sns)) = (&mut records, &sns) {
                let branch = |sn| source.fate.branch_of(sn);
                match &kept {
                    Some(mask) => count(records, filter(sns, mask)?.as_primitive(), branch),
                    None => count(records, sns, branch),
                }
            }
            for (start, len) in kept.as_ref().map_or_else(|| vec![(from as u32, batch.num_rows() as u32)], |k| stretches(k, from as u32)) {
                map.push(Run { source: 0, from: start, to: written, len });
                written += len;
            }
            let aged = ruled(&left, spared.as_ref())?;
            for (rule, facts) in compiled.rules.iter().zip(&mut facts) {
                facts.add(rule, &aged);
            }
            kept_rows += left.num_rows() as u64;
            from += batch.num_rows() as u64;
            keep.push(kept);
        }
        counts.read += n;
        running.rows_read.fetch_add(n, Ordering::Relaxed);
        if kept_rows == n && n > 0 {
            let share = u128::from(source.meta.uncompressed_bytes) * u128::from(n) / u128::from(source.meta.rows.max(1));
            match recodes {
                true => encoder.recode_row_group(&source.reader, group, share as u64)?,
                false => encoder.copy_row_group(&source.reader, group, share as u64)?,
            }
        } else if kept_rows > 0 {
            for (batch, kept) in CodedRows::new(&source.reader, [group], BATCH_ROWS).zip(keep) {
                let batch = batch?;
                encoder.push(&match &kept {
                    Some(mask) => filter_record_batch(&batch, mask)?,
                    None => batch,
                })?;
            }
        }
        at += n;
    }
    let facts = facts.into_iter().map(Gathering::finish).collect();
    Ok(Rewritten { counts, facts, filled: source.meta.filled.clone(), map, records, rounded: false, sns_untouched: true })
}

/// The columns that rules read, and `_tp_time`, so that there is always one; `_tp_sn`, which is the last, where it is asked for.
fn asked_columns(compiled: &Compiled, sns: bool) -> Vec<ColumnId> {
    let read = compiled.rules.iter().flat_map(|r| r.when.columns().iter().chain(r.only.iter().flat_map(|o| o.columns())));
    let ids: BTreeSet<ColumnId> = read.copied().chain([ColumnId::TP_TIME]).chain(sns.then_some(ColumnId::TP_SN)).collect();
    ids.into_iter().collect()
}

/// Several parts, or one whose columns have changed: merging on a second thread, encoding here. Records are counted where asked for.
pub(super) fn merge(
    sources: Vec<Source>,
    folded: Folded,
    removal: &Removal,
    (rounding, records): (&Arc<Rounding>, bool),
    running: &Arc<Running>,
    encoder: &mut Encoder,
) -> Result<Rewritten> {
    let compiled = &removal.compiled;
    let facts = compiled.rules.iter().map(|r| Gathering::new(r, removal.cutoff)).collect();
    let records = records.then(Records::new);
    let found = Arc::new(Mutex::new(Found { counts: Counts::default(), facts, records }));
    let filled_before: Vec<ColumnId> = sources.iter().flat_map(|s| s.meta.filled.clone()).collect();
    let inputs = sources.into_iter().map(|s| source::rows_of(s, removal.clone(), rounding.clone(), found.clone(), running.clone()));
    let mut inputs = inputs.collect::<Result<Vec<_>>>()?;
    if !folded.is_empty() {
        inputs.push(folded.into_source(removal.clone(), rounding, found.clone())?);
    }
    let (send, batches) = mpsc::sync_channel::<Vec<RecordBatch>>(QUEUED_BATCHES);
    let map = std::thread::scope(|threads| {
        let merging = threads.spawn(move || {
            let mut merge = Merge::new(compiled.part_schema.clone(), inputs, BATCH_ROWS)?;
            while let Some(batches) = merge.next_batches()? {
                // The encoder ended early: its error tells why.
                if send.send(batches).is_err() {
                    break;
                }
            }
            Ok(merge.into_map())
        });
        let encoded = encode(batches, encoder);
        let merged = merging.join().unwrap_or_else(|_| Err(Error::internal("a merge panicked")));
        encoded.and(merged)
    })?;
    let mut found = found.lock().map_err(|_| Error::internal("what a rewrite found is poisoned"))?;
    let (counts, facts, records) = (std::mem::take(&mut found.counts), std::mem::take(&mut found.facts), found.records.take());
    let mut filled: Vec<ColumnId> = filled_before.into_iter().chain(counts.filled.iter().copied()).collect();
    filled.sort_unstable();
    filled.dedup();
    filled.retain(|id| compiled.def.columns.iter().any(|c| c.id == *id));
    Ok(Rewritten {
        counts,
        facts: facts.into_iter().map(Gathering::finish).collect(),
        filled,
        map,
        records,
        rounded: true,
        sns_untouched: false,
    })
}

/// Takes `batches` with it, so that the merge ends when this does.
fn encode(batches: mpsc::Receiver<Vec<RecordBatch>>, encoder: &mut Encoder) -> Result<()> {
    batches.into_iter().flatten().try_for_each(|batch| encoder.push(&batch))
}
