//! Intervals and ranges of time. Months are calendar with clamping, days are fixed, arithmetic is checked.

use crate::clock::Timestamp;
use chrono::{DateTime, Months, TimeZone, Utc};
use serde::{Deserialize, Serialize};
use std::fmt;

/// A span as SQL writes it. The three parts are added in this order: months, days, microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Interval {
    pub months: i32,
    pub days: i32,
    pub micros: i64,
}

impl Interval {
    pub const ZERO: Self = Self { months: 0, days: 0, micros: 0 };

    pub fn days(days: i32) -> Self {
        Self { days, ..Self::ZERO }
    }
    pub fn seconds(s: i64) -> Self {
        Self { micros: s.saturating_mul(1_000_000), ..Self::ZERO }
    }
    pub fn is_negative(&self) -> bool {
        self.months < 0 || self.days < 0 || self.micros < 0
    }

    /// `t` plus this, in UTC; `None` where that cannot be represented ("never"). Jan 31 + 1 month = Feb 28 or 29.
    pub fn after(&self, t: Timestamp) -> Option<Timestamp> {
        let mut at: DateTime<Utc> = Utc.timestamp_micros(t.0).single()?;
        let months = Months::new(self.months.unsigned_abs());
        at = if self.months < 0 { at.checked_sub_months(months)? } else { at.checked_add_months(months)? };
        let micros = i64::from(self.days).checked_mul(86_400_000_000)?.checked_add(self.micros)?;
        at.timestamp_micros().checked_add(micros).map(Timestamp)
    }
}

/// Canonical SQL text: the largest unit that is exact, as `INTERVAL '3 month'`.
impl fmt::Display for Interval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        if self.months != 0 {
            parts.push(match self.months % 12 {
                0 => format!("{} year", self.months / 12),
                _ => format!("{} month", self.months),
            });
        }
        if self.days != 0 {
            parts.push(format!("{} day", self.days));
        }
        if self.micros != 0 || parts.is_empty() {
            const UNITS: [(i64, &str); 5] =
                [(3_600_000_000, "hour"), (60_000_000, "minute"), (1_000_000, "second"), (1000, "millisecond"), (1, "microsecond")];
            let (size, unit) = UNITS.iter().find(|(size, _)| self.micros % size == 0 && self.micros != 0).unwrap_or(&(1_000_000, "second"));
            parts.push(format!("{} {unit}", self.micros / size));
        }
        write!(f, "INTERVAL '{}'", parts.join(" "))
    }
}

/// Times from `start` (included) to `end` (included); empty where `start > end`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimeRange {
    pub start: Timestamp,
    pub end: Timestamp,
}

impl TimeRange {
    pub fn contains(&self, t: Timestamp) -> bool {
        self.start <= t && t <= self.end
    }
    /// The smallest range that holds both.
    pub fn union(&self, other: &Self) -> Self {
        Self { start: self.start.min(other.start), end: self.end.max(other.end) }
    }
}
