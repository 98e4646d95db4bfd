//! The facts that decisions are made from. A view is built from the manifest and kept up by its commits; it owns no IO.

use super::{pressure::Relief, tiers::TierView};
use crate::settings::StreamSettings;
use ebb_storage::{
    Timestamp,
    codec::Codec,
    ids::{DiskId, Fingerprint, Generation, PartId, SchemaVersion, StreamId},
    part::meta::{PartMeta, RuleFacts},
    rules::{Action, Destination, Rule},
};
use std::{sync::Arc, time::Duration};

/// A stream with all its partitions.
#[derive(Debug, Clone, PartialEq)]
pub struct StreamView {
    pub id: StreamId,
    pub policy_version: u64,
    pub schema_version: SchemaVersion,
    pub settings: StreamSettings,
    /// In the order of the TTL clause.
    pub rules: Vec<RuleView>,
    pub stops: Stops,
    /// The storage policy, with the room there is now.
    pub tiers: Arc<TierView>,
    pub pools: Pools,
    /// What leaves disks for lack of room, decided over all streams; `None` where this one decides alone.
    pub relief: Option<Arc<Relief>>,
    pub partitions: Vec<PartitionView>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct RuleView {
    pub fingerprint: Fingerprint,
    /// Canonical SQL, for messages.
    pub text: String,
    pub kind: RuleKind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RuleKind {
    Delete,
    DeleteWhere,
    Recompress(Codec),
    Move(Destination),
    /// Folds due rows of one key into one.
    Fold,
    /// Puts a column's default into due values.
    Reset,
}

#[derive(Debug, Clone, PartialEq)]
pub struct PartitionView {
    pub value: Arc<str>,
    /// When the last prune of the partition ended.
    pub pruned_at: Option<Timestamp>,
    /// When the last recompression that was a job of its own ended.
    pub recompressed_at: Option<Timestamp>,
    pub parts: Vec<PartView>,
}

/// Small, since there are many: what planning looks at for every part.
#[derive(Debug, Clone, PartialEq)]
pub struct PartView {
    pub id: PartId,
    pub generation: Generation,
    pub level: u32,
    pub bytes: u64,
    pub rows: u64,
    pub disk: DiskId,
    pub codec: Codec,
    /// When its rows were last written together.
    pub written_at: Timestamp,
    /// The earliest moment at which one of the parts it was merged from was both written and due for a move.
    pub move_due_since: Option<Timestamp>,
    /// Of each RECOMPRESS and MOVE rule that concerns every row, when; in the order of the rules.
    pub changes: Box<[Change]>,
    /// The earliest moment at which a rule removes or changes a row; MAX where none will.
    pub first_due: Timestamp,
    /// The moment from which rules that the facts prove remove every row; MAX where they never do.
    pub whole_due: Timestamp,
    /// When enough rows are due, or the oldest has been for long enough, that a rewrite on a volume without merges is worth it.
    pub worth_at: Timestamp,
    /// When rules that remove rows take the first; rules that change rows may be due before.
    pub removes_at: Timestamp,
    /// When a rule that folds rows takes the first.
    pub folds_at: Timestamp,
    /// It has rows that were folded, or that a rule which folds has passed over.
    pub folded: bool,
    /// Nothing that can be read needs any of its rows.
    pub unneeded: bool,
    /// Who needs rows of it beside main.
    pub pin: Option<Box<Pin>>,
    /// Of a branch, and main sees none of its rows: no rule ages them.
    pub aside: bool,
    /// Only parts of one family are merged: 0 what main's history sees wholly, 1 other rows of main and what its head sees nothing of,
    /// then each branch by itself.
    pub family: u32,
    /// It holds rows or columns that nobody needs any more.
    pub reclaimable: bool,
    /// Its records are told apart by nothing, and to write them as one would save enough.
    pub forgets: bool,
    /// A current rule has no facts of this part.
    pub unmeasured: bool,
    /// A running job has it.
    pub busy: bool,
    pub failure: Option<Box<Failure>>,
    /// What came of it in another codec, where a job found that too much for the place.
    pub tried: Option<Box<(Codec, u64)>>,
}

/// Who keeps rules from taking rows out of a part's file, or from changing them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pin {
    pub by: PinnedBy,
    pub name: String,
    /// When it lets go by itself; MAX where nobody knows.
    pub until: Timestamp,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PinnedBy {
    Tag,
    Branch,
    /// Within its MAX LAG, and it has not read all of the part.
    Reader,
}

/// When a rule that changes place or codec concerns a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Change {
    /// Its place among the stream's rules.
    pub rule: u32,
    /// When the first row is due.
    pub first: Timestamp,
    /// When all are: the rule applies from here.
    pub at: Timestamp,
}

/// Attempts at a part that went wrong, since the last one that did not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    pub count: u32,
    pub last_at: Timestamp,
    pub error: String,
}

/// What SYSTEM STOP has stopped, for the stream or for all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stops {
    pub merges: bool,
    pub ttl_merges: bool,
    pub moves: bool,
}

/// Whether a place is free for jobs of each kind. Plans are made whatever this says; it is for telling.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pools {
    pub prunes: bool,
    pub recompressions: bool,
    pub moves: bool,
}

impl Default for Pools {
    fn default() -> Self {
        Self { prunes: true, recompressions: true, moves: true }
    }
}

/// Waits double from the first to the longest.
const BACK_OFF_FIRST: Duration = Duration::from_secs(5);
const BACK_OFF_LONGEST: Duration = Duration::from_secs(3600);

impl Failure {
    /// When the part may be tried again.
    pub fn retry_at(&self) -> Timestamp {
        let doubled = BACK_OFF_FIRST.saturating_mul(1 << self.count.saturating_sub(1).min(20));
        self.last_at.saturating_add(doubled.min(BACK_OFF_LONGEST))
    }
}

impl RuleView {
    pub fn of(rule: &Rule) -> Self {
        let kind = match &rule.action {
            Action::Delete { only: None } => RuleKind::Delete,
            Action::Delete { only: Some(_) } => RuleKind::DeleteWhere,
            Action::Recompress(codec) => RuleKind::Recompress(*codec),
            Action::Move(to) => RuleKind::Move(to.clone()),
            Action::GroupBy { .. } => RuleKind::Fold,
            Action::Reset { .. } => RuleKind::Reset,
        };
        Self { fingerprint: rule.fingerprint, text: rule.to_string(), kind }
    }
    pub fn deletes(&self) -> bool {
        matches!(self.kind, RuleKind::Delete | RuleKind::DeleteWhere)
    }
    /// Whether it changes due rows and leaves them there.
    pub fn changes_rows(&self) -> bool {
        matches!(self.kind, RuleKind::Fold | RuleKind::Reset)
    }
    pub fn moves(&self) -> bool {
        matches!(self.kind, RuleKind::Move(_))
    }
    /// Whether it changes place or codec of whole parts.
    pub fn changes(&self) -> bool {
        matches!(self.kind, RuleKind::Recompress(_) | RuleKind::Move(_))
    }
}

impl PartView {
    /// A part as the rules see it; not busy, without failures.
    pub fn of(meta: &PartMeta, rules: &[RuleView]) -> Self {
        let alive = meta.rows - expired_rows(meta).min(meta.rows);
        let mut view = Self {
            id: meta.id,
            generation: meta.placement.generation,
            level: meta.level,
            bytes: meta.placement.bytes,
            rows: meta.rows,
            disk: meta.placement.disk,
            codec: meta.placement.codec,
            written_at: meta.written_at,
            move_due_since: meta.move_due_since,
            changes: Box::default(),
            first_due: Timestamp::MAX,
            whole_due: Timestamp::MAX,
            worth_at: Timestamp::MAX,
            removes_at: Timestamp::MAX,
            folds_at: Timestamp::MAX,
            folded: false,
            unneeded: false,
            pin: None,
            aside: false,
            family: 0,
            reclaimable: false,
            forgets: false,
            unmeasured: false,
            busy: false,
            failure: None,
            tried: None,
        };
        let mut changes = Vec::new();
        for (i, rule) in rules.iter().enumerate().filter(|(_, r)| r.deletes() || r.changes() || r.changes_rows()) {
            match meta.facts_of(rule.fingerprint) {
                None => view.unmeasured = true,
                Some(facts) if rule.deletes() => {
                    view.first_due = view.first_due.min(facts.earliest.unwrap_or(Timestamp::MAX));
                    view.removes_at = view.removes_at.min(facts.earliest.unwrap_or(Timestamp::MAX));
                    view.whole_due = view.whole_due.min(whole_due(facts, alive));
                    view.worth_at = view.worth_at.min(worth_at(facts, alive));
                }
                Some(facts) if rule.changes_rows() => {
                    let earliest = facts.earliest.unwrap_or(Timestamp::MAX);
                    view.first_due = view.first_due.min(earliest);
                    if rule.kind == RuleKind::Fold {
                        view.folds_at = view.folds_at.min(earliest);
                        // Every row concerns it; those that it is done with are counted no more.
                        view.folded |= facts.rows.saturating_add(facts.never) < alive;
                    }
                }
                Some(facts) => {
                    let at = whole_due(facts, alive);
                    if at != Timestamp::MAX {
                        changes.push(Change { rule: i as u32, first: facts.earliest.unwrap_or(at), at });
                    }
                }
            }
        }
        view.changes = changes.into();
        view
    }

    /// Of a part that no rule looks at.
    pub fn without_rules(self) -> Self {
        let never = Timestamp::MAX;
        let view = Self { first_due: never, whole_due: never, worth_at: never, removes_at: never, folds_at: never, ..self };
        Self { changes: Box::default(), folded: false, unmeasured: false, aside: true, ..view }
    }

    /// What it is reckoned to take in a codec: what came of it when that was tried, else as much as it takes now.
    pub fn bytes_in(&self, codec: Codec) -> u64 {
        self.tried.as_deref().filter(|(tried, _)| *tried == codec && codec != self.codec).map_or(self.bytes, |(_, bytes)| *bytes)
    }

    /// The ref that rows must stay in the file for, though they are due.
    pub fn pinned_by_ref(&self) -> Option<&Pin> {
        self.pin.as_deref().filter(|p| p.by != PinnedBy::Reader)
    }

    pub fn backing_off(&self, now: Timestamp) -> Option<Timestamp> {
        self.failure.as_ref().map(|f| f.retry_at()).filter(|at| now < *at)
    }
}

/// When a rule has removed all of `alive` rows: only if it concerns every one of them and every value comes due (I5).
pub fn whole_due(facts: &RuleFacts, alive: u64) -> Timestamp {
    match facts.latest {
        Some(latest) if facts.never == 0 && facts.rows == alive => latest,
        _ => Timestamp::MAX,
    }
}

/// Of the rows that a part on a volume without merges keeps, one in so many must be due before it is rewritten.
const WORTH_ONE_IN: u64 = 10;
/// Its oldest due row waits no longer than this for it.
const WORTH_AFTER: Duration = Duration::from_secs(30 * 86_400);

/// When a tenth of the rows is due, or the oldest due row has waited for thirty days. Between the first and the last of them rows are
/// taken to come due evenly: the facts do not tell more, and no row waits longer for it than the second bound.
pub fn worth_at(facts: &RuleFacts, alive: u64) -> Timestamp {
    let (Some(first), Some(last)) = (facts.earliest, facts.latest) else { return Timestamp::MAX };
    let longest = first.saturating_add(WORTH_AFTER);
    let need = alive.div_ceil(WORTH_ONE_IN).max(1);
    if facts.rows < need {
        return longest;
    }
    let span = i128::from(last.0) - i128::from(first.0);
    let steps = i128::from(facts.rows.saturating_sub(1).max(1));
    let at = i128::from(first.0) + (span * i128::from(need - 1)).div_euclid(steps);
    longest.min(Timestamp(i64::try_from(at).unwrap_or(i64::MAX)))
}

/// A part is written anew for `_tp_sn` alone where that saves more than so many percent of its bytes,
const FORGETTING_PAYS_PERCENT: u64 = 3;
/// and more than what one value takes in any case.
const FORGETTING_PAYS_BYTES: u64 = 4 << 10;

/// Whether it would pay to write one record's sn for all rows of the part.
pub fn forgetting_pays(meta: &PartMeta) -> bool {
    let share = meta.placement.bytes.saturating_mul(FORGETTING_PAYS_PERCENT) / 100;
    meta.sn_bytes > share.max(FORGETTING_PAYS_BYTES)
}

/// Rows that an earlier removal took from main while the file still holds them.
pub fn expired_rows(meta: &PartMeta) -> u64 {
    meta.expired.iter().map(|e| e.rows.count(meta.rows)).sum()
}
