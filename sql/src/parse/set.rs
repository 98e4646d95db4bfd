//! SET and RESET.

use super::cursor::{Cursor, Parsed};
use crate::statement::{Literal, Reset, Set, SetScope, SetTransaction, SetValue, Verb};
use datafusion::sql::sqlparser::tokenizer::Token;

impl Cursor<'_> {
    /// After SET.
    pub(super) fn set(&mut self) -> Parsed<Verb> {
        if self.eat("SESSION CHARACTERISTICS AS TRANSACTION") {
            return Ok(Verb::SetTransaction(SetTransaction { session: true, modes: self.transaction_modes()? }));
        }
        if self.sees("TRANSACTION SNAPSHOT") {
            return self.refuse("snapshots cannot be imported", "read one cut in one block, or name it: VERSION AS OF n");
        }
        if self.sees("TRANSACTION") && matches!(self.nth(1), Some(Token::Word(_))) && !self.is_word(1, "TO") {
            self.advance(1);
            return Ok(Verb::SetTransaction(SetTransaction { session: false, modes: self.transaction_modes()? }));
        }
        if self.sees_one_of(&["ROLE", "SESSION AUTHORIZATION", "LOCAL ROLE", "SESSION ROLE", "CONSTRAINTS"]) {
            return self.refuse("roles and constraints are not supported in SET", "leave it out");
        }
        let scope = if self.more_than_a_name() && self.eat("LOCAL") {
            SetScope::Local
        } else if self.more_than_a_name() && self.eat("GLOBAL") {
            SetScope::Global
        } else {
            if self.more_than_a_name() {
                self.eat("SESSION");
            }
            SetScope::Session
        };
        let (name, value) = if self.eat("TIME ZONE") {
            let value = if self.eat("LOCAL") { SetValue::Default } else { self.zone_value()? };
            ("timezone".to_owned(), value)
        } else if self.eat("NAMES") {
            ("client_encoding".to_owned(), if self.at_end() { SetValue::Default } else { self.set_value()? })
        } else if self.sees("SCHEMA") && matches!(self.nth(1), Some(Token::SingleQuotedString(_))) {
            self.advance(1);
            ("search_path".to_owned(), self.set_value()?)
        } else {
            let name = self.variable()?;
            if !self.eat_token(&Token::Eq) && !self.eat("TO") {
                return self.expected("'=' or TO");
            }
            (name, self.set_value()?)
        };
        Ok(Verb::Set(Set { scope, name, value }))
    }

    /// Whether the next word is a scope and not the setting itself.
    fn more_than_a_name(&self) -> bool {
        matches!(self.nth(1), Some(Token::Word(_))) && !self.is_word(1, "TO")
    }

    /// A zone's name, or hours east of UTC, also as an interval.
    fn zone_value(&mut self) -> Parsed<SetValue> {
        if !self.sees("INTERVAL") {
            return self.set_value();
        }
        self.advance(1);
        let offset = self.text("an offset")?;
        self.eat("HOUR TO MINUTE");
        Ok(SetValue::Values(vec![Literal::Text(offset)]))
    }

    fn set_value(&mut self) -> Parsed<SetValue> {
        if self.eat("DEFAULT") {
            return Ok(SetValue::Default);
        }
        self.list(|c| match c.eat_literal() {
            Some(Literal::Null) => c.refuse("NULL is no value of a setting", "write DEFAULT"),
            Some(literal) => Ok(literal),
            None => match c.peek() {
                Some(Token::Word(word)) => {
                    let quoted = word.quote_style.is_some();
                    c.advance(1);
                    Ok(Literal::Text(if quoted { word.value.clone() } else { word.value.to_lowercase() }))
                }
                _ => c.expected("a value"),
            },
        })
        .map(SetValue::Values)
    }

    /// After RESET.
    pub(super) fn reset(&mut self) -> Parsed<Verb> {
        if self.eat("ALL") {
            return Ok(Verb::Reset(Reset::All));
        }
        if self.eat("TIME ZONE") {
            return Ok(Verb::Reset(Reset::Variable("timezone".to_owned())));
        }
        if self.sees_one_of(&["ROLE", "SESSION AUTHORIZATION"]) {
            return self.refuse("roles are not supported", "leave it out");
        }
        if self.more_than_a_name() && self.eat("GLOBAL") {
            return self.variable().map(|name| Verb::Reset(Reset::Global(name)));
        }
        self.variable().map(|name| Verb::Reset(Reset::Variable(name)))
    }
}
