//! Types that SQL names and DataFusion does not: PostgreSQL's that are carried as text, and the catalogue's numbers.

use super::declared::{INET, PLAIN};
use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::{common::Result, logical_expr::planner::TypePlanner, sql::sqlparser::ast};
use ebb_storage::stream_def::TYPE_META_KEY;
use std::{collections::HashMap, sync::Arc};

#[derive(Debug)]
pub struct Types;

fn marked(ty: DataType, mark: &str) -> FieldRef {
    Arc::new(Field::new("", ty, true).with_metadata(HashMap::from([(TYPE_META_KEY.to_owned(), mark.to_owned())])))
}

impl TypePlanner for Types {
    fn plan_type_field(&self, ty: &ast::DataType) -> Result<Option<FieldRef>> {
        let text = |mark: &str| Some(marked(DataType::Utf8View, mark));
        Ok(match ty {
            ast::DataType::Text | ast::DataType::Varchar(None) | ast::DataType::String(None) => text(PLAIN),
            ast::DataType::Uuid => text("uuid"),
            ast::DataType::JSON | ast::DataType::JSONB => text("json"),
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
