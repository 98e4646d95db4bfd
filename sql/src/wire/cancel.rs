//! Cancelling a running statement from another connection, which knows the number and the secret of the first.

use async_trait::async_trait;
use bytes::Bytes;
use parking_lot::Mutex;
use pgwire::{
    api::cancel::CancelHandler,
    messages::{cancel::CancelRequest, startup::SecretKey},
};
use std::{collections::HashMap, sync::Arc};
use tokio_util::sync::CancellationToken;

/// The token of a connection's present statement, if it runs one.
#[derive(Default)]
pub struct Running(Mutex<Option<CancellationToken>>);

impl Running {
    /// A fresh token for the next statement; an earlier one is forgotten.
    pub fn begin(&self) -> CancellationToken {
        let token = CancellationToken::new();
        *self.0.lock() = Some(token.clone());
        token
    }
    pub fn end(&self) {
        *self.0.lock() = None;
    }
    pub fn cancel(&self) {
        if let Some(token) = self.0.lock().as_ref() {
            token.cancel();
        }
    }
}

type Key = (i32, Bytes);

/// All connections of a server.
#[derive(Default)]
pub struct Registry {
    connections: Mutex<HashMap<Key, Arc<Running>>>,
}

impl Registry {
    /// Until the guard is dropped the connection can be cancelled.
    pub fn register(self: &Arc<Self>, pid: i32, secret: &SecretKey, running: Arc<Running>) -> Registered {
        let key = (pid, secret.to_bytes());
        self.connections.lock().insert(key.clone(), running);
        Registered { registry: self.clone(), key }
    }
}

pub struct Registered {
    registry: Arc<Registry>,
    key: Key,
}

impl Drop for Registered {
    fn drop(&mut self) {
        self.registry.connections.lock().remove(&self.key);
    }
}

/// A wrong secret is ignored, as the protocol wants it.
#[async_trait]
impl CancelHandler for Registry {
    async fn on_cancel_request(&self, request: CancelRequest) {
        let found = self.connections.lock().get(&(request.pid, request.secret_key.to_bytes())).cloned();
        if let Some(running) = found {
            running.cancel();
        }
    }
}
