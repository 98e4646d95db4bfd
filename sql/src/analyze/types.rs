//! Types that SQL names and DataFusion does not, or takes for something else: the language's own, PostgreSQL's that are carried as
//! text, the catalogue's numbers, and times, which are microseconds here.

use super::declared::{INET, PLAIN};
use arrow::datatypes::{DataType, Field, FieldRef, TimeUnit};
use datafusion::{
    common::Result,
    logical_expr::planner::TypePlanner,
    sql::sqlparser::ast::{self, ArrayElemTypeDef, TimezoneInfo},
};
use ebb_storage::stream_def::TYPE_META_KEY;
use std::{collections::HashMap, sync::Arc};

#[derive(Debug)]
pub struct Types {
    /// In which timestamptz is.
    pub zone: Arc<str>,
}

impl Default for Types {
    fn default() -> Self {
        Self { zone: "UTC".into() }
    }
}

fn marked(ty: DataType, mark: &str) -> FieldRef {
    Arc::new(Field::new("", ty, true).with_metadata(HashMap::from([(TYPE_META_KEY.to_owned(), mark.to_owned())])))
}

fn is_plain_text(ty: &ast::DataType) -> bool {
    matches!(ty, ast::DataType::Text | ast::DataType::Varchar(None) | ast::DataType::String(None))
}

/// Lists of texts, which no mark tells apart.
fn texts(ty: &ast::DataType) -> Option<DataType> {
    match ty {
        ast::DataType::Array(ArrayElemTypeDef::SquareBracket(inner, _)) => {
            Some(DataType::List(Arc::new(Field::new_list_field(texts(inner)?, true))))
        }
        ty => is_plain_text(ty).then_some(DataType::Utf8View),
    }
}

impl TypePlanner for Types {
    fn plan_type_field(&self, ty: &ast::DataType) -> Result<Option<FieldRef>> {
        let text = |mark: &str| Some(marked(DataType::Utf8View, mark));
        let plain = |ty: DataType| Some(Arc::new(Field::new("", ty, true)));
        Ok(match ty {
            ty if is_plain_text(ty) => text(PLAIN),
            ast::DataType::Array(_) => texts(ty).map(|ty| Arc::new(Field::new("", ty, true))),
            ast::DataType::Uuid => text("uuid"),
            ast::DataType::JSON | ast::DataType::JSONB => text("json"),
            ast::DataType::Int16 => plain(DataType::Int16),
            ast::DataType::Int32 => plain(DataType::Int32),
            ast::DataType::Int64 => plain(DataType::Int64),
            ast::DataType::UInt8 => plain(DataType::UInt8),
            ast::DataType::UInt16 => plain(DataType::UInt16),
            ast::DataType::UInt32 => plain(DataType::UInt32),
            ast::DataType::UInt64 => plain(DataType::UInt64),
            ast::DataType::Float32 => plain(DataType::Float32),
            ast::DataType::Float64 => plain(DataType::Float64),
            ast::DataType::Timestamp(None | Some(6), zone) => {
                let zone = matches!(zone, TimezoneInfo::WithTimeZone | TimezoneInfo::Tz).then(|| self.zone.clone());
                plain(DataType::Timestamp(TimeUnit::Microsecond, zone))
            }
            ast::DataType::Custom(name, modifiers) if modifiers.is_empty() => {
                let parts: Vec<String> = name.0.iter().filter_map(|p| p.as_ident()).map(|i| i.value.to_ascii_lowercase()).collect();
                let last = match parts.as_slice() {
                    [name] => name.as_str(),
                    [schema, name] if schema == crate::pg_catalog::SCHEMA => name.as_str(),
                    _ => return Ok(None),
                };
                match last {
                    "inet" | "cidr" => text(INET),
                    name @ ("uuid" | "json" | "ipv4" | "ipv6") => text(name),
                    "jsonb" => text("json"),
                    "oid" => Some(marked(DataType::Int64, "oid")),
                    _ => None,
                }
            }
            _ => None,
        })
    }
}
