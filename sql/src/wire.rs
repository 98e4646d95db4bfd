//! The PostgreSQL wire: any client speaks to a session through here, with the same results as the Rust API.
//!
//! `server` listens, `talk` has one connection, `inbox` looks at what comes, `connection` is what one client has, `startup` greets it, `simple` and `extended` are the two query protocols,
//! `portals` says how far those of the second were run,
//! `copy` moves rows in bulk, `respond` sends answers, `cancel` stops a statement from outside. `types`, `encode` and `params` turn
//! values into bytes and back. Results are streamed: memory does not follow their size.

mod cancel;
mod connection;
mod copy;
pub mod encode;
mod extended;
mod inbox;
pub mod params;
mod portals;
mod respond;
mod server;
mod simple;
mod startup;
mod talk;
pub mod types;

pub use server::{Server, serve};
