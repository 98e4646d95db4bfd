//! Making and dropping disks.
//!
//! Guards: the marker is written before the commit that makes the disk, so that every disk of the manifest has one; a place belongs to
//! one disk only; no disk goes while a policy names it, a part lies on it or somebody writes to it (I1).

use super::{
    disk::{Disk, DiskInfo},
    link::within_check,
};
use crate::{Engine, core::Core, job::vacuum, nearest::did_you_mean};
use ebb_storage::{
    Error, ErrorKind, Result,
    disk::{DiskDef, DiskKind, StoragePolicy, device, policy},
    ids::DiskId,
    manifest::{Edit, Manifest},
    part::PartMeta,
};
use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

/// What to do where the name is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Existing {
    Refuse,
    Keep,
    Replace,
}

/// A disk as a statement describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewDisk {
    pub name: String,
    pub kind: DiskKind,
    pub capacity_bytes: Option<u64>,
    pub max_usage_pct: u8,
}

impl Engine {
    /// # Errors
    /// `Conflict` where the name or the place is taken, `Invalid` for a place that cannot be one, `Unavailable` where it does not
    /// answer. Nothing was made then.
    pub async fn create_disk(&self, new: NewDisk, existing: Existing) -> Result<()> {
        let core = &self.core;
        let _one = core.disks.defining.lock().await;
        check_name("disk", &new.name)?;
        let manifest = self.manifest();
        let known = manifest.disk_named(&new.name).cloned();
        if new.name == policy::DEFAULT {
            return match existing {
                Existing::Keep => Ok(()),
                _ => Err(Error::conflict("the disk 'default' is the data directory: it is always there")),
            };
        }
        if known.is_some() && existing != Existing::Replace {
            return match existing {
                Existing::Keep => Ok(()),
                _ => Err(Error::conflict(format!("disk '{}' exists already: CREATE OR REPLACE DISK changes it", new.name))),
            };
        }
        if new.max_usage_pct == 0 || new.max_usage_pct > 100 {
            return Err(Error::invalid(format!("max_usage_pct of disk '{}' is {}: 1 to 100", new.name, new.max_usage_pct)));
        }
        let id = known.as_ref().map_or(manifest.next_disk, |d| d.id);
        let NewDisk { name, mut kind, capacity_bytes, max_usage_pct } = new;
        if let DiskKind::Local { path } = &mut kind {
            *path = canonical(path).map_err(|e| e.context(format_args!("disk '{name}'")))?;
        }
        let def = Arc::new(DiskDef { id, name, kind, capacity_bytes, max_usage_pct });
        let others = core.disks.all();
        for other in others.iter().filter(|d| d.id != id).filter_map(|d| d.def.as_ref()) {
            if def.overlaps(other) {
                return Err(Error::conflict(format!("{}: it lies in {}, or that in it: name another place", def.place(), other.place())));
            }
        }
        self.occupy(&def, known.as_deref(), &manifest).await?;
        let edits = |m: &Manifest, _| {
            let still = m.disks.get(&id).map_or(known.is_none() && m.next_disk == id, |d| known.as_deref() == Some(d));
            match still {
                true => Ok(vec![Edit::CreateDisk(Box::new(def.as_ref().clone()))]),
                false => Err(Error::conflict(format!("disk '{}' was changed meanwhile: try again", def.name))),
            }
        };
        core.committer.commit_with(Vec::new(), edits, core.shows()).await?;
        let disk = core.disks.attach(def);
        if let Some(space) = &disk.space {
            space.set_placed(placed_on(core, id));
        }
        if let Err(e) = disk.check().await {
            core.note(&e);
        }
        core.jobs.wake();
        Ok(())
    }

    /// Makes the place the disk's: folder, marker, and on a remote disk this opening's number.
    async fn occupy(&self, def: &Arc<DiskDef>, known: Option<&DiskDef>, manifest: &Manifest) -> Result<()> {
        let disks = &self.core.disks;
        let store = disks.connect.connect(def, true)?;
        if let Some(known) = known {
            match within_check(def, device::check(def, &store, &disks.database)).await {
                Ok(()) => {}
                Err(e) => match parts_on(&self.core, manifest, known.id).into_iter().next() {
                    Some(found) => return Err(e.context(format_args!("{found}, and it must be found at the new place"))),
                    None => within_check(def, device::mark(def, &store, &disks.database, |_| false)).await?,
                },
            }
        } else {
            let is_gone = |id: DiskId| id != DiskId::DEFAULT && !manifest.disks.contains_key(&id);
            within_check(def, device::mark(def, &store, &disks.database, is_gone)).await?;
        }
        // Over a link of its own: what is wrong with a remote disk shows here.
        let link = Disk::attach(def.clone(), disks.connect.clone(), disks.opening.clone());
        link.check().await
    }

    /// # Errors
    /// `NotFound` without the disk, `Conflict` naming what needs it.
    pub async fn drop_disk(&self, name: &str, if_exists: bool) -> Result<()> {
        let core = &self.core;
        let _one = core.disks.defining.lock().await;
        if name == policy::DEFAULT {
            return Err(Error::invalid("the disk 'default' is the data directory and cannot be dropped"));
        }
        let manifest = self.manifest();
        let Some(def) = manifest.disk_named(name).cloned() else {
            return if if_exists { Ok(()) } else { Err(no_disk(&manifest, name)) };
        };
        let link = core.disks.known(def.id).and_then(|d| d.link);
        let users = link.as_ref().map_or(0, |l| l.close());
        let dropped = self.drop_closed(&def, users).await;
        match &dropped {
            Ok(()) => core.disks.detach(def.id),
            Err(_) => _ = link.inspect(|l| l.reopen()),
        }
        dropped
    }

    async fn drop_closed(&self, def: &DiskDef, users: usize) -> Result<()> {
        let core = &self.core;
        let named: Vec<String> = naming(&self.manifest(), &def.name).map(|p| format!("'{}'", p.name)).collect();
        if !named.is_empty() {
            let names = named.join(", ");
            return Err(Error::conflict(format!("disk '{}' is in storage policy {names}: take it out or drop that first", def.name)));
        }
        if users > 0 {
            return Err(Error::conflict(format!("disk '{}' is being written to: try again", def.name)));
        }
        // Removed parts leave their objects behind for a while.
        if let Err(e) = vacuum::run(core).await {
            core.note(&e);
        }
        let edits = |m: &Manifest, _| match parts_on(core, m, def.id).into_iter().next() {
            Some(found) => Err(Error::conflict(format!("{found}: move it, or drop its stream, before the disk"))),
            None => Ok(vec![Edit::DropDisk(def.id)]),
        };
        core.committer.commit_with(Vec::new(), edits, core.shows()).await?;
        core.jobs.wake();
        Ok(())
    }

    /// Looks whether they are there, all of them.
    pub async fn check_disks(&self) {
        self.core.disks.look(|_| true).await;
    }

    /// All of them, the data directory first.
    pub fn disks(&self) -> Vec<DiskInfo> {
        self.core.disks.all().iter().map(Disk::info).collect()
    }

    pub fn disk_def(&self, name: &str) -> Result<Arc<DiskDef>> {
        let found = self.core.disks.all().iter().find(|d| &*d.name == name).and_then(|d| d.def.clone());
        found.ok_or_else(|| no_disk(&self.manifest(), name))
    }
}

pub(super) fn check_name(what: &str, name: &str) -> Result<()> {
    match name.is_empty() || name.chars().any(char::is_control) {
        true => Err(Error::invalid(format!("a {what} needs a name"))),
        false => Ok(()),
    }
}

pub(super) fn no_disk(m: &Manifest, name: &str) -> Error {
    let names = m.disks.values().map(|d| d.name.as_str()).chain([policy::DEFAULT]);
    Error::not_found(format!("disk '{name}' does not exist{}", did_you_mean(name, names)))
}

fn naming<'a>(m: &'a Manifest, disk: &'a str) -> impl Iterator<Item = &'a Arc<StoragePolicy>> {
    m.policies.values().filter(move |p| p.volumes.iter().any(|v| v.disks.iter().any(|d| d == disk)))
}

/// Parts on a disk in words: listed, staged by a record of the log, or removed and not deleted yet.
fn parts_on(core: &Core, m: &Manifest, disk: DiskId) -> Vec<String> {
    let on = |p: &&Arc<PartMeta>| p.placement.disk == disk;
    let name_of = |p: &PartMeta| m.stream(p.stream).map_or_else(|| "a dropped stream".to_owned(), |s| s.def.full_name());
    let disk_name = m.disk_name(disk).unwrap_or("?");
    let listed = m.streams().flat_map(|s| s.parts.values()).filter(on).map(Arc::as_ref);
    let live = core.live.read();
    let staged = live.tails().flat_map(|(_, t)| t.staged().iter().flat_map(|(.., parts)| parts.iter())).filter(on).map(Arc::as_ref);
    let mut found: Vec<String> =
        listed.chain(staged).map(|p| format!("part {} of {} lies on disk '{disk_name}'", p.name, name_of(p))).collect();
    let graves = m.graveyard.values().map(|g| &g.part).filter(|p| p.placement.disk == disk);
    let left = |p| format!("part {} of {} was removed, but its object is still on disk '{disk_name}'", p, "");
    found.extend(graves.map(|p| left(&p.name).replace(" of  ", " ")));
    found
}

/// Bytes that lie on a disk.
pub(crate) fn placed_on(core: &Core, disk: DiskId) -> u64 {
    let live = core.live.read();
    let listed = live.manifest.streams().flat_map(|s| s.parts.values()).map(|p| &p.placement);
    let removed = live.manifest.graveyard.values().map(|g| &g.part.placement);
    let staged = live.tails().flat_map(|(_, t)| t.staged().iter().flat_map(|(.., parts)| parts.iter().map(|p| &p.placement)));
    listed.chain(removed).chain(staged).filter(|p| p.disk == disk).map(|p| p.bytes).fold(0, u64::saturating_add)
}

/// The path without links, as far as it exists; nothing is made.
///
/// # Errors
/// `Invalid` for a relative one, or one with `..` where nothing is yet.
fn canonical(path: &Path) -> Result<PathBuf> {
    if !path.is_absolute() {
        return Err(Error::invalid(format!("path '{}' is relative: write it from the root on", path.display())));
    }
    let mut missing = Vec::new();
    let mut here = path;
    loop {
        match std::fs::canonicalize(here) {
            Ok(found) => return Ok(missing.iter().rev().fold(found, |dir, name| dir.join(name))),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
                let (Some(name), Some(parent)) = (here.file_name(), here.parent()) else {
                    return Err(Error::invalid(format!("path '{}' leads nowhere", path.display())));
                };
                missing.push(name.to_owned());
                here = parent;
            }
            Err(e) => return Err(Error::new(ErrorKind::Invalid, format!("path '{}': {e}", path.display()))),
        }
    }
}
