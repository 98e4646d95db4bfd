//! `ebb simulate` as a program: what it prints, what it refuses, and that it leaves the machine alone.

use std::{fs, path::Path, process::Command};

const POLICY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/policy.sql");

/// Exit code, standard output, standard error.
fn simulate(args: &[&str]) -> (i32, String, String) {
    let done = Command::new(env!("CARGO_BIN_EXE_ebb")).arg("simulate").args(args).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (done.status.code().unwrap(), text(&done.stdout), text(&done.stderr))
}

/// A file of these statements, simulated for a month.
fn of(dir: &Path, sql: &str) -> (i32, String, String) {
    let file = dir.join("policy.sql");
    fs::write(&file, sql).unwrap();
    simulate(&["--file", file.to_str().unwrap(), "--years", "0.1"])
}

const STREAM: &str = "CREATE STREAM s (ts datetime, v float64) PARTITION BY to_YYYYMM(ts) ORDER BY ts\nTTL ts + INTERVAL 10 DAY DELETE;\n";

#[test]
fn the_example_tells_where_its_bytes_are() {
    let dir = tempfile::tempdir().unwrap();
    let svg = dir.path().join("chart.svg");
    let (code, out, err) = simulate(&["--file", POLICY, "--rate", "20e6", "--years", "1.5", "--svg", svg.to_str().unwrap()]);
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    assert!(out.starts_with("default.requests, 2026-01-01 to 2027-07-02, storage policy 'tiered'\n"), "{out}");
    for told in [
        "20000000 rows a day",
        "matches 50 % of due rows",
        "disk 'archive' without end",
        "write amplification",
        "rule ts + INTERVAL '7 day'",
    ] {
        assert!(out.contains(told), "no '{told}' in:\n{out}");
    }
    assert!(fs::read_to_string(&svg).unwrap().ends_with("</svg>\n"));
    // Nothing of the definitions was carried out.
    assert!(!Path::new("/mnt/ssd/ebb").exists());
}

#[test]
fn json_has_the_numbers_of_the_text() {
    let args = ["--file", POLICY, "--years", "1", "--rate", "1000000", "--row-bytes", "100", "--share", "0.25", "--json"];
    let (code, out, _) = simulate(&args);
    assert_eq!(code, 0);
    let value: serde_json::Value = serde_json::from_str(&out).unwrap();
    let stream = &value["streams"][0];
    let last = stream["moments"].as_array().unwrap().last().unwrap();
    assert_eq!(last["at"], "2027-01-01T06:00:00Z");
    let bytes = |volume: &str| last["bytes"][volume].as_u64().unwrap();
    // Fourteen days of rows are hot, a quarter of them gone after seven; a day more until the last row of a part is due.
    assert!((1_200_000_000..1_500_000_000).contains(&bytes("hot")), "{last}");
    // Seventy-five days are warm, from the sixtieth on a third smaller; the rest is cold.
    assert!((4_500_000_000..6_000_000_000).contains(&bytes("warm")), "{last}");
    assert!((12_000_000_000..15_000_000_000).contains(&bytes("cold")), "{last}");
    let totals = &stream["totals"];
    let rows = totals["inserted_rows"].as_u64().unwrap() - totals["removed_rows"].as_u64().unwrap();
    assert_eq!(last["rows"].as_u64(), Some(rows));
    // The same again is the same.
    assert_eq!(simulate(&args).1, out);
}

#[test]
fn a_changed_rule_counts_and_every_stream_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let sql = format!("{STREAM}ALTER STREAM s MODIFY TTL ts + INTERVAL 5 DAY DELETE;\nCREATE STREAM a (ts datetime) ORDER BY ts;");
    let (code, out, err) = of(dir.path(), &sql);
    assert_eq!((code, err.as_str()), (0, ""));
    assert!(out.starts_with("default.a, ") && out.contains("\ndefault.s, "), "{out}");
    assert!(out.contains("rule ts + INTERVAL '5 day' DELETE: from 2026-01-0") && !out.contains("10 day"), "{out}");
    assert!(out.contains("warning: no rule removes rows"), "{out}");
}

#[test]
fn what_is_wrong_with_a_file_is_named_with_its_line() {
    let dir = tempfile::tempdir().unwrap();
    let name = dir.path().join("policy.sql").display().to_string();
    let refused = |sql: &str, line: usize, statement: &str, why: &str| {
        let (code, out, err) = of(dir.path(), sql);
        assert_eq!((code, out.as_str()), (2, ""), "{err}");
        assert!(err.contains(&format!("ebb: {name}:{line}: {statement}")) && err.contains(why), "{err}");
    };
    refused(&format!("{STREAM}-- more\nINSERT INTO s VALUES (1, 2);"), 4, "INSERT INTO s VALUES", "definitions only");
    refused(&format!("{STREAM}ALTER STREAM s ADD COLUMN w int;"), 3, "ALTER STREAM s ADD COLUMN w int", "definitions only");
    refused("\nSELECT 1;", 2, "SELECT 1", "definitions only");
    refused(&STREAM.replace("10 DAY", "10 DAYYS"), 2, "CREATE STREAM s", "DAYYS");
    refused(&STREAM.replace("ts + INTERVAL", "tz + INTERVAL"), 2, "CREATE STREAM s", "did you mean");
    refused(&format!("{STREAM}ALTER STREAM s MODIFY SETTING storage_policy = 'none_such';"), 3, "ALTER STREAM s", "none_such");
    let (code, _, err) = of(dir.path(), "CREATE DISK d disk(type = 'local', path = '/nowhere/d');");
    assert!(code == 2 && err.contains("no CREATE STREAM"), "{err}");
    let (code, _, err) = simulate(&["--file", "/nowhere/policy.sql"]);
    assert!(code == 2 && err.contains("/nowhere/policy.sql"), "{err}");
    assert!(!Path::new("/nowhere").exists());
}

#[test]
fn arguments_out_of_bounds_are_usage() {
    for args in [["--years", "0"], ["--years", "1000"], ["--rate", "many"], ["--share", "2"], ["--start", "soon"], ["--parts-per-day", "0"]]
    {
        let (code, _, err) = simulate(&["--file", POLICY, args[0], args[1]]);
        assert!(code == 2 && !err.is_empty(), "{args:?}: {err}");
    }
    assert_eq!(simulate(&[]).0, 2);
}
