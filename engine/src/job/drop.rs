//! Parts out whole, without reading a byte of them: the facts prove that every row is due (I5).

use crate::{
    core::Core,
    folded, history,
    job::{
        replace,
        told::{Taken, Told, part_row, rule_row},
    },
    plan::{
        Plan,
        due::is_due,
        view::{expired_rows, whole_due},
    },
};
use ebb_storage::{
    Error, Result,
    manifest::{
        Edit, Expect, Manifest,
        edit::{PartEvent, RemoveReason},
    },
    rules::Action,
};

pub async fn run(core: &Core, plan: &Plan) -> Result<()> {
    let Plan::Drop { stream, parts, cutoff } = plan else { return Err(Error::internal("not a plan to drop")) };
    let (stream, cutoff) = (*stream, *cutoff);
    let state = core.stream(stream)?;
    let compiled = core.compiled(&state.def)?;
    let mut expect = vec![Expect::Policy { stream, version: state.def.policy_version }];
    for part in parts {
        let meta = state.parts.get(part).ok_or_else(|| Error::conflict(format!("part {part} is gone")))?;
        expect.push(Expect::Part { stream, part: *part, generation: meta.placement.generation });
    }
    let edits = |m: &Manifest, (_, time)| {
        let mut edits = Vec::with_capacity(parts.len() * 3);
        let state = m.stream(stream).ok_or_else(|| Error::not_found("the stream was dropped meanwhile"))?;
        let whole = folded::whole(state, &core.live.read().tail(stream));
        let needs = (!whole.refs.is_empty()).then(|| history::needs_of(core, &whole));
        for part in parts {
            let meta = state.parts.get(part).ok_or_else(|| Error::conflict(format!("part {part} is gone")))?;
            if let Some(pin) = needs.as_ref().and_then(|n| n.pinned_by(meta)) {
                return Err(Error::conflict(format!("I8: '{}' needs rows of part {}", pin.name, meta.name)));
            }
            replace::read_by_all(core, (m, state), [meta.as_ref()], time)?;
            let alive = meta.rows - expired_rows(meta).min(meta.rows);
            let proves = |f: &ebb_storage::part::meta::RuleFacts| is_due(whole_due(f, alive), cutoff);
            let mut deletes = compiled.rules.iter().filter(|r| matches!(r.rule.action, Action::Delete { .. }));
            let rule = deletes.find(|r| meta.facts_of(r.rule.fingerprint).is_some_and(proves));
            let rule = rule.ok_or_else(|| Error::conflict(format!("I5: not every row of part {} is due", meta.name)))?;
            edits.push(Edit::RemovePart { stream, part: *part, why: RemoveReason::Rule });
            let told = Told { reason: format!("every row is due by {}", rule.rule), ..Told::default() };
            edits.extend(part_row(core, state, time, PartEvent::DropPart, meta, told));
            let reason = "every row is due".to_owned();
            let taken = Taken { rule, action: "drop", part: meta, rows_after: 0, bytes_after: 0, duration_ms: 0, reason };
            edits.extend(rule_row(state, time, taken));
        }
        Ok(edits)
    };
    core.committer.commit_with(expect, edits, core.shows()).await?;
    Ok(())
}
