//! What queries read: the streams of one pinned cut as tables. `catalog` finds them, `table` is one, `scan` makes its plan out of
//! `parts` (Parquet), `shape` (parts of older columns) and `tail_source`; `prune` and `stats` keep from opening what need not be.
//!
//! Guards: a statement reads one cut; no statistic is called exact that is not.

pub mod catalog;
mod files;
mod hide;
mod parts;
mod prune;
mod scan;
mod shape;
mod stats;
mod table;
mod tail_source;

pub(crate) use catalog::{CATALOG, Cut, ViewCatalog};
pub(crate) use files::{FileCache, naming_damage, store_url};
pub(crate) use stats::scalar as bound_value;
pub use table::StreamTable;
