//! Row sets of parts, in memory: small ones are in the manifest, large ones in objects on the data directory's disk, read at opening.
//!
//! Guards: a set that a record or commit names is durable before it is named; what is named and cannot be read keeps the database from
//! being opened, for deleted rows must not come back.

use crate::{core::Core, live::Live, write::give_up};
use ebb_storage::{
    Error, ErrorKind, Result,
    ids::{DatabaseId, DiskId, PartId, StreamId},
    part::{
        PartMeta, RowSet, key,
        meta::{BesideName, RowsAt},
        row_set::INLINE_BYTES,
    },
};
use object_store::{ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload, path::Path};
use parking_lot::RwLock;
use std::{borrow::Cow, collections::HashMap, sync::Arc};

/// Whether rows were deleted by a record or expired by a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Deletion,
    Expired,
}

#[derive(Default)]
pub struct RowSets {
    beside: RwLock<HashMap<(PartId, BesideName), Arc<RowSet>>>,
}

impl RowSets {
    /// The rows of a part that are named.
    ///
    /// # Errors
    /// `Corrupt` where a set is not known that should be.
    pub fn rows<'a>(&self, part: &PartMeta, at: &'a RowsAt) -> Result<Cow<'a, RowSet>> {
        Ok(match at {
            RowsAt::Inline(rows) => Cow::Borrowed(rows),
            RowsAt::All => {
                let mut all = RowSet::default();
                all.0.insert_range(0..u32::try_from(part.rows).unwrap_or(u32::MAX));
                Cow::Owned(all)
            }
            RowsAt::Beside { suffix, .. } => {
                let known = self.beside.read().get(&(part.id, *suffix)).cloned();
                let known = known.ok_or_else(|| Error::corrupt(format!("a set of removed rows of part {} is missing", part.name)))?;
                Cow::Owned(known.as_ref().clone())
            }
        })
    }

    /// For work that is tried and not done: its parts have numbers of their own.
    pub fn copy(&self) -> Self {
        Self { beside: RwLock::new(self.beside.read().clone()) }
    }

    /// Of parts that are gone.
    pub fn forget(&self, part: PartId) {
        let mut beside = self.beside.write();
        if !beside.is_empty() {
            beside.retain(|(id, _), _| *id != part);
        }
    }

    fn put(&self, part: PartId, name: BesideName, rows: RowSet) {
        self.beside.write().insert((part, name), Arc::new(rows));
    }
}

/// Makes a set nameable: as it is where it is small, else as an object of its own.
///
/// # Errors
/// What the data directory's disk says.
pub async fn keep(core: &Core, (stream, part, part_rows): (StreamId, PartId, u64), kind: Kind, mut rows: RowSet) -> Result<RowsAt> {
    if rows.len() >= part_rows {
        return Ok(RowsAt::All);
    }
    rows.0.optimize();
    let bytes = rows.to_bytes();
    if bytes.len() <= INLINE_BYTES {
        return Ok(RowsAt::Inline(rows));
    }
    let number = core.next_part()?;
    let (suffix, count) = (
        match kind {
            Kind::Deletion => BesideName::Deletion(number),
            Kind::Expired => BesideName::Expired(number),
        },
        rows.len(),
    );
    let disk = core.disks.disk(DiskId::DEFAULT)?;
    let path = key::beside(&core.disks.database, stream, part, suffix);
    let options = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
    if let Err(e) = disk.store.put_opts(&path, PutPayload::from(bytes), options).await {
        give_up(core, crate::core::Abandoned { disk: DiskId::DEFAULT, path, bytes: 0 });
        return Err(e.into());
    }
    core.sets.put(part, suffix, rows);
    Ok(RowsAt::Beside { suffix, count })
}

/// Gives up a set that nothing will name.
pub fn abandon(core: &Core, (stream, part): (StreamId, PartId), rows: &RowsAt) {
    if let RowsAt::Beside { suffix, .. } = rows {
        let path = key::beside(&core.disks.database, stream, part, *suffix);
        give_up(core, crate::core::Abandoned { disk: DiskId::DEFAULT, path, bytes: 0 });
    }
}

/// Sets that manifest and log name, with where they lie.
pub fn named(database: &DatabaseId, live: &Live) -> Vec<(PartId, BesideName, Path)> {
    let mut wanted: Vec<(StreamId, PartId, BesideName)> = Vec::new();
    let mut want = |stream, part, rows: &RowsAt| {
        if let RowsAt::Beside { suffix, .. } = rows {
            wanted.push((stream, part, *suffix));
        }
    };
    for state in live.manifest.streams() {
        for part in state.parts.values() {
            part.deletions.iter().for_each(|d| want(part.stream, part.id, &d.rows));
            part.expired.iter().for_each(|e| want(part.stream, part.id, &e.rows));
        }
        for deletion in live.tail(state.def.id).deletions() {
            let listed = deletion.what.targets.iter().filter(|t| state.parts.contains_key(&t.part));
            listed.for_each(|t| want(state.def.id, t.part, &t.rows));
        }
    }
    wanted.into_iter().map(|(stream, part, name)| (part, name, key::beside(database, stream, part, name))).collect()
}

/// # Errors
/// `Corrupt`, naming the object, where it is missing or damaged.
pub async fn read(store: &Arc<dyn ObjectStore>, path: &Path) -> Result<RowSet> {
    let read = async { RowSet::from_bytes(&store.get(path).await?.bytes().await?) };
    read.await.map_err(|e| match e.kind() {
        ErrorKind::NotFound => Error::corrupt(format!("{path} is missing: it says which rows are removed: restore it")),
        _ => e.context(path),
    })
}

/// Reads all sets that manifest and log name.
///
/// # Errors
/// As [`read`].
pub async fn load(core: &Core, live: &Live) -> Result<()> {
    for (part, name, path) in named(&core.disks.database, live) {
        core.sets.put(part, name, read(&core.disks.disk(DiskId::DEFAULT)?.store, &path).await?);
    }
    Ok(())
}
