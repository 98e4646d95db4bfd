//! Facts about rules: how many rows of a part a rule concerns, and when the first and the last of them come due.
//!
//! Exact by construction: every row is asked, or the two that bound all others. A DELETE WHERE rule concerns the rows that its condition selects (NULL is false). An
//! evaluation that fails on a row leaves that row to "never".

use crate::{due_values::due_values, stream::CompiledRule, upgrade::field_id};
use arrow::{
    array::{Array, ArrayRef, AsArray, BooleanArray, Date32Array, Int64Array, RecordBatch},
    compute::cast,
    datatypes::{DataType, Schema},
};
use ebb_storage::{
    Result, Timestamp,
    part::{PartMeta, meta::RuleFacts, stats::Bound},
};
use std::sync::Arc;

/// Facts of one rule, gathered batch by batch.
pub struct Gathering {
    facts: RuleFacts,
    /// The rule changed what was due by then: those rows concern it no more.
    done_until: Option<Timestamp>,
}

impl Gathering {
    /// For rows to which the rules were `applied` at a moment, or not.
    pub fn new(rule: &CompiledRule, applied: Option<Timestamp>) -> Self {
        let facts = RuleFacts { rule: rule.rule.fingerprint, rows: 0, never: 0, earliest: None, latest: None };
        Self { facts, done_until: applied.filter(|_| rule.rule.action.changes_rows()) }
    }

    pub fn add(&mut self, rule: &CompiledRule, rows: &RecordBatch) {
        let Ok(due) = due_of(rule, rows) else {
            // A batch in which one row fails is asked row by row.
            if rows.num_rows() > 1 {
                let half = rows.num_rows() / 2;
                self.add(rule, &rows.slice(0, half));
                self.add(rule, &rows.slice(half, rows.num_rows() - half));
            } else {
                self.facts.never += rows.num_rows() as u64;
            }
            return;
        };
        for concerned in due {
            match concerned {
                Concern::No => {}
                Concern::Never => self.facts.never += 1,
                Concern::At(t) if self.done_until.is_some_and(|until| t <= until) => {}
                Concern::At(t) => {
                    self.facts.rows += 1;
                    self.facts.earliest = Some(self.facts.earliest.map_or(t, |e| e.min(t)));
                    self.facts.latest = Some(self.facts.latest.map_or(t, |l| l.max(t)));
                }
            }
        }
    }

    pub fn finish(self) -> RuleFacts {
        self.facts
    }
}

/// Facts without reading a row: where the rule's time rises with one column whose exact bounds the manifest has, so do its first and
/// last. `None` where that does not tell.
pub fn facts_by_bounds(rule: &CompiledRule, part: &PartMeta, schema: &Schema) -> Option<RuleFacts> {
    let column = rule.when.monotone_in().filter(|c| rule.only.is_none() && rule.when.columns() == [*c])?;
    let stats = part.stats_of(column).filter(|s| s.exact && s.nulls == 0)?;
    let (Some(Bound::Int(min)), Some(Bound::Int(max))) = (&stats.min, &stats.max) else { return None };
    let field = schema.fields().iter().find(|f| field_id(f).is_ok_and(|id| id == column))?;
    // Values between the bounds may be the zero that never comes due.
    if *min <= 0 {
        return None;
    }
    let bounds: ArrayRef = match field.data_type() {
        DataType::Date32 => Arc::new(Date32Array::from(vec![i32::try_from(*min).ok()?, i32::try_from(*max).ok()?])),
        t @ DataType::Timestamp(..) => cast(&Int64Array::from(vec![*min, *max]), t).ok()?,
        _ => return None,
    };
    let rows = RecordBatch::try_new(Arc::new(Schema::new(vec![field.clone()])), vec![bounds]).ok()?;
    match due_values(&rule.when.evaluate(&rows).ok()?).ok()?.as_slice() {
        [Some(first), Some(last)] if first.0 > 0 && first <= last => {
            Some(RuleFacts { rule: rule.rule.fingerprint, rows: part.rows, never: 0, earliest: Some(*first), latest: Some(*last) })
        }
        _ => None,
    }
}

/// What a rule has to do with a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Concern {
    /// Not selected by the rule's condition.
    No,
    Never,
    At(Timestamp),
}

/// Each row's concern.
pub fn due_of(rule: &CompiledRule, rows: &RecordBatch) -> Result<Vec<Concern>> {
    let due = due_values(&rule.when.evaluate(rows)?)?;
    let selected = match &rule.only {
        Some(only) => Some(truths(only.evaluate(rows)?.as_ref())?),
        None => None,
    };
    let concern = |(i, at): (usize, Option<Timestamp>)| match (&selected, at) {
        (Some(s), _) if !s.value(i) => Concern::No,
        (_, None) => Concern::Never,
        (_, Some(t)) => Concern::At(t),
    };
    Ok(due.into_iter().enumerate().map(concern).collect())
}

/// Which rows a rule takes at `cutoff`: removes, folds or changes. Rows on which it cannot be evaluated stay.
pub fn taken_at(rule: &CompiledRule, rows: &RecordBatch, cutoff: Timestamp) -> Vec<bool> {
    match due_of(rule, rows) {
        Ok(due) => due.into_iter().map(|c| matches!(c, Concern::At(t) if t <= cutoff)).collect(),
        Err(_) if rows.num_rows() > 1 => {
            let half = rows.num_rows() / 2;
            let mut all = taken_at(rule, &rows.slice(0, half), cutoff);
            all.extend(taken_at(rule, &rows.slice(half, rows.num_rows() - half), cutoff));
            all
        }
        Err(_) => vec![false; rows.num_rows()],
    }
}

/// NULL is false.
fn truths(values: &dyn Array) -> Result<BooleanArray> {
    let values = values.as_boolean_opt().ok_or_else(|| ebb_storage::Error::invalid("the WHERE of a rule must be true or false"))?;
    Ok(match values.nulls() {
        None => values.clone(),
        Some(valid) => BooleanArray::new(values.values() & valid.inner(), None),
    })
}

/// Facts of all rules over `rows`.
pub fn facts_of(rules: &[CompiledRule], rows: &RecordBatch) -> Vec<RuleFacts> {
    let one = |rule: &CompiledRule| {
        let mut g = Gathering::new(rule, None);
        g.add(rule, rows);
        g.finish()
    };
    rules.iter().map(one).collect()
}
