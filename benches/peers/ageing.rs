//! What rules cost: prunes of few and many rows, lying together and scattered, recompression beside the codec alone, drops, ALTER, and
//! rounds in which nothing is due.

use crate::{fresh, rows, say, say_seconds, stream};
use ebb::{Config, Database};
use ebb_storage::{
    clock::{Clock, Stopwatch, Timestamp},
    codec::Codec,
};
use futures::{StreamExt, stream as batches};
use parquet::{
    column::page::PageReader,
    file::{
        reader::{FileReader, SerializedFileReader},
        serialized_reader::SerializedPageReader,
    },
};
use std::{fs::File, io::Write, path::Path, process::Command, sync::Arc};

const SHARES: [usize; 3] = [1, 25, 50];
const PARTITIONS: usize = 365;
const MANY_PARTS: usize = 10_000;
const IDLE_ROUNDS: usize = 100;
/// 2026-06-01 00:00:00 UTC: the whole file is older than a day.
const NOW: Timestamp = Timestamp(1_780_272_000_000_000);

pub async fn run(dir: &Path, rows: usize) {
    for share in SHARES {
        // Hosts are the first key: those of the first names lie together.
        let mut hosts: Vec<String> = (0..rows::HOSTS).map(|i| format!("host_{i}")).collect();
        hosts.sort();
        let together = format!("host < '{}'", hosts[rows::HOSTS * share / 100]);
        prune(dir, rows, &format!("prune_together_{share}"), &together).await;
        prune(dir, rows, &format!("prune_scattered_{share}"), &format!("net % 100 < {share}")).await;
    }
    recompressions(dir, rows).await;
    drops(dir).await;
    many_parts(dir).await;
    memory(dir);
}

pub async fn recompressions(dir: &Path, rows: usize) {
    for level in [3, 9] {
        recompress(dir, rows, level).await;
    }
}

/// All rows in one part.
async fn merged(dir: &Path, rows: usize) -> Database {
    let file = rows::file(dir, rows);
    let config = Config::new(fresh(dir, "ebb-ageing")).with_background(false).with_clock(Clock::simulated(NOW));
    let db = Database::open(config).await.unwrap();
    db.execute(&format!("CREATE STREAM cpu ({}) {} SETTINGS event_time_column = 'ts'", stream::COLUMNS, stream::KEYS)).await.unwrap();
    let read: Vec<_> = rows::read(&file).map(Ok).collect();
    db.stream("cpu").append_all(batches::iter(read).boxed()).await.unwrap();
    db.execute("OPTIMIZE STREAM cpu FINAL").await.unwrap();
    db
}

async fn prune(dir: &Path, rows: usize, work: &str, only: &str) {
    let db = merged(dir, rows).await;
    db.execute(&format!("ALTER STREAM cpu MODIFY TTL ts + INTERVAL 1 DAY DELETE WHERE {only}")).await.unwrap();
    let watch = Stopwatch::start();
    db.execute("OPTIMIZE STREAM cpu FINAL").await.unwrap();
    let seconds = watch.elapsed().as_secs_f64();
    say_seconds(work, Some(seconds), Some(stream::number(&db, "select count(*) from cpu").await), Some(stream::bytes(&db).await));
    db.close().await.unwrap();
}

async fn recompress(dir: &Path, rows: usize, level: u8) {
    let db = merged(dir, rows).await;
    let part = stream::text(&db, "select path from system.parts where stream = 'cpu' and active").await;
    say_seconds(&format!("codec_zstd_{level}"), Some(codec_alone(Path::new(&part), level, None)), None, None);
    let written = codec_alone(Path::new(&part), level, Some(&fresh(dir, "codec")));
    say_seconds(&format!("codec_written_zstd_{level}"), Some(written), None, None);
    db.execute(&format!("ALTER STREAM cpu MODIFY TTL ts + INTERVAL 1 DAY RECOMPRESS CODEC(ZSTD({level}))")).await.unwrap();
    let watch = Stopwatch::start();
    db.execute("OPTIMIZE STREAM cpu FINAL").await.unwrap();
    let seconds = watch.elapsed().as_secs_f64();
    let codec = stream::text(&db, "select compression_codec from system.parts where stream = 'cpu' and active").await;
    assert_eq!(codec, Codec::Zstd(level).to_string());
    say_seconds(
        &if level == 9 { "recompress".to_owned() } else { format!("recompress_zstd_{level}") },
        Some(seconds),
        Some(rows as u64),
        Some(stream::bytes(&db).await),
    );
    db.close().await.unwrap();
}

/// Pages of the part decompressed and compressed again by the codec, on two threads, and nothing else; or written to files of `to`, which
/// are synced as they grow.
fn codec_alone(part: &Path, level: u8, to: Option<&Path>) -> f64 {
    const SYNC_EVERY_BYTES: usize = 8 << 20;
    let reader = SerializedFileReader::new(File::open(part).unwrap()).unwrap();
    let metadata = reader.metadata();
    let chunks: Vec<_> = metadata.row_groups().iter().flat_map(|g| g.columns().iter().map(move |c| (c, g.num_rows() as usize))).collect();
    let queue = parking_lot::Mutex::new(chunks.into_iter());
    let watch = Stopwatch::start();
    std::thread::scope(|threads| {
        for n in 0..2 {
            let queue = &queue;
            let mut sink = to.map(|dir| {
                std::fs::create_dir_all(dir).unwrap();
                File::create(dir.join(n.to_string())).unwrap()
            });
            threads.spawn(move || {
                // Of its own: a file has one place at a time.
                let file = Arc::new(File::open(part).unwrap());
                let mut unsynced = 0;
                let mut zstd = zstd::bulk::Compressor::new(i32::from(level)).unwrap();
                loop {
                    let Some((column, rows)) = queue.lock().next() else { break };
                    let mut pages = SerializedPageReader::new(file.clone(), column, rows, None).unwrap();
                    while let Some(page) = pages.get_next_page().unwrap() {
                        let page = std::hint::black_box(zstd.compress(page.buffer()).unwrap());
                        let Some(sink) = &mut sink else { continue };
                        sink.write_all(&page).unwrap();
                        unsynced += page.len();
                        if unsynced >= SYNC_EVERY_BYTES {
                            unsynced = 0;
                            sink.sync_data().unwrap();
                        }
                    }
                }
                if let Some(sink) = sink {
                    sink.sync_data().unwrap();
                }
            });
        }
    });
    watch.elapsed().as_secs_f64()
}

/// Whole partitions by age.
async fn drops(dir: &Path) {
    let config = Config::new(fresh(dir, "ebb-drops")).with_background(false).with_clock(Clock::simulated(NOW));
    let db = Database::open(config).await.unwrap();
    db.execute("CREATE STREAM days (d date, v int64) PARTITION BY d ORDER BY v").await.unwrap();
    let days = format!("INSERT INTO days SELECT '2024-01-01'::date + (x % {PARTITIONS})::int, x FROM generate_series(1, 3650000) AS t(x)");
    db.execute(&days).await.unwrap();
    db.execute("SYSTEM FLUSH").await.unwrap();
    db.execute("ALTER STREAM days MODIFY TTL d + INTERVAL 30 DAY").await.unwrap();
    db.execute("ALTER STREAM days MATERIALIZE TTL").await.unwrap();
    let before = read_and_written();
    let watch = Stopwatch::start();
    db.execute("OPTIMIZE STREAM days FINAL").await.unwrap();
    let seconds = watch.elapsed().as_secs_f64();
    let left = stream::number(&db, "select count(*) from days").await;
    assert_eq!(left, 0);
    let read =
        stream::number(&db, "select sum(bytes_read)::bigint from system.part_log where stream = 'days' and event_type = 'DropPart'").await;
    say_seconds("drop", Some(seconds), Some(left), Some(read));
    say_seconds("drop_io", None, None, Some(read_and_written() - before));
    db.close().await.unwrap();
}

/// ALTER of a stream of many parts, and rounds without work on it.
pub async fn many_parts(dir: &Path) {
    let config = Config::new(fresh(dir, "ebb-many-parts")).with_background(false).with_clock(Clock::simulated(NOW));
    let db = Database::open(config).await.unwrap();
    db.execute("CREATE STREAM many (d datetime, k int64) PARTITION BY k ORDER BY d").await.unwrap();
    db.execute(&format!("INSERT INTO many SELECT '2026-05-30'::timestamp, x % {MANY_PARTS} FROM generate_series(1, 100000) AS t(x)"))
        .await
        .unwrap();
    db.execute("SYSTEM FLUSH").await.unwrap();
    db.execute("SYSTEM SETTLE").await.unwrap();
    let parts = stream::number(&db, "select count(*) from system.parts where stream = 'many' and active").await;
    let before = read_and_written();
    let watch = Stopwatch::start();
    db.execute("ALTER STREAM many MODIFY TTL d + INTERVAL 1 YEAR").await.unwrap();
    say_seconds("alter_10000_parts", Some(watch.elapsed().as_secs_f64()), Some(parts), Some(read_and_written() - before));
    db.execute("SYSTEM SETTLE").await.unwrap();
    let before = read_and_written();
    let watch = Stopwatch::start();
    for _ in 0..IDLE_ROUNDS {
        db.execute("SYSTEM SETTLE").await.unwrap();
    }
    say("idle_100_rounds", Some(&watch), Some(parts), Some(read_and_written() - before));
    db.close().await.unwrap();
}

/// The most memory that a program needs which opens the database of one large part and prunes it.
fn memory(dir: &Path) {
    let program = std::env::current_exe().unwrap();
    let done = Command::new(program).arg("--dir").arg(dir).args(["--only", "prune_memory"]).status().unwrap();
    assert!(done.success());
}

/// In a process of its own: the stream of the last bench, without half of its rows.
pub async fn prune_memory(dir: &Path) {
    let config = Config::new(dir.join("ebb-ageing")).with_background(false).with_clock(Clock::simulated(NOW));
    let db = Database::open(config).await.unwrap();
    db.execute("ALTER STREAM cpu MODIFY TTL ts + INTERVAL 1 DAY DELETE WHERE net % 2 = 0").await.unwrap();
    db.execute("OPTIMIZE STREAM cpu FINAL").await.unwrap();
    say_seconds("prune_memory", None, None, Some(high_water()));
    db.close().await.unwrap();
}

/// Bytes that this process has read and written, of files and otherwise.
fn read_and_written() -> u64 {
    let io = std::fs::read_to_string("/proc/self/io").unwrap_or_default();
    let of = |name: &str| io.lines().find_map(|l| l.strip_prefix(name)?.trim().parse::<u64>().ok()).unwrap_or(0);
    of("rchar:") + of("wchar:")
}

/// The most memory this process had.
fn high_water() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let kib = status.lines().find_map(|l| l.strip_prefix("VmHWM:")?.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}
