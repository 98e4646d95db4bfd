//! Damaged texts: the parser answers, it never panics, and what it accepts prints to an equal statement.

use super::CORPUS;
use crate::{dialect::StreamDialect, parse::parse};
use datafusion::sql::sqlparser::tokenizer::Tokenizer;
use proptest::prelude::*;

fn statements() -> Vec<String> {
    parse(CORPUS).unwrap().iter().map(|s| s.source.text().to_owned()).collect()
}

fn tokens(sql: &str) -> Vec<String> {
    Tokenizer::new(&StreamDialect, sql).tokenize().unwrap().iter().map(ToString::to_string).collect()
}

#[track_caller]
fn survives(sql: &str) {
    match parse(sql) {
        Err(e) => {
            assert!(!e.message.is_empty());
            assert!(e.position.is_none_or(|p| (1..=sql.chars().count() + 1).contains(&p)), "{sql}: {e:?}");
        }
        Ok(all) => {
            for statement in all {
                let printed = statement.to_string();
                let again = parse(&printed).unwrap_or_else(|e| panic!("{sql}\nprints as {printed}\n{e}"));
                assert_eq!(again, [statement], "{sql}\nprints as {printed}");
            }
        }
    }
}

/// Every statement cut short after each of its tokens, and with each one missing or twice.
#[test]
fn tokens_missing_or_twice() {
    for sql in statements() {
        let tokens = tokens(&sql);
        for i in 0..tokens.len() {
            survives(&tokens[..i].concat());
            let missing: Vec<&str> = tokens.iter().enumerate().filter(|(n, _)| *n != i).map(|(_, t)| t.as_str()).collect();
            survives(&missing.concat());
            let mut twice = tokens.clone();
            twice.insert(i, format!("{} ", tokens[i]));
            survives(&twice.concat());
        }
    }
}

#[derive(Debug, Clone)]
enum Damage {
    Cut(usize),
    Flip(usize, u8),
    Insert(usize, char),
    Swap(usize, usize),
    Splice(usize, usize, usize),
}

fn damage() -> impl Strategy<Value = Damage> {
    prop_oneof![
        any::<usize>().prop_map(Damage::Cut),
        (any::<usize>(), any::<u8>()).prop_map(|(i, b)| Damage::Flip(i, b)),
        (any::<usize>(), prop_oneof![any::<char>(), prop::sample::select("()[]{},;'\"`$\\.-*:=<>\0ä\n 0".chars().collect::<Vec<_>>())])
            .prop_map(|(i, c)| Damage::Insert(i, c)),
        (any::<usize>(), any::<usize>()).prop_map(|(i, j)| Damage::Swap(i, j)),
        (any::<usize>(), any::<usize>(), any::<usize>()).prop_map(|(s, i, j)| Damage::Splice(s, i, j)),
    ]
}

fn apply(sql: String, damage: &Damage, all: &[String]) -> String {
    if sql.is_empty() {
        return sql;
    }
    match damage {
        Damage::Cut(i) => sql.chars().take(i % sql.chars().count()).collect(),
        Damage::Flip(i, b) => {
            let mut bytes = sql.into_bytes();
            let i = i % bytes.len();
            bytes[i] ^= b;
            String::from_utf8_lossy(&bytes).into_owned()
        }
        Damage::Insert(i, c) => {
            let mut chars: Vec<char> = sql.chars().collect();
            chars.insert(i % chars.len(), *c);
            chars.into_iter().collect()
        }
        Damage::Swap(i, j) => {
            let Ok(mut tokens) = Tokenizer::new(&StreamDialect, &sql).tokenize() else { return sql };
            if tokens.is_empty() {
                return sql;
            }
            let len = tokens.len();
            tokens.swap(i % len, j % len);
            tokens.iter().map(ToString::to_string).collect()
        }
        Damage::Splice(s, i, j) => {
            let other = &all[s % all.len()];
            let (i, j) = (i % sql.chars().count(), j % other.chars().count());
            sql.chars().take(i).chain(other.chars().skip(j)).collect()
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn damaged_statements_survive(which in any::<usize>(), damages in prop::collection::vec(damage(), 1..4)) {
        let all = statements_once();
        let sql = damages.iter().fold(all[which % all.len()].clone(), |sql, damage| apply(sql, damage, all));
        survives(&sql);
    }

    #[test]
    fn any_text_survives(sql in "\\PC{0,80}") {
        survives(&sql);
    }
}

fn statements_once() -> &'static [String] {
    static ALL: std::sync::OnceLock<Vec<String>> = std::sync::OnceLock::new();
    ALL.get_or_init(statements)
}
