//! Tags and branches, as actions of ALTER STREAM.

use super::cursor::{Cursor, Parsed};
use crate::statement::{CreateRef, DropRef, RefKind, RefMode, SnapshotRetention};
use datafusion::sql::sqlparser::tokenizer::Token;
use ebb_storage::interval::Interval;

impl Cursor<'_> {
    fn ref_kind(&mut self) -> Parsed<RefKind> {
        if self.eat("TAG") {
            Ok(RefKind::Tag)
        } else if self.eat("BRANCH") {
            Ok(RefKind::Branch)
        } else {
            self.expected("TAG or BRANCH")
        }
    }

    /// After CREATE, CREATE OR REPLACE or REPLACE.
    pub(super) fn create_ref(&mut self, mode: RefMode) -> Parsed<CreateRef> {
        let kind = self.ref_kind()?;
        let at = self.clone();
        let if_not_exists = self.eat_if_not_exists();
        if if_not_exists && mode != RefMode::Create {
            return Err(at.error("REPLACE and IF NOT EXISTS contradict each other"));
        }
        let name = self.name_or_text("a name")?;
        let mut created = CreateRef { kind, mode, if_not_exists, name, as_of: None, retain: None, snapshot_retention: None };
        loop {
            let at = self.clone();
            if self.eat("AS OF VERSION") && created.as_of.is_none() {
                let len = self.find(|n, _| self.is_word(n, "RETAIN") || self.is_word(n, "WITH") || self.nth(n) == Some(&Token::Comma));
                created.as_of = Some(self.expression_within(len.unwrap_or_else(|| self.level_len()), "an sn")?);
            } else if self.eat("RETAIN") && created.retain.is_none() {
                created.retain = Some(self.age()?);
            } else if self.eat("WITH SNAPSHOT RETENTION") && created.snapshot_retention.is_none() {
                if kind == RefKind::Tag {
                    return Err(at.error("a tag is one snapshot: WITH SNAPSHOT RETENTION belongs to branches"));
                }
                created.snapshot_retention = Some(self.snapshot_retention()?);
            } else if self.at > at.at {
                return Err(at.error("a clause is said twice"));
            } else {
                return Ok(created);
            }
        }
    }

    fn age(&mut self) -> Parsed<Interval> {
        let at = self.clone();
        let age = self.interval()?;
        if age.is_negative() || age == Interval::ZERO {
            return Err(at.error("an age is more than zero"));
        }
        Ok(age)
    }

    fn snapshot_retention(&mut self) -> Parsed<SnapshotRetention> {
        let mut retention = SnapshotRetention { min_snapshots: None, max_age: None };
        let snapshots = |c: &Self| c.is_word(1, "SNAPSHOTS") || c.is_word(1, "SNAPSHOT");
        if matches!(self.peek(), Some(Token::Number(..))) && snapshots(self) {
            retention.min_snapshots = Some(self.uint("a number of snapshots")?);
            self.advance(1);
        }
        if matches!(self.peek(), Some(Token::Number(..))) || self.sees("INTERVAL") {
            retention.max_age = Some(self.age()?);
        }
        if retention.min_snapshots.is_none() && retention.max_age.is_none() {
            return self.expected("n SNAPSHOTS, n DAYS or both");
        }
        Ok(retention)
    }

    /// After DROP.
    pub(super) fn drop_ref(&mut self) -> Parsed<DropRef> {
        let kind = self.ref_kind()?;
        Ok(DropRef { kind, if_exists: self.eat_if_exists(), name: self.name_or_text("a name")? })
    }
}
