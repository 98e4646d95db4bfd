//! What other errors become.

use super::{Error, ErrorKind};
use crate::{dialect::StreamDialect, parse::parse, sqlstate};
use arrow::{
    array::{ArrayRef, Int64Array, StringArray},
    compute::{CastOptions, cast_with_options, kernels::numeric},
    datatypes::DataType,
    error::ArrowError,
};
use datafusion::{
    error::DataFusionError,
    prelude::{SessionConfig, SessionContext},
    sql::parser::DFParserBuilder,
};
use std::sync::Arc;

/// Plans and runs `sql`; the error as Ebb has it.
async fn failure(sql: &str) -> Error {
    let mut config = SessionConfig::new();
    config.options_mut().sql_parser.collect_spans = true;
    let ctx = SessionContext::new_with_config(config);
    let run = async {
        let statement = DFParserBuilder::new(sql).with_dialect(&StreamDialect).build()?.parse_statement()?;
        let plan = ctx.state().statement_to_plan(statement).await?;
        ctx.execute_logical_plan(plan).await?.collect().await
    };
    match run.await {
        Err(e) => Error::from_datafusion(&e, sql),
        Ok(rows) => panic!("{sql} gives {rows:?}"),
    }
}

#[tokio::test]
async fn datafusions_errors_have_postgres_codes() {
    for (sql, state) in [
        ("SELECT 1 +", sqlstate::SYNTAX_ERROR),
        ("SELECT * FROM nowhere", sqlstate::UNDEFINED_TABLE),
        ("SELECT nothing FROM (SELECT 1 AS a)", sqlstate::UNDEFINED_COLUMN),
        ("SELECT no_such_function(1)", sqlstate::UNDEFINED_FUNCTION),
        ("SELECT 1 / 0", sqlstate::DIVISION_BY_ZERO),
        ("SELECT a / b FROM (VALUES (1, 0)) t(a, b)", sqlstate::DIVISION_BY_ZERO),
        ("SELECT CAST(a AS INT) FROM (VALUES ('x')) t(a)", sqlstate::INVALID_TEXT_REPRESENTATION),
        ("SELECT CAST(a AS SMALLINT) FROM (VALUES (100000)) t(a)", sqlstate::NUMERIC_OUT_OF_RANGE),
        ("SELECT a FROM (SELECT 1 AS a) x, (SELECT 2 AS a) y", sqlstate::AMBIGUOUS_COLUMN),
        ("SELECT a, count(*) FROM (SELECT 1 AS a) t", sqlstate::GROUPING_ERROR),
    ] {
        let e = failure(sql).await;
        assert_eq!(e.sqlstate(), state, "{sql}: {e}");
        assert!(!e.message().contains("backtrace") && !e.message().contains("bug"), "{e}");
    }
}

#[tokio::test]
async fn positions_come_from_spans() {
    let e = failure("SELECT 'ä',\n  nothing FROM (SELECT 1 AS a)").await;
    assert_eq!((e.sqlstate(), e.position()), (sqlstate::UNDEFINED_COLUMN, Some(15)));
}

#[test]
fn an_own_error_comes_out_as_it_went_in() {
    let own = Error::unsupported("no").with_hint("yes").at(7);
    let wrapped = DataFusionError::Context("deep".to_owned(), Box::new(DataFusionError::External(Box::new(own.clone()))));
    assert_eq!(Error::from(wrapped), own);
    let shared = DataFusionError::Shared(Arc::new(DataFusionError::External(Box::new(own.clone()))));
    assert_eq!(Error::from(shared), own);
    let arrow = DataFusionError::ArrowError(Box::new(ArrowError::ExternalError(Box::new(own.clone()))), None);
    assert_eq!(Error::from(DataFusionError::External(Box::new(arrow))), own);
    let storage = ebb_storage::Error::full("disk full");
    let e = Error::from(DataFusionError::External(Box::new(storage)));
    assert_eq!((e.kind(), e.sqlstate(), e.message()), (ErrorKind::Full, sqlstate::DISK_FULL, "disk full"));
}

#[test]
fn kinds_have_codes_of_their_own() {
    let kinds = [
        ErrorKind::Invalid,
        ErrorKind::NotFound,
        ErrorKind::Conflict,
        ErrorKind::Fenced,
        ErrorKind::Full,
        ErrorKind::Unavailable,
        ErrorKind::Corrupt,
        ErrorKind::Internal,
    ];
    let codes: std::collections::BTreeSet<&str> = kinds.iter().map(|k| Error::new(*k, "x").sqlstate()).collect();
    assert_eq!(codes.len(), kinds.len());
    assert!(codes.iter().all(|c| c.len() == 5));
    assert_eq!(Error::from(ebb_storage::Error::not_found("s")).sqlstate(), sqlstate::UNDEFINED_OBJECT);
    let resources = Error::from(DataFusionError::ResourcesExhausted("memory".to_owned()));
    assert_eq!(resources.sqlstate(), sqlstate::OUT_OF_MEMORY);
    assert_eq!(Error::from(DataFusionError::NotImplemented("x".to_owned())).sqlstate(), sqlstate::FEATURE_NOT_SUPPORTED);
    assert_eq!(Error::from(DataFusionError::Internal("x".to_owned())).sqlstate(), sqlstate::INTERNAL_ERROR);
    assert_eq!(Error::cancelled("x").sqlstate(), sqlstate::QUERY_CANCELED);
}

#[test]
fn parse_errors_keep_place_and_hint() {
    let e = Error::from(parse("UPDATE s SET a = 1").unwrap_err());
    assert_eq!((e.sqlstate(), e.position(), e.hint().is_some()), (sqlstate::FEATURE_NOT_SUPPORTED, Some(1), true));
    assert_eq!(Error::from(parse("SELECT 1 +").unwrap_err()).sqlstate(), sqlstate::SYNTAX_ERROR);
    // The first place named is the closest one.
    assert_eq!(Error::invalid("x").at(3).at(5).position(), Some(3));
}

#[test]
fn arrows_errors_have_postgres_codes() {
    let options = CastOptions { safe: false, ..CastOptions::default() };
    let text: ArrayRef = Arc::new(StringArray::from(vec!["x"]));
    let e = Error::from(cast_with_options(&text, &DataType::Int32, &options).unwrap_err());
    assert_eq!(e.sqlstate(), sqlstate::INVALID_TEXT_REPRESENTATION, "{e}");
    let big: ArrayRef = Arc::new(Int64Array::from(vec![i64::MAX]));
    let e = Error::from(cast_with_options(&big, &DataType::Int16, &options).unwrap_err());
    assert_eq!(e.sqlstate(), sqlstate::NUMERIC_OUT_OF_RANGE, "{e}");
    let e = Error::from(numeric::add(&Int64Array::from(vec![i64::MAX]), &Int64Array::from(vec![1])).unwrap_err());
    assert_eq!(e.sqlstate(), sqlstate::NUMERIC_OUT_OF_RANGE, "{e}");
}
