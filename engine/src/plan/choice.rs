//! Which of several due rules counts: the one that came due last, of several at once the later in the list. Pure.
//!
//! For parts that become one, a rule counts once all their rows are due. Guards: a part goes to a hotter volume only where the rule
//! that came due last names it; what stands in for a full destination is always colder.

use super::{
    due::is_due,
    tiers::{NoRoom, TierView},
    view::{Change, PartView, RuleKind, RuleView},
};
use ebb_storage::{Timestamp, codec::Codec, ids::DiskId, rules::Destination};

/// When each rule that changes place or codec concerns every row of all `parts`.
fn together(parts: &[&PartView]) -> impl Iterator<Item = Change> {
    let (first, others) = parts.split_first().map_or((&[][..], &[][..]), |(f, o)| (&*f.changes, o));
    first.iter().filter_map(move |c| {
        let mut all = *c;
        for part in others {
            let other = part.changes.iter().find(|o| o.rule == c.rule)?;
            all.first = all.first.min(other.first);
            all.at = all.at.max(other.at);
        }
        Some(all)
    })
}

/// The RECOMPRESS rule in force for all `parts`, by its place in the list, and its codec.
pub fn codec_due(parts: &[&PartView], rules: &[RuleView], now: Timestamp) -> Option<(u32, Codec)> {
    let due = together(parts).filter(|c| is_due(c.at, now));
    let codecs = due.filter_map(|c| match &rules.get(c.rule as usize)?.kind {
        RuleKind::Recompress(codec) => Some((c, *codec)),
        _ => None,
    });
    codecs.max_by_key(|(c, _)| (c.at, c.rule)).map(|(c, codec)| (c.rule, codec))
}

/// The MOVE rules that all `parts` are due for, the one in force first.
pub fn moves_due<'r>(parts: &[&PartView], rules: &'r [RuleView], now: Timestamp) -> Vec<(Change, &'r Destination)> {
    let due = together(parts).filter(|c| is_due(c.at, now));
    let mut moves: Vec<_> = due.filter_map(|c| Some((c, destination(rules, c)?))).collect();
    moves.sort_by_key(|(c, _)| std::cmp::Reverse((c.at, c.rule)));
    moves
}

/// Where each rule that moves parts sends them, by its place in the list: names are looked up once for all parts.
#[derive(Debug, Default)]
pub struct Spots(Vec<Option<Spot>>);

/// A place that there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spot {
    Disk(DiskId),
    Volume(usize),
}

impl Spots {
    pub fn of(rules: &[RuleView], tiers: &TierView) -> Self {
        let spot = |rule: &RuleView| match &rule.kind {
            RuleKind::Move(to) => tiers.spot(to),
            _ => None,
        };
        Self(rules.iter().map(spot).collect())
    }

    /// The MOVE rule in force for one part, without making a list: of those whose place there is.
    pub fn in_force(&self, part: &PartView, now: Timestamp) -> Option<(Change, Spot)> {
        let due = part.changes.iter().filter(|c| is_due(c.at, now));
        let placed = due.filter_map(|c| Some((*c, (*self.0.get(c.rule as usize)?)?)));
        placed.max_by_key(|(c, _)| (c.at, c.rule))
    }
}

fn destination(rules: &[RuleView], change: Change) -> Option<&Destination> {
    match &rules.get(change.rule as usize)?.kind {
        RuleKind::Move(to) => Some(to),
        _ => None,
    }
}

/// What a due MOVE rule comes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// Its place does not exist.
    Inert,
    There,
    Goes(DiskId),
    NoRoom(NoRoom),
    /// Another rule is in force.
    Superseded {
        by: u32,
    },
}

/// What each MOVE rule that a part of `bytes` on `disk` is due for comes to, the one in force first: where a destination has no room
/// the next stands in, if it is colder than where the part is.
pub fn walk(moves: &[(Change, &Destination)], tiers: &TierView, disk: DiskId, bytes: u64, turn: u64) -> Vec<(Change, Found)> {
    let here = tiers.volume_of(disk);
    let mut settled: Option<u32> = None;
    let mut in_force: Option<u32> = None;
    let mut found = Vec::with_capacity(moves.len());
    for (change, to) in moves {
        let what = if tiers.volume_at(to).is_none() {
            Found::Inert
        } else if let Some(by) = settled {
            Found::Superseded { by }
        } else if tiers.is_there(to, disk) {
            settled = Some(change.rule);
            Found::There
        } else if let Some(by) = in_force.filter(|_| here.is_some() && tiers.volume_at(to) <= here) {
            Found::Superseded { by }
        } else {
            match tiers.destination(to, bytes, turn) {
                Ok(Some(disk)) => {
                    settled = Some(change.rule);
                    Found::Goes(disk)
                }
                Ok(None) => Found::Inert,
                Err(why) => {
                    in_force.get_or_insert(change.rule);
                    Found::NoRoom(why)
                }
            }
        };
        found.push((*change, what));
    }
    found
}
