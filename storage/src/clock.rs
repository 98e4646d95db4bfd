//! Time: the only file that reads the operating system's clock or sleeps.
//!
//! Two clocks that must not be mixed. [`Clock`] is the database's time: ages, `now()`, commit times; it may be simulated and stand
//! still. [`Stopwatch`] and [`pause`] are the machine's time: durations shown to people, group commit, wire timeouts; they always run.

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::{fmt, sync::Arc, time::Duration};
use tokio::sync::watch;

/// Microseconds since 1970-01-01T00:00:00Z.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(pub i64);

impl Timestamp {
    pub const MIN: Self = Self(i64::MIN);
    /// Later than every clock: what saturates to "never" ends here.
    pub const MAX: Self = Self(i64::MAX);

    pub fn from_millis(ms: i64) -> Self {
        Self(ms.saturating_mul(1000))
    }
    pub fn from_secs(s: i64) -> Self {
        Self(s.saturating_mul(1_000_000))
    }
    pub fn millis(self) -> i64 {
        self.0.div_euclid(1000)
    }
    pub fn saturating_add(self, d: Duration) -> Self {
        Self(self.0.saturating_add(i64::try_from(d.as_micros()).unwrap_or(i64::MAX)))
    }
    /// How long after `earlier` this is; zero if it is not.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
    /// Days since the epoch in UTC, rounding towards the past.
    pub fn days(self) -> i64 {
        self.0.div_euclid(86_400_000_000)
    }
}

/// ISO 8601 in UTC, with as many fraction digits as are needed (0, 3 or 6).
impl Timestamp {
    /// The last one whose year has four digits, so that what is printed can be read again.
    pub const LAST_PRINTED: Self = Self(253_402_300_799_999_999);
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(t) = chrono::DateTime::from_timestamp_micros(self.0) else {
            return write!(f, "{} us", self.0);
        };
        let fraction = match (self.0.rem_euclid(1_000_000), self.0.rem_euclid(1000)) {
            (0, _) => "",
            (_, 0) => "%.3f",
            _ => "%.6f",
        };
        write!(f, "{}", t.format(&format!("%Y-%m-%dT%H:%M:%S{fraction}Z")))
    }
}

impl std::str::FromStr for Timestamp {
    type Err = crate::Error;
    /// RFC 3339, or the same with a blank for `T` and without a zone (UTC), or a date alone.
    fn from_str(s: &str) -> Result<Self, Self::Err> {
        let text = s.trim();
        if let Ok(t) = chrono::DateTime::parse_from_rfc3339(&text.replacen(' ', "T", 1)) {
            return Ok(Self(t.timestamp_micros()));
        }
        for format in ["%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%d %H:%M:%S%.f"] {
            if let Ok(t) = chrono::NaiveDateTime::parse_from_str(text, format) {
                return Ok(Self(t.and_utc().timestamp_micros()));
            }
        }
        if let Ok(d) = chrono::NaiveDate::parse_from_str(text, "%Y-%m-%d") {
            return Ok(Self(d.and_time(chrono::NaiveTime::MIN).and_utc().timestamp_micros()));
        }
        Err(crate::Error::invalid(format!("'{s}' is not a time: write it as 2026-01-31T12:00:00Z")))
    }
}

/// The database's time. Ages, `now()` and commit times come from here; below the shell `now` is an argument.
#[derive(Clone)]
pub enum Clock {
    System,
    Simulated(Arc<SimClock>),
}

impl Clock {
    pub fn simulated(start: Timestamp) -> Self {
        Self::Simulated(Arc::new(SimClock::new(start)))
    }

    #[allow(clippy::disallowed_methods, reason = "this is the file that reads the clock")]
    pub fn now(&self) -> Timestamp {
        match self {
            Self::System => {
                let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
                Timestamp(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
            }
            Self::Simulated(c) => c.now(),
        }
    }

    /// Returns once the clock shows `at` or later. On a simulated clock only [`SimClock::advance_to`] can bring that about.
    pub async fn sleep_until(&self, at: Timestamp) {
        match self {
            Self::System => loop {
                let left = at.since(self.now());
                if left.is_zero() {
                    return;
                }
                // Capped, so that a clock set by its owner meanwhile is noticed.
                pause(left.min(Duration::from_secs(60))).await;
            },
            Self::Simulated(c) => c.sleep_until(at).await,
        }
    }
}

/// A clock that stands still until it is moved, and only moves forward.
pub struct SimClock {
    now: watch::Sender<Timestamp>,
    advance: Mutex<()>,
}

impl SimClock {
    pub fn new(start: Timestamp) -> Self {
        Self { now: watch::Sender::new(start), advance: Mutex::new(()) }
    }
    pub fn now(&self) -> Timestamp {
        *self.now.borrow()
    }
    /// Moves the clock to `at` if that is later, and wakes who waits for it. Returns the new time.
    pub fn advance_to(&self, at: Timestamp) -> Timestamp {
        let _one_at_a_time = self.advance.lock();
        let next = self.now().max(at);
        self.now.send_replace(next);
        next
    }
    pub async fn sleep_until(&self, at: Timestamp) {
        let mut seen = self.now.subscribe();
        // The sender lives as long as the clock, which the caller holds.
        let _ = seen.wait_for(|now| *now >= at).await;
    }
}

/// Waits in the machine's time, whatever the database's clock does. For what a statement waits for, never for ages.
#[allow(clippy::disallowed_methods, reason = "this is the file that sleeps")]
pub async fn pause(d: Duration) {
    tokio::time::sleep(d).await;
}

/// [`pause`] for a thread of its own.
#[allow(clippy::disallowed_methods, reason = "this is the file that sleeps")]
pub fn pause_thread(d: Duration) {
    std::thread::sleep(d);
}

/// `f`'s answer, or `None` after `d` of the machine's time.
#[allow(clippy::disallowed_methods, reason = "this is the file that sleeps")]
pub async fn within<F: Future>(d: Duration, f: F) -> Option<F::Output> {
    tokio::time::timeout(d, f).await.ok()
}

/// Measures durations that are shown to people.
#[derive(Debug, Clone, Copy)]
pub struct Stopwatch(std::time::Instant);

impl Stopwatch {
    #[allow(clippy::disallowed_methods, reason = "this is the file that reads the clock")]
    pub fn start() -> Self {
        Self(std::time::Instant::now())
    }
    pub fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
}
