//! Where parts lie: the stores behind disk ids, while the database runs.
//!
//! `link` is the connection to one disk beside the data directory, `store` the object store that goes over it: it refuses to touch a
//! place that is not the disk, and finds it again when it is back. `table` is all of them, `define` makes and drops disks, `policies`
//! the orders of them; `watch` looks for those that are away.

mod define;
mod disk;
mod link;
mod policies;
mod store;
mod table;
mod watch;

pub use define::{Existing, NewDisk};
pub use disk::{Disk, DiskInfo};
pub use link::Lease;
pub use table::Disks;

pub(crate) use link::Opening;
pub(crate) use policies::{checked_destinations, kept_volumes};
pub use policies::{destination, no_policy};
pub(crate) use watch::spawn;
