//! Parts are plain Parquet: other programs read them, whatever the codec and however it came about.

use crate::python::{environment, file, run};
use ebb::{Config, Database};
use ebb_storage::clock::{Clock, Timestamp};
use std::process::Command;

/// proves T9, T18
#[tokio::test(flavor = "multi_thread")]
async fn duckdb_and_pyarrow_read_every_codec() {
    let Some(python) = environment("readers", "readers-requirements.txt", "duckdb, pyarrow.parquet") else { return };
    let dir = tempfile::tempdir().unwrap();
    let clock = Clock::simulated(Timestamp::from_secs(1_772_323_200));
    let db = Database::open(Config::new(dir.path()).with_clock(clock).with_background(false)).await.unwrap();
    let codecs = ["LZ4HC(10)", "ZSTD(9)", "LZ4", "SNAPPY", "GZIP(6)", "BROTLI(4)"];
    for (i, codec) in codecs.iter().enumerate() {
        let columns = "d datetime, k int64, host string, x nullable(float64), own string CODEC(ZSTD(3))";
        // Written in one codec and recompressed to another; and written in it at once.
        let before = if *codec == "LZ4" { "ZSTD(1)" } else { "LZ4" };
        let rule = format!("TTL d + INTERVAL 1 DAY RECOMPRESS CODEC({codec})");
        for (name, rules, written) in [(format!("recoded_{i}"), rule.as_str(), before), (format!("written_{i}"), "", *codec)] {
            let create = format!(
                "CREATE STREAM {name} ({columns}) PARTITION BY tuple() ORDER BY (k, host) {rules} SETTINGS default_codec = '{written}'"
            );
            db.execute(&create).await.unwrap();
            let rows = "SELECT '2026-01-01'::timestamp + x * INTERVAL '1 second', x, 'host_' || x % 7, CASE WHEN x % 5 = 0 THEN NULL ELSE x / 3.0 END, 'text ' || x \
                        FROM generate_series(1, 40000) AS t(x)";
            db.execute(&format!("INSERT INTO {name} {rows}")).await.unwrap();
        }
    }
    db.execute("SYSTEM SETTLE").await.unwrap();
    let parts = db
        .sql("SELECT stream, compression_codec, path FROM system.parts WHERE active ORDER BY stream")
        .await
        .unwrap()
        .collect()
        .await
        .unwrap();
    let lines: Vec<String> = parts.iter().flat_map(crate::support::lines).collect();
    assert_eq!(lines.len(), 2 * codecs.len(), "{lines:?}");
    let mut paths = Vec::new();
    for line in &lines {
        let [name, codec, path] = line.split('|').collect::<Vec<_>>()[..] else { panic!("{line}") };
        let wanted: usize = name.rsplit('_').next().unwrap().parse().unwrap();
        assert_eq!(codec, codecs[wanted], "{name}");
        paths.push(path.to_owned());
    }
    let out = run(Command::new(&python).arg(file("readers.py")).args(&paths)).unwrap();
    let (text, errors) = (String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    assert!(out.status.success(), "{text}\n{errors}");
    assert_eq!(text.lines().collect::<Vec<_>>(), vec!["ok 40000 800020000 143"; paths.len()], "{errors}");
}
