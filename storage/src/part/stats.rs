//! Bounds of a part's columns, kept in the manifest so that parts are pruned without being opened.

use crate::ids::ColumnId;
use arrow::datatypes::{DataType, SchemaRef};
use parquet::{
    arrow::PARQUET_FIELD_ID_META_KEY,
    file::{metadata::RowGroupMetaData, statistics::Statistics},
};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ColumnStats {
    pub column: ColumnId,
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
    Float(f64),
    Decimal(i128),
    Text(String),
    Bytes(Vec<u8>),
}

/// Runs the bounds of row groups together into those of a part.
pub struct StatsBuilder {
    columns: Vec<Column>,
}

struct Column {
    id: Option<ColumnId>,
    ty: DataType,
    /// Its place among the leaves; `None` for nested columns, which have no bounds.
    leaf: Option<usize>,
    stats: Option<ColumnStats>,
    /// Some row group did not say.
    unknown: bool,
}

impl StatsBuilder {
    pub fn new(schema: &SchemaRef) -> Self {
        let mut leaf = 0;
        let mut columns = Vec::with_capacity(schema.fields().len());
        for field in schema.fields() {
            let flat = !field.data_type().is_nested();
            columns.push(Column {
                id: field.metadata().get(PARQUET_FIELD_ID_META_KEY).and_then(|t| t.parse().ok()).map(ColumnId),
                ty: field.data_type().clone(),
                leaf: flat.then_some(leaf),
                stats: None,
                unknown: false,
            });
            leaf += leaves(field.data_type());
        }
        Self { columns }
    }

    pub fn add(&mut self, group: &RowGroupMetaData) {
        for column in &mut self.columns {
            let (Some(id), Some(leaf)) = (column.id, column.leaf) else { continue };
            let Some(s) = group.columns().get(leaf).and_then(|c| c.statistics()) else {
                column.unknown = true;
                continue;
            };
            let (min, max) = bounds(s, &column.ty);
            let nulls = s.null_count_opt();
            let all_null = nulls == Some(group.num_rows().max(0) as u64);
            column.unknown |= nulls.is_none() || (min.is_none() || max.is_none()) && !all_null;
            let exact = s.min_is_exact() && s.max_is_exact() || all_null;
            let have = column.stats.get_or_insert(ColumnStats { column: id, nulls: 0, min: None, max: None, exact: true });
            have.nulls += nulls.unwrap_or(0);
            have.exact &= exact;
            have.min = pick(have.min.take(), min, true);
            have.max = pick(have.max.take(), max, false);
        }
    }

    /// Columns whose bounds are unknown keep their NULL count where that is known.
    pub fn finish(self) -> Vec<ColumnStats> {
        let known = |c: Column| {
            let s = c.stats?;
            if c.unknown && s.min.is_some() {
                return Some(ColumnStats { min: None, max: None, exact: false, ..s });
            }
            Some(s)
        };
        self.columns.into_iter().filter_map(known).collect()
    }
}

fn leaves(ty: &DataType) -> usize {
    match ty {
        DataType::List(f) | DataType::Map(f, _) => leaves(f.data_type()),
        DataType::Struct(fields) => fields.iter().map(|f| leaves(f.data_type())).sum(),
        _ => 1,
    }
}

fn pick(a: Option<Bound>, b: Option<Bound>, least: bool) -> Option<Bound> {
    match (a, b) {
        (Some(a), Some(b)) => Some(if (a <= b) == least { a } else { b }),
        (a, b) => a.or(b),
    }
}

fn bounds(s: &Statistics, ty: &DataType) -> (Option<Bound>, Option<Bound>) {
    let both = |min: Option<Bound>, max: Option<Bound>| (min, max);
    let unsigned = ty.is_unsigned_integer();
    match s {
        Statistics::Boolean(v) => both(v.min_opt().map(|b| Bound::Bool(*b)), v.max_opt().map(|b| Bound::Bool(*b))),
        Statistics::Int32(v) => {
            let of = |x: &i32| match ty {
                DataType::Decimal128(..) => Bound::Decimal(i128::from(*x)),
                _ if unsigned => Bound::UInt(u64::from(*x as u32)),
                _ => Bound::Int(i64::from(*x)),
            };
            both(v.min_opt().map(of), v.max_opt().map(of))
        }
        Statistics::Int64(v) => {
            let of = |x: &i64| match ty {
                DataType::Decimal128(..) => Bound::Decimal(i128::from(*x)),
                _ if unsigned => Bound::UInt(*x as u64),
                _ => Bound::Int(*x),
            };
            both(v.min_opt().map(of), v.max_opt().map(of))
        }
        Statistics::Float(v) => both(v.min_opt().map(|x| Bound::Float(f64::from(*x))), v.max_opt().map(|x| Bound::Float(f64::from(*x)))),
        Statistics::Double(v) => both(v.min_opt().map(|x| Bound::Float(*x)), v.max_opt().map(|x| Bound::Float(*x))),
        Statistics::ByteArray(v) => {
            let of = |x: &parquet::data_type::ByteArray| match ty {
                DataType::Utf8View | DataType::Utf8 => std::str::from_utf8(x.data()).ok().map(|t| Bound::Text(t.to_owned())),
                _ => Some(Bound::Bytes(x.data().to_vec())),
            };
            both(v.min_opt().and_then(of), v.max_opt().and_then(of))
        }
        Statistics::FixedLenByteArray(v) => {
            let of = |x: &parquet::data_type::FixedLenByteArray| {
                let b = x.data();
                let fill = if b.first().is_some_and(|top| top & 0x80 != 0) { 0xff } else { 0 };
                let mut wide = [fill; 16];
                let at = 16usize.checked_sub(b.len())?;
                wide[at..].copy_from_slice(b);
                matches!(ty, DataType::Decimal128(..)).then(|| Bound::Decimal(i128::from_be_bytes(wide)))
            };
            both(v.min_opt().and_then(of), v.max_opt().and_then(of))
        }
        Statistics::Int96(_) => (None, None),
    }
}
