//! Statistics of parts as DataFusion takes them. Answers are computed from them, so `Exact` means exact.

use arrow::datatypes::{DataType, SchemaRef, TimeUnit};
use datafusion::common::{ColumnStatistics, ScalarValue, Statistics, stats::Precision};
use datafusion::datasource::{
    listing::PartitionedFile,
    physical_plan::{FileGroup, FileScanConfig, FileScanConfigBuilder},
    source::DataSourceExec,
};
use datafusion::physical_plan::ExecutionPlan;
use ebb_engine::{LivePart, upgrade};
use ebb_storage::{
    ids::ColumnId,
    part::stats::{Bound, ColumnStats},
};
use std::sync::Arc;

/// Over `stored`, the schema of the part's file (its last column is `_tp_sn`).
pub(super) fn of_part(part: &LivePart, stored: &SchemaRef, sn_in_meta: bool) -> Statistics {
    let hidden = part.hidden.as_ref().map_or(0, |h| h.len());
    let rows = usize::try_from(part.meta.rows.saturating_sub(hidden)).unwrap_or(usize::MAX);
    let mut columns = Vec::with_capacity(stored.fields().len());
    for field in stored.fields() {
        let id = upgrade::field_id(field).ok();
        columns.push(match id {
            Some(ColumnId::TP_SN) => sn_stats(part, sn_in_meta),
            Some(id) => {
                part.meta.stats_of(id).map_or_else(ColumnStatistics::new_unknown, |s| column(s, field.data_type(), hidden > 0, rows))
            }
            None => ColumnStatistics::new_unknown(),
        });
    }
    Statistics {
        num_rows: Precision::Exact(rows),
        total_byte_size: Precision::Inexact(usize::try_from(part.meta.uncompressed_bytes).unwrap_or(usize::MAX)),
        column_statistics: columns,
    }
}

fn sn_stats(part: &LivePart, sn_in_meta: bool) -> ColumnStatistics {
    // Sns of a merged part may have been raised together; only a staged part's one sn is sure.
    let Some(sn) = part.sn_of_record.filter(|_| sn_in_meta) else { return ColumnStatistics::new_unknown() };
    let value = Precision::Exact(ScalarValue::Int64(i64::try_from(sn.0).ok()));
    ColumnStatistics { null_count: Precision::Exact(0), min_value: value.clone(), max_value: value, ..ColumnStatistics::new_unknown() }
}

fn column(stats: &ColumnStats, ty: &DataType, some_hidden: bool, rows: usize) -> ColumnStatistics {
    let nulls = stats.known_nulls().map(|n| usize::try_from(n).unwrap_or(usize::MAX));
    let value = |bound: &Option<Bound>| match bound.as_ref().and_then(|b| scalar(b, ty)) {
        // NaN is above every bound; texts may be cut; a hidden row may have been the least.
        Some(v) if stats.exact && !some_hidden && !ty.is_floating() => Precision::Exact(v),
        Some(v) if stats.exact => Precision::Inexact(v),
        _ => Precision::Absent,
    };
    ColumnStatistics {
        null_count: match nulls {
            Some(nulls) if some_hidden => Precision::Inexact(nulls.min(rows)),
            Some(nulls) => Precision::Exact(nulls),
            None => Precision::Absent,
        },
        min_value: value(&stats.min),
        max_value: value(&stats.max),
        ..ColumnStatistics::new_unknown()
    }
}

/// A bound as a value of the column's type.
pub(crate) fn scalar(bound: &Bound, ty: &DataType) -> Option<ScalarValue> {
    Some(match (bound, ty) {
        (Bound::Bool(b), DataType::Boolean) => ScalarValue::Boolean(Some(*b)),
        (Bound::Int(i), DataType::Int8) => ScalarValue::Int8(Some(i8::try_from(*i).ok()?)),
        (Bound::Int(i), DataType::Int16) => ScalarValue::Int16(Some(i16::try_from(*i).ok()?)),
        (Bound::Int(i), DataType::Int32) => ScalarValue::Int32(Some(i32::try_from(*i).ok()?)),
        (Bound::Int(i), DataType::Int64) => ScalarValue::Int64(Some(*i)),
        (Bound::Int(i), DataType::Date32) => ScalarValue::Date32(Some(i32::try_from(*i).ok()?)),
        (Bound::Int(i), DataType::Timestamp(TimeUnit::Microsecond, zone)) => ScalarValue::TimestampMicrosecond(Some(*i), zone.clone()),
        (Bound::Int(i), DataType::Timestamp(TimeUnit::Nanosecond, zone)) => ScalarValue::TimestampNanosecond(Some(*i), zone.clone()),
        (Bound::UInt(u), DataType::UInt8) => ScalarValue::UInt8(Some(u8::try_from(*u).ok()?)),
        (Bound::UInt(u), DataType::UInt16) => ScalarValue::UInt16(Some(u16::try_from(*u).ok()?)),
        (Bound::UInt(u), DataType::UInt32) => ScalarValue::UInt32(Some(u32::try_from(*u).ok()?)),
        (Bound::UInt(u), DataType::UInt64) => ScalarValue::UInt64(Some(*u)),
        (Bound::Float(x), DataType::Float32) => ScalarValue::Float32(Some(*x as f32)),
        (Bound::Float(x), DataType::Float64) => ScalarValue::Float64(Some(*x)),
        (Bound::Decimal(d), DataType::Decimal128(p, s)) => ScalarValue::Decimal128(Some(*d), *p, *s),
        (Bound::Int(i), DataType::Timestamp(TimeUnit::Millisecond, zone)) => ScalarValue::TimestampMillisecond(Some(*i), zone.clone()),
        (Bound::Int(i), DataType::Timestamp(TimeUnit::Second, zone)) => ScalarValue::TimestampSecond(Some(*i), zone.clone()),
        (Bound::Text(t), DataType::Utf8View) => ScalarValue::Utf8View(Some(t.clone())),
        (Bound::Text(t), DataType::Utf8) => ScalarValue::Utf8(Some(t.clone())),
        (Bound::Text(t), DataType::LargeUtf8) => ScalarValue::LargeUtf8(Some(t.clone())),
        (Bound::Bytes(b), DataType::BinaryView) => ScalarValue::BinaryView(Some(b.clone())),
        _ => return None,
    })
}

/// Of all files together.
fn merged<'a>(files: impl Iterator<Item = &'a PartitionedFile>, stored: &SchemaRef) -> Statistics {
    let all: Vec<&Statistics> = files.filter_map(|f| f.statistics.as_deref()).collect();
    Statistics::try_merge_iter(all, stored).unwrap_or_else(|_| Statistics::new_unknown(stored))
}

/// Of all files together, without bounds of columns.
pub(super) fn counts(files: &[PartitionedFile], stored: &SchemaRef) -> Statistics {
    let mut all = merged(files.iter(), stored);
    for column in &mut all.column_statistics {
        (column.min_value, column.max_value) = (Precision::Absent, Precision::Absent);
    }
    all
}

/// The scan, which now tells its columns' bounds.
pub(super) fn telling_bounds(parts: &FileScanConfig) -> Option<Arc<dyn ExecutionPlan>> {
    let stored = parts.file_source().table_schema().table_schema();
    let told = merged(parts.file_groups.iter().flat_map(FileGroup::iter), stored);
    Some(DataSourceExec::from_data_source(FileScanConfigBuilder::from(parts.clone()).with_statistics(told).build()))
}
