//! TTL rules. Each action has a time expression of its own, and WHERE belongs to the DELETE of its rule alone.
//!
//! A rule's time expression is cut off before its action word: sqlparser would read `INTERVAL 7 DAY TO ...` as DAY TO SECOND.

use super::cursor::{Cursor, Parsed};
use crate::statement::{Action, Expression, Name, Position, Rule};
use datafusion::sql::sqlparser::tokenizer::Token;
use ebb_storage::rules::{Destination, DestinationKind};

/// Words that end a time expression.
const ACTION_WORDS: [&str; 6] = ["DELETE", "TO", "RECOMPRESS", "GROUP", "WHERE", "SET"];

const ACTIONS: [&str; 6] = ["DELETE", "WHERE", "RECOMPRESS", "TO DISK", "TO VOLUME", "GROUP BY"];

impl Cursor<'_> {
    /// `more` says whether a rule follows the comma that is next.
    pub(super) fn rules(&mut self, more: impl Fn(&Self) -> bool) -> Parsed<Vec<Rule>> {
        let mut rules = vec![self.rule()?];
        while self.sees_token(&Token::Comma) && more(self) {
            self.advance(1);
            rules.push(self.rule()?);
        }
        Ok(rules)
    }

    fn rule(&mut self) -> Parsed<Rule> {
        let position = Position(self.position());
        if let Some(word) = ACTIONS.into_iter().find(|w| self.sees(w)) {
            return Err(self.error(format!("{word} needs its own time expression before it, like event_time + INTERVAL 1 MONTH {word}")));
        }
        let when = self.time_expression()?;
        let action = if self.eat("DELETE") || self.sees("WHERE") {
            Action::Delete { only: self.only()? }
        } else if self.eat("RECOMPRESS") {
            Action::Recompress(self.recompress_codec()?)
        } else if self.sees("TO") {
            Action::Move(self.destination()?)
        } else if self.eat("GROUP BY") {
            self.group_by()?
        } else {
            Action::Delete { only: None }
        };
        if self.sees("WHERE") {
            let what = match action {
                Action::Delete { .. } => "the rule has a WHERE already; join the conditions with AND",
                Action::Recompress(_) => "WHERE belongs to DELETE: RECOMPRESS re-codes whole parts",
                Action::Move(_) => "WHERE belongs to DELETE: a move takes whole parts",
                Action::GroupBy { .. } => "WHERE belongs to DELETE: GROUP BY folds every due row",
            };
            return Err(self.error(what));
        }
        self.refuse_second_action()?;
        Ok(Rule { when, action, position })
    }

    fn time_expression(&mut self) -> Parsed<Expression> {
        let item = self.first(self.item_len());
        let len = item.find(|n, _| ACTION_WORDS.iter().any(|w| item.is_word(n, w))).unwrap_or_else(|| item.rest().len());
        self.expression_within(len, "a rule's time expression, like event_time + INTERVAL 1 MONTH")
    }

    /// A column's TTL has a time and nothing else.
    pub(super) fn column_ttl(&mut self) -> Parsed<Expression> {
        let when = self.time_expression()?;
        if self.sees_one_of(&["DELETE", "TO", "RECOMPRESS", "GROUP BY", "WHERE"]) {
            return Err(self.error("a column's TTL is a time and nothing else; rules with actions stand in the stream's TTL clause"));
        }
        Ok(when)
    }

    fn only(&mut self) -> Parsed<Option<Expression>> {
        if !self.eat("WHERE") {
            return Ok(None);
        }
        self.expression("a condition after WHERE").map(Some)
    }

    fn refuse_second_action(&self) -> Parsed<()> {
        match ACTIONS.into_iter().find(|w| self.sees(w)) {
            Some(word) => Err(self.error(format!("{word} needs its own time expression: write a comma and one more rule"))),
            None => Ok(()),
        }
    }

    /// `TO {DISK | VOLUME} [IF EXISTS] 'x'`
    pub(super) fn destination(&mut self) -> Parsed<Destination> {
        self.expect("TO")?;
        let kind = if self.eat("DISK") {
            DestinationKind::Disk
        } else if self.eat("VOLUME") {
            DestinationKind::Volume
        } else {
            return self.expected("DISK or VOLUME");
        };
        let if_exists = self.eat_if_exists();
        let name = self.place_name(if kind == DestinationKind::Disk { "a disk" } else { "a volume" })?.text;
        Ok(Destination { kind, name, if_exists })
    }

    /// After GROUP BY. A list item with an action word is the next rule; one without is a key.
    fn group_by(&mut self) -> Parsed<Action> {
        let mut keys = vec![self.group_key()?];
        while self.sees_token(&Token::Comma) && self.next_is_key() {
            self.advance(1);
            keys.push(self.group_key()?);
        }
        let mut set = Vec::new();
        if self.eat("SET") {
            set.push(self.assignment()?);
            while self.sees_token(&Token::Comma) && matches!(self.nth(1), Some(Token::Word(_))) && self.nth(2) == Some(&Token::Eq) {
                self.advance(1);
                set.push(self.assignment()?);
            }
        }
        Ok(Action::GroupBy { keys, set })
    }

    /// What stands behind the expression decides, not what stands anywhere before the next comma: clauses follow the last rule.
    fn next_is_key(&self) -> bool {
        let mut next = self.clone();
        next.advance(1);
        if next.is_alter_action() {
            return false;
        }
        let item = next.first(next.item_len());
        let len = item.find(|n, _| ACTION_WORDS.iter().any(|w| item.is_word(n, w))).unwrap_or_else(|| item.rest().len());
        // A mistake in it is reported where it is read for good.
        next.ast_within(len, "a key of GROUP BY").is_err() || !next.sees_one_of(&ACTIONS)
    }

    fn group_key(&mut self) -> Parsed<Expression> {
        let item = self.first(self.item_len());
        let len = item.find(|n, _| item.is_word(n, "SET")).unwrap_or_else(|| item.rest().len());
        self.expression_within(len, "a key of GROUP BY")
    }

    fn assignment(&mut self) -> Parsed<(Name, Expression)> {
        let column = self.name("a column")?;
        self.expect_token(&Token::Eq)?;
        Ok((column, self.expression("an aggregate, like max(x)")?))
    }
}
