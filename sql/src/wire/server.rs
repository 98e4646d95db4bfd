//! Listening, and one task a connection.

use super::{cancel::Registry, connection::Connection, copy::Copy, extended::Extended, simple::Simple, startup::Startup, talk::talk};
use crate::{Database, Error, Result};
use pgwire::api::RandomPidSecretKeyGenerator;
use std::{net::SocketAddr, sync::Arc, time::Duration};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// Connections at once.
const CONNECTIONS_MAX: usize = 1000;
/// How long running statements may go on after a stop.
const STOP_GRACE: Duration = Duration::from_secs(5);
/// Waits after the system refused a connection, for example because no descriptor is free.
const ACCEPT_RETRY: Duration = Duration::from_millis(100);

/// A listening server that has not begun to serve.
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
}

impl Server {
    /// # Errors
    /// For any address but this machine's own, until roles exist; for one that is taken.
    pub async fn bind(address: &str) -> Result<Self> {
        let resolved: Vec<SocketAddr> = tokio::net::lookup_host(address)
            .await
            .map_err(|e| Error::invalid(format!("'{address}' is no address to listen on ({e}): write 127.0.0.1:5433")))?
            .collect();
        if let Some(other) = resolved.iter().find(|a| !a.ip().is_loopback()) {
            return Err(Error::invalid(format!(
                "refusing to listen on {other}: anybody who connects is let in without a password, so only this machine may: use 127.0.0.1"
            )));
        }
        let listener =
            TcpListener::bind(resolved.as_slice()).await.map_err(|e| Error::from(e).context(format_args!("listening on {address}")))?;
        let address = listener.local_addr()?;
        Ok(Self { listener, address })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `stop`; running statements get a moment to end, then are cut off.
    pub async fn run(self, database: Database, stop: CancellationToken) {
        let shared = Arc::new(Shared { database, registry: Arc::default(), keys: Arc::default() });
        let (tasks, cut) = (TaskTracker::new(), CancellationToken::new());
        loop {
            let socket = tokio::select! {
                () = stop.cancelled() => break,
                accepted = self.listener.accept() => accepted,
            };
            match socket {
                Ok((socket, _)) if tasks.len() < CONNECTIONS_MAX => {
                    let (shared, cut) = (shared.clone(), cut.clone());
                    tasks.spawn(async move {
                        tokio::select! {
                            () = cut.cancelled() => {}
                            () = shared.talk(socket) => {}
                        }
                    });
                }
                // One connection too many is closed; the client sees that the server did so.
                Ok((socket, _)) => drop(socket),
                Err(_) => ebb_storage::clock::pause(ACCEPT_RETRY).await,
            }
        }
        drop(self.listener);
        tasks.close();
        ebb_storage::clock::within(STOP_GRACE, tasks.wait()).await;
        cut.cancel();
        tasks.wait().await;
    }
}

/// Binds and serves until `stop`.
pub async fn serve(database: Database, address: &str, stop: CancellationToken) -> Result<()> {
    Server::bind(address).await?.run(database, stop).await;
    Ok(())
}

struct Shared {
    database: Database,
    registry: Arc<Registry>,
    keys: Arc<RandomPidSecretKeyGenerator>,
}

impl Shared {
    async fn talk(&self, socket: TcpStream) {
        let connection = Arc::new(Connection::new(self.database.session()));
        let handlers = Handlers {
            startup: Arc::new(Startup { connection: connection.clone(), registry: self.registry.clone(), keys: self.keys.clone() }),
            simple: Arc::new(Simple { connection: connection.clone() }),
            extended: Arc::new(Extended::new(connection.clone())),
            copy: Arc::new(Copy { connection: connection.clone() }),
            connection: connection.clone(),
            registry: self.registry.clone(),
        };
        tokio::select! {
            // A connection that broke has nobody left to be told.
            _ = talk(socket, &handlers) => {}
            () = connection.closed.cancelled() => {}
        }
    }
}

/// Fresh for every connection: handlers hold its state.
pub struct Handlers {
    pub connection: Arc<Connection>,
    pub startup: Arc<Startup>,
    pub simple: Arc<Simple>,
    pub extended: Arc<Extended>,
    pub copy: Arc<Copy>,
    pub registry: Arc<Registry>,
}
