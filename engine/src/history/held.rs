//! What refs there are, and what each of them costs: the bytes that nothing else needs.

use crate::{Engine, read::ReadView};
use ebb_storage::{
    Timestamp,
    ids::{BranchId, Sn, StreamId},
    manifest::StreamState,
    refs::{Needs, RefKind, resolve::MAIN},
};

/// A line of `refs('s')`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefInfo {
    pub name: String,
    pub kind: RefKind,
    /// Of a branch its head; 0 where nothing was written.
    pub sn: Sn,
    /// Of main the stream's.
    pub created_at: Timestamp,
    /// What the ref itself says; of main nothing.
    pub max_ref_age_ms: Option<i64>,
    pub min_snapshots_to_keep: Option<u64>,
    pub max_snapshot_age_ms: Option<i64>,
    /// Bytes of rows that only this ref needs, in proportion to the rows of their parts.
    pub held_bytes: u64,
}

impl Engine {
    /// Main first, then by name. Refs whose age is over are not among them.
    pub fn refs(&self, view: &ReadView, stream: StreamId) -> Vec<RefInfo> {
        let Some(state) = view.state(stream) else { return Vec::new() };
        let max_age = crate::settings::StreamSettings::of(&state.def, &self.core.server()).keep.max_ref_age_ms;
        let now = self.core.now();
        let needs = super::needs_of(&self.core, &state);
        let main = RefInfo {
            name: MAIN.to_owned(),
            kind: RefKind::Branch,
            sn: state.head_of(BranchId::MAIN),
            created_at: state.def.created_at,
            max_ref_age_ms: None,
            min_snapshots_to_keep: None,
            max_snapshot_age_ms: None,
            held_bytes: held(&state, &needs, None),
        };
        let live = state.refs.values().filter(|r| !r.is_over(max_age, now));
        let named = live.map(|r| RefInfo {
            name: r.name.clone(),
            kind: r.kind,
            sn: if r.kind == RefKind::Tag { r.cut.sn } else { state.head_of(r.cut.branch) },
            created_at: r.created_at,
            max_ref_age_ms: r.max_ref_age_ms,
            min_snapshots_to_keep: r.min_snapshots,
            max_snapshot_age_ms: r.max_snapshot_age_ms,
            held_bytes: held(&state, &needs, Some(&r.name)),
        });
        std::iter::once(main).chain(named).collect()
    }
}

fn held(state: &StreamState, needs: &Needs, name: Option<&str>) -> u64 {
    let without = needs.without(name);
    let of = |part: &ebb_storage::part::PartMeta| {
        let rows = without.unneeded_rows(part).saturating_sub(needs.unneeded_rows(part));
        u128::from(part.placement.bytes) * u128::from(rows) / u128::from(part.rows.max(1))
    };
    let bytes: u128 = state.parts.values().map(|p| of(p)).sum();
    u64::try_from(bytes).unwrap_or(u64::MAX)
}
