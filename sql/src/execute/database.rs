//! CREATE and DROP DATABASE.

use super::command;
use crate::{
    Error, Outcome, Result, Session,
    statement::{CreateDatabase, DropDatabase},
};

/// Names that mean something else as a schema.
const RESERVED: [&str; 4] = ["public", "information_schema", "pg_catalog", "ebb"];

pub(super) async fn create(session: &mut Session, create: &CreateDatabase) -> Result<Outcome> {
    let name = create.name.as_str();
    if RESERVED.contains(&name) {
        return Err(Error::invalid(format!("a database cannot be called '{name}'")).with_sqlstate("42939").at(create.name.position));
    }
    let made = session.shared.engine.create_database(name, create.if_not_exists).await;
    made.map_err(|e| match e.kind() {
        crate::ErrorKind::Conflict => Error::from(e).with_sqlstate("42P04"),
        _ => e.into(),
    })?;
    Ok(command("CREATE DATABASE"))
}

pub(super) async fn drop(session: &mut Session, drop: &DropDatabase) -> Result<Outcome> {
    let name = drop.name.as_str();
    let manifest = session.shared.engine.manifest();
    // Of one that cannot be dropped the engine says so.
    if !drop.cascade
        && !["default", "system"].contains(&name)
        && let Some(stream) = manifest.streams().find(|s| s.def.database == name)
    {
        let message =
            format!("database '{name}' still has streams, {} for one: DROP DATABASE {name} CASCADE drops them too", stream.def.name);
        return Err(Error::conflict(message).with_sqlstate("2BP01"));
    }
    let dropped = session.shared.engine.drop_database(name, drop.if_exists).await;
    dropped.map_err(|e| match e.kind() {
        crate::ErrorKind::NotFound => Error::from(e).with_sqlstate("3D000"),
        _ => e.into(),
    })?;
    session.variables.forget_database(name);
    Ok(command("DROP DATABASE"))
}
