//! Values into column types: everything that enters a stream passes here, whatever brought it.
//!
//! `coerce` takes Arrow arrays, `text` texts as PostgreSQL writes them; both check what the type demands and name the column, the row and
//! the value they refuse. Nothing wraps, nothing turns silently into NULL.

pub mod coerce;
pub mod text;

pub use coerce::{coerce, shown_in};
pub use text::parse_text;

use crate::{Error, parse, sqlstate};
use arrow::datatypes::{DataType, Field, TimeUnit};
use ebb_storage::{column_type::ColumnType, stream_def::TYPE_META_KEY};

/// How much of a value is shown in a message.
const SHOWN_CHARS: usize = 80;

/// The row, counted from 0 in the array, is told to the caller, who knows what it is called (line, parameter, row of VALUES).
#[derive(Debug, Clone, PartialEq)]
pub struct Refused {
    pub row: usize,
    pub sqlstate: &'static str,
    pub message: String,
}

impl Refused {
    fn new(row: usize, sqlstate: &'static str, message: impl Into<String>) -> Self {
        Self { row, sqlstate, message: message.into() }
    }

    fn value(row: usize, column: &str, value: &str, what: impl std::fmt::Display) -> Self {
        Self::new(row, sqlstate::INVALID_TEXT_REPRESENTATION, format!("column '{column}': '{}' is no {what}", shown(value)))
    }

    /// The refusal of a value that is in no column.
    pub fn of_value(mut self) -> Self {
        if let Some(rest) = self.message.strip_prefix("column '': ") {
            self.message = rest.to_owned();
        }
        self
    }

    fn range(row: usize, column: &str, value: &str, what: impl std::fmt::Display) -> Self {
        Self::new(row, sqlstate::NUMERIC_OUT_OF_RANGE, format!("column '{column}': {} is out of range of {what}", shown(value)))
    }

    fn null_inside(row: usize, column: &str) -> Self {
        let message = format!("column '{column}' takes no NULL among its elements: declare them nullable, like array(nullable(int32))");
        Self::new(row, sqlstate::NOT_NULL_VIOLATION, message)
    }

    fn null(row: usize, column: &str) -> Self {
        Self::new(
            row,
            sqlstate::NOT_NULL_VIOLATION,
            format!("column '{column}' is NOT NULL and got NULL: give a value, or declare it nullable"),
        )
    }
}

impl From<Refused> for Error {
    fn from(r: Refused) -> Self {
        Self::invalid(r.message).with_sqlstate(r.sqlstate)
    }
}

/// The type that a column was declared with, else the one that carries it.
pub fn of_field(field: &Field) -> Option<ColumnType> {
    let declared = field.metadata().get(TYPE_META_KEY).and_then(|t| parse::parse_type(t).ok());
    declared.filter(|t| t.arrow() == *field.data_type()).or_else(|| of_arrow(field.data_type()))
}

/// The type of a stream that carries what Arrow calls `ty`; `None` where none does.
pub fn of_arrow(ty: &DataType) -> Option<ColumnType> {
    Some(match ty {
        DataType::Int8 => ColumnType::Int8,
        DataType::Int16 => ColumnType::Int16,
        DataType::Int32 => ColumnType::Int32,
        DataType::Int64 => ColumnType::Int64,
        DataType::UInt8 => ColumnType::UInt8,
        DataType::UInt16 => ColumnType::UInt16,
        DataType::UInt32 => ColumnType::UInt32,
        DataType::UInt64 => ColumnType::UInt64,
        DataType::Float16 | DataType::Float32 => ColumnType::Float32,
        DataType::Float64 => ColumnType::Float64,
        DataType::Boolean => ColumnType::Bool,
        DataType::Null | DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => ColumnType::String,
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => ColumnType::Bytes,
        DataType::Date32 | DataType::Date64 => ColumnType::Date,
        DataType::Decimal128(p, s) if *s >= 0 => ColumnType::Decimal(*p, *s),
        DataType::Timestamp(unit, zone) => {
            let digits = match unit {
                TimeUnit::Second => 0,
                TimeUnit::Millisecond => 3,
                TimeUnit::Microsecond => 6,
                TimeUnit::Nanosecond => 9,
            };
            ColumnType::DateTime64(digits, zone.clone())
        }
        DataType::Dictionary(_, value) => return of_arrow(value),
        DataType::List(f) | DataType::LargeList(f) => ColumnType::Array(Box::new(of_field(f)?), f.is_nullable()),
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(of) if of.len() == 2 => {
                ColumnType::Map(Box::new(of_field(&of[0])?), Box::new(of_field(&of[1])?), of[1].is_nullable())
            }
            _ => return None,
        },
        _ => return None,
    })
}

/// The beginning of a value, for a message.
pub(crate) fn shown(value: &str) -> String {
    let mut text: String = value.chars().take(SHOWN_CHARS).collect();
    if text.len() < value.len() {
        text.push_str("...");
    }
    text
}
