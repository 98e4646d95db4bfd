//! Rows of INSERT ... VALUES as columns. Literals take a path of their own, whole columns at a time, since scripts bring a hundred
//! thousand of them; anything else is evaluated cell by cell.

use super::{
    clocks::Clocks,
    ingest::{Target, fit},
};
use crate::{
    Error, Result,
    bind::expression,
    sqlstate,
    statement::is_default,
    types::{coerce, parse_text},
};
use arrow::{
    array::{ArrayRef, BooleanArray, new_empty_array},
    datatypes::DataType,
};
use datafusion::{
    common::ScalarValue,
    execution::SessionState,
    sql::sqlparser::ast::{Expr, UnaryOperator, Value},
};
use ebb_storage::column_type::ColumnType;
use std::borrow::Cow;

/// One column per column of the target; where DEFAULT stands it says NULL, and so does [`defaulted`].
pub(super) fn columns(state: &SessionState, target: &Target, rows: &[Vec<Expr>], params: &[ScalarValue]) -> Result<Vec<ArrayRef>> {
    let width = rows.first().map_or(0, Vec::len);
    if width != target.columns.len() {
        let message = format!("INSERT has {} columns but {width} values", target.columns.len());
        return Err(Error::invalid(message).with_sqlstate(sqlstate::SYNTAX_ERROR));
    }
    (0..width).map(|i| column(state, target, i, rows, params)).collect()
}

/// For each column the rows that say DEFAULT, where some do.
pub(super) fn defaulted(rows: &[Vec<Expr>]) -> Vec<Option<BooleanArray>> {
    let says = |i: usize| move |row: &Vec<Expr>| row.get(i).is_some_and(is_default);
    let of = |i| rows.iter().any(says(i)).then(|| BooleanArray::from(rows.iter().map(says(i)).collect::<Vec<bool>>()));
    (0..rows.first().map_or(0, Vec::len)).map(of).collect()
}

fn column(state: &SessionState, target: &Target, i: usize, rows: &[Vec<Expr>], params: &[ScalarValue]) -> Result<ArrayRef> {
    let field = &target.columns[i].field;
    let moment = ColumnType::DateTime64(3, Some("UTC".into()));
    let ty = target.def.column(field.name()).map_or(&moment, |c| &c.ty);
    let clocks = Clocks::of(state);
    let texts: Option<Vec<Option<Cow<'_, str>>>> = rows.iter().map(|row| row.get(i).and_then(|cell| literal(cell, ty))).collect();
    if let Some(texts) = texts {
        let texts = || texts.iter().map(|t| t.as_deref());
        return clocks.of_texts(texts(), parse_text(texts(), ty, field.name())?);
    }
    let cell = |row: &Vec<Expr>| -> Result<ScalarValue> {
        let expr = row.get(i).ok_or_else(|| Error::internal("a row is too short"))?;
        let value = match (expr, literal(expr, ty)) {
            (_, Some(text)) => {
                let text = || std::iter::once(text.as_deref());
                let array = clocks.of_texts(text(), parse_text(text(), ty, field.name())?)?;
                return Ok(ScalarValue::try_from_array(&array, 0)?);
            }
            (Expr::Value(v), None) if matches!(v.value, Value::Placeholder(_)) => parameter(&v.value, params)?,
            _ => expression::constant(state, expr, params)?,
        };
        let given = value.to_array()?;
        let array = match target.def.column(field.name()) {
            Some(column) if !value.is_null() => coerce(&given, column)?,
            _ => fit(&given, field.data_type())?,
        };
        let array = clocks.moments(&given, array)?;
        Ok(ScalarValue::try_from_array(&array, 0)?)
    };
    let cells = rows.iter().map(cell).collect::<Result<Vec<_>>>()?;
    if cells.is_empty() {
        return Ok(new_empty_array(field.data_type()));
    }
    Ok(ScalarValue::iter_to_array(cells)?)
}

fn parameter(value: &Value, params: &[ScalarValue]) -> Result<ScalarValue> {
    let Value::Placeholder(id) = value else { return Err(Error::internal("no parameter")) };
    let at = id.trim_start_matches('$').parse::<usize>().unwrap_or(0).wrapping_sub(1);
    params
        .get(at)
        .cloned()
        .ok_or_else(|| Error::invalid(format!("there is no parameter {id}")).with_sqlstate(sqlstate::UNDEFINED_PARAMETER))
}

/// A literal's text, `Some(None)` for NULL; `None` where the cell is no literal, or one whose text is not how the type is written.
fn literal<'a>(cell: &'a Expr, ty: &ColumnType) -> Option<Option<Cow<'a, str>>> {
    if is_default(cell) {
        return Some(None);
    }
    Some(Some(match cell {
        Expr::Value(v) => match &v.value {
            Value::Null => return Some(None),
            Value::SingleQuotedString(s) => Cow::Borrowed(s.as_str()),
            Value::Number(n, _) if plain_number(n, ty) => Cow::Borrowed(n.as_str()),
            Value::Boolean(b) if *ty == ColumnType::Bool => Cow::Borrowed(if *b { "true" } else { "false" }),
            _ => return None,
        },
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => match expr.as_ref() {
            Expr::Value(v) => match &v.value {
                Value::Number(n, _) if plain_number(n, ty) => Cow::Owned(format!("-{n}")),
                _ => return None,
            },
            _ => return None,
        },
        _ => return None,
    }))
}

/// Whether the number is written as the type's text is.
fn plain_number(n: &str, ty: &ColumnType) -> bool {
    let ty = ty.plain();
    match ty.arrow() {
        t if t.is_integer() => n.bytes().all(|b| b.is_ascii_digit()),
        t if t.is_floating() => !n.contains('_'),
        DataType::Decimal128(..) => !n.contains('_'),
        _ => *ty == ColumnType::String,
    }
}
