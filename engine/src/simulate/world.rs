//! What definitions say of the stream that is simulated: compiled rules, and the tiers of its storage policy, empty.

use super::{options::SimOptions, sizes, slice::Effect};
use crate::{
    Engine,
    expr::ExprCompiler,
    place,
    plan::{DiskView, RuleView, TierView},
    settings::ServerSettings,
    stream::Compiled,
};
use ebb_storage::{Result, disk::DiskDef, ids::StreamId, manifest::Manifest, stream_def::StreamDef};
use std::sync::Arc;

pub struct World {
    pub compiled: Arc<Compiled>,
    pub(super) compiler: Arc<dyn ExprCompiler>,
    pub(super) rules: Vec<RuleView>,
    /// With disks as large as they were declared; the others have no end.
    pub(super) tiers: TierView,
}

impl World {
    /// # Errors
    /// Where an expression of `def` does not compile, or its storage policy is not there.
    pub fn new(def: &Arc<StreamDef>, manifest: &Manifest, compiler: Arc<dyn ExprCompiler>) -> Result<Self> {
        let compiled = Arc::new(Compiled::new(def, &ServerSettings::of(manifest), compiler.as_ref())?);
        let policy = manifest.policy_of(def)?;
        let disks = |names: &[String]| {
            let known = names.iter().filter_map(|name| manifest.disk_id(name).map(|id| (id, name)));
            known.map(|(id, name)| manifest.disks.get(&id).map_or_else(|| DiskView::unlimited(id, name), |d| declared(d))).collect()
        };
        let volumes = policy.volumes.iter().map(|v| place::volume_over(v, disks(&v.disks), false)).collect();
        let tiers = TierView { policy: policy.name.clone(), version: policy.version, volumes, move_factor: place::move_factor(&policy) };
        Ok(Self { rules: def.rules().iter().map(RuleView::of).collect(), compiled, compiler, tiers })
    }

    pub(super) fn def(&self) -> &Arc<StreamDef> {
        &self.compiled.def
    }

    /// Of each rule what it does to rows.
    pub(super) fn effects(&self, share: f64) -> Vec<Option<Effect>> {
        self.rules.iter().map(|r| Effect::of(&r.kind, share)).collect()
    }

    pub(super) fn row_bytes(&self, options: &SimOptions) -> f64 {
        options.row_bytes.unwrap_or_else(|| sizes::row_bytes(self.def()))
    }
}

/// An empty disk: what it was said to hold, not what this machine has.
fn declared(def: &DiskDef) -> DiskView {
    let view = DiskView::unlimited(def.id, &def.name);
    let Some(capacity) = def.capacity_bytes else { return view };
    let usable = (u128::from(capacity) * u128::from(def.max_usage_pct.min(100)) / 100) as u64;
    DiskView { total: usable, free: usable, kept_back: capacity - usable, ..view }
}

impl Engine {
    /// A stream as it is defined now, to be simulated from empty.
    ///
    /// # Errors
    /// `NotFound` without the stream.
    pub fn world(&self, stream: StreamId) -> Result<World> {
        let manifest = self.manifest();
        let def = self.core.stream(stream)?.def.clone();
        World::new(&def, &manifest, self.core.options.compiler.clone())
    }
}
