//! The memory of queries: one pool for all of them, and what puts into it what DataFusion does not count.
//!
//! `pool` shares the limit out, `growth` counts the values of functions that make much of little, `held` the rows that aggregates keep, `compact` keeps
//! batches from holding what they do not show,
//! `tuning` fits DataFusion's options to the limit, `spill` is the folder for what is written aside.

mod compact;
pub(crate) mod growth;
pub(crate) mod held;
mod pool;
mod spill;
mod tuning;

pub(crate) use compact::Compacting;
pub(crate) use pool::Pool;
pub(crate) use spill::emptied;
pub(crate) use tuning::{fit, small_batches};

#[cfg(test)]
mod tests;
