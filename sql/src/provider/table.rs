//! A stream of one cut as DataFusion's table.
//!
//! Its columns are the stream's; `_tp_time` and `_tp_sn` are there only for statements that name them, so that no `*` shows them.

use super::scan;
use crate::database::Shared;
use arrow::{
    array::RecordBatch,
    datatypes::{Schema, SchemaRef},
};
use async_trait::async_trait;
use datafusion::{
    catalog::{Session, TableProvider},
    error::Result,
    logical_expr::{Expr, TableProviderFilterPushDown, TableType},
    physical_plan::ExecutionPlan,
};
use ebb_engine::StreamView;
use ebb_storage::{
    Timestamp,
    ids::SchemaVersion,
    stream_def::{StreamDef, tp_sn_field, tp_time_field},
};
use std::{fmt, sync::Arc};

pub struct StreamTable {
    pub(super) shared: Arc<Shared>,
    pub(super) view: StreamView,
    /// Rows of the reader's own block.
    pub(super) own: Vec<(SchemaVersion, RecordBatch)>,
    pub(super) schema: SchemaRef,
    pub(super) now: Timestamp,
}

impl StreamTable {
    pub(crate) fn new(
        shared: Arc<Shared>,
        view: StreamView,
        own: Vec<(SchemaVersion, RecordBatch)>,
        hidden_columns: bool,
        now: Timestamp,
    ) -> Self {
        let schema = query_schema(&view.def, hidden_columns);
        Self { shared, view, own, schema, now }
    }

    /// With the first `n` columns only.
    pub(crate) fn of_first(mut self, n: usize) -> Self {
        self.schema = Arc::new(Schema::new(self.schema.fields().iter().take(n).cloned().collect::<Vec<_>>()));
        self
    }

    /// Whether there is nothing to read.
    pub(super) fn is_empty(&self) -> bool {
        self.view.parts.is_empty() && self.view.tail.is_empty() && self.own.is_empty()
    }

    pub fn def(&self) -> &Arc<StreamDef> {
        &self.view.def
    }
}

/// The columns that a query may name.
pub(crate) fn query_schema(def: &StreamDef, hidden_columns: bool) -> SchemaRef {
    let visible = def.columns.iter().map(|c| c.field());
    let hidden = hidden_columns.then(|| [tp_time_field(), tp_sn_field()]).into_iter().flatten();
    Arc::new(Schema::new(visible.chain(hidden).collect::<Vec<_>>()))
}

impl fmt::Debug for StreamTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StreamTable({})", self.view.def.full_name())
    }
}

#[async_trait]
impl TableProvider for StreamTable {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        Ok(vec![TableProviderFilterPushDown::Inexact; filters.len()])
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        scan::plan(self, state, projection.map(Vec::as_slice), filters, limit)
    }
}
