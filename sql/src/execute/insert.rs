//! INSERT of values, of a query's rows, of one row of defaults.

use super::{
    command,
    ingest::{Ingest, Target},
    query, values,
};
use crate::{
    Error, Outcome, Result, Session, sqlstate,
    statement::{Insert, InsertRows},
};
use datafusion::common::ScalarValue;
use futures::StreamExt;

pub(super) async fn run(session: &mut Session, insert: &Insert, params: &[ScalarValue]) -> Result<Outcome> {
    let cut = match insert.rows {
        InsertRows::Query(_) => session.cut().await,
        _ => session.cut_without_own(),
    };
    let state = session.context(&cut, false);
    let mut target = Target::find(session, &insert.into, insert.columns.as_deref())?;
    let rows = match &insert.rows {
        InsertRows::Values { rows, .. } => {
            let width = rows.first().map_or(0, Vec::len);
            // As in PostgreSQL, a shorter list without column names fills the first columns.
            if insert.columns.is_none() && width < target.columns.len() {
                target.columns.truncate(width);
            }
            let columns = values::columns(&state, &target, rows, params)?;
            let mut ingest = Ingest::new(session, &state, target, cut.now)?;
            ingest.push_some_defaults(&state, &columns, values::defaulted(rows), rows.len()).await?;
            ingest.finish().await?
        }
        InsertRows::Default => {
            target.columns.clear();
            let mut ingest = Ingest::new(session, &state, target, cut.now)?;
            ingest.push(&[], 1).await?;
            ingest.finish().await?
        }
        InsertRows::Query(q) => {
            let (schema, mut stream) = query::stream(session, q, params).await?;
            let width = schema.fields().len();
            if width > target.columns.len() || insert.columns.is_some() && width != target.columns.len() {
                let message = format!("INSERT has {} columns but the query gives {width}", target.columns.len());
                return Err(Error::invalid(message).with_sqlstate(sqlstate::SYNTAX_ERROR));
            }
            target.columns.truncate(width);
            let mut ingest = Ingest::new(session, &state, target, cut.now)?;
            while let Some(batch) = stream.next().await {
                let batch = batch?;
                ingest.push(batch.columns(), batch.num_rows()).await?;
            }
            ingest.finish().await?
        }
    };
    Ok(command(format!("INSERT 0 {rows}")))
}
