//! RETENTION stages.

use super::cursor::{Cursor, Parsed};
use crate::statement::Stage;
use datafusion::sql::sqlparser::tokenizer::Token;

impl Cursor<'_> {
    /// `more` says whether a stage follows the comma that is next.
    pub(super) fn stages(&mut self, more: impl Fn(&Self) -> bool) -> Parsed<Vec<Stage>> {
        let mut stages = vec![self.stage()?];
        while self.sees_token(&Token::Comma) && more(self) {
            self.advance(1);
            stages.push(self.stage()?);
        }
        Ok(stages)
    }

    fn stage(&mut self) -> Parsed<Stage> {
        if self.eat("MAX") {
            if self.eat("AGE") {
                return Ok(Stage::MaxAge(self.positive_interval()?));
            }
            if self.eat("BYTES") {
                return Ok(Stage::MaxBytes(self.uint("a number of bytes")?));
            }
            if self.eat("ROWS") {
                return Ok(Stage::MaxRows(self.uint("a number of rows")?));
            }
            return self.expected("AGE, BYTES or ROWS");
        }
        if !self.sees("INTERVAL") && !matches!(self.peek(), Some(Token::Number(..) | Token::SingleQuotedString(_) | Token::Minus)) {
            return self.expected("a stage: 7 DAY KEEP WHERE cond, 30 DAY DROP, MAX AGE 1 YEAR, MAX BYTES n or MAX ROWS n");
        }
        let after = self.positive_interval()?;
        if self.eat("DROP") {
            return Ok(Stage::Drop { after });
        }
        if self.eat("KEEP") {
            self.expect("WHERE")?;
            return Ok(Stage::Keep { after, keep: self.expression("a condition after WHERE")? });
        }
        self.expected("KEEP WHERE cond, or DROP")
    }

    fn positive_interval(&mut self) -> Parsed<ebb_storage::interval::Interval> {
        let at = self.clone();
        let interval = self.interval()?;
        if interval.is_negative() || interval == ebb_storage::interval::Interval::ZERO {
            return Err(at.error("an age is more than zero"));
        }
        Ok(interval)
    }
}
