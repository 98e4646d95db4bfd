//! The manifest: the catalogue of streams, parts and what is applied, changed by numbered commits that are created and never overwritten.

pub mod edit;
