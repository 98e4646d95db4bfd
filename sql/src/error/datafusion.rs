//! DataFusion's and Arrow's failures as Ebb's. DataFusion says many things in text only, so a few of its phrases are known here;
//! an unknown phrase costs precision of the SQLSTATE, never the message.

use super::{Error, ErrorKind};
use crate::sqlstate;
use arrow::error::ArrowError;
use datafusion::{
    common::SchemaError,
    error::DataFusionError,
    sql::sqlparser::{parser::ParserError, tokenizer::Location},
};
use std::error::Error as StdError;

/// How deep causes are followed.
const MAX_CAUSES: usize = 32;

impl From<DataFusionError> for Error {
    fn from(e: DataFusionError) -> Self {
        of_datafusion(&e, 0)
    }
}

/// Comes out of DataFusion as it went in.
impl From<Error> for DataFusionError {
    fn from(e: Error) -> Self {
        Self::External(Box::new(e))
    }
}

impl From<ArrowError> for Error {
    fn from(e: ArrowError) -> Self {
        of_arrow(&e)
    }
}

impl Error {
    /// As `From`, with the position where DataFusion knows one. `sql` is the whole text that was parsed.
    pub fn from_datafusion(e: &DataFusionError, sql: &str) -> Self {
        let error = of_datafusion(e, 0);
        let start = e.diagnostic().and_then(|d| d.span).map(|s| s.start);
        match start.and_then(|l| crate::parse::position_of(sql, Location { line: l.line, column: l.column })) {
            Some(position) => error.at(position),
            None => error,
        }
    }
}

/// Ebb's own error carried inside another one.
fn own(e: &(dyn StdError + 'static)) -> Option<Error> {
    let mut cause = Some(e);
    for _ in 0..MAX_CAUSES {
        let e = cause?;
        if let Some(own) = e.downcast_ref::<Error>() {
            return Some(own.clone());
        }
        if let Some(storage) = e.downcast_ref::<ebb_storage::Error>() {
            return Some(storage.clone().into());
        }
        if let Some(df) = e.downcast_ref::<DataFusionError>() {
            return Some(of_datafusion(df, 1));
        }
        cause = e.source();
    }
    None
}

fn of_datafusion(e: &DataFusionError, depth: usize) -> Error {
    if depth > MAX_CAUSES {
        return Error::internal(e.strip_backtrace());
    }
    match e {
        DataFusionError::ArrowError(e, _) => of_arrow(e),
        DataFusionError::External(e) => own(e.as_ref()).unwrap_or_else(|| Error::internal(e.to_string())),
        DataFusionError::Context(_, e) | DataFusionError::Diagnostic(_, e) => of_datafusion(e, depth + 1),
        DataFusionError::Shared(e) => of_datafusion(e, depth + 1),
        DataFusionError::Collection(all) => match all.first() {
            Some(first) => of_datafusion(first, depth + 1),
            None => Error::internal("no cause was given"),
        },
        DataFusionError::SQL(e, _) => of_parser(e),
        DataFusionError::SchemaError(e, _) => {
            let state = match e.as_ref() {
                SchemaError::FieldNotFound { .. } => sqlstate::UNDEFINED_COLUMN,
                SchemaError::AmbiguousReference { .. } => sqlstate::AMBIGUOUS_COLUMN,
                SchemaError::DuplicateQualifiedField { .. } | SchemaError::DuplicateUnqualifiedField { .. } => sqlstate::DUPLICATE_COLUMN,
            };
            Error::invalid(trimmed(&e.to_string())).with_sqlstate(state)
        }
        DataFusionError::Plan(m) if m.contains("failed to match any signature") => of_signature(m),
        DataFusionError::Plan(m) => Error::invalid(trimmed(m)).with_sqlstate(of_plan(m)),
        DataFusionError::Configuration(m) => Error::invalid(trimmed(m)),
        DataFusionError::NotImplemented(m) if m.contains("Subquery") && m.contains("does not support logical expression") => {
            let message = "a subquery can be a value here only if what it names of the outer query is compared with =";
            Error::unsupported(message).with_hint("write it as a join, or as a condition in WHERE")
        }
        DataFusionError::NotImplemented(m) => Error::unsupported(trimmed(m)),
        DataFusionError::Internal(m) if m.contains("failed to match any signature") => of_signature(m),
        DataFusionError::Execution(m) => Error::invalid(trimmed(m)).with_sqlstate(of_execution(m)),
        DataFusionError::ResourcesExhausted(m) => Error::new(ErrorKind::Full, trimmed(m)).with_sqlstate(sqlstate::OUT_OF_MEMORY),
        DataFusionError::IoError(e) => match own(e) {
            Some(own) => own,
            None => Error::new(ErrorKind::Unavailable, e.to_string()),
        },
        DataFusionError::ObjectStore(e) => own(e.as_ref()).unwrap_or_else(|| Error::new(ErrorKind::Unavailable, e.to_string())),
        DataFusionError::ParquetError(e) => own(e.as_ref()).unwrap_or_else(|| Error::new(ErrorKind::Corrupt, e.to_string())),
        DataFusionError::ExecutionJoin(e) if e.is_cancelled() => Error::cancelled("the query was cancelled"),
        other => Error::internal(trimmed(&other.strip_backtrace())),
    }
}

/// `Function 'f' failed to match any signature, errors: ... requires A, but received B (DataType: C) ...`
fn of_signature(m: &str) -> Error {
    let name = m.split('\'').nth(1).unwrap_or_default();
    let name = if name == "approx_percentile_cont" { "quantile" } else { name };
    let received = m.split("but received ").nth(1).and_then(|rest| rest.split(" (DataType").next());
    let message = match received {
        Some(received) => format!("function {name} takes no {}", received.to_ascii_lowercase()),
        None => format!("function {name} takes other arguments"),
    };
    let error = Error::invalid(message).with_sqlstate(sqlstate::UNDEFINED_FUNCTION);
    match received.is_some_and(|r| r.starts_with("Date") || r.starts_with("Timestamp")) {
        true => error.with_hint("to_unix_timestamp(x) makes a number of a time, to_datetime(n) a time of a number"),
        false => error,
    }
}

fn of_parser(e: &ParserError) -> Error {
    match e {
        ParserError::RecursionLimitExceeded => Error::invalid("the statement is nested too deeply").with_sqlstate(sqlstate::TOO_COMPLEX),
        ParserError::TokenizerError(m) | ParserError::ParserError(m) => Error::invalid(trimmed(m)).with_sqlstate(sqlstate::SYNTAX_ERROR),
    }
}

fn of_plan(message: &str) -> &'static str {
    let m = message.to_ascii_lowercase();
    if m.contains("invalid function") || m.contains("no function matches") || m.contains("table function") && m.contains("not found") {
        sqlstate::UNDEFINED_FUNCTION
    } else if m.contains("table") && m.contains("not found") || m.contains("failed to resolve") {
        sqlstate::UNDEFINED_TABLE
    } else if m.contains("no field named") || m.contains("column") && m.contains("not found") {
        sqlstate::UNDEFINED_COLUMN
    } else if m.contains("placeholder") {
        sqlstate::UNDEFINED_PARAMETER
    } else if m.contains("group by") || m.contains("aggregate") {
        sqlstate::GROUPING_ERROR
    } else if m.contains("cannot coerce") || m.contains("cannot infer common") || m.contains("failed to coerce") {
        sqlstate::DATATYPE_MISMATCH
    } else {
        sqlstate::SYNTAX_ERROR
    }
}

fn of_execution(message: &str) -> &'static str {
    let m = message.to_ascii_lowercase();
    if m.contains("divide by zero") || m.contains("division by zero") {
        sqlstate::DIVISION_BY_ZERO
    } else if m.contains("overflow") || m.contains("out of range") {
        sqlstate::NUMERIC_OUT_OF_RANGE
    } else if m.contains("error parsing") || m.contains("cannot parse") {
        sqlstate::INVALID_TEXT_REPRESENTATION
    } else {
        sqlstate::INVALID_PARAMETER_VALUE
    }
}

fn of_arrow(e: &ArrowError) -> Error {
    let invalid = |state: &'static str, message: &str| Error::invalid(trimmed(message)).with_sqlstate(state);
    match e {
        ArrowError::ExternalError(e) => own(e.as_ref()).unwrap_or_else(|| Error::internal(e.to_string())),
        ArrowError::DivideByZero => invalid(sqlstate::DIVISION_BY_ZERO, "division by zero"),
        ArrowError::ArithmeticOverflow(m) => invalid(sqlstate::NUMERIC_OUT_OF_RANGE, m),
        // Casts of numbers say that the value does not fit; all others are of texts that are no such value.
        ArrowError::CastError(m) if m.contains("Can't cast value") || m.contains("too large") || m.contains("out of range") => {
            invalid(sqlstate::NUMERIC_OUT_OF_RANGE, m)
        }
        ArrowError::CastError(m) | ArrowError::ParseError(m) | ArrowError::CsvError(m) | ArrowError::JsonError(m) => {
            invalid(sqlstate::INVALID_TEXT_REPRESENTATION, m)
        }
        ArrowError::NotYetImplemented(m) => Error::unsupported(trimmed(m)),
        ArrowError::InvalidArgumentError(m) | ArrowError::ComputeError(m) => invalid(of_execution(m), m),
        ArrowError::MemoryError(m) => Error::new(ErrorKind::Full, trimmed(m)).with_sqlstate(sqlstate::OUT_OF_MEMORY),
        ArrowError::IoError(m, _) => Error::new(ErrorKind::Unavailable, trimmed(m)),
        ArrowError::ParquetError(m) => Error::new(ErrorKind::Corrupt, trimmed(m)),
        other => Error::internal(trimmed(&other.to_string())),
    }
}

/// Without the backtrace and the pleas to report a defect that DataFusion appends.
fn trimmed(message: &str) -> &str {
    let cut = ["\n\nbacktrace:", "\nThis issue was likely caused by a bug"].iter().filter_map(|m| message.find(m)).min();
    message[..cut.unwrap_or(message.len())].trim_end()
}
