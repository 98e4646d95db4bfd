//! COPY of the same rows as CSV, from a client over the wire.

use crate::{fresh, rows, say, stream};
use arrow::csv;
use bytes::Bytes;
use ebb::{Config, Database, wire::Server};
use ebb_storage::clock::Stopwatch;
use futures::SinkExt;
use std::{path::Path, pin::pin};
use tokio_util::sync::CancellationToken;

const PIECE_BYTES: usize = 64 << 10;

pub async fn run(dir: &Path, rows: usize) {
    let pieces = pieces(&rows::file(dir, rows));
    let db = Database::open(Config::new(fresh(dir, "ebb-copy")).with_background(false)).await.unwrap();
    db.execute(&format!("CREATE STREAM cpu ({}) {} SETTINGS event_time_column = 'ts'", stream::COLUMNS, stream::KEYS)).await.unwrap();
    let server = Server::bind("127.0.0.1:0").await.unwrap();
    let (port, stop) = (server.address().port(), CancellationToken::new());
    let serving = tokio::spawn(server.run(db.clone(), stop.clone()));
    let to = format!("host=127.0.0.1 port={port} user=ebb dbname=default");
    let (client, connection) = tokio_postgres::connect(&to, tokio_postgres::NoTls).await.unwrap();
    let connection = tokio::spawn(connection);

    let watch = Stopwatch::start();
    let mut sink = pin!(client.copy_in::<_, Bytes>("COPY cpu FROM STDIN (FORMAT csv)").await.unwrap());
    for piece in pieces {
        sink.send(piece).await.unwrap();
    }
    let copied = sink.finish().await.unwrap();
    say("ingest_copy", Some(&watch), Some(copied), None);

    drop(client);
    connection.await.unwrap().unwrap();
    stop.cancel();
    serving.await.unwrap();
    db.close().await.unwrap();
}

fn pieces(file: &Path) -> Vec<Bytes> {
    let mut pieces = Vec::new();
    for batch in rows::read(file) {
        let mut text = Vec::new();
        let mut writer =
            csv::WriterBuilder::new().with_header(false).with_timestamp_format("%Y-%m-%d %H:%M:%S%.f".to_owned()).build(&mut text);
        writer.write(&batch).unwrap();
        drop(writer);
        let text = Bytes::from(text);
        pieces.extend((0..text.len()).step_by(PIECE_BYTES).map(|at| text.slice(at..text.len().min(at + PIECE_BYTES))));
    }
    pieces
}
