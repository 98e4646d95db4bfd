//! A stream's state with what its tail says beside rows: what branches see, which rows of parts are gone, which records there are.
//!
//! As the next flush will tell the manifest; so a reader need not know whether a record has been flushed. Costs nothing where the tail
//! holds only rows.

use crate::ingest::tail::Tail;
use ebb_storage::{
    ids::{BranchId, CommitNo, PartId},
    lineage::SnRange,
    manifest::StreamState,
    part::meta::Deletion,
};
use std::sync::Arc;

/// With the tail's lineages, deletions and heads: what reading rows needs.
pub fn layout(state: &Arc<StreamState>, tail: &Tail) -> Arc<StreamState> {
    if tail.lineages().is_empty() && tail.deletions().is_empty() && tail.heads().iter().all(|(b, sn)| state.heads.get(b) == Some(sn)) {
        return state.clone();
    }
    let mut folded = state.as_ref().clone();
    for (branch, lineage) in tail.lineages() {
        let mut all = folded.lineages.get(branch).map(|l| l.as_ref().clone()).unwrap_or_default();
        all.push(lineage.clone());
        folded.lineages.insert_mut(*branch, Arc::new(all));
    }
    if tail.lineages().iter().any(|(branch, _)| *branch != BranchId::MAIN) {
        for record in tail.records().filter(|r| r.moves_horizon()) {
            folded.set_horizon(record.branch, CommitNo(u64::MAX));
        }
    }
    for deletion in tail.deletions() {
        for target in &deletion.what.targets {
            let Some(part) = folded.parts.get(&target.part) else { continue };
            let mut part = part.as_ref().clone();
            part.deletions.push(Deletion { branch: deletion.branch, sn: deletion.sn, rows: target.rows.clone() });
            folded.parts.insert_mut(target.part, Arc::new(part));
        }
    }
    for (branch, sn) in tail.heads() {
        folded.heads.insert_mut(*branch, *sn);
    }
    Arc::new(folded)
}

/// What records of the tail delete of a part.
pub fn deletions_of(tail: &Tail, part: PartId) -> impl Iterator<Item = Deletion> {
    tail.deletions().iter().flat_map(move |d| {
        let of_part = d.what.targets.iter().filter(move |t| t.part == part);
        of_part.map(|t| Deletion { branch: d.branch, sn: d.sn, rows: t.rows.clone() })
    })
}

/// With the tail's records too: what asking for the history needs.
pub fn whole(state: &Arc<StreamState>, tail: &Tail) -> Arc<StreamState> {
    if tail.is_empty() {
        return state.clone();
    }
    let mut folded = layout(state, tail).as_ref().clone();
    for record in tail.records() {
        folded.record_time = folded.record_time.max(record.time);
        folded.records.insert_mut(record.sn, Arc::new(record.clone()));
    }
    folded.readable.insert(SnRange { after: state.applied_sn, to: tail.head() });
    folded.applied_sn = tail.head();
    Arc::new(folded)
}
