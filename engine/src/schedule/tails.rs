//! When a stream's tail is to be brought into parts: by its size, its age, and before its first row comes due by a rule.
//!
//! Flushes nothing. What is remembered of a tail's rows is what the rules of one definition say: under others they are asked anew.

use crate::{
    core::Core,
    facts::facts_of,
    stream::{Compiled, CompiledRule},
    upgrade::upgrade,
};
use ebb_storage::{
    Result, Timestamp,
    ids::{Sn, StreamId},
    manifest::StreamState,
    rules::Action,
};
use std::sync::Arc;

/// When the stream's tail is to be flushed; `None` without one.
pub fn flush_at(core: &Core, stream: StreamId) -> Result<Option<Timestamp>> {
    let live = core.live.read();
    let (Some(state), tail) = (live.manifest.stream(stream), live.tail(stream)) else { return Ok(None) };
    let Some(oldest) = tail.oldest_at() else { return Ok(None) };
    let settings = core.compiled(&state.def)?.settings.clone();
    if tail.rows() >= settings.flush_rows || tail.bytes() >= settings.flush_bytes {
        return Ok(Some(Timestamp::MIN));
    }
    let by_age = oldest.saturating_add(settings.flush_after);
    Ok(Some(first_due(core, state, stream).map_or(by_age, |due| due.min(by_age))))
}

/// What is known of when rows of a tail come due.
pub struct TailDue {
    /// Whose rules were asked.
    by: Arc<Compiled>,
    /// Of rows of records up to there.
    upto: Sn,
    /// `MAX`: never.
    due: Timestamp,
}

impl TailDue {
    fn none(by: &Arc<Compiled>, state: &StreamState) -> Self {
        Self { by: by.clone(), upto: state.applied_sn, due: Timestamp::MAX }
    }
}

/// When the first row of the tail comes due by a rule that removes or changes it. What moves or is recompressed may wait in the tail.
fn first_due(core: &Core, state: &StreamState, stream: StreamId) -> Option<Timestamp> {
    let compiled = core.compiled(&state.def).ok()?;
    let removes = |r: &&CompiledRule| !matches!(r.rule.action, Action::Move(_) | Action::Recompress(_));
    if compiled.rules.iter().filter(removes).count() == 0 {
        return None;
    }
    let tail = core.live.read().tail(stream);
    let mut known = core.tail_due.lock();
    let known = known.entry(stream).or_insert_with(|| TailDue::none(&compiled, state));
    if !Arc::ptr_eq(&known.by, &compiled) || known.upto > tail.head() || known.upto <= state.applied_sn {
        *known = TailDue::none(&compiled, state);
    }
    let TailDue { upto, due, .. } = known;
    for chunk in tail.chunks().iter().filter(|c| c.sn > *upto) {
        let rows = match chunk.schema_version == compiled.def.schema_version {
            true => chunk.rows.clone(),
            false => upgrade(&chunk.rows, &compiled.def, core.options.compiler.as_ref()).ok()?.0,
        };
        let facts = facts_of(&compiled.rules, &rows);
        let earliest = compiled.rules.iter().zip(facts).filter(|(r, _)| removes(r)).filter_map(|(_, f)| f.earliest).min();
        *due = (*due).min(earliest.unwrap_or(Timestamp::MAX));
    }
    *upto = tail.head();
    (*due != Timestamp::MAX).then_some(*due)
}
