//! COPY ... TO STDOUT: a query's rows, to be written in the format of the options.

use super::query;
use crate::{
    CopyOut, Error, Outcome, Result, Session,
    bind::names,
    parse,
    statement::{Copy, Query, Verb, quote_name},
};
use datafusion::common::ScalarValue;
use ebb_storage::stream_def::StreamDef;

pub(super) async fn run(session: &mut Session, copy: &Copy, params: &[ScalarValue]) -> Result<Outcome> {
    let (query, options) = match copy {
        Copy::QueryTo { query, options } => (query.clone(), options),
        Copy::To { from, columns, options } => {
            let manifest = session.shared.engine.manifest();
            let (state, branch) = names::find_on(&manifest, from, session.database())?;
            let names = columns.as_ref().map(|c| c.iter().map(|n| n.as_str().to_owned()).collect());
            (of_stream(&state.def, branch, names)?, options)
        }
        Copy::From { .. } => return Err(Error::internal("COPY FROM is no COPY TO")),
    };
    let (schema, stream) = query::stream(session, &query, params).await?;
    Ok(Outcome::CopyOut(CopyOut { schema, options: options.clone(), stream }))
}

fn of_stream(def: &StreamDef, branch: Option<&str>, named: Option<Vec<String>>) -> Result<Query> {
    let columns: Vec<String> = named.unwrap_or_else(|| def.columns.iter().map(|c| c.name.clone()).collect());
    let columns = columns.iter().map(|n| quote_name(n)).collect::<Vec<_>>().join(", ");
    let branch = branch.map(|b| format!(".{}", quote_name(&format!("{}{b}", names::BRANCH_PREFIX)))).unwrap_or_default();
    let sql = format!("SELECT {columns} FROM {}.{}{branch}", quote_name(&def.database), quote_name(&def.name));
    match parse::parse(&sql)?.into_iter().next().map(|s| s.verb) {
        Some(Verb::Query(query)) => Ok(query),
        _ => Err(Error::internal("COPY TO made no query")),
    }
}
