//! A whole manifest in one object: what a checkpoint holds.

use crate::{
    Error, Result,
    clock::Timestamp,
    disk::{DiskDef, StoragePolicy},
    ids::{BranchId, CommitNo, DiskId, Epoch, Lsn, Sn, StreamId},
    lineage::{Lineage, Readable},
    manifest::{
        edit::{LifecycleLogRow, PartLogRow, RecordInfo, Timer},
        log_rows::LogRows,
        state::{Grave, Manifest, PartitionState, StreamState},
    },
    part::PartMeta,
    refs::{Gap, Reader, Ref},
    stream_def::{SettingValue, StreamDef},
};
use rpds::RedBlackTreeMapSync;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

#[derive(Debug, Serialize, Deserialize)]
pub struct Image {
    no: CommitNo,
    epoch: Epoch,
    #[serde(default)]
    log_epoch: Epoch,
    time: Timestamp,
    databases: Vec<String>,
    next_stream: StreamId,
    server_settings: Vec<(String, SettingValue)>,
    applied_lsn: Lsn,
    streams: Vec<StreamImage>,
    graveyard: Vec<Arc<Grave>>,
    /// From format version 2 on.
    #[serde(default)]
    disks: Vec<Arc<DiskDef>>,
    #[serde(default = "first_disk")]
    next_disk: DiskId,
    #[serde(default)]
    policies: Vec<Arc<StoragePolicy>>,
    /// From format version 3 on.
    #[serde(default)]
    readers: Vec<Arc<Reader>>,
    part_log: LogRows<PartLogRow>,
    lifecycle_log: LogRows<LifecycleLogRow>,
}

fn first_disk() -> DiskId {
    DiskId(1)
}

#[derive(Debug, Serialize, Deserialize)]
struct StreamImage {
    def: Arc<StreamDef>,
    schemas: Vec<Arc<StreamDef>>,
    applied_sn: Sn,
    record_time: Timestamp,
    parts: Vec<Arc<PartMeta>>,
    timers: Vec<(Arc<str>, Timer, Timestamp)>,
    lineages: Vec<(BranchId, Arc<Vec<Lineage>>)>,
    readable: Readable,
    records: Vec<Arc<RecordInfo>>,
    /// From format version 3 on.
    #[serde(default)]
    gaps: Vec<(Sn, Gap)>,
    #[serde(default)]
    heads: Vec<(BranchId, Sn)>,
    #[serde(default)]
    refs: Vec<Arc<Ref>>,
    #[serde(default)]
    refs_version: u64,
    #[serde(default = "first_branch")]
    next_branch: BranchId,
}

fn first_branch() -> BranchId {
    BranchId::MAIN.next()
}

impl Image {
    pub fn of(m: &Manifest) -> Self {
        Self {
            no: m.no,
            epoch: m.epoch,
            log_epoch: m.log_epoch,
            time: m.time,
            databases: m.databases.iter().cloned().collect(),
            next_stream: m.next_stream,
            server_settings: m.server_settings.iter().map(|(k, v)| (k.clone(), v.clone())).collect(),
            applied_lsn: m.applied_lsn,
            streams: m.streams().map(|s| StreamImage::of(s)).collect(),
            graveyard: m.graveyard.values().cloned().collect(),
            disks: m.disks.values().cloned().collect(),
            next_disk: m.next_disk,
            policies: m.policies.values().cloned().collect(),
            readers: m.readers.values().cloned().collect(),
            part_log: m.part_log.clone(),
            lifecycle_log: m.lifecycle_log.clone(),
        }
    }

    /// # Errors
    /// `Corrupt` where two streams have one name.
    pub fn into_manifest(self) -> Result<Manifest> {
        let mut m = Manifest::empty();
        m.no = self.no;
        m.epoch = self.epoch;
        m.log_epoch = self.log_epoch;
        m.time = self.time;
        m.databases = self.databases.into_iter().collect();
        m.next_stream = self.next_stream;
        m.server_settings = self.server_settings.into_iter().collect();
        m.applied_lsn = self.applied_lsn;
        for stream in self.streams {
            let state = stream.into_state();
            let (id, name) = (state.def.id, (state.def.database.clone(), state.def.name.clone()));
            if m.names.contains_key(&name) {
                return Err(Error::corrupt(format!("two streams are named {}", state.def.full_name())));
            }
            m.names.insert_mut(name, id);
            m.streams.insert_mut(id, Arc::new(state));
        }
        m.graveyard = self.graveyard.into_iter().map(|g| ((g.part.stream, g.part.id, g.part.placement.generation), g)).collect();
        m.disks = self.disks.into_iter().map(|d| (d.id, d)).collect();
        m.next_disk = self.next_disk;
        m.policies = self.policies.into_iter().map(|p| (p.name.clone(), p)).collect();
        m.readers = self.readers.into_iter().map(|r| (r.name.clone(), r)).collect();
        m.part_log = self.part_log;
        m.lifecycle_log = self.lifecycle_log;
        Ok(m)
    }
}

impl StreamImage {
    fn of(s: &StreamState) -> Self {
        let timers = s.partitions.iter().flat_map(|(p, state)| state.timers.iter().map(|(t, at)| (p.clone(), *t, *at)));
        Self {
            def: s.def.clone(),
            schemas: s.schemas.values().cloned().collect(),
            applied_sn: s.applied_sn,
            record_time: s.record_time,
            parts: s.parts.values().cloned().collect(),
            timers: timers.collect(),
            lineages: s.lineages.iter().map(|(b, l)| (*b, l.clone())).collect(),
            readable: s.readable.clone(),
            records: s.records.values().cloned().collect(),
            gaps: s.gaps.iter().map(|(sn, gap)| (*sn, *gap)).collect(),
            heads: s.heads.iter().map(|(b, sn)| (*b, *sn)).collect(),
            refs: s.refs.values().cloned().collect(),
            refs_version: s.refs_version,
            next_branch: s.next_branch,
        }
    }

    fn into_state(self) -> StreamState {
        let mut partitions: std::collections::BTreeMap<Arc<str>, PartitionState> = Default::default();
        for part in &self.parts {
            partitions.entry(part.partition.clone()).or_default().parts.insert_mut(part.id);
        }
        for (partition, timer, at) in self.timers {
            if let Some(state) = partitions.get_mut(&partition) {
                state.timers.insert(timer, at);
            }
        }
        // Before there were branches, every record was main's.
        let heads = match self.heads.is_empty() && self.applied_sn > Sn(0) {
            true => vec![(BranchId::MAIN, self.applied_sn)],
            false => self.heads,
        };
        StreamState {
            heads: heads.into_iter().collect(),
            gaps: self.gaps.into_iter().collect(),
            refs: self.refs.into_iter().map(|r| (r.name.clone(), r)).collect(),
            refs_version: self.refs_version,
            next_branch: self.next_branch,
            def: self.def,
            schemas: self.schemas.into_iter().map(|d| (d.schema_version, d)).collect(),
            applied_sn: self.applied_sn,
            record_time: self.record_time,
            parts: self.parts.into_iter().map(|p| (p.id, p)).collect(),
            partitions: partitions.into_iter().map(|(k, v)| (k, Arc::new(v))).collect::<RedBlackTreeMapSync<_, _>>(),
            lineages: self.lineages.into_iter().collect(),
            readable: self.readable,
            records: self.records.into_iter().map(|r| (r.sn, r)).collect(),
        }
    }
}
