//! Bytes by volume over time in characters: volumes stacked, the hottest below.

use super::text::{bytes, day};
use ebb_engine::simulate::Report;

const COLUMNS: usize = 60;
const LINES: usize = 12;
/// Of the volumes in turn.
const SHADES: [char; 4] = ['█', '▒', '░', '▓'];

pub fn plot(r: &Report) -> String {
    let points = r.curve.at.len();
    let at = |column: usize| (column + 1) * points.saturating_sub(1) / COLUMNS;
    let stacked = |column: usize| r.curve.bytes.iter().map(move |line| line.get(at(column)).copied().unwrap_or(0));
    let top = (0..COLUMNS).map(|c| stacked(c).fold(0u64, u64::saturating_add)).max().unwrap_or(0);
    if top == 0 {
        return "no bytes at any time\n".to_owned();
    }
    let mut out = String::new();
    let label = bytes(top);
    for line in (0..LINES).rev() {
        // The middle of the line's cells.
        let level = (line as f64 + 0.5) / LINES as f64 * top as f64;
        let cell = |column: usize| {
            let mut below = 0.0;
            let volume = stacked(column).position(|b| {
                below += b as f64;
                level < below
            });
            volume.map_or(' ', |v| SHADES[v % SHADES.len()])
        };
        let row: String = (0..COLUMNS).map(cell).collect();
        let head = if line + 1 == LINES { label.as_str() } else { "" };
        out.push_str(format!("{head:>8} |{row}").trim_end());
        out.push('\n');
    }
    out.push_str(&format!("{:>8} +{}\n", "0", "-".repeat(COLUMNS)));
    let (from, to) = (day(r.start), day(r.end));
    out.push_str(&format!("{:>10}{from}{to:>width$}\n", "", width = COLUMNS - from.len()));
    let legend: Vec<String> = r.volumes.iter().enumerate().map(|(i, v)| format!("{} {}", SHADES[i % SHADES.len()], v.name)).collect();
    out.push_str(&format!("{:>10}{}\n", "", legend.join("   ")));
    out
}
