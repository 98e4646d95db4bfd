//! CREATE READER and DROP READER.

use super::command;
use crate::{
    Error, Notice, Outcome, Result, Session,
    bind::{argument, expression, names},
    sqlstate,
    statement::{CreateReader, DropReader, ReaderStart},
};
use datafusion::common::ScalarValue;
use ebb_engine::history::{NewReader, ReaderFrom};

pub(super) async fn create(session: &mut Session, create: &CreateReader, params: &[ScalarValue]) -> Result<Outcome> {
    let engine = session.shared.engine.clone();
    let stream = names::find(&engine.manifest(), &create.stream, session.database())?.def.id;
    let from = match &create.from {
        ReaderStart::Earliest => ReaderFrom::Earliest,
        ReaderStart::Latest => ReaderFrom::Latest,
        ReaderStart::Sn(e) => {
            let state = session.context(&session.cut_without_own(), false);
            ReaderFrom::Sn(argument::sn("FROM", &expression::constant(&state, &e.ast, params)?)?)
        }
    };
    let max_lag_ms = create.max_lag.as_ref().map(|lag| super::refs::millis("MAX LAG", lag)).transpose()?;
    let name = create.name.as_str().to_owned();
    let new = NewReader { name: name.clone(), stream, from, max_lag_ms, if_not_exists: create.if_not_exists };
    if !engine.create_reader(new).await.map_err(|e| super::refs::named(e, &create.name))? {
        let message = format!("reader '{name}' exists already");
        session.notice(Notice { sqlstate: sqlstate::DUPLICATE_OBJECT, ..Notice::notice(message) });
    }
    Ok(command("CREATE READER"))
}

pub(super) async fn drop(session: &mut Session, drop: &DropReader) -> Result<Outcome> {
    let name = drop.name.as_str();
    let dropped = session.shared.engine.drop_reader(name, drop.if_exists).await.map_err(|e| Error::from(e).at(drop.name.position))?;
    if !dropped {
        session.notice(Notice::notice(format!("reader '{name}' does not exist, skipping")));
    }
    Ok(command("DROP READER"))
}
