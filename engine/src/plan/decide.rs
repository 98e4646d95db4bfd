//! What holds of one part, and why. The order of reasons is the order in which they would have to be cleared away.

use super::{
    due::is_due,
    view::{PartView, PartitionView, StreamView},
};
use ebb_storage::Timestamp;
use std::fmt;

/// The closed set of reasons that concern what is built; names as EXPLAIN LIFECYCLE prints them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum State {
    NotDue,
    DueQueued,
    Running,
    Measuring,
    WaitingTimeout,
    MergesStopped,
    TtlMergesStopped,
    BackingOff,
    OnlyWholeParts,
}

/// What is to happen to the part by its rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Taken out whole, without being read.
    Drop,
    /// Rewritten without its due rows.
    Delete,
    /// Facts are missing.
    Measure,
    None,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    pub action: Action,
    pub state: State,
    /// When the action came or comes due.
    pub due_at: Option<Timestamp>,
    /// The next moment at which the answer may differ by itself.
    pub next_attempt_at: Option<Timestamp>,
}

impl Decision {
    /// Whether a job should take the part now.
    pub fn acts(&self) -> bool {
        self.state == State::DueQueued || (self.state == State::Measuring && self.action == Action::Measure)
    }
}

/// Says of one part what its rules do to it at `now`.
pub fn decide(part: &PartView, partition: &PartitionView, stream: &StreamView, now: Timestamp) -> Decision {
    let known = |t: Timestamp| (t != Timestamp::MAX).then_some(t);
    let answer =
        |action, state, due_at: Timestamp, next: Timestamp| Decision { action, state, due_at: known(due_at), next_attempt_at: known(next) };
    let whole = is_due(part.whole_due, now);
    let rows = is_due(part.first_due, now);
    let (action, due_at) = match (whole, rows, part.unmeasured) {
        (true, ..) => (Action::Drop, part.whole_due),
        (_, _, true) => (Action::Measure, Timestamp::MAX),
        (_, true, _) => (Action::Delete, part.first_due),
        _ => {
            let next = if stream.settings.only_drop_parts { part.whole_due } else { part.first_due };
            let action = if next == Timestamp::MAX {
                Action::None
            } else if next == part.whole_due {
                Action::Drop
            } else {
                Action::Delete
            };
            return answer(action, State::NotDue, next, next);
        }
    };
    let state = |state, next| answer(action, state, due_at, next);
    if part.busy {
        return state(State::Running, Timestamp::MAX);
    }
    if action != Action::Measure {
        if stream.stops.merges {
            return state(State::MergesStopped, Timestamp::MAX);
        }
        if stream.stops.ttl_merges {
            return state(State::TtlMergesStopped, Timestamp::MAX);
        }
    }
    if let Some(at) = part.backing_off(now) {
        return state(State::BackingOff, at);
    }
    match action {
        Action::Measure => state(State::Measuring, now),
        Action::Delete if stream.settings.only_drop_parts => state(State::OnlyWholeParts, part.whole_due),
        Action::Delete => match waits_until(partition, stream, now) {
            Some(at) => state(State::WaitingTimeout, at),
            None => state(State::DueQueued, now),
        },
        _ => state(State::DueQueued, now),
    }
}

/// Until when `merge_with_ttl_timeout` keeps the partition from being pruned; the first prune waits for nothing.
pub fn waits_until(partition: &PartitionView, stream: &StreamView, now: Timestamp) -> Option<Timestamp> {
    let at = partition.pruned_at?.saturating_add(stream.settings.prune_every);
    (!is_due(at, now)).then_some(at)
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotDue => "not_due",
            Self::DueQueued => "due_queued",
            Self::Running => "running",
            Self::Measuring => "measuring",
            Self::WaitingTimeout => "waiting_timeout",
            Self::MergesStopped => "merges_stopped",
            Self::TtlMergesStopped => "ttl_merges_stopped",
            Self::BackingOff => "backing_off",
            Self::OnlyWholeParts => "only_whole_parts",
        })
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Drop => "drop",
            Self::Delete => "delete",
            Self::Measure => "measure",
            Self::None => "none",
        })
    }
}
