//! Bounds of columns are told to the rule that answers `min` and `max` from them, and to no other.
//!
//! DataFusion also reckons with them how many rows a filter leaves, and gives up the whole query where an expression is not monotone the
//! way it expects: `t::date > '2026-05-01'` leaves "101 %" of the rows. What it would gain is the choice of a join's side.

use super::{stats, tail_source};
use datafusion::{
    common::{
        Result,
        config::ConfigOptions,
        tree_node::{Transformed, TreeNode},
    },
    datasource::{physical_plan::FileScanConfig, source::DataSourceExec},
    physical_optimizer::{PhysicalOptimizerRule, aggregate_statistics::AggregateStatistics},
    physical_plan::{
        ExecutionPlan, aggregates::AggregateExec, coalesce_partitions::CoalescePartitionsExec, empty::EmptyExec,
        projection::ProjectionExec, replace_children_if_necessary, union::UnionExec,
    },
};
use std::sync::Arc;

/// Answers aggregates over whole scans from what the scans know.
#[derive(Debug)]
pub(crate) struct AnswerFromBounds;

impl PhysicalOptimizerRule for AnswerFromBounds {
    fn name(&self) -> &str {
        "ebb_answer_from_bounds"
    }

    /// A value in a `min`'s place is never NULL, where the column may be.
    fn schema_check(&self) -> bool {
        false
    }

    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        let answer = |node: Arc<dyn ExecutionPlan>| -> Result<Transformed<Arc<dyn ExecutionPlan>>> {
            let whole = node.downcast_ref::<AggregateExec>().is_some_and(|a| a.group_expr().is_empty());
            let told = if whole { told(&node)? } else { None };
            match told.map(|told| AggregateStatistics::new().optimize(told, config)).transpose()? {
                Some(answered) if answered.downcast_ref::<ProjectionExec>().is_some() => Ok(Transformed::yes(answered)),
                _ => Ok(Transformed::no(node)),
            }
        };
        Ok(plan.transform_down(answer)?.data)
    }
}

/// `plan` over scans that tell their bounds; `None` where something stands between that may leave rows out.
fn told(plan: &Arc<dyn ExecutionPlan>) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    if let Some(source) = plan.downcast_ref::<DataSourceExec>() {
        return Ok(match source.data_source().downcast_ref::<FileScanConfig>() {
            Some(parts) => stats::telling_bounds(parts),
            None => tail_source::telling_bounds(source),
        });
    }
    let hands_on_all = plan.downcast_ref::<AggregateExec>().is_some()
        || plan.downcast_ref::<ProjectionExec>().is_some()
        || plan.downcast_ref::<UnionExec>().is_some()
        || plan.downcast_ref::<CoalescePartitionsExec>().is_some()
        || plan.downcast_ref::<EmptyExec>().is_some();
    if !hands_on_all {
        return Ok(None);
    }
    let children = plan.children().into_iter().map(told).collect::<Result<Option<Vec<_>>>>()?;
    children.map(|children| replace_children_if_necessary(plan.clone(), children)).transpose()
}
