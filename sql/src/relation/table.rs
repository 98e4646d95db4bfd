//! Relations of rows that are known, and of those that are not known yet: of a statement that is only prepared.

use crate::Error;
use arrow::{datatypes::SchemaRef, record_batch::RecordBatch};
use async_trait::async_trait;
use datafusion::{
    catalog::{Session, TableProvider},
    datasource::memory::MemorySourceConfig,
    error::{DataFusionError, Result},
    logical_expr::{Expr, TableType},
    physical_plan::ExecutionPlan,
};
use std::sync::Arc;

/// Columns without rows: it can be planned and never read.
#[derive(Debug)]
pub(super) struct Described(pub SchemaRef);

#[async_trait]
impl TableProvider for Described {
    fn schema(&self) -> SchemaRef {
        self.0.clone()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(&self, _: &dyn Session, _: Option<&Vec<usize>>, _: &[Expr], _: Option<usize>) -> Result<Arc<dyn ExecutionPlan>> {
        Err(DataFusionError::External(Box::new(Error::internal("a statement that was only prepared was run"))))
    }
}

/// Rows that are known already.
#[derive(Debug)]
pub(super) struct Fixed(pub RecordBatch);

#[async_trait]
impl TableProvider for Fixed {
    fn schema(&self) -> SchemaRef {
        self.0.schema()
    }

    fn table_type(&self) -> TableType {
        TableType::View
    }

    async fn scan(&self, _: &dyn Session, projection: Option<&Vec<usize>>, _: &[Expr], _: Option<usize>) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(MemorySourceConfig::try_new_exec(&[vec![self.0.clone()]], self.0.schema(), projection.cloned())?)
    }
}
