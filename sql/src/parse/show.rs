//! SHOW.

use super::cursor::{Cursor, Parsed};
use crate::statement::{Show, Verb};
use datafusion::sql::sqlparser::tokenizer::Token;

impl Cursor<'_> {
    /// After SHOW.
    pub(super) fn show(&mut self) -> Parsed<Verb> {
        if self.eat("CREATE") {
            return self.show_create().map(Verb::Show);
        }
        if self.eat("COLUMNS FROM") || self.eat("COLUMNS IN") {
            return self.describe();
        }
        self.eat("FULL");
        let show = if self.eat("STREAMS") || self.eat("TABLES") {
            let database = if self.eat("FROM") || self.eat("IN") { Some(self.database_name()?) } else { None };
            Show::Streams { database, like: self.like()? }
        } else if self.eat("DATABASES") || self.eat("SCHEMAS") {
            Show::Databases { like: self.like()? }
        } else if self.eat("DISKS") {
            Show::Disks
        } else if self.eat("STORAGE POLICIES") {
            Show::StoragePolicies
        } else if self.eat("SETTINGS") {
            Show::Settings { like: self.like()? }
        } else if self.eat("ALL") {
            Show::All
        } else if self.eat("TIME ZONE") {
            Show::Variable("timezone".to_owned())
        } else if self.eat("TRANSACTION ISOLATION LEVEL") {
            Show::Variable("transaction_isolation".to_owned())
        } else if self.eat("SESSION AUTHORIZATION") {
            Show::Variable("session_authorization".to_owned())
        } else {
            Show::Variable(self.variable()?)
        };
        Ok(Verb::Show(show))
    }

    fn show_create(&mut self) -> Parsed<Show> {
        if self.eat("DISK") {
            return self.place_name("a disk").map(Show::CreateDisk);
        }
        if self.eat("STORAGE POLICY") {
            return self.place_name("a storage policy").map(Show::CreateStoragePolicy);
        }
        if !self.eat_stream_word() {
            return self.expected("STREAM s, DISK d or STORAGE POLICY p");
        }
        self.stream_name().map(Show::CreateStream)
    }

    fn like(&mut self) -> Parsed<Option<String>> {
        if !self.eat("LIKE") {
            return Ok(None);
        }
        self.text("a pattern").map(Some)
    }

    /// A setting's name, dotted or not, in lower case.
    pub(super) fn variable(&mut self) -> Parsed<String> {
        let mut name = String::new();
        loop {
            match self.peek() {
                Some(Token::Word(w)) => name.push_str(&w.value.to_lowercase()),
                _ => return self.expected("a setting"),
            }
            self.advance(1);
            if !self.eat_token(&Token::Period) {
                return Ok(name);
            }
            name.push('.');
        }
    }
}
