//! What becomes of a part's rows when it is rewritten: gone, kept as they are, or subject to rules.
//!
//! Guards I8 and I10: a row that any readable cut, ref or reader needs stays, with the deletions and expiries that hide it from others;
//! a row that nobody needs goes.

use crate::sets::RowSets;
use arrow::array::Int64Array;
use ebb_storage::{
    Error, Result,
    ids::{BranchId, ColumnId, CommitNo, Sn},
    lineage::{Seen, SnRange, SnSet, Visibility},
    manifest::StreamState,
    part::{MAX_ROWS, PartMeta, RowSet, meta::Origin},
    refs::{Dropped, Needs, Rounding},
};
use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

/// What every rewrite of a stream asks.
pub struct Judge {
    needs: Needs,
    rounding: Arc<Rounding>,
    /// What main's head sees: only there rules age rows of other branches.
    main: Seen,
    dropped: Dropped,
    sets: Arc<RowSets>,
}

impl Judge {
    pub fn new(state: &StreamState, needs: Needs, sets: Arc<RowSets>) -> Self {
        let rounding = Arc::new(Rounding::of(state, &needs));
        Self { needs, rounding, main: state.seen(&state.head()), dropped: Dropped::of(state), sets }
    }

    pub fn needs(&self) -> &Needs {
        &self.needs
    }

    /// What tags read that is no longer there.
    pub fn dropped(&self) -> &Dropped {
        &self.dropped
    }

    /// The dropped columns that a rewrite of these parts of a stream has to write beside those of today, rising.
    pub fn carried(&self, state: &StreamState, parts: &[Arc<PartMeta>]) -> Vec<ColumnId> {
        let read: BTreeSet<ColumnId> = parts.iter().flat_map(|p| self.dropped.read_of(p)).collect();
        if read.is_empty() {
            return Vec::new();
        }
        // Where no file has it, every row reads the same default as before.
        let written: BTreeSet<ColumnId> = parts.iter().flat_map(|p| state.written(p).stored().map(|c| c.id).collect::<Vec<_>>()).collect();
        read.intersection(&written).copied().collect()
    }

    /// Whether a rewrite would leave something of the part out that nobody needs.
    pub fn has_waste(&self, part: &PartMeta) -> bool {
        let read = || self.dropped.read_of(part);
        self.needs.unneeded_rows(part) > 0 || !part.carried.is_empty() && !part.carried.iter().all(|id| read().contains(id))
    }

    /// Whether main's head sees all or nothing of what `branch` wrote there.
    pub fn sees_alike(&self, branch: BranchId, sns: SnRange) -> bool {
        sees_alike(&self.main, branch, sns)
    }

    /// Which records may stand for which.
    pub fn rounding(&self) -> &Arc<Rounding> {
        &self.rounding
    }

    /// # Errors
    /// `Corrupt` where a set of removed rows is missing, `Internal` for a part of more rows than can be numbered.
    pub fn of(&self, part: &PartMeta) -> Result<Fate> {
        if part.rows > MAX_ROWS {
            return Err(Error::internal(format!("part {} has more rows than can be numbered", part.name)));
        }
        let set = |rows| self.sets.rows(part, rows).map(|r| r.into_owned());
        let deleted = part.deletions.iter().map(|d| Ok(((d.branch, d.sn), set(&d.rows)?))).collect::<Result<Vec<_>>>()?;
        let expired = part.expired.iter().map(|e| Ok((e.commit, set(&e.rows)?))).collect::<Result<Vec<_>>>()?;
        let mut marked = RowSet::default();
        deleted.iter().map(|(_, r)| r).chain(expired.iter().map(|(_, r)| r)).for_each(|r| marked.0 |= &r.0);
        let hidden =
            deleted.iter().filter(|((b, sn), _)| self.main.contains(*b, *sn)).map(|(_, r)| r).chain(expired.iter().map(|(_, r)| r));
        let hidden = RowSet(hidden.map(|r| &r.0).fold(Default::default(), |all, r| all | r));
        let mut fate = Fate {
            seen: self.main.sns_of(part.origins.iter().map(|o| (o.branch, o.sns))),
            hidden,
            all_seen: false,
            origins: part.origins.clone(),
            deleted,
            expired,
            marked,
            alive: HashMap::new(),
            aged: SnSet::default(),
            all_alive: false,
            all_aged: false,
        };
        let mut aged = Vec::new();
        for origin in &part.origins {
            match origin.branch {
                BranchId::MAIN => aged.push(origin.sns),
                branch => {
                    let seen = self.main.sets.iter().find(|(b, _)| *b == branch).map(|(_, s)| s.intersection(&SnSet::new([origin.sns])));
                    aged.extend(seen.iter().flat_map(|s| s.ranges()).copied());
                }
            }
        }
        fate.aged = SnSet::new(aged);
        fate.all_aged = part.origins.iter().all(|o| fate.aged.covers(o.sns));
        fate.all_seen = fate.hidden.is_empty() && part.origins.iter().all(|o| fate.seen.covers(o.sns));
        for marks in fate.marks() {
            let alive = fate.alive_with(&self.needs, &marks);
            fate.alive.insert(marks, alive);
        }
        let plain = fate.alive.get(&Marks::default()).cloned().unwrap_or_default();
        fate.all_alive = part.origins.iter().all(|o| plain.covers(o.sns));
        Ok(fate)
    }
}

/// Which of a part's deletions and expiries name a row.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
struct Marks {
    deleted: Vec<u32>,
    expired: Vec<u32>,
}

/// What becomes of the rows of one part.
pub struct Fate {
    origins: Vec<Origin>,
    deleted: Vec<((BranchId, Sn), RowSet)>,
    expired: Vec<(CommitNo, RowSet)>,
    /// Rows that any of them names.
    marked: RowSet,
    /// By what names a row: the sns of which rows are needed.
    alive: HashMap<Marks, SnSet>,
    /// Rows with these sns age by rules.
    aged: SnSet,
    /// Rows with these sns main's head sees,
    seen: SnSet,
    /// but for these.
    hidden: RowSet,
    all_seen: bool,
    all_alive: bool,
    all_aged: bool,
}

/// Rows next to each other.
#[derive(Debug, Default)]
pub struct Fates {
    /// Nobody needs them.
    pub gone: Option<Vec<bool>>,
    /// They stay, and no rule looks at them: expired already, or of a branch that main does not see.
    pub spared: Option<Vec<bool>>,
    /// Main's head does not see them.
    pub unseen: Option<Vec<bool>>,
    /// Deleted for some, or not seen by main's head: they are not folded with others.
    pub apart: Option<Vec<bool>>,
}

impl Fate {
    /// Whether every row stays and ages, whatever its sn.
    pub fn is_plain(&self) -> bool {
        self.all_alive && self.all_aged && self.marked.is_empty()
    }

    /// Whether it must be known which record wrote a row.
    pub fn asks_sns(&self) -> bool {
        !self.all_aged
            || self.alive.values().any(|alive| {
                let none = !self.origins.iter().any(|o| alive.touches(o.sns));
                !none && !self.origins.iter().all(|o| alive.covers(o.sns))
            })
    }

    /// How many rows main's head does not see; of records that it sees in part, their share.
    pub fn unseen_rows(&self) -> u64 {
        let size = |set: &SnSet| u128::from(set.count());
        let unseen = |o: &Origin| {
            let own = SnSet::new([o.sns]);
            let all = size(&own).max(1);
            u64::try_from(u128::from(o.rows) * (all - size(&own.intersection(&self.seen)).min(all)) / all).unwrap_or(o.rows)
        };
        self.origins.iter().map(unseen).fold(self.hidden.len(), u64::saturating_add)
    }

    /// Whether rules age all of its rows.
    pub fn ages_all(&self) -> bool {
        self.all_aged
    }

    /// Whether rules age any of its rows.
    pub fn ages(&self) -> bool {
        self.origins.iter().any(|o| self.aged.touches(o.sns))
    }

    /// Rows from `from` on, each with its sn; without sns where [`Self::asks_sns`] says they are not needed: then what main's head sees of
    /// them is not told.
    pub fn of_rows(&self, from: u64, rows: usize, sns: Option<&Int64Array>) -> Fates {
        if self.is_plain() && self.all_seen {
            return Fates::default();
        }
        let start = from as u32;
        let any = self.origins.first().map_or(Sn(0), |o| o.sns.to);
        let sn = |i: usize| sns.map_or(any, |s| Sn(s.value(i) as u64));
        let quiet = self.marked.0.range_cardinality(start..start + rows as u32) == 0;
        let plain = self.alive.get(&Marks::default());
        let mut gone = vec![false; rows];
        let mut fates = Fates::default();
        if !(quiet && self.all_alive) {
            for (i, gone) in gone.iter_mut().enumerate() {
                let row = start + i as u32;
                let alive = match quiet || !self.marked.0.contains(row) {
                    true => plain,
                    false => self.alive.get(&self.marks_of(row)),
                };
                *gone = !alive.is_some_and(|a| a.contains(sn(i)));
            }
        }
        let of = |sets: &mut dyn Iterator<Item = &RowSet>| {
            let mut all = vec![false; rows];
            for set in sets {
                set.0.range(start..start + rows as u32).for_each(|row| all[(row - start) as usize] = true);
            }
            all
        };
        if !self.all_seen {
            let mut unseen = of(&mut std::iter::once(&self.hidden));
            unseen.iter_mut().enumerate().for_each(|(i, u)| *u |= !self.seen.contains(sn(i)));
            fates.unseen = Some(unseen);
        }
        if !self.all_seen || !quiet && !self.deleted.is_empty() {
            let mut apart = of(&mut self.deleted.iter().map(|(_, r)| r));
            fates.unseen.iter().for_each(|u| apart.iter_mut().zip(u).for_each(|(a, u)| *a |= u));
            fates.apart = Some(apart);
        }
        if !quiet && !self.expired.is_empty() || !self.all_aged {
            let mut spared = of(&mut self.expired.iter().map(|(_, r)| r));
            if !self.all_aged {
                spared.iter_mut().enumerate().for_each(|(i, s)| *s |= !self.aged.contains(sn(i)));
            }
            fates.spared = Some(spared);
        }
        fates.gone = gone.contains(&true).then_some(gone);
        fates
    }

    fn marks_of(&self, row: u32) -> Marks {
        let places = |named: &mut dyn Iterator<Item = &RowSet>| -> Vec<u32> {
            named.enumerate().filter(|(_, r)| r.0.contains(row)).map(|(i, _)| i as u32).collect()
        };
        Marks { deleted: places(&mut self.deleted.iter().map(|(_, r)| r)), expired: places(&mut self.expired.iter().map(|(_, r)| r)) }
    }

    /// All combinations that occur: rows are told apart by one set after the other, so there are never more than there are rows.
    fn marks(&self) -> Vec<Marks> {
        let mut classes: Vec<(RowSet, Marks)> = Vec::new();
        let deleted = self.deleted.iter().enumerate().map(|(i, (_, rows))| (rows, Some(i as u32), None));
        let expired = self.expired.iter().enumerate().map(|(i, (_, rows))| (rows, None, Some(i as u32)));
        for (rows, deletion, expiry) in deleted.chain(expired) {
            let with = |marks: &Marks| {
                let mut marks = marks.clone();
                marks.deleted.extend(deletion);
                marks.expired.extend(expiry);
                marks
            };
            let mut rest = rows.0.clone();
            let mut split = Vec::new();
            for (class, marks) in &mut classes {
                if rest.is_empty() {
                    break;
                }
                let both = &class.0 & &rest;
                if both.is_empty() {
                    continue;
                }
                rest -= &both;
                class.0 -= &both;
                match class.is_empty() {
                    true => (class.0, *marks) = (both, with(marks)),
                    false => split.push((RowSet(both), with(marks))),
                }
            }
            classes.extend(split);
            if !rest.is_empty() {
                classes.push((RowSet(rest), with(&Marks::default())));
            }
        }
        // Rows that nothing names.
        std::iter::once(Marks::default()).chain(classes.into_iter().map(|(_, marks)| marks)).collect()
    }

    fn alive_with(&self, needs: &Needs, marks: &Marks) -> SnSet {
        let deleted: Vec<_> = marks.deleted.iter().map(|i| self.deleted[*i as usize].0).collect();
        let expired: Vec<_> = marks.expired.iter().map(|i| self.expired[*i as usize].0).collect();
        let of = |o: &Origin| needs.alive(o.branch, &deleted, &expired).intersection(&SnSet::new([o.sns]));
        self.origins.iter().map(of).fold(SnSet::default(), |a, b| a.union(&b))
    }

    /// The branch that wrote a record.
    pub fn branch_of(&self, sn: Sn) -> BranchId {
        self.origins.iter().find(|o| o.sns.contains(sn)).map_or(BranchId::MAIN, |o| o.branch)
    }
}

/// Whether a cut sees all or nothing of what `branch` wrote there.
pub fn sees_alike(seen: &Seen, branch: BranchId, sns: SnRange) -> bool {
    !matches!(seen.of_rows(std::iter::once((branch, sns))), Visibility::Some(_))
}

/// The branches and sns of rows as few stretches, none of which overlap, and each of which is seen `alike`: all of it or nothing.
pub fn origins_of(counts: &BTreeMap<Sn, (BranchId, u64)>, alike: impl Fn(BranchId, SnRange) -> bool) -> Vec<Origin> {
    let mut all: Vec<Origin> = Vec::new();
    for (sn, (branch, rows)) in counts {
        let with = |last: &Origin| SnRange { after: last.sns.after, to: *sn };
        match all.last_mut() {
            Some(last) if last.branch == *branch && alike(*branch, with(last)) => (last.sns.to, last.rows) = (*sn, last.rows + rows),
            _ => all.push(Origin { branch: *branch, sns: SnRange { after: Sn(sn.0.saturating_sub(1)), to: *sn }, rows: *rows }),
        }
    }
    all
}

#[cfg(test)]
mod tests;
