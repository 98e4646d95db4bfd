//! Ebb.
