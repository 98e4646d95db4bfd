//! A part to another disk: copy, verify, commit, release.
//!
//! Guards: until the commit the old place is the only one, after it the new one is (I1); the old bytes go when the last reader has left
//! (I8); what a crash leaves beside, an orphan or a file that was not whole yet, the next sweep of that disk removes (I9); of an upload that was
//! cut off only the server knows.

use crate::{
    core::{Abandoned, Core},
    job::{
        recompress::{self, How},
        registry::{JobGuard, Running},
        replace::{self, About, Replaced},
    },
    place,
    plan::{MoveWhy, Plan},
    write,
};
use ebb_storage::{
    Error, Result,
    clock::Stopwatch,
    ids::DiskId,
    manifest::edit::PartEvent,
    part::{PartMeta, copy::copy, meta::Placement},
};
use std::sync::{Arc, atomic::Ordering};

pub async fn run(core: &Arc<Core>, plan: &Plan, guard: &JobGuard) -> Result<()> {
    let Plan::Move { stream, part, target, why } = plan else { return Err(Error::internal("not a plan to move")) };
    let state = core.stream(*stream)?;
    let compiled = core.compiled(&state.def)?;
    let meta = replace::part_of(&state, *part)?;
    replace::still_allowed(core, &state, target)?;
    if meta.placement.disk == target.disk {
        return Err(Error::conflict(format!("part {} is on disk {} already", meta.name, target.disk)));
    }
    let expect = replace::standing(core, &state)?;
    guard.running.writes(meta.name.clone());
    let from = core.disks.disk(meta.placement.disk)?.name;
    let new = match target.codec == meta.placement.codec {
        true => bytes_at(core, &meta, target.disk, &guard.running).await?,
        false => recompress::recoded(core, &compiled, meta, target, How::Codec, &guard.running).await?,
    };
    let reason = match why {
        MoveWhy::Rule => format!("every row is due, from disk '{from}'"),
        MoveWhy::Pressure => format!("too little of disk '{from}' was free"),
        MoveWhy::Statement => format!("ALTER STREAM ... MOVE, from disk '{from}'"),
    };
    let recoded = new.placement.codec != new.source.placement.codec;
    let event = if recoded { PartEvent::RecompressPart } else { PartEvent::MovePart };
    replace::commit(core, &compiled, expect, new, About { event, target, reason, arms: None, rounded: None }).await
}

/// The part's bytes as they are, on another disk.
async fn bytes_at(core: &Core, meta: &Arc<PartMeta>, to: DiskId, running: &Running) -> Result<Replaced> {
    let started = Stopwatch::start();
    let source = core.disks.disk(meta.placement.disk)?;
    let Placement { bytes, checksum, codec, .. } = meta.placement;
    let room = place::room_on(core, to, bytes)?;
    let generation = core.next_generation()?;
    let guard = core.inflight.register(meta.stream, meta.id);
    let (from, key) = (core.disks.key(meta.stream, meta.id, meta.placement.generation), core.disks.key(meta.stream, meta.id, generation));
    running.bytes_read.fetch_add(bytes, Ordering::Relaxed);
    if let Err(e) = copy((&source.store, &from), (&room.disk.store, &key, room.piece_bytes()), bytes, checksum).await {
        // It may have landed all the same.
        write::give_up(core, Abandoned { disk: to, path: key, bytes: 0 });
        return Err(e.context(format_args!("moving part {} to disk '{}'", meta.name, room.disk.name)));
    }
    core.disks.placed(to, bytes);
    running.rows_read.fetch_add(meta.rows, Ordering::Relaxed);
    running.rows_written.fetch_add(meta.rows, Ordering::Relaxed);
    running.bytes_written.fetch_add(bytes, Ordering::Relaxed);
    Ok(Replaced {
        sn_bytes: meta.sn_bytes,
        source: meta.clone(),
        placement: Placement { disk: to, generation, codec, bytes, checksum },
        duration_ms: started.elapsed().as_millis() as u64,
        bytes_read: bytes,
        _guard: guard,
        _lease: room.lease,
    })
}
