//! Parts: immutable sorted rows of one partition, one Parquet file each.
//!
//! `meta` is what the manifest knows of a part, `key` builds object keys (nobody else does), `row_set` are sets of rows inside one,
//! `writer` encodes and stores, `reader` checks and reads, `sort` orders rows before they are written, `stats` are bounds of columns.

pub mod key;
pub mod merge;
pub mod meta;
pub mod reader;
pub mod row_map;
pub mod row_set;
pub mod sort;
pub mod stats;
pub mod writer;

pub use merge::{Merge, MergeSource, SourceBatch};
pub use meta::PartMeta;
pub use reader::PartReader;
pub use row_map::RowMap;
pub use row_set::RowSet;
pub use writer::{Encoded, PartEncoder, WriteOptions, store};
