//! Disks, storage policies and databases.

use super::{
    cursor::{Cursor, Parsed},
    error::syntax,
};
use crate::statement::{
    AlterDatabase, CreateDatabase, CreateDisk, CreateStoragePolicy, DiskOption, DropDatabase, DropDisk, DropStoragePolicy, Literal, SECRET,
    Verb,
};
use datafusion::sql::sqlparser::tokenizer::Token;

impl Cursor<'_> {
    /// After CREATE [OR REPLACE] DISK.
    pub(super) fn create_disk(&mut self, or_replace: bool) -> Parsed<Verb> {
        let if_not_exists = self.not_exists(or_replace)?;
        let name = self.place_name("a disk")?;
        self.eat("AS");
        self.expect("disk")?;
        let mut options: Vec<DiskOption> = Vec::new();
        self.parenthesized(|c| {
            if c.sees_token(&Token::RParen) {
                return c.expected("type = 'local' or type = 's3'");
            }
            c.list(|c| {
                let name = c.name("an option")?;
                c.expect_token(&Token::Eq)?;
                let value = match (c.eat_literal(), c.word(0)) {
                    (Some(literal), _) => literal,
                    // Quoted secrets are left out of what is told of a statement.
                    (None, Some(_)) if name.as_str() == SECRET => {
                        return Err(syntax(format!("{SECRET} must stand in quotes: {SECRET} = '...'"), name.position));
                    }
                    (None, Some(word)) => {
                        c.advance(1);
                        Literal::Text(word.to_owned())
                    }
                    (None, None) => return c.expected(&format!("a value of option {name}")),
                };
                if options.iter().any(|o| o.name == name) {
                    return Err(syntax(format!("option {name} is said twice"), name.position));
                }
                options.push(DiskOption { name, value });
                Ok(())
            })
        })?;
        Ok(Verb::CreateDisk(CreateDisk { or_replace, if_not_exists, name, options }))
    }

    /// After CREATE [OR REPLACE] STORAGE POLICY.
    pub(super) fn create_storage_policy(&mut self, or_replace: bool) -> Parsed<Verb> {
        let if_not_exists = self.not_exists(or_replace)?;
        let name = self.place_name("a storage policy")?;
        self.expect("AS")?;
        let Some(body) = self.eat_text() else { return self.expected("the policy as YAML: $$ volumes: ... $$") };
        Ok(Verb::CreateStoragePolicy(CreateStoragePolicy { or_replace, if_not_exists, name, body }))
    }

    /// After CREATE DATABASE.
    pub(super) fn create_database(&mut self) -> Parsed<Verb> {
        let if_not_exists = self.eat_if_not_exists();
        let name = self.database_name()?;
        if self.sees_one_of(&["ENGINE", "WITH", "OWNER", "ENCODING", "TEMPLATE", "COMMENT", "AUTHORIZATION"]) {
            return self.refuse("CREATE DATABASE takes no options", "leave them out");
        }
        Ok(Verb::CreateDatabase(CreateDatabase { if_not_exists, name }))
    }

    fn not_exists(&mut self, or_replace: bool) -> Parsed<bool> {
        let at = self.clone();
        let if_not_exists = self.eat_if_not_exists();
        if if_not_exists && or_replace {
            return Err(at.error("OR REPLACE and IF NOT EXISTS contradict each other"));
        }
        Ok(if_not_exists)
    }

    pub(super) fn drop_disk(&mut self) -> Parsed<Verb> {
        Ok(Verb::DropDisk(DropDisk { if_exists: self.eat_if_exists(), name: self.place_name("a disk")? }))
    }

    pub(super) fn drop_storage_policy(&mut self) -> Parsed<Verb> {
        Ok(Verb::DropStoragePolicy(DropStoragePolicy { if_exists: self.eat_if_exists(), name: self.place_name("a storage policy")? }))
    }

    pub(super) fn drop_database(&mut self) -> Parsed<Verb> {
        let if_exists = self.eat_if_exists();
        let name = self.database_name()?;
        let cascade = self.eat("CASCADE");
        if !cascade {
            self.eat("RESTRICT");
        }
        Ok(Verb::DropDatabase(DropDatabase { if_exists, cascade, name }))
    }

    /// After ALTER DATABASE.
    pub(super) fn alter_database(&mut self) -> Parsed<Verb> {
        let name = self.database_name()?;
        let retention = if self.eat("REMOVE RETENTION") {
            Vec::new()
        } else if self.eat("MODIFY RETENTION") {
            self.stages(|_| true)?
        } else {
            return self.expected("MODIFY RETENTION or REMOVE RETENTION");
        };
        Ok(Verb::AlterDatabase(AlterDatabase { name, retention }))
    }
}
