//! Whether an insert may go on: pure.

use crate::settings::StreamSettings;
use std::time::Duration;

/// The longest that one insert is slowed.
const DELAY_MAX: Duration = Duration::from_secs(1);

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Admission {
    Accept,
    /// Wait this long, then go on.
    Delay(Duration),
    /// Too many parts: what to tell.
    Refuse(String),
}

/// For an insert into a partition with `parts` active parts of stream `name`.
///
/// Between the two thresholds the delay grows with the square of the way: `DELAY_MAX * ((parts - delay) / (refuse - delay))^2`, gentle
/// at first and firm before inserts would be refused.
pub fn admit(parts: usize, partition: &str, name: &str, settings: &StreamSettings) -> Admission {
    let parts = parts as u64;
    if parts >= settings.parts_to_refuse {
        return Admission::Refuse(format!(
            "stream {name}: partition {partition} has {parts} parts (parts_to_throw_insert is {}): insert larger batches, or let merges catch up",
            settings.parts_to_refuse
        ));
    }
    if parts < settings.parts_to_delay {
        return Admission::Accept;
    }
    let span = settings.parts_to_refuse.saturating_sub(settings.parts_to_delay).max(1);
    let way = (parts - settings.parts_to_delay + 1) as f64 / span as f64;
    Admission::Delay(DELAY_MAX.mul_f64(way.min(1.0).powi(2)))
}

#[cfg(test)]
mod tests;
