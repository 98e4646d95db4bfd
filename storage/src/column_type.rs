//! Column types: their one canonical SQL text and the Arrow type that carries them.
//!
//! Types that are texts with rules (uuid, json, enums, addresses, fixed_string) are carried as text, checked and made canonical on
//! the way in: every tool that opens a part can read them, and comparisons with literals work. Times are UTC microseconds, or
//! nanoseconds for a scale above 6, cut to the declared precision on the way in.

use arrow::datatypes::{DataType, Field, Fields, TimeUnit};
use serde::{Deserialize, Serialize};
use std::{fmt, sync::Arc};

/// A type without its nullability, which is the column's.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ColumnType {
    Int8,
    Int16,
    Int32,
    Int64,
    UInt8,
    UInt16,
    UInt32,
    UInt64,
    Float32,
    Float64,
    /// Precision 1 to 38, scale 0 to precision.
    Decimal(u8, i8),
    Bool,
    String,
    /// At most this many bytes.
    FixedString(u32),
    Bytes,
    Date,
    /// Seconds, with a zone for `timestamptz`.
    DateTime(Option<Arc<str>>),
    /// Fraction digits 0 to 9, with a zone for `timestamptz`.
    DateTime64(u8, Option<Arc<str>>),
    Uuid,
    Json,
    Ipv4,
    Ipv6,
    /// 8 or 16 bits; labels with their numbers.
    Enum {
        bits: u8,
        labels: Vec<(Arc<str>, i16)>,
    },
    /// A hint only: the same values as the type inside.
    LowCardinality(Box<ColumnType>),
    /// Elements with their nullability.
    Array(Box<ColumnType>, bool),
    /// Key type, value type, whether values may be NULL.
    Map(Box<ColumnType>, Box<ColumnType>, bool),
}

impl ColumnType {
    /// How values travel in memory and, through the writer's choice of encoding, on disk.
    pub fn arrow(&self) -> DataType {
        match self {
            Self::Int8 => DataType::Int8,
            Self::Int16 => DataType::Int16,
            Self::Int32 => DataType::Int32,
            Self::Int64 => DataType::Int64,
            Self::UInt8 => DataType::UInt8,
            Self::UInt16 => DataType::UInt16,
            Self::UInt32 => DataType::UInt32,
            Self::UInt64 => DataType::UInt64,
            Self::Float32 => DataType::Float32,
            Self::Float64 => DataType::Float64,
            Self::Decimal(p, s) => DataType::Decimal128(*p, *s),
            Self::Bool => DataType::Boolean,
            Self::Bytes => DataType::BinaryView,
            Self::Date => DataType::Date32,
            Self::DateTime(zone) => DataType::Timestamp(TimeUnit::Microsecond, zone.clone()),
            Self::DateTime64(digits, zone) => DataType::Timestamp(unit_of(*digits), zone.clone()),
            Self::String | Self::FixedString(_) | Self::Uuid | Self::Json | Self::Ipv4 | Self::Ipv6 | Self::Enum { .. } => {
                DataType::Utf8View
            }
            Self::LowCardinality(inner) => inner.arrow(),
            Self::Array(inner, nullable) => DataType::List(Arc::new(Field::new("item", inner.arrow(), *nullable))),
            Self::Map(key, value, nullable) => {
                let entries = Fields::from(vec![Field::new("key", key.arrow(), false), Field::new("value", value.arrow(), *nullable)]);
                DataType::Map(Arc::new(Field::new("entries", DataType::Struct(entries), false)), false)
            }
        }
    }

    /// The type below any `low_cardinality`.
    pub fn plain(&self) -> &Self {
        match self {
            Self::LowCardinality(inner) => inner.plain(),
            other => other,
        }
    }

    /// Whether values are times or dates, that is, may be what a TTL expression results in.
    pub fn is_time(&self) -> bool {
        matches!(self.plain(), Self::Date | Self::DateTime(_) | Self::DateTime64(..))
    }

    /// Whether every value of this type is one of `wider` and means the same there, so that a column may be declared anew.
    pub fn widens_to(&self, wider: &Self) -> bool {
        use ColumnType as T;
        // Digits of a number type with a sign, and without.
        let signed = |t: &T| {
            Some(match t {
                T::Int8 => 8,
                T::Int16 => 16,
                T::Int32 => 32,
                T::Int64 => 64,
                _ => return None,
            })
        };
        let unsigned = |t: &T| {
            Some(match t {
                T::UInt8 => 8,
                T::UInt16 => 16,
                T::UInt32 => 32,
                T::UInt64 => 64,
                _ => return None,
            })
        };
        let (from, to) = (self.plain(), wider.plain());
        if from == to {
            return true;
        }
        if let Some(bits) = unsigned(from) {
            return unsigned(to).is_some_and(|b| b > bits) || signed(to).is_some_and(|b| b > bits);
        }
        if let Some(bits) = signed(from) {
            return signed(to).is_some_and(|b| b > bits);
        }
        match (from, to) {
            (T::Float32, T::Float64) => true,
            (T::Decimal(p, s), T::Decimal(q, t)) => t >= s && i16::from(*q) - i16::from(*t) >= i16::from(*p) - i16::from(*s),
            (T::FixedString(n), T::FixedString(m)) => m > n,
            (T::FixedString(_) | T::Uuid | T::Json | T::Ipv4 | T::Ipv6 | T::Enum { .. }, T::String) => true,
            (T::Enum { bits, labels }, T::Enum { bits: more, labels: all }) => more >= bits && labels.iter().all(|l| all.contains(l)),
            // Nanoseconds reach less far than microseconds: more digits than six are not wider than fewer.
            (T::DateTime(a), T::DateTime64(d, b)) => a == b && *d <= 6,
            (T::DateTime64(c, a), T::DateTime64(d, b)) => a == b && d > c && (*d <= 6) == (*c <= 6),
            (T::Array(a, null), T::Array(b, may_be_null)) => a.widens_to(b) && null <= may_be_null,
            _ => false,
        }
    }

    /// Whether values are carried as text.
    pub fn is_text(&self) -> bool {
        self.arrow() == DataType::Utf8View
    }
}

fn unit_of(digits: u8) -> TimeUnit {
    if digits > 6 { TimeUnit::Nanosecond } else { TimeUnit::Microsecond }
}

/// The canonical SQL text, which the parser reads back to the same type.
impl fmt::Display for ColumnType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nullable = |t: &Self, null: bool| if null { format!("nullable({t})") } else { t.to_string() };
        match self {
            Self::Int8 => f.write_str("int8"),
            Self::Int16 => f.write_str("int16"),
            Self::Int32 => f.write_str("int32"),
            Self::Int64 => f.write_str("int64"),
            Self::UInt8 => f.write_str("uint8"),
            Self::UInt16 => f.write_str("uint16"),
            Self::UInt32 => f.write_str("uint32"),
            Self::UInt64 => f.write_str("uint64"),
            Self::Float32 => f.write_str("float32"),
            Self::Float64 => f.write_str("float64"),
            Self::Decimal(p, s) => write!(f, "decimal({p}, {s})"),
            Self::Bool => f.write_str("bool"),
            Self::String => f.write_str("string"),
            Self::FixedString(n) => write!(f, "fixed_string({n})"),
            Self::Bytes => f.write_str("bytea"),
            Self::Date => f.write_str("date"),
            Self::DateTime(None) => f.write_str("datetime"),
            Self::DateTime(Some(zone)) => write!(f, "datetime('{zone}')"),
            Self::DateTime64(digits, None) => write!(f, "datetime64({digits})"),
            Self::DateTime64(digits, Some(zone)) => write!(f, "datetime64({digits}, '{zone}')"),
            Self::Uuid => f.write_str("uuid"),
            Self::Json => f.write_str("json"),
            Self::Ipv4 => f.write_str("ipv4"),
            Self::Ipv6 => f.write_str("ipv6"),
            Self::Enum { bits, labels } => {
                write!(f, "enum{bits}(")?;
                for (i, (label, number)) in labels.iter().enumerate() {
                    let comma = if i == 0 { "" } else { ", " };
                    write!(f, "{comma}'{}' = {number}", label.replace('\'', "''"))?;
                }
                f.write_str(")")
            }
            Self::LowCardinality(inner) => write!(f, "low_cardinality({inner})"),
            Self::Array(inner, null) => write!(f, "array({})", nullable(inner, *null)),
            Self::Map(key, value, null) => write!(f, "map({key}, {})", nullable(value, *null)),
        }
    }
}
