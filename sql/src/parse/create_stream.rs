//! CREATE STREAM: the column list, then clauses in any order, each once.

use super::{
    columns::Item,
    cursor::{Cursor, Parsed},
    error::{ParseError, syntax},
};
use crate::{
    nearest::did_you_mean,
    statement::{Column, CreateStream, Expression, Index, Verb},
};
use datafusion::sql::sqlparser::tokenizer::Token;

const CLAUSES: [&str; 10] =
    ["ENGINE", "PARTITION BY", "ORDER BY", "PRIMARY KEY", "SERIES KEY", "TTL", "RETENTION", "SETTINGS", "COMMENT", "AS SELECT"];

impl Cursor<'_> {
    /// After CREATE STREAM.
    pub(super) fn create_stream(&mut self) -> Parsed<Verb> {
        let if_not_exists = self.eat_if_not_exists();
        let name = self.stream_name()?;
        let mut stream = CreateStream {
            if_not_exists,
            name,
            columns: Vec::new(),
            indexes: Vec::new(),
            partition_by: None,
            order_by: None,
            primary_key: None,
            series_key: Vec::new(),
            ttl: Vec::new(),
            retention: Vec::new(),
            settings: Vec::new(),
            comment: None,
            query: None,
        };
        if self.sees_token(&Token::LParen) {
            self.create_items(&mut stream)?;
        }
        let mut said: Vec<&str> = Vec::new();
        while !self.at_end() {
            let at = self.clone();
            let clause = self.clause(&mut stream)?;
            if said.contains(&clause) {
                return Err(at.error(format!("{clause} is said twice")));
            }
            said.push(clause);
        }
        if stream.columns.is_empty() && stream.query.is_none() {
            return self.expected("the columns in brackets: CREATE STREAM s (c int, ...)");
        }
        Ok(Verb::CreateStream(Box::new(stream)))
    }

    fn create_items(&mut self, stream: &mut CreateStream) -> Parsed<()> {
        self.expect_token(&Token::LParen)?;
        loop {
            let at = self.clone();
            match self.create_item()? {
                Item::Column(column, primary_key) => {
                    once(&stream.columns, &column, |c: &Column| &c.name, "column")?;
                    if primary_key {
                        let key = at.clone().expression_within(1, "a column")?;
                        at.primary_key(stream, vec![key])?;
                    }
                    stream.columns.push(*column);
                }
                Item::Index(index) => {
                    once(&stream.indexes, &index, |i: &Index| &i.name, "index")?;
                    stream.indexes.push(index);
                }
                Item::PrimaryKey(key) => at.primary_key(stream, key)?,
            }
            if !self.eat_token(&Token::Comma) {
                return if self.eat_token(&Token::RParen) { Ok(()) } else { self.expected("',' or ')'") };
            }
        }
    }

    fn primary_key(&self, stream: &mut CreateStream, key: Vec<Expression>) -> Parsed<()> {
        if stream.primary_key.is_some() {
            return Err(self.error("PRIMARY KEY is said twice: write one PRIMARY KEY (a, b)"));
        }
        stream.primary_key = Some(key);
        Ok(())
    }

    /// Reads one clause and says which it was.
    fn clause(&mut self, stream: &mut CreateStream) -> Parsed<&'static str> {
        let at = self.clone();
        if self.eat("ENGINE") {
            self.eat_token(&Token::Eq);
            if !self.eat("STREAM") {
                return self.refuse("Ebb has one engine, Stream", "write ENGINE = Stream or leave it out");
            }
            if self.eat_token(&Token::LParen) {
                self.expect_token(&Token::RParen)?;
            }
            Ok("ENGINE")
        } else if self.eat("PARTITION BY") {
            stream.partition_by = Some(self.key("PARTITION BY")?);
            Ok("PARTITION BY")
        } else if self.eat("ORDER BY") {
            stream.order_by = Some(self.key("ORDER BY")?);
            Ok("ORDER BY")
        } else if self.eat("PRIMARY KEY") {
            let key = self.key("PRIMARY KEY")?;
            at.primary_key(stream, key)?;
            Ok("PRIMARY KEY")
        } else if self.eat("SERIES KEY") {
            stream.series_key = if self.sees_token(&Token::LParen) { self.column_names()? } else { vec![self.name("a column")?] };
            Ok("SERIES KEY")
        } else if self.eat("TTL") {
            stream.ttl = self.rules(|_| true)?;
            Ok("TTL")
        } else if self.eat("RETENTION") {
            stream.retention = self.stages(|_| true)?;
            Ok("RETENTION")
        } else if self.eat("SETTINGS") {
            stream.settings = self.settings(|_| true)?;
            Ok("SETTINGS")
        } else if self.eat("COMMENT") {
            self.eat_token(&Token::Eq);
            stream.comment = Some(self.text("a comment")?);
            Ok("COMMENT")
        } else if self.sees("AS") {
            self.advance(1);
            stream.query = Some(self.query()?);
            self.expect_end()?;
            Ok("AS SELECT")
        } else {
            self.no_clause()
        }
    }

    fn no_clause<T>(&self) -> Parsed<T> {
        let refusals = [
            ("SAMPLE BY", "Ebb does not sample; leave it out"),
            ("WITH", "write SETTINGS k = v"),
            ("INHERITS", "write the columns"),
            ("PARTITION OF", "write PARTITION BY; partitions make themselves"),
            ("TABLESPACE", "write SETTINGS storage_policy = 'p'"),
            ("ON CLUSTER", "Ebb has one server; leave it out"),
            ("CLONE", "write CREATE STREAM ... AS SELECT"),
            ("LIKE", "write the columns, as SHOW CREATE STREAM prints them"),
            ("ON COMMIT", "streams are permanent; leave it out"),
            ("USING", "Ebb has one format; leave it out"),
        ];
        if let Some((words, way_out)) = refusals.into_iter().find(|(words, _)| self.sees(words)) {
            return self.refuse(format!("{words} is not supported in CREATE STREAM"), way_out);
        }
        let near = self.word(0).map_or_else(String::new, |word| {
            let firsts = CLAUSES.iter().filter_map(|c| c.split(' ').next());
            did_you_mean(word, firsts)
        });
        self.expected(&format!("one of {}{near}", CLAUSES.join(", ")))
    }
}

fn once<T>(all: &[T], next: &T, name: impl Fn(&T) -> &crate::statement::Name, what: &str) -> Parsed<()> {
    let name_of_next = name(next);
    if all.iter().any(|one| name(one) == name_of_next) {
        let e = syntax(format!("{what} {name_of_next} is defined twice"), name_of_next.position);
        return Err(if what == "column" { ParseError { sqlstate: crate::sqlstate::DUPLICATE_COLUMN, ..e } } else { e });
    }
    Ok(())
}
