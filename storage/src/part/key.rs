//! The only builder of object keys. Keys hold ids, never names, and are never reused (I2).

use crate::{
    ids::{DatabaseId, Generation, PartId, StreamId},
    part::meta::BesideName,
};
use object_store::path::Path;

/// `<database id>/parts/<stream id>`: all that one stream owns on a disk.
pub fn stream_prefix(database: &DatabaseId, stream: StreamId) -> Path {
    Path::from(format!("{database}/parts/{stream}"))
}

/// `<database id>/parts`: all parts on a disk.
pub fn parts_prefix(database: &DatabaseId) -> Path {
    Path::from(format!("{database}/parts"))
}

/// `<database id>/probe`: where it is tried whether a disk can be written.
pub fn probes_prefix(database: &DatabaseId) -> Path {
    Path::from(format!("{database}/probe"))
}

/// `<database id>/parts/<stream id>/<part id>.<generation>.parquet`
pub fn part(database: &DatabaseId, stream: StreamId, part: PartId, generation: Generation) -> Path {
    Path::from(format!("{database}/parts/{stream}/{part:020}.{generation}.parquet"))
}

/// The object of a row set that is too large for the manifest, on the data directory's disk.
pub fn beside(database: &DatabaseId, stream: StreamId, part: PartId, name: BesideName) -> Path {
    match name {
        BesideName::Deletion(n) => Path::from(format!("{database}/parts/{stream}/{part:020}.{n}.del")),
        BesideName::Expired(n) => Path::from(format!("{database}/parts/{stream}/{part:020}.{n}.exp")),
    }
}
