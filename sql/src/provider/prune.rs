//! Which parts may hold rows that a query's filters keep, by the bounds in the manifest alone.

use super::{stats::scalar, table::StreamTable};
use arrow::{
    array::{Array, ArrayRef, BooleanArray, Int64Array, UInt64Array},
    datatypes::DataType,
};
use datafusion::{
    catalog::Session,
    common::{Column, DFSchema, ScalarValue, pruning::PruningStatistics},
    error::Result,
    logical_expr::{Expr, utils::conjunction},
    physical_expr::PhysicalExpr,
    physical_optimizer::pruning::PruningPredicateBuilder,
};
use ebb_engine::LivePart;
use ebb_storage::{
    ids::{ColumnId, Sn},
    manifest::StreamState,
    part::{PartMeta, stats::Bound},
    stream_def::{StreamDef, TP_SN, TP_TIME},
};
use std::{collections::HashSet, sync::Arc};

pub(super) fn parts(table: &StreamTable, state: &dyn Session, filters: &[Expr]) -> Result<Vec<LivePart>> {
    let all = table.view.parts.clone();
    if all.is_empty() || filters.is_empty() {
        return Ok(all);
    }
    let def = table.def();
    let schema = def.part_schema();
    let stored = |e: &&Expr| e.column_refs().iter().all(|c| schema.index_of(&c.name).is_ok());
    let Some(filter) = conjunction(filters.iter().filter(stored).cloned()) else { return Ok(all) };
    let df_schema = DFSchema::try_from(schema.as_ref().clone())?;
    let unqualified = unqualified(filter)?;
    let predicate = state.create_physical_expr(unqualified, &df_schema)?;
    // A filter that pruning cannot use prunes nothing.
    let Ok(pruning) = PruningPredicateBuilder::new().with_file_schema(schema).try_build(predicate) else { return Ok(all) };
    let keep = pruning.prune(&Bounds { parts: all.iter().map(|p| p.meta.as_ref()).collect(), def, state: &table.view.state })?;
    Ok(all.into_iter().zip(keep).filter(|(_, keep)| *keep).map(|(part, _)| part).collect())
}

/// Whether the bounds of a part say that no row of it is one that `predicate` keeps.
pub(crate) type Skip = Arc<dyn Fn(&PartMeta) -> bool + Send + Sync>;

/// `predicate` is over the `part_schema` of the stream's present definition.
pub(crate) fn skip(predicate: Arc<dyn PhysicalExpr>, state: Arc<StreamState>) -> Skip {
    let schema = state.def.part_schema();
    match PruningPredicateBuilder::new().with_file_schema(schema).try_build(predicate) {
        Ok(pruning) => Arc::new(move |part| {
            let bounds = Bounds { parts: vec![part], def: &state.def, state: &state };
            pruning.prune(&bounds).is_ok_and(|keep| keep == [false])
        }),
        Err(_) => Arc::new(|_| false),
    }
}

pub(crate) fn unqualified(filter: Expr) -> Result<Expr> {
    use datafusion::common::tree_node::{Transformed, TreeNode};
    Ok(filter
        .transform(|e| {
            Ok(match e {
                Expr::Column(c) if c.relation.is_some() => Transformed::yes(Expr::Column(Column::new_unqualified(c.name))),
                other => Transformed::no(other),
            })
        })?
        .data)
}

struct Bounds<'a> {
    parts: Vec<&'a PartMeta>,
    def: &'a Arc<StreamDef>,
    state: &'a StreamState,
}

impl Bounds<'_> {
    fn id(&self, column: &Column) -> Option<ColumnId> {
        if column.name == TP_TIME {
            return Some(ColumnId::TP_TIME);
        }
        self.def.column(&column.name).map(|c| c.id)
    }

    /// Rounding raises sns, and never above the part's highest.
    fn sns(&self, column: &Column, of: impl Fn(&PartMeta) -> Sn) -> Option<ArrayRef> {
        let sn = |p: &&PartMeta| i64::try_from(of(p).0).ok();
        (column.name == TP_SN).then(|| Arc::new(self.parts.iter().map(sn).collect::<Int64Array>()) as ArrayRef)
    }

    fn typed(&self, column: &Column) -> Option<(ColumnId, DataType)> {
        let schema = self.def.part_schema();
        Some((self.id(column)?, schema.field_with_name(&column.name).ok()?.data_type().clone()))
    }

    /// Whether the column had this type when the part was written: what is known of its values is in that.
    fn wrote(&self, part: &PartMeta, id: ColumnId, ty: &DataType) -> bool {
        let written = self.state.written(part);
        id == ColumnId::TP_TIME || written.columns.iter().any(|c| c.id == id && c.ty.arrow() == *ty)
    }

    fn values(&self, column: &Column, of: impl Fn(&ebb_storage::part::stats::ColumnStats) -> Option<Bound>) -> Option<ArrayRef> {
        let (id, ty) = self.typed(column)?;
        // Floats: NaN is above every bound that is kept.
        if ty.is_floating() {
            return None;
        }
        let none = ScalarValue::try_from(&ty).ok()?;
        let bound = |p: &&PartMeta| Some(p).filter(|p| self.wrote(p, id, &ty))?.stats_of(id).and_then(&of).and_then(|b| scalar(&b, &ty));
        ScalarValue::iter_to_array(self.parts.iter().map(|p| bound(p).unwrap_or_else(|| none.clone()))).ok()
    }
}

impl PruningStatistics for Bounds<'_> {
    fn min_values(&self, column: &Column) -> Option<ArrayRef> {
        self.sns(column, PartMeta::min_sn).or_else(|| self.values(column, |s| s.min.clone()))
    }
    fn max_values(&self, column: &Column) -> Option<ArrayRef> {
        self.sns(column, PartMeta::max_sn).or_else(|| self.values(column, |s| s.max.clone()))
    }
    fn num_containers(&self) -> usize {
        self.parts.len()
    }
    fn null_counts(&self, column: &Column) -> Option<ArrayRef> {
        let id = self.id(column)?;
        let counts: UInt64Array = self.parts.iter().map(|p| p.stats_of(id).and_then(|s| s.known_nulls())).collect();
        Some(Arc::new(counts))
    }
    fn row_counts(&self) -> Option<ArrayRef> {
        let counts: UInt64Array = self.parts.iter().map(|p| Some(p.rows)).collect();
        Some(Arc::new(counts))
    }
    /// By the sets that indexes keep: whether a part has no other values than these, or none of them.
    fn contained(&self, column: &Column, values: &HashSet<ScalarValue>) -> Option<BooleanArray> {
        let (id, ty) = self.typed(column)?;
        let values: HashSet<ScalarValue> = values.iter().map(|v| v.cast_to(&ty).ok()).collect::<Option<_>>()?;
        let of_part = |part: &&PartMeta| {
            let set = Some(part).filter(|p| self.wrote(p, id, &ty))?.sets.iter().find(|s| s.column == id)?;
            let known: Vec<ScalarValue> = set.values.iter().map(|b| scalar(b, &ty)).collect::<Option<_>>()?;
            let found = known.iter().filter(|v| values.contains(v)).count();
            // NULLs are in no set.
            let only = || found == known.len() && part.stats_of(id).and_then(|s| s.known_nulls()) == Some(0);
            match found {
                0 => Some(false),
                _ => only().then_some(true),
            }
        };
        let answers: BooleanArray = self.parts.iter().map(of_part).collect();
        (answers.null_count() < answers.len()).then_some(answers)
    }
}
