//! Rows of few types, cell by cell, made into a batch.
//!
//! Guards: a row has as many cells as the table has columns (the compiler counts), and a cell its column's type.

use crate::{Error, Result};
use arrow::{
    array::{
        ArrayRef, BooleanBuilder, Float64Builder, Int64Builder, RecordBatch, RecordBatchOptions, StringBuilder, TimestampMicrosecondBuilder,
    },
    datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit},
};
use ebb_storage::Timestamp;
use std::sync::Arc;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Type {
    Int,
    Float,
    Text,
    Flag,
    /// A moment, in UTC.
    Time,
}

pub(crate) type Column = (&'static str, Type);

#[derive(Debug, Clone)]
pub(crate) enum Cell {
    Null,
    Int(i64),
    Float(f64),
    Text(String),
    Flag(bool),
    Time(Timestamp),
}

/// Counts beyond what an int64 holds are its largest.
impl From<u64> for Cell {
    fn from(n: u64) -> Self {
        Self::Int(i64::try_from(n).unwrap_or(i64::MAX))
    }
}

impl From<usize> for Cell {
    fn from(n: usize) -> Self {
        Self::from(n as u64)
    }
}

impl From<bool> for Cell {
    fn from(flag: bool) -> Self {
        Self::Flag(flag)
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

/// The ends of time stand for "never" and "not yet": they are NULL.
impl From<Timestamp> for Cell {
    fn from(at: Timestamp) -> Self {
        match at {
            Timestamp::MIN | Timestamp::MAX => Self::Null,
            at => Self::Time(at),
        }
    }
}

impl<T: Into<Cell>> From<Option<T>> for Cell {
    fn from(cell: Option<T>) -> Self {
        cell.map_or(Self::Null, Into::into)
    }
}

pub(crate) fn schema(columns: &[Column]) -> SchemaRef {
    let field = |(name, ty): &Column| {
        let ty = match ty {
            Type::Int => DataType::Int64,
            Type::Float => DataType::Float64,
            Type::Text => DataType::Utf8,
            Type::Flag => DataType::Boolean,
            Type::Time => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
        };
        Field::new(*name, ty, true)
    };
    Arc::new(Schema::new(columns.iter().map(field).collect::<Vec<_>>()))
}

/// # Errors
/// `Internal` for a cell that is not of its column's type.
pub(crate) fn batch<const N: usize>(columns: &[Column; N], rows: &[[Cell; N]]) -> Result<RecordBatch> {
    let arrays = columns.iter().enumerate().map(|(i, column)| array(*column, rows.iter().map(|r| &r[i]))).collect::<Result<_>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
    Ok(RecordBatch::try_new_with_options(schema(columns), arrays, &options)?)
}

macro_rules! build {
    ($builder:expr, $cells:expr, $kind:ident, $name:expr, $value:expr) => {{
        let mut builder = $builder;
        for cell in $cells {
            match cell {
                Cell::Null => builder.append_null(),
                Cell::$kind(value) => builder.append_value($value(value)),
                other => return Err(Error::from(ebb_storage::Error::internal(format!("column '{}' cannot hold {other:?}", $name)))),
            }
        }
        Ok(Arc::new(builder.finish()))
    }};
}

fn array<'a>((name, ty): Column, cells: impl Iterator<Item = &'a Cell>) -> Result<ArrayRef> {
    match ty {
        Type::Int => build!(Int64Builder::new(), cells, Int, name, |v: &i64| *v),
        Type::Float => build!(Float64Builder::new(), cells, Float, name, |v: &f64| *v),
        Type::Flag => build!(BooleanBuilder::new(), cells, Flag, name, |v: &bool| *v),
        Type::Text => build!(StringBuilder::new(), cells, Text, name, String::as_str),
        Type::Time => build!(TimestampMicrosecondBuilder::new().with_timezone("UTC"), cells, Time, name, |v: &Timestamp| v.0),
    }
}
