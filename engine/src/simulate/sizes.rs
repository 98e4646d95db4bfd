//! How many bytes rows take in a part, roughly: by column type and codec. Rules of thumb for when nobody has measured; `row_bytes`
//! replaces the first, and a report says which were used.

use ebb_storage::{codec::Codec, column_type::ColumnType, stream_def::StreamDef};

/// Of `_tp_time` and `_tp_sn`: deltas that are nearly constant.
const OWN_BYTES: f64 = 1.0;
/// Elements of an array or map.
const ELEMENTS: f64 = 4.0;

/// Bytes of a row's stored columns in a part of codec LZ4, encoded as the writer does.
pub fn row_bytes(def: &StreamDef) -> f64 {
    def.stored().map(|c| of_type(&c.ty)).sum::<f64>() + OWN_BYTES
}

fn of_type(ty: &ColumnType) -> f64 {
    match ty {
        ColumnType::Bool => 0.15,
        ColumnType::Int8 | ColumnType::UInt8 => 0.7,
        ColumnType::Int16 | ColumnType::UInt16 => 1.4,
        ColumnType::Int32 | ColumnType::UInt32 | ColumnType::Float32 => 2.5,
        ColumnType::Int64 | ColumnType::UInt64 | ColumnType::Decimal(..) => 4.0,
        ColumnType::Float64 => 5.0,
        ColumnType::Date => 0.1,
        ColumnType::DateTime(_) => 1.0,
        ColumnType::DateTime64(..) => 2.0,
        ColumnType::String | ColumnType::Bytes => 12.0,
        ColumnType::FixedString(n) => f64::from(*n).min(12.0),
        ColumnType::Uuid => 22.0,
        ColumnType::Json => 60.0,
        ColumnType::Ipv4 => 5.0,
        ColumnType::Ipv6 => 10.0,
        ColumnType::Enum { .. } => 0.4,
        ColumnType::LowCardinality(inner) => of_type(inner).min(0.5),
        ColumnType::Array(inner, _) => of_type(inner) * ELEMENTS,
        ColumnType::Map(key, value, _) => (of_type(key).min(1.0) + of_type(value)) * ELEMENTS,
    }
}

/// Bytes in this codec for each byte in LZ4.
pub fn ratio(codec: Codec) -> f64 {
    match codec {
        Codec::None => 1.7,
        Codec::Snappy => 1.02,
        Codec::Lz4 => 1.0,
        Codec::Lz4hc(_) => 0.88,
        Codec::Zstd(level) => match level {
            0..=2 => 0.76,
            3..=8 => 0.72,
            9..=15 => 0.67,
            _ => 0.62,
        },
        Codec::Gzip(_) => 0.74,
        Codec::Brotli(_) => 0.70,
    }
}
