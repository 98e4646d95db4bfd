//! DROP, TRUNCATE, RENAME, DESCRIBE and OPTIMIZE of streams.

use super::cursor::{Cursor, Parsed};
use crate::statement::{AlterAction, AlterStream, Deduplicate, DropStream, Optimize, RenameStream, StreamName, TruncateStream, Verb};
use datafusion::sql::sqlparser::tokenizer::Token;

impl Cursor<'_> {
    /// After DROP STREAM.
    pub(super) fn drop_stream(&mut self) -> Parsed<Verb> {
        let if_exists = self.eat_if_exists();
        let names = self.list(Self::stream_name)?;
        // DROP STREAM takes refs and readers along either way.
        if !self.eat("CASCADE") && !self.eat("RESTRICT") && self.sees_one_of(&["SYNC", "PERMANENTLY"]) {
            return self.refuse("DROP STREAM knows no such word", "leave it out; the stream is gone when the statement returns");
        }
        Ok(Verb::DropStream(DropStream { if_exists, names }))
    }

    /// After TRUNCATE.
    pub(super) fn truncate(&mut self) -> Parsed<Verb> {
        self.eat_stream_word();
        let if_exists = self.eat_if_exists();
        let name = self.stream_name()?;
        if self.sees_token(&Token::Comma) {
            return self.refuse("TRUNCATE takes one stream", "write one statement each");
        }
        Ok(Verb::TruncateStream(TruncateStream { if_exists, name }))
    }

    /// After RENAME.
    pub(super) fn rename(&mut self) -> Parsed<Verb> {
        self.expect_stream_word()?;
        let if_exists = self.eat_if_exists();
        let from = self.stream_name()?;
        self.expect("TO")?;
        Ok(Verb::RenameStream(RenameStream { if_exists, from, to: self.stream_name()? }))
    }

    /// After DESCRIBE or DESC.
    pub(super) fn describe(&mut self) -> Parsed<Verb> {
        self.eat_stream_word();
        self.stream_name().map(Verb::DescribeStream)
    }

    /// After OPTIMIZE.
    pub(super) fn optimize(&mut self) -> Parsed<Optimize> {
        self.expect_stream_word()?;
        let name = self.stream_name()?;
        let partition = if self.eat("PARTITION") { Some(self.partition()?) } else { None };
        let final_ = self.eat("FINAL");
        let deduplicate = if !self.eat("DEDUPLICATE") {
            None
        } else if self.eat("BY") {
            let columns = if self.sees_token(&Token::LParen) { self.column_names()? } else { self.list(|c| c.name("a column"))? };
            Some(Deduplicate::By(columns))
        } else {
            Some(Deduplicate::All)
        };
        if self.sees("FINAL") {
            return Err(self.error("FINAL stands before DEDUPLICATE: OPTIMIZE STREAM s [PARTITION p] FINAL DEDUPLICATE"));
        }
        Ok(Optimize { name, partition, final_, deduplicate })
    }

    /// After COMMENT: `ON {STREAM s | COLUMN s.c} IS 'text'`, which is an ALTER STREAM.
    pub(super) fn comment_on(&mut self) -> Parsed<Verb> {
        self.expect("ON")?;
        let column = self.eat("COLUMN");
        if !column {
            self.expect_stream_word()?;
        }
        let at = self.clone();
        let mut parts = self.list_of_parts()?;
        let of = if column { parts.pop() } else { None };
        if parts.is_empty() {
            return Err(at.error("COMMENT ON COLUMN names stream and column: s.c"));
        }
        self.expect("IS")?;
        let comment = if self.eat("NULL") { String::new() } else { self.text("a comment")? };
        let action = match of {
            Some(name) => AlterAction::CommentColumn { name, comment },
            None => AlterAction::ModifyComment(comment),
        };
        Ok(Verb::AlterStream(AlterStream { if_exists: false, name: StreamName { parts }, actions: vec![action] }))
    }

    fn list_of_parts(&mut self) -> Parsed<Vec<crate::statement::Name>> {
        let mut parts = vec![self.name("a name")?];
        while self.eat_token(&Token::Period) {
            parts.push(self.name("a name")?);
        }
        Ok(parts)
    }
}
