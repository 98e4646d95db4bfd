//! `ebb serve`: until SIGTERM or Ctrl-C, then a graceful stop.

use super::{args::Opening, open, say};
use crate::{Database, Error, Result, wire::Server};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

pub async fn run(opening: Opening, listen: &str) -> Result<()> {
    // Before anything is opened: a bad address should cost nothing.
    let server = Server::bind(listen).await?;
    let database = open(&opening).await?;
    until_stopped(server, database).await
}

/// Says where it listens once it is ready, serves, and closes the database.
pub async fn until_stopped(server: Server, database: Database) -> Result<()> {
    let stop = CancellationToken::new();
    let mut terminate = signal(SignalKind::terminate()).map_err(Error::from)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(Error::from)?;
    let on_signal = stop.clone();
    tokio::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        on_signal.cancel();
    });
    say(&format!("listening on {}\n", server.address()));
    server.run(database.clone(), stop).await;
    database.close().await
}
