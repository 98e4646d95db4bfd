//! A report for people: what is assumed, a table over time, totals by cause, a plot, warnings.

use super::plot;
use ebb_engine::{
    Timestamp,
    simulate::{Moment, Report},
};
use std::fmt::Write;

pub fn text(r: &Report) -> String {
    let mut out = String::new();
    let mut line = |text: &str| {
        out.push_str(text);
        out.push('\n');
    };
    line(&format!("{}, {} to {}, storage policy '{}'", r.stream, day(r.start), day(r.end), r.policy));
    line("assumed:");
    r.assumptions.iter().for_each(|a| line(&format!("  {a}")));
    line("");
    line(&over_time(r));
    line(&by_cause(r));
    for rule in &r.rules {
        let first = rule.first_at.map_or_else(
            || "never".to_owned(),
            |at| format!("from {} on, {} parts, {} rows", day(at), count(rule.parts), count(rule.rows)),
        );
        line(&format!("rule {}: {first}", rule.rule));
    }
    for v in &r.volumes {
        let capacity = v.capacity_bytes.map_or_else(String::new, |c| format!(" of {}", bytes(c)));
        line(&format!("volume {}: {}{capacity} at the most, on {}", v.name, bytes(v.peak_bytes), day(v.peak_at)));
    }
    line("");
    line(plot::plot(r).trim_end());
    for w in &r.warnings {
        let at = w.at.map_or_else(String::new, |at| format!("{}: ", day(at)));
        line(&format!("warning: {at}{}", w.text));
    }
    out
}

fn over_time(r: &Report) -> String {
    let titles = ["date", "rows", "parts"].map(str::to_owned).into_iter().chain(r.volumes.iter().map(|v| v.name.clone()));
    let titles = titles.chain(["written", "moved", "oldest row"].map(str::to_owned)).collect();
    let row = |m: &Moment| {
        let mut cells = vec![day(m.at), count(m.rows), m.parts.to_string()];
        cells.extend(m.bytes.iter().map(|b| bytes(*b)));
        cells.extend([bytes(m.written_bytes), bytes(m.moved_bytes), m.oldest_row.map_or_else(|| "-".to_owned(), day)]);
        cells
    };
    aligned(titles, r.moments.iter().map(row).collect())
}

fn by_cause(r: &Report) -> String {
    let t = &r.totals;
    let titles = ["cause", "jobs", "parts", "read", "written"].map(str::to_owned).to_vec();
    let rows = t.causes.iter().filter(|c| c.jobs > 0);
    let rows = rows.map(|c| vec![c.name.to_owned(), c.jobs.to_string(), c.parts.to_string(), bytes(c.read_bytes), bytes(c.written_bytes)]);
    let mut out = aligned(titles, rows.collect());
    let _ = writeln!(
        out,
        "write amplification {:.2}: {} written for {} inserted, {} rows",
        t.write_amplification(),
        bytes(t.written_bytes),
        bytes(t.inserted_bytes),
        count(t.inserted_rows)
    );
    let _ = writeln!(
        out,
        "removed {} rows; {} parts of {} were dropped without being read",
        count(t.removed_rows),
        t.dropped_parts,
        bytes(t.dropped_bytes)
    );
    if t.refused_rows > 0 {
        let _ = writeln!(out, "refused {} rows", count(t.refused_rows));
    }
    out
}

/// The first column left, the others right.
fn aligned(titles: Vec<String>, rows: Vec<Vec<String>>) -> String {
    let all: Vec<Vec<String>> = [titles].into_iter().chain(rows).collect();
    let width = |i: usize| all.iter().filter_map(|r| r.get(i)).map(|c| c.chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..all[0].len()).map(width).collect();
    let mut out = String::new();
    for row in &all {
        let cells = row.iter().zip(&widths).enumerate();
        let cells = cells.map(|(i, (cell, w))| if i == 0 { format!("{cell:<w$}") } else { format!("{cell:>w$}") });
        out.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        out.push('\n');
    }
    out
}

/// The date; days are what a simulation is about.
pub fn day(at: Timestamp) -> String {
    at.to_string().chars().take_while(|c| *c != 'T').collect()
}

/// Three digits and a unit, powers of a thousand.
pub fn bytes(n: u64) -> String {
    scaled(n, &["B", "kB", "MB", "GB", "TB", "PB", "EB"])
}

pub fn count(n: u64) -> String {
    scaled(n, &["", "k", "M", "G", "T", "P", "E"])
}

fn scaled(n: u64, units: &[&str]) -> String {
    let (mut value, mut unit) = (n as f64, 0);
    while value >= 999.5 && unit + 1 < units.len() {
        (value, unit) = (value / 1000.0, unit + 1);
    }
    let digits = match value {
        _ if unit == 0 => 0,
        v if v < 9.995 => 2,
        v if v < 99.95 => 1,
        _ => 0,
    };
    format!("{value:.digits$} {}", units[unit]).trim_end().to_owned()
}
