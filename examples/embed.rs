//! Ebb inside a program: create a stream, append rows as Arrow batches, query them, let them age.
//!
//! `cargo run --example embed`

use arrow::{
    array::{Float64Array, RecordBatch, StringArray, TimestampMicrosecondArray},
    datatypes::{DataType, Field, Schema, TimeUnit},
    util::pretty::pretty_format_batches,
};
use ebb::{Config, Database, Result};
use ebb_engine::Clock;
use std::sync::Arc;

#[tokio::main]
async fn main() -> Result<()> {
    let dir = std::env::temp_dir().join(format!("ebb-embed-{}", std::process::id()));
    // A simulated clock: it stands still until it is told to go on.
    let clock = Clock::simulated("2026-01-01T00:00:00Z".parse()?);
    let db = Database::open(Config::new(&dir).with_clock(clock)).await?;

    db.execute(
        "CREATE STREAM cpu (ts datetime, host string, load float64)
         PARTITION BY to_YYYYMMDD(ts) ORDER BY (host, ts)
         TTL ts + INTERVAL 7 DAY
         SETTINGS event_time_column = 'ts'",
    )
    .await?;

    db.stream("cpu").append(batch()?).await?;
    let rows = db.sql("SELECT host, count(*) AS n, avg(load) AS load FROM cpu GROUP BY host ORDER BY host").await?.collect().await?;
    println!("{}", pretty_format_batches(&rows)?);

    db.execute("SYSTEM ADVANCE CLOCK INTERVAL '8 days'").await?;
    db.execute("SYSTEM SETTLE").await?;
    let left = db.sql("SELECT count(*) AS left_after_a_week FROM cpu").await?.collect().await?;
    println!("{}", pretty_format_batches(&left)?);
    db.close().await
}

/// An hour of two hosts, a row a minute.
fn batch() -> Result<RecordBatch> {
    let start = 1_767_225_600_000_000i64;
    let minutes = 0..60i64;
    let ts = minutes.clone().flat_map(|m| [start + m * 60_000_000; 2]);
    let schema = Schema::new(vec![
        Field::new("ts", DataType::Timestamp(TimeUnit::Microsecond, None), false),
        Field::new("host", DataType::Utf8, false),
        Field::new("load", DataType::Float64, false),
    ]);
    let columns: Vec<Arc<dyn arrow::array::Array>> = vec![
        Arc::new(TimestampMicrosecondArray::from_iter_values(ts)),
        Arc::new(StringArray::from_iter_values(minutes.clone().flat_map(|_| ["a", "b"]))),
        Arc::new(Float64Array::from_iter_values(minutes.flat_map(|m| [m as f64 / 10.0, 1.0]))),
    ];
    Ok(RecordBatch::try_new(Arc::new(schema), columns)?)
}
