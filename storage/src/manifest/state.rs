//! The manifest as a value: cloning costs nothing, changing costs the logarithm of its size.

use crate::{
    clock::Timestamp,
    disk::{DiskDef, StoragePolicy, policy},
    ids::{BranchId, CommitNo, DiskId, Epoch, Generation, Lsn, PartId, SchemaVersion, Sn, StreamId},
    lineage::{Cut, Lineage, Readable, Seen},
    manifest::{
        edit::{LifecycleLogRow, PartLogRow, RecordInfo, Timer},
        log_rows::LogRows,
    },
    part::PartMeta,
    refs::{Gap, Reader, Ref, RefKind},
    stream_def::{SYSTEM_DATABASE, SettingValue, StreamDef},
};
use rpds::{RedBlackTreeMapSync, RedBlackTreeSetSync};
use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

/// Lines of a stream's record list; older appends are summed up beyond it.
pub const RECORD_LINES_MAX: usize = 10_000;

#[derive(Debug, Clone)]
pub struct Manifest {
    pub no: CommitNo,
    pub epoch: Epoch,
    /// Of the newest commit.
    pub time: Timestamp,
    pub databases: RedBlackTreeSetSync<String>,
    pub(super) streams: RedBlackTreeMapSync<StreamId, Arc<StreamState>>,
    pub(super) names: RedBlackTreeMapSync<(String, String), StreamId>,
    pub next_stream: StreamId,
    pub server_settings: RedBlackTreeMapSync<String, SettingValue>,
    /// The newest opening known to have begun its log file: every commit but the one that takes the epoch comes after that.
    pub log_epoch: Epoch,
    /// Records up to here are in parts or of dropped streams: the log may begin right behind, and not later.
    pub applied_lsn: Lsn,
    /// Objects that are no longer listed and not yet deleted.
    pub graveyard: RedBlackTreeMapSync<(StreamId, PartId, Generation), Arc<Grave>>,
    /// All but the data directory, which is [`DiskId::DEFAULT`].
    pub disks: RedBlackTreeMapSync<DiskId, Arc<DiskDef>>,
    pub next_disk: DiskId,
    /// Those that people made; see [`Manifest::policy`].
    pub policies: RedBlackTreeMapSync<String, Arc<StoragePolicy>>,
    /// By name, which is one's own in the whole database.
    pub readers: RedBlackTreeMapSync<String, Arc<Reader>>,
    /// Those that are not in their internal streams yet.
    pub part_log: LogRows<PartLogRow>,
    pub lifecycle_log: LogRows<LifecycleLogRow>,
}

/// An object that vacuum will delete once nothing pins it.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Grave {
    pub removed_at: Timestamp,
    /// As it was when it was last listed: names its disk, generation and what lies beside it.
    pub part: PartMeta,
}

#[derive(Debug, Clone)]
pub struct StreamState {
    pub def: Arc<StreamDef>,
    /// Every version of the definition that a record or part may have been written under.
    pub schemas: RedBlackTreeMapSync<SchemaVersion, Arc<StreamDef>>,
    /// The log is folded up to here.
    pub applied_sn: Sn,
    /// Time of the newest applied record.
    pub record_time: Timestamp,
    pub parts: RedBlackTreeMapSync<PartId, Arc<PartMeta>>,
    pub partitions: RedBlackTreeMapSync<Arc<str>, Arc<PartitionState>>,
    /// Per branch, rising by the sn they are in force from.
    pub lineages: RedBlackTreeMapSync<BranchId, Arc<Vec<Lineage>>>,
    pub readable: Readable,
    pub records: RedBlackTreeMapSync<Sn, Arc<RecordInfo>>,
    /// By line: what it remembers of neighbours that are forgotten.
    pub gaps: RedBlackTreeMapSync<Sn, Gap>,
    /// The newest record of each branch; see [`StreamState::head_of`].
    pub heads: RedBlackTreeMapSync<BranchId, Sn>,
    pub refs: RedBlackTreeMapSync<String, Arc<Ref>>,
    /// Grows with every change of a ref: removals stand on it (I13).
    pub refs_version: u64,
    /// Ids of branches are never reused (I2).
    pub next_branch: BranchId,
}

/// What is known of a partition that has parts; it goes with its last part.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PartitionState {
    pub parts: RedBlackTreeSetSync<PartId>,
    pub timers: BTreeMap<Timer, Timestamp>,
}

impl Manifest {
    /// Of a new database: the databases `default` and `system`, no streams.
    pub fn empty() -> Self {
        Self {
            no: CommitNo(0),
            epoch: Epoch(0),
            time: Timestamp::MIN,
            databases: ["default", SYSTEM_DATABASE].into_iter().map(str::to_owned).collect(),
            streams: RedBlackTreeMapSync::new_sync(),
            names: RedBlackTreeMapSync::new_sync(),
            next_stream: StreamId(1),
            server_settings: RedBlackTreeMapSync::new_sync(),
            log_epoch: Epoch(0),
            applied_lsn: Lsn(0),
            graveyard: RedBlackTreeMapSync::new_sync(),
            disks: RedBlackTreeMapSync::new_sync(),
            next_disk: DiskId(1),
            policies: RedBlackTreeMapSync::new_sync(),
            readers: RedBlackTreeMapSync::new_sync(),
            part_log: LogRows::default(),
            lifecycle_log: LogRows::default(),
        }
    }

    /// All of them, those that Ebb keeps for itself too.
    pub fn streams(&self) -> impl Iterator<Item = &Arc<StreamState>> {
        self.streams.values()
    }
    /// Those that people made.
    pub fn user_streams(&self) -> impl Iterator<Item = &Arc<StreamState>> {
        self.streams().filter(|s| !s.def.is_internal())
    }
    pub fn stream(&self, id: StreamId) -> Option<&Arc<StreamState>> {
        self.streams.get(&id)
    }
    /// Generations of a part that were removed and are not deleted yet.
    pub fn graves_of(&self, stream: StreamId, part: PartId) -> impl Iterator<Item = (&(StreamId, PartId, Generation), &Arc<Grave>)> {
        self.graveyard.range((stream, part, Generation(0))..=(stream, part, Generation(u64::MAX)))
    }
    pub fn stream_named(&self, database: &str, name: &str) -> Option<&Arc<StreamState>> {
        // The map is keyed by owned pairs; a lookup by name is rare enough to build one.
        self.names.get(&(database.to_owned(), name.to_owned())).and_then(|id| self.stream(*id))
    }

    /// But for the data directory's.
    pub fn disk_named(&self, name: &str) -> Option<&Arc<DiskDef>> {
        self.disks.values().find(|d| d.name == name)
    }
    /// The id behind the name that policies use, the data directory's too.
    pub fn disk_id(&self, name: &str) -> Option<DiskId> {
        match name == policy::DEFAULT {
            true => Some(DiskId::DEFAULT),
            false => self.disk_named(name).map(|d| d.id),
        }
    }
    pub fn disk_name(&self, id: DiskId) -> Option<&str> {
        match id == DiskId::DEFAULT {
            true => Some(policy::DEFAULT),
            false => self.disks.get(&id).map(|d| d.name.as_str()),
        }
    }

    /// `default` is always there: as built in, until somebody replaces it.
    pub fn policy(&self, name: &str) -> Option<Arc<StoragePolicy>> {
        let built_in = || (name == policy::DEFAULT).then(|| Arc::new(StoragePolicy::default_policy()));
        self.policies.get(name).cloned().or_else(built_in)
    }
    /// The name of a stream's policy.
    pub fn policy_name(def: &StreamDef) -> &str {
        match def.settings.get("storage_policy") {
            Some(SettingValue::Text(name)) => name,
            _ => policy::DEFAULT,
        }
    }
    /// The policy of a stream. Ebb's own streams stay in the data directory, whatever `default` becomes.
    ///
    /// # Errors
    /// `NotFound` where it names one that is not there.
    pub fn policy_of(&self, def: &StreamDef) -> crate::Result<Arc<StoragePolicy>> {
        if def.is_internal() {
            return Ok(Arc::new(StoragePolicy::default_policy()));
        }
        let name = Self::policy_name(def);
        self.policy(name).ok_or_else(|| crate::Error::not_found(format!("storage policy '{name}' of {} does not exist", def.full_name())))
    }
}

impl StreamState {
    pub fn new(def: StreamDef) -> Self {
        let def = Arc::new(def);
        Self {
            schemas: RedBlackTreeMapSync::new_sync().insert(def.schema_version, def.clone()),
            applied_sn: Sn(0),
            record_time: Timestamp::MIN,
            parts: RedBlackTreeMapSync::new_sync(),
            partitions: RedBlackTreeMapSync::new_sync(),
            lineages: RedBlackTreeMapSync::new_sync().insert(BranchId::MAIN, Arc::new(vec![Lineage::whole(BranchId::MAIN)])),
            readable: Readable::default(),
            records: RedBlackTreeMapSync::new_sync(),
            gaps: RedBlackTreeMapSync::new_sync(),
            heads: RedBlackTreeMapSync::new_sync(),
            refs: RedBlackTreeMapSync::new_sync(),
            refs_version: 0,
            next_branch: BranchId::MAIN.next(),
            def,
        }
    }

    /// The definition under which something of `version` was written; today's where that version is gone.
    pub fn schema(&self, version: SchemaVersion) -> &Arc<StreamDef> {
        self.schemas.get(&version).unwrap_or(&self.def)
    }

    /// What `branch` sees at a cut at `at`; `None` for a branch that does not exist.
    pub fn lineage(&self, branch: BranchId, at: Sn) -> Option<&Lineage> {
        let all = self.lineages.get(&branch)?;
        let after = all.partition_point(|l| l.from <= at);
        all.get(after.checked_sub(1)?)
    }

    /// The newest record of a branch; of one without records the record that it was cut at, 0 for main.
    pub fn head_of(&self, branch: BranchId) -> Sn {
        let fork = || self.branch(branch).map(|r| r.fork).unwrap_or_default();
        self.heads.get(&branch).copied().unwrap_or_else(fork)
    }

    /// The ref of a branch; main has none.
    pub fn branch(&self, id: BranchId) -> Option<&Arc<Ref>> {
        self.refs.values().find(|r| r.kind == RefKind::Branch && r.cut.branch == id)
    }

    /// The refs of all branches, for who asks of many: each by itself is looked for among all refs.
    pub fn branches(&self) -> HashMap<BranchId, &Arc<Ref>> {
        self.refs.values().filter(|r| r.kind == RefKind::Branch).map(|r| (r.cut.branch, r)).collect()
    }

    /// What main's head sees.
    pub fn head(&self) -> Cut {
        Cut { branch: BranchId::MAIN, sn: Sn(u64::MAX), horizon: CommitNo(u64::MAX) }
    }

    /// What a cut sees; nothing on a branch that does not exist.
    pub fn seen(&self, cut: &Cut) -> Seen {
        match self.lineage(cut.branch, cut.sn) {
            Some(lineage) => Seen::of(lineage, cut),
            None => Seen { sets: Vec::new(), horizon: cut.horizon },
        }
    }

    /// Main's head saw so much before, and may see other rows of branches now: when rules come due for parts that have such is to be
    /// counted anew.
    pub(super) fn forget_facts_of_others(&mut self, before: &Seen) {
        let now = self.seen(&self.head());
        let of_others =
            |p: &PartMeta| p.origins.iter().filter(|o| o.branch != BranchId::MAIN).map(|o| (o.branch, o.sns)).collect::<Vec<_>>();
        let changed = |p: &&Arc<PartMeta>| {
            let others = of_others(p);
            !p.facts.is_empty() && before.sns_of(others.iter().copied()) != now.sns_of(others.into_iter())
        };
        let changed: Vec<Arc<PartMeta>> = self.parts.values().filter(changed).cloned().collect();
        for part in changed {
            self.parts.insert_mut(part.id, Arc::new(PartMeta { facts: Vec::new(), ..part.as_ref().clone() }));
        }
    }

    /// The start of main's unbroken readable run; `None` while nothing was applied.
    pub fn history_from(&self) -> Option<Sn> {
        self.oldest_available().map(|(sn, _)| sn)
    }
}
