//! Which PostgreSQL type a column is on the wire.
//!
//! Follows the Arrow type, refined by the SQL type that a stream's columns carry in their metadata (uuid, json, addresses travel in
//! memory as text). Unsigned integers become the next larger signed type, so that no value is out of range.

use arrow::datatypes::{DataType, Field, IntervalUnit, TimeUnit};
use ebb_storage::stream_def::TYPE_META_KEY;
use pgwire::api::Type;
use std::sync::Arc;

/// The type that clients are told and that [`super::encode`] writes.
pub fn pg_type(field: &Field) -> Type {
    if let Some(declared) = field.metadata().get(TYPE_META_KEY)
        && let Some(t) = declared_text_type(declared)
        && is_text(field.data_type())
    {
        return t;
    }
    if let Some(element) = element_field(field) {
        return array_of(&element);
    }
    match field.metadata().get(TYPE_META_KEY).map(String::as_str) {
        Some("oid") if field.data_type() == &DataType::Int64 => Type::OID,
        _ => of_arrow(field.data_type()),
    }
}

/// The elements of a list, with what the column was declared as.
pub fn element_field(field: &Field) -> Option<Field> {
    let (DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) | DataType::ListView(item)) =
        field.data_type()
    else {
        return None;
    };
    let mut element = item.as_ref().clone();
    let declared = field.metadata().get(TYPE_META_KEY).and_then(|t| t.strip_prefix("array(")?.strip_suffix(')'));
    if let Some(inner) = declared {
        let inner = inner.strip_prefix("nullable(").and_then(|t| t.strip_suffix(')')).unwrap_or(inner);
        element = element.with_metadata([(TYPE_META_KEY.to_owned(), inner.to_owned())].into());
    }
    Some(element)
}

/// For types that are carried as text.
fn declared_text_type(declared: &str) -> Option<Type> {
    let name = declared.strip_prefix("low_cardinality(").unwrap_or(declared);
    match name.trim_end_matches(')') {
        "uuid" => Some(Type::UUID),
        "json" => Some(Type::JSON),
        "ipv4" | "ipv6" | "inet" => Some(Type::INET),
        "name" => Some(Type::NAME),
        "char" => Some(Type::CHAR),
        _ => None,
    }
}

fn is_text(t: &DataType) -> bool {
    match t {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => true,
        DataType::Dictionary(_, value) => is_text(value),
        _ => false,
    }
}

pub fn is_list(t: &DataType) -> bool {
    match t {
        DataType::List(_) | DataType::LargeList(_) | DataType::FixedSizeList(..) | DataType::ListView(_) | DataType::LargeListView(_) => {
            true
        }
        DataType::Dictionary(_, value) => is_list(value),
        _ => false,
    }
}

fn of_arrow(t: &DataType) -> Type {
    match t {
        DataType::Boolean => Type::BOOL,
        DataType::Int8 | DataType::Int16 | DataType::UInt8 => Type::INT2,
        DataType::Int32 | DataType::UInt16 => Type::INT4,
        DataType::Int64 | DataType::UInt32 => Type::INT8,
        DataType::Float16 | DataType::Float32 => Type::FLOAT4,
        DataType::Float64 => Type::FLOAT8,
        DataType::UInt64 | DataType::Decimal32(..) | DataType::Decimal64(..) | DataType::Decimal128(..) | DataType::Decimal256(..) => {
            Type::NUMERIC
        }
        DataType::Date32 | DataType::Date64 => Type::DATE,
        DataType::Time32(_) | DataType::Time64(_) => Type::TIME,
        DataType::Timestamp(_, None) => Type::TIMESTAMP,
        DataType::Timestamp(_, Some(_)) => Type::TIMESTAMPTZ,
        DataType::Interval(_) | DataType::Duration(_) => Type::INTERVAL,
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => Type::BYTEA,
        DataType::List(f) | DataType::LargeList(f) | DataType::FixedSizeList(f, _) | DataType::ListView(f) | DataType::LargeListView(f) => {
            array_of(f)
        }
        DataType::Map(..) | DataType::Struct(_) | DataType::Union(..) => Type::JSON,
        DataType::Dictionary(_, value) => of_arrow(value),
        DataType::RunEndEncoded(_, values) => of_arrow(values.data_type()),
        DataType::Null | DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => Type::TEXT,
    }
}

/// PostgreSQL's arrays of arrays are matrices: rows of different lengths, or none, have no form in them. So what holds arrays is json.
fn array_of(element: &Field) -> Type {
    if is_list(element.data_type()) {
        return Type::JSON;
    }
    match pg_type(element) {
        Type::OID => Type::OID_ARRAY,
        Type::BOOL => Type::BOOL_ARRAY,
        Type::INT2 => Type::INT2_ARRAY,
        Type::INT4 => Type::INT4_ARRAY,
        Type::INT8 => Type::INT8_ARRAY,
        Type::FLOAT4 => Type::FLOAT4_ARRAY,
        Type::FLOAT8 => Type::FLOAT8_ARRAY,
        Type::NUMERIC => Type::NUMERIC_ARRAY,
        Type::DATE => Type::DATE_ARRAY,
        Type::TIME => Type::TIME_ARRAY,
        Type::TIMESTAMP => Type::TIMESTAMP_ARRAY,
        Type::TIMESTAMPTZ => Type::TIMESTAMPTZ_ARRAY,
        Type::INTERVAL => Type::INTERVAL_ARRAY,
        Type::BYTEA => Type::BYTEA_ARRAY,
        Type::UUID => Type::UUID_ARRAY,
        Type::JSON => Type::JSON_ARRAY,
        Type::INET => Type::INET_ARRAY,
        _ => Type::TEXT_ARRAY,
    }
}

/// What an array of PostgreSQL's holds.
pub fn element_of(array: &Type) -> Option<Type> {
    Some(match *array {
        Type::BOOL_ARRAY => Type::BOOL,
        Type::INT2_ARRAY => Type::INT2,
        Type::INT4_ARRAY => Type::INT4,
        Type::INT8_ARRAY => Type::INT8,
        Type::OID_ARRAY => Type::OID,
        Type::FLOAT4_ARRAY => Type::FLOAT4,
        Type::FLOAT8_ARRAY => Type::FLOAT8,
        Type::NUMERIC_ARRAY => Type::NUMERIC,
        Type::DATE_ARRAY => Type::DATE,
        Type::TIME_ARRAY => Type::TIME,
        Type::TIMESTAMP_ARRAY => Type::TIMESTAMP,
        Type::TIMESTAMPTZ_ARRAY => Type::TIMESTAMPTZ,
        Type::INTERVAL_ARRAY => Type::INTERVAL,
        Type::BYTEA_ARRAY => Type::BYTEA,
        Type::UUID_ARRAY => Type::UUID,
        Type::JSON_ARRAY => Type::JSON,
        Type::JSONB_ARRAY => Type::JSONB,
        Type::INET_ARRAY => Type::INET,
        Type::TEXT_ARRAY => Type::TEXT,
        Type::VARCHAR_ARRAY => Type::VARCHAR,
        Type::NAME_ARRAY => Type::NAME,
        _ => return None,
    })
}

/// How values of a type that a client names are carried; `None` where the statement knows better.
pub fn arrow_of(t: &Type) -> Option<DataType> {
    if let Some(element) = element_of(t) {
        // A numeric of unknown scale waits as text.
        let item = if element == Type::NUMERIC { DataType::Utf8 } else { arrow_of(&element)? };
        return Some(DataType::List(Arc::new(Field::new_list_field(item, true))));
    }
    Some(match *t {
        Type::BOOL => DataType::Boolean,
        Type::INT2 => DataType::Int16,
        Type::INT4 => DataType::Int32,
        Type::INT8 | Type::OID => DataType::Int64,
        Type::FLOAT4 => DataType::Float32,
        Type::FLOAT8 => DataType::Float64,
        Type::TEXT | Type::VARCHAR | Type::BPCHAR | Type::NAME | Type::UUID | Type::JSON | Type::JSONB | Type::INET => DataType::Utf8,
        Type::BYTEA => DataType::Binary,
        Type::DATE => DataType::Date32,
        Type::TIME => DataType::Time64(TimeUnit::Microsecond),
        Type::TIMESTAMP => DataType::Timestamp(TimeUnit::Microsecond, None),
        Type::TIMESTAMPTZ => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
        Type::INTERVAL => DataType::Interval(IntervalUnit::MonthDayNano),
        _ => return None,
    })
}
