//! EXPLAIN LIFECYCLE in words: for every part and rule what `decide` says and what would change it.

use super::{
    decide::{Action, Decision, State, decide},
    due::is_due,
    view::{PartView, PartitionView, RuleView, StreamView, expired_rows, whole_due},
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
/// asked for.
pub fn explain(meta: &PartMeta, part: &PartView, partition: &PartitionView, stream: &StreamView, now: Timestamp) -> Vec<Row> {
    let rules = stream.rules.iter().map(|rule| (Some(rule), of_rule(meta, part, partition, stream, rule, now)));
    let mut all: Vec<(Option<&RuleView>, Decision)> = rules.collect();
    let without = |state, next_attempt_at| Decision { action: Action::None, state, due_at: None, next_attempt_at };
    match part.backing_off(now) {
        Some(at) if all.iter().all(|(_, d)| d.state != State::BackingOff) => all.push((None, without(State::BackingOff, Some(at)))),
        _ if all.is_empty() => all.push((None, without(State::NotDue, None))),
        _ => {}
    }
    all.into_iter().map(|(rule, decision)| row(meta, rule, decision, stream, part)).collect()
}

/// What one rule alone would do: `decide` over a view that knows only this rule's facts.
fn of_rule(meta: &PartMeta, part: &PartView, partition: &PartitionView, stream: &StreamView, rule: &RuleView, now: Timestamp) -> Decision {
    let facts = meta.facts_of(rule.fingerprint);
    let alive = meta.rows - expired_rows(meta).min(meta.rows);
    // A part that goes whole by another rule takes this one's due rows with it.
    let concerned = facts.is_none_or(|f| f.earliest.is_some_and(|at| is_due(at, now)));
    let gone = concerned && is_due(part.whole_due, now);
    let alone = PartView {
        first_due: facts.and_then(|f| f.earliest).unwrap_or(Timestamp::MAX),
        whole_due: if gone { part.whole_due } else { facts.map_or(Timestamp::MAX, |f| whole_due(f, alive)) },
        unmeasured: facts.is_none(),
        ..part.clone()
    };
    decide(&alone, partition, stream, now)
}

fn row(meta: &PartMeta, rule: Option<&RuleView>, d: Decision, stream: &StreamView, part: &PartView) -> Row {
    let facts = rule.and_then(|r| meta.facts_of(r.fingerprint));
    let rows = match d.action {
        Action::Drop => meta.rows,
        _ => facts.map_or(0, |f| f.rows),
    };
    let bytes = (u128::from(meta.placement.bytes) * u128::from(rows) / u128::from(meta.rows.max(1))) as u64;
    let (reason, blocked_by, unblock_with) = words(&d, stream, part, rule.is_some());
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

/// Reason, what blocks, what would unblock.
fn words(d: &Decision, stream: &StreamView, part: &PartView, ruled: bool) -> (String, String, String) {
    let say = |reason: &str, by: &str, with: &str| (reason.to_owned(), by.to_owned(), with.to_owned());
    match d.state {
        State::NotDue if !ruled => say("no rule concerns this part", "", ""),
        State::NotDue => match d.due_at {
            Some(at) => (format!("due at {at}"), String::new(), String::new()),
            None => say("no row of this part will come due by this rule", "", ""),
        },
        State::DueQueued => match d.action {
            Action::Drop => say("every row is due: the part is dropped whole at the next round", "", ""),
            _ => say("due rows are removed at the next round", "", ""),
        },
        State::Running => say("a job has this part", "job", ""),
        State::Measuring => say("the rule is new to this part: due rows are being counted", "", ""),
        State::WaitingTimeout => {
            let seconds = stream.settings.prune_every.as_secs();
            let reason = format!("the partition was pruned less than {seconds} s ago");
            (reason, "merge_with_ttl_timeout".to_owned(), "OPTIMIZE STREAM, or a smaller merge_with_ttl_timeout".to_owned())
        }
        State::MergesStopped => say("merges are stopped", "SYSTEM STOP MERGES", "SYSTEM START MERGES"),
        State::TtlMergesStopped => say("merges that rules ask for are stopped", "SYSTEM STOP TTL MERGES", "SYSTEM START TTL MERGES"),
        State::BackingOff => {
            let (count, error) = part.failure.as_ref().map_or((0, ""), |f| (f.count, f.error.as_str()));
            (
                format!("{count} attempts failed, the last with: {error}"),
                "error".to_owned(),
                "clear the cause; it is tried again by itself".to_owned(),
            )
        }
        State::OnlyWholeParts => say(
            "some rows are due, and rows go only with their whole part",
            "ttl_only_drop_parts",
            "OPTIMIZE STREAM, or ttl_only_drop_parts = 0",
        ),
    }
}
