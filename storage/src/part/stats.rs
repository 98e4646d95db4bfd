//! Bounds of a part's columns, kept in the manifest so that parts are pruned without being opened.

use crate::ids::ColumnId;
use arrow::datatypes::{DataType, Schema};
use parquet::file::{
    metadata::{ColumnChunkMetaData, RowGroupMetaData},
    statistics::Statistics,
};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ColumnStats {
    pub column: ColumnId,
    /// `UNKNOWN_NULLS` where nobody counted.
    pub nulls: u64,
    /// Of the values that are not NULL (and, for floats, not NaN); `None` where unknown or there is none.
    pub min: Option<Bound>,
    pub max: Option<Bound>,
    /// False where long texts were cut: `min` is then a lower bound and `max` an upper one.
    pub exact: bool,
}

/// A value of any column type. Times are in the column's own unit (days, µs, ns).
#[derive(Debug, Clone, PartialEq, PartialOrd, Serialize, Deserialize)]
pub enum Bound {
    Bool(bool),
    Int(i64),
    UInt(u64),
    Float(#[serde(with = "float")] f64),
    Decimal(i128),
    Text(String),
    Bytes(Vec<u8>),
}

/// JSON has no infinities, and readers of its numbers round: floats are written as texts.
mod float {
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Written {
        Number(f64),
        Text(String),
    }

    pub fn serialize<S: Serializer>(x: &f64, to: S) -> Result<S::Ok, S::Error> {
        format!("{x:e}").serialize(to)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
        match Written::deserialize(from)? {
            Written::Number(x) => Ok(x),
            Written::Text(t) => t.parse().map_err(D::Error::custom),
        }
    }
}

/// Stands for a number of NULLs that nobody counted.
pub const UNKNOWN_NULLS: u64 = u64::MAX;

/// Longer texts are cut in the bounds.
pub const TEXT_BYTES_MAX: usize = 64;

/// Takes a written row group's bounds into those of the part. Nested columns have none.
pub(super) fn fold(stats: &mut Vec<ColumnStats>, schema: &Schema, group: &RowGroupMetaData) {
    for chunk in group.columns() {
        let path = chunk.column_path().parts();
        let [name] = path else { continue };
        let Ok(field) = schema.field_with_name(name) else { continue };
        let Some(column) = super::encode::field_id(field) else { continue };
        let new = of_chunk(column, field.data_type(), chunk);
        match stats.iter_mut().find(|s| s.column == column) {
            Some(old) => old.join(new),
            None => stats.push(new),
        }
    }
}

impl ColumnStats {
    pub fn known_nulls(&self) -> Option<u64> {
        (self.nulls != UNKNOWN_NULLS).then_some(self.nulls)
    }

    /// Bounds of both. A chunk without values says nothing; one whose bounds are unknown makes them unknown.
    fn join(&mut self, other: Self) {
        let known = |s: &Self| s.min.is_some() || !s.exact;
        self.nulls = self.nulls.saturating_add(other.nulls);
        if !known(&other) {
            return;
        }
        if !known(self) {
            *self = Self { nulls: self.nulls, ..other };
            return;
        }
        let pick = |a: Option<Bound>, b: Option<Bound>, less: bool| match (a, b) {
            (Some(a), Some(b)) => Some(if (b < a) == less { b } else { a }),
            _ => None,
        };
        self.min = pick(self.min.take(), other.min, true);
        self.max = pick(self.max.take(), other.max, false);
        self.exact &= other.exact;
    }
}

fn of_chunk(column: ColumnId, t: &DataType, chunk: &ColumnChunkMetaData) -> ColumnStats {
    let unknown = |nulls| ColumnStats { column, nulls, min: None, max: None, exact: false };
    let Some(s) = chunk.statistics() else { return unknown(UNKNOWN_NULLS) };
    let nulls = s.null_count_opt().unwrap_or(UNKNOWN_NULLS);
    let values = chunk.num_values() as u64;
    let whole = |v: i64| match t {
        DataType::UInt8 | DataType::UInt16 => Bound::UInt(v as u64),
        DataType::UInt32 => Bound::UInt(u64::from(v as u32)),
        DataType::UInt64 => Bound::UInt(v as u64),
        DataType::Decimal128(..) => Bound::Decimal(i128::from(v)),
        _ => Bound::Int(v),
    };
    let bytes = |b: &[u8]| match t {
        DataType::Decimal128(..) => Some(Bound::Decimal(big_endian(b)?)),
        DataType::Utf8View | DataType::Utf8 => std::str::from_utf8(b).ok().map(|s| Bound::Text(s.to_owned())),
        _ => Some(Bound::Bytes(b.to_vec())),
    };
    let (min, max) = match s {
        Statistics::Boolean(v) => (v.min_opt().map(|v| Bound::Bool(*v)), v.max_opt().map(|v| Bound::Bool(*v))),
        Statistics::Int32(v) => (v.min_opt().map(|v| whole(i64::from(*v))), v.max_opt().map(|v| whole(i64::from(*v)))),
        Statistics::Int64(v) => (v.min_opt().map(|v| whole(*v)), v.max_opt().map(|v| whole(*v))),
        Statistics::Float(v) => (v.min_opt().map(|v| Bound::Float(f64::from(*v))), v.max_opt().map(|v| Bound::Float(f64::from(*v)))),
        Statistics::Double(v) => (v.min_opt().map(|v| Bound::Float(*v)), v.max_opt().map(|v| Bound::Float(*v))),
        Statistics::ByteArray(_) | Statistics::FixedLenByteArray(_) => {
            (s.min_bytes_opt().and_then(bytes), s.max_bytes_opt().and_then(bytes))
        }
        Statistics::Int96(_) => (None, None),
    };
    let known = min.is_some() && max.is_some();
    // Floats are never called exact: a NaN is outside all bounds.
    let exact = match t {
        DataType::Float32 | DataType::Float64 if nulls != values => false,
        _ => (known && s.min_is_exact() && s.max_is_exact()) || nulls == values,
    };
    if known || nulls == values { ColumnStats { column, nulls, min, max, exact } } else { unknown(nulls) }
}

fn big_endian(b: &[u8]) -> Option<i128> {
    let mut out = [if b.first()? & 0x80 == 0 { 0 } else { 0xff }; 16];
    out[16usize.checked_sub(b.len())?..].copy_from_slice(b);
    Some(i128::from_be_bytes(out))
}
