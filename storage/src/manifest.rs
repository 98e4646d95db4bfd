//! The manifest: the catalogue of streams, parts and what is applied, changed by numbered commits that are created and never overwritten.
//!
//! `edit` are the changes, `state` the value they change, `apply` how (pure), `invariants` what must hold after. `codec` is the
//! envelope on disk, `image` a whole manifest as a checkpoint holds it, `commit_log` the objects, `committer` the one writer.
//! `log_rows` are the rows of the two logs until they are in their streams, `runs` the records of a line that others lie between.
//! Parts are held in persistent maps: a commit costs what it changes, not what there is.

pub mod apply;
mod aside;
pub mod codec;
pub mod commit_log;
pub mod committer;
pub mod edit;
pub mod image;
pub mod inspect;
pub mod invariants;
pub mod log_rows;
pub mod runs;
pub mod state;

pub use committer::Committer;
pub use edit::{Commit, Edit, Expect};
pub use log_rows::LogRows;
pub use state::{Manifest, PartitionState, StreamState};

#[cfg(test)]
mod tests;
