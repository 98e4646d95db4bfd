//! `k = v` lists of streams. Which names exist and what they take is not known here.

use super::{
    cursor::{Cursor, Parsed},
    error::syntax,
};
use crate::statement::{Literal, Setting};
use datafusion::sql::sqlparser::tokenizer::Token;
use ebb_storage::stream_def::SettingValue;

impl Cursor<'_> {
    /// `more` says whether a setting follows the comma that is next.
    pub(super) fn settings(&mut self, more: impl Fn(&Self) -> bool) -> Parsed<Vec<Setting>> {
        let mut settings = vec![self.setting()?];
        while self.sees_token(&Token::Comma) && more(self) {
            self.advance(1);
            let next = self.setting()?;
            if settings.iter().any(|s| s.name == next.name) {
                return Err(syntax(format!("setting {} is said twice", next.name), next.name.position));
            }
            settings.push(next);
        }
        Ok(settings)
    }

    fn setting(&mut self) -> Parsed<Setting> {
        let name = self.name("a setting")?;
        self.expect_token(&Token::Eq)?;
        let value = match self.eat_literal() {
            Some(Literal::Bool(b)) => SettingValue::Bool(b),
            Some(Literal::Number(n)) => n.parse().map_or_else(|_| SettingValue::Text(n), SettingValue::Int),
            Some(Literal::Text(text)) => SettingValue::Text(text),
            Some(Literal::Null) => return Err(syntax(format!("NULL is no value of setting {name}; RESET SETTING {name}"), name.position)),
            None => match self.word(0) {
                Some(word) => {
                    self.advance(1);
                    SettingValue::Text(word.to_lowercase())
                }
                None => return self.expected(&format!("a value of setting {name}")),
            },
        };
        Ok(Setting { name, value })
    }
}
