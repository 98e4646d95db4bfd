//! SET and RESET, of the session and of the server.

use super::command;
use crate::{
    Error, Notice, Outcome, Result, Session,
    pg_catalog::SetConfig,
    session::Until,
    statement::{Literal, Reset, Set, SetScope, SetValue},
};
use ebb_engine::settings::{self, Scope};
use ebb_storage::stream_def::SettingValue;

pub(super) async fn set(session: &mut Session, set: &Set) -> Result<Outcome> {
    if set.scope == SetScope::Global {
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
    let local = set.scope == SetScope::Local;
    if local && session.block.is_none() {
        session.notice(Notice::warning("25P01", "SET LOCAL does nothing outside of a transaction block"));
        return Ok(command("SET"));
    }
    match &set.value {
        SetValue::Default if local => session.variables.reset_local(&set.name)?,
        SetValue::Default => session.variables.reset(&set.name)?,
        SetValue::Values(values) => {
            let text = values.iter().map(text_of).collect::<Vec<_>>().join(", ");
            session.set_until(if local { Until::Block } else { Until::Reset }, &set.name, &text)?;
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

/// What the calls of `set_config` in a query do, before it runs.
pub(super) fn set_config(session: &mut Session, calls: Vec<SetConfig>) -> Result<()> {
    for SetConfig { name, value, local } in calls {
        // Drivers set what only PostgreSQL has; the answer repeats the value either way.
        if session.variables.get(&name).is_none() || local && session.block.is_none() {
            continue;
        }
        match value {
            Some(value) => session.set_until(if local { Until::Block } else { Until::Reset }, &name, &value)?,
            None if local => session.variables.reset_local(&name)?,
            None => session.variables.reset(&name)?,
        }
    }
    Ok(())
}

pub(super) async fn reset(session: &mut Session, reset: &Reset) -> Result<Outcome> {
    match reset {
        Reset::All => session.variables.reset_all(),
        Reset::Variable(name) => session.variables.reset(name)?,
        Reset::Global(name) => {
            settings::find(Scope::Server, name)?;
            session.shared.engine.set_server_setting(name, None).await?;
            session.shared.follow_settings();
        }
    }
    Ok(command("RESET"))
}
