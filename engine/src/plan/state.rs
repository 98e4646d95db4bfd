//! Words for what is to happen to a part and why it has not happened yet: closed sets, named as EXPLAIN LIFECYCLE prints them.

use std::fmt;

/// Why an action stands where it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum State {
    NotDue,
    DueQueued,
    Running,
    Measuring,
    WaitingTimeout,
    HeldLonePart,
    WaitingPartner,
    MergesStopped,
    TtlMergesStopped,
    MovesStopped,
    DestinationFull,
    DiskThreshold,
    DiskUnavailable,
    PoolBusy,
    BackingOff,
    NoMergeVolume,
    OnlyWholeParts,
    SavingTooSmall,
    PinnedByTag,
    PinnedByBranch,
    PinnedByReader,
    SupersededRule,
    RuleInert,
}

/// What is to happen to a part by a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Taken out whole, without being read.
    Drop,
    /// Rewritten without its due rows.
    Delete,
    /// Rewritten with due rows of one key as one.
    GroupBy,
    /// Rewritten with defaults for due values.
    Reset,
    Recompress,
    Move,
    /// `_tp_sn` is written as one value.
    Forget,
    /// Facts are missing.
    Measure,
    None,
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotDue => "not_due",
            Self::DueQueued => "due_queued",
            Self::Running => "running",
            Self::Measuring => "measuring",
            Self::WaitingTimeout => "waiting_timeout",
            Self::HeldLonePart => "held_lone_part",
            Self::WaitingPartner => "waiting_partner",
            Self::MergesStopped => "merges_stopped",
            Self::TtlMergesStopped => "ttl_merges_stopped",
            Self::MovesStopped => "moves_stopped",
            Self::DestinationFull => "destination_full",
            Self::DiskThreshold => "disk_threshold",
            Self::DiskUnavailable => "disk_unavailable",
            Self::PoolBusy => "pool_busy",
            Self::BackingOff => "backing_off",
            Self::NoMergeVolume => "no_merge_volume",
            Self::OnlyWholeParts => "only_whole_parts",
            Self::SavingTooSmall => "saving_too_small",
            Self::PinnedByTag => "pinned_by_tag",
            Self::PinnedByBranch => "pinned_by_branch",
            Self::PinnedByReader => "pinned_by_reader",
            Self::SupersededRule => "superseded_rule",
            Self::RuleInert => "rule_inert",
        })
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Drop => "drop",
            Self::Delete => "delete",
            Self::GroupBy => "group_by",
            Self::Reset => "reset",
            Self::Recompress => "recompress",
            Self::Move => "move",
            Self::Forget => "forget",
            Self::Measure => "measure",
            Self::None => "none",
        })
    }
}
