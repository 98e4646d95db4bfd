//! Rows of part_log or lifecycle_log on their way: from the commit that they ride in to the internal stream that keeps them.
//!
//! Rows are counted from the first ever written, so that what was moved can be told from what was not, whatever a crash left in both
//! places.

use rpds::QueueSync;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::sync::Arc;

/// Rows that wait at most. They are moved long before, unless the streams cannot be written; beyond it the oldest go.
pub const LOG_ROWS_MAX: usize = 100_000;

#[derive(Debug, Clone)]
pub struct LogRows<T> {
    /// How many came before the first of these.
    from: u64,
    /// Oldest first.
    rows: QueueSync<Arc<T>>,
}

impl<T> Default for LogRows<T> {
    fn default() -> Self {
        Self { from: 0, rows: QueueSync::new_sync() }
    }
}

impl<T> LogRows<T> {
    /// How many rows came before the first of these.
    pub fn from(&self) -> u64 {
        self.from
    }
    /// How many rows there ever were.
    pub fn through(&self) -> u64 {
        self.from + self.rows.len() as u64
    }
    pub fn len(&self) -> usize {
        self.rows.len()
    }
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
    pub fn iter(&self) -> impl Iterator<Item = &Arc<T>> {
        self.rows.iter()
    }
    /// Those behind the first `moved` ever written.
    pub fn behind(&self, moved: u64) -> impl Iterator<Item = &Arc<T>> {
        self.rows.iter().skip(usize::try_from(moved.saturating_sub(self.from)).unwrap_or(usize::MAX))
    }

    pub(super) fn push(&mut self, row: T) {
        self.rows.enqueue_mut(Arc::new(row));
        if self.rows.len() > LOG_ROWS_MAX && self.rows.dequeue_mut() {
            self.from += 1;
        }
    }

    /// Without the first `through` ever written.
    pub(super) fn drop_through(&mut self, through: u64) {
        while self.from < through && self.rows.dequeue_mut() {
            self.from += 1;
        }
    }
}

impl<T: Serialize> Serialize for LogRows<T> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        (self.from, self.rows.iter().map(Arc::as_ref).collect::<Vec<&T>>()).serialize(to)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for LogRows<T> {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        let (from, rows) = <(u64, Vec<T>)>::deserialize(input)?;
        Ok(Self { from, rows: rows.into_iter().map(Arc::new).collect() })
    }
}
