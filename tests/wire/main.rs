//! The PostgreSQL wire as clients see it: a server in this process over a simulated clock, spoken to by tokio-postgres, psql and
//! Python's drivers; with disks on an S3 server, too. No test waits for time to pass.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod catalogue;
mod clients;
mod copy;
mod protocol;
mod python;
mod raw;
mod readers;
mod s3;
#[path = "../it/script.rs"]
mod script;
mod scripts;
#[path = "../it/support.rs"]
#[allow(dead_code, reason = "shared with other tests")]
mod support;
mod values;

use ebb::{Config, Database, wire::Server};
use ebb_storage::clock::{Clock, Timestamp};
use std::{net::SocketAddr, path::Path};
use tokio_postgres::{Client, NoTls};
use tokio_util::sync::CancellationToken;

/// A server that stops as it is dropped.
pub struct Running {
    pub address: SocketAddr,
    pub stop: CancellationToken,
    pub served: tokio::task::JoinHandle<ebb::Result<()>>,
    dir: tempfile::TempDir,
    clock: Clock,
}

type Served = (SocketAddr, CancellationToken, tokio::task::JoinHandle<ebb::Result<()>>);

impl Running {
    pub async fn start() -> Self {
        Self::with_clock(Clock::simulated(Timestamp::from_secs(1_750_000_000))).await
    }

    pub async fn with_clock(clock: Clock) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let (address, stop, served) = Self::serve(dir.path(), &clock).await;
        Self { address, stop, served, dir, clock }
    }

    async fn serve(dir: &Path, clock: &Clock) -> Served {
        let config = Config::new(dir.join("data")).with_clock(clock.clone()).with_background(false);
        let database = Database::open(config).await.unwrap();
        let server = Server::bind("127.0.0.1:0").await.unwrap();
        let (address, stop) = (server.address(), CancellationToken::new());
        let token = stop.clone();
        let served = tokio::spawn(async move {
            server.run(database.clone(), token).await;
            database.close().await
        });
        (address, stop, served)
    }

    /// Stops the server and serves the same directory again. Clients are to be gone before.
    pub async fn restart(&mut self) {
        self.stop.cancel();
        (&mut self.served).await.unwrap().unwrap();
        (self.address, self.stop, self.served) = Self::serve(self.dir.path(), &self.clock).await;
    }

    pub fn data(&self) -> std::path::PathBuf {
        self.dir.path().join("data")
    }

    pub fn config(&self) -> String {
        format!("host=127.0.0.1 port={} user=ebb dbname=default", self.address.port())
    }

    pub async fn client(&self) -> Client {
        self.client_as(&self.config()).await.unwrap()
    }

    pub async fn client_as(&self, config: &str) -> Result<Client, tokio_postgres::Error> {
        let (client, connection) = tokio_postgres::connect(config, NoTls).await?;
        tokio::spawn(connection);
        Ok(client)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// The SQLSTATE of an error.
pub fn code<T>(done: Result<T, tokio_postgres::Error>) -> String {
    match done {
        Ok(_) => "no error".to_owned(),
        Err(e) => e.code().map_or_else(|| e.to_string(), |c| c.code().to_owned()),
    }
}

/// A tool that is missing fails the test where all must be there, else the test is passed by.
pub fn must_have(tool: &str) {
    assert!(!std::env::var("CI").is_ok_and(|v| v == "true"), "{tool} is missing");
    println!("{tool} is missing: not tested");
}

pub fn has(tool: &str) -> bool {
    std::process::Command::new(tool).arg("--version").output().is_ok_and(|o| o.status.success())
}
