//! How many of a part's rows a cut sees, and why it does not see the others. Each row is counted once: as deleted where a record that
//! the cut sees took it or its lineage leaves it out, else as expired where a rule took it.
//!
//! Changes nothing. Of a part of which the cut sees only some records, and whose rows are not asked, it is the records' share.

use crate::{Engine, sets::RowSets};
use ebb_storage::{
    Result,
    lineage::{Seen, SnSet, Visibility},
    manifest::StreamState,
    part::{
        PartMeta, RowSet,
        meta::{Origin, RowsAt},
    },
};

/// The rows of a part as one cut has them; together they are all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartRows {
    pub seen: u64,
    pub deleted: u64,
    pub expired: u64,
}

impl PartRows {
    /// # Errors
    /// `Corrupt` where a set of removed rows is missing.
    pub(crate) fn of(sets: &RowSets, meta: &PartMeta, seen: &Seen) -> Result<Self> {
        let union = |all: &mut dyn Iterator<Item = &RowsAt>| -> Result<RowSet> {
            let mut union = RowSet::default();
            for rows in all {
                union.0 |= &sets.rows(meta, rows)?.0;
            }
            Ok(union)
        };
        let records = match seen.of_rows(meta.origins.iter().map(|o| (o.branch, o.sns))) {
            Visibility::None => return Ok(Self { seen: 0, deleted: meta.rows, expired: 0 }),
            Visibility::All => None,
            Visibility::Some(sns) => Some(sns),
        };
        let deleted = union(&mut meta.deletions.iter().filter(|d| seen.contains(d.branch, d.sn)).map(|d| &d.rows))?;
        let mut expired = union(&mut meta.expired.iter().filter(|e| e.commit <= seen.horizon).map(|e| &e.rows))?;
        expired.0 -= &deleted.0;
        let left = meta.rows.saturating_sub(deleted.len()).saturating_sub(expired.len());
        let (left, expired) = match &records {
            None => (left, expired.len()),
            Some(sns) => (share_seen(meta, sns, left), share_seen(meta, sns, expired.len())),
        };
        Ok(Self { seen: left, deleted: meta.rows.saturating_sub(left).saturating_sub(expired), expired })
    }
}

/// Of so many rows of a part, those of records with these sns: rows are taken to lie evenly among all.
pub(crate) fn share_seen(meta: &PartMeta, sns: &SnSet, rows: u64) -> u64 {
    let size = |set: &SnSet| u128::from(set.count());
    let share = |o: &Origin| {
        let own = SnSet::new([o.sns]);
        let all = size(&own).max(1);
        (u128::from(o.rows) * size(&own.intersection(sns)) + all / 2) / all
    };
    let seen = meta.origins.iter().map(share).sum::<u128>();
    u64::try_from(seen * u128::from(rows) / u128::from(meta.rows.max(1))).unwrap_or(u64::MAX)
}

impl Engine {
    /// What main's head has of a part of the stream. Of one whose removed rows cannot be told, as their numbers are.
    pub fn part_rows(&self, state: &StreamState, meta: &PartMeta) -> PartRows {
        let seen = state.seen(&state.head());
        PartRows::of(&self.core.sets, meta, &seen).unwrap_or_else(|_| {
            let most = |rows: &mut dyn Iterator<Item = &RowsAt>| rows.map(|r| r.count(meta.rows)).max().unwrap_or(0).min(meta.rows);
            let deleted = most(&mut meta.deletions.iter().filter(|d| seen.contains(d.branch, d.sn)).map(|d| &d.rows));
            let expired = most(&mut meta.expired.iter().map(|e| &e.rows)).min(meta.rows - deleted);
            PartRows { seen: meta.rows - deleted - expired, deleted, expired }
        })
    }
}
