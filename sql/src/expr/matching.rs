//! A condition of one statement as the engine evaluates it over the rows of parts.

use super::{Compiled, fixed, id_in};
use crate::{Result, bind::expression};
use arrow::datatypes::Schema;
use datafusion::{common::DFSchema, execution::SessionState, logical_expr::Expr, physical_plan::PhysicalExpr};
use ebb_engine::expr::RowExpr;
use ebb_storage::{
    ids::ColumnId,
    stream_def::{StreamDef, TP_SN},
};
use std::sync::Arc;

/// `condition` over the stream's stored columns, `_tp_time` and `_tp_sn`; NULL is false.
pub(crate) fn matching(state: &SessionState, condition: &Expr, def: &StreamDef) -> Result<Arc<dyn RowExpr>> {
    let names = condition.column_refs();
    let all = def.part_schema();
    let fields: Vec<_> = all.fields().iter().filter(|f| names.iter().any(|c| c.name == *f.name())).cloned().collect();
    let id = |f: &arrow::datatypes::FieldRef| if f.name() == TP_SN { ColumnId::TP_SN } else { id_in(f, def) };
    let columns = fields.iter().map(id).collect();
    let schema = Schema::new(fields);
    let df_schema = DFSchema::try_from(schema.clone())?;
    let physical: Arc<dyn PhysicalExpr> = expression::physical(state, condition.clone(), &df_schema)?;
    let expr = fixed::with_durations(physical, &schema)?;
    Ok(Arc::new(Compiled { expr, schema: Arc::new(schema), columns, monotone: None, column: None, condition: true }))
}
