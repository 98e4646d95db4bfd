//! The same rows in another codec: pages are decompressed and compressed again, no value is decoded.
//!
//! Guards: columns with a codec of their own keep it; a part that fails keeps none of the others; the timer is armed once the last one
//! is done, and only where one was done.

use crate::{
    core::{Abandoned, Core},
    job::{
        registry::{JobGuard, Running},
        replace::{self, About, Replaced},
        told,
    },
    place,
    plan::{Plan, Target, TierView, tiers::BESIDE_ROWS_BYTES},
    stream::Compiled,
    write,
};
use ebb_storage::{
    Error, ErrorKind, Result,
    clock::Stopwatch,
    ids::Sn,
    manifest::{
        Edit,
        edit::{PartEvent, Timer},
    },
    part::{
        PartMeta, PartReader, WriteOptions,
        meta::Placement,
        store::{verify, write_part},
    },
};
use std::sync::{Arc, atomic::Ordering};

pub async fn run(core: &Arc<Core>, plan: &Plan, guard: &JobGuard) -> Result<()> {
    let Plan::Recompress { stream, partition, parts, targets } = plan else { return Err(Error::internal("not a plan to recompress")) };
    let (mut failed, mut done, mut armed) = (None, false, false);
    for (i, (part, target)) in parts.iter().zip(targets).enumerate() {
        let arms = (i + 1 == parts.len()).then_some(Timer::Recompress);
        let one = async {
            let state = core.stream(*stream)?;
            let compiled = core.compiled(&state.def)?;
            let meta = replace::part_of(&state, *part)?;
            replace::still_allowed(core, &state, target)?;
            let expect = replace::standing(core, &state)?;
            guard.running.writes(meta.name.clone());
            let new = recoded(core, &compiled, meta, target, How::Codec, &guard.running).await?;
            let reason = format!("every row is due, from {}", new.source.placement.codec);
            let about = About { event: PartEvent::RecompressPart, target, reason, arms, rounded: None };
            replace::commit(core, &compiled, expect, new, about).await
        };
        match one.await {
            Ok(()) => {
                core.jobs.succeeded(&[*part]);
                (done, armed) = (true, arms.is_some());
            }
            Err(e) if e.kind() == ErrorKind::Fenced => return Err(e),
            Err(e) => {
                if super::is_failure(core, plan, &e) {
                    core.jobs.failed(&[*part], core.now(), &e);
                    told::failure_of(core, plan, &[*part], &e).await;
                }
                failed.get_or_insert(e);
            }
        }
    }
    if done && !armed {
        let arm = |_: &_, (_, at): (_, _)| {
            Ok(vec![Edit::TimerArmed { stream: *stream, partition: partition.to_string(), timer: Timer::Recompress, at }])
        };
        core.committer.commit_with(Vec::new(), arm, core.shows()).await?;
    }
    failed.map_or(Ok(()), Err)
}

/// What becomes of a part's column chunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// Their pages get the target's codec, but for columns with one of their own.
    Codec,
    /// They are copied, and `_tp_sn` says this record for every row.
    OneRecord(Sn),
}

/// The part's rows on the target's disk, in its codec.
///
/// # Errors
/// `Corrupt` where the part is; `Full`, `Unavailable` as the disk says; `Conflict` where more came of it than its place takes.
pub async fn recoded(
    core: &Core,
    compiled: &Compiled,
    meta: Arc<PartMeta>,
    target: &Target,
    how: How,
    running: &Arc<Running>,
) -> Result<Replaced> {
    let started = Stopwatch::start();
    let reckoned = match how {
        How::Codec => core.jobs.bytes_in(&meta, target.codec),
        How::OneRecord(_) => meta.placement.bytes.saturating_add(BESIDE_ROWS_BYTES),
    };
    let tiers = TierView::of(&core.live.read().manifest, &compiled.def, &core.disks, |_, _| false);
    let mut room = place::room_on(core, target.disk, reckoned)?.recoding(&meta, target.codec, &tiers);
    let (from, from_key) = (core.disks.disk(meta.placement.disk)?, core.disks.key(meta.stream, meta.id, meta.placement.generation));
    let source = PartReader::open(&from.store, &from_key).await.map_err(|e| e.context(format_args!("part {}", meta.name)))?;
    running.bytes_read.fetch_add(meta.placement.bytes, Ordering::Relaxed);
    let own = compiled.write.column_codecs.clone();
    let (threads, piece_bytes) = (compiled.write.threads, room.piece_bytes());
    let options = WriteOptions { threads, piece_bytes, ..WriteOptions::like(&source, target.codec, own) };
    let generation = core.next_generation()?;
    let guard = core.inflight.register(meta.stream, meta.id);
    let key = core.disks.key(meta.stream, meta.id, generation);
    let progress = running.clone();
    let as_written = (meta.placement.bytes, meta.placement.checksum);
    let fill = move |encoder: &mut write::Encoder| {
        let mut taken = |rows| {
            progress.rows_read.fetch_add(rows, Ordering::Relaxed);
            progress.rows_written.fetch_add(rows, Ordering::Relaxed);
        };
        match how {
            How::Codec => encoder.recode_part(&source, as_written, &mut taken),
            How::OneRecord(sn) => encoder.copy_as_one_record(&source, 0..source.row_groups(), sn, &mut taken),
        }
    };
    // Bytes that differ from what was written are seldom: those that are copied are looked at meanwhile.
    let verified = async {
        match how {
            How::Codec => Ok(()),
            How::OneRecord(_) => verify(&from.store, &from_key, as_written.0, as_written.1).await,
        }
    };
    let (verified, written) = tokio::join!(verified, write_part(&room.disk.store, &key, options, fill));
    let verified = verified.map_err(|e| e.context(format_args!("part {}", meta.name)));
    let encoded = match verified.and(written) {
        Ok((Some(encoded), ())) if encoded.rows == meta.rows && encoded.row_groups == meta.row_groups => encoded,
        other => {
            // It may have landed all the same.
            write::give_up(core, Abandoned { disk: room.disk.id, path: key, bytes: 0 });
            let e = other.err().unwrap_or_else(|| Error::internal("I4: a recompression has other rows than its source"));
            return Err(e.context(format_args!("recompressing part {} to {}", meta.name, target.codec)));
        }
    };
    if let Err(e) = room.covers(core, encoded.bytes) {
        write::give_up(core, Abandoned { disk: room.disk.id, path: key, bytes: 0 });
        return Err(e.context(format_args!("recompressing part {} to {}", meta.name, target.codec)));
    }
    core.disks.placed(room.disk.id, encoded.bytes);
    running.bytes_written.fetch_add(encoded.bytes, Ordering::Relaxed);
    let (bytes, checksum) = (encoded.bytes, encoded.checksum);
    Ok(Replaced {
        sn_bytes: encoded.sn_bytes,
        placement: Placement { disk: room.disk.id, generation, codec: target.codec, bytes, checksum },
        duration_ms: started.elapsed().as_millis() as u64,
        bytes_read: meta.placement.bytes,
        source: meta,
        _guard: guard,
        _lease: room.lease,
    })
}
