//! Sns that nothing can tell apart, in a part that no merge will take any more: `_tp_sn` is written as one value, the other columns are
//! copied as the bytes they are.
//!
//! Guards I10: only where every row of the part may say that it is of one record; that is looked at again before anything is read. The
//! part stays, in a new generation, and says then that it is of that record, so it is never asked again.

use crate::{
    core::Core,
    job::{
        recompress::{self, How},
        registry::JobGuard,
        replace::{self, About},
    },
    plan::Plan,
};
use ebb_storage::{Error, Result, manifest::edit::PartEvent};
use std::sync::Arc;

pub async fn run(core: &Arc<Core>, plan: &Plan, guard: &JobGuard) -> Result<()> {
    let Plan::Forget { stream, part, target } = plan else { return Err(Error::internal("not a plan to forget")) };
    let state = core.stream(*stream)?;
    let compiled = core.compiled(&state.def)?;
    let meta = replace::part_of(&state, *part)?;
    replace::still_allowed(core, &state, target)?;
    let expect = replace::standing(core, &state)?;
    let Some(sn) = core.judge(&state).rounding().for_all(&meta) else {
        return Err(Error::conflict(format!("records of part {} are told apart", meta.name)));
    };
    guard.running.writes(meta.name.clone());
    let new = recompress::recoded(core, &compiled, meta, target, How::OneRecord(sn), &guard.running).await?;
    let reason = format!("nothing tells its records apart any more: all rows are of sn {sn}");
    let about = About { event: PartEvent::RecompressPart, target, reason, arms: None, rounded: Some(sn) };
    replace::commit(core, &compiled, expect, new, about).await
}
