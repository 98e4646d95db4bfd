//! Where an insert waits for admission: asks the pure rule about the partitions it touches, and waits or refuses as it says.

use crate::{
    core::Core,
    ingest::{
        admission::{self, Admission},
        flush,
    },
    limits,
};
use ebb_storage::{Error, Result, clock, ids::StreamId};
use std::sync::Arc;

/// Returns when an insert into these partitions may go on.
///
/// # Errors
/// `Full` where a partition has too many parts.
pub async fn admit(core: &Core, stream: StreamId, partitions: &[Arc<str>]) -> Result<()> {
    let state = core.stream(stream)?;
    let settings = core.compiled(&state.def)?.settings.clone();
    let parts_of = |p: &Arc<str>| state.partitions.get(p).map_or(0, |s| s.parts.size());
    let fullest = partitions.iter().map(|p| (p, parts_of(p))).max_by_key(|(_, n)| *n);
    if let Some((partition, parts)) = fullest {
        match admission::admit(parts, partition, &state.def.full_name(), &settings) {
            Admission::Accept => {}
            Admission::Delay(by) => clock::pause(by).await,
            Admission::Refuse(why) => return Err(Error::full(why)),
        }
    }
    let tail = core.live.read().tail(stream);
    let full = |have: u64, due: u64| have > due.saturating_mul(limits::TAIL_FULL_TIMES);
    if full(tail.rows(), settings.flush_rows) || full(tail.bytes(), settings.flush_bytes) {
        flush::flush(core, stream).await?;
    }
    Ok(())
}
