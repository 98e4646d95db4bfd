//! EXPLAIN LIFECYCLE in words: for every part and rule what `decide` says and what would change it.

use super::{
    decide::{Action, Decision, Scene, State},
    view::{PartView, RuleKind, RuleView, StreamView, expired_rows, whole_due, worth_at},
    words::words,
};
use ebb_storage::{Timestamp, part::meta::PartMeta};

/// A row of EXPLAIN LIFECYCLE.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    pub part: String,
    /// Canonical SQL; empty where no rule concerns the part.
    pub rule: String,
    pub action: String,
    pub due_at: Option<Timestamp>,
    pub state: State,
    pub reason: String,
    pub blocked_by: String,
    pub since: Option<Timestamp>,
    pub unblock_with: String,
    pub next_attempt_at: Option<Timestamp>,
    pub rows: u64,
    pub bytes: u64,
}

/// One row for each rule, or one that says that there is none; and one without a rule where merging the part failed, which no rule
/// asked for, where it forgets which records its rows are of, or where it leaves its disk for lack of room.
pub fn explain(meta: &PartMeta, part: &PartView, scene: &Scene<'_>, leaves: bool) -> Vec<Row> {
    let (stream, now) = (scene.stream, scene.now);
    let rules = stream.rules.iter().enumerate().map(|(i, rule)| (Some(rule), of_rule(meta, part, scene, i, rule)));
    let mut all: Vec<(Option<&RuleView>, Decision)> = rules.collect();
    let without = |state, next_attempt_at| Decision { action: Action::None, state, due_at: None, next_attempt_at, detail: String::new() };
    match part.backing_off(now) {
        Some(at) if all.iter().all(|(_, d)| d.state != State::BackingOff) => all.push((None, without(State::BackingOff, Some(at)))),
        _ if all.is_empty() => all.push((None, without(State::NotDue, None))),
        _ => {}
    }
    all.extend(scene.forgetting(part).map(|d| (None, d)));
    if leaves {
        let queued = Decision { action: Action::Move, ..without(State::DueQueued, Some(now)) };
        all.push((None, queued));
    }
    all.into_iter().map(|(rule, decision)| row(meta, rule, decision, stream, part)).collect()
}

/// What one rule alone would do: `decide` over a view that knows only this rule's facts.
fn of_rule(meta: &PartMeta, part: &PartView, scene: &Scene<'_>, index: usize, rule: &RuleView) -> Decision {
    if part.aside {
        let detail = "rows of a branch age when they come to main".to_owned();
        return Decision { action: Action::None, state: State::NotDue, due_at: None, next_attempt_at: None, detail };
    }
    let facts = meta.facts_of(rule.fingerprint);
    if rule.changes() && facts.is_some() {
        return scene.of_rule(part, index);
    }
    let alive = meta.rows - expired_rows(meta).min(meta.rows);
    // By this rule, or by another that takes this one's due rows with it.
    let own_whole = facts.filter(|_| rule.deletes()).map_or(Timestamp::MAX, |f| whole_due(f, alive));
    let goes = scene.due(part.whole_due) && !scene.due(own_whole);
    let alone = PartView {
        first_due: facts.and_then(|f| f.earliest).unwrap_or(Timestamp::MAX),
        whole_due: own_whole,
        worth_at: facts.filter(|_| rule.deletes()).map_or(Timestamp::MAX, |f| worth_at(f, alive)),
        removes_at: facts.filter(|_| rule.deletes()).and_then(|f| f.earliest).unwrap_or(Timestamp::MAX),
        unmeasured: facts.is_none(),
        ..part.clone()
    };
    let mut decision = scene.removal(&alone);
    if decision.action == Action::Measure && decision.state == State::Running {
        // Whoever has the part is counting its rows, or will be followed by that.
        decision.state = State::Measuring;
    }
    if goes && decision.action != Action::None && decision.state != State::NotDue {
        decision.state = State::SupersededRule;
        decision.detail = "the part is dropped whole by another rule".to_owned();
        decision.next_attempt_at = None;
    }
    if rule.kind == RuleKind::Fold
        && decision.state == State::NotDue
        && let Some(until) = super::fold::joins(scene, part)
    {
        let state = if until.is_some() { State::WaitingTimeout } else { State::DueQueued };
        let next_attempt_at = until.or(Some(scene.now));
        return Decision { action: Action::GroupBy, state, due_at: decision.due_at, next_attempt_at, detail: String::new() };
    }
    match (&rule.kind, decision.action) {
        (RuleKind::Fold, Action::Delete) => Decision { action: Action::GroupBy, ..decision },
        (RuleKind::Reset, Action::Delete) => Decision { action: Action::Reset, ..decision },
        _ => decision,
    }
}

fn row(meta: &PartMeta, rule: Option<&RuleView>, d: Decision, stream: &StreamView, part: &PartView) -> Row {
    let facts = rule.and_then(|r| meta.facts_of(r.fingerprint));
    let rows = match d.action {
        Action::Drop | Action::Move | Action::Recompress | Action::Forget => meta.rows,
        _ => facts.map_or(0, |f| f.rows),
    };
    let bytes = (u128::from(meta.placement.bytes) * u128::from(rows) / u128::from(meta.rows.max(1))) as u64;
    let (reason, blocked_by, unblock_with) = words(&d, stream, part, rule);
    Row {
        part: meta.name.clone(),
        rule: rule.map(|r| r.text.clone()).unwrap_or_default(),
        action: d.action.to_string(),
        due_at: d.due_at,
        state: d.state,
        reason,
        blocked_by,
        since: match d.state {
            State::NotDue => None,
            State::BackingOff if rule.is_none() => part.failure.as_ref().map(|f| f.last_at),
            _ => d.due_at,
        },
        unblock_with,
        next_attempt_at: d.next_attempt_at,
        rows,
        bytes,
    }
}
