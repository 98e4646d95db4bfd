//! Columns that were dropped and that tags still read: a tag reads with the columns of the moment it was made for. Pure.
//!
//! A rewrite writes the columns of today; beside them it carries those that a tag which sees one of its rows reads, under a name that is
//! free, in the widest type they ever had. Guards I10: a tag reads after a rewrite what it read before.

use super::RefKind;
use crate::{
    ids::{ColumnId, SchemaVersion},
    lineage::{Seen, Visibility},
    manifest::StreamState,
    part::PartMeta,
    stream_def::{ColumnDef, StreamDef, TP_SN, TP_TIME},
};
use std::{collections::BTreeSet, sync::Arc};

/// What a tag reads that is no longer there.
#[derive(Debug, Clone)]
struct Reads {
    seen: Seen,
    /// With what rows read that lack one of the columns.
    def: Arc<StreamDef>,
    columns: Vec<ColumnId>,
}

/// Of all tags of a stream.
#[derive(Debug, Clone, Default)]
pub struct Dropped {
    tags: Vec<Reads>,
}

impl Dropped {
    pub fn of(state: &StreamState) -> Self {
        let of_tag = |r: &Arc<super::Ref>| {
            let def = state.schema(r.schema_version);
            let columns: Vec<ColumnId> = def.stored().map(|c| c.id).filter(|id| state.def.columns.iter().all(|c| c.id != *id)).collect();
            (!columns.is_empty()).then(|| Reads { seen: state.seen(&r.cut), def: state.widened(def), columns })
        };
        Self { tags: state.refs.values().filter(|r| r.kind == RefKind::Tag).filter_map(of_tag).collect() }
    }

    fn of_part(&self, part: &PartMeta) -> impl Iterator<Item = &Reads> {
        let origins = part.origins.iter().map(|o| (o.branch, o.sns));
        self.tags.iter().filter(move |t| t.seen.of_rows(origins.clone()) != Visibility::None)
    }

    /// Those that a tag reads of the part's rows, whether its file has them or not.
    pub fn read_of(&self, part: &PartMeta) -> BTreeSet<ColumnId> {
        self.of_part(part).flat_map(|t| t.columns.iter().copied()).collect()
    }

    /// The columns by which a tag reads the part's rows in one of them.
    pub fn reader_of(&self, part: &PartMeta, column: ColumnId) -> Option<&Arc<StreamDef>> {
        self.of_part(part).find(|t| t.columns.contains(&column)).map(|t| &t.def)
    }
}

impl StreamState {
    /// The columns of a part's file.
    pub fn written(&self, part: &PartMeta) -> Arc<StreamDef> {
        self.carrying(self.schema(part.schema_version), &part.carried)
    }

    /// `def` with columns that it has not any more, behind its own. What lacks them reads nothing of their default.
    pub fn carrying(&self, def: &Arc<StreamDef>, carried: &[ColumnId]) -> Arc<StreamDef> {
        if carried.is_empty() {
            return def.clone();
        }
        let mut with = def.as_ref().clone();
        for column in carried.iter().filter_map(|id| self.newest(*id)) {
            let taken = |name: &str| with.columns.iter().any(|c| c.name == name) || [TP_TIME, TP_SN].contains(&name);
            let mut name = column.name.clone();
            if taken(&name) {
                name = format!("{name}@{}", column.id);
            }
            while taken(&name) {
                name.push('@');
            }
            with.columns.push(ColumnDef { name, default: None, fill: None, ttl: None, ..column.clone() });
        }
        Arc::new(with)
    }

    /// `def`, each of its columns in the widest type it ever had.
    fn widened(&self, def: &Arc<StreamDef>) -> Arc<StreamDef> {
        let mut wide = def.as_ref().clone();
        for column in &mut wide.columns {
            if let Some(newest) = self.newest(column.id) {
                (column.ty, column.nullable) = (newest.ty.clone(), newest.nullable);
            }
        }
        Arc::new(wide)
    }

    /// A column as it was last defined.
    fn newest(&self, id: ColumnId) -> Option<&ColumnDef> {
        let of = |def: &'_ Arc<StreamDef>| def.columns.iter().position(|c| c.id == id);
        if let Some(at) = of(&self.def) {
            return self.def.columns.get(at);
        }
        let versions = self.schemas.range(..=SchemaVersion(u32::MAX)).rev().map(|(_, def)| def);
        versions.filter_map(|def| Some((def, of(def)?))).map(|(def, at)| &def.columns[at]).next()
    }
}

#[cfg(test)]
mod tests;
