//! The records of one line of the record list, where records of other branches lie between them.
//!
//! Written as lengths and gaps in turn, so that two branches that are written to by turns take a few bytes a record.

use crate::{ids::Sn, lineage::SnRange};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};
use std::sync::Arc;

/// Rising ranges, no two of which touch; never none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Runs(Arc<[SnRange]>);

impl Runs {
    /// Of ranges that rise and do not overlap; `None` where they are one range.
    pub fn of(ranges: impl IntoIterator<Item = SnRange>) -> Option<Self> {
        let mut all: Vec<SnRange> = Vec::new();
        for r in ranges {
            match all.last_mut() {
                Some(last) if last.to == r.after => last.to = r.to,
                _ => all.push(r),
            }
        }
        (all.len() > 1).then(|| Self(all.into()))
    }

    pub fn ranges(&self) -> &[SnRange] {
        &self.0
    }

    pub fn contains(&self, sn: Sn) -> bool {
        let i = self.0.partition_point(|r| r.to < sn);
        self.0.get(i).is_some_and(|r| r.contains(sn))
    }
}

impl Serialize for Runs {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut at = 0;
        let mut numbers = Vec::with_capacity(self.0.len() * 2);
        for r in self.0.iter() {
            numbers.extend([r.after.0 - at, r.to.0 - r.after.0]);
            at = r.to.0;
        }
        numbers.serialize(to)
    }
}

impl<'de> Deserialize<'de> for Runs {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let numbers = Vec::<u64>::deserialize(from)?;
        let damaged = || D::Error::custom("runs of records that do not rise");
        let (mut at, mut all) = (0u64, Vec::with_capacity(numbers.len() / 2));
        for pair in numbers.chunks(2) {
            let [gap, len] = *pair else { return Err(damaged()) };
            let after = at.checked_add(gap).ok_or_else(damaged)?;
            let to = after.checked_add(len).filter(|to| *to > after && (gap > 0 || all.is_empty())).ok_or_else(damaged)?;
            all.push(SnRange { after: Sn(after), to: Sn(to) });
            at = to;
        }
        if all.is_empty() {
            return Err(damaged());
        }
        Ok(Self(all.into()))
    }
}

#[cfg(test)]
mod tests;
