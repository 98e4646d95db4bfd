//! What the grammar promises. `corpus.sql` is printed, read back and damaged here.

mod copy;
mod damage;
mod definitions;
mod refusals;
mod statements;

use super::{ParseError, parse};
use crate::statement::{CreateStream, Statement, Verb};

const CORPUS: &str = include_str!("tests/corpus.sql");

fn one(sql: &str) -> Statement {
    let mut all = parse(sql).unwrap_or_else(|e| panic!("{sql}\n{e} at {:?}", e.position));
    assert_eq!(all.len(), 1, "{sql}");
    all.remove(0)
}

fn create(sql: &str) -> CreateStream {
    match one(sql).verb {
        Verb::CreateStream(create) => *create,
        other => panic!("{sql} is {other:?}"),
    }
}

fn wrong(sql: &str) -> ParseError {
    match parse(sql) {
        Err(e) => e,
        Ok(all) => panic!("{sql} parses to {all:?}"),
    }
}

/// The error's message and hint hold all of `parts`.
#[track_caller]
fn says(sql: &str, parts: &[&str]) -> ParseError {
    let e = wrong(sql);
    for part in parts {
        assert!(e.to_string().contains(part), "{sql}\nsays: {e}\nnot: {part}");
    }
    e
}
