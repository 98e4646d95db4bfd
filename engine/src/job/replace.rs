//! The same rows of a part in new bytes: another place, another codec. What moves and recompressions have in common.
//!
//! Guards: the manifest names the old bytes until the commit and the new ones after it (I1); the commit stands on the part's generation,
//! the rules and the storage policy (I13); nothing but the placement changes, so facts, deletions and markers stay (I10).

use crate::{
    core::{Abandoned, Core},
    disks::Lease,
    folded,
    job::told::{Taken, Told, part_row, rule_row},
    plan::Target,
    stream::Compiled,
    write,
};
use ebb_storage::{
    Error, Result, Timestamp,
    ids::{BranchId, Fingerprint, PartId, Sn},
    manifest::{
        Edit, Expect, Manifest, StreamState,
        edit::{PartEvent, Timer},
    },
    part::{PartMeta, meta::Placement},
    vacuum::InFlightGuard,
};
use std::sync::Arc;

/// New bytes of a part that no truth names yet: vacuum leaves them alone as long as this lives.
pub struct Replaced {
    pub source: Arc<PartMeta>,
    pub placement: Placement,
    pub duration_ms: u64,
    pub bytes_read: u64,
    /// Of the `_tp_sn` column.
    pub sn_bytes: u64,
    pub(super) _guard: InFlightGuard,
    pub(super) _lease: Option<Lease>,
}

impl Replaced {
    /// Gives the bytes up, so that vacuum deletes them.
    fn abandon(self, core: &Core) {
        let path = core.disks.key(self.source.stream, self.source.id, self.placement.generation);
        write::give_up(core, Abandoned { disk: self.placement.disk, path, bytes: self.placement.bytes });
    }
}

/// What a job's commit stands on beside the parts: the definition with its rules, and the storage policy.
pub fn standing(core: &Core, state: &StreamState) -> Result<Vec<Expect>> {
    let def = &state.def;
    let mut expect = vec![Expect::Definition { stream: def.id, schema: def.schema_version, policy: def.policy_version }];
    if !def.is_internal() {
        let policy = core.live.read().manifest.policy_of(def)?;
        expect.push(Expect::StoragePolicy { name: policy.name.clone(), version: policy.version });
    }
    Ok(expect)
}

/// That main's newest lineage is what the job saw, where parts have rows of other branches: which of them age is told by it.
pub fn same_sight<'a>(state: &StreamState, mut parts: impl Iterator<Item = &'a PartMeta>) -> Option<Expect> {
    let of_others = parts.any(|p| p.origins.iter().any(|o| o.branch != BranchId::MAIN));
    let from = state.lineages.get(&BranchId::MAIN)?.last()?.from;
    of_others.then_some(Expect::Lineage { stream: state.def.id, branch: BranchId::MAIN, from })
}

/// That no reader within its MAX LAG has yet to read rows of these parts, of which rules take some: one that was made since the plan was
/// is heard too.
///
/// # Errors
/// `Conflict`: the parts are planned anew.
pub fn read_by_all<'a>(
    core: &Core,
    (manifest, state): (&Manifest, &Arc<StreamState>),
    parts: impl IntoIterator<Item = &'a PartMeta>,
    now: Timestamp,
) -> Result<()> {
    let id = state.def.id;
    if manifest.readers.values().all(|r| r.stream != id) {
        return Ok(());
    }
    let whole = folded::whole(state, &core.live.read().tail(id));
    let waits: Vec<_> = manifest.readers.values().filter(|r| r.stream == id && r.protects(&whole, now)).collect();
    for part in parts {
        if let Some(r) = waits.iter().find(|r| part.max_sn() > r.sn) {
            return Err(Error::conflict(format!("I8: reader '{}' has not read all rows of part {}", r.name, part.name)));
        }
    }
    Ok(())
}

/// That the place of a plan still is one of the stream's policy.
///
/// # Errors
/// `Conflict`: the part is planned anew.
pub fn still_allowed(core: &Core, state: &StreamState, target: &Target) -> Result<()> {
    let manifest = core.live.read().manifest.clone();
    let policy = manifest.policy_of(&state.def)?;
    let name = manifest.disk_name(target.disk);
    match name.is_some_and(|n| policy.volume_of_disk(n).is_some()) {
        true => Ok(()),
        false => Err(Error::conflict(format!("disk {} is not in storage policy '{}' any more", target.disk, policy.name))),
    }
}

pub fn part_of(state: &StreamState, part: PartId) -> Result<Arc<PartMeta>> {
    state.parts.get(&part).cloned().ok_or_else(|| Error::conflict(format!("part {part} is gone")))
}

/// What is told of a replacement, and what its commit does beside.
pub struct About<'a> {
    pub event: PartEvent,
    pub target: &'a Target,
    pub reason: String,
    /// The job ends with this commit, and arms its partition's timer.
    pub arms: Option<Timer>,
    /// The record that all rows are of now.
    pub rounded: Option<Sn>,
}

/// Makes the new bytes the part's.
///
/// # Errors
/// `Conflict` where something changed that the plan stood on; the new bytes are given up then.
pub async fn commit(core: &Core, compiled: &Compiled, mut expect: Vec<Expect>, new: Replaced, about: About<'_>) -> Result<()> {
    let (stream, part) = (new.source.stream, new.source.id);
    expect.push(Expect::Part { stream, part, generation: new.source.placement.generation });
    let edits = |m: &Manifest, (_, time): (_, Timestamp)| {
        let state = m.stream(stream).ok_or_else(|| Error::not_found("the stream was dropped meanwhile"))?;
        let now = part_of(state, part)?;
        let placed = PartMeta { placement: new.placement.clone(), ..now.as_ref().clone() };
        let mut edits = vec![Edit::Place { stream, part, placement: new.placement.clone() }];
        edits.extend(about.rounded.map(|sn| Edit::Rounded { stream, part, sn, sn_bytes: new.sn_bytes }));
        let row = Told {
            source_parts: vec![now.name.clone()],
            rows_read: if about.event == PartEvent::RecompressPart { now.rows } else { 0 },
            bytes_read: new.bytes_read,
            duration_ms: new.duration_ms,
            reason: about.reason.clone(),
            ..Told::default()
        };
        edits.extend(part_row(core, state, time, about.event, &placed, row));
        for (by, action) in [(about.target.recompressed_by, "recompress"), (about.target.moved_by, "move")] {
            edits.extend(taken(compiled, state, time, by, action, (&now, &placed), new.duration_ms));
        }
        edits.extend(about.arms.map(|timer| Edit::TimerArmed { stream, partition: now.partition.to_string(), timer, at: time }));
        Ok(edits)
    };
    let committed = core.committer.commit_with(expect, edits, core.shows()).await;
    if let Err(e) = committed {
        if write::surely_failed(&e) {
            new.abandon(core);
        }
        return Err(e);
    }
    Ok(())
}

/// The lifecycle log's row for what a rule made of a part, before and after.
pub fn taken(
    compiled: &Compiled,
    state: &StreamState,
    time: Timestamp,
    by: Option<Fingerprint>,
    action: &'static str,
    (before, after): (&PartMeta, &PartMeta),
    duration_ms: u64,
) -> Option<Edit> {
    let by = by?;
    let rule = compiled.rules.iter().find(|r| r.rule.fingerprint == by)?;
    let reason = "every row is due".to_owned();
    let (rows_after, bytes_after) = (after.rows, after.placement.bytes);
    rule_row(state, time, Taken { rule, action, part: before, rows_after, bytes_after, duration_ms, reason })
}
