//! Rows of a part that a cut sees only in part: those of some records, told by `_tp_sn`.
//!
//! The condition stands right above the scan in terms that DataFusion pushes into it, so that row groups and pages without such rows
//! are not read.

use arrow::datatypes::SchemaRef;
use datafusion::{
    common::{DataFusionError, ScalarValue},
    error::Result,
    logical_expr::Operator,
    physical_expr::{
        PhysicalExpr,
        expressions::{BinaryExpr, Column, lit},
    },
    physical_plan::{ExecutionPlan, filter::FilterExec},
};
use ebb_storage::{ids::Sn, stream_def::TP_SN};
use std::sync::Arc;

/// `places` with that of `_tp_sn`.
pub(super) fn with_sn(places: &mut Vec<usize>, stored: &SchemaRef) {
    places.extend(stored.index_of(TP_SN).ok().filter(|sn| !places.contains(sn)));
}

/// The rows of `input` whose `_tp_sn` is in one of `ranges` (after, up to), which are in order and apart; all where there are none.
pub(super) fn within(input: Arc<dyn ExecutionPlan>, ranges: Option<&[(Sn, Sn)]>) -> Result<Arc<dyn ExecutionPlan>> {
    let Some(ranges) = ranges else { return Ok(input) };
    let at = input.schema().index_of(TP_SN)?;
    let sn: Arc<dyn PhysicalExpr> = Arc::new(Column::new(TP_SN, at));
    Ok(Arc::new(FilterExec::try_new(is_within(&sn, ranges)?, input)?))
}

fn is_within(sn: &Arc<dyn PhysicalExpr>, ranges: &[(Sn, Sn)]) -> Result<Arc<dyn PhysicalExpr>> {
    let both = |op, left, right| Arc::new(BinaryExpr::new(left, op, right)) as Arc<dyn PhysicalExpr>;
    match ranges {
        [] => Ok(lit(false)),
        [(after, to)] => {
            let bound = |sn: &Sn| i64::try_from(sn.0).ok().map(|n| lit(ScalarValue::Int64(Some(n))));
            let above = bound(after).map(|after| both(Operator::Gt, sn.clone(), after));
            let below = bound(to).map(|to| both(Operator::LtEq, sn.clone(), to));
            Ok(match (above.filter(|_| *after > Sn(0)), below) {
                (Some(above), Some(below)) => both(Operator::And, above, below),
                (Some(one), None) | (None, Some(one)) => one,
                (None, None) if *after == Sn(0) => lit(true),
                (None, None) => return Err(DataFusionError::Internal("sns beyond what a row can carry".to_owned())),
            })
        }
        // As shallow as can be: a search, where there are many.
        several => {
            let (left, right) = several.split_at(several.len() / 2);
            Ok(both(Operator::Or, is_within(sn, left)?, is_within(sn, right)?))
        }
    }
}
