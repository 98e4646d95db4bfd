//! Which PostgreSQL type a column is on the wire.
//!
//! Follows the Arrow type, refined by the SQL type that a stream's columns carry in their metadata (uuid, json, addresses travel in
//! memory as text). Unsigned integers become the next larger signed type, so that no value is out of range.

use arrow::datatypes::{DataType, Field};
use ebb_storage::stream_def::TYPE_META_KEY;
use pgwire::api::Type;

/// The type that clients are told and that [`super::encode`] writes.
pub fn pg_type(field: &Field) -> Type {
    if let Some(declared) = field.metadata().get(TYPE_META_KEY)
        && let Some(t) = declared_text_type(declared)
        && is_text(field.data_type())
    {
        return t;
    }
    match field.metadata().get(TYPE_META_KEY).map(String::as_str) {
        Some("oid") if field.data_type() == &DataType::Int64 => Type::OID,
        _ => of_arrow(field.data_type()),
    }
}

/// For types that are carried as text.
fn declared_text_type(declared: &str) -> Option<Type> {
    let name = declared.strip_prefix("low_cardinality(").unwrap_or(declared);
    match name.trim_end_matches(')') {
        "uuid" => Some(Type::UUID),
        "json" => Some(Type::JSON),
        "ipv4" | "ipv6" => Some(Type::INET),
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

/// Arrays of arrays have no type of their own in PostgreSQL: the element type's array, whatever the depth.
fn array_of(element: &Field) -> Type {
    match pg_type(element) {
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
        nested @ (Type::TEXT_ARRAY | Type::INT8_ARRAY | Type::FLOAT8_ARRAY | Type::INT4_ARRAY) => nested,
        _ => Type::TEXT_ARRAY,
    }
}
