//! Arrow arrays of any type into the array that a column carries.

use super::{Refused, parse_text, text::decimal};
use crate::wire::encode::json_texts;
use arrow::{
    array::{
        Array, ArrayRef, AsArray, Int32Array, ListArray, MapArray, PrimitiveArray, PrimitiveBuilder, StringArray, StringViewArray,
        StructArray,
    },
    buffer::{NullBuffer, OffsetBuffer},
    compute::{CastOptions, cast, cast_with_options, take},
    datatypes::{DataType, Decimal128Type, Float32Type, Float64Type, TimeUnit, TimestampMicrosecondType, TimestampNanosecondType},
    util::display::{ArrayFormatter, FormatOptions},
};
use ebb_storage::{column_type::ColumnType, stream_def::ColumnDef};
use std::sync::Arc;

/// `array` as values of `column`: exact types pass untouched, others are cast with every loss refused.
///
/// Text columns take dictionaries of texts as they are: they are cheaper to sort and write.
///
/// # Errors
/// The first row that does not fit, with the column and the value.
pub fn coerce(array: &ArrayRef, column: &ColumnDef) -> Result<ArrayRef, Refused> {
    if !column.nullable
        && let Some(nulls) = array.logical_nulls()
        && let Some(row) = (0..array.len()).find(|i| nulls.is_null(*i))
    {
        return Err(Refused::null(row, &column.name));
    }
    value(array, &column.ty, &column.name)
}

fn value(array: &ArrayRef, ty: &ColumnType, name: &str) -> Result<ArrayRef, Refused> {
    let ty = ty.plain();
    let target = ty.arrow();
    match ty {
        ColumnType::Array(element, nullable) if is_list(array.data_type()) => return list(array, element, *nullable, name),
        ColumnType::Map(key, item, nullable) if matches!(array.data_type(), DataType::Map(..)) => {
            return map(array, key, item, *nullable, name);
        }
        _ => {}
    }
    if is_text(array.data_type()) {
        // Plain texts need no check.
        if *ty == ColumnType::String {
            return match array.data_type() {
                DataType::Utf8View | DataType::Dictionary(..) => Ok(array.clone()),
                _ => cast(array, &target).map_err(|e| Refused::value(0, name, "text", e)),
            };
        }
        let texts = cast(array, &DataType::Utf8).map_err(|e| Refused::value(0, name, "text", e))?;
        let texts = texts.as_string::<i32>();
        return parse_text(texts.iter(), ty, name);
    }
    if *ty == ColumnType::Json && array.data_type().is_nested() {
        return Ok(Arc::new(json_texts(array)));
    }
    if ty.is_text() {
        let shown = texts_of(array);
        return match ty {
            ColumnType::String => Ok(Arc::new(StringViewArray::from_iter(shown.iter()))),
            ColumnType::Enum { labels, .. } => {
                // Numbers stand for their labels.
                let by_number = shown.iter().map(|n| {
                    n.and_then(|n| {
                        n.parse::<i16>().ok().and_then(|n| labels.iter().find(|(_, m)| *m == n)).map_or(Some(n), |(l, _)| Some(l))
                    })
                });
                parse_text(by_number, ty, name)
            }
            _ => parse_text(shown.iter(), ty, name),
        };
    }
    let array = match (array.data_type(), &target) {
        (from, to) if from == to => array.clone(),
        (from, DataType::Decimal128(p, s)) if from.is_floating() => digits_of_floats(array, *p, *s, name)?,
        (DataType::Decimal128(..), to) if to.is_floating() => floats_of_digits(array, ty, name)?,
        // A number is no time and a time no number: seconds, milliseconds and days would be guessed.
        (from, DataType::Timestamp(..) | DataType::Date32) if from.is_numeric() => {
            return Err(first_value(array, |row, v| {
                Refused::value(row, name, v, format_args!("{ty}: write a time, or use to_datetime(seconds)"))
            }));
        }
        _ => checked_cast(array, &target, ty, name)?,
    };
    Ok(cut(array, ty))
}

fn is_text(t: &DataType) -> bool {
    match t {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => true,
        DataType::Dictionary(_, v) => is_text(v),
        _ => false,
    }
}

fn is_list(t: &DataType) -> bool {
    matches!(t, DataType::List(_) | DataType::LargeList(_) | DataType::FixedSizeList(..) | DataType::ListView(_))
}

/// Times without a zone, read in UTC, as times of a zone: it says how a moment is shown. Arrow's cast would read them in that zone.
pub fn shown_in(array: &ArrayRef, ty: &DataType) -> Result<ArrayRef, arrow::error::ArrowError> {
    let DataType::Timestamp(unit, _) = ty else { return cast(array, ty) };
    let utc = cast(array, &DataType::Timestamp(*unit, Some("UTC".into())))?;
    cast(&utc, ty)
}

/// Refuses the row whose value the cast would lose.
fn checked_cast(array: &ArrayRef, target: &DataType, ty: &ColumnType, name: &str) -> Result<ArrayRef, Refused> {
    if let (DataType::Timestamp(TimeUnit::Nanosecond, _), DataType::Timestamp(TimeUnit::Microsecond, zone)) = (array.data_type(), target) {
        // A plain cast cuts toward zero, which before 1970 is the future.
        let micros: PrimitiveArray<TimestampMicrosecondType> =
            array.as_primitive::<TimestampNanosecondType>().unary(|v| v.div_euclid(1000));
        return Ok(Arc::new(micros.with_timezone_opt(zone.clone())));
    }
    let lossy = CastOptions { safe: true, ..CastOptions::default() };
    if let (DataType::Timestamp(_, None) | DataType::Date32, DataType::Timestamp(unit, Some(_))) = (array.data_type(), target) {
        let plain = checked_cast(array, &DataType::Timestamp(*unit, None), ty, name)?;
        return shown_in(&plain, target).map_err(|e| Refused::new(0, crate::sqlstate::NUMERIC_OUT_OF_RANGE, e.to_string()));
    }
    let out = cast_with_options(array, target, &lossy).map_err(|_| {
        first_value(array, |row, v| {
            Refused::new(
                row,
                crate::sqlstate::DATATYPE_MISMATCH,
                format!("column '{name}' is {ty} and does not take {v} of type {}", crate::functions::type_name(array.data_type())),
            )
        })
    })?;
    // A value that became NULL did not fit; a fraction that was cut was not whole.
    let lost = |row: usize| array.is_valid(row) && out.is_null(row);
    let nulls = out.null_count() > array.logical_nulls().map_or(0, |n| n.null_count());
    if nulls && let Some(row) = (0..array.len()).find(|r| lost(*r)) {
        return Err(Refused::range(row, name, &text_of(array, row), ty));
    }
    if target.is_integer()
        && (array.data_type().is_floating() || matches!(array.data_type(), DataType::Decimal128(..) | DataType::Decimal256(..)))
    {
        return rounded(array, target).ok_or_else(|| first_value(array, |row, v| Refused::range(row, name, v, ty)));
    }
    Ok(out)
}

/// Floats as decimals of their shortest digits, which are those that people wrote.
///
/// # Errors
/// The first that does not fit.
pub(crate) fn digits_of_floats(array: &ArrayRef, precision: u8, scale: i8, name: &str) -> Result<ArrayRef, Refused> {
    let ty = ColumnType::Decimal(precision, scale);
    let text = |row: usize| match array.data_type() {
        DataType::Float32 => array.as_primitive::<Float32Type>().value(row).to_string(),
        DataType::Float64 => array.as_primitive::<Float64Type>().value(row).to_string(),
        _ => text_of(array, row),
    };
    let mut out = PrimitiveBuilder::<Decimal128Type>::with_capacity(array.len());
    for row in 0..array.len() {
        match array.is_valid(row).then(|| text(row)) {
            None => out.append_null(),
            Some(text) => match decimal::parse(&text, precision, scale) {
                Ok(value) => out.append_value(value),
                Err(_) => return Err(Refused::range(row, name, &text, &ty)),
            },
        }
    }
    Ok(Arc::new(out.finish().with_data_type(ty.arrow())))
}

/// Decimals as the floats that their digits are read as.
fn floats_of_digits(array: &ArrayRef, ty: &ColumnType, name: &str) -> Result<ArrayRef, Refused> {
    let texts = cast(array, &DataType::Utf8).map_err(|e| Refused::value(0, name, "decimal", e))?;
    parse_text(texts.as_string::<i32>().iter(), ty, name)
}

/// As PostgreSQL rounds to whole numbers: decimals with halves away from zero, floats with halves to even. `None` where one does not fit.
pub(crate) fn rounded(array: &ArrayRef, target: &DataType) -> Option<ArrayRef> {
    if let DataType::Decimal128(_, scale @ 1..) = array.data_type() {
        // In whole numbers: a float would lose digits.
        let one = 10i128.checked_pow(u32::from(scale.unsigned_abs()))?;
        let decimals = array.as_primitive::<Decimal128Type>();
        let rounded: PrimitiveArray<Decimal128Type> = decimals.unary(|v| {
            let (whole, rest) = (v / one, v % one);
            whole + i128::from(rest.abs() >= one - rest.abs()) * v.signum()
        });
        let whole = rounded.with_precision_and_scale(38, 0).ok()?;
        let out = cast(&whole, target).ok()?;
        return (out.null_count() == array.null_count()).then_some(out);
    }
    if matches!(array.data_type(), DataType::Decimal128(..)) {
        let out = cast(array, target).ok()?;
        return (out.null_count() == array.null_count()).then_some(out);
    }
    let floats = cast(array, &DataType::Float64).ok()?;
    let floats = floats.as_primitive::<arrow::datatypes::Float64Type>();
    let rounded: PrimitiveArray<arrow::datatypes::Float64Type> = floats.unary(f64::round_ties_even);
    let out = cast(&rounded, target).ok()?;
    (out.null_count() == rounded.null_count()).then_some(out)
}

fn text_of(array: &ArrayRef, row: usize) -> String {
    let options = FormatOptions::default();
    ArrayFormatter::try_new(array, &options).map_or_else(|_| "?".to_owned(), |f| f.value(row).to_string())
}

fn first_value(array: &ArrayRef, refuse: impl FnOnce(usize, &str) -> Refused) -> Refused {
    let row = (0..array.len()).find(|r| array.is_valid(*r)).unwrap_or(0);
    let shown = if array.is_empty() { "a value".to_owned() } else { text_of(array, row) };
    refuse(row, &shown)
}

fn texts_of(array: &ArrayRef) -> StringArray {
    let options = FormatOptions::default();
    match ArrayFormatter::try_new(array, &options) {
        Ok(f) => (0..array.len()).map(|i| array.is_valid(i).then(|| f.value(i).to_string())).collect(),
        Err(_) => StringArray::new_null(array.len()),
    }
}

/// Cuts times to the declared precision, toward the past.
pub(super) fn cut(array: ArrayRef, ty: &ColumnType) -> ArrayRef {
    let digits = match ty {
        ColumnType::DateTime(_) => 0,
        ColumnType::DateTime64(digits, _) => *digits,
        _ => return array,
    };
    let floor = |unit: i64| move |v: i64| v.div_euclid(unit).saturating_mul(unit);
    match array.data_type() {
        DataType::Timestamp(TimeUnit::Microsecond, zone) if digits < 6 => {
            let unit = 10i64.pow(6 - u32::from(digits));
            let times = array.as_primitive::<TimestampMicrosecondType>();
            if times.values().iter().all(|v| v % unit == 0) {
                return array;
            }
            let out: PrimitiveArray<TimestampMicrosecondType> = times.unary(floor(unit));
            Arc::new(out.with_timezone_opt(zone.clone()))
        }
        DataType::Timestamp(TimeUnit::Nanosecond, zone) if digits < 9 => {
            let unit = 10i64.pow(9 - u32::from(digits));
            let out: PrimitiveArray<TimestampNanosecondType> = array.as_primitive::<TimestampNanosecondType>().unary(floor(unit));
            Arc::new(out.with_timezone_opt(zone.clone()))
        }
        _ => array,
    }
}

fn list(array: &ArrayRef, element: &ColumnType, nullable: bool, name: &str) -> Result<ArrayRef, Refused> {
    let DataType::List(field) = ColumnType::Array(Box::new(element.clone()), nullable).arrow() else {
        return Err(Refused::value(0, name, "array", "array"));
    };
    let plain = match array.data_type() {
        DataType::List(_) => array.clone(),
        DataType::LargeList(f) | DataType::FixedSizeList(f, _) | DataType::ListView(f) => {
            cast(array, &DataType::List(f.clone())).map_err(|e| Refused::value(0, name, "array", e))?
        }
        _ => array.clone(),
    };
    let lists = plain.as_list::<i32>();
    let seen = Seen::of(lists.offsets(), lists.nulls(), lists.values().len());
    let values = inner(&seen.take(lists.values(), name)?, element, nullable, name).map_err(|r| seen.in_its_row(r))?;
    ListArray::try_new(field, seen.offsets, values, lists.nulls().cloned())
        .map_or_else(|e| Err(Refused::value(0, name, "array", e)), |list| Ok(Arc::new(list) as ArrayRef))
}

/// The elements that lists and maps are made of: neither those outside of a slice nor what lies under a NULL, which may be anything.
struct Seen {
    offsets: OffsetBuffer<i32>,
    /// `None`: all.
    elements: Option<Int32Array>,
}

impl Seen {
    fn of(offsets: &OffsetBuffer<i32>, nulls: Option<&NullBuffer>, elements: usize) -> Self {
        let ends = (offsets.first().copied().unwrap_or(0), offsets.last().map_or(0, |last| *last as usize));
        let valid = |row: usize| nulls.is_none_or(|n| n.is_valid(row));
        let rows = offsets.len().saturating_sub(1);
        if ends == (0, elements) && (0..rows).all(|row| valid(row) || offsets[row] == offsets[row + 1]) {
            return Self { offsets: offsets.clone(), elements: None };
        }
        let of = |row: usize| if valid(row) { offsets[row]..offsets[row + 1] } else { 0..0 };
        let offsets = OffsetBuffer::from_lengths((0..rows).map(|row| of(row).len()));
        Self { offsets, elements: Some((0..rows).flat_map(of).collect()) }
    }

    fn take(&self, values: &ArrayRef, name: &str) -> Result<ArrayRef, Refused> {
        match &self.elements {
            None => Ok(values.clone()),
            Some(elements) => take(values, elements, None).map_err(|e| Refused::value(0, name, "element", e)),
        }
    }

    /// An element's row as that of the list that it is in.
    fn in_its_row(&self, refused: Refused) -> Refused {
        let after = self.offsets.partition_point(|start| usize::try_from(*start).is_ok_and(|start| start <= refused.row));
        Refused { row: after.saturating_sub(1), ..refused }
    }
}

/// Elements of lists and maps.
fn inner(values: &ArrayRef, ty: &ColumnType, nullable: bool, name: &str) -> Result<ArrayRef, Refused> {
    if !nullable && let Some(row) = (0..values.len()).find(|i| values.is_null(*i)) {
        return Err(Refused::null_inside(row, name));
    }
    let out = value(values, ty, name)?;
    // Inside, texts are views: dictionaries are for whole columns.
    cast(&out, &ty.arrow()).map_err(|e| Refused::value(0, name, "element", e))
}

fn map(array: &ArrayRef, key: &ColumnType, item: &ColumnType, nullable: bool, name: &str) -> Result<ArrayRef, Refused> {
    let DataType::Map(field, sorted) = ColumnType::Map(Box::new(key.clone()), Box::new(item.clone()), nullable).arrow() else {
        return Err(Refused::value(0, name, "map", "map"));
    };
    let DataType::Struct(fields) = field.data_type().clone() else { return Err(Refused::value(0, name, "map", "map")) };
    let maps: &MapArray = array.as_map();
    let seen = Seen::of(maps.offsets(), maps.nulls(), maps.entries().len());
    let of = |array: &ArrayRef, ty, nullable| inner(&seen.take(array, name)?, ty, nullable, name).map_err(|r| seen.in_its_row(r));
    let (keys, values) = (of(maps.keys(), key, false)?, of(maps.values(), item, nullable)?);
    let entries = StructArray::try_new(fields, vec![keys, values], None);
    let made = entries.and_then(|entries| MapArray::try_new(field, seen.offsets.clone(), entries, maps.nulls().cloned(), sorted));
    made.map_or_else(|e| Err(Refused::value(0, name, "map", e)), |map| Ok(Arc::new(map) as ArrayRef))
}

#[cfg(test)]
mod tests;
