//! `pg_catalog`: what PostgreSQL's tools and drivers ask of a server, answered from the manifest at each reading.
//!
//! The connection's database is the schema `public`, the other databases are schemas beside it. Numbers of relations follow from the
//! ids of streams, so that they survive restarts and renames. `shape` has the columns, `tables` the rows, `types` the types,
//! `functions` the functions; `rewrite` turns what only PostgreSQL writes into what the planner knows, `empty` drops subqueries over
//! tables that never have rows, whatever they compute. Nothing here ever changes anything.

mod asyncpg;
mod empty;
mod functions;
mod names;
mod rewrite;
mod shape;
mod tables;
#[cfg(test)]
mod tests;
mod types;

pub(crate) use functions::register;
pub(crate) use names::Names;
pub(crate) use rewrite::{SetConfig, rewrite, set_config};
pub(crate) use tables::PgCatalog;

pub(crate) const SCHEMA: &str = "pg_catalog";
