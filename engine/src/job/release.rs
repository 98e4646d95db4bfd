//! Parts out that nothing needs: every row is of a past that cannot be read, or removed for all who can read it. Without reading a byte.
//!
//! Guards I8: what is needed is asked again of the manifest that the commit changes, the tail's records included.

use crate::{
    core::Core,
    folded, history,
    job::told::{Told, part_row},
    plan::Plan,
};
use ebb_storage::{
    Error, Result,
    manifest::{
        Edit, Expect, Manifest,
        edit::{PartEvent, RemoveReason},
    },
};

pub async fn run(core: &Core, plan: &Plan) -> Result<()> {
    let Plan::Release { stream, parts } = plan else { return Err(Error::internal("not a plan to release")) };
    let stream = *stream;
    let state = core.stream(stream)?;
    let mut expect = Vec::with_capacity(parts.len());
    for part in parts {
        let meta = state.parts.get(part).ok_or_else(|| Error::conflict(format!("part {part} is gone")))?;
        expect.push(Expect::Part { stream, part: *part, generation: meta.placement.generation });
    }
    let edits = |m: &Manifest, (_, time)| {
        let state = m.stream(stream).ok_or_else(|| Error::not_found("the stream was dropped meanwhile"))?;
        let whole = folded::whole(state, &core.live.read().tail(stream));
        let needs = history::needs_of(core, &whole);
        let mut edits = Vec::with_capacity(parts.len() * 2);
        for part in parts {
            let meta = whole.parts.get(part).ok_or_else(|| Error::conflict(format!("part {part} is gone")))?;
            if !needs.part_is_dead(meta) {
                return Err(Error::conflict(format!("I8: something needs rows of part {}", meta.name)));
            }
            edits.push(Edit::RemovePart { stream, part: *part, why: RemoveReason::History });
            let told = Told { reason: "nothing that can be read needs it".to_owned(), ..Told::default() };
            edits.extend(part_row(core, state, time, PartEvent::DropPart, meta, told));
        }
        Ok(edits)
    };
    core.committer.commit_with(expect, edits, core.shows()).await?;
    Ok(())
}
