//! Transactions, savepoints and prepared statements.

use super::cursor::{Cursor, Parsed};
use crate::statement::{Deallocate, Discard, Execute, Isolation, Name, Prepare, TransactionModes, Verb};
use datafusion::sql::sqlparser::tokenizer::Token;

/// PREPARE and EXPLAIN inside of each other.
pub(super) const MAX_STATEMENT_DEPTH: usize = 8;

impl Cursor<'_> {
    fn eat_transaction_word(&mut self) {
        if !self.eat("TRANSACTION") {
            self.eat("WORK");
        }
    }

    /// After BEGIN or START.
    pub(super) fn begin(&mut self) -> Parsed<Verb> {
        self.eat_transaction_word();
        self.transaction_modes().map(Verb::Begin)
    }

    pub(super) fn transaction_modes(&mut self) -> Parsed<TransactionModes> {
        let mut modes = TransactionModes::default();
        while !self.at_end() {
            if self.eat("ISOLATION LEVEL") {
                let levels = [
                    ("READ UNCOMMITTED", Isolation::ReadUncommitted),
                    ("READ COMMITTED", Isolation::ReadCommitted),
                    ("REPEATABLE READ", Isolation::RepeatableRead),
                    ("SERIALIZABLE", Isolation::Serializable),
                    ("SNAPSHOT", Isolation::RepeatableRead),
                ];
                match levels.into_iter().find(|(words, _)| self.eat(words)) {
                    Some((_, level)) => modes.isolation = Some(level),
                    None => return self.expected("READ COMMITTED, REPEATABLE READ or SERIALIZABLE"),
                }
            } else if self.eat("READ ONLY") {
                modes.read_only = Some(true);
            } else if self.eat("READ WRITE") {
                modes.read_only = Some(false);
            } else if self.eat("DEFERRABLE") {
                modes.deferrable = Some(true);
            } else if self.eat("NOT DEFERRABLE") {
                modes.deferrable = Some(false);
            } else {
                return self.expected("ISOLATION LEVEL, READ ONLY, READ WRITE or DEFERRABLE");
            }
            self.eat_token(&Token::Comma);
        }
        Ok(modes)
    }

    /// After COMMIT, END, ROLLBACK or ABORT.
    pub(super) fn end_transaction(&mut self, verb: Verb) -> Parsed<Verb> {
        if self.sees("PREPARED") {
            return self.refuse("two-phase commit is not supported", "write COMMIT or ROLLBACK");
        }
        self.eat_transaction_word();
        if verb == Verb::Rollback && self.eat("TO") {
            return self.savepoint_name().map(Verb::RollbackTo);
        }
        if !self.eat("AND NO CHAIN") && self.sees("AND CHAIN") {
            return self.refuse("AND CHAIN is not supported", "write BEGIN after it");
        }
        Ok(verb)
    }

    /// After SAVEPOINT.
    pub(super) fn savepoint(&mut self) -> Parsed<Verb> {
        self.name("a savepoint").map(Verb::Savepoint)
    }

    /// After RELEASE: a savepoint or a hold, and a savepoint may be called `hold`.
    pub(super) fn release(&mut self) -> Parsed<Verb> {
        if self.sees("HOLD") && self.nth(1).is_some() {
            return self.release_hold();
        }
        self.savepoint_name().map(Verb::ReleaseSavepoint)
    }

    /// `[SAVEPOINT] name`
    fn savepoint_name(&mut self) -> Parsed<Name> {
        if self.sees("SAVEPOINT") && self.nth(1).is_some() {
            self.advance(1);
        }
        self.name("a savepoint")
    }

    /// After PREPARE.
    pub(super) fn prepare(&mut self) -> Parsed<Verb> {
        if self.sees("TRANSACTION") {
            return self.refuse("two-phase commit is not supported", "write COMMIT");
        }
        let name = self.name("a name")?;
        let types = if self.sees_token(&Token::LParen) {
            self.parenthesized(|c| {
                c.list(|c| {
                    let len = c.item_len();
                    if len == 0 { c.expected("a type") } else { c.sqlparser(len, |p| p.parse_data_type()) }
                })
            })?
        } else {
            Vec::new()
        };
        self.expect("AS")?;
        let at = self.clone();
        let statement = self.statement()?;
        if matches!(statement.verb, Verb::Prepare(_) | Verb::Execute(_) | Verb::Deallocate(_)) {
            return Err(at.error("PREPARE takes a statement, not one about prepared statements"));
        }
        Ok(Verb::Prepare(Prepare { name, types, statement: Box::new(statement) }))
    }

    /// After EXECUTE.
    pub(super) fn execute(&mut self) -> Parsed<Verb> {
        let name = self.name("a prepared statement")?;
        let args = if self.sees_token(&Token::LParen) && self.nth(1) != Some(&Token::RParen) {
            self.parenthesized(|c| c.list(|c| c.expression("a value")))?
        } else {
            if self.eat_token(&Token::LParen) {
                self.expect_token(&Token::RParen)?;
            }
            Vec::new()
        };
        Ok(Verb::Execute(Execute { name, args }))
    }

    /// After DEALLOCATE.
    pub(super) fn deallocate(&mut self) -> Parsed<Verb> {
        if self.sees("PREPARE") && self.nth(1).is_some() {
            self.advance(1);
        }
        if self.eat("ALL") {
            return Ok(Verb::Deallocate(Deallocate::All));
        }
        self.name("a prepared statement, or ALL").map(|n| Verb::Deallocate(Deallocate::Name(n)))
    }

    /// After DISCARD.
    pub(super) fn discard(&mut self) -> Parsed<Verb> {
        let kinds = [
            ("ALL", Discard::All),
            ("PLANS", Discard::Plans),
            ("SEQUENCES", Discard::Sequences),
            ("TEMPORARY", Discard::Temp),
            ("TEMP", Discard::Temp),
        ];
        match kinds.into_iter().find(|(word, _)| self.eat(word)) {
            Some((_, kind)) => Ok(Verb::Discard(kind)),
            None => self.expected("ALL, PLANS, SEQUENCES or TEMP"),
        }
    }
}
