//! An expression that fails once its query is no longer wanted.

use datafusion::{
    arrow::{
        datatypes::{DataType, FieldRef, Schema},
        record_batch::RecordBatch,
    },
    common::DataFusionError,
    error::Result,
    logical_expr::ColumnarValue,
    physical_expr::PhysicalExpr,
    physical_plan::joins::{NestedLoopJoinExec, NestedLoopJoinExecBuilder, utils::JoinFilter},
};
use std::{
    fmt,
    hash::{Hash, Hasher},
    sync::Arc,
};
use tokio_util::sync::CancellationToken;

#[derive(Debug, Clone)]
pub(super) struct Interruptible {
    inner: Arc<dyn PhysicalExpr>,
    stop: CancellationToken,
}

impl Interruptible {
    /// `join` with its condition made interruptible.
    pub fn condition_of(join: &NestedLoopJoinExec, stop: &CancellationToken) -> Result<NestedLoopJoinExec> {
        let filter = join.filter().map(|f| {
            let expr = Arc::new(Self { inner: f.expression().clone(), stop: stop.clone() });
            JoinFilter::new(expr, f.column_indices().to_vec(), f.schema().clone())
        });
        NestedLoopJoinExecBuilder::from(join).with_filter(filter).build()
    }
}

impl PartialEq for Interruptible {
    fn eq(&self, other: &Self) -> bool {
        self.inner.eq(&other.inner)
    }
}

impl Eq for Interruptible {}

impl Hash for Interruptible {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.inner.hash(state);
    }
}

impl fmt::Display for Interruptible {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

impl PhysicalExpr for Interruptible {
    fn data_type(&self, schema: &Schema) -> Result<DataType> {
        self.inner.data_type(schema)
    }
    fn nullable(&self, schema: &Schema) -> Result<bool> {
        self.inner.nullable(schema)
    }
    fn return_field(&self, schema: &Schema) -> Result<FieldRef> {
        self.inner.return_field(schema)
    }
    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        match self.stop.is_cancelled() {
            true => Err(DataFusionError::Execution("the query was given up".to_owned())),
            false => self.inner.evaluate(batch),
        }
    }
    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        vec![&self.inner]
    }
    fn with_new_children(self: Arc<Self>, mut children: Vec<Arc<dyn PhysicalExpr>>) -> Result<Arc<dyn PhysicalExpr>> {
        let inner = children.pop().ok_or_else(|| DataFusionError::Internal("an expression lost its child".to_owned()))?;
        Ok(Arc::new(Self { inner, stop: self.stop.clone() }))
    }
    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt_sql(f)
    }
}
