//! PREPARE, EXECUTE, DEALLOCATE, DISCARD.

use super::command;
use crate::{
    Error, Outcome, Result, Session,
    bind::{argument, expression},
    sqlstate,
    statement::{Deallocate, Discard, Execute, Prepare},
};
use arrow::datatypes::{DataType, TimeUnit};
use datafusion::{common::ScalarValue, sql::sqlparser::ast::DataType as SqlType};

/// Statements that one session may have prepared by name.
const PREPARED_MAX: usize = 10_000;

pub(super) async fn prepare(session: &mut Session, prepare: &Prepare) -> Result<Outcome> {
    let name = prepare.name.as_str();
    if session.prepared.contains_key(name) {
        return Err(Error::conflict(format!("prepared statement '{name}' exists already")).with_sqlstate("42P05"));
    }
    if session.prepared.len() >= PREPARED_MAX {
        return Err(Error::new(crate::ErrorKind::Full, format!("a session keeps {PREPARED_MAX} prepared statements: DEALLOCATE some")));
    }
    let hints: Vec<Option<DataType>> = prepare.types.iter().map(arrow_type).collect();
    let prepared = Box::pin(session.look_up(prepare.statement.as_ref().clone(), &hints)).await?;
    session.prepared.insert(name.to_owned(), prepared);
    Ok(command("PREPARE"))
}

/// Parameter types as PREPARE names them; others are inferred.
fn arrow_type(ty: &SqlType) -> Option<DataType> {
    Some(match ty.to_string().to_ascii_lowercase().as_str() {
        "smallint" | "int2" => DataType::Int16,
        "int" | "integer" | "int4" => DataType::Int32,
        "bigint" | "int8" => DataType::Int64,
        "real" | "float4" => DataType::Float32,
        "double precision" | "double" | "float8" => DataType::Float64,
        "text" | "varchar" | "string" => DataType::Utf8,
        "boolean" | "bool" => DataType::Boolean,
        "date" => DataType::Date32,
        "timestamp" | "timestamp without time zone" => DataType::Timestamp(TimeUnit::Microsecond, None),
        "timestamptz" | "timestamp with time zone" => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
        _ => return None,
    })
}

pub(super) async fn execute(session: &mut Session, execute: &Execute, params: &[ScalarValue]) -> Result<Outcome> {
    let name = execute.name.as_str();
    let unknown = || Error::not_found(format!("prepared statement '{name}' does not exist")).with_sqlstate("26000");
    let prepared = session.prepared.get(name).cloned().ok_or_else(unknown)?;
    if execute.args.len() != prepared.parameters.len() {
        let message = format!("'{name}' takes {} values, not {}", prepared.parameters.len(), execute.args.len());
        return Err(Error::invalid(message).with_sqlstate(sqlstate::SYNTAX_ERROR));
    }
    let cut = session.cut().await;
    let state = session.context(&cut, false);
    let mut values = Vec::with_capacity(execute.args.len());
    for (arg, ty) in execute.args.iter().zip(&prepared.parameters) {
        let value = expression::constant(&state, &arg.ast, params)?;
        if argument::is_version(ty) && value.try_as_str().is_some() {
            values.push(value);
            continue;
        }
        let array = super::ingest::fit(&value.to_array()?, ty.data_type())?;
        values.push(ScalarValue::try_from_array(&array, 0)?);
    }
    super::run(session, &prepared, values).await
}

pub(super) fn deallocate(session: &mut Session, what: &Deallocate) -> Result<Outcome> {
    match what {
        Deallocate::All => {
            session.prepared.clear();
            Ok(command("DEALLOCATE ALL"))
        }
        Deallocate::Name(name) => match session.prepared.remove(name.as_str()) {
            Some(_) => Ok(command("DEALLOCATE")),
            None => Err(Error::not_found(format!("prepared statement '{}' does not exist", name.as_str())).with_sqlstate("26000")),
        },
    }
}

pub(super) fn discard(session: &mut Session, what: Discard) -> Outcome {
    command(match what {
        Discard::All => {
            session.prepared.clear();
            session.variables.discard();
            "DISCARD ALL"
        }
        Discard::Plans => "DISCARD PLANS",
        Discard::Sequences => "DISCARD SEQUENCES",
        Discard::Temp => "DISCARD TEMP",
    })
}
