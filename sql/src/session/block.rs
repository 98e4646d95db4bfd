//! A transaction block: one cut, fixed at its first statement, its own writes, and whether it has failed.

use crate::{Error, Result, sqlstate};
use arrow::array::RecordBatch;
use ebb_engine::{Engine, ReadView, Transaction};
use ebb_storage::ids::{SchemaVersion, StreamId};
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
    /// Streams that were written, and under which columns.
    pub written: Mutex<HashMap<StreamId, SchemaVersion>>,
    failed: AtomicBool,
    pub read_only: AtomicBool,
}

impl Block {
    pub fn new(engine: &Engine, read_only: bool) -> Self {
        Self {
            view: OnceLock::new(),
            transaction: Mutex::new(Some(engine.transaction())),
            written: Mutex::new(HashMap::new()),
            failed: AtomicBool::new(false),
            read_only: AtomicBool::new(read_only),
        }
    }

    /// The block's cut: as of the first call.
    pub fn view(&self, engine: &Engine) -> ReadView {
        self.view.get_or_init(|| engine.read()).clone()
    }

    /// Rows that the block has inserted.
    pub async fn own_rows(&self) -> HashMap<StreamId, Vec<(SchemaVersion, RecordBatch)>> {
        let written = self.written.lock().await.clone();
        let transaction = self.transaction.lock().await;
        let Some(transaction) = transaction.as_ref() else { return HashMap::new() };
        written.into_iter().map(|(id, version)| (id, transaction.pending(id).into_iter().map(|b| (version, b)).collect())).collect()
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
