//! Due rows out of main's sight while their part stays as it is: a tag or a branch needs them, and a tag costs no copy.
//!
//! Which rows are due is written beside the part or into the manifest, with new facts for those that are left, so the part is quiet
//! after. Where every row is due nothing is read. When the last ref goes, the next merge leaves the rows out, or the part goes whole.
//! Guards: rows of other branches are touched only where main sees them; the commit stands on the part, the rules and the refs (I13).

use crate::{
    core::{Core, busy},
    facts::{Gathering, taken_at},
    history,
    job::{
        fate::Judge,
        registry::JobGuard,
        replace,
        source::{Counts, Removal, Source},
        told::{self, Taken, Told, part_row, rule_row},
    },
    plan::{
        Plan,
        due::is_due,
        view::{expired_rows, whole_due},
    },
    sets::{self, Kind},
    stream::{Compiled, CompiledRule},
};
use arrow::{
    array::{AsArray, BooleanArray},
    compute::filter_record_batch,
};
use ebb_storage::{
    Error, ErrorKind, Result, Timestamp,
    ids::{CommitNo, PartId},
    manifest::{
        Edit, Expect, Manifest,
        edit::{PartEvent, Timer},
    },
    part::{
        PartMeta, RowSet,
        meta::{ExpiredRows, RowsAt, RuleFacts},
        reader::ReadOptions,
    },
    rules::Action,
};
use std::{
    collections::BTreeMap,
    sync::{Arc, atomic::Ordering},
};

const BATCH_ROWS: usize = 65_536;

/// What is due of one part.
struct Due {
    meta: Arc<PartMeta>,
    rows: RowsAt,
    /// By rule.
    taken: BTreeMap<usize, u64>,
    facts: Vec<RuleFacts>,
}

pub async fn run(core: &Arc<Core>, plan: &Plan, guard: &JobGuard) -> Result<()> {
    let Plan::Expire { stream, parts, cutoff, partition } = plan else { return Err(Error::internal("not a plan to expire")) };
    let (stream, cutoff) = (*stream, *cutoff);
    let state = core.stream(stream)?;
    let compiled = core.compiled(&state.def)?;
    let whole = history::whole(&core.live.read(), stream).ok_or_else(|| core.is_gone(stream))?;
    let judge = core.judge(&whole);
    let mut expect = vec![
        Expect::Policy { stream, version: state.def.policy_version },
        Expect::Schema { stream, version: state.def.schema_version },
        Expect::Refs { stream, version: state.refs_version },
    ];
    expect.extend(replace::same_sight(&state, parts.iter().filter_map(|p| state.parts.get(p)).map(|m| m.as_ref())));
    let (mut done, mut failed) = (Vec::new(), None);
    for part in parts {
        let meta = state.parts.get(part).ok_or_else(|| Error::conflict(format!("part {part} is gone")))?;
        expect.push(Expect::Part { stream, part: *part, generation: meta.placement.generation });
        match due_of_part(core, &compiled, &judge, meta, cutoff).await {
            Ok(due) => {
                guard.running.rows_read.fetch_add(meta.rows, Ordering::Relaxed);
                done.push(due);
            }
            // One unreadable part must not keep the others' rows.
            Err(e) if e.kind() != ErrorKind::Fenced => {
                let e = super::as_lost(core, plan, e);
                if super::is_failure(core, plan, &e) {
                    core.jobs.failed(&[*part], core.now(), &e);
                    told::failure_of(core, plan, &[*part], &e).await;
                }
                failed.get_or_insert(e);
            }
            Err(e) => return Err(e),
        }
    }
    if done.is_empty() {
        return Err(failed.unwrap_or_else(|| Error::conflict("the parts changed meanwhile")));
    }
    let edits = |m: &Manifest, (no, time): (CommitNo, Timestamp)| {
        let state = m.stream(stream).ok_or_else(|| Error::not_found("the stream was dropped meanwhile"))?;
        let mut edits = Vec::new();
        for due in &done {
            let meta = &due.meta;
            if state.parts.get(&meta.id).is_none_or(|now| now.expired != meta.expired) {
                return Err(Error::conflict(format!("rows of part {} were expired meanwhile", meta.name)));
            }
            replace::read_by_all(core, (m, state), [meta.as_ref()], time)?;
            if due.rows.count(meta.rows) > 0 {
                edits.push(Edit::AddExpired { stream, part: meta.id, expired: ExpiredRows { commit: no, rows: due.rows.clone() } });
            }
            edits.push(Edit::Measured { stream, part: meta.id, facts: due.facts.clone() });
            let reason = "rows are due; a tag or branch keeps them in their part".to_owned();
            let told = Told { source_parts: vec![meta.name.clone()], rows_read: meta.rows, reason, ..Told::default() };
            edits.extend(part_row(core, state, time, PartEvent::PrunePart, meta, told));
            let mut before = meta.rows - expired_rows(meta).min(meta.rows);
            for (rule, n) in &due.taken {
                let Some(rule) = compiled.rules.get(*rule) else { continue };
                let part = &PartMeta { rows: before, ..meta.as_ref().clone() };
                before = before.saturating_sub(*n);
                let bytes_after = meta.placement.bytes;
                let reason = format!("{n} rows were due");
                edits.extend(rule_row(
                    state,
                    time,
                    Taken { rule, action: "delete", part, rows_after: before, bytes_after, duration_ms: 0, reason },
                ));
            }
        }
        edits.push(Edit::TimerArmed { stream, partition: partition.to_string(), timer: Timer::Prune, at: time });
        Ok(edits)
    };
    let committed = core.committer.commit_with(expect, edits, core.shows()).await;
    match &committed {
        Ok(_) => core.jobs.succeeded(&done.iter().map(|d| d.meta.id).collect::<Vec<PartId>>()),
        Err(e) => {
            if super::is_failure(core, plan, e) {
                core.jobs.failed(&done.iter().map(|d| d.meta.id).collect::<Vec<PartId>>(), core.now(), e);
            }
            if crate::write::surely_failed(e) {
                done.iter().for_each(|d| sets::abandon(core, (stream, d.meta.id), &d.rows));
            }
        }
    }
    committed?;
    failed.map_or(Ok(()), Err)
}

fn deletes(rule: &CompiledRule) -> bool {
    matches!(rule.rule.action, Action::Delete { .. })
}

async fn due_of_part(core: &Core, compiled: &Arc<Compiled>, judge: &Judge, meta: &Arc<PartMeta>, cutoff: Timestamp) -> Result<Due> {
    let alive = meta.rows - expired_rows(meta).min(meta.rows);
    let proves = |r: &CompiledRule| meta.facts_of(r.rule.fingerprint).is_some_and(|f| is_due(whole_due(f, alive), cutoff));
    let whole = compiled.rules.iter().position(|r| deletes(r) && proves(r));
    if let Some(rule) = whole.filter(|_| judge.of(meta).is_ok_and(|fate| fate.ages_all())) {
        let nothing = |r: &CompiledRule| RuleFacts { rule: r.rule.fingerprint, rows: 0, never: 0, earliest: None, latest: None };
        let facts = compiled.rules.iter().map(nothing).collect();
        return Ok(Due { meta: meta.clone(), rows: RowsAt::All, taken: BTreeMap::from([(rule, alive)]), facts });
    }
    let source = Source::open(core, meta.clone(), judge).await?;
    let (of, compiler) = (compiled.clone(), core.options.compiler.clone());
    let (rows, taken, facts) = busy(move || found(&source, of, compiler, cutoff)).await?;
    let rows = sets::keep(core, (meta.stream, meta.id, meta.rows), Kind::Expired, rows).await?;
    Ok(Due { meta: meta.clone(), rows, taken, facts })
}

type Found = (RowSet, BTreeMap<usize, u64>, Vec<RuleFacts>);

fn found(source: &Source, compiled: Arc<Compiled>, compiler: Arc<dyn crate::expr::ExprCompiler>, cutoff: Timestamp) -> Result<Found> {
    // What changes rows knows which it has changed; its facts stay.
    let measured: Vec<&CompiledRule> = compiled.rules.iter().filter(|r| !r.rule.action.changes_rows()).collect();
    let mut facts: Vec<Gathering> = measured.iter().map(|r| Gathering::new(r, None)).collect();
    let (mut due, mut taken, mut from) = (RowSet::default(), BTreeMap::new(), 0_u64);
    let removal = Removal { compiled: compiled.clone(), cutoff: None, compiler, folds: false, side: None };
    for batch in source.reader.read(&ReadOptions { batch_rows: BATCH_ROWS, ..ReadOptions::default() })? {
        let batch = batch?;
        let (rows, sns) = removal.today(&batch, source, &mut Counts::default())?;
        let fates = source.fate.of_rows(from, batch.num_rows(), sns.as_primitive_opt());
        let mut left = match &fates.spared {
            Some(spared) => spared.iter().map(|s| !s).collect(),
            None => vec![true; rows.num_rows()],
        };
        for (i, rule) in compiled.rules.iter().enumerate().filter(|(_, r)| deletes(r)) {
            for (row, is_due) in taken_at(rule, &rows, cutoff).into_iter().enumerate() {
                if is_due && left[row] {
                    left[row] = false;
                    due.0.insert(u32::try_from(from).unwrap_or(u32::MAX).saturating_add(row as u32));
                    *taken.entry(i).or_default() += 1;
                }
            }
        }
        let kept = filter_record_batch(&rows, &BooleanArray::from(left))?;
        measured.iter().zip(&mut facts).for_each(|(rule, facts)| facts.add(rule, &kept));
        from += batch.num_rows() as u64;
    }
    Ok((due, taken, facts.into_iter().map(Gathering::finish).collect()))
}
