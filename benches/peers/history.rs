//! What history costs: to queries and merges that do not ask for it, to those that do, in bytes, and when it is forgotten.

use crate::{fresh, rows, say_seconds, stream};
use ebb::{Config, Database};
use ebb_storage::clock::{Clock, Stopwatch, Timestamp};
use parquet::file::reader::{FileReader, SerializedFileReader};
use std::{fs::File, path::Path};

/// Batches of the file, each a record.
const RECORDS: usize = 160;
const RUNS: usize = 6;
const SNAPSHOTS: usize = 10_000;
const REFS: usize = 100;
/// 2026-06-01 00:00:00 UTC.
const NOW: Timestamp = Timestamp(1_780_272_000_000_000);

const QUERIES: [(&str, &str); 3] = [
    ("sums", "select count(*), sum(net), avg(cpu) from {s} where mem >= 0"),
    ("groups", "select region, to_start_of_hour(ts) h, avg(cpu), count(*) from {s} group by region, h"),
    ("host", "select max(cpu), count(*) from {s} where host = 'host_42'"),
];

pub async fn run(dir: &Path, rows: usize) {
    let file = rows::file(dir, rows);
    let config = Config::new(fresh(dir, "ebb-history")).with_background(false).with_clock(Clock::simulated(NOW));
    let db = Database::open(config).await.unwrap();
    // The same rows: with every snapshot kept, with none kept but the head, and the older half by itself.
    for (name, records, settings) in
        [("kept", RECORDS, ""), ("plain", RECORDS, ", history_max_snapshot_age_ms = 1"), ("half", RECORDS / 2, "")]
    {
        let keys = format!("{} SETTINGS event_time_column = 'ts'{settings}", stream::KEYS);
        db.execute(&format!("CREATE STREAM {name} ({}) {keys}", stream::COLUMNS)).await.unwrap();
        for batch in rows::read(&file).take(records) {
            db.stream(name).append(batch).await.unwrap();
        }
        db.execute(&format!("SYSTEM FLUSH {name}")).await.unwrap();
    }
    db.execute("SYSTEM ADVANCE CLOCK INTERVAL '1 second'").await.unwrap();
    db.execute("CALL expire_snapshots('plain')").await.unwrap();
    for name in ["kept", "plain", "half"] {
        let watch = Stopwatch::start();
        db.execute(&format!("OPTIMIZE STREAM {name} FINAL")).await.unwrap();
        let seconds = watch.elapsed().as_secs_f64();
        let part = stream::text(&db, &format!("select path from system.parts where stream = '{name}' and active")).await;
        let (of_sns, all) = sn_bytes(Path::new(&part));
        say_seconds(&format!("history_merge_{name}"), Some(seconds), Some(of_sns), Some(all));
    }
    // By turns, so that what else the machine does falls on all alike.
    let middle = RECORDS / 2;
    let head = stream::number(&db, "select max(sn) from snapshots('kept')").await;
    let reads = [
        ("head_kept", "kept".to_owned()),
        ("head_plain", "plain".to_owned()),
        ("cut_head", format!("kept version as of {head}")),
        ("cut_half", format!("kept version as of {middle}")),
        ("head_half", "half".to_owned()),
    ];
    for (query, sql) in QUERIES {
        let mut best = [f64::MAX; 5];
        for _ in 0..RUNS {
            for ((_, from), best) in reads.iter().zip(&mut best) {
                let watch = Stopwatch::start();
                db.sql(&sql.replace("{s}", from)).await.unwrap().collect().await.unwrap();
                *best = best.min(watch.elapsed().as_secs_f64());
            }
        }
        for ((name, _), seconds) in reads.iter().zip(best) {
            say_seconds(&format!("history_{query}_{name}"), Some(seconds), None, None);
        }
    }
    expiry(&db).await;
    db.close().await.unwrap();
}

/// Ten thousand snapshots, a hundred refs, all of it too old but what the refs hold.
async fn expiry(db: &Database) {
    db.execute("CREATE STREAM many (ts datetime, v int64)").await.unwrap();
    for n in 0..SNAPSHOTS {
        db.execute(&format!("INSERT INTO many VALUES (now(), {n})")).await.unwrap();
    }
    for n in 0..REFS {
        let (kind, retention) = if n % 2 == 0 { ("TAG", "") } else { ("BRANCH", " WITH SNAPSHOT RETENTION 5 SNAPSHOTS") };
        let at = (n + 1) * SNAPSHOTS / REFS;
        db.execute(&format!("ALTER STREAM many CREATE {kind} r{n} AS OF VERSION {at}{retention}")).await.unwrap();
    }
    db.execute("SYSTEM FLUSH many").await.unwrap();
    db.execute("SYSTEM ADVANCE CLOCK INTERVAL '6 days'").await.unwrap();
    let watch = Stopwatch::start();
    let removed = stream::number(db, "CALL expire_snapshots('many')").await;
    say_seconds("history_expire_10000", Some(watch.elapsed().as_secs_f64()), Some(removed), None);
}

/// Compressed bytes of `_tp_sn` in a part's file, and of all columns.
fn sn_bytes(part: &Path) -> (u64, u64) {
    let reader = SerializedFileReader::new(File::open(part).unwrap()).unwrap();
    let columns = reader.metadata().row_groups().iter().flat_map(|g| g.columns());
    columns.fold((0, 0), |(sns, all), c| {
        let bytes = c.compressed_size() as u64;
        (sns + if c.column_path().string() == "_tp_sn" { bytes } else { 0 }, all + bytes)
    })
}
