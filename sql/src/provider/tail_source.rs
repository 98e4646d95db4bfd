//! Rows in memory as a source that knows their number and, asked for them, their bounds, so that `count`, `min` and `max` over parts and
//! tail need not read the parts.

use arrow::{
    array::RecordBatch,
    datatypes::{DataType, SchemaRef},
};
use datafusion::{
    common::{ColumnStatistics, ScalarValue, Statistics, stats::Precision, tree_node::TreeNodeRecursion},
    config::ConfigOptions,
    datasource::{
        memory::MemorySourceConfig,
        source::{DataSource, DataSourceExec},
    },
    error::Result,
    execution::{SendableRecordBatchStream, TaskContext},
    functions_aggregate::min_max::{MaxAccumulator, MinAccumulator},
    logical_expr::Accumulator,
    physical_expr::{EquivalenceProperties, LexOrdering, Partitioning, PhysicalExpr, projection::ProjectionExprs},
    physical_plan::{DisplayFormatType, ExecutionPlan, execution_plan::SchedulingType, filter_pushdown::FilterPushdownPropagation},
};
use std::{
    fmt,
    sync::{Arc, OnceLock},
};

#[derive(Clone)]
struct TailSource {
    inner: Arc<dyn DataSource>,
    /// The projected rows that `inner` yields.
    rows: Arc<Vec<RecordBatch>>,
    schema: SchemaRef,
    tells_bounds: bool,
    statistics: OnceLock<Arc<Statistics>>,
}

/// The columns at `places` of `batches`.
pub(super) fn scan(batches: Vec<RecordBatch>, schema: SchemaRef, places: &[usize]) -> Result<Arc<dyn ExecutionPlan>> {
    let rows = batches.iter().map(|b| b.project(places)).collect::<Result<Vec<_>, _>>()?;
    let schema = Arc::new(schema.project(places)?);
    Ok(DataSourceExec::from_data_source(TailSource::new(rows, schema)?))
}

/// The scan, which now tells its columns' bounds; `None` for another source.
pub(super) fn telling_bounds(scan: &DataSourceExec) -> Option<Arc<dyn ExecutionPlan>> {
    let tail = scan.data_source().downcast_ref::<TailSource>()?;
    let told = TailSource { tells_bounds: true, statistics: OnceLock::new(), ..tail.clone() };
    Some(DataSourceExec::from_data_source(told))
}

impl TailSource {
    fn new(rows: Vec<RecordBatch>, schema: SchemaRef) -> Result<Self> {
        let inner = MemorySourceConfig::try_new(std::slice::from_ref(&rows), schema.clone(), None)?;
        Ok(Self { inner: Arc::new(inner), rows: Arc::new(rows), schema, tells_bounds: false, statistics: OnceLock::new() })
    }

    fn wrap(&self, inner: Arc<dyn DataSource>) -> Self {
        Self { inner, ..self.clone() }
    }

    fn exact(&self) -> Arc<Statistics> {
        self.statistics.get_or_init(|| Arc::new(statistics(&self.rows, &self.schema, self.tells_bounds))).clone()
    }
}

fn statistics(rows: &[RecordBatch], schema: &SchemaRef, bounds_too: bool) -> Statistics {
    let column = |i: usize| {
        let nulls = rows.iter().map(|b| b.column(i).null_count()).sum();
        let mut known = ColumnStatistics { null_count: Precision::Exact(nulls), ..ColumnStatistics::new_unknown() };
        if !bounds_too || schema.field(i).data_type().is_nested() || schema.field(i).data_type().is_floating() {
            return known;
        }
        if let Some((min, max)) = bounds(rows, i, schema.field(i).data_type()).ok().filter(|(min, max)| !min.is_null() && !max.is_null()) {
            known.min_value = Precision::Exact(min);
            known.max_value = Precision::Exact(max);
        }
        known
    };
    Statistics {
        num_rows: Precision::Exact(rows.iter().map(RecordBatch::num_rows).sum()),
        total_byte_size: Precision::Inexact(rows.iter().map(RecordBatch::get_array_memory_size).sum()),
        column_statistics: (0..schema.fields().len()).map(column).collect(),
    }
}

fn bounds(rows: &[RecordBatch], i: usize, ty: &DataType) -> Result<(ScalarValue, ScalarValue)> {
    let (mut min, mut max) = (MinAccumulator::try_new(ty)?, MaxAccumulator::try_new(ty)?);
    for batch in rows {
        let column = std::slice::from_ref(batch.column(i));
        min.update_batch(column)?;
        max.update_batch(column)?;
    }
    Ok((min.evaluate()?, max.evaluate()?))
}

impl fmt::Debug for TailSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TailSource")
    }
}

impl DataSource for TailSource {
    fn open(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        self.inner.open(partition, context)
    }
    fn fmt_as(&self, t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("tail, ")?;
        self.inner.fmt_as(t, f)
    }
    fn repartitioned(&self, target: usize, min_size: usize, ordering: Option<LexOrdering>) -> Result<Option<Arc<dyn DataSource>>> {
        let inner = self.inner.repartitioned(target, min_size, ordering)?;
        Ok(inner.map(|inner| Arc::new(self.wrap(inner)) as Arc<dyn DataSource>))
    }
    fn output_partitioning(&self) -> Partitioning {
        self.inner.output_partitioning()
    }
    fn eq_properties(&self) -> EquivalenceProperties {
        self.inner.eq_properties()
    }
    fn scheduling_type(&self) -> SchedulingType {
        self.inner.scheduling_type()
    }
    fn partition_statistics(&self, partition: Option<usize>) -> Result<Arc<Statistics>> {
        match partition {
            None if self.fetch().is_none() => Ok(self.exact()),
            other => self.inner.partition_statistics(other),
        }
    }
    fn with_fetch(&self, limit: Option<usize>) -> Option<Arc<dyn DataSource>> {
        Some(Arc::new(self.wrap(self.inner.with_fetch(limit)?)))
    }
    fn fetch(&self) -> Option<usize> {
        self.inner.fetch()
    }
    fn try_swapping_with_projection(&self, _: &ProjectionExprs) -> Result<Option<Arc<dyn DataSource>>> {
        // Only the columns of the scan are here already.
        Ok(None)
    }
    fn apply_expressions(&self, _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }
    fn try_pushdown_filters(
        &self,
        filters: Vec<Arc<dyn PhysicalExpr>>,
        config: &ConfigOptions,
    ) -> Result<FilterPushdownPropagation<Arc<dyn DataSource>>> {
        self.inner.try_pushdown_filters(filters, config)
    }
}
