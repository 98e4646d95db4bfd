//! ALTER STREAM: one or more actions, to be carried out together.

use super::{
    cursor::{Cursor, Parsed},
    error::syntax,
};
use crate::{
    nearest::did_you_mean,
    statement::{AlterAction, AlterStream, Movable, Name, Partition, RefMode, RenameStream, Verb},
};
use datafusion::sql::sqlparser::tokenizer::Token;

/// Two words that begin an action. No expression begins so, which is how a list before them ends.
const ACTIONS: [&str; 25] = [
    "MODIFY TTL",
    "REMOVE TTL",
    "MATERIALIZE TTL",
    "MODIFY RETENTION",
    "REMOVE RETENTION",
    "MODIFY SETTING",
    "RESET SETTING",
    "ADD COLUMN",
    "DROP COLUMN",
    "RENAME COLUMN",
    "MODIFY COLUMN",
    "COMMENT COLUMN",
    "MODIFY COMMENT",
    "DROP PARTITION",
    "MOVE PARTITION",
    "MOVE PART",
    "CREATE TAG",
    "CREATE BRANCH",
    "CREATE OR REPLACE TAG",
    "CREATE OR REPLACE BRANCH",
    "REPLACE TAG",
    "REPLACE BRANCH",
    "DROP TAG",
    "DROP BRANCH",
    "RENAME TO",
];

/// Actions of other systems, and what Ebb has instead.
const REFUSED: [(&str, &str); 18] = [
    ("ALTER COLUMN", "write MODIFY COLUMN c type"),
    ("MODIFY ORDER", "keys are fixed: create a stream and INSERT ... SELECT into it"),
    ("MODIFY PARTITION", "keys are fixed: create a stream and INSERT ... SELECT into it"),
    ("UPDATE", "streams are appended to: DELETE the rows and INSERT them anew"),
    ("DELETE", "write DELETE FROM s WHERE cond"),
    ("CLEAR COLUMN", "write DROP COLUMN c"),
    ("DETACH", "write DROP PARTITION p"),
    ("ATTACH", "write INSERT INTO s SELECT ... or RESTORE STREAM"),
    ("FREEZE", "write BACKUP STREAM s TO DISK d, or ALTER STREAM s CREATE TAG t"),
    ("FETCH", "write RESTORE STREAM s FROM ..."),
    ("REPLACE PARTITION", "write DROP PARTITION p and INSERT ... SELECT"),
    ("ADD CONSTRAINT", "Ebb checks no constraints; leave it out"),
    ("ADD INDEX", "indexes are named at CREATE STREAM"),
    ("DROP INDEX", "indexes are named at CREATE STREAM"),
    ("ADD PROJECTION", "write CREATE ROLLUP r ON s AS SELECT ..."),
    ("OWNER TO", "streams have no owner; leave it out"),
    ("SET", "write MODIFY SETTING k = v"),
    ("ENABLE", "leave it out"),
];

impl Cursor<'_> {
    /// Whether an action of ALTER begins here.
    pub(super) fn is_alter_action(&self) -> bool {
        self.sees_one_of(&ACTIONS)
    }

    /// For lists inside of an action: whether the comma that is next belongs to the list.
    fn list_goes_on(&self) -> bool {
        let mut next = self.clone();
        next.advance(1);
        !next.is_alter_action()
    }

    /// After ALTER STREAM.
    pub(super) fn alter_stream(&mut self) -> Parsed<Verb> {
        let if_exists = self.eat_if_exists();
        let name = self.stream_name()?;
        if self.eat("RENAME TO") {
            return Ok(Verb::RenameStream(RenameStream { if_exists, from: name, to: self.stream_name()? }));
        }
        let actions = self.list(Self::alter_action)?;
        Ok(Verb::AlterStream(AlterStream { if_exists, name, actions }))
    }

    fn alter_action(&mut self) -> Parsed<AlterAction> {
        if self.eat("MODIFY TTL") {
            return self.rules(Self::list_goes_on).map(AlterAction::ModifyTtl);
        }
        if self.eat("REMOVE TTL") {
            return Ok(AlterAction::RemoveTtl);
        }
        if self.eat("MATERIALIZE TTL") {
            let partition = if self.eat("IN PARTITION") { Some(self.partition()?) } else { None };
            return Ok(AlterAction::MaterializeTtl { partition });
        }
        if self.eat("MODIFY RETENTION") {
            return self.stages(Self::list_goes_on).map(AlterAction::ModifyRetention);
        }
        if self.eat("REMOVE RETENTION") {
            return Ok(AlterAction::RemoveRetention);
        }
        if self.eat("MODIFY SETTING") || self.eat("MODIFY SETTINGS") {
            return self.settings(Self::list_goes_on).map(AlterAction::ModifySetting);
        }
        if self.eat("RESET SETTING") || self.eat("RESET SETTINGS") {
            return self.names_to_reset().map(AlterAction::ResetSetting);
        }
        if self.eat("MODIFY COMMENT") {
            return self.text("a comment").map(AlterAction::ModifyComment);
        }
        if self.eat("DROP PARTITION") {
            return self.partition().map(AlterAction::DropPartition);
        }
        if self.sees_one_of(&["MOVE PARTITION", "MOVE PART"]) {
            return self.move_action();
        }
        if let Some(action) = self.ref_action()? {
            return Ok(action);
        }
        self.column_action()
    }

    fn names_to_reset(&mut self) -> Parsed<Vec<Name>> {
        let mut names = vec![self.name("a setting")?];
        while self.sees_token(&Token::Comma) && self.list_goes_on() {
            self.advance(1);
            names.push(self.name("a setting")?);
        }
        Ok(names)
    }

    fn move_action(&mut self) -> Parsed<AlterAction> {
        let what = if self.eat("MOVE PARTITION") {
            Movable::Partition(self.partition()?)
        } else {
            self.expect("MOVE PART")?;
            Movable::Part(self.text("a part's name")?)
        };
        let at = self.clone();
        let to = self.destination()?;
        if to.if_exists {
            return Err(at.error("IF EXISTS belongs to TTL rules; MOVE names a place that is there"));
        }
        Ok(AlterAction::Move { what, to })
    }

    fn ref_action(&mut self) -> Parsed<Option<AlterAction>> {
        let modes = [("CREATE OR REPLACE", RefMode::CreateOrReplace), ("CREATE", RefMode::Create), ("REPLACE", RefMode::Replace)];
        for (words, mode) in modes {
            let mut ahead = self.clone();
            if ahead.eat(words) && ahead.sees_one_of(&["TAG", "BRANCH"]) {
                *self = ahead;
                return self.create_ref(mode).map(|r| Some(AlterAction::CreateRef(r)));
            }
        }
        if self.sees_one_of(&["DROP TAG", "DROP BRANCH"]) {
            self.advance(1);
            return self.drop_ref().map(|r| Some(AlterAction::DropRef(r)));
        }
        Ok(None)
    }

    fn column_action(&mut self) -> Parsed<AlterAction> {
        if self.eat("RENAME COLUMN") {
            let from = self.name("a column")?;
            self.expect("TO")?;
            return Ok(AlterAction::RenameColumn { from, to: self.name("a column")? });
        }
        if self.eat("DROP COLUMN") {
            let if_exists = self.eat_if_exists();
            let name = self.name("a column")?;
            if self.sees_one_of(&["CASCADE", "RESTRICT"]) && !self.eat("RESTRICT") {
                return self.refuse("DROP COLUMN ... CASCADE is not supported", "drop or modify what names the column in the same ALTER");
            }
            return Ok(AlterAction::DropColumn { if_exists, name });
        }
        if self.eat("MODIFY COLUMN") {
            return self.modify_column().map(AlterAction::ModifyColumn);
        }
        if self.eat("COMMENT COLUMN") {
            let name = self.name("a column")?;
            return Ok(AlterAction::CommentColumn { name, comment: self.text("a comment")? });
        }
        let refused = REFUSED.into_iter().find(|(words, _)| self.sees(words));
        if let Some((words, way_out)) = refused {
            return self.refuse(format!("ALTER STREAM ... {words} is not supported"), way_out);
        }
        // PostgreSQL leaves the word COLUMN to the writer.
        if self.eat("ADD COLUMN") || self.eat("ADD") {
            let if_not_exists = self.eat_if_not_exists();
            let (column, _) = self.column(false)?;
            return Ok(AlterAction::AddColumn { if_not_exists, column });
        }
        self.unknown_action()
    }

    fn unknown_action<T>(&self) -> Parsed<T> {
        let Some(first) = self.word(0) else { return self.expected("an action, like MODIFY TTL or ADD COLUMN") };
        let words = self.word(1).map_or_else(|| first.to_owned(), |second| format!("{first} {second}"));
        let near = did_you_mean(&words, ACTIONS);
        Err(self.error(format!("unknown action '{words}' of ALTER STREAM{near}")))
    }

    /// After PARTITION: `ID 'x'`, a constant, `(a, b)` or `tuple()`.
    pub(super) fn partition(&mut self) -> Parsed<Partition> {
        if self.sees("ID") {
            self.advance(1);
            return self.text("a partition's text").map(Partition::Id);
        }
        if self.sees("tuple") && self.nth(1) == Some(&Token::LParen) {
            self.advance(1);
            if self.nth(1) == Some(&Token::RParen) {
                self.advance(2);
                return Ok(Partition::Value(Vec::new()));
            }
        }
        if self.sees_token(&Token::LParen) {
            return self.parenthesized(|c| c.list(|c| c.literal("a partition's value"))).map(Partition::Value);
        }
        if self.sees("ALL") {
            return Err(syntax("PARTITION takes one partition; TRUNCATE STREAM empties them all", self.position()));
        }
        Ok(Partition::Value(vec![self.literal("a partition's value")?]))
    }
}
