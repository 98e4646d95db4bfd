//! How asyncpg asks for types that it does not know, such as arrays: by a recursive query over correlated subqueries, which the planner
//! cannot take apart. There are no domains, ranges or composite types here, so a plain query has the same answer.

use crate::{parse, statement::Verb};
use datafusion::sql::sqlparser::ast::Query;

/// The name by which its query is known.
pub const CTE: &str = "typeinfo_tree";

const LOOKUP: &str = "SELECT t.oid AS oid, ns.nspname AS ns, t.typname AS name, t.typtype AS kind, NULL::oid AS basetype, \
    t.typelem AS elemtype, elem_t.typdelim AS elemdelim, NULL::oid AS range_subtype, NULL::oid[] AS attrtypoids, \
    NULL::text[] AS attrnames, 0::int4 AS depth, NULL::text AS basetype_name, format_type(t.typelem, NULL) AS elemtype_name, \
    NULL::text AS range_subtype_name \
    FROM pg_catalog.pg_type AS t INNER JOIN pg_catalog.pg_namespace ns ON ns.oid = t.typnamespace \
    LEFT JOIN pg_catalog.pg_type elem_t ON t.typelem != 0 AND t.typelem = elem_t.oid \
    WHERE t.oid = any($1::oid[])";

/// The query that is answered instead; `None` is a defect, and the client's own is tried.
pub fn lookup() -> Option<Query> {
    match parse::parse(LOOKUP).ok()?.pop()?.verb {
        Verb::Query(query) => Some(*query.ast),
        _ => None,
    }
}
