//! Merge and prune are one thing: sources in, one part out, without the rows that are due at the plan's cutoff.
//!
//! What is written are the columns of today, and those that were dropped and that a tag reads of the sources' rows.
//! A lone source whose columns are these is pruned by row group: none due, its bytes are copied; all due, it is skipped; some,
//! it is decoded, filtered, encoded. Several are merged by ORDER BY. Facts are counted anew for what stays, so the part is quiet after.
//! Guards: I4 (out = in - removed, counted), I13 (the commit stands on the sources' generations and the definition), sns stay exact.

use crate::{
    core::Core,
    facts::Gathering,
    folded,
    job::{
        fate::{self, Judge},
        fold::{self, Folded},
        registry::{JobGuard, Running},
        replace,
        source::{self, Counts, Found, Removal, Source, ruled, stretches},
        told::{self, Taken, Told, part_row, rule_row},
    },
    place,
    plan::{Plan, Target, TierView, tiers::BESIDE_ROWS_BYTES},
    sets,
    stream::Compiled,
    upgrade::field_id,
    write::{self, About, Encoder, Room, Stored},
};
use arrow::{
    array::{AsArray, BooleanArray, Int64Array, RecordBatch},
    compute::{filter, filter_record_batch},
    datatypes::Int64Type,
};
use ebb_storage::{
    Error, ErrorKind, Result, Timestamp,
    clock::Stopwatch,
    ids::{BranchId, ColumnId, CommitNo, PartId, Sn},
    lineage::SnRange,
    manifest::{
        Edit, Expect, Manifest, StreamState,
        edit::{PartEvent, RemoveReason, Timer},
    },
    part::{
        CodedRows, Merge, PartMeta, RowMap, RowSet, Run, WriteOptions,
        meta::{Deletion, ExpiredRows, Origin, RuleFacts},
        reader::ReadOptions,
    },
    refs::Rounding,
    stream_def::StreamDef,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, atomic::Ordering, mpsc},
};

/// Rows of one batch between merging and encoding.
const BATCH_ROWS: usize = 16_384;
/// Batches between the merging and the encoding thread.
const QUEUED_BATCHES: usize = 4;

/// Sources and what became of them.
struct Output {
    sources: Vec<Arc<PartMeta>>,
    target: Target,
    /// `None` where no row stayed.
    stored: Option<Stored>,
    counts: Counts,
    /// Where the rows went, source by source.
    map: RowMap,
    duration_ms: u64,
}

pub async fn run(core: &Arc<Core>, plan: &Plan, guard: &JobGuard) -> Result<()> {
    let (stream, cutoff, together) = match plan {
        Plan::Prune { stream, cutoff, .. } => (*stream, Some(*cutoff), false),
        Plan::Merge { stream, cutoff, delete_due, .. } => (*stream, delete_due.then_some(*cutoff), true),
        _ => return Err(Error::internal("not a plan to rewrite")),
    };
    let state = core.stream(stream)?;
    let compiled = core.compiled(&state.def)?;
    let metas = plan.parts().iter().map(|p| replace::part_of(&state, *p)).collect::<Result<Vec<_>>>()?;
    let expect = replace::standing(core, &state)?;
    let judge = core.judge(&state);
    let mut expect = expect;
    if cutoff.is_some() {
        expect.push(Expect::Refs { stream, version: state.refs_version });
    }
    let removal = |cutoff| Removal { compiled: compiled.clone(), cutoff, compiler: core.options.compiler.clone(), folds: false };
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
        match rewrite(core, &state, &removal(cutoff.filter(|_| !pinned)), &judge, group, target, &guard.running).await {
            Ok(output) => outputs.push(output),
            // One part that cannot be pruned keeps none of the others from it.
            Err(e) if !together && e.kind() != ErrorKind::Fenced => {
                if !matches!(e.kind(), ErrorKind::Conflict) {
                    let e = super::as_lost(core, plan, e);
                    if !super::is_outage(core, &e) {
                        core.jobs.failed(&parts, core.now(), &e);
                        told::failure_of(core, plan, &parts, &e).await;
                    }
                    failed.get_or_insert(e);
                }
            }
            Err(e) => {
                outputs.into_iter().filter_map(|o: Output| o.stored).for_each(|s| s.abandon(core));
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
        Err(e) if write::surely_failed(e) => outputs.into_iter().filter_map(|o| o.stored).for_each(|s| s.abandon(core)),
        Err(_) => {}
    }
    committed.and(failed.map_or(Ok(()), Err))
}

async fn commit(core: &Core, plan: &Plan, compiled: &Compiled, mut expect: Vec<Expect>, outputs: &mut [Output]) -> Result<()> {
    let stream = plan.stream();
    // What was deleted while the rewrite ran is carried along; until the commit nothing more is.
    let layout = core.layout_lock(stream);
    let _layout = layout.lock().await;
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
        _ if outputs.iter().all(|o| o.counts.removed_rows() == 0 && o.counts.gone > 0) => {
            (PartEvent::PrunePart, "nobody needs rows any more".to_owned())
        }
        _ => (PartEvent::PrunePart, "rows are due".to_owned()),
    };
    let edits = |m: &Manifest, (_, time): (_, Timestamp)| {
        let mut edits = Vec::new();
        let state = m.stream(stream).ok_or_else(|| Error::not_found("the stream was dropped meanwhile"))?;
        for o in outputs {
            for source in &o.sources {
                if state.parts.get(&source.id).is_some_and(|now| now.expired != source.expired) {
                    return Err(Error::conflict(format!("rows of part {} were removed meanwhile", source.name)));
                }
                edits.push(Edit::RemovePart { stream, part: source.id, why: RemoveReason::Replaced });
            }
            let told = Told {
                source_parts: o.sources.iter().map(|s| s.name.clone()).collect(),
                rows_read: o.counts.read,
                bytes_read: o.sources.iter().map(|s| s.placement.bytes).sum(),
                duration_ms: o.duration_ms,
                reason: reason.clone(),
                ..Told::default()
            };
            let bytes_after = o.stored.as_ref().map_or(0, |s| s.meta.placement.bytes);
            let whole = whole_of(&o.sources);
            match &o.stored {
                Some(stored) => {
                    edits.extend(part_row(core, state, time, event, &stored.meta, told));
                    edits.push(Edit::AddPart(Box::new(stored.meta.clone())));
                    let there = stored.meta.placement.disk == o.target.disk;
                    for (by, action) in [(o.target.recompressed_by, "recompress"), (o.target.moved_by.filter(|_| there), "move")] {
                        edits.extend(replace::taken(compiled, state, time, by, action, (&whole, &stored.meta), o.duration_ms));
                    }
                }
                None => {
                    for source in &o.sources {
                        let told = Told { reason: "no row stayed".to_owned(), ..Told::default() };
                        edits.extend(part_row(core, state, time, PartEvent::DropPart, source, told));
                    }
                }
            }
            for (rule, action, (rows_before, rows_after), reason) in taken_by_rules(&o.counts, whole.rows) {
                let Some(rule) = compiled.rules.get(rule) else { continue };
                let part = &PartMeta { rows: rows_before, ..whole.clone() };
                let taken = Taken { rule, action, part, rows_after, bytes_after, duration_ms: o.duration_ms, reason };
                edits.extend(rule_row(state, time, taken));
            }
        }
        if let Plan::Prune { partition, .. } = plan {
            edits.push(Edit::TimerArmed { stream, partition: partition.to_string(), timer: Timer::Prune, at: time });
        }
        Ok(edits)
    };
    core.committer.commit_with(expect, edits, core.shows()).await?;
    Ok(())
}

/// Deletions and expiries of the sources, as rows of the output. What names no row that is left is not carried.
async fn carry(core: &Core, now: &StreamState, output: &mut Output) -> Result<()> {
    let Some(stored) = &mut output.stored else { return Ok(()) };
    let mut deleted: BTreeMap<(BranchId, Sn), RowSet> = BTreeMap::new();
    let mut expired: BTreeMap<CommitNo, RowSet> = BTreeMap::new();
    for (i, source) in output.sources.iter().enumerate() {
        let source = replace::part_of(now, source.id)?;
        let moved = |rows| Ok::<_, Error>(output.map.translate(i as u32, core.sets.rows(&source, rows)?.as_ref()));
        for d in &source.deletions {
            deleted.entry((d.branch, d.sn)).or_default().0 |= moved(&d.rows)?.0;
        }
        for e in &source.expired {
            expired.entry(e.commit).or_default().0 |= moved(&e.rows)?.0;
        }
    }
    let part = (stored.meta.stream, stored.meta.id, stored.meta.rows);
    for ((branch, sn), rows) in deleted.into_iter().filter(|(_, rows)| !rows.is_empty()) {
        let rows = sets::keep(core, part, sets::Kind::Deletion, rows).await?;
        stored.meta.deletions.push(Deletion { branch, sn, rows });
    }
    for (commit, rows) in expired.into_iter().filter(|(_, rows)| !rows.is_empty()) {
        let rows = sets::keep(core, part, sets::Kind::Expired, rows).await?;
        stored.meta.expired.push(ExpiredRows { commit, rows });
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

async fn rewrite(
    core: &Arc<Core>,
    state: &StreamState,
    removal: &Removal,
    judge: &Judge,
    sources: Vec<Arc<PartMeta>>,
    target: &Target,
    running: &Arc<Running>,
) -> Result<Output> {
    let started = Stopwatch::start();
    let carried = judge.carried(state, &sources);
    let compiled = match carried.is_empty() {
        true => removal.compiled.clone(),
        false => Arc::new(Compiled::new(&state.carrying(&state.def, &carried), &core.server(), core.options.compiler.as_ref())?),
    };
    let removal = &Removal { compiled, ..removal.clone() };
    let room = room_for(core, removal, &sources, target)?;
    let mut opened = Vec::with_capacity(sources.len());
    for meta in &sources {
        let mut source = Source::open(core, meta.clone(), judge).await?;
        source.fills = fills(&source, &carried, judge);
        opened.push(source);
        running.bytes_read.fetch_add(meta.placement.bytes, Ordering::Relaxed);
    }
    let options = WriteOptions { codec: target.codec, ..removal.compiled.write.clone() };
    let id = core.next_part()?;
    let level = sources.iter().map(|s| s.level).max().unwrap_or(0).saturating_add(u32::from(sources.len() > 1));
    let sns = sources.iter().map(|s| s.min_sn()).min().unwrap_or_default();
    let sns = (sns, sources.iter().map(|s| s.max_sn()).max().unwrap_or_default());
    running.writes(write::name(&sources[0].partition, sns, level, id));
    let changes = sources.iter().any(|s| removal.changes(s));
    let ages = opened.iter().any(|s| s.fate.ages());
    // What two parts have folded is folded together when they are merged.
    let folds = removal.cutoff.is_some() && (changes || sources.len() > 1);
    let removal = &Removal { folds, ..removal.clone() };
    let folded = fold::fold(removal, &opened).await?;
    // Ends of stretches are records that wrote rows.
    let mains = sources.iter().flat_map(|s| &s.origins).filter(|o| o.branch == BranchId::MAIN);
    let rounding = Arc::new(judge.rounding().among(mains.flat_map(|o| [o.sns.after.next(), o.sns.to])));
    let to_fold = folded.taken();
    let (written, rewritten) = {
        let (removal, running, rounding) = (removal.clone(), running.clone(), rounding.clone());
        let recodes = sources[0].placement.codec != target.codec;
        let fill = move |encoder: &mut Encoder| match opened.as_slice() {
            [one] if !changes && same_columns(one, &removal.compiled) => prune(one, &removal, recodes, &running, encoder),
            _ => merge(opened, folded, &removal, &rounding, &running, encoder),
        };
        write::write_as(core, (sources[0].stream, id), room, options, fill).await?
    };
    let counts = rewritten.counts;
    let rows_in: u64 = sources.iter().map(|s| s.rows).sum();
    let rows_out = written.as_ref().map_or(0, |w| w.encoded.rows);
    let expected = rows_in as i64 - (counts.gone + counts.removed_rows()) as i64 + counts.folded_rows();
    let went_in: u64 = counts.folded.values().map(|(taken, _)| taken).sum();
    if counts.read != rows_in || rows_out as i64 != expected || went_in != to_fold {
        if let Some(written) = written {
            written.abandon(core);
        }
        return Err(Error::internal(format!(
            "I4: a rewrite of {rows_in} rows read {}, removed {}, left out {} that nobody needs, changed their number by folding by {} and wrote {rows_out}",
            counts.read,
            counts.removed_rows(),
            counts.gone,
            counts.folded_rows()
        )));
    }
    let stored = written.map(|written| {
        running.rows_written.fetch_add(rows_out, Ordering::Relaxed);
        running.bytes_written.fetch_add(written.encoded.bytes, Ordering::Relaxed);
        let about = About {
            partition: sources[0].partition.clone(),
            schema_version: removal.compiled.def.schema_version,
            filled: rewritten.filled,
            carried,
            facts: if ages { rewritten.facts } else { Vec::new() },
            origins: rewritten
                .records
                .as_ref()
                .map_or_else(|| origins_of(&sources, rows_out, rewritten.rounded.then_some(&rounding)), fate::origins_of),
            sn_in_meta: sources.len() == 1 && sources[0].sn_in_meta && rewritten.sns_untouched,
            level,
            written_at: core.now(),
        };
        let mut stored = write::describe(written, about);
        stored.meta.move_due_since = target.move_due_since;
        stored
    });
    let map = rewritten.map;
    Ok(Output { sources, target: *target, stored, counts, map, duration_ms: started.elapsed().as_millis() as u64 })
}

/// The carried columns that a source's file lacks, where a tag reads them of its rows.
fn fills(source: &Source, carried: &[ColumnId], judge: &Judge) -> Vec<(ColumnId, Arc<StreamDef>)> {
    let has = |id: &ColumnId| source.reader.schema().fields().iter().any(|f| field_id(f).is_ok_and(|i| i == *id));
    let lacking = carried.iter().filter(|id| !has(id));
    lacking.filter_map(|id| Some((*id, judge.dropped().reader_of(&source.meta, *id)?.clone()))).collect()
}

/// The output is held to be as large as its sources, which stay until it is committed. Where the disk that was planned for has no room
/// any more it goes to the next one that has, never to a hotter volume.
///
/// # Errors
/// `Full` where no disk has that much left, after what other jobs reserved.
fn room_for(core: &Core, removal: &Removal, sources: &[Arc<PartMeta>], target: &Target) -> Result<Room> {
    let bytes = sources.iter().map(|s| s.placement.bytes).fold(BESIDE_ROWS_BYTES, u64::saturating_add);
    let full = match place::room_on(core, target.disk, bytes) {
        Ok(room) => return Ok(room),
        Err(e) => e.context(format_args!("destination_full: rewriting {} parts", sources.len())),
    };
    let tiers = TierView::of(&core.live.read().manifest, &removal.compiled.def, &core.disks, |_, _| false);
    let sent = tiers.volume_of(target.disk);
    let from = sources.iter().filter_map(|s| tiers.volume_of(s.placement.disk)).chain(sent.filter(|_| target.moved_by.is_none())).max();
    let turn = sources.first().map_or(0, |s| s.id.0);
    match tiers.from_on(from.or(sent).unwrap_or(0), bytes, turn) {
        Ok(disk) if disk != target.disk => place::room_on(core, disk, bytes).map_err(|_| full),
        _ => Err(full),
    }
}

/// What a rewrite found out while it wrote.
struct Rewritten {
    counts: Counts,
    facts: Vec<RuleFacts>,
    filled: Vec<ColumnId>,
    map: RowMap,
    /// Of sources of several branches.
    records: Option<BTreeMap<Sn, (BranchId, u64)>>,
    /// Records of main may stand for others.
    rounded: bool,
    /// `_tp_sn` is as the lone source's file had it.
    sns_untouched: bool,
}

fn origins_of(sources: &[Arc<PartMeta>], rows: u64, rounding: Option<&Arc<Rounding>>) -> Vec<Origin> {
    let mut all = sources.iter().flat_map(|s| s.origins.iter().cloned());
    let Some(first) = all.next() else { return Vec::new() };
    // Rows of one branch: one stretch from the oldest to the newest record.
    let mut whole = Origin { rows, ..first };
    for o in all {
        whole.sns.after = whole.sns.after.min(o.sns.after);
        whole.sns.to = whole.sns.to.max(o.sns.to);
    }
    if let Some(rounding) = rounding.filter(|_| whole.branch == BranchId::MAIN) {
        let (first, last) = (rounding.of_row(whole.sns.after.next()), rounding.of_row(whole.sns.to));
        whole.sns = SnRange { after: Sn(first.0.saturating_sub(1)), to: last };
    }
    vec![whole]
}

/// Whether the file has exactly the columns of today, so that its row groups can be taken over.
fn same_columns(source: &Source, compiled: &Compiled) -> bool {
    let (file, today) = (source.reader.schema().fields(), compiled.part_schema.fields());
    let same = |(f, t): (&Arc<arrow::datatypes::Field>, &Arc<arrow::datatypes::Field>)| {
        f.name() == t.name() && f.data_type() == t.data_type() && f.is_nullable() == t.is_nullable() && field_id(f).ok() == field_id(t).ok()
    };
    file.len() == today.len() && file.iter().zip(today).all(same)
}

/// A lone part, row group by row group; in another codec where it `recodes`.
fn prune(source: &Source, removal: &Removal, recodes: bool, running: &Running, encoder: &mut Encoder) -> Result<Rewritten> {
    let compiled = &removal.compiled;
    encoder.takes_over(&source.meta.sets);
    let mut counts = Counts::default();
    let mut facts: Vec<Gathering> = compiled.rules.iter().map(|r| Gathering::new(r, removal.cutoff)).collect();
    let asked = asked_columns(compiled, source.fate.asks_sns());
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
    Ok(Rewritten { counts, facts, filled: source.meta.filled.clone(), map, records: None, rounded: false, sns_untouched: true })
}

/// The columns that rules read, and `_tp_time`, so that there is always one; `_tp_sn`, which is the last, where it is asked for.
fn asked_columns(compiled: &Compiled, sns: bool) -> Vec<ColumnId> {
    let read = compiled.rules.iter().flat_map(|r| r.when.columns().iter().chain(r.only.iter().flat_map(|o| o.columns())));
    let ids: BTreeSet<ColumnId> = read.copied().chain([ColumnId::TP_TIME]).chain(sns.then_some(ColumnId::TP_SN)).collect();
    ids.into_iter().collect()
}

/// Several parts, or one whose columns have changed: merging on a second thread, encoding here.
fn merge(
    sources: Vec<Source>,
    folded: Folded,
    removal: &Removal,
    rounding: &Arc<Rounding>,
    running: &Arc<Running>,
    encoder: &mut Encoder,
) -> Result<Rewritten> {
    let compiled = &removal.compiled;
    let facts = compiled.rules.iter().map(|r| Gathering::new(r, removal.cutoff)).collect();
    let mut branches = sources.iter().flat_map(|s| s.meta.origins.iter().map(|o| o.branch));
    let first = branches.next();
    let records = branches.any(|b| Some(b) != first).then(BTreeMap::new);
    let found = Arc::new(Mutex::new(Found { counts: Counts::default(), facts, records }));
    let filled_before: Vec<ColumnId> = sources.iter().flat_map(|s| s.meta.filled.clone()).collect();
    let inputs = sources.into_iter().map(|s| source::rows_of(s, removal.clone(), rounding.clone(), found.clone(), running.clone()));
    let mut inputs = inputs.collect::<Result<Vec<_>>>()?;
    if !folded.is_empty() {
        inputs.push(folded.into_source(removal.clone(), found.clone())?);
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
