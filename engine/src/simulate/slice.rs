//! Rows that came evenly over a span of time, as the rules have left them. Pure arithmetic.
//!
//! A row is known by its event time. Between the first and the last of a slice each rule comes due evenly, which is exact for rules of
//! the form `time + interval` and for those that are due at once for all. Guards: after rules were applied at a moment, nothing that
//! they took is due again at or before it.

use crate::plan::view::RuleKind;
use ebb_storage::Timestamp;

/// Adjoining slices whose due times differ by no more become one: times of a second's precision are cut.
const JOINT: i64 = 2_000_000;
/// Rates and slopes within this share of each other are one.
const ALIKE: f64 = 0.002;

/// When a rule concerns the first and the last row of a slice; `None` where it never does.
pub type Due = Option<(Timestamp, Timestamp)>;

#[derive(Debug, Clone, PartialEq)]
pub struct Slice {
    /// Where the slice began.
    began: i64,
    /// Rows before were deleted.
    from: i64,
    /// Behind its last row.
    to: i64,
    /// Rows a microsecond as they came.
    rate: f64,
    rules: Box<[Ruled]>,
    /// When rules were applied last.
    asked_at: Timestamp,
}

/// A rule's part in a slice.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Ruled {
    due: Due,
    /// Rows before it were looked at by the rule already.
    done: i64,
}

/// What a rule that removes or changes rows finds in a slice, and which share of it stays.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Effect {
    /// Of the rows that the rule's time concerns, the share that its condition selects.
    pub concerned: f64,
    /// Of all rows, the share that is there after.
    pub stays: f64,
}

impl Effect {
    pub fn of(kind: &RuleKind, share: f64) -> Option<Self> {
        match kind {
            RuleKind::Delete => Some(Self { concerned: 1.0, stays: 0.0 }),
            RuleKind::DeleteWhere => Some(Self { concerned: share, stays: 1.0 - share }),
            RuleKind::Fold => Some(Self { concerned: 1.0, stays: share }),
            RuleKind::Reset => Some(Self { concerned: 1.0, stays: 1.0 }),
            RuleKind::Recompress(_) | RuleKind::Move(_) => None,
        }
    }
}

/// A rule's facts of a slice: how many rows, from when to when.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Facts {
    pub rows: f64,
    /// Of them, those that never come due.
    pub never: f64,
    pub due: Due,
}

impl Slice {
    /// `rows` from `began` until before `to`.
    pub fn new(began: Timestamp, to: Timestamp, rows: f64, due: impl IntoIterator<Item = Due>) -> Self {
        let (began, to) = (began.0, to.0.max(began.0 + 1));
        // What falls with time is due as a whole when its last row is.
        let rising = |(first, last): (Timestamp, Timestamp)| if first <= last { (first, last) } else { (first, first) };
        let rules = due.into_iter().map(|due| Ruled { due: due.map(rising), done: began }).collect();
        Self { began, from: began, to, rate: rows / (to - began) as f64, rules, asked_at: Timestamp::MIN }
    }

    pub fn first(&self) -> Timestamp {
        Timestamp(self.from)
    }
    pub fn last(&self) -> Timestamp {
        Timestamp(self.to - 1)
    }

    pub fn rows(&self, effects: &[Option<Effect>]) -> f64 {
        self.rows_from(self.from, effects)
    }

    /// Rows from `at` on: fewer where rules have been.
    fn rows_from(&self, at: i64, effects: &[Option<Effect>]) -> f64 {
        let at = at.max(self.from);
        let mut edges: Vec<i64> = self.rules.iter().map(|r| r.done).filter(|d| *d > at && *d < self.to).collect();
        edges.push(self.to);
        edges.sort_unstable();
        let (mut here, mut rows) = (at, 0.0);
        for edge in edges {
            let stays = self.rules.iter().zip(effects).filter(|(r, _)| r.done > here).filter_map(|(_, e)| e.map(|e| e.stays));
            // A DELETE moves the beginning instead.
            let stays: f64 = stays.filter(|s| *s > 0.0).product();
            rows += self.rate * (edge - here).max(0) as f64 * stays;
            here = here.max(edge);
        }
        rows
    }

    /// When the rule concerns the row at `x`.
    fn due_at(&self, (first, last): (Timestamp, Timestamp), x: i64) -> Timestamp {
        let (span, rise) = ((self.to - self.began) as f64, (last.0 - first.0) as f64);
        Timestamp(first.0 + ((x - self.began) as f64 / span * rise) as i64)
    }

    /// Rows before it are due at `cutoff`.
    fn due_until(&self, (first, last): (Timestamp, Timestamp), cutoff: Timestamp) -> i64 {
        if cutoff >= last {
            return self.to;
        }
        if cutoff < first {
            return self.began;
        }
        let share = (cutoff.0 - first.0) as f64 / (last.0 - first.0) as f64;
        self.began + ((self.to - self.began) as f64 * share) as i64
    }

    pub fn facts(&self, rule: usize, effects: &[Option<Effect>]) -> Facts {
        let all = || self.rows(effects);
        let Some(ruled) = self.rules.get(rule) else { return Facts { rows: 0.0, never: 0.0, due: None } };
        let effect = effects.get(rule).copied().flatten();
        let concerned = effect.map_or(1.0, |e| e.concerned);
        let Some(due) = ruled.due else { return Facts { rows: 0.0, never: all() * concerned, due: None } };
        let (at, asked) = match effect {
            Some(_) => (ruled.done.max(self.from), self.asked_at),
            None => (self.from, Timestamp::MIN),
        };
        let rows = if at >= self.to { 0.0 } else { self.rows_from(at, effects) * concerned };
        let last = due.1.max(Timestamp(asked.0.saturating_add(1)));
        let first = self.due_at(due, at).max(Timestamp(asked.0.saturating_add(1))).min(last);
        Facts { rows, never: 0.0, due: (rows > 0.0).then_some((first, last)) }
    }

    /// Does what the rules ask of rows that are due at `cutoff`, in their order; of each rule the rows it took.
    pub fn apply(&mut self, cutoff: Timestamp, effects: &[Option<Effect>], mut took: impl FnMut(usize, f64)) {
        for (i, effect) in effects.iter().enumerate() {
            let (Some(effect), Some(ruled)) = (effect, self.rules.get(i).copied()) else { continue };
            let Some(due) = ruled.due else { continue };
            let until = self.due_until(due, cutoff);
            if until <= ruled.done.max(self.from) {
                continue;
            }
            let before = self.rows_from(ruled.done, effects) - self.rows_from(until.max(ruled.done), effects);
            if effect.stays == 0.0 {
                self.from = until.min(self.to);
            }
            if let Some(r) = self.rules.get_mut(i) {
                r.done = until;
            }
            took(i, before * effect.concerned);
        }
        self.asked_at = self.asked_at.max(cutoff);
    }

    pub fn is_empty(&self) -> bool {
        self.from >= self.to
    }

    /// One slice instead of this and the next, where nothing is lost by it.
    fn joined(&self, next: &Self) -> Option<Self> {
        let like = |a: f64, b: f64| (a - b).abs() <= ALIKE * a.abs().max(b.abs()).max(f64::MIN_POSITIVE);
        if (self.to - next.began).abs() > 1 || next.from != next.began || self.is_empty() || !like(self.rate, next.rate) {
            return None;
        }
        let (spans, slope) =
            (((self.to - self.began) as f64, (next.to - next.began) as f64), |due: (Timestamp, Timestamp)| due.1.0 - due.0.0);
        let mut rules = Vec::with_capacity(self.rules.len());
        for (a, b) in self.rules.iter().zip(&next.rules) {
            let untouched = b.done <= next.began;
            if !untouched && a.done < self.to {
                return None;
            }
            let due = match (a.due, b.due) {
                (None, None) => None,
                (Some(x), Some(y)) if (y.0.0 - x.1.0).abs() <= JOINT => {
                    let (s, t) = (slope(x) as f64 / spans.0, slope(y) as f64 / spans.1);
                    if (s - t).abs() > ALIKE {
                        return None;
                    }
                    Some((x.0, y.1))
                }
                _ => return None,
            };
            rules.push(Ruled { due, done: if untouched { a.done } else { b.done } });
        }
        let rate = (self.rate * spans.0 + next.rate * spans.1) / (next.to - self.began) as f64;
        Some(Self { to: next.to, rate, rules: rules.into(), asked_at: self.asked_at.min(next.asked_at), ..self.clone() })
    }
}

/// Slices of parts that become one, in order of time; as few as tell the same.
pub fn together(mut slices: Vec<Slice>) -> Vec<Slice> {
    slices.retain(|s| !s.is_empty());
    slices.sort_by_key(|s| (s.began, s.to));
    let mut joined: Vec<Slice> = Vec::with_capacity(slices.len());
    for slice in slices {
        match joined.last_mut().and_then(|last| last.joined(&slice).map(|whole| *last = whole)) {
            Some(()) => {}
            None => joined.push(slice),
        }
    }
    joined
}

#[cfg(test)]
mod tests;
