//! What the arguments of CALL, of table functions and of AS OF are: one value each, of the type that its place asks for.
//!
//! Guards: a number is never taken for a time, nor a text for an sn where the text is written as one.

use crate::{Error, Result, functions::type_name, nearest, sqlstate};
use arrow::{
    compute::{CastOptions, cast_with_options},
    datatypes::{DataType, Field, FieldRef, TimeUnit},
};
use datafusion::common::ScalarValue;
use ebb_engine::Timestamp;
use ebb_storage::ids::Sn;
use std::{collections::HashMap, sync::Arc};

fn wrong(what: &str, takes: &str, value: &ScalarValue) -> Error {
    let found = match value.is_null() {
        true => "NULL".to_owned(),
        false => format!("a {}", type_name(&value.data_type())),
    };
    Error::invalid(format!("{what} takes {takes}, not {found}")).with_sqlstate(sqlstate::DATATYPE_MISMATCH)
}

/// Marks the place of a version: an sn, or the name of a tag or branch.
const VERSION: &str = "ebb.version";

/// What a value for a place of `ty` is told as.
pub fn plain(ty: DataType) -> FieldRef {
    Arc::new(Field::new("", ty, true))
}

/// What a version is told as: a number, since most drivers send nothing but what they are told. One that sends a text says so.
pub fn version_field() -> FieldRef {
    let marked = HashMap::from([(VERSION.to_owned(), String::new())]);
    Arc::new(Field::new("", DataType::Int64, true).with_metadata(marked))
}

/// Whether a text is as good as a number here.
pub fn is_version(field: &Field) -> bool {
    field.metadata().contains_key(VERSION)
}

/// What a time is told in.
pub fn moment_type() -> DataType {
    DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))
}

/// A time, a date, or a text that is one; without a zone it is UTC.
pub fn moment(what: &str, value: &ScalarValue) -> Result<Timestamp> {
    let ty = value.data_type();
    if value.is_null()
        || !matches!(ty, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Date32 | DataType::Timestamp(..))
    {
        return Err(wrong(what, "a time", value));
    }
    let array = match value.try_as_str().flatten() {
        // Arrow wants seconds; people leave them out.
        Some(text) if text.len() == 16 && text.as_bytes()[13] == b':' => ScalarValue::Utf8(Some(format!("{text}:00"))).to_array()?,
        _ => value.to_array()?,
    };
    let options = CastOptions { safe: false, ..CastOptions::default() };
    let array = cast_with_options(&array, &moment_type(), &options).map_err(|e| Error::from(e).context(what))?;
    match ScalarValue::try_from_array(&array, 0)? {
        ScalarValue::TimestampMicrosecond(Some(t), _) => Ok(Timestamp(t)),
        _ => Err(wrong(what, "a time", value)),
    }
}

/// A whole number from 0.
pub fn count(what: &str, value: &ScalarValue) -> Result<u64> {
    let takes = "a whole number from 0";
    if value.is_null() || !value.data_type().is_integer() {
        return Err(wrong(what, takes, value));
    }
    match value.cast_to(&DataType::UInt64) {
        Ok(ScalarValue::UInt64(Some(n))) => Ok(n),
        _ => Err(Error::invalid(format!("{what} takes {takes}, not {value}"))),
    }
}

/// A number; also the digits of one where a client sent a text without saying its type.
pub fn sn(what: &str, value: &ScalarValue) -> Result<Sn> {
    if let Some(digits) = digits(value) {
        return digits.parse().map(Sn).map_err(|_| Error::invalid(format!("{what} takes an sn, and {digits} is none")));
    }
    count(what, value).map(Sn)
}

/// A text of digits only.
pub fn digits(value: &ScalarValue) -> Option<&str> {
    let text = value.try_as_str().flatten()?;
    (!text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())).then_some(text)
}

pub fn text(what: &str, value: &ScalarValue) -> Result<String> {
    match value.try_as_str() {
        Some(Some(text)) => Ok(text.to_owned()),
        _ => Err(wrong(what, "a text", value)),
    }
}

pub fn flag(what: &str, value: &ScalarValue) -> Result<bool> {
    match value {
        ScalarValue::Boolean(Some(flag)) => Ok(*flag),
        _ => Err(wrong(what, "true or false", value)),
    }
}

/// A place for an argument.
#[derive(Debug, Clone, Copy)]
pub struct Place {
    pub name: &'static str,
    pub required: bool,
}

pub const fn required(name: &'static str) -> Place {
    Place { name, required: true }
}

pub const fn optional(name: &'static str) -> Place {
    Place { name, required: false }
}

/// `given` by place: those without a name in order, the others by it.
///
/// # Errors
/// For too many, too few, unknown names with the nearest known one, and a place that is filled twice.
pub fn arrange<T>(call: &str, places: &[Place], given: impl IntoIterator<Item = (Option<String>, T)>) -> Result<Vec<Option<T>>> {
    let signature = || {
        let one = |p: &Place| if p.required { p.name.to_owned() } else { format!("[{}]", p.name) };
        format!("{call}({})", places.iter().map(one).collect::<Vec<_>>().join(", "))
    };
    let refuse = |message: String| Err(Error::invalid(message).with_sqlstate(sqlstate::UNDEFINED_FUNCTION));
    let mut filled: Vec<Option<T>> = places.iter().map(|_| None).collect();
    for (n, (name, value)) in given.into_iter().enumerate() {
        let at = match &name {
            None if n < places.len() => n,
            None => return refuse(format!("too many arguments: write {}", signature())),
            Some(name) => match places.iter().position(|p| p.name == name) {
                Some(at) => at,
                None => {
                    let near = nearest::did_you_mean(name, places.iter().map(|p| p.name));
                    return refuse(format!("{call} has no argument '{name}'{near}: write {}", signature()));
                }
            },
        };
        if filled[at].replace(value).is_some() {
            return refuse(format!("{call}: argument {} is given twice", places[at].name));
        }
    }
    match places.iter().zip(&filled).find(|(p, v)| p.required && v.is_none()) {
        Some((missing, _)) => refuse(format!("argument {} is missing: write {}", missing.name, signature())),
        None => Ok(filled),
    }
}

#[cfg(test)]
mod tests;
