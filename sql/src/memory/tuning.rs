//! DataFusion's options where they are bytes or rows: fitted to the limit, so that little memory is enough to spill and to merge.

use datafusion::common::tree_node::TreeNode;
use datafusion::{
    common::{
        ScalarValue,
        config::{ConfigNonZeroUsize, ConfigOptions},
        tree_node::TreeNodeRecursion,
    },
    error::Result,
    logical_expr::{Expr, LogicalPlan},
};

/// What a batch of rows may need of the limit: a merge holds several of each of its sources.
const BATCHES_IN_LIMIT: usize = 1024;
/// About what a row is assumed to need.
const ROW_BYTES: usize = 32;
const BATCH_ROWS_MIN: usize = 64;
const BATCH_ROWS_MAX: usize = 8192;
/// A sort keeps this share of the limit for its merge, in each of its partitions.
const MERGES_IN_LIMIT: usize = 32;
const MERGE_BYTES_MAX: usize = 10 << 20;
const SORT_IN_PLACE_MAX: usize = 1 << 20;
/// Longer constants make batches smaller: each row has a copy.
const CONSTANT_BYTES: usize = 64 << 10;
/// What the copies of a constant in a batch may need.
const COPIES_BYTES: usize = 16 << 20;

pub fn fit(options: &mut ConfigOptions, limit: usize) {
    let rows = (limit / BATCHES_IN_LIMIT / ROW_BYTES).clamp(BATCH_ROWS_MIN, BATCH_ROWS_MAX);
    set_rows(options, rows);
    options.execution.sort_spill_reservation_bytes = (limit / MERGES_IN_LIMIT).min(MERGE_BYTES_MAX);
    options.execution.sort_in_place_threshold_bytes = (limit / MERGES_IN_LIMIT).min(SORT_IN_PLACE_MAX);
}

fn set_rows(options: &mut ConfigOptions, rows: usize) {
    if let Ok(rows) = ConfigNonZeroUsize::try_new(rows) {
        options.execution.batch_size = rows;
    }
}

/// Makes batches smaller where `plan` has a long constant.
pub fn small_batches(options: &mut ConfigOptions, plan: &LogicalPlan) -> Result<()> {
    let mut longest = 0;
    plan.apply_with_subqueries(|node| {
        node.apply_expressions(|e| {
            e.apply(|e| {
                if let Expr::Literal(value, _) = e {
                    longest = longest.max(copied(value));
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })?;
    if longest > CONSTANT_BYTES {
        let rows = (COPIES_BYTES / longest).max(1);
        set_rows(options, rows.min(options.execution.batch_size.get()));
    }
    Ok(())
}

/// Bytes of the value that each row has anew.
fn copied(value: &ScalarValue) -> usize {
    match value {
        ScalarValue::Utf8View(_) | ScalarValue::BinaryView(_) => 0,
        value => value.size(),
    }
}
