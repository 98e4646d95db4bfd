//! A chart of bytes by volume: stacked areas, one picture a stream, all in one file that needs nothing beside it.

use super::text::{bytes, day};
use ebb_engine::{Timestamp, simulate::Report};
use std::fmt::Write;

const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 420.0;
const LEFT: f64 = 90.0;
const RIGHT: f64 = 30.0;
const TOP: f64 = 78.0;
const BOTTOM: f64 = 44.0;
/// Labels of the time axis.
const DATES: usize = 6;
/// Labels of the axis of bytes, about.
const LEVELS: f64 = 5.0;
/// Of the volumes in turn: warm to cold, told apart without telling red from green.
const COLOURS: [&str; 6] = ["#d1495b", "#edae49", "#00798c", "#30638e", "#7b6d8d", "#003d5b"];

pub fn page(reports: &[Report]) -> String {
    let height = HEIGHT * reports.len() as f64;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" viewBox=\"0 0 {WIDTH} {height}\" \
         font-family=\"sans-serif\" font-size=\"13\" fill=\"#222\">\n<rect width=\"{WIDTH}\" height=\"{height}\" fill=\"#fff\"/>\n"
    );
    for (i, report) in reports.iter().enumerate() {
        let _ = writeln!(out, "<g transform=\"translate(0 {})\">", i as f64 * HEIGHT);
        chart(&mut out, report);
        out.push_str("</g>\n");
    }
    out.push_str("</svg>\n");
    out
}

/// Where moments and bytes are in the picture.
struct Frame {
    start: Timestamp,
    span: f64,
    top: f64,
}

impl Frame {
    fn x(&self, at: Timestamp) -> f64 {
        LEFT + (at.0 - self.start.0) as f64 / self.span * (WIDTH - LEFT - RIGHT)
    }
    fn y(&self, bytes: f64) -> f64 {
        HEIGHT - BOTTOM - bytes / self.top * (HEIGHT - TOP - BOTTOM)
    }
}

fn chart(out: &mut String, r: &Report) {
    let total = |i: usize| r.curve.bytes.iter().filter_map(|line| line.get(i)).fold(0.0, |sum, b| sum + *b as f64);
    let most = (0..r.curve.at.len()).map(total).fold(0.0, f64::max).max(1.0);
    let step = nice(most / LEVELS);
    let frame = Frame { start: r.start, span: ((r.end.0 - r.start.0) as f64).max(1.0), top: (most / step).ceil() * step };
    let amplification = r.totals.write_amplification();
    let _ =
        writeln!(out, "<text x=\"{LEFT}\" y=\"28\" font-size=\"17\" font-weight=\"bold\">{}: bytes by volume</text>", escaped(&r.stream));
    let _ = writeln!(out, "<text x=\"{}\" y=\"28\" text-anchor=\"end\">write amplification {amplification:.2}</text>", WIDTH - RIGHT);
    axes(out, &frame, r, step);
    let mut below: Vec<f64> = vec![0.0; r.curve.at.len()];
    for (i, line) in r.curve.bytes.iter().enumerate() {
        let above: Vec<f64> = line.iter().zip(&below).map(|(b, under)| *b as f64 + under).collect();
        let point = |(at, level): (&Timestamp, &f64)| format!("{:.1},{:.1}", frame.x(*at), frame.y(*level));
        let upper = r.curve.at.iter().zip(&above).map(point);
        let lower: Vec<String> = r.curve.at.iter().zip(&below).map(point).collect();
        let points: Vec<String> = upper.chain(lower.into_iter().rev()).collect();
        let colour = COLOURS[i % COLOURS.len()];
        let _ = writeln!(out, "<polygon points=\"{}\" fill=\"{colour}\" fill-opacity=\"0.85\"/>", points.join(" "));
        below = above;
    }
    legend(out, r);
}

fn axes(out: &mut String, frame: &Frame, r: &Report, step: f64) {
    let (right, bottom) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
    let levels = (frame.top / step).round() as usize;
    for level in 0..=levels {
        let value = level as f64 * step;
        let y = frame.y(value);
        let _ = writeln!(out, "<line x1=\"{LEFT}\" y1=\"{y:.1}\" x2=\"{right}\" y2=\"{y:.1}\" stroke=\"#ddd\"/>");
        let _ = writeln!(out, "<text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>", LEFT - 8.0, y + 4.0, bytes(value as u64));
    }
    for i in 0..=DATES {
        let at = Timestamp(r.start.0 + ((r.end.0 - r.start.0) as f64 * i as f64 / DATES as f64) as i64);
        let x = frame.x(at);
        let _ = writeln!(out, "<line x1=\"{x:.1}\" y1=\"{bottom}\" x2=\"{x:.1}\" y2=\"{}\" stroke=\"#222\"/>", bottom + 5.0);
        let anchor = if i == DATES { "end" } else { "middle" };
        let _ = writeln!(out, "<text x=\"{x:.1}\" y=\"{}\" text-anchor=\"{anchor}\">{}</text>", bottom + 20.0, day(at));
    }
    let _ = writeln!(out, "<line x1=\"{LEFT}\" y1=\"{bottom}\" x2=\"{right}\" y2=\"{bottom}\" stroke=\"#222\"/>");
    let _ = writeln!(out, "<line x1=\"{LEFT}\" y1=\"{TOP}\" x2=\"{LEFT}\" y2=\"{bottom}\" stroke=\"#222\"/>");
}

fn legend(out: &mut String, r: &Report) {
    let room = (WIDTH - LEFT - RIGHT) / r.volumes.len().max(1) as f64;
    for (i, v) in r.volumes.iter().enumerate() {
        let x = LEFT + room * i as f64;
        let capacity = v.capacity_bytes.map_or_else(String::new, |c| format!(" of {}", bytes(c)));
        let text = format!("{}: {}{capacity} at the most", v.name, bytes(v.peak_bytes));
        let colour = COLOURS[i % COLOURS.len()];
        let _ = writeln!(out, "<rect x=\"{x:.1}\" y=\"44\" width=\"13\" height=\"13\" fill=\"{colour}\" fill-opacity=\"0.85\"/>");
        let _ = writeln!(out, "<text x=\"{:.1}\" y=\"55\">{}</text>", x + 19.0, escaped(&text));
    }
}

/// 1, 2 or 5 times a power of ten, not below `n`.
fn nice(n: f64) -> f64 {
    let power = 10f64.powf(n.max(1.0).log10().floor());
    [1.0, 2.0, 5.0, 10.0].into_iter().map(|m| m * power).find(|s| *s >= n * 0.999_999).unwrap_or(power * 10.0)
}

/// Text that XML takes as it is; characters that it cannot hold are left out.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => {}
            c => out.push(c),
        }
    }
    out
}
