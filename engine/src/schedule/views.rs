//! The plain values that decisions are made from, taken from manifest, running jobs and stops.

use crate::{
    core::Core,
    folded, history,
    ingest::tail::Tail,
    observe::Explained,
    part_rows::PartRows,
    place,
    plan::{self, MoveWhy, PartView, PartitionView, Pin, PinnedBy, Plan, Relief, RuleView, Scene, Stops, StreamView, TierView},
    schedule::Stop,
    sets::RowSets,
    write::stamped,
};
use ebb_storage::{
    Error, Result, Timestamp,
    ids::{BranchId, ColumnId, PartId, Sn, StreamId},
    lineage::{Seen, Visibility},
    manifest::{StreamState, edit::Timer},
    part::PartMeta,
    refs::{Dropped, Needs, Reader, RefKind, Rounding},
};
use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

pub fn stream_view(core: &Core, state: &StreamState) -> Result<StreamView> {
    let compiled = core.compiled(&state.def)?;
    let rules: Vec<RuleView> = state.def.rules().iter().map(RuleView::of).collect();
    let (busy, mut failures) = core.jobs.marks();
    let mut tried = core.jobs.tried();
    let standing = Standing::of(core, state);
    let mut partitions = Vec::with_capacity(state.partitions.size());
    for (value, partition) in state.partitions.iter() {
        let parts = partition.parts.iter().filter_map(|id| state.parts.get(id)).map(|meta| {
            let failure = failures.remove(&meta.id).map(Box::new);
            let tried = tried.remove(&meta.id).map(Box::new);
            let view = PartView { busy: busy.contains(&meta.id), failure, tried, ..PartView::of(meta, &rules) };
            standing.tell(meta, view)
        });
        let timer = |t| partition.timers.get(&t).copied();
        partitions.push(PartitionView {
            value: value.clone(),
            pruned_at: timer(Timer::Prune),
            recompressed_at: timer(Timer::Recompress),
            parts: parts.collect(),
        });
    }
    Ok(StreamView {
        id: state.def.id,
        policy_version: state.def.policy_version,
        schema_version: state.def.schema_version,
        settings: compiled.settings.clone(),
        rules,
        stops: stops_of(core, state.def.id),
        tiers: tiers_of(core, state),
        pools: core.jobs.counts().pools(&core.server()),
        relief: None,
        partitions,
    })
}

/// How parts stand to the stream's history: what is needed of them, and by whom.
pub struct Standing {
    /// `None` where all that was ever written is main's, and nothing was taken out of it.
    history: Option<History>,
    /// Which records may stand for which.
    rounding: Rounding,
    /// With the moment from which they protect nothing any more, if they read nothing until then.
    readers: Vec<(Arc<Reader>, Timestamp)>,
}

struct History {
    main: Seen,
    needs: Needs,
    dropped: Dropped,
    sets: Arc<RowSets>,
}

impl Standing {
    pub fn of(core: &Core, state: &StreamState) -> Self {
        let live = core.live.read();
        let (id, now) = (state.def.id, core.now());
        let of_main = |p: &Arc<PartMeta>| p.origins.iter().all(|o| o.branch == BranchId::MAIN);
        let removed = |p: &Arc<PartMeta>| !p.deletions.is_empty() || !p.expired.is_empty() || !p.carried.is_empty() || !of_main(p);
        // The common case, and the tail may have many records: nobody reads along, and all that was ever written is main's.
        let layout = live.manifest.stream(id).map(|s| folded::layout(s, &live.tail(id)));
        let none = || Self { history: None, rounding: Rounding::default(), readers: Vec::new() };
        let Some(layout) = layout else { return none() };
        let edited = layout.lineages.size() > 1 || layout.lineages.values().any(|l| l.len() > 1 || l.iter().any(|l| l.from > Sn(0)));
        let plain = layout.refs.is_empty() && !edited && !layout.parts.values().any(removed);
        if plain && live.manifest.readers.values().all(|r| r.stream != id) {
            return Self { rounding: Rounding::of_plain(&layout, &core.leases.cuts(id, now)), ..none() };
        }
        let Some(whole) = history::whole(&live, id) else { return none() };
        let readers = live.manifest.readers.values().filter(|r| r.stream == id && r.protects(&whole, now));
        let readers = readers.map(|r| (r.clone(), r.protects_until(&whole))).collect();
        let needs = history::needs_of(core, &whole);
        let rounding = Rounding::of(&whole, &needs);
        let history =
            (!plain).then(|| History { needs, main: whole.seen(&whole.head()), dropped: Dropped::of(&whole), sets: core.sets.clone() });
        Self { history, rounding, readers }
    }

    /// A part as planning sees it.
    pub fn of_part(&self, meta: &PartMeta, rules: &[RuleView]) -> PartView {
        self.tell(meta, PartView::of(meta, rules))
    }

    fn tell(&self, meta: &PartMeta, view: PartView) -> PartView {
        let view = PartView { forgets: plan::view::forgetting_pays(meta) && self.rounding.for_all(meta).is_some(), ..view };
        // The last to let go.
        let reader = self.readers.iter().filter(|(r, _)| meta.max_sn() > r.sn).max_by_key(|(_, until)| *until);
        let reader = reader.map(|(r, until)| Box::new(Pin { by: PinnedBy::Reader, name: r.name.clone(), until: *until }));
        let Some(History { main, needs, dropped, sets }) = &self.history else { return PartView { pin: reader, ..view } };
        let origins = || meta.origins.iter().map(|o| (o.branch, o.sns));
        let seen = main.of_rows(origins());
        let of_main = origins().any(|(b, _)| b == BranchId::MAIN);
        // What was deleted and has expired is hidden once.
        let hides_all = || PartRows::of(sets, meta, main).is_ok_and(|rows| rows.seen == 0);
        let removed = !meta.deletions.is_empty() || !meta.expired.is_empty();
        let family = match (&seen, of_main) {
            (Visibility::All, _) if !(removed && hides_all()) => 0,
            (_, true) => 1,
            _ => origins().map(|(b, _)| b.0).max().unwrap_or(0).saturating_add(1),
        };
        let read = |id: &ColumnId| dropped.read_of(meta).contains(id);
        let reclaimable = needs.unneeded_rows(meta) > 0 || !meta.carried.iter().all(read);
        let by_ref = || {
            let p = needs.pinned_by(meta)?;
            let by = if p.kind == RefKind::Tag { PinnedBy::Tag } else { PinnedBy::Branch };
            Some(Box::new(Pin { by, name: p.name.clone(), until: Timestamp::MAX }))
        };
        let view = PartView { family, reclaimable, unneeded: needs.part_is_dead(meta), pin: reader.or_else(by_ref), ..view };
        match of_main || seen != Visibility::None {
            true => view,
            false => view.without_rules(),
        }
    }
}

/// What leaves disks on which too little is free, over all streams; `None` where there is enough of all.
pub fn relief(core: &Core, now: Timestamp) -> Option<Arc<Relief>> {
    let manifest = core.live.read().manifest.clone();
    let mut pressed = Vec::new();
    for state in manifest.streams() {
        let moves = manifest.policy_of(&state.def).is_ok_and(|p| place::move_factor(&p) > 0.0);
        if !moves {
            continue;
        }
        let tiers = tiers_of(core, state);
        if tiers.volumes.iter().flat_map(|v| &v.disks).any(|d| tiers.short_of(d.id).is_some()) {
            // One that cannot be looked at gives nothing, and says so where it is planned.
            let view = stream_view(core, state);
            pressed.extend(view.iter().flat_map(|v| plan::round::pressed(v, now)));
        }
    }
    (!pressed.is_empty()).then(|| Arc::new(Relief::of(pressed)))
}

/// The stream's policy with the room that running moves leave.
pub fn tiers_of(core: &Core, state: &StreamState) -> Arc<TierView> {
    let manifest = core.live.read().manifest.clone();
    let stopped = |policy: &str, volume: &str| core.volume_stops.lock().contains(&(policy.to_owned(), volume.to_owned()));
    let mut tiers = TierView::of(&manifest, &state.def, &core.disks, stopped);
    for (disk, bytes) in core.jobs.leaving() {
        Arc::make_mut(&mut tiers).reckon(disk, 0, bytes);
    }
    tiers
}

pub fn stops_of(core: &Core, stream: StreamId) -> Stops {
    let stops = core.stops.lock();
    let on = |what| stops.contains(&(what, None)) || stops.contains(&(what, Some(stream)));
    Stops { merges: on(Stop::Merges), ttl_merges: on(Stop::TtlMerges), moves: on(Stop::Moves) }
}

pub fn explain(core: &Core, stream: StreamId, at: Timestamp) -> Result<Vec<Explained>> {
    let live = core.live.read();
    let state = live.manifest.stream(stream).cloned().ok_or_else(|| core.is_gone(stream))?;
    let mut view = stream_view(core, &state)?;
    let staged = add_staged(&mut view, &live.tail(stream), &Standing::of(core, &state));
    let text = |t: String| (!t.is_empty()).then_some(t);
    let mut lines = Vec::new();
    view.relief = relief(core, at);
    let planned = plan::plan(&view, at).plans;
    let leaving = planned.iter().filter(|p| matches!(p, Plan::Move { why: MoveWhy::Pressure, .. })).flat_map(|p| p.parts());
    let leaving: HashSet<PartId> = leaving.copied().collect();
    for partition in &view.partitions {
        let scene = Scene::new(&view, partition, at);
        for part in &partition.parts {
            let meta = state
                .parts
                .get(&part.id)
                .or_else(|| staged.get(&part.id))
                .ok_or_else(|| Error::internal("a part of a view is not in its state"))?;
            for row in plan::explain::explain(meta, part, &scene, leaving.contains(&part.id)) {
                lines.push(Explained {
                    part: row.part,
                    rule: row.rule,
                    action: row.action,
                    due_at: row.due_at,
                    state: row.state.to_string(),
                    reason: row.reason,
                    blocked_by: text(row.blocked_by),
                    since: row.since,
                    unblock_with: text(row.unblock_with),
                    next_attempt_at: row.next_attempt_at,
                    rows: row.rows,
                    bytes: row.bytes,
                });
            }
        }
    }
    Ok(lines)
}

/// Parts that records of the tail name: they are read already, and their rules are known.
fn add_staged(view: &mut StreamView, tail: &Tail, standing: &Standing) -> HashMap<PartId, Arc<PartMeta>> {
    let mut staged = HashMap::new();
    for (sn, branch, meta) in tail.staged().iter().flat_map(|(sn, branch, parts)| parts.iter().map(|p| (*sn, *branch, p))) {
        let meta = Arc::new(stamped(meta, sn, branch));
        let part = standing.of_part(&meta, &view.rules);
        match view.partitions.iter_mut().find(|p| p.value == meta.partition) {
            Some(partition) => partition.parts.push(part),
            None => view.partitions.push(PartitionView {
                value: meta.partition.clone(),
                pruned_at: None,
                recompressed_at: None,
                parts: vec![part],
            }),
        }
        staged.insert(meta.id, meta);
    }
    staged
}
