//! A place among the tokens of one statement, and the small words of grammar: keywords, names, literals, lists.

use super::{
    error::{ParseError, refused, syntax},
    text::Text,
};
use crate::statement::{Literal, Name, Source, StreamName, is_reserved};
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

pub(super) type Parsed<T> = Result<T, ParseError>;

/// Reads `tokens[at..end]`. Blanks and comments are gone already.
#[derive(Clone)]
pub(super) struct Cursor<'a> {
    pub(super) text: &'a Text,
    tokens: &'a [TokenWithSpan],
    pub(super) at: usize,
    end: usize,
    /// How many statements hold this one.
    pub(super) depth: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(text: &'a Text, tokens: &'a [TokenWithSpan]) -> Self {
        Self { text, tokens, at: 0, end: tokens.len(), depth: 0 }
    }

    pub(super) fn rest(&self) -> &'a [TokenWithSpan] {
        &self.tokens[self.at.min(self.end)..self.end]
    }

    pub(super) fn nth(&self, n: usize) -> Option<&'a Token> {
        self.rest().get(n).map(|t| &t.token)
    }

    pub(super) fn peek(&self) -> Option<&'a Token> {
        self.nth(0)
    }

    pub(super) fn at_end(&self) -> bool {
        self.at >= self.end
    }

    pub(super) fn advance(&mut self, by: usize) {
        self.at = self.at.saturating_add(by).min(self.end);
    }

    /// A cursor over the next `len` tokens alone.
    pub(super) fn first(&self, len: usize) -> Self {
        Self { end: self.at.saturating_add(len).min(self.end), ..self.clone() }
    }

    /// 1-based character offset of the next token, or of the end of the text read last.
    pub(super) fn position(&self) -> usize {
        match self.rest().first() {
            Some(token) => self.text.position(token.span.start),
            None => self.end.checked_sub(1).and_then(|i| self.tokens.get(i)).map_or(1, |t| self.text.position(t.span.end)),
        }
    }

    /// The text from token `from` (an earlier `at`) up to here.
    pub(super) fn source_from(&self, from: usize) -> Source {
        match (self.tokens.get(from), self.at.checked_sub(1).and_then(|i| self.tokens.get(i))) {
            (Some(first), Some(last)) if from < self.at => {
                let (start, end) = (self.text.range(first.span).start, self.text.range(last.span).end);
                Source::new(self.text.sql.clone(), start..end.max(start), self.text.position(first.span.start))
            }
            _ => Source::new(self.text.sql.clone(), 0..0, 1),
        }
    }

    /// The next token as written.
    fn found(&self) -> String {
        match self.rest().first() {
            Some(token) => match self.text.sql.get(self.text.range(token.span)) {
                Some(text) if !text.is_empty() => format!("'{}'", text.chars().take(40).collect::<String>()),
                _ => format!("'{}'", token.token),
            },
            None => "the end".to_owned(),
        }
    }

    pub(super) fn error(&self, message: impl Into<String>) -> ParseError {
        syntax(message, self.position())
    }

    pub(super) fn refuse<T>(&self, what: impl Into<String>, way_out: impl Into<String>) -> Parsed<T> {
        Err(refused(what, way_out, self.position()))
    }

    pub(super) fn expected<T>(&self, what: &str) -> Parsed<T> {
        Err(self.error(format!("expected {what}, found {}", self.found())))
    }

    // Keywords

    /// The unquoted word `n` tokens ahead.
    pub(super) fn word(&self, n: usize) -> Option<&'a str> {
        match self.nth(n) {
            Some(Token::Word(w)) if w.quote_style.is_none() => Some(&w.value),
            _ => None,
        }
    }

    pub(super) fn is_word(&self, n: usize, word: &str) -> bool {
        self.word(n).is_some_and(|w| w.eq_ignore_ascii_case(word))
    }

    /// Whether the next tokens are these words, one blank between each.
    pub(super) fn sees(&self, words: &str) -> bool {
        words.split(' ').enumerate().all(|(n, word)| self.is_word(n, word))
    }

    pub(super) fn sees_one_of(&self, words: &[&str]) -> bool {
        words.iter().any(|w| self.sees(w))
    }

    /// Takes these words if they are next.
    pub(super) fn eat(&mut self, words: &str) -> bool {
        let seen = self.sees(words);
        if seen {
            self.advance(words.split(' ').count());
        }
        seen
    }

    pub(super) fn expect(&mut self, words: &str) -> Parsed<()> {
        if self.eat(words) {
            return Ok(());
        }
        // The first words may be right: then the blame is on the one that is not.
        let right = words.split(' ').enumerate().take_while(|(n, w)| self.is_word(*n, w)).count();
        self.advance(right);
        let missing: Vec<&str> = words.split(' ').skip(right).collect();
        self.expected(&missing.join(" "))
    }

    pub(super) fn eat_if_exists(&mut self) -> bool {
        self.eat("IF EXISTS")
    }

    pub(super) fn eat_if_not_exists(&mut self) -> bool {
        self.eat("IF NOT EXISTS")
    }

    /// STREAM or TABLE.
    pub(super) fn eat_stream_word(&mut self) -> bool {
        self.eat("STREAM") || self.eat("TABLE")
    }

    pub(super) fn expect_stream_word(&mut self) -> Parsed<()> {
        if self.eat_stream_word() { Ok(()) } else { self.expected("STREAM") }
    }

    // Punctuation

    pub(super) fn sees_token(&self, token: &Token) -> bool {
        self.peek() == Some(token)
    }

    pub(super) fn eat_token(&mut self, token: &Token) -> bool {
        let seen = self.sees_token(token);
        if seen {
            self.advance(1);
        }
        seen
    }

    pub(super) fn expect_token(&mut self, token: &Token) -> Parsed<()> {
        if self.eat_token(token) { Ok(()) } else { self.expected(&format!("'{token}'")) }
    }

    pub(super) fn expect_end(&self) -> Parsed<()> {
        if self.at_end() { Ok(()) } else { self.expected("the end of the statement") }
    }

    /// How many tokens follow before a comma, a closing bracket or the end, at this level of brackets.
    pub(super) fn item_len(&self) -> usize {
        self.find(|_, token| matches!(token, Token::Comma)).unwrap_or_else(|| self.level_len())
    }

    /// How many tokens follow before a closing bracket of this level or the end.
    pub(super) fn level_len(&self) -> usize {
        self.find(|_, _| false).unwrap_or(self.rest().len())
    }

    /// The first token at this level of brackets that `wanted`; at a closing bracket of this level the search ends there.
    pub(super) fn find(&self, wanted: impl Fn(usize, &Token) -> bool) -> Option<usize> {
        let mut depth = 0_usize;
        for (n, token) in self.rest().iter().enumerate() {
            match &token.token {
                Token::RParen | Token::RBracket | Token::RBrace if depth == 0 => return Some(n),
                Token::RParen | Token::RBracket | Token::RBrace => depth -= 1,
                token if depth == 0 && wanted(n, token) => return Some(n),
                Token::LParen | Token::LBracket | Token::LBrace => depth += 1,
                _ => {}
            }
        }
        None
    }

    pub(super) fn list<T>(&mut self, mut item: impl FnMut(&mut Self) -> Parsed<T>) -> Parsed<Vec<T>> {
        let mut items = vec![item(self)?];
        while self.eat_token(&Token::Comma) {
            items.push(item(self)?);
        }
        Ok(items)
    }

    pub(super) fn parenthesized<T>(&mut self, inner: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        self.expect_token(&Token::LParen)?;
        let value = inner(self)?;
        self.expect_token(&Token::RParen)?;
        Ok(value)
    }

    // Names

    /// `what` names it in the error: `a column`.
    pub(super) fn name(&mut self, what: &str) -> Parsed<Name> {
        let position = self.position();
        let text = match self.peek() {
            Some(Token::Word(w)) if w.quote_style.is_some() => w.value.clone(),
            Some(Token::Word(w)) => {
                let lower = w.value.to_lowercase();
                if is_reserved(&lower) {
                    return Err(self.error(format!("expected {what}, found the word {} (in double quotes it is a name)", self.found())));
                }
                lower
            }
            _ => return self.expected(what),
        };
        if text.is_empty() {
            return Err(self.error("a name cannot be empty"));
        }
        self.advance(1);
        Ok(Name { text, position })
    }

    /// A name that may also be written as a string.
    pub(super) fn name_or_text(&mut self, what: &str) -> Parsed<Name> {
        let position = self.position();
        match self.eat_text() {
            Some(text) if text.is_empty() => Err(syntax("a name cannot be empty", position)),
            Some(text) => Ok(Name { text, position }),
            None => self.name(what),
        }
    }

    /// The name of a disk, a volume or a storage policy: every database has a `default` of each, which needs no quotes here.
    pub(super) fn place_name(&mut self, what: &str) -> Parsed<Name> {
        let position = self.position();
        match self.eat("DEFAULT") {
            true => Ok(Name { text: "default".to_owned(), position }),
            false => self.name_or_text(what),
        }
    }

    /// A database's name. The one that is always there needs no quotes.
    pub(super) fn database_name(&mut self) -> Parsed<Name> {
        match self.is_word(0, "DEFAULT") {
            true => self.place_name("a database"),
            false => self.name("a database"),
        }
    }

    /// `[database.]stream[.branch_b]`
    pub(super) fn stream_name(&mut self) -> Parsed<StreamName> {
        let first = match self.nth(1) == Some(&Token::Period) {
            true => self.database_name()?,
            false => self.name("a stream")?,
        };
        let mut parts = vec![first];
        while self.eat_token(&Token::Period) {
            if parts.len() == 3 {
                return Err(self.error("a stream's name has at most three parts: database.stream.branch_name"));
            }
            parts.push(self.name("a stream")?);
        }
        Ok(StreamName { parts })
    }

    /// `(a, b, ...)`
    pub(super) fn column_names(&mut self) -> Parsed<Vec<Name>> {
        self.parenthesized(|c| c.list(|c| c.name("a column")))
    }

    // Literals

    pub(super) fn eat_text(&mut self) -> Option<String> {
        let text = match self.peek()? {
            Token::SingleQuotedString(s) | Token::EscapedStringLiteral(s) | Token::UnicodeStringLiteral(s) => s.clone(),
            Token::DollarQuotedString(s) => s.value.clone(),
            _ => return None,
        };
        self.advance(1);
        Some(text)
    }

    pub(super) fn text(&mut self, what: &str) -> Parsed<String> {
        match self.eat_text() {
            Some(text) => Ok(text),
            None => self.expected(&format!("{what} in single quotes")),
        }
    }

    pub(super) fn uint(&mut self, what: &str) -> Parsed<u64> {
        let value = match self.peek() {
            Some(Token::Number(n, _)) => match n.replace('_', "").parse::<u64>() {
                Ok(value) => value,
                Err(_) => return Err(self.error(format!("{what} is a whole number, not {n}"))),
            },
            _ => return self.expected(&format!("{what}, a whole number")),
        };
        self.advance(1);
        Ok(value)
    }

    /// A number with its sign, as written.
    pub(super) fn eat_number(&mut self) -> Option<String> {
        let (sign, skip) = match self.peek()? {
            Token::Minus => ("-", 1),
            Token::Plus => ("", 1),
            _ => ("", 0),
        };
        let Some(Token::Number(n, _)) = self.nth(skip) else { return None };
        self.advance(skip + 1);
        Some(format!("{sign}{}", n.replace('_', "")))
    }

    pub(super) fn eat_literal(&mut self) -> Option<Literal> {
        if let Some(text) = self.eat_text() {
            return Some(Literal::Text(text));
        }
        if let Some(number) = self.eat_number() {
            return Some(Literal::Number(number));
        }
        for (word, literal) in [("NULL", Literal::Null), ("TRUE", Literal::Bool(true)), ("FALSE", Literal::Bool(false))] {
            if self.eat(word) {
                return Some(literal);
            }
        }
        let typed = self.sees_one_of(&["DATE", "TIMESTAMP", "TIMESTAMPTZ"]) && matches!(self.nth(1), Some(Token::SingleQuotedString(_)));
        if typed {
            self.advance(1);
            return self.eat_text().map(Literal::Text);
        }
        None
    }

    pub(super) fn literal(&mut self, what: &str) -> Parsed<Literal> {
        match self.eat_literal() {
            Some(literal) => Ok(literal),
            None => self.expected(&format!("{what}, a constant")),
        }
    }
}
