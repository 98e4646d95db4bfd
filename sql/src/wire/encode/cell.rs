//! A column of a batch, downcast once, so that writing a row looks nothing up.

use crate::wire::types::{element_field, pg_type};
use arrow::{
    array::*,
    datatypes::{DataType, Field, Int32Type, IntervalUnit, TimeUnit},
    error::ArrowError,
    record_batch::RecordBatch,
};
use pgwire::api::Type;

/// Typed views; anything rare is cast to one of these when the batch arrives.
pub enum Values {
    Bool(BooleanArray),
    Int8(Int8Array),
    Int16(Int16Array),
    Int32(Int32Array),
    Int64(Int64Array),
    UInt8(UInt8Array),
    UInt16(UInt16Array),
    UInt32(UInt32Array),
    UInt64(UInt64Array),
    Float32(Float32Array),
    Float64(Float64Array),
    Decimal(Decimal128Array, i8),
    /// Decimal256 as its text.
    WideDecimal(StringArray),
    Text(StringArray),
    TextView(StringViewArray),
    TextDictionary(DictionaryArray<Int32Type>, StringArray),
    Bytes(BinaryArray),
    BytesView(BinaryViewArray),
    Date(Date32Array),
    /// Microseconds since midnight.
    Time(Time64MicrosecondArray),
    /// Microseconds, whether it is a moment (timestamptz).
    Timestamp(TimestampMicrosecondArray, bool),
    /// Nanoseconds: text keeps the digits that binary (microseconds) cannot.
    TimestampNanos(TimestampNanosecondArray, bool),
    Interval(IntervalMonthDayNanoArray),
    /// Its elements are no lists.
    List(ListArray, Box<Column>),
    /// Lists of lists, maps, structs, unions.
    Json(ArrayRef),
    Null,
}

pub struct Column {
    pub values: Values,
    /// What the client was told.
    pub pg: Type,
    nulls: Option<arrow::buffer::NullBuffer>,
}

impl Column {
    pub fn all(batch: &RecordBatch) -> Result<Vec<Self>, ArrowError> {
        batch.schema_ref().fields().iter().zip(batch.columns()).map(|(field, array)| Self::new(field, array)).collect()
    }

    pub fn new(field: &Field, array: &ArrayRef) -> Result<Self, ArrowError> {
        let pg = pg_type(field);
        Ok(Self { nulls: array.logical_nulls(), values: values(field, array)?, pg })
    }

    pub fn is_null(&self, row: usize) -> bool {
        matches!(self.values, Values::Null) || self.nulls.as_ref().is_some_and(|n| n.is_null(row))
    }
}

fn values(field: &Field, array: &ArrayRef) -> Result<Values, ArrowError> {
    let to = |t: &DataType| arrow::compute::cast(array, t);
    Ok(match array.data_type() {
        DataType::Null => Values::Null,
        DataType::Boolean => Values::Bool(array.as_boolean().clone()),
        DataType::Int8 => Values::Int8(array.as_primitive().clone()),
        DataType::Int16 => Values::Int16(array.as_primitive().clone()),
        DataType::Int32 => Values::Int32(array.as_primitive().clone()),
        DataType::Int64 => Values::Int64(array.as_primitive().clone()),
        DataType::UInt8 => Values::UInt8(array.as_primitive().clone()),
        DataType::UInt16 => Values::UInt16(array.as_primitive().clone()),
        DataType::UInt32 => Values::UInt32(array.as_primitive().clone()),
        DataType::UInt64 => Values::UInt64(array.as_primitive().clone()),
        DataType::Float16 => Values::Float32(to(&DataType::Float32)?.as_primitive().clone()),
        DataType::Float32 => Values::Float32(array.as_primitive().clone()),
        DataType::Float64 => Values::Float64(array.as_primitive().clone()),
        DataType::Decimal128(_, scale) => Values::Decimal(array.as_primitive().clone(), *scale),
        DataType::Decimal32(p, s) | DataType::Decimal64(p, s) => {
            Values::Decimal(to(&DataType::Decimal128(*p, *s))?.as_primitive().clone(), *s)
        }
        DataType::Decimal256(..) => Values::WideDecimal(to(&DataType::Utf8)?.as_string().clone()),
        DataType::Utf8 => Values::Text(array.as_string().clone()),
        DataType::Utf8View => Values::TextView(array.as_string_view().clone()),
        DataType::LargeUtf8 => Values::TextView(to(&DataType::Utf8View)?.as_string_view().clone()),
        DataType::BinaryView => Values::BytesView(array.as_binary_view().clone()),
        DataType::Binary => Values::Bytes(array.as_binary().clone()),
        DataType::LargeBinary | DataType::FixedSizeBinary(_) => Values::Bytes(to(&DataType::Binary)?.as_binary().clone()),
        DataType::Date32 => Values::Date(array.as_primitive().clone()),
        DataType::Date64 => Values::Date(to(&DataType::Date32)?.as_primitive().clone()),
        DataType::Time32(_) | DataType::Time64(_) => Values::Time(to(&DataType::Time64(TimeUnit::Microsecond))?.as_primitive().clone()),
        DataType::Timestamp(TimeUnit::Nanosecond, zone) => Values::TimestampNanos(array.as_primitive().clone(), zone.is_some()),
        DataType::Timestamp(_, zone) => {
            let micros = to(&DataType::Timestamp(TimeUnit::Microsecond, zone.clone()))?;
            Values::Timestamp(micros.as_primitive().clone(), zone.is_some())
        }
        DataType::Interval(_) => Values::Interval(to(&DataType::Interval(IntervalUnit::MonthDayNano))?.as_primitive().clone()),
        DataType::Duration(_) => {
            let nanos = to(&DataType::Duration(TimeUnit::Nanosecond))?;
            Values::Interval(to_interval(nanos.as_primitive()))
        }
        DataType::Dictionary(key, value) if **key == DataType::Int32 && **value == DataType::Utf8 => {
            let dictionary = array.as_dictionary::<Int32Type>().clone();
            let words = dictionary.values().as_string().clone();
            Values::TextDictionary(dictionary, words)
        }
        DataType::Dictionary(_, value) => return values(field, &to(value)?),
        DataType::RunEndEncoded(_, value) => return values(field, &to(value.data_type())?),
        DataType::List(element) => {
            let list = array.as_list::<i32>().clone();
            if crate::wire::types::is_list(element.data_type()) {
                return Ok(Values::Json(array.clone()));
            }
            let of = element_field(field).unwrap_or_else(|| element.as_ref().clone());
            let inner = Column::new(&of, list.values())?;
            Values::List(list, Box::new(inner))
        }
        DataType::LargeList(e) | DataType::FixedSizeList(e, _) | DataType::ListView(e) | DataType::LargeListView(e) => {
            return values(field, &to(&DataType::List(e.clone()))?);
        }
        DataType::Map(..) | DataType::Struct(_) | DataType::Union(..) => Values::Json(array.clone()),
    })
}

fn to_interval(nanos: &DurationNanosecondArray) -> IntervalMonthDayNanoArray {
    nanos.iter().map(|v| v.map(|n| arrow::datatypes::IntervalMonthDayNano::new(0, 0, n))).collect()
}
