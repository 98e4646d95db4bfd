//! BEGIN, COMMIT, ROLLBACK, and savepoints between them.

use super::command;
use crate::{
    Error, Notice, Outcome, Result, Session, TransactionStatus,
    session::{Block, Until},
    sqlstate,
    statement::{Name, SetTransaction, TransactionModes},
};
use std::sync::{Arc, atomic::Ordering};

pub(super) fn begin(session: &mut Session, modes: &TransactionModes) -> Result<Outcome> {
    let read_only = modes.read_only.unwrap_or_else(|| reads_only(session));
    match &session.block {
        Some(block) if block.is_implicit() => {
            block.make_explicit(read_only);
            return Ok(command("BEGIN"));
        }
        Some(_) => {
            session.notice(Notice::warning(sqlstate::ACTIVE_SQL_TRANSACTION, "there is already a transaction in progress"));
            return Ok(command("BEGIN"));
        }
        None => {}
    }
    session.block = Some(Arc::new(Block::new(&session.shared.engine, read_only, session.variables.clone())));
    Ok(command("BEGIN"))
}

fn reads_only(session: &Session) -> bool {
    session.variables.get("default_transaction_read_only").is_some_and(|v| v.eq_ignore_ascii_case("on"))
}

/// The block of a message of several statements.
pub(crate) fn begin_implicit(session: &mut Session) {
    let block = Block::new(&session.shared.engine, reads_only(session), session.variables.clone());
    session.block = Some(Arc::new(block.implicit()));
}

fn warn_without_block(session: &mut Session) {
    if session.block.as_ref().is_none_or(|b| b.is_implicit()) {
        session.notice(Notice::warning(sqlstate::NO_ACTIVE_SQL_TRANSACTION, "there is no transaction in progress"));
    }
}

pub(super) async fn commit(session: &mut Session) -> Result<Outcome> {
    warn_without_block(session);
    commit_block(session).await
}

pub(crate) async fn commit_block(session: &mut Session) -> Result<Outcome> {
    let Some(block) = session.block.take() else { return Ok(command("COMMIT")) };
    let transaction = block.transaction.lock().await.take();
    if block.status() == TransactionStatus::Failed {
        session.variables = block.outer.clone();
        return Ok(command("ROLLBACK"));
    }
    let committed = match transaction {
        Some(transaction) => transaction.commit().await.map_err(Error::from),
        None => Err(Error::conflict("the transaction has ended")),
    };
    match committed {
        Ok(_) => session.variables.end_block(),
        Err(_) => session.variables = block.outer.clone(),
    }
    committed.map(|_| command("COMMIT"))
}

pub(super) fn rollback(session: &mut Session) -> Outcome {
    warn_without_block(session);
    roll_back(session)
}

pub(crate) fn roll_back(session: &mut Session) -> Outcome {
    if let Some(block) = session.block.take() {
        session.variables = block.outer.clone();
    }
    command("ROLLBACK")
}

fn block_for(session: &Session, what: &str) -> Result<Arc<Block>> {
    let outside = || Error::conflict(format!("{what} belongs in a transaction block: BEGIN one before it"));
    session.block.clone().filter(|b| !b.is_implicit()).ok_or_else(|| outside().with_sqlstate(sqlstate::NO_ACTIVE_SQL_TRANSACTION))
}

pub(super) async fn savepoint(session: &mut Session, name: &Name) -> Result<Outcome> {
    block_for(session, "SAVEPOINT")?.savepoint(name.as_str(), session.variables.clone()).await?;
    Ok(command("SAVEPOINT"))
}

pub(super) fn release(session: &mut Session, name: &Name) -> Result<Outcome> {
    block_for(session, "RELEASE SAVEPOINT")?.release(name.as_str()).map_err(|e| e.at(name.position))?;
    Ok(command("RELEASE"))
}

pub(super) async fn rollback_to(session: &mut Session, name: &Name) -> Result<Outcome> {
    let block = block_for(session, "ROLLBACK TO SAVEPOINT")?;
    session.variables = block.roll_back_to(name.as_str()).await.map_err(|e| e.at(name.position))?;
    Ok(command("ROLLBACK"))
}

pub(super) fn set(session: &mut Session, set: &SetTransaction) -> Result<Outcome> {
    if let Some(read_only) = set.modes.read_only {
        match &session.block {
            Some(block) if !set.session => block.read_only.store(read_only, Ordering::Release),
            _ => session.set_until(Until::Reset, "default_transaction_read_only", if read_only { "on" } else { "off" })?,
        }
    }
    Ok(command("SET"))
}
