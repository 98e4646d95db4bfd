//! What may be deleted. Pure.

use crate::{
    ids::{DatabaseId, DiskId, Generation, PartId, StreamId},
    manifest::state::{Grave, Manifest},
    part::{
        key,
        meta::{PartMeta, RowsAt},
    },
    pins::PinKey,
};
use object_store::path::Path;
use std::{collections::HashSet, sync::Arc};

/// Removed parts on a disk whose objects nothing needs any more.
pub fn deletable(m: &Manifest, disk: DiskId, held: impl Fn(&PinKey) -> bool) -> Vec<(PinKey, Arc<Grave>)> {
    let on_disk = m.graveyard.iter().filter(|(_, grave)| grave.part.placement.disk == disk);
    on_disk.filter(|(key, _)| !held(key)).map(|(key, grave)| (*key, grave.clone())).collect()
}

/// The object of a removed part.
pub fn object_of(database: &DatabaseId, part: &PartMeta) -> Path {
    key::part(database, part.stream, part.id, part.placement.generation)
}

/// Row sets of a removed part, all on the data directory's disk; none while it is listed, or another generation of it is removed and not
/// `gone`: whoever reads that needs them.
pub fn sets_of(database: &DatabaseId, m: &Manifest, part: &PartMeta, gone: &[PinKey]) -> HashSet<Path> {
    let key = (part.stream, part.id, part.placement.generation);
    let listed = m.stream(part.stream).is_some_and(|s| s.parts.contains_key(&part.id));
    let needed = m.graves_of(part.stream, part.id).any(|(other, _)| *other != key && !gone.contains(other));
    match listed || needed {
        true => HashSet::new(),
        false => m.graves_of(part.stream, part.id).flat_map(|(_, grave)| beside(database, &grave.part)).collect(),
    }
}

fn beside<'a>(database: &'a DatabaseId, part: &'a PartMeta) -> impl Iterator<Item = Path> + 'a {
    let sets = part.deletions.iter().map(|d| &d.rows).chain(part.expired.iter().map(|e| &e.rows));
    sets.filter_map(move |rows| match rows {
        RowsAt::Beside { suffix, .. } => Some(key::beside(database, part.stream, part.id, *suffix)),
        RowsAt::Inline(_) | RowsAt::All => None,
    })
}

/// Every object of `disk` that the manifest names, listed or removed.
pub fn named(database: &DatabaseId, m: &Manifest, disk: DiskId) -> HashSet<Path> {
    let listed = m.streams().flat_map(|s| s.parts.values()).map(Arc::as_ref);
    let mut paths = HashSet::new();
    for part in listed.chain(m.graveyard.values().map(|g| &g.part)) {
        if part.placement.disk == disk {
            paths.insert(object_of(database, part));
        }
        if disk == DiskId::DEFAULT {
            paths.extend(beside(database, part));
        }
    }
    paths
}

/// Whether a key is of a part that `is` says yes to.
pub fn is_of(path: &Path, is: impl Fn(StreamId, PartId) -> bool) -> bool {
    parse_key(path).is_some_and(|(stream, part, _)| is(stream, part))
}

/// Stream, part and generation (of a part's file) that a key below `parts/` names; `None` for a key that Ebb did not build.
pub fn parse_key(path: &Path) -> Option<(StreamId, PartId, Option<Generation>)> {
    let parts: Vec<_> = path.parts().map(|p| p.as_ref().to_owned()).collect();
    let [.., folder, stream, file] = parts.as_slice() else { return None };
    let (part, rest) = file.split_once('.')?;
    let (number, kind) = rest.rsplit_once('.')?;
    let generation = match kind {
        "parquet" => Some(Generation(number.parse().ok()?)),
        "del" | "exp" => None,
        _ => return None,
    };
    (folder == "parts").then_some((StreamId(stream.parse().ok()?), PartId(part.parse().ok()?), generation))
}
