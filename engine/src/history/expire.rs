//! Forgetting: by CALL expire_snapshots and by itself.
//!
//! What is due is `ebb_storage::refs::expiry`'s to say; here it is committed, and parts that nothing needs any more are taken out.
//! A dry run applies the same edits to a copy of the manifest and counts. Guards I8.

use crate::{
    Engine,
    core::Core,
    ddl::not_system,
    folded,
    ingest::flush,
    live::Live,
    plan::Plan,
    schedule::{statements::carry_out, views},
    settings::StreamSettings,
};
use ebb_storage::{
    Error, ErrorKind, Result, Timestamp,
    ids::{PartId, Sn, StreamId},
    lineage::{SnRange, SnSet},
    manifest::{Commit, Edit, Manifest, StreamState},
    refs::{self, Expiry, Needs, Pinning, Reader},
};
use std::sync::Arc;

/// What a call says for itself, instead of the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Overrides {
    pub older_than: Option<Timestamp>,
    pub retain_last: Option<u64>,
    /// Say what would be done and do nothing.
    pub dry_run: bool,
}

/// The row that expire_snapshots answers with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Expired {
    pub snapshots_removed: u64,
    pub refs_removed: u64,
    /// Rows in parts that stay, which the next merges leave out.
    pub rows_reclaimable: u64,
    pub parts_removed: u64,
    pub bytes_freed: u64,
}

impl Engine {
    /// # Errors
    /// `Invalid` for a count of nothing, `NotFound` without the stream.
    pub async fn expire_snapshots(&self, stream: StreamId, overrides: Overrides) -> Result<Expired> {
        let core = &self.core;
        not_system(&core.stream(stream)?.def.database)?;
        if overrides.retain_last == Some(0) {
            return Err(Error::invalid("retain_last is at least 1: the head of a branch is always kept"));
        }
        if overrides.dry_run {
            // As the call itself does: what is still in the log would not be counted.
            if let Err(e) = flush::flush(core, stream).await
                && e.kind() != ErrorKind::Full
            {
                return Err(e);
            }
            return tried(core, stream, &overrides);
        }
        let expired = {
            let one = core.change_lock(stream);
            let _one = one.lock().await;
            // A full disk keeps nobody from making room: what nobody will be able to read needs none.
            match flush::flush(core, stream).await {
                Err(e) if e.kind() == ErrorKind::Full => {
                    let (.., all) = everything_due(core, stream, &overrides)?;
                    match flush::flush_but(core, stream, &all.forget).await {
                        Err(e) if e.kind() != ErrorKind::Full => return Err(e),
                        _ => {}
                    }
                }
                flushed => _ = flushed?,
            }
            let tried = tried(core, stream, &overrides)?;
            expire(core, stream, &overrides).await?;
            tried
        };
        release(core, stream).await?;
        Ok(expired)
    }
}

/// Does what is due by the stream's own policy; whether anything was, and when the next is.
pub async fn run_due(core: &Arc<Core>, stream: StreamId) -> Result<(bool, Option<Timestamp>)> {
    let one = core.change_lock(stream);
    let _one = one.lock().await;
    run_alone(core, stream).await
}

/// [`run_due`] where no statement changes the stream's history, which may take as long as a scan of all its rows; `None` while one does.
pub async fn run_due_unless_changing(core: &Arc<Core>, stream: StreamId) -> Result<Option<(bool, Option<Timestamp>)>> {
    let one = core.change_lock(stream);
    let Ok(_one) = one.try_lock() else { return Ok(None) };
    run_alone(core, stream).await.map(Some)
}

async fn run_alone(core: &Arc<Core>, stream: StreamId) -> Result<(bool, Option<Timestamp>)> {
    match expire(core, stream, &Overrides::default()).await {
        Ok(due) => Ok((!due.is_empty(), due.next_at)),
        // Whoever looks at all streams is not stopped by one that was dropped meanwhile.
        Err(e) if e.kind() == ErrorKind::NotFound && core.stream(stream).is_err() => Ok((false, None)),
        Err(e) => Err(e),
    }
}

/// What is needed of a stream's parts by all that can be read now, the tail's records included.
pub fn needs_of(core: &Core, state: &StreamState) -> Needs {
    Needs::of(state, &core.pins_of(state))
}

/// A stream's state with what is in its tail.
pub fn whole(live: &Live, stream: StreamId) -> Option<Arc<StreamState>> {
    live.manifest.stream(stream).map(|s| folded::whole(s, &live.tail(stream)))
}

/// What is due of the history as it stands, tail included.
fn everything_due(core: &Core, stream: StreamId, overrides: &Overrides) -> Result<(Arc<Manifest>, Arc<StreamState>, Expiry)> {
    let live = core.live.read();
    let manifest = live.manifest.clone();
    let state = whole(&live, stream).ok_or_else(|| core.is_gone(stream))?;
    let readers: Vec<&Reader> = manifest.readers.values().filter(|r| r.stream == stream).map(|r| r.as_ref()).collect();
    let now = core.now();
    let leased: Vec<Sn> = core.leases.cuts(stream, now).iter().map(|c| c.sn).collect();
    let keep = StreamSettings::of(&state.def, &core.server()).keep;
    let by = refs::Overrides { older_than: overrides.older_than, retain_last: overrides.retain_last };
    let mut due = refs::expiry(&state, &keep, &by, &Pinning { readers: &readers, leased: &leased }, now);
    due.next_at = due.next_at.into_iter().chain(core.leases.first_end(stream)).min();
    Ok((manifest, state, due))
}

/// What can be forgotten of it: what is in parts.
fn due(core: &Core, stream: StreamId, overrides: &Overrides) -> Result<(Arc<Manifest>, Arc<StreamState>, Expiry)> {
    let (manifest, state, mut due) = everything_due(core, stream, overrides)?;
    let applied = manifest.stream(stream).map_or(Sn(0), |s| s.applied_sn);
    let in_parts = SnSet::new(due.forget.iter().copied()).intersection(&SnSet::new([SnRange { after: Sn(0), to: applied }]));
    due.snapshots = in_parts.count();
    due.forget = in_parts.ranges().to_vec();
    Ok((manifest, state, due))
}

fn edits_of(manifest: &Manifest, stream: StreamId, due: &Expiry, time: Timestamp) -> Vec<Edit> {
    let mut edits: Vec<Edit> = due.drop_refs.iter().map(|name| Edit::DropRef { stream, name: name.clone() }).collect();
    if !due.forget.is_empty() {
        edits.push(Edit::Forget { stream, sns: due.forget.clone() });
    }
    let readers = due.cut_off.iter().filter_map(|name| manifest.readers.get(name));
    edits.extend(readers.map(|r| Edit::SetReader(Box::new(Reader { cut_off_at: Some(time), ..r.as_ref().clone() }))));
    edits
}

async fn expire(core: &Core, stream: StreamId, overrides: &Overrides) -> Result<Expiry> {
    let (_, _, due) = due(core, stream, overrides)?;
    if due.is_empty() {
        return Ok(due);
    }
    let edits = |m: &Manifest, (_, time): (_, Timestamp)| Ok(edits_of(m, stream, &due, time));
    core.committer.commit_with(Vec::new(), edits, core.shows()).await?;
    // A reader that was cut off keeps rules from nothing any more.
    core.jobs.wake();
    Ok(due)
}

/// What it would come to.
fn tried(core: &Core, stream: StreamId, overrides: &Overrides) -> Result<Expired> {
    let (manifest, before, due) = due(core, stream, overrides)?;
    let (no, time) = (manifest.no.next(), manifest.time);
    let edits = edits_of(&manifest, stream, &due, time);
    let after = manifest.apply(&Commit { no, epoch: manifest.epoch, nonce: String::new(), time, edits })?;
    let committed = after.stream(stream).ok_or_else(|| core.is_gone(stream))?;
    let count = |s: &StreamState| s.readable.count();
    let listed = manifest.stream(stream).map_or(0, |s| count(s));
    // With the tail's records, as readers and merges see it.
    let after = folded::whole(committed, &core.live.read().tail(stream));
    let needs = needs_of(core, &after);
    let mut expired = Expired {
        snapshots_removed: listed.saturating_sub(count(committed)),
        refs_removed: due.drop_refs.len() as u64,
        ..Expired::default()
    };
    for part in before.parts.values() {
        match needs.part_is_dead(part) {
            true => {
                expired.parts_removed += 1;
                expired.bytes_freed += part.placement.bytes;
            }
            false => expired.rows_reclaimable += needs.unneeded_rows(part),
        }
    }
    Ok(expired)
}

/// Takes out the parts that nothing needs.
async fn release(core: &Arc<Core>, stream: StreamId) -> Result<()> {
    let state = core.stream(stream)?;
    let view = views::stream_view(core, &state)?;
    let dead = view.partitions.iter().flat_map(|p| &p.parts).filter(|p| p.unneeded && !p.busy).map(|p| p.id);
    let parts: Vec<PartId> = dead.collect();
    if !parts.is_empty() {
        _ = carry_out(core, Plan::Release { stream, parts }, &state).await?;
    }
    Ok(())
}
