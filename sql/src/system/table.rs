//! A system table as DataFusion reads it. Its rows are made at the scan, never before, so that a plan that is only looked at costs
//! nothing.

use super::Entry;
use crate::{database::Shared, provider::Cut};
use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use datafusion::{
    catalog::{Session, TableProvider},
    datasource::memory::MemorySourceConfig,
    error::{DataFusionError, Result},
    logical_expr::{Expr, TableType},
    physical_plan::ExecutionPlan,
};
use std::{fmt, sync::Arc};

pub(super) struct SystemTable {
    pub entry: &'static Entry,
    pub shared: Arc<Shared>,
    pub cut: Cut,
}

impl fmt::Debug for SystemTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SystemTable({})", self.entry.name)
    }
}

#[async_trait]
impl TableProvider for SystemTable {
    fn schema(&self) -> SchemaRef {
        (self.entry.schema)()
    }

    fn table_type(&self) -> TableType {
        TableType::View
    }

    async fn scan(&self, _: &dyn Session, projection: Option<&Vec<usize>>, _: &[Expr], _: Option<usize>) -> Result<Arc<dyn ExecutionPlan>> {
        if self.entry.looks_at_disks {
            self.shared.engine.check_disks().await;
        }
        let batch = (self.entry.rows)(&self.shared, &self.cut).map_err(|e| DataFusionError::External(Box::new(e)))?;
        let plan = MemorySourceConfig::try_new_exec(&[vec![batch]], self.schema(), projection.cloned())?;
        Ok(plan)
    }
}
