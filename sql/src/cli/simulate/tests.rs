//! What reports look like, of plain values.

use super::*;
use ebb_engine::{
    Timestamp,
    simulate::{Cause, Curve, Moment, RuleLine, Totals, VolumeLine, Warning},
};

fn day(n: i64) -> Timestamp {
    Timestamp::from_secs(1_767_225_600 + n * 86_400)
}

/// Ten days: hot rises to 100 MB and stays, cold rises from the fifth day on.
fn report(stream: &str) -> Report {
    let at: Vec<Timestamp> = (0..=240).map(|i| Timestamp(day(0).0 + i * 10 * 86_400_000_000 / 240)).collect();
    let hot: Vec<u64> = (0..=240).map(|i: u64| i.min(120) * 1_000_000).collect();
    let cold: Vec<u64> = (0..=240).map(|i: u64| i.saturating_sub(120) * 1_000_000).collect();
    let moment = |i: usize| Moment {
        at: at[i],
        rows: 1_234_567,
        parts: 12,
        partitions: 3,
        bytes: vec![hot[i], cold[i]],
        written_bytes: 300_000_000,
        moved_bytes: cold[i],
        oldest_row: Some(day(0)),
    };
    let volume = |name: &str, capacity_bytes, peak_bytes| VolumeLine {
        name: name.to_owned(),
        disks: vec![name.to_owned()],
        capacity_bytes,
        peak_bytes,
        peak_at: day(5),
    };
    Report {
        stream: stream.to_owned(),
        start: day(0),
        end: day(10),
        policy: "tiered".to_owned(),
        assumptions: vec!["rows come evenly".to_owned()],
        volumes: vec![volume("hot", Some(500_000_000), 120_000_000), volume("<cold & \"old\">", None, 120_000_000)],
        moments: vec![moment(120), moment(240)],
        curve: Curve { at: at.clone(), bytes: vec![hot.clone(), cold.clone()] },
        totals: Totals {
            inserted_rows: 2_000_000,
            inserted_bytes: 240_000_000,
            written_bytes: 300_000_000,
            causes: vec![Cause { name: "flush", jobs: 80, parts: 80, read_bytes: 0, written_bytes: 240_000_000 }],
            ..Totals::default()
        },
        rules: vec![RuleLine { rule: "ts + 1 DELETE".to_owned(), parts: 0, rows: 0, first_at: None }],
        warnings: vec![Warning { at: Some(day(3)), text: "disk 'hot' is full".to_owned() }],
    }
}

#[test]
fn a_text_has_the_table_the_totals_the_plot_and_the_warnings() {
    let text = text::text(&report("default.s"));
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "default.s, 2026-01-01 to 2026-01-11, storage policy 'tiered'");
    let at = |start: &str| lines.iter().position(|l| l.starts_with(start)).unwrap_or_else(|| panic!("no line begins '{start}':\n{text}"));
    let words = |i: usize| lines[i].split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(words(at("2026-01-11 ")), "2026-01-11 1.23 M 12 120 MB 120 MB 300 MB 120 MB 2026-01-01");
    assert_eq!(words(at("flush")), "flush 80 80 0 B 240 MB");
    assert_eq!(lines[at("write amp")], "write amplification 1.25: 300 MB written for 240 MB inserted, 2.00 M rows");
    assert_eq!(lines[at("rule ts")], "rule ts + 1 DELETE: never");
    assert_eq!(lines[at("volume hot")], "volume hot: 120 MB of 500 MB at the most, on 2026-01-06");
    assert_eq!(lines[at("warning: ")], "warning: 2026-01-04: disk 'hot' is full");
    // The plot: full height at the end, half of it hot.
    let top = lines[at("  240 MB |")];
    assert!(top.ends_with('▒') && !top.contains('█'), "{top}");
    let axis = lines.iter().position(|l| l.contains("+---")).unwrap();
    // A line is a twelfth, marked from its middle on: 10 MB, which the third column is the first to pass.
    assert_eq!(lines[axis - 1].chars().filter(|c| *c == '█').count(), 58);
    assert!(lines[axis - 12..axis].iter().all(|l| l.chars().count() <= 70));
}

#[test]
fn numbers_have_three_digits() {
    let all = [0, 999, 1000, 9_994, 9_996, 99_960, 999_400, 999_600, u64::MAX].map(text::bytes);
    assert_eq!(all, ["0 B", "999 B", "1.00 kB", "9.99 kB", "10.0 kB", "100 kB", "999 kB", "1.00 MB", "18.4 EB"]);
    assert_eq!(text::count(12), "12");
}

#[test]
fn a_plot_of_nothing_says_so() {
    let mut empty = report("s");
    empty.curve.bytes.iter_mut().flatten().for_each(|b| *b = 0);
    assert_eq!(plot::plot(&empty), "no bytes at any time\n");
    assert!(svg::page(&[empty]).contains("</svg>"));
}

#[test]
fn json_says_the_same_numbers() {
    let value: serde_json::Value = serde_json::from_str(&json::json(&[report("a"), report("b")])).unwrap();
    let first = &value["streams"][0];
    assert_eq!(value["streams"].as_array().unwrap().len(), 2);
    assert_eq!(first["stream"], "a");
    assert_eq!(first["moments"][1]["bytes"]["<cold & \"old\">"], 120_000_000);
    assert_eq!(first["moments"][1]["at"], "2026-01-11T00:00:00Z");
    assert_eq!(first["totals"]["write_amplification"], 1.25);
    assert_eq!(first["volumes"][1]["capacity_bytes"], serde_json::Value::Null);
    assert_eq!(first["curve"]["bytes"]["hot"].as_array().unwrap().len(), 241);
    assert_eq!(first["warnings"][0]["at"], "2026-01-04T00:00:00Z");
}

#[test]
fn a_chart_is_whole_xml_with_an_area_for_each_volume() {
    let page = svg::page(&[report("a"), report("b<c")]);
    assert!(page.starts_with("<svg ") && page.trim_end().ends_with("</svg>"));
    assert_eq!(page.matches("<polygon ").count(), 4);
    assert!(page.contains("&lt;cold &amp; &quot;old&quot;&gt;") && page.contains("b&lt;c"));
    assert!(!page.contains("NaN") && !page.contains("inf"));
    // Every element is closed, in order.
    let mut open = Vec::new();
    for tag in page.split('<').skip(1).map(|t| t.split_once('>').unwrap().0) {
        match tag.strip_prefix('/') {
            Some(name) => assert_eq!(open.pop(), Some(name)),
            None if tag.ends_with('/') => {}
            None => open.push(tag.split_whitespace().next().unwrap()),
        }
    }
    assert!(open.is_empty(), "{open:?}");
    // Areas end at the upper edge of the frame, not beyond.
    let heights = page.split("points=\"").skip(1).flat_map(|p| p.split('"').next().unwrap().split(' '));
    assert!(heights.map(|p| p.split_once(',').unwrap().1.parse::<f64>().unwrap()).all(|y| (77.0..=376.1).contains(&y)));
}
