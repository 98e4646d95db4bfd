//! What is assumed of the rows and of the years to come, with the bounds within which a simulation ends soon.

use ebb_storage::{Error, Result, Timestamp};
use std::time::Duration;

#[derive(Debug, Clone, PartialEq)]
pub struct SimOptions {
    /// The clock's first moment; the stream is empty then.
    pub start: Timestamp,
    /// Of 365.25 days.
    pub years: f64,
    pub rows_per_day: u64,
    /// Flushes a day, evenly; one makes a part of each partition that its rows belong to.
    pub parts_per_day: u32,
    /// Bytes of a row in a part of codec LZ4; `None`: by the columns' types.
    pub row_bytes: Option<f64>,
    /// Of due rows, the share that a DELETE WHERE matches and that a GROUP BY leaves.
    pub share: f64,
}

const YEAR_MICROS: f64 = 365.25 * 86_400e6;
pub const DAY_MICROS: i64 = 86_400_000_000;
pub const YEARS_MAX: f64 = 100.0;
pub const ROWS_PER_DAY_MAX: u64 = 1_000_000_000_000_000;
pub const ROW_BYTES_MAX: f64 = 1e9;
/// Flushes of a whole simulation.
pub const FLUSHES_MAX: u64 = 1_000_000;
/// Moments at which due work is looked for beside flushes, about: wake-ups that are nearer to each other are taken together.
pub const LOOKS: u64 = 100_000;
/// And those that are nearer than this: about as long as a job takes.
const LOOK_EVERY_MIN: Duration = Duration::from_secs(60);
/// Rounds of planning at one moment before it counts as endless.
pub const ROUNDS_MAX: usize = 10_000;

impl Default for SimOptions {
    fn default() -> Self {
        // 2026-01-01T00:00:00Z
        let start = Timestamp::from_secs(1_767_225_600);
        Self { start, years: 1.0, rows_per_day: 1_000_000, parts_per_day: 8, row_bytes: None, share: 0.5 }
    }
}

impl SimOptions {
    /// # Errors
    /// `Invalid`, naming what is out of bounds.
    pub fn check(&self) -> Result<()> {
        let within = |what: &str, is: bool, bounds: &str| match is {
            true => Ok(()),
            false => Err(Error::invalid(format!("{what} must be {bounds}"))),
        };
        within("years", self.years > 0.0 && self.years <= YEARS_MAX, &format!("above 0 and at most {YEARS_MAX}"))?;
        within("rows a day", (1..=ROWS_PER_DAY_MAX).contains(&self.rows_per_day), &format!("from 1 to {ROWS_PER_DAY_MAX}"))?;
        within("parts a day", self.parts_per_day >= 1, "at least 1")?;
        let row_bytes = self.row_bytes.is_none_or(|b| b > 0.0 && b <= ROW_BYTES_MAX);
        within("bytes of a row", row_bytes, &format!("above 0 and at most {ROW_BYTES_MAX}"))?;
        within("the share", (0.0..=1.0).contains(&self.share), "from 0 to 1")?;
        let end = self.start.0.checked_add((self.years * YEAR_MICROS) as i64);
        within("the start", self.start.0 >= 0 && end.is_some(), "after 1970 and before the year 200000")?;
        if self.flushes() > FLUSHES_MAX {
            return Err(Error::invalid(format!(
                "{} years of {} parts a day are {} flushes, {FLUSHES_MAX} at the most: ask for fewer years or parts a day",
                self.years,
                self.parts_per_day,
                self.flushes()
            )));
        }
        Ok(())
    }

    pub fn end(&self) -> Timestamp {
        Timestamp(self.start.0.saturating_add((self.years * YEAR_MICROS) as i64))
    }

    pub fn flushes(&self) -> u64 {
        (self.years * YEAR_MICROS / DAY_MICROS as f64 * f64::from(self.parts_per_day)).floor() as u64
    }

    /// When the rows of flush `n` begin; they end where those of the next begin, which is when they are flushed.
    pub fn flush_begins(&self, n: u64) -> Timestamp {
        let since = i128::from(DAY_MICROS) * i128::from(n) / i128::from(self.parts_per_day.max(1));
        Timestamp(self.start.0.saturating_add(i64::try_from(since).unwrap_or(i64::MAX)))
    }

    pub fn rows_of_flush(&self, n: u64) -> u64 {
        let until = |n: u64| u128::from(self.rows_per_day) * u128::from(n) / u128::from(self.parts_per_day.max(1));
        (until(n + 1) - until(n)) as u64
    }

    /// The least time between two looks for due work that no flush brings about.
    pub fn look_every(&self) -> Duration {
        let span = Duration::from_micros((self.years * YEAR_MICROS) as u64);
        let even = span / u32::try_from(LOOKS).unwrap_or(u32::MAX);
        Duration::from_secs(even.max(LOOK_EVERY_MIN).as_secs())
    }
}
