//! What is written down while the clock runs: bytes by volume and cause, what rules did, what went wrong first and when.

use super::{
    options::{DAY_MICROS, SimOptions},
    report::{Cause, Curve, Moment, Report, RuleLine, Totals, VolumeLine, Warning},
    world::World,
};
use ebb_storage::{Timestamp, interval::Interval};
use std::{collections::BTreeSet, time::Duration};

/// Lines of the table, about.
const MOMENTS: i64 = 24;
/// Distances between points of the curve.
const CURVE_STEPS: i64 = 240;
/// From so many days on, lines are whole months.
const MONTHS_FROM_DAYS: i64 = 60;
/// Nearer to the end there is no line but the end's.
const LATEST: Duration = Duration::from_secs(3600 * 24);
/// Warnings that are kept: the first of them matter.
const WARNINGS_MAX: usize = 20;

pub struct Watch {
    moments_at: Vec<Timestamp>,
    curve_at: Vec<Timestamp>,
    /// By volume, now.
    bytes: Vec<u64>,
    peaks: Vec<(u64, Timestamp)>,
    now: Timestamp,
    moved_bytes: u64,
    moments: Vec<Moment>,
    curve: Curve,
    pub totals: Totals,
    rules: Vec<RuleLine>,
    warned: BTreeSet<String>,
    warnings: Vec<Warning>,
}

impl Watch {
    pub fn new(world: &World, options: &SimOptions) -> Self {
        let volumes = world.tiers.volumes.len();
        let rules = world.rules.iter().map(|r| RuleLine { rule: r.text.clone(), parts: 0, rows: 0, first_at: None });
        let (start, span) = (options.start, options.end().0 - options.start.0);
        let even = |i: i64| Timestamp(start.0 + (i128::from(span) * i128::from(i) / i128::from(CURVE_STEPS)) as i64);
        let cause = |name| Cause { name, jobs: 0, parts: 0, read_bytes: 0, written_bytes: 0 };
        let causes = ["flush", "merge", "prune", "recompress", "move", "move_factor"].map(cause).to_vec();
        Self {
            moments_at: moments(start, options.end()),
            curve_at: (0..=CURVE_STEPS).map(even).collect(),
            bytes: vec![0; volumes],
            peaks: vec![(0, start); volumes],
            now: start,
            moved_bytes: 0,
            moments: Vec::new(),
            curve: Curve { at: Vec::new(), bytes: vec![Vec::new(); volumes] },
            totals: Totals { causes, ..Totals::default() },
            rules: rules.collect(),
            warned: BTreeSet::new(),
            warnings: Vec::new(),
        }
    }

    pub fn at(&mut self, now: Timestamp) {
        self.now = now;
    }

    pub fn placed(&mut self, volume: usize, taken: u64, given: u64) {
        let Some(bytes) = self.bytes.get_mut(volume) else { return };
        *bytes = bytes.saturating_add(taken).saturating_sub(given);
        if let Some(peak) = self.peaks.get_mut(volume).filter(|p| *bytes > p.0) {
            *peak = (*bytes, self.now);
        }
    }

    pub fn wrote(&mut self, cause: &'static str, parts: u64, read: u64, written: u64, now: Timestamp) {
        self.now = now;
        self.totals.written_bytes = self.totals.written_bytes.saturating_add(written);
        if let Some(c) = self.totals.causes.iter_mut().find(|c| c.name == cause) {
            (c.jobs, c.parts) = (c.jobs + 1, c.parts + parts);
            (c.read_bytes, c.written_bytes) = (c.read_bytes.saturating_add(read), c.written_bytes.saturating_add(written));
        }
    }

    pub fn moved(&mut self, bytes: u64) {
        self.moved_bytes = self.moved_bytes.saturating_add(bytes);
    }

    pub fn inserted(&mut self, rows: u64, bytes: u64, now: Timestamp) {
        self.totals.inserted_rows += rows;
        self.totals.inserted_bytes = self.totals.inserted_bytes.saturating_add(bytes);
        self.wrote("flush", 1, 0, bytes, now);
    }

    pub fn removed(&mut self, rows: u64) {
        self.totals.removed_rows += rows;
    }

    pub fn dropped(&mut self, rows: u64, bytes: u64) {
        self.removed(rows);
        self.totals.dropped_parts += 1;
        self.totals.dropped_bytes = self.totals.dropped_bytes.saturating_add(bytes);
    }

    pub fn acted(&mut self, rule: usize, parts: u64, rows: u64, at: Timestamp) {
        if let Some(line) = self.rules.get_mut(rule) {
            (line.parts, line.rows) = (line.parts + parts, line.rows.saturating_add(rows));
            line.first_at.get_or_insert(at);
        }
    }

    pub fn rules(&self) -> &[RuleLine] {
        &self.rules
    }

    /// Says `text` once; of equal `what` the first.
    pub fn warn(&mut self, what: &str, at: Option<Timestamp>, text: impl FnOnce() -> String) {
        if self.warnings.len() < WARNINGS_MAX && self.warned.insert(what.to_owned()) {
            self.warnings.push(Warning { at, text: text() });
        }
    }

    /// The next moment to write down before `next`.
    pub fn moment_before(&self, next: Timestamp) -> Option<Timestamp> {
        self.moments_at.get(self.moments.len()).copied().filter(|at| *at < next)
    }

    pub fn moment(&mut self, at: Timestamp, (rows, parts, partitions): (u64, u64, u64), oldest_row: Option<Timestamp>) {
        let (written_bytes, moved_bytes) = (self.totals.written_bytes, self.moved_bytes);
        self.moments.push(Moment { at, rows, parts, partitions, bytes: self.bytes.clone(), written_bytes, moved_bytes, oldest_row });
    }

    /// Draws the curve up to `next`, before what happens then.
    pub fn draw_until(&mut self, next: Timestamp) {
        while let Some(at) = self.curve_at.get(self.curve.at.len()).copied().filter(|at| *at < next) {
            self.curve.at.push(at);
            self.curve.bytes.iter_mut().zip(&self.bytes).for_each(|(line, bytes)| line.push(*bytes));
        }
    }

    pub fn report(self, world: &World, options: &SimOptions, assumptions: Vec<String>) -> Report {
        let volumes = world.tiers.volumes.iter().zip(&self.peaks).map(|(v, (peak_bytes, peak_at))| VolumeLine {
            name: v.name.clone(),
            disks: v.disks.iter().map(|d| d.name.to_string()).collect(),
            capacity_bytes: v.disks.iter().map(|d| (d.total != u64::MAX).then_some(d.total)).sum(),
            peak_bytes: *peak_bytes,
            peak_at: *peak_at,
        });
        Report {
            stream: world.def().full_name(),
            start: options.start,
            end: options.end(),
            policy: world.tiers.policy.clone(),
            assumptions,
            volumes: volumes.collect(),
            moments: self.moments,
            curve: self.curve,
            totals: self.totals,
            rules: self.rules,
            warnings: self.warnings,
        }
    }
}

/// About two dozen moments, whole months where there are enough of them; the end is one.
fn moments(start: Timestamp, end: Timestamp) -> Vec<Timestamp> {
    let days = (end.0 - start.0) / DAY_MICROS;
    let step = |i: i32| match days >= MONTHS_FROM_DAYS {
        true => {
            let months = i32::try_from((days / 30 + MOMENTS - 1) / MOMENTS).unwrap_or(i32::MAX).max(1);
            Interval { months: months.saturating_mul(i), ..Interval::ZERO }.after(start)
        }
        false => Some(Timestamp(start.0 + (end.0 - start.0) / MOMENTS * i64::from(i))),
    };
    // The end speaks for what is hardly before it.
    let inside = (1..).map_while(step).take_while(|at| at.saturating_add(LATEST.min(end.since(start) / 48)) < end);
    inside.chain([end]).collect()
}
