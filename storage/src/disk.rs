//! Where bytes lie: disks, volumes of disks, policies of volumes, and the data directory itself.
//!
//! `durable_fs` makes a local folder an object store whose writes survive power loss; `disk` is one object store with its marker,
//! `volume` and `policy` order disks (plain data), `space` knows what is free and who reserved it, `open` prepares the data directory
//! (FORMAT, LOCK, RESERVE).

pub mod device;
pub mod durable_fs;
pub mod open;
pub mod policy;
pub mod space;
pub mod volume;

pub use device::{Disk, DiskDef, DiskKind};
pub use durable_fs::DurableFs;
pub use open::DataDir;
pub use policy::StoragePolicy;
pub use space::{Reservation, Space};
pub use volume::{LoadBalancing, Volume};
