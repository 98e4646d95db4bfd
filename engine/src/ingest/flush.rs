//! Bringing the tail into parts: sort, split, write, and one commit that says "records up to sn are in parts".
//!
//! Guards: one flush of a stream at a time; the parts appear and the rows leave the tail in the same step (a reader sees each row once);
//! a flush that fails leaves the tail as it was (I10, I11).

use crate::{
    core::{Core, busy},
    folded,
    ingest::{partition, tail::Tail, unsorted::Unsorted},
    job::told::{Told, part_row},
    limits,
    place::Places,
    stream::Compiled,
    upgrade::upgrade,
    write::{self, About, Stored},
};
use arrow::array::{ArrayRef, RecordBatch};
use ebb_storage::{
    Error, ErrorKind, Result, Timestamp,
    clock::Stopwatch,
    decision,
    ids::{BranchId, ColumnId, PartId, StreamId},
    lineage::{Seen, SnRange},
    manifest::{Edit, Expect, edit::PartEvent},
    part::{PartMeta, meta::Deletion, raw_bytes},
    refs::Needs,
};
use std::{
    collections::{BTreeMap, HashSet},
    sync::Arc,
};

/// Flushes a stream; whether there was anything to flush.
///
/// # Errors
/// `NotFound` where the stream is gone, `Full` where the disk is.
pub async fn flush(core: &Core, stream: StreamId) -> Result<bool> {
    flush_but(core, stream, &[]).await
}

/// [`flush`] that forgets these sns in the same step: rows that nobody could read after it are not written.
pub async fn flush_but(core: &Core, stream: StreamId, forget: &[SnRange]) -> Result<bool> {
    let lock = core.flush_lock(stream);
    let _one = lock.lock().await;
    for _ in 0..limits::ALTER_ATTEMPTS {
        match flush_now(core, stream, forget).await {
            // The commit of a flush that nobody waits for any more came first: what it left is flushed.
            Err(e) if e.kind() == ErrorKind::Conflict => continue,
            done => return done,
        }
    }
    Err(Error::internal("a stream is flushed by others all the time"))
}

async fn flush_now(core: &Core, stream: StreamId, forget: &[SnRange]) -> Result<bool> {
    let live = core.live.read();
    let Some(state) = live.manifest.stream(stream).cloned() else { return Ok(false) };
    let tail = live.tail(stream);
    drop(live);
    if tail.is_empty() {
        return Ok(false);
    }
    let started = Stopwatch::start();
    let (upto, now) = (tail.head(), core.now());
    let compiled = core.compiled(&state.def)?;
    let shares = {
        let (compiled, tail, compiler) = (compiled.clone(), tail.clone(), core.options.compiler.clone());
        let needs = (!forget.is_empty()).then(|| {
            let mut after = folded::whole(&state, &tail).as_ref().clone();
            after.forget(forget);
            Needs::of(&after, &core.pins_of(&after))
        });
        busy(move || shares(&compiled, &tail, needs.as_ref(), compiler.as_ref())).await?
    };
    let layout = folded::layout(&state, &tail);
    let seen = Arc::new(layout.seen(&layout.head()));
    let mut stored: Vec<Stored> = Vec::with_capacity(shares.len());
    for share in shares {
        match write_share(core, stream, &compiled, share, (&seen, now)).await {
            Ok(part) => stored.push(part),
            Err(e) => {
                stored.into_iter().for_each(|s| s.abandon(core));
                return Err(e.context(format_args!("flushing {}", state.def.full_name())));
            }
        }
    }
    let staged = tail.staged().iter().flat_map(|(sn, branch, parts)| parts.iter().map(move |p| (*sn, *branch, p)));
    let staged = staged.map(|(sn, branch, p)| write::stamped(p, sn, branch));
    let metas: Vec<_> = staged.chain(stored.iter().map(|s| s.meta.clone())).collect();
    let records: Vec<_> = tail.records().cloned().collect();
    let expect = vec![Expect::Applied { stream, sn: state.applied_sn }];
    let duration_ms = started.elapsed().as_millis() as u64;
    let edits = |m: &ebb_storage::manifest::Manifest, (_, time)| {
        let mut edits = Vec::new();
        let state = m.stream(stream).ok_or_else(|| ebb_storage::Error::not_found("the stream was dropped meanwhile"))?;
        let row = |event, part: &PartMeta, reason: &str| {
            part_row(core, state, time, event, part, Told { duration_ms, reason: reason.to_owned(), ..Told::default() })
        };
        for (branch, lineage) in tail.lineages() {
            edits.push(Edit::SetLineage { stream, branch: *branch, lineage: lineage.clone() });
        }
        edits.push(Edit::Apply { stream, sn: upto, records });
        if !forget.is_empty() {
            edits.push(Edit::Forget { stream, sns: forget.to_vec() });
        }
        edits.push(Edit::LogApplied { lsn: core.appender.applied_once(core, &[(stream, upto)]) });
        let mut new: HashSet<PartId> = HashSet::new();
        for part in metas {
            edits.extend(row(PartEvent::NewPart, &part, if part.sn_in_meta { "insert" } else { "flush" }));
            new.insert(part.id);
            edits.push(Edit::AddPart(Box::new(part)));
        }
        for deletion in tail.deletions() {
            // A part that is gone was replaced by one that carries the deletion.
            for target in deletion.what.targets.iter().filter(|t| state.parts.contains_key(&t.part) || new.contains(&t.part)) {
                let deletion = Deletion { branch: deletion.branch, sn: deletion.sn, rows: target.rows.clone() };
                edits.push(Edit::AddDeletion { stream, part: target.part, deletion });
            }
        }
        Ok(edits)
    };
    let live = core.live.clone();
    let publish = move |m: &Arc<ebb_storage::manifest::Manifest>| {
        live.publish(|live| {
            live.manifest = m.clone();
            let trimmed = live.tail(stream).trimmed(upto);
            live.set_tail(stream, trimmed);
        });
    };
    let committed = decision::reopening(core.committer.commit_with(expect, edits, publish)).await;
    if let Err(e) = &committed
        && write::surely_failed(e)
    {
        stored.into_iter().for_each(|s| s.abandon(core));
    }
    match committed {
        Ok(_) => {
            core.appender.trim(core).await;
            Ok(true)
        }
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(false),
        Err(e) => Err(e.context(format_args!("flushing {}", state.def.full_name()))),
    }
}

/// What of the tail becomes one part.
struct Share {
    branch: BranchId,
    partition: Arc<str>,
    batches: Vec<(RecordBatch, ArrayRef)>,
    filled: Vec<ColumnId>,
}

type RowsWithSns = Vec<(RecordBatch, ArrayRef)>;

/// The tail's rows by branch and partition.
fn shares(compiled: &Compiled, tail: &Tail, needs: Option<&Needs>, compiler: &dyn crate::expr::ExprCompiler) -> Result<Vec<Share>> {
    let mut filled: Vec<ColumnId> = Vec::new();
    let mut shares: BTreeMap<(BranchId, Arc<str>), RowsWithSns> = BTreeMap::new();
    for chunk in tail.chunks() {
        let needed = match needs {
            None => Some(chunk.as_ref().clone()),
            Some(needs) => {
                let alive = needs.alive(chunk.branch, &[], &[]);
                chunk.with(|sn| alive.contains(sn))
            }
        };
        let Some(chunk) = needed else { continue };
        let rows = match chunk.schema_version == compiled.def.schema_version {
            true => chunk.rows.clone(),
            false => {
                let (rows, new) = upgrade(&chunk.rows, &compiled.def, compiler)?;
                filled.extend(new);
                rows
            }
        };
        if rows.num_rows() == 0 {
            continue;
        }
        let sns = chunk.sn_column();
        for share in partition::split(&compiled.partition_values(&rows)?, rows.num_rows(), usize::MAX)? {
            let part_rows = write::share_of(&rows, share.rows.as_ref())?;
            let part_sns = match &share.rows {
                None => sns.clone(),
                Some(wanted) => arrow::compute::take(&sns, wanted, None)?,
            };
            shares.entry((chunk.branch, share.partition)).or_default().push((part_rows, part_sns));
        }
    }
    filled.sort_unstable();
    filled.dedup();
    let share = |((branch, partition), batches)| Share { branch, partition, batches, filled: filled.clone() };
    Ok(shares.into_iter().map(share).collect())
}

async fn write_share(
    core: &Core,
    stream: StreamId,
    compiled: &Arc<Compiled>,
    share: Share,
    (seen, now): (&Arc<Seen>, Timestamp),
) -> Result<Stored> {
    let Share { branch, partition, batches, filled } = share;
    let (for_encoder, seen) = (compiled.clone(), seen.clone());
    let bytes = batches.iter().map(|(r, _)| raw_bytes(r) as u64).sum();
    let rows = batches.iter().map(|(r, _)| r.num_rows() as u64).sum();
    let facts = write::facts_of_moves(compiled, batches.iter().map(|(r, _)| r));
    let places = Places::of_new(core, &compiled.def, bytes, &facts, rows);
    let fill = move |batches: Vec<(RecordBatch, ArrayRef)>, encoder: &mut write::Encoder| {
        let mut unsorted = Unsorted::new(&for_encoder, batches.iter().map(|(r, _)| r.num_rows()).sum());
        batches.iter().try_for_each(|(rows, _)| unsorted.push(&for_encoder, rows))?;
        let sns: Vec<&dyn arrow::array::Array> = batches.iter().map(|(_, s)| s.as_ref()).collect();
        let sns = arrow::compute::concat(&sns)?;
        let origins = write::origins_of(branch, sns.as_ref(), &seen)?;
        drop(batches);
        Ok((unsorted.gathered()?.encode(&for_encoder, &sns, encoder)?, origins))
    };
    let (written, (facts, origins)) = write::write(core, stream, places, compiled.write.clone(), batches, fill).await?;
    let written = written.ok_or_else(|| Error::internal("a share of the tail without rows"))?;
    let about = About {
        partition,
        schema_version: compiled.def.schema_version,
        filled,
        carried: Vec::new(),
        facts,
        origins,
        sn_in_meta: false,
        level: 0,
        written_at: now,
    };
    Ok(write::describe(written, about))
}
