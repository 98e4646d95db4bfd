//! The program killed in the middle of many writers, again and again on one data directory.
//!
//! A unit is what one INSERT, COPY or transaction writes: its rows carry its number and a running index. Each unit is acknowledged,
//! or it is not known what became of it; after a restart it is there whole or not at all, and from then on for ever.

use crate::program::{Serving, check, connect};
use bytes::Bytes;
use futures::SinkExt;
use parking_lot::Mutex;
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write,
    net::SocketAddr,
    pin::pin,
    sync::Arc,
};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio_postgres::Client;

const ROUNDS: i64 = 5;
/// Killed after so many acknowledgements of a round, some more for each further one, and at least one of each writer's.
const ACKNOWLEDGED_MIN: usize = 24;
const WRITERS: [Writer; 6] = [Writer::Insert, Writer::Insert, Writer::Copy, Writer::Copy, Writer::LargeCopy, Writer::Block];

#[derive(Debug, Clone, Copy, PartialEq)]
enum Writer {
    Insert,
    Copy,
    /// Through staged parts.
    LargeCopy,
    /// A transaction over two streams.
    Block,
}

impl Writer {
    /// Of the unit with this number.
    fn of(unit: i64) -> Self {
        WRITERS[(unit / 1000) as usize % WRITERS.len()]
    }

    fn rows(self, unit: i64) -> i64 {
        match self {
            Self::Insert | Self::Block => 1 + unit % 7,
            Self::Copy => 1 + unit % 300,
            Self::LargeCopy => 66_000,
        }
    }
}

/// By round, writer and count.
fn number(round: i64, writer: usize, count: i64) -> i64 {
    (round * WRITERS.len() as i64 + writer as i64) * 1000 + count
}

#[derive(Default)]
struct Told {
    tried: BTreeSet<i64>,
    acknowledged: BTreeSet<i64>,
}

async fn write(client: &Client, unit: i64) -> Result<(), tokio_postgres::Error> {
    let writer = Writer::of(unit);
    let n = writer.rows(unit);
    let day = |i: i64| format!("2026-01-{:02} 00:00:00", 1 + (unit + i) % 3);
    let values = (0..n).map(|i| format!("({unit}, {i}, '{}')", day(i))).collect::<Vec<_>>().join(", ");
    match writer {
        Writer::Insert => _ = client.execute(&format!("INSERT INTO s VALUES {values}"), &[]).await?,
        Writer::Block => {
            client.batch_execute("BEGIN").await?;
            client.batch_execute(&format!("INSERT INTO s VALUES {values}")).await?;
            client.batch_execute(&format!("INSERT INTO t VALUES {values}")).await?;
            client.batch_execute("COMMIT").await?;
        }
        Writer::Copy | Writer::LargeCopy => {
            let mut text = String::new();
            (0..n).for_each(|i| writeln!(text, "{unit}\t{i}\t{}", day(i)).unwrap());
            let mut sink = pin!(client.copy_in::<_, Bytes>("COPY s FROM STDIN").await?);
            // In pieces, so that the end can come between them.
            for piece in text.into_bytes().chunks(64 * 1024) {
                sink.send(Bytes::copy_from_slice(piece)).await?;
            }
            sink.finish().await?;
        }
    }
    Ok(())
}

/// Writes units until the connection breaks.
async fn write_on(address: SocketAddr, round: i64, writer: usize, told: Arc<Mutex<Told>>, acknowledge: UnboundedSender<usize>) {
    let Ok(client) = connect(address).await else { return };
    for count in 0..1000 {
        let unit = number(round, writer, count);
        told.lock().tried.insert(unit);
        match write(&client, unit).await {
            Ok(()) => {
                told.lock().acknowledged.insert(unit);
                // Nobody counts any more once the program is killed.
                let _ = acknowledge.send(writer);
            }
            Err(e) => {
                assert!(e.as_db_error().is_none() || client.is_closed(), "unit {unit}: {e:?}");
                return;
            }
        }
    }
}

/// The units in a stream with their rows, each of them whole.
async fn units(client: &Client, stream: &str) -> BTreeSet<i64> {
    let sql = format!("SELECT unit, count(*), count(DISTINCT i), min(i), max(i) FROM {stream} GROUP BY unit");
    let found = client.query(&sql, &[]).await.unwrap();
    let found: BTreeMap<i64, [i64; 4]> = found.iter().map(|r| (r.get(0), [r.get(1), r.get(2), r.get(3), r.get(4)])).collect();
    for (unit, counts) in &found {
        let n = Writer::of(*unit).rows(*unit);
        assert_eq!(*counts, [n, n, 0, n - 1], "{stream}: unit {unit} is not there exactly once");
    }
    found.into_keys().collect()
}

/// proves D1, D2; I9, I11
#[tokio::test(flavor = "multi_thread")]
async fn what_was_acknowledged_outlives_kill_9_and_the_rest_is_whole_or_absent() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().join("data");
    let told = Arc::new(Mutex::new(Told::default()));
    let mut settled: BTreeSet<i64> = BTreeSet::new();
    for round in 0..=ROUNDS {
        let mut serving = Serving::start(&dir, &[]);
        let client = serving.connect().await.unwrap();
        for stream in ["s", "t"] {
            let create = "(unit int64, i int64, ts datetime64(3)) PARTITION BY to_start_of_day(ts) ORDER BY (unit, i)";
            let sql = format!("CREATE STREAM IF NOT EXISTS {stream} {create} SETTINGS flush_threshold_count = 300");
            client.batch_execute(&sql).await.unwrap();
        }
        let (there, both) = (units(&client, "s").await, units(&client, "t").await);
        {
            let told = told.lock();
            assert_eq!(told.acknowledged.difference(&there).count(), 0, "round {round}: acknowledged rows are lost");
            assert_eq!(there.difference(&told.tried).count(), 0, "round {round}: rows that nobody wrote");
            assert_eq!(settled.difference(&there).count(), 0, "round {round}: what was there is gone");
            // What was neither acknowledged nor there after the restart does not come back.
            let late: Vec<_> = there.difference(&settled).filter(|u| **u < number(round - 1, 0, 0)).collect();
            assert!(late.is_empty(), "round {round}: {late:?} came later");
        }
        let blocks: BTreeSet<i64> = there.iter().copied().filter(|u| Writer::of(*u) == Writer::Block).collect();
        assert_eq!(blocks, both, "round {round}: a transaction is in one stream only");
        settled = there;
        if round < ROUNDS {
            let (acknowledge, mut acknowledged) = unbounded_channel();
            let writers: Vec<_> = (0..WRITERS.len())
                .map(|w| tokio::spawn(write_on(serving.address(), round, w, told.clone(), acknowledge.clone())))
                .collect();
            drop(acknowledge);
            let mut of_each = [0; WRITERS.len()];
            while of_each.iter().sum::<usize>() < ACKNOWLEDGED_MIN + 7 * round as usize || of_each.contains(&0) {
                of_each[acknowledged.recv().await.unwrap()] += 1;
            }
            serving.kill();
            for writer in writers {
                writer.await.unwrap();
            }
        } else {
            serving.kill();
        }
        drop(serving);
        let (code, said) = check(&dir);
        assert_eq!(code, 0, "round {round}: {said}");
    }
    let told = told.lock();
    assert!(told.acknowledged.len() >= ROUNDS as usize * ACKNOWLEDGED_MIN);
}
