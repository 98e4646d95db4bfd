//! What stands in the brackets of CREATE STREAM: columns, indexes, a primary key. ALTER shares the column.

use super::cursor::{Cursor, Parsed};
use crate::{
    nearest::did_you_mean,
    statement::{Column, Default, Expression, Index, ModifyColumn},
};
use datafusion::sql::sqlparser::tokenizer::Token;
use ebb_storage::{
    codec::ColumnCodec,
    stream_def::{DefaultKind, IndexKind},
};

/// False positives of a bloom filter where none are said: 2.5 in a hundred.
const DEFAULT_FALSE_POSITIVES_PPM: u32 = 25_000;
const INDEX_TYPES: [&str; 3] = ["minmax", "bloom_filter", "set"];
const OPTIONS: [&str; 9] = ["NOT NULL", "NULL", "DEFAULT", "MATERIALIZED", "ALIAS", "COMMENT", "CODEC", "TTL", "PRIMARY KEY"];

pub(super) enum Item {
    /// And whether PRIMARY KEY was written behind it.
    Column(Box<Column>, bool),
    Index(Index),
    PrimaryKey(Vec<Expression>),
}

/// What may follow a column's type, in any order, each once.
struct Options {
    nullable: Option<bool>,
    default: Option<Default>,
    comment: Option<String>,
    codec: Option<ColumnCodec>,
    ttl: Option<Expression>,
    primary_key: bool,
}

impl Options {
    const NONE: Self = Self { nullable: None, default: None, comment: None, codec: None, ttl: None, primary_key: false };
}

impl Cursor<'_> {
    pub(super) fn create_item(&mut self) -> Parsed<Item> {
        if self.sees("PRIMARY KEY") {
            self.advance(2);
            return self.key("PRIMARY KEY").map(Item::PrimaryKey);
        }
        if self.sees("INDEX")
            && self.find(|n, _| n > 2 && n < self.item_len() && self.is_word(n, "TYPE")).is_some_and(|n| self.is_word(n, "TYPE"))
        {
            self.advance(1);
            return self.index().map(Item::Index);
        }
        for (words, way_out) in [
            ("CONSTRAINT", "Ebb checks no constraints; leave it out"),
            ("UNIQUE", "Ebb keeps equal rows; OPTIMIZE STREAM ... DEDUPLICATE removes them"),
            ("CHECK (", "Ebb checks no constraints; leave it out"),
            ("FOREIGN KEY", "Ebb checks no constraints; leave it out"),
            ("PROJECTION", "write CREATE ROLLUP r ON s AS SELECT ..."),
            ("LIKE", "write the columns, as SHOW CREATE STREAM prints them"),
        ] {
            let seen = match words.strip_suffix(" (") {
                Some(word) => self.sees(word) && self.nth(1) == Some(&Token::LParen),
                None => self.sees(words) && (words != "UNIQUE" && words != "PROJECTION" || !self.is_type(1)),
            };
            if seen {
                return self.refuse(format!("{} is not supported", words.trim_end_matches(" (")), way_out);
            }
        }
        let (column, primary_key) = self.column(true)?;
        Ok(Item::Column(Box::new(column), primary_key))
    }

    /// Whether a type stands `n` tokens ahead: then the word before it names a column.
    fn is_type(&self, n: usize) -> bool {
        let mut ahead = self.clone();
        ahead.advance(n);
        ahead.column_type().is_ok()
    }

    /// `name type options...`, and whether PRIMARY KEY was among them.
    pub(super) fn column(&mut self, primary_key: bool) -> Parsed<(Column, bool)> {
        let name = self.name("a column")?;
        if self.at_end() || self.sees_token(&Token::Comma) || self.sees_token(&Token::RParen) || self.sees_one_of(&OPTIONS) {
            return self.expected(&format!("the type of column {name}"));
        }
        let at = self.clone();
        let (ty, null) = self.column_type()?;
        let options = self.column_options(primary_key)?;
        let nullable = at.nullability(null, options.nullable)?;
        let Options { default, comment, codec, ttl, .. } = options;
        let column = Column { name, ty, nullable: nullable.unwrap_or(false), default, comment, codec, ttl };
        Ok((column, options.primary_key))
    }

    /// After MODIFY COLUMN: `name [type] options...`
    pub(super) fn modify_column(&mut self) -> Parsed<ModifyColumn> {
        let name = self.name("a column")?;
        let at = self.clone();
        // The options' words are no types, so anything else is one or is wrong.
        let typed =
            if self.at_end() || self.sees_token(&Token::Comma) || self.sees_one_of(&OPTIONS) { None } else { Some(self.column_type()?) };
        let options = self.column_options(false)?;
        let (ty, null) = typed.map_or((None, false), |(ty, null)| (Some(ty), null));
        let nullable = at.nullability(null, options.nullable)?;
        let Options { default, comment, codec, ttl, .. } = options;
        let modify = ModifyColumn { name, ty, nullable, default, comment, codec, ttl };
        let nothing = modify.ty.is_none() && modify.nullable.is_none() && modify.default.is_none();
        if nothing && modify.comment.is_none() && modify.codec.is_none() && modify.ttl.is_none() {
            return Err(at.error(format!("MODIFY COLUMN {} changes nothing: name a type, CODEC, TTL, DEFAULT or COMMENT", modify.name)));
        }
        Ok(modify)
    }

    fn nullability(&self, by_type: bool, said: Option<bool>) -> Parsed<Option<bool>> {
        match (by_type, said) {
            (true, Some(false)) => Err(self.error("nullable(...) and NOT NULL contradict each other")),
            (true, _) => Ok(Some(true)),
            (false, said) => Ok(said),
        }
    }

    fn column_options(&mut self, primary_key: bool) -> Parsed<Options> {
        let mut options = Options::NONE;
        loop {
            let at = self.clone();
            let twice = |seen: bool, what: &str| if seen { Err(at.error(format!("{what} is said twice"))) } else { Ok(()) };
            if self.eat("NOT NULL") {
                twice(options.nullable.is_some(), "NULL or NOT NULL")?;
                options.nullable = Some(false);
            } else if self.eat("NULL") {
                twice(options.nullable.is_some(), "NULL or NOT NULL")?;
                options.nullable = Some(true);
            } else if let Some(kind) = self.default_kind() {
                twice(options.default.is_some(), "DEFAULT, MATERIALIZED or ALIAS")?;
                options.default = Some(Default { kind, expr: self.option_expression()? });
            } else if self.eat("COMMENT") {
                twice(options.comment.is_some(), "COMMENT")?;
                options.comment = Some(self.text("a comment")?);
            } else if self.eat("CODEC") {
                twice(options.codec.is_some(), "CODEC")?;
                options.codec = Some(self.column_codec()?);
            } else if self.eat("TTL") {
                twice(options.ttl.is_some(), "TTL")?;
                options.ttl = Some(self.column_ttl()?);
            } else if primary_key && self.eat("PRIMARY KEY") {
                twice(options.primary_key, "PRIMARY KEY")?;
                options.primary_key = true;
            } else {
                self.refuse_option()?;
                return Ok(options);
            }
        }
    }

    fn default_kind(&mut self) -> Option<DefaultKind> {
        let kinds = [("DEFAULT", DefaultKind::Default), ("MATERIALIZED", DefaultKind::Materialized), ("ALIAS", DefaultKind::Alias)];
        kinds.into_iter().find(|(word, _)| self.eat(word)).map(|(_, kind)| kind)
    }

    fn refuse_option(&self) -> Parsed<()> {
        let refusals = [
            ("UNIQUE", "Ebb keeps equal rows; OPTIMIZE STREAM ... DEDUPLICATE removes them"),
            ("CHECK", "Ebb checks no constraints; leave it out"),
            ("REFERENCES", "Ebb checks no constraints; leave it out"),
            ("CONSTRAINT", "Ebb checks no constraints; leave it out"),
            ("GENERATED", "write MATERIALIZED e for a computed column"),
            ("EPHEMERAL", "write DEFAULT e or MATERIALIZED e"),
            ("COLLATE", "texts are compared by their bytes"),
            ("FIRST", "columns are added at the end"),
            ("AFTER", "columns are added at the end"),
            ("SETTINGS", "only the stream has settings"),
        ];
        if let Some((word, way_out)) = refusals.into_iter().find(|(word, _)| self.sees(word)) {
            return self.refuse(format!("{word} is not supported for a column"), way_out);
        }
        if self.at_end() || self.sees_token(&Token::Comma) || self.sees_token(&Token::RParen) {
            return Ok(());
        }
        let near = self.word(0).map_or_else(String::new, |word| did_you_mean(word, OPTIONS));
        self.expected(&format!("',' or one of {}{near}", OPTIONS.join(", ")))
    }

    /// sqlparser would take the NOT of a following NOT NULL for its own, so that is cut off first.
    fn option_expression(&mut self) -> Parsed<Expression> {
        let item = self.first(self.item_len());
        let not_null = |n: usize| item.is_word(n, "NOT") && item.is_word(n + 1, "NULL") && n > 0 && !item.is_word(n - 1, "IS");
        let len = item.find(|n, _| not_null(n)).unwrap_or_else(|| item.rest().len());
        self.expression_within(len, "an expression")
    }

    /// `(e, ...)`, `e` or `tuple()`, which is empty.
    pub(super) fn key(&mut self, clause: &str) -> Parsed<Vec<Expression>> {
        if self.sees("tuple") && self.nth(1) == Some(&Token::LParen) {
            self.advance(1);
            if self.nth(1) == Some(&Token::RParen) {
                self.advance(2);
                return Ok(Vec::new());
            }
            return self.parenthesized(|c| c.list(|c| c.key_expression(clause)));
        }
        // `(a, b)` is a list and `(a) + 1` an expression: what follows the brackets decides.
        if self.sees_token(&Token::LParen) {
            let mut inside = self.clone();
            inside.advance(1);
            let close = inside.level_len();
            let mut behind = inside.clone();
            behind.advance(close + 1);
            let goes_on = behind.peek().is_some_and(|t| !matches!(t, Token::Word(_) | Token::Comma | Token::RParen));
            let list = inside.item_len() < close;
            if list || !goes_on {
                if close == 0 {
                    return self.expected(&format!("an expression of {clause}, or tuple()"));
                }
                return self.parenthesized(|c| c.list(|c| c.key_expression(clause)));
            }
        }
        let one = self.key_expression(clause)?;
        if self.sees_token(&Token::Comma) {
            let near = self.clone();
            return Err(near.error(format!("several expressions of {clause} stand in brackets: {clause} (a, b)")));
        }
        Ok(vec![one])
    }

    fn key_expression(&mut self, clause: &str) -> Parsed<Expression> {
        let expr = self.expression(&format!("an expression of {clause}"))?;
        if self.eat("ASC") || !self.sees_one_of(&["DESC", "NULLS"]) {
            return Ok(expr);
        }
        self.refuse(format!("{clause} sorts ascending, NULLs first"), "leave DESC and NULLS out; queries may ORDER BY as they like")
    }

    /// After INDEX.
    fn index(&mut self) -> Parsed<Index> {
        let name = self.name("an index")?;
        // A column may be called type too.
        let known = |n: usize| INDEX_TYPES.iter().any(|ty| self.is_word(n + 1, ty));
        let of_known = self.find(|n, _| self.is_word(n, "TYPE") && known(n)).filter(|n| self.is_word(*n, "TYPE"));
        let len = of_known.or_else(|| self.find(|n, _| self.is_word(n, "TYPE"))).unwrap_or(0);
        let item = self.first(len);
        let expr = self.expression_within(len, "the index's expression")?;
        if self.at < item.at + len {
            return self.expected("TYPE");
        }
        self.expect("TYPE")?;
        let at = self.clone();
        let Some(kind) = self.word(0) else { return self.expected("minmax, bloom_filter(p) or set(n)") };
        self.advance(1);
        let brackets = self.sees_token(&Token::LParen);
        let kind = match kind.to_lowercase().as_str() {
            "minmax" if !brackets => IndexKind::MinMax,
            "bloom_filter" if !brackets => IndexKind::BloomFilter(DEFAULT_FALSE_POSITIVES_PPM),
            "bloom_filter" => match self.parenthesized(|c| Ok(c.eat_number()))?.and_then(|p| p.parse::<f64>().ok()) {
                Some(p) if (0.000_001..=0.5).contains(&p) => IndexKind::BloomFilter((p * 1_000_000.0).round() as u32),
                _ => return Err(at.error("bloom_filter(p): p is the share of false positives, 0.000001 to 0.5")),
            },
            "set" if brackets => IndexKind::Set(self.parenthesized(|c| c.uint("a number of values"))?),
            "set" => return Err(at.error("set needs how many values it may hold: set(100)")),
            "minmax" => return Err(at.error("minmax takes no number")),
            other => {
                let near = did_you_mean(other, INDEX_TYPES);
                return Err(at.error(format!("unknown index type '{other}': types are minmax, bloom_filter(p), set(n){near}")));
            }
        };
        let granularity = if self.eat("GRANULARITY") { self.uint("a granularity")? } else { 1 };
        if granularity == 0 {
            return Err(at.error("GRANULARITY is at least 1"));
        }
        Ok(Index { name, expr, kind, granularity })
    }
}
