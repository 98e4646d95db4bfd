//! Expressions: sqlparser reads them from a slice of the tokens, cut where the grammar around them goes on.

use super::{
    canonical,
    cursor::{Cursor, Parsed},
    error::{ParseError, of_parser, syntax},
    query,
};
use crate::{dialect::StreamDialect, statement::Expression};
use datafusion::sql::sqlparser::{
    ast::Expr,
    parser::{Parser, ParserError},
    tokenizer::TokenWithSpan,
};

/// sqlparser's own measure: each bracket or subquery takes one to three.
pub(super) const RECURSION_LIMIT: usize = 200;

impl<'a> Cursor<'a> {
    /// Runs sqlparser on the next `len` tokens and advances over what it took.
    pub(super) fn sqlparser<T>(&mut self, len: usize, read: impl FnOnce(&mut Parser) -> Result<T, ParserError>) -> Parsed<T> {
        let slice = self.first(len);
        let (value, taken) = slice.sqlparser_on(slice.rest().to_vec(), read)?;
        self.advance(taken.min(len));
        Ok(value)
    }

    /// Runs sqlparser on tokens that stand for this cursor's; also says how many it took.
    pub(super) fn sqlparser_on<T>(
        &self,
        tokens: Vec<TokenWithSpan>,
        read: impl FnOnce(&mut Parser) -> Result<T, ParserError>,
    ) -> Parsed<(T, usize)> {
        let mut parser = Parser::new(&StreamDialect).with_recursion_limit(RECURSION_LIMIT).with_tokens_with_locations(tokens);
        match read(&mut parser) {
            Ok(value) => Ok((value, parser.index())),
            Err(e) => Err(self.clone().blame(e)),
        }
    }

    fn blame(mut self, e: ParserError) -> ParseError {
        let (message, sqlstate, location) = of_parser(e);
        let position = match location {
            Some(location) if location.line > 0 => self.text.position(location),
            _ => {
                self.advance(usize::MAX);
                self.position()
            }
        };
        ParseError { message, position: Some(position), sqlstate, hint: None }
    }

    /// An expression that ends before the next comma, closing bracket or word that cannot go on with it.
    pub(super) fn expression(&mut self, what: &str) -> Parsed<Expression> {
        self.expression_within(self.item_len(), what)
    }

    /// An expression within the next `len` tokens; it need not take them all.
    pub(super) fn expression_within(&mut self, len: usize, what: &str) -> Parsed<Expression> {
        let position = self.position();
        let ast = self.ast_within(len, what)?;
        canonical::definition(ast).map_err(|message| syntax(message, position))
    }

    /// As [`Self::expression`], with subqueries.
    pub(super) fn condition(&mut self, what: &str) -> Parsed<Expression> {
        let (position, len) = (self.position(), self.level_len());
        if len == 0 || self.at_end() {
            return self.expected(what);
        }
        let tokens = query::with_versions(self.first(len).rest());
        let grown = tokens.len() - len;
        let (mut ast, taken) = self.first(len).sqlparser_on(tokens, |p| p.parse_expr())?;
        self.advance(taken.saturating_sub(grown).min(len));
        query::check_condition(&mut ast, self.text)?;
        canonical::condition(ast).map_err(|message| syntax(message, position))
    }

    pub(super) fn ast_within(&mut self, len: usize, what: &str) -> Parsed<Expr> {
        if len == 0 || self.at_end() {
            return self.expected(what);
        }
        self.sqlparser(len, |p| p.parse_expr())
    }
}
