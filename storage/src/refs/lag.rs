//! How far a reader is behind main, and up to when it keeps its promise not to be further behind than MAX LAG.

use super::{Reader, ancestry::Ancestry};
use crate::{
    clock::Timestamp,
    ids::{BranchId, Sn},
    lineage::{SnRange, SnSet},
    manifest::StreamState,
};

/// What a reader has not consumed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Lag {
    pub rows: u64,
    /// Now less the time of the first record of main that was not read; once that is forgotten, what is known of it.
    pub ms: u64,
}

/// Time of the first record of main behind a position; of a line that it is within the last record's, the only one known.
fn first_unread(state: &StreamState, position: Sn) -> Option<Timestamp> {
    let behind = state.records.range(position.next()..);
    behind.map(|(_, r)| r).find(|r| r.branch == BranchId::MAIN).map(|r| r.time_of(position.next().max(r.first().0)))
}

/// The last moment at which the reader is within its MAX LAG; `None` without one, or with nothing to read.
pub fn keeps_up_until(state: &StreamState, reader: &Reader) -> Option<Timestamp> {
    let max = reader.max_lag_ms?;
    let first = first_unread(state, reader.sn);
    Some(first.map_or(Timestamp::MAX, |t| Timestamp(t.0.saturating_add(max.saturating_mul(1000)))))
}

impl Reader {
    /// Whether it has a MAX LAG and keeps to it: then it protects what it has not read.
    pub fn protects(&self, state: &StreamState, now: Timestamp) -> bool {
        self.cut_off_at.is_none() && keeps_up_until(state, self).is_some_and(|until| now <= until)
    }
    /// From when on it protects nothing any more, if it stays where it is and does protect something now.
    pub fn protects_until(&self, state: &StreamState) -> Timestamp {
        keeps_up_until(state, self).map_or(Timestamp::MAX, |until| until.saturating_add(std::time::Duration::from_micros(1)))
    }
    /// Whether it fell behind: what it has not read may be gone.
    pub fn is_cut_off(&self, state: &StreamState, now: Timestamp) -> bool {
        self.cut_off_at.is_some() || keeps_up_until(state, self).is_some_and(|until| until < now)
    }

    pub fn lag(&self, state: &StreamState, now: Timestamp) -> Lag {
        let ms = first_unread(state, self.sn).map_or(0, |t| now.since(t).as_millis());
        let unread = SnSet::new([SnRange { after: self.sn, to: Sn(u64::MAX) }]);
        let ancestry = Ancestry::of(state);
        let mut rows = 0;
        for step in ancestry.walk(state.head_of(BranchId::MAIN)).take_while(|s| s.sns.to > self.sn) {
            let Some(record) = state.records.get(&step.line.sns.to) else { continue };
            // Of a line that is read in part, its share.
            let part = unread.intersection(&SnSet::new(step.ranges())).count();
            rows += u64::try_from(u128::from(record.rows_added) * u128::from(part) / u128::from(record.count.max(1))).unwrap_or(u64::MAX);
        }
        let ms = u64::try_from(ms).unwrap_or(u64::MAX);
        // Of one that was cut off, the first record it did not read may be gone: it was older than MAX LAG then.
        let least = self.cut_off_at.map_or(0, |at| u64::try_from(now.since(at).as_millis()).unwrap_or(u64::MAX));
        let least = least.saturating_add(self.cut_off_at.and(self.max_lag_ms).map_or(0, |ms| u64::try_from(ms).unwrap_or(0)));
        Lag { rows, ms: ms.max(least) }
    }
}

#[cfg(test)]
mod tests;
