//! Statements carried out: one file per family of verbs. This file only says who does what, and what a block refuses.

mod added;
pub(crate) mod append;
pub(crate) mod call;
mod clocks;
pub(crate) mod copy_binary;
mod copy_decode;
mod copy_in;
mod copy_out;
mod database;
pub(crate) mod delete;
mod explain;
pub(crate) mod ingest;
mod insert;
mod optimize;
mod place;
mod prepare;
mod preview;
pub(crate) mod query;
mod reader;
mod refs;
mod rows;
mod show;
mod stream;
mod system;
mod transaction;
mod values;
mod variable;

pub(crate) use transaction::{begin_implicit, commit_block, roll_back};

use crate::{
    Error, Outcome, Prepared, Result, Session,
    session::ends_block,
    sqlstate,
    statement::{Copy, Discard, Reset, Set, SetScope, Show, Verb},
    wire::types::pg_type,
};
use arrow::datatypes::SchemaRef;
use datafusion::common::ScalarValue;
use std::sync::Arc;

pub(crate) async fn run(session: &mut Session, prepared: &Prepared, params: Vec<ScalarValue>) -> Result<Outcome> {
    let statement = prepared.statement.clone();
    if let Some(block) = &session.block
        && !ends_block(&statement.verb)
    {
        block.check()?;
        if let Some(what) = outside_blocks(&statement.verb) {
            return Err(
                Error::conflict(format!("{what} cannot run inside a transaction block")).with_sqlstate(sqlstate::ACTIVE_SQL_TRANSACTION)
            );
        }
    }
    if params.len() < statement.parameters {
        let message = format!("the statement has {} parameters, but {} values were given", statement.parameters, params.len());
        return Err(Error::invalid(message).with_sqlstate("08P01"));
    }
    match &statement.verb {
        Verb::Query(q) => {
            let outcome = query::run(session, q, &params).await?;
            if let (Outcome::Rows { schema, .. }, Some(told)) = (&outcome, &prepared.result) {
                same_columns(told, schema)?;
            }
            Ok(outcome)
        }
        Verb::Insert(insert) => insert::run(session, insert, &params).await,
        Verb::Delete(delete) => delete::run(session, delete, &statement.source, &params).await,
        Verb::Copy(Copy::From { into, columns, options }) => copy_in::run(session, into, columns.as_deref(), options).await,
        Verb::Copy(copy) => copy_out::run(session, copy, &params).await,
        Verb::CreateStream(create) => stream::create(session, create).await,
        Verb::AlterStream(alter) => stream::alter(session, alter, &params).await,
        Verb::DropStream(drop) => stream::drop(session, drop).await,
        Verb::TruncateStream(truncate) => stream::truncate(session, truncate).await,
        Verb::RenameStream(rename) => stream::rename(session, rename).await,
        Verb::DescribeStream(name) => show::describe(session, name),
        Verb::Show(what) => show::run(session, what).await,
        Verb::Explain(e) => explain::plan(session, e, &params).await,
        Verb::ExplainLifecycle(e) => explain::lifecycle(session, e, &params).await,
        Verb::Preview(p) => preview::run(session, p, &params).await,
        Verb::Optimize(o) => optimize::run(session, o).await,
        Verb::System(s) => system::run(session, s).await,
        Verb::CreateDisk(c) => place::create_disk(session, c).await,
        Verb::DropDisk(d) => place::drop_disk(session, d).await,
        Verb::CreateStoragePolicy(c) => place::create_policy(session, c).await,
        Verb::DropStoragePolicy(d) => place::drop_policy(session, d).await,
        Verb::CreateDatabase(c) => database::create(session, c).await,
        Verb::DropDatabase(d) => database::drop(session, d).await,
        Verb::UseDatabase(name) => {
            session.use_database(name.as_str())?;
            Ok(command("USE"))
        }
        Verb::Call(c) => call::run(session, c, &params).await,
        Verb::CreateReader(c) => reader::create(session, c, &params).await,
        Verb::DropReader(d) => reader::drop(session, d).await,
        Verb::Begin(modes) => transaction::begin(session, modes),
        Verb::Commit => transaction::commit(session).await,
        Verb::Rollback => Ok(transaction::rollback(session)),
        Verb::Savepoint(name) => transaction::savepoint(session, name).await,
        Verb::ReleaseSavepoint(name) => transaction::release(session, name),
        Verb::RollbackTo(name) => transaction::rollback_to(session, name).await,
        Verb::SetTransaction(set) => transaction::set(session, set),
        Verb::Set(set) => variable::set(session, set).await.inspect(|_| session.keep_leases()),
        Verb::Reset(reset) => variable::reset(session, reset).await.inspect(|_| session.keep_leases()),
        Verb::Prepare(p) => prepare::prepare(session, p).await,
        Verb::Execute(e) => Box::pin(prepare::execute(session, e, &params)).await,
        Verb::Deallocate(d) => prepare::deallocate(session, d),
        Verb::Discard(d) => Ok(prepare::discard(session, *d)).inspect(|_| session.keep_leases()),
        other => Err(not_built(other)),
    }
}

/// Refuses rows of other columns than who prepared the statement was told.
fn same_columns(told: &SchemaRef, now: &SchemaRef) -> Result<()> {
    let types = |schema: &SchemaRef| schema.fields().iter().map(|f| pg_type(f)).collect::<Vec<_>>();
    if Arc::ptr_eq(told, now) || types(told) == types(now) {
        return Ok(());
    }
    let e = Error::invalid("cached plan must not change result type").with_sqlstate(sqlstate::FEATURE_NOT_SUPPORTED);
    Err(e.with_hint("a column of the statement came, went or changed its type since it was prepared: prepare it again"))
}

pub(crate) fn command(tag: impl Into<String>) -> Outcome {
    Outcome::Command { tag: tag.into() }
}

/// The columns of statements other than queries that answer with rows.
pub(crate) async fn result_schema(session: &mut Session, verb: &Verb) -> Result<Option<SchemaRef>> {
    Ok(match verb {
        Verb::Show(Show::Variable(name)) => Some(rows::texts_schema(&[name])),
        Verb::Show(what) => Some(show::schema(what)),
        Verb::DescribeStream(_) => Some(show::describe_schema()),
        Verb::Explain(_) => Some(explain::plan_schema()),
        Verb::ExplainLifecycle(_) => Some(explain::lifecycle_schema()),
        Verb::Preview(_) => Some(preview::schema()),
        Verb::Optimize(_) => Some(optimize::schema()),
        Verb::Call(c) => Some(call::schema(c)?),
        Verb::System(s) => system::schema(s),
        Verb::Execute(e) => session.prepared.get(e.name.as_str()).and_then(|p| p.result.clone()),
        _ => None,
    })
}

pub(crate) fn outside_blocks(verb: &Verb) -> Option<&'static str> {
    Some(match verb {
        Verb::CreateStream(_) => "CREATE STREAM",
        Verb::AlterStream(_) => "ALTER STREAM",
        Verb::DropStream(_) => "DROP STREAM",
        Verb::TruncateStream(_) => "TRUNCATE STREAM",
        Verb::RenameStream(_) => "RENAME STREAM",
        Verb::Optimize(_) => "OPTIMIZE STREAM",
        Verb::System(_) => "SYSTEM",
        Verb::Call(_) => "CALL",
        Verb::CreateDisk(_) => "CREATE DISK",
        Verb::DropDisk(_) => "DROP DISK",
        Verb::CreateStoragePolicy(_) => "CREATE STORAGE POLICY",
        Verb::DropStoragePolicy(_) => "DROP STORAGE POLICY",
        Verb::CreateDatabase(_) => "CREATE DATABASE",
        Verb::DropDatabase(_) => "DROP DATABASE",
        Verb::AlterDatabase(_) => "ALTER DATABASE",
        Verb::Set(Set { scope: SetScope::Global, .. }) | Verb::Reset(Reset::Global(_)) => "SET GLOBAL",
        Verb::Discard(Discard::All) => "DISCARD ALL",
        Verb::CreateReader(_) | Verb::DropReader(_) => "CREATE READER and DROP READER",
        Verb::CreateHold(_) | Verb::ReleaseHold(_) => "CREATE HOLD and RELEASE HOLD",
        Verb::CreateRollup(_) | Verb::DropRollup(_) => "CREATE ROLLUP and DROP ROLLUP",
        Verb::Backup(_) | Verb::Restore(_) => "BACKUP and RESTORE",
        _ => return None,
    })
}

fn not_built(verb: &Verb) -> Error {
    let what = match verb {
        Verb::AlterDatabase(_) => "ALTER DATABASE",
        Verb::CreateHold(_) | Verb::ReleaseHold(_) => "holds",
        Verb::CreateRollup(_) | Verb::DropRollup(_) => "rollups",
        Verb::Backup(_) | Verb::Restore(_) => "BACKUP and RESTORE",
        _ => "this statement",
    };
    Error::unsupported(format!("{what}: not built yet"))
}
