//! Streams simulated for years: what rules bound is bounded, what they move is there, and the numbers add up.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod support;

use ebb_engine::{
    Timestamp,
    simulate::{Report, SimOptions, World, simulate, together},
};
use ebb_storage::{
    codec::Codec,
    disk::{DiskDef, DiskKind, StoragePolicy, Volume},
    ids::{DiskId, Fingerprint},
    manifest::Manifest,
    rules::{Action, Destination, DestinationKind, Rule},
    stream_def::{SettingValue, StreamDef},
};
use std::sync::Arc;
use support::{DAY, Words, def, delete, with};

/// Bytes that steady ingest may write for each byte it brings: itself, and once more for each tier of eight.
const STEADY_AMPLIFICATION_MAX: f64 = 6.0;
const RATE: u64 = 1_000_000;

fn options() -> SimOptions {
    SimOptions { rows_per_day: RATE, row_bytes: Some(10.0), ..SimOptions::default() }
}

fn run_on(def: StreamDef, manifest: &Manifest, options: &SimOptions) -> Report {
    let world = World::new(&Arc::new(def), manifest, Arc::new(Words)).unwrap();
    let report = simulate(&world, options).unwrap();
    sound(&report);
    report
}

fn run(def: StreamDef, options: &SimOptions) -> Report {
    run_on(def, &Manifest::empty(), options)
}

/// What holds of every report.
fn sound(r: &Report) {
    let end = r.moments.last().unwrap();
    let t = &r.totals;
    assert_eq!(end.at, r.end);
    assert_eq!(end.rows, t.inserted_rows - t.removed_rows, "rows are lost or made");
    assert_eq!(t.written_bytes, t.causes.iter().map(|c| c.written_bytes).sum::<u64>());
    assert_eq!(end.written_bytes, t.written_bytes);
    assert_eq!(r.curve.at.len(), 241);
    for (i, line) in r.curve.bytes.iter().enumerate() {
        assert_eq!(line.len(), r.curve.at.len());
        assert_eq!(line.last(), end.bytes.get(i));
        assert!(line.iter().max().unwrap() <= &r.volumes[i].peak_bytes);
        assert!(r.volumes[i].capacity_bytes.is_none_or(|c| r.volumes[i].peak_bytes <= c), "more lies on a volume than it holds");
    }
    assert!(r.moments.windows(2).all(|m| m[0].at < m[1].at && m[0].written_bytes <= m[1].written_bytes));
}

fn to_volume(when: &str, name: &str, fingerprint: u64) -> Rule {
    let to = Destination { kind: DestinationKind::Volume, name: name.to_owned(), if_exists: false };
    Rule { when: when.to_owned(), action: Action::Move(to), fingerprint: Fingerprint(fingerprint) }
}

/// Volumes hot and cold of one disk each, as the policy `tiered`.
fn tiers(hot: Option<u64>, cold: Option<u64>, move_factor: f64) -> Manifest {
    let mut m = Manifest::empty();
    for (i, (name, capacity_bytes)) in [("hot", hot), ("cold", cold)].into_iter().enumerate() {
        let id = DiskId(i as u32 + 1);
        let kind = DiskKind::Local { path: format!("/nowhere/{name}").into() };
        m.disks.insert_mut(id, Arc::new(DiskDef { id, name: name.to_owned(), kind, capacity_bytes, max_usage_pct: 100 }));
    }
    let volumes = ["hot", "cold"].map(|n| Volume::new(n, vec![n.to_owned()])).to_vec();
    m.policies.insert_mut("tiered".to_owned(), Arc::new(StoragePolicy { name: "tiered".to_owned(), version: 1, volumes, move_factor }));
    m
}

fn tiered(rules: Vec<Rule>) -> StreamDef {
    let mut def = def("s", rules);
    def.settings.insert("storage_policy".to_owned(), SettingValue::Text("tiered".to_owned()));
    def
}

#[test]
fn without_rules_a_stream_grows_evenly_and_is_rewritten_a_bounded_number_of_times() {
    let r = run(def("s", Vec::new()), &options());
    for m in &r.moments {
        let days = (m.at.0 - r.start.0) as f64 / DAY as f64;
        let rows = days * RATE as f64;
        assert!((m.rows as f64 - rows).abs() <= RATE as f64 / 8.0, "{} rows after {days} days", m.rows);
        assert!((m.bytes[0] as f64 / (m.rows as f64 * 10.0) - 1.0).abs() < 0.02, "{} bytes of {} rows", m.bytes[0], m.rows);
    }
    assert_eq!(r.totals.removed_rows, 0);
    assert_eq!(r.moments.last().unwrap().oldest_row, Some(r.start));
    let amplification = r.totals.write_amplification();
    assert!(amplification > 1.0 && amplification < STEADY_AMPLIFICATION_MAX, "{amplification}");
    assert!(r.warnings.iter().any(|w| w.text.contains("grows without end")));
}

#[test]
fn a_delete_rule_bounds_rows_and_bytes() {
    let r = run(def("s", vec![delete("ts + 30 days", None, 1)]), &options());
    // A part's width, and the distance of prunes.
    let late = (3.0 + 4.0 + 1.0) / 24.0;
    for m in r.moments.iter().skip(2) {
        let days = m.rows as f64 / RATE as f64;
        assert!(days >= 30.0 - 3.0 / 24.0 && days <= 30.0 + late, "{days} days of rows at {}", m.at);
        let age = (m.at.0 - m.oldest_row.unwrap().0) as f64 / DAY as f64;
        assert!(age <= 30.0 + late, "a row of {age} days at {}", m.at);
    }
    assert!(r.volumes[0].peak_bytes < 31 * RATE * 10);
    let (by_rule, removed) = (r.rules[0].rows as f64, r.totals.removed_rows as f64);
    assert!((by_rule / removed - 1.0).abs() < 0.001, "{by_rule} of {removed} rows");
    assert_eq!(r.rules[0].first_at.map(|t| (t.0 - r.start.0) / DAY), Some(30));
    assert!(r.totals.cause("prune").unwrap().jobs > 100);
    assert!(r.warnings.iter().any(|w| w.text.contains("prunes wrote")), "{:?}", r.warnings);
}

#[test]
fn whole_parts_go_without_a_byte_written() {
    let def = with(def("s", vec![delete("ts + 30 days", None, 1)]), "ttl_only_drop_parts", 1);
    let r = run(def, &options());
    assert_eq!(r.totals.cause("prune").unwrap().written_bytes, 0);
    assert!(r.totals.dropped_parts > 0 && r.totals.dropped_bytes > 200 * RATE * 10);
    // A partition is thirty days of rows.
    assert!(r.moments.iter().all(|m| m.rows <= 61 * RATE));
    assert!(r.warnings.is_empty(), "{:?}", r.warnings);
}

#[test]
fn a_where_leaves_what_it_does_not_match() {
    let rules = vec![delete("ts + 7 days", Some("host = 'a'"), 1), delete("ts + 90 days", None, 2)];
    let r = run(def("s", rules), &SimOptions { share: 0.8, ..options() });
    let end = r.moments.last().unwrap();
    let wanted = (7.0 + 83.0 * 0.2) * RATE as f64;
    assert!((end.rows as f64 / wanted - 1.0).abs() < 0.03, "{} rows, {wanted} wanted", end.rows);
    assert!(r.assumptions.iter().any(|a| a.contains("matches 80 %")), "{:?}", r.assumptions);
    let (matched, rest) = (r.rules[0].rows as f64, r.rules[1].rows as f64);
    let removed = r.totals.removed_rows as f64;
    assert!(matched > 0.0 && rest > 0.0 && ((matched + rest) / removed - 1.0).abs() < 0.001, "{matched} + {rest} of {removed}");
}

#[test]
fn rows_are_folded_once() {
    let r = run(def("s", vec![support::sum_by_host("ts + 10 days", 1)]), &SimOptions { share: 0.1, years: 0.5, ..options() });
    let end = r.moments.last().unwrap();
    let days = (r.end.0 - r.start.0) as f64 / DAY as f64;
    let wanted = (10.0 + (days - 10.0) * 0.1) * RATE as f64;
    assert!((end.rows as f64 / wanted - 1.0).abs() < 0.03, "{} rows, {wanted} wanted", end.rows);
}

#[test]
fn due_parts_lie_on_the_volume_that_their_rule_names() {
    let rules = vec![to_volume("ts + 7 days", "cold", 1), delete("ts + 100 days", None, 2)];
    let r = run_on(tiered(rules), &tiers(None, None, 0.0), &options());
    // A part of a day's flushes moves when its last row is due.
    let days = |bytes: u64| bytes as f64 / (RATE * 10) as f64;
    assert!(r.curve.bytes[0].iter().all(|b| days(*b) < 8.3), "{:?}", r.curve.bytes[0]);
    assert!(r.curve.bytes[1].iter().skip(80).all(|b| days(*b) > 90.0), "{:?}", r.curve.bytes[1]);
    let moved = days(r.moments.last().unwrap().moved_bytes);
    assert!(moved > 355.0 && moved < 366.0, "{moved} days of rows were moved");
    assert!(r.totals.cause("move").unwrap().jobs > 0);
    assert!(r.rules.iter().all(|rule| rule.parts > 0));
}

#[test]
fn another_codec_makes_old_parts_smaller() {
    let rule = Rule { when: "ts + 10 days".to_owned(), action: Action::Recompress(Codec::Zstd(3)), fingerprint: Fingerprint(1) };
    let (plain, smaller) = (run(def("s", Vec::new()), &options()), run(def("s", vec![rule]), &options()));
    let bytes = |r: &Report| r.moments.last().unwrap().bytes[0] as f64;
    let ratio = bytes(&smaller) / bytes(&plain);
    assert!(ratio > 0.71 && ratio < 0.76, "{ratio}");
    let cause = *smaller.totals.cause("recompress").unwrap();
    assert!(cause.jobs > 0 && cause.written_bytes < cause.read_bytes);
}

#[test]
fn a_full_volume_is_told_with_its_moment_and_its_rule_waits() {
    // A hundred days fit.
    let m = tiers(None, Some(100 * RATE * 10), 0.0);
    let r = run_on(tiered(vec![to_volume("ts + 7 days", "cold", 1)]), &m, &options());
    let full = r.warnings.iter().find(|w| w.text.contains("disk 'cold' has")).unwrap_or_else(|| panic!("{:?}", r.warnings));
    let days = (full.at.unwrap().0 - r.start.0) / DAY;
    assert!((60..=135).contains(&days), "full after {days} days");
    let end = r.moments.last().unwrap();
    assert!(end.bytes[1] <= 100 * RATE * 10 && end.bytes[0] > 200 * RATE * 10);
    assert_eq!(r.totals.refused_rows, 0);
}

#[test]
fn inserts_are_refused_once_every_volume_is_full() {
    let m = tiers(Some(20 * RATE * 10), Some(60 * RATE * 10), 0.1);
    let r = run_on(tiered(Vec::new()), &m, &options());
    assert!(r.totals.refused_rows > 250 * RATE, "{}", r.totals.refused_rows);
    assert_eq!(r.totals.inserted_rows + r.totals.refused_rows, RATE * (365 * 8 + 2) / 8);
    let refused = r.warnings.iter().find(|w| w.text.contains("inserts are refused")).unwrap();
    assert!((60..=81).contains(&((refused.at.unwrap().0 - r.start.0) / DAY)), "{refused:?}");
    // Before that room was made on the hot disk.
    assert!(r.totals.cause("move_factor").unwrap().jobs > 0);
}

#[test]
fn a_rule_that_does_nothing_is_named() {
    let recompress = Rule { when: "ts + 10 days".to_owned(), action: Action::Recompress(Codec::Lz4), fingerprint: Fingerprint(2) };
    let r = run(def("s", vec![delete("ts + 800 days", None, 1), recompress]), &options());
    let said = |what: &str| r.warnings.iter().any(|w| w.text.contains(what));
    assert!(said("ts + 800 days DELETE: it did nothing: its first rows are due at 2028-03-11"), "{:?}", r.warnings);
    assert!(said("parts are written as LZ4 already"), "{:?}", r.warnings);
}

#[test]
fn too_many_parts_are_told_and_refused_as_a_database_does() {
    let r = run(with(def("s", Vec::new()), "max_parts_to_merge_at_once", 1), &SimOptions { parts_per_day: 120, years: 0.3, ..options() });
    let said = |what: &str| r.warnings.iter().any(|w| w.text.contains(what));
    assert!(said("parts_to_delay_insert") && said("parts_to_throw_insert"), "{:?}", r.warnings);
    assert!(r.totals.refused_rows > 0);
    assert_eq!(r.totals.cause("merge").unwrap().jobs, 0);
}

#[test]
fn equal_worlds_make_equal_reports() {
    let once = || {
        let rules =
            vec![to_volume("ts + 7 days", "cold", 1), delete("ts + 20 days", Some("host = 'a'"), 2), delete("ts + 60 days", None, 3)];
        run_on(tiered(rules), &tiers(Some(50 * RATE * 10), None, 0.2), &SimOptions { years: 0.5, ..options() })
    };
    assert_eq!(once(), once());
}

#[test]
fn options_out_of_bounds_are_refused() {
    let world = World::new(&Arc::new(def("s", Vec::new())), &Manifest::empty(), Arc::new(Words)).unwrap();
    let refused = |o: SimOptions| simulate(&world, &o).unwrap_err().to_string();
    assert!(refused(SimOptions { years: 0.0, ..options() }).contains("years must be"));
    assert!(refused(SimOptions { years: f64::NAN, ..options() }).contains("years must be"));
    assert!(refused(SimOptions { rows_per_day: 0, ..options() }).contains("rows a day"));
    assert!(refused(SimOptions { share: 1.5, ..options() }).contains("the share"));
    assert!(refused(SimOptions { years: 100.0, parts_per_day: 1000, ..options() }).contains("flushes"));
    assert!(refused(SimOptions { start: Timestamp(-1), ..options() }).contains("the start"));
}

/// Streams of one file share their disks: what leaves a disk that runs short is decided over all of them, as a database does.
#[test]
fn streams_share_their_disks() {
    let manifest = tiers(Some(100_000_000), None, 0.2);
    let named = |name: &str, rules: Vec<Rule>| StreamDef { name: name.to_owned(), ..tiered(rules) };
    let world = |def: StreamDef| World::new(&Arc::new(def), &manifest, Arc::new(Words)).unwrap();
    let options = SimOptions { years: 0.25, ..options() };
    let worlds = [world(named("a", vec![])), world(named("b", vec![])), world(named("c", vec![delete("ts + 3 days", None, 1)]))];
    let reports = together(&worlds, &options).unwrap();
    reports.iter().for_each(sound);
    // Each moment that all of them wrote down.
    let flush = 10_000_000 / u64::from(options.parts_per_day) * 4;
    for (i, moment) in reports[0].moments.iter().enumerate() {
        let hot: u64 = reports.iter().map(|r| r.moments[i].bytes[0]).sum();
        assert!(hot <= 80_000_000 + flush, "{}: {hot} on a disk of which {flush} beside a fifth is free", moment.at);
    }
    assert!(reports.iter().all(|r| r.totals.refused_rows == 0));
    assert!(reports[..2].iter().all(|r| r.moments.last().unwrap().moved_bytes > 0));
    assert!(reports[0].assumptions.iter().any(|a| a.contains("shared by the 3 streams")), "{:?}", reports[0].assumptions);
    // By itself each of them would have the disk's room alone.
    let alone: u64 = worlds.iter().map(|w| simulate(w, &options).unwrap().volumes[0].peak_bytes).sum();
    assert!(alone > 100_000_000, "{alone}");
    let again = together(&worlds, &options).unwrap();
    assert_eq!(format!("{again:?}"), format!("{reports:?}"), "the same again is the same");
    let one = together(&worlds[..1], &options).unwrap();
    assert_eq!(format!("{:?}", one[0]), format!("{:?}", simulate(&worlds[0], &options).unwrap()));
}
