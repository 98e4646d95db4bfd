//! Parts: immutable sorted rows of one partition, one Parquet file each.
//!
//! `meta` is what the manifest knows of a part, `key` builds object keys (nobody else does), `row_set` are sets of rows inside one.
//! `staging` takes rows that are not in order yet, `sort` orders them before they are written, `encoding` chooses how columns are
//! encoded, `encode` writes a file, `store` makes it durable, `reader` reads it back (`remote` where there is no file), `copy` brings it
//! to another store, `recode` gives its pages another codec (`compress`), `coded` as it is coded (`dictionary` does that for one
//! column), `merge` brings sorted parts together; `value_set` is what an INDEX
//! of type set keeps, `computed` what one over an expression does.

mod coded;
mod compress;
pub mod computed;
pub mod copy;
mod dictionary;
pub mod encode;
pub mod encoding;
pub mod key;
pub mod merge;
pub mod meta;
pub mod reader;
mod recode;
mod remote;
pub mod row_map;
pub mod row_set;
pub mod sort;
pub mod staging;
pub mod stats;
pub mod store;
pub mod value_set;

pub use coded::{CodedRows, values_by_row};
pub use encode::{Encoded, PartEncoder, WriteOptions, raw_array_bytes, raw_bytes};
pub use merge::{Merge, MergeSource, SourceBatch};
pub use meta::PartMeta;
pub use reader::PartReader;
pub use row_map::{RowMap, Run};
pub use row_set::{MAX_ROWS, RowSet};
pub use staging::Staging;
