//! SET and RESET, of the session and of the server.

use super::command;
use crate::{
    Error, Notice, Outcome, Result, Session, sqlstate,
    statement::{Literal, Reset, Set, SetScope, SetValue},
};
use ebb_engine::settings::{self, Scope};
use ebb_storage::stream_def::SettingValue;

pub(super) async fn set(session: &mut Session, set: &Set) -> Result<Outcome> {
    if set.scope == SetScope::Global {
        refuse_in_block(session)?;
        let value = match &set.value {
            SetValue::Default => {
                settings::find(Scope::Server, &set.name)?;
                None
            }
            SetValue::Values(values) => Some(settings::check(Scope::Server, &set.name, &server_value(values)?)?),
        };
        session.shared.engine.set_server_setting(&set.name, value).await?;
        session.shared.follow_settings();
        return Ok(command("SET"));
    }
    let SetValue::Values(values) = &set.value else {
        session.variables.reset(&set.name)?;
        return Ok(command("SET"));
    };
    let text = values.iter().map(text_of).collect::<Vec<_>>().join(", ");
    match set.scope {
        SetScope::Local if session.block.is_none() => {
            session.notice(Notice::warning("25P01", "SET LOCAL does nothing outside of a transaction block"));
        }
        SetScope::Local => session.variables.set_local(&set.name, &text)?,
        _ => session.variables.set(&set.name, &text)?,
    }
    if set.name == "search_path" {
        let first = text.split(',').next().unwrap_or("").trim().trim_matches('"').to_owned();
        if session.shared.check_database(&first).is_ok() {
            session.database = first;
        }
    }
    Ok(command("SET"))
}

fn text_of(value: &Literal) -> String {
    match value {
        Literal::Text(t) => t.clone(),
        other => other.to_string(),
    }
}

fn server_value(values: &[Literal]) -> Result<SettingValue> {
    match values {
        [Literal::Bool(b)] => Ok(SettingValue::Bool(*b)),
        [Literal::Number(n)] => match n.parse() {
            Ok(i) => Ok(SettingValue::Int(i)),
            Err(_) => Err(Error::invalid(format!("'{n}' is no whole number"))),
        },
        [Literal::Text(t)] => Ok(SettingValue::Text(t.clone())),
        _ => Err(Error::invalid("a server setting takes one value")),
    }
}

fn refuse_in_block(session: &Session) -> Result<()> {
    match session.block {
        Some(_) => Err(Error::conflict("SET GLOBAL cannot run inside a transaction block").with_sqlstate(sqlstate::ACTIVE_SQL_TRANSACTION)),
        None => Ok(()),
    }
}

pub(super) async fn reset(session: &mut Session, reset: &Reset) -> Result<Outcome> {
    match reset {
        Reset::All => session.variables.reset_all(),
        Reset::Variable(name) => session.variables.reset(name)?,
        Reset::Global(name) => {
            refuse_in_block(session)?;
            settings::find(Scope::Server, name)?;
            session.shared.engine.set_server_setting(name, None).await?;
            session.shared.follow_settings();
        }
    }
    Ok(command("RESET"))
}
