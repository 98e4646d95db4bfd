//! What a commit makes of a manifest. Pure: no clock, no IO; either the whole commit applies or nothing does.

use crate::{
    Error, Result,
    disk::{DiskDef, StoragePolicy},
    ids::{BranchId, ColumnId, CommitNo, DiskId, PartId, Sn, StreamId},
    lineage::SnRange,
    manifest::{
        edit::{Commit, Edit, RecordInfo},
        runs::Runs,
        state::{Grave, Manifest, RECORD_LINES_MAX, StreamState},
    },
    part::{PartMeta, meta::Origin, stats::Bound},
    refs::Gap,
    stream_def::{SettingValue, StreamDef},
    verb::Verb,
};
use std::{collections::BTreeMap, sync::Arc};

/// So many of the lines that may be summed up are summed up at a time, at the least.
const COALESCED_ONE_IN: usize = 4;

impl Manifest {
    /// # Errors
    /// `Conflict` where the commit is not the next one or does not fit, `Fenced` where it is of an older epoch.
    pub fn apply(&self, commit: &Commit) -> Result<Self> {
        if commit.no != self.no.next() {
            return Err(Error::conflict(format!("commit {} does not follow commit {}", commit.no, self.no)));
        }
        if commit.epoch < self.epoch {
            return Err(Error::fenced(format!("commit {} is of epoch {}, but epoch {} has begun", commit.no, commit.epoch, self.epoch)));
        }
        if commit.time < self.time {
            return Err(Error::conflict(format!("commit {} is older than the commit before it (I3)", commit.no)));
        }
        let mut next = self.clone();
        next.no = commit.no;
        next.time = commit.time;
        if !commit.edits.iter().any(|e| matches!(e, Edit::TakeEpoch(_))) {
            next.log_epoch = commit.epoch;
        }
        for edit in &commit.edits {
            next.edit(edit)?;
        }
        Ok(next)
    }

    fn edit(&mut self, edit: &Edit) -> Result<()> {
        match edit {
            Edit::TakeEpoch(epoch) => self.epoch = *epoch,
            Edit::CreateDatabase { name } => self.databases.insert_mut(name.clone()),
            Edit::DropDatabase { name } => {
                self.databases.remove_mut(name);
            }
            Edit::CreateStream(def) => self.create_stream(def)?,
            Edit::AlterStream(def) => self.alter_stream(def)?,
            Edit::DropStream(id) => self.drop_stream(*id)?,
            Edit::Apply { stream, sn, records } => {
                let no = self.no;
                self.with_stream(*stream, |s| s.fold(*sn, records, no))?;
            }
            Edit::LogApplied { lsn } => self.applied_lsn = self.applied_lsn.max(*lsn),
            Edit::SetLineage { stream, branch, lineage } => self.with_stream(*stream, |s| {
                let before = s.seen(&s.head());
                let mut all = s.lineages.get(branch).map(|l| l.as_ref().clone()).unwrap_or_default();
                all.retain(|l| l.from < lineage.from);
                all.push(lineage.clone());
                s.lineages.insert_mut(*branch, Arc::new(all));
                if *branch == BranchId::MAIN {
                    s.forget_facts_of_others(&before);
                }
                Ok(())
            })?,
            Edit::SetRef { stream, r, lineage } => self.with_stream(*stream, |s| s.set_ref(r, lineage.as_ref()))?,
            Edit::DropRef { stream, name } => self.with_stream(*stream, |s| s.drop_ref(name))?,
            Edit::Forget { stream, sns } => self.with_stream(*stream, |s| {
                s.forget(sns);
                Ok(())
            })?,
            Edit::SetReader(reader) => self.readers.insert_mut(reader.name.clone(), Arc::new(reader.as_ref().clone())),
            Edit::DropReader { name } => {
                if !self.readers.remove_mut(name) {
                    return Err(Error::not_found(format!("reader '{name}' does not exist")));
                }
            }
            Edit::AddPart(part) => self.add_part(part)?,
            Edit::RemovePart { stream, part, .. } => {
                let removed = self.take_part(*stream, *part)?;
                self.bury(removed);
            }
            Edit::Place { stream, part, placement } => {
                let old = self.part(*stream, *part)?;
                if placement.generation <= old.placement.generation {
                    return Err(Error::conflict(format!("part {} has a generation {} already (I2)", old.name, placement.generation)));
                }
                self.is_known(placement.disk)?;
                let modified_at = if placement.checksum == old.placement.checksum { old.modified_at } else { self.time };
                self.bury(old);
                self.update_part(*stream, *part, |p| (p.placement, p.modified_at) = (placement.clone(), modified_at))?;
            }
            Edit::Rounded { stream, part, sn, sn_bytes } => self.update_part(*stream, *part, |p| {
                let sns = SnRange { after: Sn(sn.0.saturating_sub(1)), to: *sn };
                p.origins = vec![Origin { branch: BranchId::MAIN, sns, rows: p.rows }];
                p.sn_bytes = *sn_bytes;
                let bound = i64::try_from(sn.0).ok().map(Bound::Int);
                for stats in p.stats.iter_mut().filter(|s| s.column == ColumnId::TP_SN) {
                    (stats.min, stats.max) = (bound.clone(), bound.clone());
                }
            })?,
            Edit::Measured { stream, part, facts } => self.update_part(*stream, *part, |p| {
                p.facts.retain(|old| facts.iter().all(|new| new.rule != old.rule));
                p.facts.extend(facts.iter().cloned());
            })?,
            Edit::Marked { stream, part, marker } => self.update_part(*stream, *part, |p| p.retention_marker = Some(*marker))?,
            Edit::AddDeletion { stream, part, deletion } => self.update_part(*stream, *part, |p| p.deletions.push(deletion.clone()))?,
            Edit::AddExpired { stream, part, expired } => self.update_part(*stream, *part, |p| p.expired.push(expired.clone()))?,
            Edit::TimerArmed { stream, partition, timer, at } => self.with_stream(*stream, |s| {
                // A partition whose last part went has no timers: its next part is its first.
                if let Some(state) = s.partitions.get(partition.as_str()) {
                    let mut state = state.as_ref().clone();
                    state.timers.insert(*timer, *at);
                    s.partitions.insert_mut(Arc::from(partition.as_str()), Arc::new(state));
                }
                Ok(())
            })?,
            Edit::ServerSetting { name, value } => match value {
                Some(v) => self.server_settings.insert_mut(name.clone(), v.clone()),
                None => {
                    self.server_settings.remove_mut(name);
                }
            },
            Edit::CreateDisk(def) => self.set_disk(def)?,
            Edit::DropDisk(id) => self.drop_disk(*id)?,
            Edit::SetPolicy(policy) => self.set_policy(policy)?,
            Edit::DropPolicy { name } => {
                if !self.policies.remove_mut(name) {
                    return Err(Error::not_found(format!("storage policy '{name}' does not exist")));
                }
            }
            Edit::PartLog(row) => self.part_log.push(row.as_ref().clone()),
            Edit::LifecycleLog(row) => self.lifecycle_log.push(row.as_ref().clone()),
            Edit::LogsMoved { part_log, lifecycle_log } => {
                self.part_log.drop_through(*part_log);
                self.lifecycle_log.drop_through(*lifecycle_log);
            }
            Edit::Vacuumed { parts } => {
                for key in parts {
                    self.graveyard.remove_mut(key);
                }
            }
        }
        Ok(())
    }

    fn create_stream(&mut self, def: &StreamDef) -> Result<()> {
        let name = (def.database.clone(), def.name.clone());
        if !self.databases.contains(&def.database) {
            return Err(Error::not_found(format!("database '{}' does not exist", def.database)));
        }
        if def.id < self.next_stream || self.names.contains_key(&name) {
            return Err(Error::conflict(format!("stream {} exists already", def.full_name())));
        }
        self.next_stream = def.id.next();
        self.names.insert_mut(name, def.id);
        self.streams.insert_mut(def.id, Arc::new(StreamState::new(def.clone())));
        Ok(())
    }

    fn alter_stream(&mut self, def: &StreamDef) -> Result<()> {
        let old = self.expect_stream(def.id)?.def.clone();
        let (before, after) = ((old.database.clone(), old.name.clone()), (def.database.clone(), def.name.clone()));
        if before != after {
            if !self.databases.contains(&def.database) {
                return Err(Error::not_found(format!("database '{}' does not exist", def.database)));
            }
            if self.names.contains_key(&after) {
                return Err(Error::conflict(format!("stream {} exists already", def.full_name())));
            }
            self.names.remove_mut(&before);
            self.names.insert_mut(after, def.id);
        }
        self.with_stream(def.id, |s| {
            s.def = Arc::new(def.clone());
            s.schemas.insert_mut(def.schema_version, s.def.clone());
            Ok(())
        })
    }

    fn drop_stream(&mut self, id: StreamId) -> Result<()> {
        let state = self.expect_stream(id)?.clone();
        for part in state.parts.values() {
            self.bury(part.clone());
        }
        self.names.remove_mut(&(state.def.database.clone(), state.def.name.clone()));
        self.streams.remove_mut(&id);
        let readers: Vec<String> = self.readers.values().filter(|r| r.stream == id).map(|r| r.name.clone()).collect();
        readers.iter().for_each(|name| _ = self.readers.remove_mut(name));
        Ok(())
    }

    fn set_disk(&mut self, def: &DiskDef) -> Result<()> {
        let known = self.disks.get(&def.id);
        if known.is_none() && def.id < self.next_disk {
            return Err(Error::conflict(format!("disk {} was dropped: its id is not used again (I2)", def.id)));
        }
        let taken = self.disk_id(&def.name).is_some_and(|id| id != def.id);
        if taken || known.is_some_and(|k| k.name != def.name) {
            return Err(Error::conflict(format!("disk '{}' exists already", def.name)));
        }
        self.next_disk = self.next_disk.max(def.id.next());
        self.disks.insert_mut(def.id, Arc::new(def.clone()));
        Ok(())
    }

    fn drop_disk(&mut self, id: DiskId) -> Result<()> {
        let def = self.disks.get(&id).ok_or_else(|| Error::not_found(format!("disk {id} does not exist")))?;
        let named = |p: &&Arc<StoragePolicy>| p.volumes.iter().any(|v| v.disks.contains(&def.name));
        if let Some(policy) = self.policies.values().find(named) {
            return Err(Error::conflict(format!("storage policy '{}' names disk '{}'", policy.name, def.name)));
        }
        self.disks.remove_mut(&id);
        Ok(())
    }

    fn set_policy(&mut self, policy: &StoragePolicy) -> Result<()> {
        let unknown = policy.volumes.iter().flat_map(|v| &v.disks).find(|d| self.disk_id(d).is_none());
        if let Some(disk) = unknown {
            return Err(Error::conflict(format!("disk '{disk}' of storage policy '{}' does not exist", policy.name)));
        }
        if self.policy(&policy.name).is_some_and(|old| old.version >= policy.version) {
            return Err(Error::conflict(format!("storage policy '{}' changed meanwhile", policy.name)));
        }
        self.policies.insert_mut(policy.name.clone(), Arc::new(policy.clone()));
        Ok(())
    }

    fn is_known(&self, disk: DiskId) -> Result<()> {
        match disk == DiskId::DEFAULT || self.disks.contains_key(&disk) {
            true => Ok(()),
            false => Err(Error::conflict(format!("disk {disk} was dropped meanwhile"))),
        }
    }

    fn add_part(&mut self, part: &PartMeta) -> Result<()> {
        self.is_known(part.placement.disk)?;
        if self.graves_of(part.stream, part.id).next().is_some() || self.expect_stream(part.stream)?.parts.contains_key(&part.id) {
            return Err(Error::conflict(format!("part {} exists already (I2)", part.name)));
        }
        self.with_stream(part.stream, |s| {
            s.parts.insert_mut(part.id, Arc::new(part.clone()));
            let mut partition = s.partitions.get(&part.partition).map(|p| p.as_ref().clone()).unwrap_or_default();
            partition.parts.insert_mut(part.id);
            s.partitions.insert_mut(part.partition.clone(), Arc::new(partition));
            Ok(())
        })
    }

    fn take_part(&mut self, stream: StreamId, id: PartId) -> Result<Arc<PartMeta>> {
        let part = self.part(stream, id)?;
        self.with_stream(stream, |s| {
            s.parts.remove_mut(&id);
            if let Some(partition) = s.partitions.get(&part.partition) {
                let mut partition = partition.as_ref().clone();
                partition.parts.remove_mut(&id);
                match partition.parts.is_empty() {
                    true => _ = s.partitions.remove_mut(&part.partition),
                    false => s.partitions.insert_mut(part.partition.clone(), Arc::new(partition)),
                }
            }
            Ok(())
        })?;
        Ok(part)
    }

    fn bury(&mut self, part: Arc<PartMeta>) {
        let key = (part.stream, part.id, part.placement.generation);
        self.graveyard.insert_mut(key, Arc::new(Grave { removed_at: self.time, part: part.as_ref().clone() }));
    }

    fn part(&self, stream: StreamId, id: PartId) -> Result<Arc<PartMeta>> {
        let found = self.expect_stream(stream)?.parts.get(&id).cloned();
        found.ok_or_else(|| Error::conflict(format!("part {id} of stream {stream} is gone")))
    }

    fn update_part(&mut self, stream: StreamId, id: PartId, change: impl FnOnce(&mut PartMeta)) -> Result<()> {
        let mut part = self.part(stream, id)?.as_ref().clone();
        change(&mut part);
        self.with_stream(stream, |s| {
            s.parts.insert_mut(id, Arc::new(part));
            Ok(())
        })
    }

    fn expect_stream(&self, id: StreamId) -> Result<&Arc<StreamState>> {
        self.stream(id).ok_or_else(|| Error::conflict("the stream does not exist any more"))
    }

    fn with_stream(&mut self, id: StreamId, change: impl FnOnce(&mut StreamState) -> Result<()>) -> Result<()> {
        let mut state = self.expect_stream(id)?.as_ref().clone();
        change(&mut state)?;
        self.streams.insert_mut(id, Arc::new(state));
        Ok(())
    }
}

impl StreamState {
    fn fold(&mut self, sn: Sn, records: &[RecordInfo], no: CommitNo) -> Result<()> {
        if sn < self.applied_sn {
            return Err(Error::conflict(format!("stream {}: sn {sn} is applied already (I3)", self.def.full_name())));
        }
        self.readable.insert(SnRange { after: self.applied_sn, to: sn });
        self.applied_sn = sn;
        for record in records {
            self.record_time = self.record_time.max(record.time);
            // A branch that was dropped while records of it were on their way takes them along.
            if !self.lineages.contains_key(&record.branch) {
                // Of it alone: other branches may have written between.
                record.sns().for_each(|sns| self.readable.remove(sns));
                continue;
            }
            self.heads.insert_mut(record.branch, record.sn);
            if record.moves_horizon() {
                self.set_horizon(record.branch, no);
            }
            self.records.insert_mut(record.sn, Arc::new(record.clone()));
        }
        let mut before = usize::MAX;
        while self.records.size() > self.lines_max() && self.records.size() < before {
            before = self.records.size();
            self.coalesce();
        }
        Ok(())
    }

    /// Sums up appends that follow each other on a branch, among the older half of the lines, two and two. Lines that stand for the fewest
    /// go first, so that all of the older half come to stand for about as many: no time within the history is far from a line.
    pub(crate) fn coalesce(&mut self) {
        let oldest: Vec<Arc<RecordInfo>> = self.records.values().take(self.records.size().div_ceil(2)).cloned().collect();
        let (enough, all) = ((oldest.len() / COALESCED_ONE_IN).max(1), oldest.iter().map(|r| r.count).sum::<u64>());
        let mut most = 2;
        let mut pairs = pairs(&oldest, most);
        while pairs.len() < enough && most < all {
            most = most.saturating_mul(2);
            pairs = self::pairs(&oldest, most);
        }
        for (a, b, line) in pairs {
            let gap = (self.gaps.get(&a.sn).copied().unwrap_or_default(), self.gaps.get(&b.sn).copied().unwrap_or_default());
            let gap = Gap { parent: gap.0.parent, superseded_at: gap.1.superseded_at };
            self.gaps.remove_mut(&a.sn);
            match gap == Gap::default() {
                true => _ = self.gaps.remove_mut(&b.sn),
                false => self.gaps.insert_mut(b.sn, gap),
            }
            self.records.remove_mut(&a.sn);
            self.records.insert_mut(line.sn, Arc::new(line));
        }
    }

    /// Lines of the record list before appends are summed up.
    fn lines_max(&self) -> usize {
        match self.def.settings.get("history_max_snapshots") {
            Some(SettingValue::Int(n)) => usize::try_from(*n).unwrap_or(RECORD_LINES_MAX),
            _ => RECORD_LINES_MAX,
        }
    }
}

/// Appends that follow each other on a branch, two and two, where both together are `most` records at the most; and the line for both.
fn pairs(lines: &[Arc<RecordInfo>], most: u64) -> Vec<(Arc<RecordInfo>, Arc<RecordInfo>, RecordInfo)> {
    let mut pairs = Vec::new();
    // Of each branch the line before, if it is in no pair already.
    let mut before: BTreeMap<BranchId, &Arc<RecordInfo>> = BTreeMap::new();
    for b in lines {
        let a = before.remove(&b.branch).filter(|a| a.count.saturating_add(b.count) <= most);
        match a.and_then(|a| Some((a, coalesced(a, b)?))) {
            Some((a, line)) => pairs.push((a.clone(), b.clone(), line)),
            None => _ = before.insert(b.branch, b),
        }
    }
    pairs
}

/// One line for two appends of which the second stands on the first; what other branches wrote between stays out of it.
pub fn coalesced(a: &RecordInfo, b: &RecordInfo) -> Option<RecordInfo> {
    let append = |r: &RecordInfo| matches!(r.verb, Verb::Insert | Verb::InsertStaged);
    (append(a) && append(b) && a.branch == b.branch && b.parent == a.sn && b.hull().after >= a.sn).then(|| RecordInfo {
        runs: Runs::of(a.sns().chain(b.sns())),
        since: Some(a.first().1),
        count: a.count + b.count,
        parent: a.parent,
        rows_added: a.rows_added + b.rows_added,
        key: None,
        ..b.clone()
    })
}
