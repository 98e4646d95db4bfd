//! What one client has: its session, the COPY it is in, the token of its running statement.

use super::{cancel::Running, encode::Zone, portals::Portals};
use crate::{CopyIn, Error, Notice, Session, TransactionStatus as Status, statement::Statement};
use parking_lot::Mutex as SyncMutex;
use pgwire::{
    error::{ErrorInfo, PgWireError},
    messages::response::{NoticeResponse, TransactionStatus},
};
use std::{
    collections::VecDeque,
    sync::{Arc, atomic::AtomicBool},
};
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

pub struct Connection {
    pub session: Mutex<Session>,
    pub running: Arc<Running>,
    /// A COPY FROM that waits for data, and the statements behind it.
    pub copy: Mutex<Option<Copying>>,
    /// Rows that portals have left.
    pub portals: Portals,
    /// Session settings as the client was last told them.
    pub told: SyncMutex<Vec<(&'static str, String)>>,
    /// Whether the message being answered is the last one before a Sync, as far as is known.
    pub sync_follows: AtomicBool,
    /// Kept so that cancel requests find the connection as long as it lives.
    pub registered: SyncMutex<Option<super::cancel::Registered>>,
    /// The client was told that it is not let in.
    pub closed: CancellationToken,
}

pub struct Copying {
    pub copy: CopyIn,
    pub rest: VecDeque<Statement>,
    /// Whether the text had several statements: together they are one transaction.
    pub several: bool,
}

/// Settings that clients are told of when they change.
pub const REPORTED: [&str; 8] = [
    "TimeZone",
    "application_name",
    "client_encoding",
    "DateStyle",
    "IntervalStyle",
    "standard_conforming_strings",
    "search_path",
    "default_transaction_read_only",
];

impl Connection {
    pub fn new(session: Session) -> Self {
        Self {
            session: Mutex::new(session),
            running: Arc::default(),
            copy: Mutex::new(None),
            portals: Portals::default(),
            told: SyncMutex::default(),
            sync_follows: AtomicBool::new(false),
            registered: SyncMutex::new(None),
            closed: CancellationToken::new(),
        }
    }
}

pub fn status(session: &Session) -> TransactionStatus {
    match session.transaction_status() {
        Status::Idle => TransactionStatus::Idle,
        Status::InBlock => TransactionStatus::Transaction,
        Status::Failed => TransactionStatus::Error,
    }
}

pub fn zone(session: &Session) -> Zone {
    session.variable("timezone").and_then(|name| Zone::named(&name)).unwrap_or(Zone::Utc)
}

pub fn error_info(e: &Error) -> ErrorInfo {
    let mut info = ErrorInfo::new("ERROR".to_owned(), e.sqlstate().to_owned(), e.message().to_owned());
    info.position = e.position().map(|p| p.to_string());
    info.hint = e.hint().map(str::to_owned);
    info
}

pub fn refused(e: &Error) -> PgWireError {
    PgWireError::UserError(Box::new(error_info(e)))
}

pub fn notice(n: &Notice) -> NoticeResponse {
    ErrorInfo::new(n.severity.to_string(), n.sqlstate.to_owned(), n.message.clone()).into()
}
