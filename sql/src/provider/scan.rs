//! One plan for one stream: parts that pruning left, grouped by the shape of their columns, then the tail and the block's own rows.

use super::{cut, hide, parts, prune, shape, table::StreamTable, tail_source};
use crate::bind::expression;
use arrow::array::{ArrayRef, Int64Array, RecordBatch};
use datafusion::{
    catalog::Session,
    common::{DFSchema, DataFusionError},
    error::Result,
    logical_expr::Expr,
    physical_expr::{PhysicalExpr, expressions::Column},
    physical_plan::{ExecutionPlan, empty::EmptyExec, projection::ProjectionExec, union::UnionExec},
};
use ebb_engine::{
    LivePart,
    hide::{Hide, Hiding},
    upgrade::upgrade,
};
use ebb_storage::{
    ids::{ColumnId, SchemaVersion, Sn},
    stream_def::TP_SN,
};
use std::{collections::BTreeMap, sync::Arc};

/// What `projection` of the table's columns needs.
pub(super) fn plan(
    table: &StreamTable,
    state: &dyn Session,
    projection: Option<&[usize]>,
    filters: &[Expr],
    limit: Option<usize>,
) -> Result<Arc<dyn ExecutionPlan>> {
    let def = table.def();
    let stored = def.part_schema();
    let wanted: Vec<usize> = projection.map_or_else(|| (0..table.schema.fields().len()).collect(), <[usize]>::to_vec);
    let alias = |i: &usize| def.columns.get(*i).is_some_and(|c| c.is_alias());
    if !wanted.iter().any(alias) {
        let places = wanted.iter().map(|i| stored.index_of(table.schema.field(*i).name())).collect::<Result<Vec<_>, _>>()?;
        return stored_rows(table, state, &places, filters, limit);
    }
    // Computed columns may read any other.
    let all: Vec<usize> = (0..stored.fields().len()).collect();
    let rows = stored_rows(table, state, &all, filters, limit)?;
    let schema = DFSchema::try_from(stored.as_ref().clone())?;
    let mut columns: Vec<(Arc<dyn PhysicalExpr>, String)> = Vec::with_capacity(wanted.len());
    for i in &wanted {
        let field = table.schema.field(*i);
        let expr: Arc<dyn PhysicalExpr> = match def.columns.get(*i).filter(|c| c.is_alias()) {
            Some(column) => {
                let text = column.default.as_ref().map(|d| d.expr.as_str()).unwrap_or("NULL");
                let state = session_state(state)?;
                let logical = expression::plan(state, text, &schema)?;
                expression::physical(state, expression::fitted(logical, column), &schema)?
            }
            None => Arc::new(Column::new_with_schema(field.name(), &stored)?),
        };
        columns.push((shape::declared(expr, field, &rows.schema())?, field.name().clone()));
    }
    Ok(Arc::new(ProjectionExec::try_new(columns, rows)?))
}

pub(super) fn session_state(state: &dyn Session) -> Result<&datafusion::execution::SessionState> {
    state.as_any().downcast_ref().ok_or_else(|| DataFusionError::Internal("a stream was planned outside of a session".to_owned()))
}

/// The columns at `places` of the stream's `part_schema`.
fn stored_rows(
    table: &StreamTable,
    state: &dyn Session,
    places: &[usize],
    filters: &[Expr],
    limit: Option<usize>,
) -> Result<Arc<dyn ExecutionPlan>> {
    let def = table.def();
    let stored = def.part_schema();
    let hiding = table.shared.engine.hiding(&table.view, table.now).map_err(|e| DataFusionError::External(Box::new(e)))?;
    let groups = grouped(table, state, places, filters, hiding.as_ref())?;
    let mut plans: Vec<Arc<dyn ExecutionPlan>> = Vec::new();
    for (group, parts) in groups {
        let evaluated = hiding.as_ref().filter(|_| group.evaluated);
        let mut read = evaluated.map_or_else(|| places.to_vec(), |h| hide::with_rule_columns(h, places, &stored));
        if group.sns.is_some() {
            cut::with_sn(&mut read, &stored);
        }
        let limit = limit.filter(|_| evaluated.is_none() && group.sns.is_none());
        let rows = match group.version == def.schema_version && group.carried.is_empty() {
            true => {
                let rows = parts::scan(table, state, def, parts, &read, group.sn_in_meta, limit)?;
                cut::within(rows, group.sns.as_deref())?
            }
            false => shape::scan(table, state, &group, parts, &read, limit)?,
        };
        plans.push(match evaluated {
            Some(h) => hide::above(rows, h, places.len())?,
            None => hide::first(rows, places.len())?,
        });
    }
    let batches = in_memory(table, hiding.as_ref())?;
    if !batches.is_empty() {
        plans.push(tail_source::scan(batches, stored.clone(), places)?);
    }
    Ok(match plans.len() {
        0 => Arc::new(EmptyExec::new(Arc::new(stored.project(places)?))),
        1 => plans.swap_remove(0),
        _ => UnionExec::try_new(plans)?,
    })
}

/// What parts of one scan have in common.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Group {
    /// The columns they were written under; the present ones where those are laid out alike.
    pub version: SchemaVersion,
    /// Dropped columns that their files have all the same.
    pub carried: Vec<ColumnId>,
    /// `_tp_sn` is asked for, and the files do not know it.
    pub sn_in_meta: bool,
    /// Some rows may be due and must be left out.
    evaluated: bool,
    /// Only rows of these records are seen: after, up to.
    pub sns: Option<Vec<(Sn, Sn)>>,
}

fn grouped(
    table: &StreamTable,
    state: &dyn Session,
    places: &[usize],
    filters: &[Expr],
    hiding: Option<&Hiding>,
) -> Result<BTreeMap<Group, Vec<LivePart>>> {
    let def = table.def();
    let stored = def.part_schema();
    let sn_wanted = places.iter().any(|p| stored.field(*p).name() == TP_SN);
    let mut groups: BTreeMap<Group, Vec<LivePart>> = BTreeMap::new();
    for part in prune::parts(table, state, filters)? {
        let evaluated = match hiding.map_or(Hide::None, |h| h.of_part(&part.meta)) {
            Hide::All => continue,
            Hide::None => false,
            Hide::Evaluate => true,
        };
        let (version, carried) = (part.meta.schema_version, &part.meta.carried);
        let plain = version == def.schema_version && carried.is_empty();
        let (version, carried) = match plain || shape::same(&table.view.state.written(&part.meta), def) {
            true => (def.schema_version, Vec::new()),
            false => (version, carried.clone()),
        };
        let sns = part.sns.as_ref().map(|set| set.ranges().iter().map(|r| (r.after, r.to)).collect());
        let sn_wanted = sn_wanted || part.sns.is_some();
        let group = Group { version, carried, sn_in_meta: sn_wanted && part.sn_of_record.is_some(), evaluated, sns };
        groups.entry(group).or_default().push(part);
    }
    Ok(groups)
}

/// The tail and the block's own rows.
fn in_memory(table: &StreamTable, hiding: Option<&Hiding>) -> Result<Vec<RecordBatch>> {
    let mut batches = Vec::new();
    for rows in &table.view.tail {
        batches.push(tail_rows(table, &rows.rows, rows.sn_column())?);
    }
    let own_sn = i64::try_from(table.view.head_sn.0).unwrap_or(i64::MAX).saturating_add(1);
    for (_, rows) in &table.own {
        let sns = Int64Array::from_value(own_sn, rows.num_rows());
        batches.push(tail_rows(table, rows, Arc::new(sns))?);
    }
    match hiding {
        Some(hiding) => batches.into_iter().map(|b| hide::of_rows(hiding, b)).collect(),
        None => Ok(batches),
    }
}

/// Rows of the tail in the stream's present `part_schema`.
fn tail_rows(table: &StreamTable, rows: &RecordBatch, sns: ArrayRef) -> Result<RecordBatch> {
    let (rows, _) = upgrade(rows, table.def(), table.shared.compiler.as_ref()).map_err(|e| DataFusionError::External(Box::new(e)))?;
    let mut columns = rows.columns().to_vec();
    columns.push(sns);
    Ok(RecordBatch::try_new(table.def().part_schema(), columns)?)
}
