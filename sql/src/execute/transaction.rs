//! BEGIN, COMMIT, ROLLBACK.

use super::command;
use crate::{
    Error, Notice, Outcome, Result, Session, TransactionStatus,
    session::Block,
    sqlstate,
    statement::{SetTransaction, TransactionModes},
};
use std::sync::{Arc, atomic::Ordering};

pub(super) fn begin(session: &mut Session, modes: &TransactionModes) -> Result<Outcome> {
    if session.block.is_some() {
        session.notice(Notice::warning(sqlstate::ACTIVE_SQL_TRANSACTION, "there is already a transaction in progress"));
        return Ok(command("BEGIN"));
    }
    let default = session.variables.get("default_transaction_read_only").is_some_and(|v| v.eq_ignore_ascii_case("on"));
    let read_only = modes.read_only.unwrap_or(default);
    session.block = Some(Arc::new(Block::new(&session.shared.engine, read_only)));
    Ok(command("BEGIN"))
}

pub(super) async fn commit(session: &mut Session) -> Result<Outcome> {
    let Some(block) = session.block.take() else {
        session.notice(Notice::warning("25P01", "there is no transaction in progress"));
        return Ok(command("COMMIT"));
    };
    session.variables.end_block();
    if block.status() == TransactionStatus::Failed {
        return Ok(command("ROLLBACK"));
    }
    let transaction = block.transaction.lock().await.take();
    match transaction {
        Some(transaction) => transaction.commit().await.map(|_| command("COMMIT")).map_err(Error::from),
        None => Err(Error::conflict("the transaction has ended")),
    }
}

pub(super) fn rollback(session: &mut Session) -> Outcome {
    if session.block.take().is_none() {
        session.notice(Notice::warning("25P01", "there is no transaction in progress"));
    }
    session.variables.end_block();
    command("ROLLBACK")
}

pub(super) fn set(session: &mut Session, set: &SetTransaction) -> Result<Outcome> {
    if let Some(read_only) = set.modes.read_only {
        match &session.block {
            Some(block) if !set.session => block.read_only.store(read_only, Ordering::Release),
            _ => session.variables.set("default_transaction_read_only", if read_only { "on" } else { "off" })?,
        }
    }
    Ok(command("SET"))
}
