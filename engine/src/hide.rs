//! Hiding due rows from readers before a job removes them: what `ttl_hide_expired = 1` asks for.
//!
//! Decides from a part's facts alone wherever they prove the answer; else the reader evaluates the rules on the rows. Hides exactly what
//! the removal at the same moment would remove, so a row never comes back (I5). Changes nothing.

use crate::{
    Engine,
    facts::taken_at,
    plan::view::{expired_rows, whole_due},
    read::StreamView,
    stream::{Compiled, CompiledRule},
};
use arrow::array::{BooleanArray, RecordBatch};
use ebb_storage::{Result, Timestamp, ids::ColumnId, part::PartMeta, rules::Action};
use std::{collections::BTreeSet, sync::Arc};

/// What of a part is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hide {
    None,
    All,
    /// Some rows may be: ask [`Hiding::kept`] of the part's rows.
    Evaluate,
}

/// The rules of a stream that hides due rows, as of one moment.
#[derive(Clone)]
pub struct Hiding {
    compiled: Arc<Compiled>,
    now: Timestamp,
}

impl Hiding {
    /// Of what the rules remove at `now`, whatever the stream asks of its readers; `None` where no rule removes.
    pub(crate) fn of(compiled: Arc<Compiled>, now: Timestamp) -> Option<Self> {
        compiled.rules.iter().any(deletes).then_some(Self { compiled, now })
    }

    pub fn of_part(&self, part: &PartMeta) -> Hide {
        hidden_by_rules(part, &self.compiled.rules, self.now)
    }

    /// Columns that [`Self::kept`] needs.
    pub fn columns(&self) -> Vec<ColumnId> {
        let rules = self.compiled.rules.iter().filter(|r| deletes(r));
        let read = rules.flat_map(|r| r.when.columns().iter().chain(r.only.iter().flat_map(|o| o.columns())));
        read.copied().collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// Of rows that have at least these columns under the names and types of today, those to read; `None` where it is all of them.
    pub fn kept(&self, rows: &RecordBatch) -> Option<BooleanArray> {
        let mut kept = vec![true; rows.num_rows()];
        for rule in self.compiled.rules.iter().filter(|r| deletes(r)) {
            for (kept, due) in kept.iter_mut().zip(taken_at(rule, rows, self.now)) {
                *kept &= !due;
            }
        }
        (!kept.iter().all(|k| *k)).then(|| BooleanArray::from(kept))
    }
}

/// What `rules` would remove from a part at `now`, as far as its facts tell.
pub fn hidden_by_rules(part: &PartMeta, rules: &[CompiledRule], now: Timestamp) -> Hide {
    let alive = part.rows - expired_rows(part).min(part.rows);
    let mut hide = Hide::None;
    for rule in rules.iter().filter(|r| deletes(r)) {
        match part.facts_of(rule.rule.fingerprint) {
            Some(facts) if whole_due(facts, alive) <= now => return Hide::All,
            Some(facts) if facts.earliest.is_none_or(|e| e > now) => {}
            // Not measured yet, or some rows are due.
            _ => hide = Hide::Evaluate,
        }
    }
    hide
}

fn deletes(rule: &CompiledRule) -> bool {
    matches!(rule.rule.action, Action::Delete { .. })
}

impl Engine {
    /// How a reader of `view` hides due rows at `now`; `None` where the stream does not ask for it or has no rule that removes, and for
    /// what is read through a tag, a branch or a reader.
    pub fn hiding(&self, view: &StreamView, now: Timestamp) -> Result<Option<Hiding>> {
        let compiled = self.core.compiled(&view.def)?;
        let hides = view.of_main && compiled.settings.hide_expired;
        Ok(Hiding::of(compiled, now).filter(|_| hides))
    }
}
