//! What queries read: the streams of one pinned cut as tables. `catalog` finds them, `table` is one, `scan` makes its plan out of
//! `parts` (Parquet), `shape` (parts of older columns) and `tail_source`; `prune`, `stats` and `bounds` keep from opening what need not be, `cut` and `hide` leave out rows.
//!
//! Guards: a statement reads one cut; no statistic is called exact that is not.

mod bounds;
pub mod catalog;
mod changes;
mod cut;
mod files;
mod hide;
mod parts;
mod prune;
mod scan;
mod shape;
mod stats;
mod table;
mod tail_source;

pub(crate) use bounds::AnswerFromBounds;
pub(crate) use catalog::{CATALOG, Cut, ViewCatalog};
pub(crate) use changes::{Change, ChangesTable};
pub(crate) use files::{FileCache, naming_damage, store_url};
pub(crate) use prune::{Skip, skip, unqualified};
pub(crate) use stats::scalar as bound_value;
pub use table::StreamTable;
pub(crate) use table::query_schema;
