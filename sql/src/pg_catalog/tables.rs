//! The catalogue's rows.

use super::{
    names::{self, Names, OWNER, OWNER_NAME, PG_CATALOG, PUBLIC_OID},
    shape::{self, Rows},
    types::{TYPES, numeric_typmod},
};
use crate::wire::types::pg_type;
use arrow::array::RecordBatch;
use async_trait::async_trait;
use datafusion::{
    catalog::{SchemaProvider, TableProvider},
    common::ScalarValue,
    datasource::MemTable,
    error::Result,
};
use ebb_engine::settings::{SETTINGS, Scope};
use ebb_storage::{
    column_type::ColumnType,
    stream_def::{ColumnDef, DefaultKind, StreamDef},
};
use std::{fmt, sync::Arc};

pub(crate) struct PgCatalog {
    names: Arc<Names>,
}

impl PgCatalog {
    pub fn new(names: Arc<Names>) -> Self {
        Self { names }
    }
}

impl fmt::Debug for PgCatalog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PgCatalog")
    }
}

#[async_trait]
impl SchemaProvider for PgCatalog {
    fn table_names(&self) -> Vec<String> {
        shape::TABLES.iter().chain(shape::EMPTY).map(|(name, _)| (*name).to_owned()).collect()
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        let Some(columns) = shape::columns_of(name) else { return Ok(None) };
        let batch = rows(name, columns, &self.names)?;
        Ok(Some(Arc::new(MemTable::try_new(batch.schema(), vec![vec![batch]])?)))
    }

    fn table_exist(&self, name: &str) -> bool {
        shape::columns_of(name).is_some()
    }
}

fn rows(table: &str, columns: &'static str, names: &Names) -> Result<RecordBatch> {
    let mut rows = Rows::of(columns);
    match table {
        "pg_class" => each(names, |oid, s| class(&mut rows, names, oid, s))?,
        "pg_attribute" => each(names, |oid, s| columns_with_numbers(s).try_for_each(|(n, c)| attribute(&mut rows, oid, n, c)))?,
        "pg_attrdef" => each(names, |oid, s| columns_with_numbers(s).try_for_each(|(n, c)| default(&mut rows, oid, n, c)))?,
        "pg_description" => each(names, |oid, s| descriptions(&mut rows, oid, s))?,
        "pg_tables" => each(names, |_, s| {
            rows.push(&[
                ("schemaname", names.schema_name(&s.database).into()),
                ("tablename", s.name.as_str().into()),
                ("tableowner", OWNER_NAME.into()),
            ])
        })?,
        "pg_namespace" => namespaces(&mut rows, names)?,
        "pg_database" => names.databases.iter().try_for_each(|d| database(&mut rows, d))?,
        "pg_type" => types(&mut rows)?,
        "pg_roles" => rows.push(&[
            ("oid", OWNER.into()),
            ("rolname", OWNER_NAME.into()),
            ("rolsuper", true.into()),
            ("rolinherit", true.into()),
            ("rolcreaterole", true.into()),
            ("rolcreatedb", true.into()),
            ("rolcanlogin", true.into()),
            ("rolconnlimit", (-1).into()),
        ])?,
        "pg_user" => rows.push(&[
            ("usename", OWNER_NAME.into()),
            ("usesysid", OWNER.into()),
            ("usesuper", true.into()),
            ("usecreatedb", true.into()),
        ])?,
        "pg_am" => rows.push(&[("oid", 2_i64.into()), ("amname", "parts".into()), ("amhandler", "-".into()), ("amtype", "t".into())])?,
        "pg_tablespace" => rows.push(&[("oid", 1663_i64.into()), ("spcname", "pg_default".into()), ("spcowner", OWNER.into())])?,
        "pg_settings" => settings(&mut rows, names)?,
        _ => {}
    }
    rows.finish()
}

fn each(names: &Names, mut f: impl FnMut(i64, &StreamDef) -> Result<()>) -> Result<()> {
    let mut streams: Vec<_> = names.streams.iter().collect();
    streams.sort_by_key(|(oid, _)| **oid);
    streams.into_iter().try_for_each(|(oid, s)| f(*oid, s))
}

fn columns_with_numbers(s: &StreamDef) -> impl Iterator<Item = (i16, &ColumnDef)> {
    (1_i16..).zip(&s.columns)
}

fn class(rows: &mut Rows, names: &Names, oid: i64, s: &StreamDef) -> Result<()> {
    rows.push(&[
        ("oid", oid.into()),
        ("relname", s.name.as_str().into()),
        ("relnamespace", names.schema_oid(&s.database).into()),
        ("relowner", OWNER.into()),
        ("relam", 2_i64.into()),
        ("relfilenode", oid.into()),
        ("reltuples", (-1.0_f32).into()),
        ("relpersistence", "p".into()),
        ("relkind", "r".into()),
        ("relnatts", i16::try_from(s.columns.len()).unwrap_or(i16::MAX).into()),
        ("relispopulated", true.into()),
        ("relreplident", "d".into()),
    ])
}

fn typmod(t: &ColumnType) -> i64 {
    match t {
        ColumnType::Decimal(p, s) => numeric_typmod(*p, *s),
        ColumnType::LowCardinality(inner) | ColumnType::Array(inner, _) => typmod(inner),
        _ => -1,
    }
}

fn attribute(rows: &mut Rows, oid: i64, number: i16, c: &ColumnDef) -> Result<()> {
    let computed = c.default.as_ref().is_some_and(|d| d.kind != DefaultKind::Default);
    let ty = i64::from(pg_type(&c.field()).oid());
    rows.push(&[
        ("attrelid", oid.into()),
        ("attname", c.name.as_str().into()),
        ("atttypid", ty.into()),
        ("attstattarget", (-1).into()),
        ("attlen", TYPES.iter().find(|t| t.oid == ty).map_or(-1_i16, |t| t.len).into()),
        ("attnum", number.into()),
        ("attndims", i32::from(matches!(c.ty, ColumnType::Array(..))).into()),
        ("attcacheoff", (-1).into()),
        ("atttypmod", i32::try_from(typmod(&c.ty)).unwrap_or(-1).into()),
        ("attalign", "i".into()),
        ("attstorage", "p".into()),
        ("attnotnull", (!c.nullable).into()),
        ("atthasdef", c.default.is_some().into()),
        ("attgenerated", if computed { "s" } else { "" }.into()),
        ("attislocal", true.into()),
    ])
}

fn default(rows: &mut Rows, oid: i64, number: i16, c: &ColumnDef) -> Result<()> {
    let Some(default) = &c.default else { return Ok(()) };
    // Streams with their columns stay far below the numbers of other things.
    let own = 0x2000_0000 | (oid & 0xffff) << 12 | i64::from(number & 0xfff);
    rows.push(&[("oid", own.into()), ("adrelid", oid.into()), ("adnum", number.into()), ("adbin", default.expr.as_str().into())])
}

fn descriptions(rows: &mut Rows, oid: i64, s: &StreamDef) -> Result<()> {
    let of_columns = columns_with_numbers(s).map(|(n, c)| (i32::from(n), c.comment.as_str()));
    for (number, text) in std::iter::once((0, s.comment.as_str())).chain(of_columns).filter(|(_, text)| !text.is_empty()) {
        rows.push(&[("objoid", oid.into()), ("classoid", 1259_i64.into()), ("objsubid", number.into()), ("description", text.into())])?;
    }
    Ok(())
}

fn namespaces(rows: &mut Rows, names: &Names) -> Result<()> {
    let fixed = [(PG_CATALOG, super::SCHEMA), (13_000, "information_schema"), (PUBLIC_OID, "public")];
    let others = names.databases.iter().filter(|d| **d != names.database).map(|d| (names::database_oid(d), d.as_str()));
    for (oid, name) in fixed.into_iter().chain(others) {
        rows.push(&[("oid", oid.into()), ("nspname", name.into()), ("nspowner", OWNER.into())])?;
    }
    Ok(())
}

fn database(rows: &mut Rows, name: &str) -> Result<()> {
    rows.push(&[
        ("oid", names::database_oid(name).into()),
        ("datname", name.into()),
        ("datdba", OWNER.into()),
        ("encoding", 6.into()),
        ("datlocprovider", "c".into()),
        ("datallowconn", true.into()),
        ("datconnlimit", (-1).into()),
        ("dattablespace", 1663_i64.into()),
        ("datcollate", "C".into()),
        ("datctype", "C.UTF-8".into()),
    ])
}

fn types(rows: &mut Rows) -> Result<()> {
    for t in TYPES {
        let fixed = |name: String, oid: i64, element: i64, array: i64, len: i16, category: &str| -> Vec<(&str, ScalarValue)> {
            let function = |suffix: &str| ScalarValue::from(format!("{}{suffix}", t.name));
            vec![
                ("oid", oid.into()),
                ("typname", name.into()),
                ("typnamespace", PG_CATALOG.into()),
                ("typowner", OWNER.into()),
                ("typlen", len.into()),
                ("typbyval", (len > 0 && len <= 8).into()),
                ("typtype", if category == "P" { "p" } else { "b" }.into()),
                ("typcategory", category.into()),
                ("typisdefined", true.into()),
                ("typdelim", ",".into()),
                ("typelem", element.into()),
                ("typarray", array.into()),
                ("typinput", if element == 0 { function("in") } else { "array_in".into() }),
                ("typoutput", if element == 0 { function("out") } else { "array_out".into() }),
                ("typreceive", if element == 0 { function("recv") } else { "array_recv".into() }),
                ("typsend", if element == 0 { function("send") } else { "array_send".into() }),
                ("typalign", "i".into()),
                ("typstorage", "p".into()),
                ("typtypmod", (-1).into()),
            ]
        };
        rows.push(&fixed(t.name.to_owned(), t.oid, 0, t.array, t.len, t.category))?;
        if t.array != 0 {
            rows.push(&fixed(format!("_{}", t.name), t.array, t.oid, 0, -1, "A"))?;
        }
    }
    Ok(())
}

fn settings(rows: &mut Rows, names: &Names) -> Result<()> {
    for s in SETTINGS.iter().filter(|s| s.scope == Scope::Session) {
        let value = names.settings.get(s.name).cloned().unwrap_or_default();
        let default = s.default_text().unwrap_or_default();
        rows.push(&[
            ("name", s.name.into()),
            ("setting", value.into()),
            ("category", "Session".into()),
            ("short_desc", s.description.into()),
            ("context", "user".into()),
            ("vartype", "string".into()),
            ("source", "default".into()),
            ("boot_val", default.clone().into()),
            ("reset_val", default.into()),
        ])?;
    }
    Ok(())
}
