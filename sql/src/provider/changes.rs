//! Rows that came and rows that went between two cuts, as one table.

use super::{StreamTable, query_schema};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use async_trait::async_trait;
use datafusion::{
    catalog::{Session, TableProvider},
    error::Result,
    logical_expr::{Expr, TableProviderFilterPushDown, TableType},
    physical_expr::{
        PhysicalExpr,
        expressions::{Column, lit},
    },
    physical_plan::{ExecutionPlan, empty::EmptyExec, projection::ProjectionExec, union::UnionExec},
};
use ebb_storage::stream_def::{StreamDef, TP_TIME};
use std::{fmt, sync::Arc};

/// The column that says what happened to the row.
const TP_CHANGE: &str = "_tp_change";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    Insert,
    Delete,
}

impl Change {
    fn word(self) -> &'static str {
        match self {
            Self::Insert => "insert",
            Self::Delete => "delete",
        }
    }
}

pub(crate) struct ChangesTable {
    /// With hidden columns.
    pieces: Vec<(Change, StreamTable)>,
    schema: SchemaRef,
}

impl ChangesTable {
    pub fn new(pieces: Vec<(Change, StreamTable)>, def: Arc<StreamDef>, hidden_columns: bool, deletes: bool) -> Self {
        Self { pieces, schema: Self::columns(&def, hidden_columns, deletes) }
    }

    /// Those of the stream and `_tp_sn`; with `deletes` what happened, too.
    pub fn columns(def: &StreamDef, hidden_columns: bool, deletes: bool) -> SchemaRef {
        let all = query_schema(def, true);
        let shown = all.fields().iter().filter(|f| hidden_columns || f.name() != TP_TIME).cloned();
        let change = deletes.then(|| Arc::new(Field::new(TP_CHANGE, DataType::Utf8, false)));
        Arc::new(Schema::new(shown.chain(change).collect::<Vec<_>>()))
    }
}

impl fmt::Debug for ChangesTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ChangesTable({:?})", self.pieces)
    }
}

#[async_trait]
impl TableProvider for ChangesTable {
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
        let wanted: Vec<usize> = projection.cloned().unwrap_or_else(|| (0..self.schema.fields().len()).collect());
        let names: Vec<&str> = wanted.iter().map(|i| self.schema.field(*i).name().as_str()).collect();
        let mut plans: Vec<Arc<dyn ExecutionPlan>> = Vec::new();
        for (change, table) in &self.pieces {
            if table.is_empty() {
                continue;
            }
            let of_table = table.schema();
            let places = names.iter().filter(|n| **n != TP_CHANGE).map(|n| of_table.index_of(n)).collect::<Result<Vec<_>, _>>()?;
            let rows = table.scan(state, Some(&places), filters, limit).await?;
            let mut columns: Vec<(Arc<dyn PhysicalExpr>, String)> = Vec::with_capacity(names.len());
            for (i, name) in names.iter().filter(|n| **n != TP_CHANGE).enumerate() {
                columns.push((Arc::new(Column::new(name, i)), (*name).to_owned()));
            }
            if let Some(at) = names.iter().position(|n| *n == TP_CHANGE) {
                columns.insert(at, (lit(change.word()), TP_CHANGE.to_owned()));
                plans.push(Arc::new(ProjectionExec::try_new(columns, rows)?));
            } else {
                plans.push(rows);
            }
        }
        Ok(match plans.len() {
            0 => Arc::new(EmptyExec::new(Arc::new(self.schema.project(&wanted)?))),
            1 => plans.swap_remove(0),
            _ => UnionExec::try_new(plans)?,
        })
    }
}
