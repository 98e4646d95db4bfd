//! Statements that run, of all sessions: what `system.queries` shows.
//!
//! Guards: a statement is listed from its beginning until its last row is read, its COPY has ended or whoever waited has gone, and not
//! longer; the list keeps no statement alive.

use crate::Session;
use ebb_storage::{Timestamp, clock::Stopwatch};
use parking_lot::Mutex;
use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

/// Of a statement's text; scripts bring megabytes of VALUES.
const SHOWN_CHARS: usize = 10_000;

/// All that run.
#[derive(Clone, Default)]
pub(crate) struct Running(Arc<List>);

#[derive(Default)]
struct List {
    next: AtomicU64,
    statements: Mutex<BTreeMap<u64, Arc<Entry>>>,
}

pub(crate) struct Entry {
    pub id: u64,
    pub session: u64,
    pub user: String,
    pub application_name: String,
    pub database: String,
    pub started_at: Timestamp,
    pub text: String,
    since: Stopwatch,
}

impl Entry {
    pub fn elapsed_ms(&self) -> u64 {
        u64::try_from(self.since.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

/// Ends the listing when it is dropped.
pub(crate) struct Listed {
    list: Running,
    id: u64,
}

impl Drop for Listed {
    fn drop(&mut self) {
        self.list.0.statements.lock().remove(&self.id);
    }
}

impl Running {
    /// A number that no other session of this opening has.
    pub fn new_session(&self) -> u64 {
        self.0.next.fetch_add(1, Ordering::Relaxed) + 1
    }

    pub fn begin(&self, session: &Session, text: &str) -> Listed {
        let id = self.0.next.fetch_add(1, Ordering::Relaxed) + 1;
        let entry = Entry {
            id,
            session: session.id,
            user: session.user.clone(),
            application_name: session.variables.get("application_name").unwrap_or_default(),
            database: session.database().to_owned(),
            started_at: session.shared.engine.now(),
            text: text.chars().take(SHOWN_CHARS).collect(),
            since: Stopwatch::start(),
        };
        self.0.statements.lock().insert(id, Arc::new(entry));
        Listed { list: self.clone(), id }
    }

    /// In the order in which they began.
    pub fn all(&self) -> Vec<Arc<Entry>> {
        self.0.statements.lock().values().cloned().collect()
    }
}
