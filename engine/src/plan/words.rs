//! A decision in words: the reason, what blocks, what would unblock. Says nothing that the decision does not.

use super::{
    decide::{Action, Decision, State},
    tiers::place,
    view::{PartView, RuleKind, RuleView, StreamView},
};

/// Reason, what blocks, what would unblock.
pub fn words(d: &Decision, stream: &StreamView, part: &PartView, rule: Option<&RuleView>) -> (String, String, String) {
    let say = |reason: &str, by: &str, with: &str| (reason.to_owned(), by.to_owned(), with.to_owned());
    let or = |otherwise: &str| if d.detail.is_empty() { otherwise.to_owned() } else { d.detail.clone() };
    let volume = || {
        let of = |v: usize| format!("{}.{}", stream.tiers.policy, stream.tiers.volumes[v].name);
        stream.tiers.volume_of(part.disk).map_or_else(|| stream.tiers.policy.clone(), of)
    };
    match d.state {
        State::NotDue => (not_due(d, rule), String::new(), String::new()),
        State::DueQueued => (queued(d, stream, part, rule), String::new(), String::new()),
        State::Running => say("a job has this part", "job", ""),
        State::Measuring => say("the rule is new to this part: due rows are being counted", "", ""),
        State::WaitingTimeout if d.action == Action::Recompress => {
            let seconds = stream.settings.recompress_every.as_secs();
            let reason = format!("a part of the partition was recompressed less than {seconds} s ago");
            let with = "OPTIMIZE STREAM, or a smaller merge_with_recompression_ttl_timeout";
            (reason, "merge_with_recompression_ttl_timeout".to_owned(), with.to_owned())
        }
        State::WaitingTimeout => {
            let seconds = stream.settings.prune_every.as_secs();
            let reason = format!("the partition was pruned less than {seconds} s ago");
            (reason, "merge_with_ttl_timeout".to_owned(), "OPTIMIZE STREAM, or a smaller merge_with_ttl_timeout".to_owned())
        }
        State::HeldLonePart => {
            let seconds = stream.settings.move_grace.as_secs();
            let reason = format!("the destination takes no part in merges: a lone part waits up to {seconds} s for a partner first");
            (reason, "ttl_move_grace_seconds".to_owned(), "another part of the partition, or a smaller ttl_move_grace_seconds".to_owned())
        }
        State::WaitingPartner => say("the destination takes no part in merges: the part is merged with another first", "merge", ""),
        State::MergesStopped if !d.detail.is_empty() => (
            format!("merges are stopped {}", d.detail),
            format!("SYSTEM STOP MERGES {}", d.detail),
            format!("SYSTEM START MERGES {}", d.detail),
        ),
        State::MergesStopped => say("merges are stopped", "SYSTEM STOP MERGES", "SYSTEM START MERGES"),
        State::TtlMergesStopped => say("merges that rules ask for are stopped", "SYSTEM STOP TTL MERGES", "SYSTEM START TTL MERGES"),
        State::MovesStopped => say("moves are stopped", "SYSTEM STOP MOVES", "SYSTEM START MOVES"),
        State::DestinationFull => (
            or("there is no room"),
            "space".to_owned(),
            "free space, or a larger disk or max_data_part_size of the storage policy".to_owned(),
        ),
        State::DiskThreshold => {
            (or("the disk's max_usage_pct is reached"), "max_usage_pct".to_owned(), "free space, or a larger max_usage_pct".to_owned())
        }
        State::DiskUnavailable => {
            (or("a disk is unavailable"), "disk".to_owned(), "bring the disk back; it is tried again by itself".to_owned())
        }
        State::PoolBusy => say(
            "all places for such jobs are taken",
            "background_pool_size, max_number_of_merges_with_ttl_in_pool",
            "wait for running jobs, or more places",
        ),
        State::BackingOff => {
            let (count, error) = part.failure.as_ref().map_or((0, ""), |f| (f.count, f.error.as_str()));
            (
                format!("{count} attempts failed, the last with: {error}"),
                "error".to_owned(),
                "clear the cause; it is tried again by itself".to_owned(),
            )
        }
        State::NoMergeVolume => {
            let reason = format!("volume {} takes no part in merges: nothing is rewritten there by itself", volume());
            (reason, "prefer_not_to_merge".to_owned(), "OPTIMIZE STREAM ... FINAL".to_owned())
        }
        State::OnlyWholeParts => say(
            "some rows are due, and rows go only with their whole part",
            "ttl_only_drop_parts",
            "OPTIMIZE STREAM, or ttl_only_drop_parts = 0",
        ),
        State::SavingTooSmall => {
            let reason = format!("less than a tenth of the rows is due, and volume {} takes no part in merges", volume());
            (reason, "prefer_not_to_merge".to_owned(), "OPTIMIZE STREAM ... FINAL".to_owned())
        }
        State::PinnedByTag => pinned("tag", &d.detail, "DROP TAG"),
        State::PinnedByBranch => pinned("branch", &d.detail, "DROP BRANCH"),
        State::PinnedByReader => (
            format!("reader '{}' has not read all of the part, and is within its MAX LAG", d.detail),
            format!("reader '{}'", d.detail),
            "advance_reader, or DROP READER".to_owned(),
        ),
        State::SupersededRule => (or("another rule is in force"), "rule".to_owned(), String::new()),
        State::RuleInert => (
            or("the storage policy has no such place"),
            "storage_policy".to_owned(),
            "a storage policy with that disk or volume".to_owned(),
        ),
    }
}

fn pinned(kind: &str, name: &str, with: &str) -> (String, String, String) {
    let reason = format!("{kind} '{name}' needs the rows as they are");
    (reason, format!("{kind} '{name}'"), format!("ALTER STREAM ... {with} {name}"))
}

fn not_due(d: &Decision, rule: Option<&RuleView>) -> String {
    match (rule.map(|r| &r.kind), d.due_at) {
        _ if !d.detail.is_empty() => d.detail.clone(),
        (None, _) => "no rule concerns this part".to_owned(),
        (Some(RuleKind::Recompress(_)), Some(_)) if d.action == Action::None => "the part has this codec".to_owned(),
        (Some(RuleKind::Move(to)), Some(_)) if d.action == Action::None => format!("the part is on {}", place(to)),
        (_, Some(at)) => format!("due at {at}"),
        (Some(RuleKind::Recompress(_) | RuleKind::Move(_)), None) => "some row of this part will never come due by this rule".to_owned(),
        (_, None) => "no row of this part will come due by this rule".to_owned(),
    }
}

fn queued(d: &Decision, stream: &StreamView, part: &PartView, rule: Option<&RuleView>) -> String {
    match (d.action, rule.map(|r| &r.kind)) {
        (Action::Drop | Action::Delete, _) if part.pinned_by_ref().is_some() => {
            let name = part.pinned_by_ref().map_or("", |p| p.name.as_str());
            format!("due rows are removed from main at the next round; they stay in the part for '{name}'")
        }
        (Action::Drop, _) => "every row is due: the part is dropped whole at the next round".to_owned(),
        (Action::Recompress, _) if !d.detail.is_empty() => format!("recompressed {}", d.detail),
        (Action::Recompress, _) => "every row is due: the part is recompressed at the next round".to_owned(),
        (Action::Move, Some(RuleKind::Move(to))) => format!("every row is due: the part moves to {} at the next round", place(to)),
        (Action::Move, _) => {
            let disk = stream.tiers.disk(part.disk).map_or("", |d| &d.name);
            let percent = stream.tiers.move_factor * 100.0;
            format!("less than {percent} % of disk '{disk}' is free: the part moves to the next volume")
        }
        (Action::Forget, _) => "nothing tells its records apart any more: `_tp_sn` is written as one value at the next round".to_owned(),
        (Action::GroupBy, _) => "due rows are folded at the next round".to_owned(),
        (Action::Reset, _) => "due values become the column's default at the next round".to_owned(),
        _ => "due rows are removed at the next round".to_owned(),
    }
}
