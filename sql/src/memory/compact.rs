//! Batches that keep no more than they show, before operators that keep many of them.
//!
//! A text of a Parquet page is a view into the page. A sort or a join's table that holds a few hundred rows of a page would count, and
//! keep, all of it for each batch, and find no room where there is plenty.

use super::held::compact;
use arrow::{
    array::{RecordBatch, RecordBatchOptions},
    datatypes::{DataType, Schema},
};
use datafusion::{
    common::{
        Result,
        config::ConfigOptions,
        tree_node::{Transformed, TreeNode, TreeNodeRecursion},
    },
    execution::{SendableRecordBatchStream, TaskContext},
    physical_expr::PhysicalExpr,
    physical_optimizer::PhysicalOptimizerRule,
    physical_plan::{
        DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties, joins::HashJoinExec, replace_children_if_necessary,
        sorts::sort::SortExec, stream::RecordBatchStreamAdapter,
    },
};
use futures::StreamExt;
use std::{fmt, sync::Arc};

/// Puts [`Compact`] below sorts and the tables of joins.
#[derive(Debug)]
pub struct Compacting;

impl PhysicalOptimizerRule for Compacting {
    fn name(&self) -> &str {
        "ebb_compacting"
    }

    fn schema_check(&self) -> bool {
        true
    }

    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        let of_node = |node: Arc<dyn ExecutionPlan>| -> Result<Transformed<Arc<dyn ExecutionPlan>>> {
            let keeps =
                node.downcast_ref::<SortExec>().is_some_and(|s| s.fetch().is_none()) || node.downcast_ref::<HashJoinExec>().is_some();
            let mut children: Vec<Arc<dyn ExecutionPlan>> = node.children().into_iter().cloned().collect();
            match children.first_mut() {
                // The first child of a join is the one that it keeps.
                Some(kept) if keeps && has_views(&kept.schema()) => {
                    *kept = Arc::new(Compact { input: kept.clone() });
                    Ok(Transformed::yes(replace_children_if_necessary(node, children)?))
                }
                _ => Ok(Transformed::no(node)),
            }
        };
        Ok(plan.transform_up(of_node)?.data)
    }
}

fn has_views(schema: &Schema) -> bool {
    schema.fields().iter().any(|f| matches!(f.data_type(), DataType::Utf8View | DataType::BinaryView))
}

#[derive(Debug)]
struct Compact {
    input: Arc<dyn ExecutionPlan>,
}

impl DisplayAs for Compact {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CompactExec")
    }
}

impl ExecutionPlan for Compact {
    fn name(&self) -> &str {
        "CompactExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.input.properties()
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn apply_expressions(&self, _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(self: Arc<Self>, mut children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        match children.pop() {
            Some(input) if children.is_empty() => Ok(Arc::new(Self { input })),
            _ => datafusion::common::internal_err!("CompactExec has one child"),
        }
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let rows = self.input.execute(partition, context)?;
        let schema = rows.schema();
        let compacted = rows.map(|batch| {
            let batch = batch?;
            let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
            let columns = batch.columns().iter().map(compact).collect();
            Ok(RecordBatch::try_new_with_options(batch.schema(), columns, &options)?)
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, compacted)))
    }
}
