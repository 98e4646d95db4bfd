//! Ingest through the Rust API, bytes, merge, the eight queries, prune.

use crate::{fresh, rows, say, say_seconds};
use ebb::{Config, Database};
use ebb_storage::clock::Stopwatch;
use futures::{StreamExt, stream};
use std::path::Path;

const RUNS: usize = 4;

pub const COLUMNS: &str = "ts datetime64(6), host low_cardinality(string), region low_cardinality(string), \
     cpu float64, mem float64, disk float64, net int64";
pub const KEYS: &str = "PARTITION BY to_YYYYMM(ts) ORDER BY (host, ts)";

const QUERIES: [(&str, &str); 8] = [
    ("count", "select count(*) from cpu"),
    ("avg", "select avg(cpu), max(mem) from cpu"),
    (
        "one_host_hour",
        "select to_start_of_minute(ts) m, max(cpu) from cpu where host = 'host_42' and ts >= '2026-01-01 02:00:00' \
         and ts < '2026-01-01 03:00:00' group by m order by m",
    ),
    (
        "group_host_hour",
        "select to_start_of_hour(ts) h, host, avg(cpu), avg(mem), avg(disk) from cpu where ts >= '2026-01-01 00:00:00' \
         and ts < '2026-01-01 12:00:00' group by h, host order by h, host",
    ),
    ("group_region", "select region, to_start_of_hour(ts) h, avg(cpu), count(*) from cpu group by region, h order by region, h"),
    ("last_point", "select host, arg_max(cpu, ts) from cpu group by host order by host"),
    ("high_cpu", "select count(*) from cpu where cpu > 95 and ts >= '2026-01-01 02:00:00' and ts < '2026-01-01 14:00:00'"),
    ("top", "select ts, host, cpu from cpu order by cpu desc, ts limit 10"),
];

pub async fn run(dir: &Path, rows: usize) {
    let file = rows::file(dir, rows);
    let db = Database::open(Config::new(fresh(dir, "ebb")).with_background(false)).await.unwrap();
    db.execute(&format!("CREATE STREAM cpu ({COLUMNS}) {KEYS} SETTINGS event_time_column = 'ts'")).await.unwrap();

    let watch = Stopwatch::start();
    // The file is decoded on a thread of its own, at most two batches ahead.
    let (sender, receiver) = tokio::sync::mpsc::channel(2);
    let reading = tokio::task::spawn_blocking(move || {
        for batch in rows::read(&file) {
            if sender.blocking_send(Ok(batch)).is_err() {
                break;
            }
        }
    });
    let batches = stream::unfold(receiver, |mut r| async move { r.recv().await.map(|b| (b, r)) });
    let ingested = db.stream("cpu").append_all(batches.boxed()).await.unwrap();
    reading.await.unwrap();
    say("ingest", Some(&watch), Some(ingested), None);
    db.execute("SYSTEM FLUSH").await.unwrap();
    say("parts", None, Some(number(&db, "select count(*) from system.parts where stream = 'cpu'").await), None);

    let watch = Stopwatch::start();
    db.execute("OPTIMIZE STREAM cpu FINAL").await.unwrap();
    say("merge", Some(&watch), Some(number(&db, "select count(*) from cpu").await), None);
    say("bytes", None, None, Some(bytes(&db).await));

    for (name, sql) in QUERIES {
        let mut best = f64::MAX;
        for _ in 0..RUNS {
            let watch = Stopwatch::start();
            db.sql(sql).await.unwrap().collect().await.unwrap();
            best = best.min(watch.elapsed().as_secs_f64());
        }
        say_seconds(&format!("q_{name}"), Some(best), None, None);
    }

    let rule = "ALTER STREAM cpu MODIFY TTL ts + INTERVAL 1 DAY DELETE WHERE region = 'us-east-1'";
    db.execute(rule).await.unwrap();
    let watch = Stopwatch::start();
    db.execute("OPTIMIZE STREAM cpu FINAL").await.unwrap();
    say("prune", Some(&watch), Some(number(&db, "select count(*) from cpu").await), Some(bytes(&db).await));
    db.close().await.unwrap();
}

pub async fn bytes(db: &Database) -> u64 {
    number(db, "select sum(bytes_on_disk)::bigint from system.parts where stream = 'cpu' and active").await
}

pub async fn number(db: &Database, sql: &str) -> u64 {
    let batches = db.sql(sql).await.unwrap().collect().await.unwrap();
    let column = arrow::compute::cast(batches[0].column(0), &arrow::datatypes::DataType::UInt64).unwrap();
    arrow::array::AsArray::as_primitive::<arrow::datatypes::UInt64Type>(&column).value(0)
}

/// The one text of a query's answer.
pub async fn text(db: &Database, sql: &str) -> String {
    let batches = db.sql(sql).await.unwrap().collect().await.unwrap();
    let column = arrow::compute::cast(batches[0].column(0), &arrow::datatypes::DataType::Utf8).unwrap();
    arrow::array::AsArray::as_string::<i32>(&column).value(0).to_owned()
}
