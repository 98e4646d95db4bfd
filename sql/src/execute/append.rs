//! Rows from a program: columns matched by name, then the way of every insert.

use super::ingest::{Ingest, Target};
use crate::{Error, Result, database::Shared, parse, session::Session, statement::StreamName};
use arrow::{
    array::{BooleanArray, RecordBatch},
    datatypes::SchemaRef,
};
use futures::{Stream, StreamExt};
use std::{pin::pin, sync::Arc};

/// Rows of which some may lack values.
pub(crate) struct Part {
    pub rows: RecordBatch,
    /// For each column the rows that leave it to its default; empty where none does.
    pub missing: Vec<Option<BooleanArray>>,
}

pub(crate) async fn append_all(shared: &Arc<Shared>, name: &str, batches: impl Stream<Item = Result<RecordBatch>> + Send) -> Result<u64> {
    append_parts(shared, name, batches.map(|batch| batch.map(|rows| Part { rows, missing: Vec::new() }))).await
}

pub(crate) async fn append_parts(shared: &Arc<Shared>, name: &str, parts: impl Stream<Item = Result<Part>> + Send) -> Result<u64> {
    let session = Session::new(shared.clone());
    let manifest = shared.engine.manifest();
    let name = stream_name(name)?;
    let (found, branch) = crate::bind::names::find_on(&manifest, &name, session.database())?;
    let (def, branch) = (found.def.clone(), branch.map(str::to_owned));
    let cut = session.cut().await;
    let state = session.context(&cut, false);
    let mut running: Option<(SchemaRef, Ingest)> = None;
    let mut parts = pin!(parts);
    while let Some(part) = parts.next().await {
        let Part { rows: batch, missing } = part?;
        let (schema, ingest) = match &mut running {
            Some(r) => r,
            None => {
                let names = batch.schema_ref().fields().iter().map(|f| (f.name().clone(), 0)).collect();
                let target = Target { branch: branch.clone(), ..Target::of(def.clone(), Some(names))? };
                running.insert((batch.schema(), Ingest::new(&session, &state, target, cut.now)?))
            }
        };
        if batch.schema_ref().fields().len() != schema.fields().len()
            || !batch.schema_ref().fields().iter().zip(schema.fields()).all(|(a, b)| a.name() == b.name())
        {
            return Err(Error::invalid(format!("batches appended to {} together must have the same columns", def.full_name())));
        }
        match missing.iter().any(Option::is_some) {
            true => ingest.push_some_defaults(&state, batch.columns(), missing, batch.num_rows()).await?,
            false => ingest.push(batch.columns(), batch.num_rows()).await?,
        }
    }
    match running {
        Some((_, ingest)) => ingest.finish().await,
        None => Ok(0),
    }
}

/// `s` or `database.s`, quoted as in SQL where need be.
pub(crate) fn stream_name(text: &str) -> Result<StreamName> {
    use datafusion::sql::sqlparser::ast::Expr;
    let folded = |i: &datafusion::sql::sqlparser::ast::Ident| {
        let name = if i.quote_style.is_some() { i.value.clone() } else { i.value.to_lowercase() };
        name.as_str().into()
    };
    match *parse::parse_expression(text)?.ast {
        Expr::Identifier(i) => Ok(StreamName { parts: vec![folded(&i)] }),
        Expr::CompoundIdentifier(parts) => Ok(StreamName { parts: parts.iter().map(folded).collect() }),
        _ => Err(Error::invalid(format!("'{text}' is no stream's name"))),
    }
}
