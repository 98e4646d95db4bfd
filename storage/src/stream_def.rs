//! What a stream is: columns with ids of their own, keys, rules, settings. Data only; expressions are canonical SQL texts.

use crate::{
    clock::Timestamp,
    codec::ColumnCodec,
    column_type::ColumnType,
    ids::{ColumnId, Fingerprint, SchemaVersion, StreamId},
    rules::{Action, Policy, Rule},
};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use parquet::arrow::PARQUET_FIELD_ID_META_KEY;
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, collections::HashMap, sync::Arc};

pub const TP_TIME: &str = "_tp_time";
/// Its streams are Ebb's own: nobody else makes, changes or writes them.
pub const SYSTEM_DATABASE: &str = "system";
pub const TP_SN: &str = "_tp_sn";
/// Key of the field metadata that carries a column's canonical SQL type.
pub const TYPE_META_KEY: &str = "ebb.type";

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StreamDef {
    pub id: StreamId,
    pub database: String,
    pub name: String,
    /// Visible columns in order; hidden ones are not listed.
    pub columns: Vec<ColumnDef>,
    /// The next column id to give.
    pub next_column: ColumnId,
    /// Grows with every change of how rows are laid out.
    pub schema_version: SchemaVersion,
    /// Grows with every change of rules, settings or codecs, and with each that leaves `schema_version` alone: the two name a definition,
    /// and conditional commits name them.
    pub policy_version: u64,
    /// Canonical SQL; empty for `tuple()`.
    pub partition_by: Vec<String>,
    /// Canonical SQL; empty for `tuple()`.
    pub order_by: Vec<String>,
    /// A prefix of `order_by`.
    pub primary_key: Vec<String>,
    pub series_key: Vec<String>,
    pub indexes: Vec<IndexDef>,
    pub policy: Policy,
    /// Only what was set; defaults are the engine's.
    pub settings: BTreeMap<String, SettingValue>,
    pub comment: String,
    pub created_at: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum SettingValue {
    Bool(bool),
    Int(i64),
    Text(String),
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ColumnDef {
    pub id: ColumnId,
    pub name: String,
    pub ty: ColumnType,
    pub nullable: bool,
    pub default: Option<ColumnDefault>,
    pub codec: Option<ColumnCodec>,
    /// When the column's values become its DEFAULT.
    pub ttl: Option<ColumnTtl>,
    pub comment: String,
    /// The schema version that added it; parts of older ones lack it.
    pub since: SchemaVersion,
    /// What parts that lack the column read: a constant evaluated at the ALTER as text castable to `ty`, or `None`: evaluate
    /// `default` on the row (NULL or the type's zero where there is none).
    pub fill: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ColumnTtl {
    /// Canonical SQL of a date or time expression.
    pub when: String,
    /// The hash of the bound expression and the column, with column ids.
    pub fingerprint: Fingerprint,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum DefaultKind {
    Default,
    Materialized,
    /// Computed on read, never stored, in no part.
    Alias,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ColumnDefault {
    pub kind: DefaultKind,
    /// Canonical SQL.
    pub expr: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexDef {
    pub name: String,
    pub expr: String,
    pub kind: IndexKind,
    pub granularity: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum IndexKind {
    MinMax,
    /// False positive rate in parts per million.
    BloomFilter(u32),
    Set(u64),
}

impl ColumnDef {
    /// As plain as can be: never NULL, of the first schema version.
    pub fn plain(id: i32, name: &str, ty: ColumnType) -> Self {
        Self {
            id: ColumnId(id),
            name: name.to_owned(),
            ty,
            nullable: false,
            default: None,
            codec: None,
            ttl: None,
            comment: String::new(),
            since: SchemaVersion(1),
            fill: None,
        }
    }
    pub fn is_alias(&self) -> bool {
        self.default.as_ref().is_some_and(|d| d.kind == DefaultKind::Alias)
    }

    /// The column as parts and batches carry it: name, type, nullability, field id, SQL type.
    pub fn field(&self) -> Field {
        Field::new(&self.name, self.ty.arrow(), self.nullable).with_metadata(HashMap::from([
            (PARQUET_FIELD_ID_META_KEY.to_owned(), self.id.to_string()),
            (TYPE_META_KEY.to_owned(), self.ty.to_string()),
        ]))
    }
}

impl StreamDef {
    /// This definition as the one that follows `old`: its identity is kept, and what changed raises a version, so that no two definitions
    /// of a stream bear the same two. Columns that `old` lacks begin here.
    pub fn following(self, old: &Self) -> Self {
        let (schema_version, policy_version) = (old.schema_version, old.policy_version);
        let mut new = Self { id: old.id, created_at: old.created_at, schema_version, policy_version, ..self };
        if new == *old {
            return new;
        }
        let reshaped = new.shape() != old.shape();
        if reshaped {
            new.schema_version = schema_version.next();
            for c in new.columns.iter_mut().filter(|c| old.columns.iter().all(|o| o.id != c.id)) {
                c.since = new.schema_version;
            }
        }
        let codecs = |d: &Self| d.columns.iter().map(|c| (c.id, c.codec)).collect::<Vec<_>>();
        let ages_otherwise =
            (&new.policy, new.rules(), &new.settings, codecs(&new)) != (&old.policy, old.rules(), &old.settings, codecs(old));
        if ages_otherwise || !reshaped {
            new.policy_version = policy_version.saturating_add(1);
        }
        new
    }

    /// How rows are laid out: under another shape they are upgraded.
    fn shape(&self) -> Vec<(ColumnId, &str, &ColumnType, bool, Option<&ColumnDefault>)> {
        self.columns.iter().map(|c| (c.id, c.name.as_str(), &c.ty, c.nullable, c.default.as_ref())).collect()
    }

    /// The column that an index is over; `None` where it is over an expression.
    pub fn indexed(&self, index: &IndexDef) -> Option<&ColumnDef> {
        let quoted = |name: &str| format!("\"{}\"", name.replace('"', "\"\""));
        self.stored().find(|c| c.name == index.expr || quoted(&c.name) == index.expr)
    }

    /// Columns that parts store: all but ALIAS, without the hidden ones.
    pub fn stored(&self) -> impl Iterator<Item = &ColumnDef> {
        self.columns.iter().filter(|c| !c.is_alias())
    }

    /// All rules that rows age by: those of the TTL clause in its order, then those of columns.
    pub fn rules(&self) -> Vec<Rule> {
        let of_column = |c: &ColumnDef| {
            let ttl = c.ttl.clone()?;
            let action = Action::Reset { column: c.id, name: c.name.clone() };
            Some(Rule { when: ttl.when, action, fingerprint: ttl.fingerprint })
        };
        self.policy.ttl.iter().cloned().chain(self.columns.iter().filter_map(of_column)).collect()
    }

    pub fn column(&self, name: &str) -> Option<&ColumnDef> {
        self.columns.iter().find(|c| c.name == name)
    }

    /// What the log, the tail and the engine carry for a row: stored columns, then `_tp_time`. `_tp_sn` is the record's.
    pub fn row_schema(&self) -> SchemaRef {
        let mut fields: Vec<Field> = self.stored().map(ColumnDef::field).collect();
        fields.push(tp_time_field());
        Arc::new(Schema::new(fields))
    }

    /// What a part's file holds: [`Self::row_schema`], then `_tp_sn`.
    pub fn part_schema(&self) -> SchemaRef {
        let mut fields: Vec<Field> = self.stored().map(ColumnDef::field).collect();
        fields.push(tp_time_field());
        fields.push(tp_sn_field());
        Arc::new(Schema::new(fields))
    }

    /// Whether Ebb keeps it for itself.
    pub fn is_internal(&self) -> bool {
        self.database == SYSTEM_DATABASE
    }

    /// `database.name`, as messages name the stream.
    pub fn full_name(&self) -> String {
        format!("{}.{}", self.database, self.name)
    }
}

/// `_tp_time`: datetime64(3, 'UTC'), never NULL.
pub fn tp_time_field() -> Field {
    Field::new(TP_TIME, DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())), false).with_metadata(HashMap::from([
        (PARQUET_FIELD_ID_META_KEY.to_owned(), ColumnId::TP_TIME.to_string()),
        (TYPE_META_KEY.to_owned(), "datetime64(3, 'UTC')".to_owned()),
    ]))
}

/// `_tp_sn`: int64, never NULL.
pub fn tp_sn_field() -> Field {
    Field::new(TP_SN, DataType::Int64, false).with_metadata(HashMap::from([
        (PARQUET_FIELD_ID_META_KEY.to_owned(), ColumnId::TP_SN.to_string()),
        (TYPE_META_KEY.to_owned(), "int64".to_owned()),
    ]))
}

#[cfg(test)]
mod tests;
