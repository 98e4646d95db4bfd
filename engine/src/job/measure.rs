//! Facts of parts that a rule is new to: from the manifest's bounds where they tell; else only the columns that the rules read are read, nothing is written but the facts.

use crate::{
    core::{Core, busy},
    facts::{Gathering, facts_by_bounds},
    job::{
        fate::Judge,
        registry::JobGuard,
        replace,
        source::{Counts, Removal, Source, ruled},
    },
    plan::Plan,
    stream::Compiled,
    upgrade::field_id,
};
use arrow::{
    array::{AsArray, BooleanArray, Int64Array},
    datatypes::Int64Type,
};
use ebb_storage::{
    Error, Result,
    ids::ColumnId,
    manifest::{Edit, Expect},
    part::{PartMeta, meta::RuleFacts, reader::ReadOptions},
};
use std::{
    collections::BTreeSet,
    sync::{Arc, atomic::Ordering},
};

const BATCH_ROWS: usize = 65_536;
/// Parts whose facts one commit records.
const PARTS_PER_COMMIT: usize = 256;

pub async fn run(core: &Arc<Core>, plan: &Plan, guard: &JobGuard) -> Result<()> {
    let Plan::Measure { stream, parts } = plan else { return Err(Error::internal("not a plan to measure")) };
    let stream = *stream;
    let state = core.stream(stream)?;
    let compiled = core.compiled(&state.def)?;
    let judge = core.judge(&state);
    let mut failed = None;
    for chunk in parts.chunks(PARTS_PER_COMMIT) {
        let mut edits = Vec::with_capacity(chunk.len());
        let mut done = Vec::with_capacity(chunk.len());
        let mut expect = vec![Expect::Policy { stream, version: state.def.policy_version }];
        expect.extend(replace::same_sight(&state, chunk.iter().filter_map(|p| state.parts.get(p)).map(|m| m.as_ref())));
        for part in chunk {
            let meta = state.parts.get(part).ok_or_else(|| Error::conflict(format!("part {part} is gone")))?;
            // One unreadable part must not keep the others from being measured.
            match measure(core, &compiled, meta.clone(), &judge).await {
                Ok(facts) => {
                    guard.running.rows_read.fetch_add(meta.rows, Ordering::Relaxed);
                    expect.push(Expect::Part { stream, part: *part, generation: meta.placement.generation });
                    done.push(*part);
                    edits.push(Edit::Measured { stream, part: *part, facts });
                }
                Err(e) => {
                    let e = super::as_lost(core, plan, e);
                    if super::is_failure(core, plan, &e) {
                        core.jobs.failed(&[*part], core.now(), &e);
                    }
                    failed = Some(e);
                }
            }
        }
        if !edits.is_empty() {
            core.commit(edits, expect).await?;
            core.jobs.succeeded(&done);
        }
    }
    if let Some(e) = failed {
        core.note(&e);
    }
    Ok(())
}

async fn measure(core: &Core, compiled: &Arc<Compiled>, meta: Arc<PartMeta>, judge: &Judge) -> Result<Vec<RuleFacts>> {
    let plain = judge.of(&meta)?.is_plain();
    let mut known = Vec::new();
    let mut missing: Vec<usize> = Vec::new();
    for (i, rule) in compiled.rules.iter().enumerate().filter(|(_, r)| meta.facts_of(r.rule.fingerprint).is_none()) {
        let same = meta.schema_version == compiled.def.schema_version && plain;
        match facts_by_bounds(rule, &meta, &compiled.row_schema).filter(|_| same) {
            Some(facts) => known.push(facts),
            None => missing.push(i),
        }
    }
    if missing.is_empty() {
        return Ok(known);
    }
    let source = Source::open(core, meta, judge).await?;
    let (compiled, compiler) = (compiled.clone(), core.options.compiler.clone());
    busy(move || {
        let rules: Vec<_> = missing.iter().map(|i| &compiled.rules[*i]).collect();
        let mut facts: Vec<Gathering> = rules.iter().map(|r| Gathering::new(r, None)).collect();
        let read = rules.iter().flat_map(|r| r.when.columns().iter().chain(r.only.iter().flat_map(|o| o.columns())));
        let asked: BTreeSet<ColumnId> = read.copied().collect();
        let mut found = 0;
        for field in source.reader.schema().fields() {
            found += usize::from(asked.contains(&field_id(field)?));
        }
        // A column that the part lacks reads its default, which may need any other column.
        let same_version = source.meta.schema_version == compiled.def.schema_version;
        let whole = found < asked.len() || !same_version;
        let removal = Removal { compiled: compiled.clone(), cutoff: None, compiler, folds: false, side: None };
        // `_tp_sn` comes along so that a rule without columns has rows to be asked about.
        let columns = (!whole).then(|| asked.iter().copied().chain([ColumnId::TP_SN]).collect());
        let mut at = 0;
        for batch in source.reader.read(&ReadOptions { columns, batch_rows: BATCH_ROWS, ..ReadOptions::default() })? {
            let batch = batch?;
            let (from, n) = (at, batch.num_rows());
            at += n as u64;
            // `_tp_sn` is the last column.
            let sns = match source.sn_of_record() {
                Some(sn) => Some(Int64Array::from_value(sn.0 as i64, n)),
                None => batch.columns().last().and_then(|c| c.as_primitive_opt::<Int64Type>().cloned()),
            };
            let rows = match whole {
                true => removal.today(&batch, &source, &mut Counts::default())?.0,
                false => batch,
            };
            let spared = source.fate.of_rows(from, n, sns.as_ref()).spared.map(BooleanArray::from);
            let rows = ruled(&rows, spared.as_ref())?;
            for (rule, facts) in rules.iter().zip(&mut facts) {
                facts.add(rule, &rows);
            }
        }
        Ok(known.into_iter().chain(facts.into_iter().map(Gathering::finish)).collect())
    })
    .await
}
