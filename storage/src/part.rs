//! Parts: immutable sorted rows of one partition, one Parquet file each.
//!
//! `meta` is what the manifest knows of a part, `key` builds object keys (nobody else does), `row_set` are sets of rows inside one.

pub mod key;
pub mod meta;
pub mod row_set;
pub mod stats;

pub use meta::PartMeta;
pub use row_set::RowSet;
