//! A manifest of one stream alone, for work that is tried and not done.

use crate::{
    Error, Result,
    ids::StreamId,
    manifest::{LogRows, Manifest, PartitionState},
    stream_def::StreamDef,
};
use rpds::RedBlackTreeMapSync;
use std::{collections::BTreeMap, sync::Arc};

impl Manifest {
    /// The stream with its parts, as `def` where there is one, and nothing else but disks, policies and settings: no other stream, no
    /// removed part, no running timer, no row of the logs. Its epoch is a new one, so that what is written beside it has ids of its own.
    ///
    /// # Errors
    /// `NotFound` without the stream.
    pub fn aside(&self, stream: StreamId, def: Option<StreamDef>) -> Result<Self> {
        let state = self.stream(stream).ok_or_else(|| Error::not_found("the stream does not exist (any more)"))?;
        let mut state = state.as_ref().clone();
        if let Some(def) = def {
            state.def = Arc::new(def);
            state.schemas.insert_mut(state.def.schema_version, state.def.clone());
        }
        let untimed = |p: &PartitionState| Arc::new(PartitionState { timers: BTreeMap::new(), ..p.clone() });
        state.partitions = state.partitions.iter().map(|(value, p)| (value.clone(), untimed(p))).collect();
        let name = (state.def.database.clone(), state.def.name.clone());
        Ok(Self {
            epoch: self.epoch.next(),
            streams: RedBlackTreeMapSync::new_sync().insert(stream, Arc::new(state)),
            names: RedBlackTreeMapSync::new_sync().insert(name, stream),
            graveyard: RedBlackTreeMapSync::new_sync(),
            part_log: LogRows::default(),
            lifecycle_log: LogRows::default(),
            ..self.clone()
        })
    }
}
