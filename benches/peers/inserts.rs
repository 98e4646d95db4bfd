//! Inserts of one row each, acknowledged when durable: rate and latency with 1, 8 and 64 clients.

use crate::{fresh, say_seconds};
use arrow::array::{ArrayRef, Int64Array, RecordBatch, TimestampMicrosecondArray};
use ebb::{Config, Database};
use ebb_storage::clock::Stopwatch;
use std::{path::Path, sync::Arc};

/// Inserts of each client.
const EACH: usize = 500;

pub async fn run(dir: &Path) {
    let db = Database::open(Config::new(fresh(dir, "ebb-inserts"))).await.unwrap();
    for clients in [1usize, 8, 64] {
        let name = format!("small_{clients}");
        db.execute(&format!("CREATE STREAM {name} (ts datetime64(6), v int64) ORDER BY ts")).await.unwrap();
        let watch = Stopwatch::start();
        let running: Vec<_> = (0..clients)
            .map(|client| {
                let stream = db.stream(&name);
                tokio::spawn(async move {
                    let mut waits = Vec::with_capacity(EACH);
                    for i in 0..EACH {
                        let columns: [(&str, ArrayRef); 2] = [
                            ("ts", Arc::new(TimestampMicrosecondArray::from(vec![1_767_225_600_000_000 + i as i64]))),
                            ("v", Arc::new(Int64Array::from(vec![client as i64]))),
                        ];
                        let row = RecordBatch::try_from_iter(columns).unwrap();
                        let watch = Stopwatch::start();
                        stream.append(row).await.unwrap();
                        waits.push(watch.elapsed().as_secs_f64());
                    }
                    waits
                })
            })
            .collect();
        let mut waits = Vec::new();
        for client in running {
            waits.extend(client.await.unwrap());
        }
        let seconds = watch.elapsed().as_secs_f64();
        waits.sort_by(f64::total_cmp);
        say_seconds(&format!("small_inserts_{clients}"), Some(seconds), Some(waits.len() as u64), None);
        say_seconds(&format!("small_inserts_{clients}_p50"), Some(waits[waits.len() / 2]), None, None);
        say_seconds(&format!("small_inserts_{clients}_p99"), Some(waits[waits.len() * 99 / 100]), None, None);
    }
    db.close().await.unwrap();
}
