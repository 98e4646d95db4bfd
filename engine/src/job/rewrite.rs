//! Merge and prune are one thing: sources in, one part out or two, without the rows that are due at the plan's cutoff.
//!
//! What is written are the columns of today, and those that were dropped and that a tag reads of the sources' rows.
//! A lone source whose columns are these is pruned by row group: none due, its bytes are copied; all due, it is skipped; some,
//! it is decoded, filtered, encoded. Several are merged by ORDER BY. Facts are counted anew for what stays, so the part is quiet after.
//! Guards: I4 (out = in - removed, counted), I13 (the commit stands on the sources' generations and the definition), sns stay exact.

mod output;
mod rows;

use crate::{
    core::Core,
    folded,
    job::{
        registry::JobGuard,
        replace,
        source::{Counts, Removal},
        told::{self, Taken, Told, part_row, rule_row},
    },
    plan::Plan,
    sets,
    stream::Compiled,
    write,
};
use ebb_storage::{
    Error, ErrorKind, Result, Timestamp,
    ids::{BranchId, CommitNo, PartId, Sn},
    manifest::{
        Edit, Expect, Manifest, StreamState,
        edit::{PartEvent, RemoveReason, Timer},
    },
    part::{
        PartMeta, RowMap, RowSet,
        meta::{Deletion, ExpiredRows},
    },
};
use output::{Job, Output, rewrite};
use std::{collections::BTreeMap, sync::Arc};

/// Rows of one batch between merging and encoding.
const BATCH_ROWS: usize = 16_384;
/// Batches between the merging and the encoding thread.
const QUEUED_BATCHES: usize = 4;

pub async fn run(core: &Arc<Core>, plan: &Plan, guard: &JobGuard) -> Result<()> {
    let (stream, cutoff, together) = match plan {
        Plan::Prune { stream, cutoff, .. } => (*stream, Some(*cutoff), false),
        Plan::Fold { stream, cutoff, .. } => (*stream, Some(*cutoff), true),
        Plan::Merge { stream, cutoff, delete_due, .. } => (*stream, delete_due.then_some(*cutoff), true),
        _ => return Err(Error::internal("not a plan to rewrite")),
    };
    let state = core.stream(stream)?;
    let compiled = core.compiled(&state.def)?;
    let metas = plan.parts().iter().map(|p| replace::part_of(&state, *p)).collect::<Result<Vec<_>>>()?;
    let expect = replace::standing(core, &state)?;
    let judge = core.judge(&state);
    let mut expect = expect;
    expect.extend(replace::same_sight(&state, metas.iter().map(|m| m.as_ref())));
    if cutoff.is_some() {
        expect.push(Expect::Refs { stream, version: state.refs_version });
    }
    let removal =
        |cutoff| Removal { compiled: compiled.clone(), cutoff, compiler: core.options.compiler.clone(), folds: false, side: None };
    let job = Job { core, state: &state, judge: &judge, running: &guard.running };
    let groups: Vec<Vec<Arc<PartMeta>>> = if together { vec![metas] } else { metas.into_iter().map(|m| vec![m]).collect() };
    let (mut outputs, mut failed, mut nothing_to_do) = (Vec::with_capacity(groups.len()), None, false);
    for (group, target) in groups.into_iter().zip(plan.targets()) {
        let parts: Vec<PartId> = group.iter().map(|m| m.id).collect();
        // Due rows that a ref still sees stay in their part, and are recorded as expired by a job of their own.
        let pinned = group.iter().any(|m| judge.needs().pinned_by(m).is_some());
        if pinned && !together && !group.iter().any(|m| judge.has_waste(m)) {
            nothing_to_do = true;
            continue;
        }
        match rewrite(&job, &removal(cutoff.filter(|_| !pinned)), group, target).await {
            Ok(output) => outputs.push(output),
            // One part that cannot be pruned keeps none of the others from it.
            Err(e) if !together && e.kind() != ErrorKind::Fenced => {
                if !matches!(e.kind(), ErrorKind::Conflict) {
                    let e = super::as_lost(core, plan, e);
                    if super::is_failure(core, plan, &e) {
                        core.jobs.failed(&parts, core.now(), &e);
                        told::failure_of(core, plan, &parts, &e).await;
                    }
                    failed.get_or_insert(e);
                }
            }
            Err(e) => {
                outputs.into_iter().for_each(|o: Output| o.abandon(core));
                return Err(e);
            }
        }
    }
    if outputs.is_empty() {
        if nothing_to_do && failed.is_none() {
            return Ok(());
        }
        return Err(failed.unwrap_or_else(|| Error::conflict("the parts changed meanwhile")));
    }
    let committed = commit(core, plan, &compiled, expect, &mut outputs).await;
    match &committed {
        Ok(()) => {
            let done: Vec<PartId> = outputs.iter().flat_map(|o| o.sources.iter().map(|s| s.id)).collect();
            core.jobs.succeeded(&done);
        }
        Err(e) => {
            if !together && super::is_failure(core, plan, e) {
                let parts: Vec<PartId> = outputs.iter().flat_map(|o| o.sources.iter().map(|s| s.id)).collect();
                core.jobs.failed(&parts, core.now(), e);
            }
            if write::surely_failed(e) {
                outputs.into_iter().for_each(|o| o.abandon(core));
            }
        }
    }
    committed.and(failed.map_or(Ok(()), Err))
}

async fn commit(core: &Core, plan: &Plan, compiled: &Compiled, mut expect: Vec<Expect>, outputs: &mut [Output]) -> Result<()> {
    let stream = plan.stream();
    // What was deleted while the rewrite ran is carried along; until the commit nothing more is.
    let layout = core.layout_lock(stream).lock_owned().await;
    let now = core.stream(stream)?;
    let now = folded::layout(&now, &core.live.read().tail(stream));
    for output in outputs.iter_mut() {
        carry(core, &now, output).await?;
    }
    let outputs = &*outputs;
    for source in outputs.iter().flat_map(|o| &o.sources) {
        expect.push(Expect::Part { stream, part: source.id, generation: source.placement.generation });
    }
    let (event, reason) = match plan {
        Plan::Merge { reason, .. } => (PartEvent::MergeParts, reason.clone()),
        Plan::Fold { .. } => (PartEvent::MergeParts, told::FOLDED_TOGETHER.to_owned()),
        _ if outputs.iter().all(|o| o.counts.removed_rows() == 0 && o.counts.gone > 0) => {
            (PartEvent::PrunePart, "nobody needs rows any more".to_owned())
        }
        _ => (PartEvent::PrunePart, "rows are due".to_owned()),
    };
    let edits = |m: &Manifest, (_, time): (_, Timestamp)| {
        let mut edits = Vec::new();
        let state = m.stream(stream).ok_or_else(|| Error::not_found("the stream was dropped meanwhile"))?;
        for o in outputs {
            if !taken_by_rules(&o.counts, 0).is_empty() {
                replace::read_by_all(core, (m, state), o.sources.iter().map(|s| s.as_ref()), time)?;
            }
            for source in &o.sources {
                if state.parts.get(&source.id).is_some_and(|now| now.expired != source.expired) {
                    return Err(Error::conflict(format!("rows of part {} were removed meanwhile", source.name)));
                }
                edits.push(Edit::RemovePart { stream, part: source.id, why: RemoveReason::Replaced });
            }
            let whole = whole_of(&o.sources);
            for (i, (stored, _)) in o.stored.iter().enumerate() {
                // What was read is told once.
                let told = Told {
                    source_parts: o.sources.iter().map(|s| s.name.clone()).collect(),
                    rows_read: if i == 0 { o.counts.read } else { 0 },
                    bytes_read: if i == 0 { whole.placement.bytes } else { 0 },
                    duration_ms: o.duration_ms,
                    reason: if i == 0 { reason.clone() } else { format!("{reason}: rows that main's head does not see") },
                    ..Told::default()
                };
                edits.extend(part_row(core, state, time, event, &stored.meta, told));
                edits.push(Edit::AddPart(Box::new(stored.meta.clone())));
            }
            let metas: Vec<_> = o.stored.iter().map(|(s, _)| Arc::new(s.meta.clone())).collect();
            let after = (!metas.is_empty()).then(|| whole_of(&metas));
            if let Some(after) = &after {
                let there = metas.iter().all(|m| m.placement.disk == o.target.disk);
                for (by, action) in [(o.target.recompressed_by, "recompress"), (o.target.moved_by.filter(|_| there), "move")] {
                    edits.extend(replace::taken(compiled, state, time, by, action, (&whole, after), o.duration_ms));
                }
            } else {
                for source in &o.sources {
                    let told = Told { reason: "no row stayed".to_owned(), ..Told::default() };
                    edits.extend(part_row(core, state, time, PartEvent::DropPart, source, told));
                }
            }
            let bytes_after = after.as_ref().map_or(0, |m| m.placement.bytes);
            for (rule, action, (rows_before, rows_after), reason) in taken_by_rules(&o.counts, whole.rows) {
                let Some(rule) = compiled.rules.get(rule) else { continue };
                let part = &PartMeta { rows: rows_before, ..whole.clone() };
                let taken = Taken { rule, action, part, rows_after, bytes_after, duration_ms: o.duration_ms, reason };
                edits.extend(rule_row(state, time, taken));
            }
        }
        if let Plan::Prune { partition, .. } | Plan::Fold { partition, .. } = plan {
            edits.push(Edit::TimerArmed { stream, partition: partition.to_string(), timer: Timer::Prune, at: time });
        }
        Ok(edits)
    };
    // Also where nobody waits for the commit any more.
    let shows = core.shows();
    let publish = move |m: &Arc<Manifest>| {
        shows(m);
        drop(layout);
    };
    core.committer.commit_with(expect, edits, publish).await?;
    Ok(())
}

/// Deletions and expiries of the sources, as rows of the parts that were written. What names no row that is left is not carried.
async fn carry(core: &Core, now: &StreamState, output: &mut Output) -> Result<()> {
    let Output { sources, stored, .. } = output;
    for (stored, map) in stored {
        carry_to(core, now, sources, &mut stored.meta, map).await?;
    }
    Ok(())
}

async fn carry_to(core: &Core, now: &StreamState, sources: &[Arc<PartMeta>], meta: &mut PartMeta, map: &RowMap) -> Result<()> {
    let mut deleted: BTreeMap<(BranchId, Sn), RowSet> = BTreeMap::new();
    let mut expired: BTreeMap<CommitNo, RowSet> = BTreeMap::new();
    for (i, source) in sources.iter().enumerate() {
        let source = replace::part_of(now, source.id)?;
        let moved = |rows| Ok::<_, Error>(map.translate(i as u32, core.sets.rows(&source, rows)?.as_ref()));
        for d in &source.deletions {
            deleted.entry((d.branch, d.sn)).or_default().0 |= moved(&d.rows)?.0;
        }
        for e in &source.expired {
            expired.entry(e.commit).or_default().0 |= moved(&e.rows)?.0;
        }
    }
    let part = (meta.stream, meta.id, meta.rows);
    for ((branch, sn), rows) in deleted.into_iter().filter(|(_, rows)| !rows.is_empty()) {
        let rows = sets::keep(core, part, sets::Kind::Deletion, rows).await?;
        meta.deletions.push(Deletion { branch, sn, rows });
    }
    for (commit, rows) in expired.into_iter().filter(|(_, rows)| !rows.is_empty()) {
        let rows = sets::keep(core, part, sets::Kind::Expired, rows).await?;
        meta.expired.push(ExpiredRows { commit, rows });
    }
    Ok(())
}

/// What rules did, for the lifecycle log, in the order in which they did it: the rule, the action, rows before and after, in words that
/// begin with how many rows or values were due.
fn taken_by_rules(counts: &Counts, rows: u64) -> Vec<(usize, &'static str, (u64, u64), String)> {
    let (mut told, mut before) = (Vec::new(), rows);
    let mut step = |rule: &usize, action, removed: u64, made: u64, words| {
        let after = before.saturating_sub(removed) + made;
        told.push((*rule, action, (before, after), words));
        before = after;
    };
    for (rule, n) in &counts.removed {
        step(rule, "delete", *n, 0, format!("{n} rows were due"));
    }
    for (rule, (taken, made)) in &counts.folded {
        step(rule, "group_by", *taken, *made, format!("{taken} rows were due and became {made}"));
    }
    for (rule, n) in &counts.reset {
        step(rule, "reset", 0, 0, format!("{n} values were due"));
    }
    told
}

/// The sources as one, for the lifecycle log.
fn whole_of(sources: &[Arc<PartMeta>]) -> PartMeta {
    let mut whole = sources[0].as_ref().clone();
    for s in &sources[1..] {
        whole.name = format!("{},{}", whole.name, s.name);
        whole.rows += s.rows;
        whole.placement.bytes += s.placement.bytes;
    }
    whole
}
