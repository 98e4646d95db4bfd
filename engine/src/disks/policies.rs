//! Making, replacing and dropping storage policies.
//!
//! Guards: a policy is over disks that can be written; what streams have on a volume stays reachable by its policy; their rules name
//! what is there.

use super::{
    define::{Existing, check_name, no_disk},
    disk::Disk,
};
use crate::{Engine, core::Core, ingest::tail::Tail, nearest::did_you_mean, place};
use ebb_storage::{
    Error, ErrorKind, Result,
    disk::{StoragePolicy, Volume, policy},
    ids::unique,
    manifest::{Edit, Manifest, StreamState},
    part::key,
    rules::{Action, Destination, DestinationKind},
    stream_def::StreamDef,
};
use object_store::{ObjectStore, ObjectStoreExt, PutMode};
use std::{collections::HashSet, sync::Arc};

/// Bytes of the object that shows whether a disk can be written.
const PROBE: &[u8] = b"ebb";

impl Engine {
    /// `new` but for its version.
    ///
    /// # Errors
    /// `Invalid` for a policy that is none, `NotFound` for an unknown disk, `Conflict` where it is taken or lacks a volume that is
    /// needed, what a disk says that cannot be written.
    pub async fn set_policy(&self, new: StoragePolicy, existing: Existing) -> Result<()> {
        let core = &self.core;
        let _one = core.disks.defining.lock().await;
        check_name("storage policy", &new.name)?;
        let manifest = self.manifest();
        let old = manifest.policy(&new.name);
        if old.is_some() && existing != Existing::Replace {
            return match existing {
                Existing::Keep => Ok(()),
                _ => Err(Error::conflict(format!(
                    "storage policy '{}' exists already: CREATE OR REPLACE STORAGE POLICY changes it",
                    new.name
                ))),
            };
        }
        check_shape(&new, &manifest)?;
        let had: HashSet<&String> = old.iter().flat_map(|p| &p.volumes).flat_map(|v| &v.disks).collect();
        for name in new.volumes.iter().flat_map(|v| &v.disks).filter(|d| !had.contains(d)) {
            let disk = core.disks.all().iter().find(|d| *d.name == **name).cloned().ok_or_else(|| no_disk(&manifest, name))?;
            probe(core, &disk)
                .await
                .map_err(|e| e.context(format_args!("storage policy '{}': disk '{name}' cannot be written", new.name)))?;
        }
        let edits = |m: &Manifest, _| {
            let old = m.policy(&new.name);
            let policy = StoragePolicy { version: old.as_ref().map_or(0, |p| p.version) + 1, ..new };
            check_shape(&policy, m)?;
            let live = core.live.read();
            if let Some(old) = &old {
                for state in m.user_streams().filter(|s| Manifest::policy_name(&s.def) == policy.name) {
                    kept_volumes(m, state, &live.tail(state.def.id), old, &policy)?;
                    checked_destinations(&state.def, &policy)?;
                }
            }
            Ok(vec![Edit::SetPolicy(Box::new(policy))])
        };
        core.committer.commit_with(Vec::new(), edits, core.shows()).await?;
        core.jobs.wake();
        Ok(())
    }

    /// # Errors
    /// `NotFound` without the policy, `Conflict` naming a stream that uses it.
    pub async fn drop_policy(&self, name: &str, if_exists: bool) -> Result<()> {
        let core = &self.core;
        let _one = core.disks.defining.lock().await;
        if name == policy::DEFAULT {
            return Err(Error::invalid(
                "the storage policy 'default' is always there: CREATE OR REPLACE STORAGE POLICY default changes it",
            ));
        }
        let edits = |m: &Manifest, _| {
            if m.policy(name).is_none() {
                return Err(no_policy(m, name));
            }
            match m.user_streams().find(|s| Manifest::policy_name(&s.def) == name) {
                Some(s) => Err(Error::conflict(format!(
                    "storage policy '{name}' is used by stream {}: give that another one (ALTER STREAM ... MODIFY SETTING storage_policy)",
                    s.def.full_name()
                ))),
                None => Ok(vec![Edit::DropPolicy { name: name.to_owned() }]),
            }
        };
        match core.committer.commit_with(Vec::new(), edits, core.shows()).await {
            Err(e) if e.kind() == ErrorKind::NotFound && if_exists => Ok(()),
            other => other.map(|_| ()),
        }
    }

    /// All of them by name, the built-in one too.
    pub fn policies(&self) -> Vec<Arc<StoragePolicy>> {
        let m = self.manifest();
        let mut all: Vec<Arc<StoragePolicy>> = m.policies.values().cloned().collect();
        if !m.policies.contains_key(policy::DEFAULT) {
            all.extend(m.policy(policy::DEFAULT));
        }
        all.sort_by(|a, b| a.name.cmp(&b.name));
        all
    }

    /// The largest part that a volume takes; `None` where any will do.
    pub fn max_part_bytes(&self, volume: &Volume) -> Option<u64> {
        place::max_part_bytes(&self.core.disks, &self.manifest(), volume)
    }

    /// # Errors
    /// `NotFound`, with the nearest name.
    pub fn policy(&self, name: &str) -> Result<Arc<StoragePolicy>> {
        let m = self.manifest();
        m.policy(name).ok_or_else(|| no_policy(&m, name))
    }
}

/// What to say of a policy that is not there.
pub fn no_policy(m: &Manifest, name: &str) -> Error {
    let names = m.policies.keys().map(String::as_str).chain([policy::DEFAULT]);
    Error::not_found(format!("storage policy '{name}' does not exist{}", did_you_mean(name, names)))
}

fn check_shape(policy: &StoragePolicy, m: &Manifest) -> Result<()> {
    let at = |why: String| Error::invalid(format!("storage policy '{}': {why}", policy.name));
    if policy.volumes.is_empty() {
        return Err(at("it has no volumes".to_owned()));
    }
    let (mut volumes, mut disks) = (HashSet::new(), HashSet::new());
    for v in &policy.volumes {
        if !volumes.insert(&v.name) {
            return Err(at(format!("volume '{}' is there twice", v.name)));
        }
        if v.disks.is_empty() {
            return Err(at(format!("volume '{}' has no disk", v.name)));
        }
        for disk in &v.disks {
            if m.disk_id(disk).is_none() {
                let e = no_disk(m, disk);
                return Err(Error::new(e.kind(), format!("storage policy '{}': volume '{}': {}", policy.name, v.name, e.message())));
            }
            if !disks.insert(disk) {
                return Err(at(format!("disk '{disk}' is there twice: a disk is in one volume only")));
            }
        }
    }
    Ok(())
}

/// Writes, reads and deletes an object.
async fn probe(core: &Core, disk: &Disk) -> Result<()> {
    disk.check().await?;
    // The sweep of a disk that has just come tells it by its name from what a crash has left.
    let key = key::probes_prefix(&core.disks.database).join(format!("{}-{}", core.disks.opening.nonce, unique()));
    disk.store.put_opts(&key, PROBE.into(), PutMode::Create.into()).await?;
    let found = disk.store.get(&key).await?.bytes().await?;
    disk.store.delete(&key).await?;
    match found == PROBE {
        true => Ok(()),
        false => Err(Error::unavailable(format!("disk '{}' does not give back what was written", disk.name))),
    }
}

/// That `new` has every volume on which the stream has parts under `old`, with the disks they lie on.
///
/// # Errors
/// `Conflict` naming stream, volume and disk.
pub(crate) fn kept_volumes(m: &Manifest, state: &StreamState, tail: &Tail, old: &StoragePolicy, new: &StoragePolicy) -> Result<()> {
    let staged = tail.staged().iter().flat_map(|(.., parts)| parts.iter());
    for part in state.parts.values().chain(staged) {
        let Some(disk) = m.disk_name(part.placement.disk) else { continue };
        let Some(volume) = old.volume_of_disk(disk) else { continue };
        if !new.volume(&volume.name).is_some_and(|v| v.disks.iter().any(|d| d == disk)) {
            return Err(Error::conflict(format!(
                "stream {} has parts on volume '{}' (disk '{disk}') of storage policy '{}': storage policy '{}' must have it too",
                state.def.full_name(),
                volume.name,
                old.name,
                new.name
            )));
        }
    }
    Ok(())
}

/// That the places that the stream's rules name are in its policy.
///
/// # Errors
/// `NotFound` with the nearest name.
pub(crate) fn checked_destinations(def: &StreamDef, policy: &StoragePolicy) -> Result<()> {
    for rule in &def.policy.ttl {
        if let Action::Move(to) = &rule.action {
            destination(to, policy).map_err(|e| e.context(format_args!("TTL {rule} of {}", def.full_name())))?;
        }
    }
    Ok(())
}

/// # Errors
/// `NotFound` where the policy has no such place, unless the rule says IF EXISTS.
pub fn destination(to: &Destination, policy: &StoragePolicy) -> Result<()> {
    let (there, what, names): (bool, _, Vec<&str>) = match to.kind {
        DestinationKind::Disk => {
            (policy.volume_of_disk(&to.name).is_some(), "disk", policy.volumes.iter().flat_map(|v| &v.disks).map(String::as_str).collect())
        }
        DestinationKind::Volume => (policy.volume(&to.name).is_some(), "volume", policy.volumes.iter().map(|v| v.name.as_str()).collect()),
    };
    if there || to.if_exists {
        return Ok(());
    }
    let near = did_you_mean(&to.name, names.iter().copied());
    let has: Vec<String> = names.iter().map(|n| format!("'{n}'")).collect();
    let near = if near.is_empty() { format!(": it has {}", has.join(", ")) } else { near };
    Err(Error::not_found(format!("storage policy '{}' has no {what} '{}'{near}", policy.name, to.name)))
}
