//! Parts that were written under other columns: matched by id, renamed, what they lack filled in.

use super::{
    cut, parts,
    scan::{Group, session_state},
    table::StreamTable,
};
use crate::bind::expression;
use arrow::datatypes::{Field, Schema};
use datafusion::{
    catalog::Session,
    common::{DFSchema, DataFusionError, ScalarValue},
    error::Result,
    physical_expr::{
        PhysicalExpr,
        expressions::{CastExpr, Column, cast, lit},
    },
    physical_plan::{ExecutionPlan, projection::ProjectionExec},
};
use ebb_engine::{LivePart, upgrade};
use ebb_storage::{
    ids::ColumnId,
    stream_def::{ColumnDef, StreamDef},
};
use std::sync::Arc;

/// Whether rows of the two definitions are laid out alike, names included.
pub(super) fn same(a: &StreamDef, b: &StreamDef) -> bool {
    a.stored().map(|c| (c.id, &c.name, &c.ty, c.nullable)).eq(b.stored().map(|c| (c.id, &c.name, &c.ty, c.nullable)))
}

/// The columns at `places` of the stream's present `part_schema`, from parts of a group that was written under others.
pub(super) fn scan(
    table: &StreamTable,
    state: &dyn Session,
    group: &Group,
    of_group: Vec<LivePart>,
    places: &[usize],
    limit: Option<usize>,
) -> Result<Arc<dyn ExecutionPlan>> {
    let written = table.view.state.carrying(table.view.state.schema(group.version), &group.carried);
    let (def, old, new) = (table.def(), written.part_schema(), table.def().part_schema());
    let ids = |schema: &Schema| -> Result<Vec<ColumnId>> {
        schema.fields().iter().map(|f| upgrade::field_id(f).map_err(|e| DataFusionError::External(Box::new(e)))).collect()
    };
    let (old_ids, new_ids) = (ids(&old)?, ids(&new)?);
    // What defaults read is read too.
    let mut wanted: Vec<ColumnId> = places.iter().map(|p| new_ids[*p]).collect();
    for id in places.iter().map(|p| new_ids[*p]).filter(|id| !old_ids.contains(id)) {
        let column = def.columns.iter().find(|c| c.id == id && c.fill.is_none());
        if let Some(default) = column.and_then(|c| c.default.as_ref()) {
            wanted.extend(table.shared.compiler.bind(&default.expr, def)?.columns);
        }
    }
    let of_old = |id: &ColumnId| old_ids.iter().position(|old| old == id);
    let mut read: Vec<usize> = wanted.iter().filter_map(of_old).collect();
    read.sort_unstable();
    read.dedup();
    let rows = parts::scan(table, state, &written, of_group, &read, group.sn_in_meta, limit)?;
    // Rows that the cut does not see may have values that its columns have no room for.
    let rows = cut::within(rows, group.sns.as_deref())?;
    // The same columns by their present names.
    let mut known: Vec<arrow::datatypes::FieldRef> = Vec::new();
    let mut renamed: Vec<(Arc<dyn PhysicalExpr>, String)> = Vec::new();
    for (at, i) in read.iter().enumerate() {
        let Some(to) = new_ids.iter().position(|id| *id == old_ids[*i]) else { continue };
        let field = new.field(to);
        let column: Arc<dyn PhysicalExpr> = Arc::new(Column::new(old.field(*i).name(), at));
        // A column that was declared wider since.
        let column = match old.field(*i).data_type() == field.data_type() {
            true => column,
            false => cast(column, &rows.schema(), field.data_type().clone())?,
        };
        renamed.push((column, field.name().clone()));
        known.push(Arc::new(field.clone()));
    }
    let rows: Arc<dyn ExecutionPlan> = Arc::new(ProjectionExec::try_new(renamed, rows)?);
    let known = Arc::new(Schema::new(known));
    let mut columns: Vec<(Arc<dyn PhysicalExpr>, String)> = Vec::new();
    for p in places {
        let field = new.field(*p);
        let expr: Arc<dyn PhysicalExpr> = match known.index_of(field.name()) {
            Ok(at) => Arc::new(Column::new(field.name(), at)),
            Err(_) => match def.columns.iter().find(|c| c.id == new_ids[*p]) {
                Some(column) => fill(state, column, &known)?,
                None => return Err(DataFusionError::Internal(format!("parts lack {}", field.name()))),
            },
        };
        columns.push((declared(expr, field, &rows.schema())?, field.name().clone()));
    }
    Ok(Arc::new(ProjectionExec::try_new(columns, rows)?))
}

/// `expr` over rows of `schema`, as the column that a table says it has: the plan above compares nullability and marks of types as well as
/// types.
pub(super) fn declared(expr: Arc<dyn PhysicalExpr>, field: &Field, schema: &Schema) -> Result<Arc<dyn PhysicalExpr>> {
    let has = expr.return_field(schema)?;
    let alike = has.data_type() == field.data_type() && has.is_nullable() == field.is_nullable() && has.metadata() == field.metadata();
    Ok(match alike {
        true => expr,
        false => Arc::new(CastExpr::new_with_target_field(expr, Arc::new(field.clone()), None)),
    })
}

/// What rows that lack `column` read in it.
fn fill(state: &dyn Session, column: &ColumnDef, known: &Schema) -> Result<Arc<dyn PhysicalExpr>> {
    let ty = column.ty.arrow();
    if let Some(text) = &column.fill {
        return Ok(lit(ScalarValue::Utf8(Some(text.clone())).cast_to(&ty)?));
    }
    if let Some(default) = &column.default {
        let schema = DFSchema::try_from(known.clone())?;
        let expr = expression::plan(session_state(state)?, &default.expr, &schema)?;
        return expression::physical(session_state(state)?, expression::fitted(expr, column), &schema);
    }
    if column.nullable {
        return Ok(lit(ScalarValue::try_from(&ty)?));
    }
    let zero = upgrade::zero(&column.ty).map_err(|e| DataFusionError::External(Box::new(e)))?;
    Ok(lit(ScalarValue::try_from_array(&zero, 0)?))
}
