//! Which parts may hold rows that a query's filters keep, by the bounds in the manifest alone.

use super::{scan::session_state, stats::scalar, table::StreamTable};
use crate::{bind::expression, database::Shared};
use arrow::{
    array::{Array, ArrayRef, BooleanArray, Int64Array, UInt64Array},
    datatypes::{DataType, Field, Schema},
};
use datafusion::{
    catalog::Session,
    common::{
        Column, DFSchema, ScalarValue,
        pruning::PruningStatistics,
        tree_node::{Transformed, TreeNode, TreeNodeRecursion},
    },
    error::Result,
    logical_expr::{Expr, ExprSchemable, utils::conjunction},
    physical_optimizer::pruning::{PruningPredicate, PruningPredicateBuilder},
};
use ebb_engine::LivePart;
use ebb_storage::{
    ids::{ColumnId, Fingerprint, Sn},
    manifest::StreamState,
    part::{PartMeta, computed::ComputedValues, stats::Bound},
    stream_def::{StreamDef, TP_SN, TP_TIME},
};
use std::{collections::HashSet, sync::Arc};

/// Begins the name of a column that stands for an expression; nobody writes it.
const MARK: char = '\u{2060}';

/// Asked in the midst of planning, it sees to its stack itself.
#[recursive::recursive]
pub(super) fn parts(table: &StreamTable, state: &dyn Session, filters: &[Expr]) -> Result<Vec<LivePart>> {
    let all = table.view.parts.clone();
    if all.is_empty() || filters.is_empty() {
        return Ok(all);
    }
    let def = table.def();
    let schema = def.part_schema();
    let stored = |e: &&Expr| e.column_refs().iter().all(|c| schema.index_of(&c.name).is_ok());
    let Some(filter) = conjunction(filters.iter().filter(stored).cloned()) else { return Ok(all) };
    let Some(known) = Known::of(&table.shared, state, unqualified(filter)?, def)? else { return Ok(all) };
    let keep = known.pruning.prune(&known.bounds(all.iter().map(|p| p.meta.as_ref()).collect(), def, &table.view.state))?;
    Ok(all.into_iter().zip(keep).filter(|(_, keep)| *keep).map(|(part, _)| part).collect())
}

/// A filter as pruning takes it.
struct Known {
    pruning: PruningPredicate,
    /// What stands for an expression that an INDEX is over, by the name of its column.
    computed: Vec<(String, Fingerprint, DataType)>,
}

impl Known {
    /// `filter` is over the `part_schema` of `def`; `None` where pruning cannot use it.
    fn of(shared: &Shared, state: &dyn Session, filter: Expr, def: &Arc<StreamDef>) -> Result<Option<Self>> {
        let schema = def.part_schema();
        let mut fields: Vec<Field> = schema.fields().iter().map(|f| f.as_ref().clone()).collect();
        let plain = DFSchema::try_from(schema.as_ref().clone())?;
        // What was kept was computed in UTC.
        let utc = state.config_options().execution.time_zone.as_deref().is_none_or(|zone| zone == "UTC");
        let (mut computed, mut by_column) = (Vec::new(), Vec::new());
        for index in shared.engine.indexes(def).map_err(crate::Error::from)? {
            // One that cannot be planned any more is none.
            for (form, expr) in shared.compiler.in_filters(&index.expr, def).unwrap_or_default().into_iter().enumerate() {
                if !utc && expr.exists(|e| Ok(e.get_type(&plain).is_ok_and(|ty| ty.is_temporal())))? {
                    continue;
                }
                let ty = expr.get_type(&plain)?;
                let name = format!("{MARK}{}.{form}", index.fingerprint);
                fields.push(Field::new(&name, ty.clone(), true));
                computed.push((name.clone(), index.fingerprint, ty));
                by_column.push((expr, name));
            }
        }
        let filter = match by_column.as_slice() {
            [] => filter,
            known => over_indexes(filter, known)?,
        };
        let schema = Arc::new(Schema::new(fields));
        let predicate = expression::physical(session_state(state)?, filter, &DFSchema::try_from(schema.as_ref().clone())?)?;
        // A filter that pruning cannot use prunes nothing.
        let pruning = PruningPredicateBuilder::new().with_file_schema(schema).try_build(predicate).ok();
        Ok(pruning.map(|pruning| Self { pruning, computed }))
    }

    fn bounds<'a>(&'a self, parts: Vec<&'a PartMeta>, def: &'a Arc<StreamDef>, state: &'a StreamState) -> Bounds<'a> {
        Bounds { parts, def, state, computed: &self.computed }
    }
}

/// `filter` with columns in place of expressions that are indexed.
fn over_indexes(filter: Expr, known: &[(Expr, String)]) -> Result<Expr> {
    let replaced = filter.transform_down(|e| {
        Ok(match known.iter().find(|(expr, _)| *expr == e) {
            Some((_, name)) => Transformed::new(Expr::Column(Column::new_unqualified(name)), true, TreeNodeRecursion::Jump),
            None => Transformed::no(e),
        })
    })?;
    Ok(replaced.data)
}

/// Whether the bounds of a part say that no row of it is one that `predicate` keeps.
pub(crate) type Skip = Arc<dyn Fn(&PartMeta) -> bool + Send + Sync>;

/// `predicate` is over the `part_schema` of the stream's present definition.
pub(crate) fn skip(shared: &Shared, session: &dyn Session, predicate: Expr, state: Arc<StreamState>) -> Result<Skip> {
    Ok(match Known::of(shared, session, predicate, &state.def)? {
        Some(known) => Arc::new(move |part| {
            let bounds = known.bounds(vec![part], &state.def, &state);
            known.pruning.prune(&bounds).is_ok_and(|keep| keep == [false])
        }),
        None => Arc::new(|_| false),
    })
}

pub(crate) fn unqualified(filter: Expr) -> Result<Expr> {
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
    computed: &'a [(String, Fingerprint, DataType)],
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

    /// For each part what it keeps of the expression that the column stands for, and the expression's type.
    fn kept(&self, column: &Column) -> Option<(DataType, impl Iterator<Item = Option<&ComputedValues>>)> {
        let (_, index, ty) = self.computed.iter().find(|(name, ..)| *name == column.name)?;
        Some((ty.clone(), self.parts.iter().map(|p| p.computed.iter().find(|c| c.index == *index))))
    }

    fn end(&self, column: &Column, of: impl Fn(&ComputedValues) -> Option<&Bound>) -> Option<ArrayRef> {
        let (ty, kept) = self.kept(column)?;
        let none = ScalarValue::try_from(&ty).ok()?;
        ScalarValue::iter_to_array(kept.map(|c| c.and_then(&of).and_then(|b| scalar(b, &ty)).unwrap_or_else(|| none.clone()))).ok()
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
        self.sns(column, PartMeta::min_sn)
            .or_else(|| self.end(column, |c| c.min.as_ref()))
            .or_else(|| self.values(column, |s| s.min.clone()))
    }
    fn max_values(&self, column: &Column) -> Option<ArrayRef> {
        self.sns(column, PartMeta::max_sn)
            .or_else(|| self.end(column, |c| c.max.as_ref()))
            .or_else(|| self.values(column, |s| s.max.clone()))
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
        if let Some((ty, kept)) = self.kept(column) {
            let values: Vec<ScalarValue> = values.iter().map(|v| v.cast_to(&ty).ok()).collect::<Option<_>>()?;
            // How many rows are NULL is not known, so nothing is said of a part that has no others.
            let lacks = |known: &[Bound]| {
                let known: HashSet<ScalarValue> = known.iter().map(|b| scalar(b, &ty)).collect::<Option<_>>()?;
                (!values.iter().any(|v| known.contains(v))).then_some(false)
            };
            let answers: BooleanArray = kept.map(|c| c.and_then(|c| c.values.as_deref()).and_then(lacks)).collect();
            return (answers.null_count() < answers.len()).then_some(answers);
        }
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
