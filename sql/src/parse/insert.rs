//! INSERT and DELETE. VALUES are read row by row: plain constants need no parser of their own.

use super::cursor::{Cursor, Parsed};
use crate::statement::{Delete, Insert, InsertRows, Query, Verb};
use datafusion::sql::sqlparser::{
    ast::{Expr, UnaryOperator, Value, ValueWithSpan},
    tokenizer::{Token, TokenWithSpan},
};

impl Cursor<'_> {
    /// After INSERT.
    pub(super) fn insert(&mut self) -> Parsed<Verb> {
        for word in ["OR", "IGNORE", "OVERWRITE"] {
            if self.sees(word) {
                return self.refuse(format!("INSERT {} is not supported", word), "streams keep every row; write INSERT INTO");
            }
        }
        self.expect("INTO")?;
        // TABLE and STREAM may also be the stream's name.
        if matches!(self.nth(1), Some(Token::Word(_))) && !self.sees_insert_source(1) {
            self.eat_stream_word();
        }
        if self.sees("FUNCTION") && matches!(self.nth(1), Some(Token::Word(_))) {
            return self.refuse("INSERT INTO FUNCTION is not supported", "write COPY (query) TO STDOUT");
        }
        let into = self.stream_name()?;
        if self.eat("AS") {
            self.name("an alias")?;
        }
        let query_in_brackets = self.sees_token(&Token::LParen) && self.opens_query();
        let columns = if self.sees_token(&Token::LParen) && !query_in_brackets { Some(self.column_names()?) } else { None };
        for (word, way_out) in [
            ("PARTITION", "leave it out; rows find their partition"),
            ("OVERRIDING", "leave it out"),
            ("SETTINGS", "write SET name = value before it"),
            ("FORMAT", "write COPY s FROM STDIN WITH (FORMAT csv)"),
            ("SET", "write INSERT INTO s (c) VALUES (v)"),
            ("FROM", "write COPY s FROM STDIN"),
        ] {
            if self.sees(word) {
                return self.refuse(format!("{word} is not supported in INSERT"), way_out);
            }
        }
        let rows = if self.eat("DEFAULT VALUES") {
            InsertRows::Default
        } else if self.sees("VALUES") {
            self.values()?
        } else if self.sees_one_of(&["SELECT", "WITH", "TABLE"]) || self.sees_token(&Token::LParen) {
            InsertRows::Query(self.insert_query()?)
        } else {
            return self.expected("VALUES or SELECT");
        };
        self.refuse_after_insert()?;
        Ok(Verb::Insert(Insert { into, columns, rows }))
    }

    fn sees_insert_source(&self, n: usize) -> bool {
        ["VALUES", "SELECT", "WITH", "DEFAULT"].iter().any(|w| self.is_word(n, w))
    }

    /// Whether the bracket that is next opens a query.
    fn opens_query(&self) -> bool {
        let mut n = 0;
        while self.nth(n) == Some(&Token::LParen) {
            n += 1;
        }
        ["SELECT", "WITH", "VALUES"].iter().any(|w| self.is_word(n, w))
    }

    /// Up to what must not follow: a query would take ON for an alias.
    fn insert_query(&mut self) -> Parsed<Query> {
        let ends = |n: usize| {
            self.is_word(n, "RETURNING") || self.is_word(n, "ON") && (self.is_word(n + 1, "CONFLICT") || self.is_word(n + 1, "DUPLICATE"))
        };
        let len = self.find(|n, _| ends(n)).unwrap_or_else(|| self.level_len());
        let mut inner = self.first(len);
        let query = inner.query()?;
        self.at = inner.at;
        Ok(query)
    }

    fn refuse_after_insert(&self) -> Parsed<()> {
        for (words, way_out) in [
            ("ON CONFLICT", "streams keep every row, also equal ones; OPTIMIZE STREAM ... DEDUPLICATE removes them"),
            ("ON DUPLICATE", "streams keep every row, also equal ones; OPTIMIZE STREAM ... DEDUPLICATE removes them"),
            ("RETURNING", "leave it out; the command tag says how many rows went in"),
        ] {
            if self.sees(words) {
                return self.refuse(format!("{words} is not supported"), way_out);
            }
        }
        Ok(())
    }

    fn values(&mut self) -> Parsed<InsertRows> {
        let from = self.at;
        self.expect("VALUES")?;
        let mut rows: Vec<Vec<Expr>> = Vec::new();
        loop {
            let at = self.clone();
            let row = self.row(rows.first().map_or(1, Vec::len))?;
            if let Some(first) = rows.first()
                && first.len() != row.len()
            {
                let (n, had, has) = (rows.len() + 1, first.len(), row.len());
                return Err(at.error(format!("row {n} of VALUES has {has} values, the first has {had}")));
            }
            rows.push(row);
            if !self.eat_token(&Token::Comma) {
                return Ok(InsertRows::Values { rows, source: self.source_from(from) });
            }
        }
    }

    fn row(&mut self, len: usize) -> Parsed<Vec<Expr>> {
        self.expect_token(&Token::LParen)?;
        let mut row = Vec::with_capacity(len);
        loop {
            row.push(self.value()?);
            if self.eat_token(&Token::RParen) {
                return Ok(row);
            }
            self.expect_token(&Token::Comma)?;
        }
    }

    fn value(&mut self) -> Parsed<Expr> {
        let negative = self.sees_token(&Token::Minus);
        let n = usize::from(negative);
        let plain = matches!(self.nth(n + 1), Some(Token::Comma | Token::RParen));
        if plain && let Some(value) = self.rest().get(n).and_then(|t| constant(t, negative)) {
            self.advance(n + 1);
            return Ok(if negative { Expr::UnaryOp { op: UnaryOperator::Minus, expr: Box::new(value) } } else { value });
        }
        let len = self.item_len();
        if len == 0 {
            return self.expected("a value");
        }
        let mut expr = self.sqlparser(len, |p| p.parse_expr())?;
        super::query::check_expr(&mut expr, self.text)?;
        Ok(expr)
    }

    /// After DELETE.
    pub(super) fn delete(&mut self) -> Parsed<Verb> {
        self.expect("FROM")?;
        if matches!(self.nth(1), Some(Token::Word(_))) && !self.is_word(1, "WHERE") {
            self.eat_stream_word();
        }
        let from = self.stream_name()?;
        for (word, way_out) in [
            ("USING", "write WHERE c IN (SELECT ...)"),
            ("VERSION", "rows are deleted from what is there now"),
            ("TIMESTAMP", "rows are deleted from what is there now"),
            ("FOR", "rows are deleted from what is there now"),
        ] {
            if self.sees(word) {
                return self.refuse(format!("{word} is not supported in DELETE"), way_out);
            }
        }
        let clause = self.sees_one_of(&["WHERE", "RETURNING", "LIMIT", "ORDER", "SETTINGS"]);
        let alias = match self.eat("AS") || !clause && matches!(self.peek(), Some(Token::Word(_))) {
            true => Some(self.name("an alias")?),
            false => None,
        };
        let condition = if self.eat("WHERE") { Some(self.condition("a condition after WHERE")?) } else { None };
        for (word, way_out) in [
            ("RETURNING", "SELECT the rows first"),
            ("LIMIT", "name the rows by a condition"),
            ("ORDER", "name the rows by a condition"),
            ("SETTINGS", "write SET name = value before it"),
        ] {
            if self.sees(word) {
                return self.refuse(format!("{word} is not supported in DELETE"), way_out);
            }
        }
        Ok(Verb::Delete(Delete { from, alias, condition }))
    }
}

/// A constant that is one token; after a minus only numbers are.
fn constant(token: &TokenWithSpan, negative: bool) -> Option<Expr> {
    let value = match &token.token {
        Token::Number(n, long) => Value::Number(n.clone(), *long),
        _ if negative => return None,
        Token::SingleQuotedString(s) => Value::SingleQuotedString(s.clone()),
        Token::Placeholder(p) => Value::Placeholder(p.clone()),
        Token::Word(w) if w.quote_style.is_none() && w.value.eq_ignore_ascii_case("null") => Value::Null,
        Token::Word(w) if w.quote_style.is_none() && w.value.eq_ignore_ascii_case("true") => Value::Boolean(true),
        Token::Word(w) if w.quote_style.is_none() && w.value.eq_ignore_ascii_case("false") => Value::Boolean(false),
        _ => return None,
    };
    Some(Expr::Value(ValueWithSpan { value, span: token.span }))
}
