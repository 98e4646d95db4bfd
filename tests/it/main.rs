//! Tests that link the whole of Ebb, in one binary since linking is the slow part: scripts of statements with their answers, what
//! scripts cannot say, and taste.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod copying;
mod docs;
mod history;
mod importing;
mod indexes;
mod killed;
mod memory;
mod program;
mod script;
mod scripts;
mod session;
mod simulate;
mod support;
mod tidy;
