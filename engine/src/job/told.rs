//! Rows of the two logs, made from what a job did. They ride in the job's own commit; only a failure, which has
//! none, gets one.

use crate::{
    core::Core,
    plan::{MoveWhy, Plan},
    stream::CompiledRule,
};
use ebb_storage::{
    Error, ErrorKind, Timestamp,
    ids::PartId,
    manifest::{
        Edit, Manifest, StreamState,
        edit::{LifecycleLogRow, PartEvent, PartLogRow},
    },
    part::PartMeta,
};

/// Why parts became one of which a GROUP BY rule has rows.
pub const FOLDED_TOGETHER: &str = "due rows of one key become one";

/// What part_log says beside the part itself.
#[derive(Debug, Clone, Default)]
pub struct Told {
    pub source_parts: Vec<String>,
    pub rows_read: u64,
    pub bytes_read: u64,
    pub duration_ms: u64,
    pub reason: String,
    /// Empty where it was done.
    pub error: String,
}

/// Says in part_log that a job failed and why, by a commit of its own: there is no other. Where that fails too, as on a full disk, the
/// status and the parts' own state still tell.
pub async fn failure(core: &Core, plan: &Plan, error: &Error) {
    failure_of(core, plan, plan.parts(), error).await;
}

/// [`failure`] of some of the plan's parts.
pub async fn failure_of(core: &Core, plan: &Plan, parts: &[PartId], error: &Error) {
    let event = match plan {
        Plan::Drop { .. } | Plan::Release { .. } => PartEvent::DropPart,
        Plan::Prune { .. } | Plan::Expire { .. } => PartEvent::PrunePart,
        Plan::Merge { .. } | Plan::Fold { .. } => PartEvent::MergeParts,
        Plan::Recompress { .. } | Plan::Forget { .. } => PartEvent::RecompressPart,
        Plan::Move { .. } => PartEvent::MovePart,
        // Nothing of the part would have changed.
        Plan::Measure { .. } => return,
    };
    let reason = match plan {
        Plan::Merge { reason, .. } => reason.clone(),
        Plan::Fold { .. } => FOLDED_TOGETHER.to_owned(),
        Plan::Move { why: MoveWhy::Pressure, .. } => "too little of its disk is free".to_owned(),
        Plan::Move { why: MoveWhy::Statement, .. } => "ALTER STREAM ... MOVE".to_owned(),
        Plan::Move { .. } | Plan::Recompress { .. } => "every row is due".to_owned(),
        Plan::Forget { .. } => "nothing tells its records apart any more".to_owned(),
        _ => "rows are due".to_owned(),
    };
    let edits = |m: &Manifest, (_, time): (_, Timestamp)| {
        let state = m.stream(plan.stream()).ok_or_else(|| Error::not_found("the stream was dropped meanwhile"))?;
        let metas: Vec<_> = parts.iter().filter_map(|p| state.parts.get(p)).collect();
        let nothing = || Error::conflict("nothing to tell");
        let first = metas.first().ok_or_else(nothing)?;
        let told =
            Told { source_parts: metas.iter().map(|m| m.name.clone()).collect(), reason, error: error.to_string(), ..Told::default() };
        Ok(vec![part_row(core, state, time, event, first, told).ok_or_else(nothing)?])
    };
    if let Err(e) = core.committer.commit_with(Vec::new(), edits, core.shows()).await
        && e.kind() == ErrorKind::Fenced
    {
        core.note(&e);
    }
}

/// `None` for the streams that keep the logs.
pub fn part_row(core: &Core, state: &StreamState, time: Timestamp, event: PartEvent, part: &PartMeta, told: Told) -> Option<Edit> {
    let row = || PartLogRow {
        time,
        event,
        database: state.def.database.clone(),
        stream: state.def.name.clone(),
        part: part.name.clone(),
        source_parts: told.source_parts,
        partition: part.partition.to_string(),
        disk: core.disks.disk_or_away(part.placement.disk).name.to_string(),
        rows: part.rows,
        bytes: part.placement.bytes,
        rows_read: told.rows_read,
        bytes_read: told.bytes_read,
        duration_ms: told.duration_ms,
        reason: told.reason,
        error: told.error,
    };
    (!state.def.is_internal()).then(|| Edit::PartLog(Box::new(row())))
}

/// What a rule took from a part.
pub struct Taken<'a> {
    pub rule: &'a CompiledRule,
    pub action: &'static str,
    pub part: &'a PartMeta,
    pub rows_after: u64,
    pub bytes_after: u64,
    pub duration_ms: u64,
    pub reason: String,
}

/// `None` for the streams that keep the logs.
pub fn rule_row(state: &StreamState, time: Timestamp, taken: Taken<'_>) -> Option<Edit> {
    if state.def.is_internal() {
        return None;
    }
    let Taken { rule, action, part, rows_after, bytes_after, duration_ms, reason } = taken;
    let mut columns = rule.when.columns().to_vec();
    columns.extend(rule.only.iter().flat_map(|e| e.columns().iter().copied()));
    columns.sort_unstable();
    columns.dedup();
    Some(Edit::LifecycleLog(Box::new(LifecycleLogRow {
        time,
        database: state.def.database.clone(),
        stream: state.def.name.clone(),
        rule: rule.rule.to_string(),
        fingerprint: rule.rule.fingerprint,
        action: action.to_owned(),
        part: part.name.clone(),
        rows_before: part.rows,
        rows_after,
        bytes_before: part.placement.bytes,
        bytes_after,
        reason,
        duration_ms,
        error: String::new(),
        columns,
    })))
}
