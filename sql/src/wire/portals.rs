//! Portals of a connection that were run: how far, and the rows that they have left.
//!
//! Guards: a query runs no longer than the portal that it belongs to can be named, and no portal runs twice.

use super::{connection::Connection, extended::Stored, respond::SendingRows};
use crate::{RowTag, Session, TransactionStatus, session::Watch};
use parking_lot::Mutex;
use pgwire::api::{ClientPortalStore, portal::Portal, store::PortalStore};
use std::{
    collections::HashMap,
    sync::{Arc, Weak},
};
use tokio::sync::Mutex as AsyncMutex;

/// How far portals were run, by name. A query that has rows left runs as long as it is kept here, which is no longer than its portal
/// can be named: until that is closed, bound anew, or its transaction ends.
#[derive(Default)]
pub struct Portals(Mutex<HashMap<String, Noted>>);

/// A portal, and how far it was run.
type Noted = (Weak<Portal<Stored>>, Progress);

/// How far a portal was run.
#[derive(Clone)]
pub enum Progress {
    Rows(Rows),
    /// All rows were fetched.
    Fetched(RowTag),
    /// Done, or failed: no portal runs twice.
    Over,
}

/// Rows that a portal has left, and what ends them early.
#[derive(Clone)]
pub struct Rows {
    pub sending: Arc<AsyncMutex<SendingRows>>,
    pub watch: Option<Arc<Watch>>,
}

impl Portals {
    /// `None`: not run yet. A portal is told from a later one of its name as long as it is pointed to.
    pub fn of(&self, name: &str, portal: &Weak<Portal<Stored>>) -> Option<Progress> {
        self.0.lock().get(name).filter(|(of, _)| of.ptr_eq(portal)).map(|(_, progress)| progress.clone())
    }

    pub fn note(&self, name: &str, portal: &Arc<Portal<Stored>>, progress: Progress) {
        self.0.lock().insert(name.to_owned(), (Arc::downgrade(portal), progress));
    }

    pub fn remove(&self, name: &str) {
        self.0.lock().remove(name);
    }

    /// Those whose portal is gone.
    pub fn sweep(&self) {
        self.0.lock().retain(|_, (portal, _)| portal.strong_count() > 0);
    }

    /// Portals that a prepared statement made.
    pub fn made_by(&self, statement: &str) -> Vec<String> {
        let open = self.0.lock();
        let made = |portal: &Weak<Portal<Stored>>| portal.upgrade().is_some_and(|p| p.statement.id == statement);
        open.iter().filter(|(_, (portal, _))| made(portal)).map(|(name, _)| name.clone()).collect()
    }
}

/// Portals end with their transaction.
pub fn end_portals<C>(client: &C, connection: &Connection, session: &Session)
where
    C: ClientPortalStore,
    C::PortalStore: PortalStore,
{
    if session.transaction_status() == TransactionStatus::Idle && !session.in_implicit() {
        client.portal_store().clear_portals();
        connection.portals.0.lock().clear();
    }
}
