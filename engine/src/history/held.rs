//! What refs there are, and what each of them costs: the bytes that nothing else needs.

use crate::{Engine, core::Core, read::ReadView, settings::StreamSettings};
use ebb_storage::{
    Timestamp,
    ids::{BranchId, Sn, StreamId},
    lineage::Visibility,
    manifest::StreamState,
    part::PartMeta,
    refs::{self, MAIN, Needs, Pinning, Reader, RefKind, expiry},
};
use std::sync::Arc;

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
        let max_age = StreamSettings::of(&state.def, &self.core.server()).keep.max_ref_age_ms;
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
            held_bytes: held(state.parts.values(), &needs, &needs.without_main()),
        };
        // What main's head sees whole, it alone is reason enough for.
        let seen = state.seen(&state.head());
        let plain = |p: &PartMeta| {
            let all = seen.of_rows(p.origins.iter().map(|o| (o.branch, o.sns))) == Visibility::All;
            all && p.deletions.is_empty() && p.expired.is_empty()
        };
        let held_apart: Vec<&Arc<PartMeta>> = state.parts.values().filter(|p| !plain(p)).collect();
        let kept = after_expiry(&self.core, &state, now);
        let needs = super::needs_of(&self.core, &kept);
        let alone = |name: &str| {
            if held_apart.is_empty() {
                return 0;
            }
            let mut without = kept.clone();
            without.refs.remove_mut(name);
            let without = super::needs_of(&self.core, &after_expiry(&self.core, &without, now));
            held(held_apart.iter().copied(), &needs, &without)
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
            held_bytes: alone(&r.name),
        });
        std::iter::once(main).chain(named).collect()
    }
}

/// As the next expiry leaves it.
fn after_expiry(core: &Core, state: &StreamState, now: Timestamp) -> StreamState {
    let mut state = state.clone();
    let keep = StreamSettings::of(&state.def, &core.server()).keep;
    let manifest = core.live.read().manifest.clone();
    let readers: Vec<&Reader> = manifest.readers.values().filter(|r| r.stream == state.def.id).map(|r| r.as_ref()).collect();
    let leased: Vec<Sn> = core.leases.cuts(state.def.id, now).iter().map(|c| c.sn).collect();
    let due = expiry(&state, &keep, &refs::Overrides::default(), &Pinning { readers: &readers, leased: &leased }, now);
    due.drop_refs.iter().for_each(|name| _ = state.refs.remove_mut(name));
    due.forget.iter().for_each(|range| state.readable.remove(*range));
    state
}

fn held<'a>(parts: impl Iterator<Item = &'a Arc<PartMeta>>, needs: &Needs, without: &Needs) -> u64 {
    let of = |part: &PartMeta| {
        let rows = without.unneeded_rows(part).saturating_sub(needs.unneeded_rows(part));
        u128::from(part.placement.bytes) * u128::from(rows) / u128::from(part.rows.max(1))
    };
    let bytes: u128 = parts.map(|p| of(p)).sum();
    u64::try_from(bytes).unwrap_or(u64::MAX)
}
