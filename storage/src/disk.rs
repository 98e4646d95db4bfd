//! Where bytes lie: disks, volumes of disks, policies of volumes, and the data directory itself.
//!
//! `durable_fs` makes a local folder an object store whose writes survive power loss, `s3` a bucket one that is noticed when it is away,
//! `connect` tells them apart. `device` is one disk with its `marker`; `epoch` says who writes on a remote one; `secret` is what is
//! never shown. `volume` and `policy` order disks (plain data), `space` knows what is free and who reserved it, `open` prepares the data
//! directory (FORMAT, EBB-DISK, LOCK, RESERVE).

pub mod bounded;
pub mod connect;
pub mod device;
pub mod durable_fs;
pub mod epoch;
pub mod marker;
pub mod open;
pub mod policy;
pub mod s3;
pub mod secret;
pub mod space;
pub mod volume;

pub use connect::Connect;
pub use device::{Disk, DiskDef, DiskKind, default_disk};
pub use durable_fs::DurableFs;
pub use open::DataDir;
pub use policy::StoragePolicy;
pub use secret::Secret;
pub use space::{Reservation, Space};
pub use volume::{LoadBalancing, Volume};
