//! A transaction block: one cut, fixed at its first statement, its own writes, its savepoints, and whether it has failed.
//!
//! Guards: what follows a savepoint is undone as a whole, the settings and the failure with the writes.

use super::Variables;
use crate::{Error, Result, sqlstate};
use ebb_engine::{Engine, Pending, ReadView, Transaction};
use ebb_storage::ids::StreamId;
use parking_lot::Mutex as SyncMutex;
use std::{
    collections::HashMap,
    sync::{
        OnceLock,
        atomic::{AtomicBool, Ordering},
    },
};
use tokio::sync::Mutex;

/// PostgreSQL's three states of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransactionStatus {
    Idle,
    InBlock,
    Failed,
}

pub(crate) struct Block {
    view: OnceLock<ReadView>,
    /// `None` once it was committed.
    pub transaction: Mutex<Option<Transaction>>,
    failed: AtomicBool,
    /// No BEGIN made it: it ends with the message.
    implicit: AtomicBool,
    pub read_only: AtomicBool,
    /// Settings as they were before the block.
    pub outer: Variables,
    savepoints: SyncMutex<Vec<Savepoint>>,
}

/// A named moment of the block. Names may come again; the newest hides the others.
struct Savepoint {
    name: String,
    written: ebb_engine::Savepoint,
    variables: Variables,
    read_only: bool,
}

/// Savepoints of one block, released ones aside.
const SAVEPOINTS_MAX: usize = 10_000;

impl Block {
    pub fn new(engine: &Engine, read_only: bool, outer: Variables) -> Self {
        Self {
            view: OnceLock::new(),
            transaction: Mutex::new(Some(engine.transaction())),
            failed: AtomicBool::new(false),
            implicit: AtomicBool::new(false),
            read_only: AtomicBool::new(read_only),
            outer,
            savepoints: SyncMutex::default(),
        }
    }

    pub fn implicit(self) -> Self {
        self.implicit.store(true, Ordering::Release);
        self
    }

    pub fn is_implicit(&self) -> bool {
        self.implicit.load(Ordering::Acquire)
    }

    /// BEGIN: what was done before it in the same message belongs to the block.
    pub fn make_explicit(&self, read_only: bool) {
        self.read_only.store(read_only, Ordering::Release);
        self.implicit.store(false, Ordering::Release);
    }

    /// # Errors
    /// `Full` above a number of savepoints that no program needs.
    pub async fn savepoint(&self, name: &str, variables: Variables) -> Result<()> {
        let written = match self.transaction.lock().await.as_ref() {
            Some(transaction) => transaction.savepoint(),
            None => return Err(Error::conflict("the transaction has ended")),
        };
        let mut savepoints = self.savepoints.lock();
        if savepoints.len() >= SAVEPOINTS_MAX {
            let message = format!("a block keeps {SAVEPOINTS_MAX} savepoints: RELEASE some");
            return Err(Error::new(crate::ErrorKind::Full, message).with_sqlstate(sqlstate::TOO_COMPLEX));
        }
        savepoints.push(Savepoint { name: name.to_owned(), written, variables, read_only: self.read_only.load(Ordering::Acquire) });
        Ok(())
    }

    /// Forgets the savepoint and those behind it; what was done since stays.
    ///
    /// # Errors
    /// `3B001` without such a savepoint.
    pub fn release(&self, name: &str) -> Result<()> {
        let mut savepoints = self.savepoints.lock();
        let at = newest(&savepoints, name)?;
        savepoints.truncate(at);
        Ok(())
    }

    /// Undoes what was done since the savepoint, which stays; a block that had failed goes on. The settings as they were.
    ///
    /// # Errors
    /// `3B001` without such a savepoint.
    pub async fn roll_back_to(&self, name: &str) -> Result<Variables> {
        let mut transaction = self.transaction.lock().await;
        let transaction = transaction.as_mut().ok_or_else(|| Error::conflict("the transaction has ended"))?;
        let mut savepoints = self.savepoints.lock();
        let at = newest(&savepoints, name)?;
        savepoints.truncate(at + 1);
        let savepoint = &savepoints[at];
        transaction.roll_back_to(savepoint.written);
        self.read_only.store(savepoint.read_only, Ordering::Release);
        self.failed.store(false, Ordering::Release);
        Ok(savepoint.variables.clone())
    }

    /// The block's cut: as of the first call.
    pub fn view(&self, engine: &Engine) -> ReadView {
        self.view.get_or_init(|| engine.read()).clone()
    }

    /// What the block has inserted.
    pub async fn own_rows(&self) -> HashMap<StreamId, Pending> {
        self.transaction.lock().await.as_ref().map(Transaction::pending).unwrap_or_default()
    }

    pub fn fail(&self) {
        self.failed.store(true, Ordering::Release);
    }

    pub fn status(&self) -> TransactionStatus {
        match self.failed.load(Ordering::Acquire) {
            true => TransactionStatus::Failed,
            false => TransactionStatus::InBlock,
        }
    }

    /// # Errors
    /// `25P02` where an earlier statement of the block failed.
    pub fn check(&self) -> Result<()> {
        match self.status() {
            TransactionStatus::Failed => Err(Error::conflict("the transaction block has failed: only ROLLBACK or COMMIT end it")
                .with_sqlstate(sqlstate::IN_FAILED_SQL_TRANSACTION)),
            _ => Ok(()),
        }
    }
}

fn newest(savepoints: &[Savepoint], name: &str) -> Result<usize> {
    let unknown = || Error::not_found(format!("savepoint '{name}' does not exist")).with_sqlstate(sqlstate::INVALID_SAVEPOINT);
    savepoints.iter().rposition(|s| s.name == name).ok_or_else(unknown)
}
