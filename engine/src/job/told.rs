//! Rows of the two logs, made from what a job did. They ride in the job's own commit.

use crate::{core::Core, stream::CompiledRule};
use ebb_storage::{
    Timestamp,
    manifest::{
        Edit, StreamState,
        edit::{LifecycleLogRow, PartEvent, PartLogRow},
    },
    part::PartMeta,
};

/// What part_log says beside the part itself.
#[derive(Debug, Clone, Default)]
pub struct Told {
    pub source_parts: Vec<String>,
    pub rows_read: u64,
    pub bytes_read: u64,
    pub duration_ms: u64,
    pub reason: String,
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
        error: String::new(),
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
