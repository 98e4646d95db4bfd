//! The history of a stream: tags and branches, moving main about in it, forgetting what is old, and those who read along.
//!
//! `named` makes, changes and drops refs, `moving` is rollback, fast-forward and cherry-pick, `expire` forgets, on request and by itself
//! (`pace` says how often it is looked at), `readers` and `leases` are who holds a position, `held` what a ref costs.
//! What may be done and what follows is for `ebb_storage::refs` to say, purely; here it is made true. Each change of a stream's refs or
//! lineages holds the stream's change lock, so that what was looked at still holds when it is written.

pub(crate) mod expire;
mod held;
mod leases;
mod moving;
mod named;
pub(crate) mod pace;
mod readers;

pub use expire::{Expired, Overrides};
pub use held::RefInfo;
pub(crate) use leases::Leases;
pub use leases::ReadLease;
pub use moving::{Changed, RollbackTo};
pub use named::{NewRef, RefMade, RefMode};
pub use readers::{NewReader, ReaderFrom, ReaderInfo};

pub(crate) use expire::{needs_of, run_due, run_due_unless_changing, whole};
