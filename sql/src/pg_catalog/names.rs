//! Numbers and names of what a cut holds.

use super::{shape, types};
use crate::provider::{Cut, catalog::PUBLIC};
use ebb_storage::{ids::StreamId, manifest::StreamState, stream_def::StreamDef};
use std::{collections::HashMap, sync::Arc};

pub const OWNER: i64 = 10;
pub const OWNER_NAME: &str = "ebb";
pub const PG_CATALOG: i64 = 11;
pub const PUBLIC_OID: i64 = 2200;
/// Streams: this and the stream's id.
const STREAMS: i64 = 100_000;
/// Databases and their schemas: above all streams, by a hash of the name, for they have no ids.
const DATABASES: i64 = 0x6000_0000;
const CATALOGUES: i64 = 12_000;
/// The catalogue's tables whose numbers clients know by heart.
const WELL_KNOWN: [(&str, i64); 6] =
    [("pg_type", 1247), ("pg_attribute", 1249), ("pg_proc", 1255), ("pg_class", 1259), ("pg_namespace", 2615), ("pg_database", 1262)];

pub fn stream_oid(id: StreamId) -> i64 {
    STREAMS.saturating_add(i64::try_from(id.0).unwrap_or(i64::MAX))
}

pub fn database_oid(name: &str) -> i64 {
    DATABASES | i64::from(xxhash_rust::xxh3::xxh3_64(name.as_bytes()) as u32 & 0x0fff_ffff)
}

/// What the functions look up.
pub(crate) struct Names {
    /// The connection's database.
    pub database: String,
    pub databases: Vec<String>,
    pub streams: HashMap<i64, Arc<StreamDef>>,
    pub bytes: HashMap<i64, i64>,
    pub settings: HashMap<&'static str, String>,
}

fn bytes(state: &StreamState) -> i64 {
    i64::try_from(state.parts.values().map(|p| p.placement.bytes).fold(0, u64::saturating_add)).unwrap_or(i64::MAX)
}

impl Names {
    pub fn of(cut: &Cut, database: &str, settings: HashMap<&'static str, String>) -> Self {
        let manifest = cut.view.manifest();
        Self {
            database: database.to_owned(),
            databases: manifest.databases.iter().map(|d| d.to_string()).collect(),
            streams: manifest.user_streams().map(|s| (stream_oid(s.def.id), s.def.clone())).collect(),
            bytes: manifest.user_streams().map(|s| (stream_oid(s.def.id), bytes(s))).collect(),
            settings,
        }
    }

    /// The schema that a database is.
    pub fn schema_oid(&self, database: &str) -> i64 {
        if database == self.database { PUBLIC_OID } else { database_oid(database) }
    }

    pub fn schema_name<'a>(&self, database: &'a str) -> &'a str {
        if database == self.database { PUBLIC } else { database }
    }

    /// Whether a name without a schema finds it.
    pub fn visible(&self, oid: i64) -> bool {
        self.streams.get(&oid).map_or(oid < STREAMS, |s| s.database == self.database)
    }

    /// As `regclass` reads it: quoted or not, with a schema or without.
    pub fn relation(&self, text: &str) -> Option<i64> {
        if let Ok(oid) = text.parse() {
            return Some(oid);
        }
        let parts = split(text)?;
        let (database, name) = match parts.as_slice() {
            [name] => (self.database.as_str(), name),
            [schema, name] if schema == PUBLIC => (self.database.as_str(), name),
            [schema, name] if schema == super::SCHEMA => return catalogue_oid(name),
            [schema, name] => (schema.as_str(), name),
            _ => return None,
        };
        let stream = self.streams.iter().find(|(_, s)| s.database == database && s.name == *name).map(|(oid, _)| *oid);
        stream.or_else(|| (parts.len() == 1).then(|| catalogue_oid(name)).flatten())
    }

    pub fn relation_name(&self, oid: i64) -> String {
        match self.streams.get(&oid) {
            Some(s) if s.database == self.database => crate::statement::quote_name(&s.name).to_string(),
            Some(s) => format!("{}.{}", crate::statement::quote_name(&s.database), crate::statement::quote_name(&s.name)),
            None if oid == 0 => "-".to_owned(),
            None => {
                let known = shape::TABLES.iter().chain(shape::EMPTY).find(|(name, _)| catalogue_oid(name) == Some(oid));
                known.map_or_else(|| oid.to_string(), |(name, _)| (*name).to_owned())
            }
        }
    }

    pub fn type_oid(text: &str) -> Option<i64> {
        text.parse().ok().or_else(|| types::type_oid(text))
    }
}

/// The catalogue's own tables: by their place in the list, which only grows at its end.
fn catalogue_oid(name: &str) -> Option<i64> {
    if let Some((_, oid)) = WELL_KNOWN.iter().find(|(n, _)| *n == name) {
        return Some(*oid);
    }
    let at = shape::TABLES.iter().chain(shape::EMPTY).position(|(n, _)| *n == name)?;
    Some(CATALOGUES + i64::try_from(at).ok()?)
}

/// The parts of a dotted name; unquoted ones in lower case.
fn split(text: &str) -> Option<Vec<String>> {
    let mut parts = vec![String::new()];
    let mut chars = text.trim().chars().peekable();
    let mut quoted = false;
    while let Some(c) = chars.next() {
        let part = parts.last_mut()?;
        match c {
            '"' if quoted && chars.peek() == Some(&'"') => {
                chars.next();
                part.push('"');
            }
            '"' => quoted = !quoted,
            '.' if !quoted => parts.push(String::new()),
            c if quoted => part.push(c),
            c => part.extend(c.to_lowercase()),
        }
    }
    (!quoted).then_some(parts)
}
