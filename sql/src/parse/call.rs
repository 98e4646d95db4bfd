//! CALL.

use super::{
    cursor::{Cursor, Parsed},
    error::syntax,
};
use crate::{
    nearest::did_you_mean,
    statement::{Call, CallArg, Name, Verb},
};
use datafusion::sql::sqlparser::tokenizer::Token;

pub const PROCEDURES: [&str; 6] =
    ["rollback_to_snapshot", "rollback_to_timestamp", "fast_forward", "cherrypick_snapshot", "expire_snapshots", "advance_reader"];

impl Cursor<'_> {
    /// After CALL.
    pub(super) fn call(&mut self) -> Parsed<Verb> {
        let mut procedure = self.name("a procedure")?;
        // `system.expire_snapshots` is what other systems say.
        if procedure.text == "system" && self.eat_token(&Token::Period) {
            procedure = self.name("a procedure")?;
        }
        if !PROCEDURES.contains(&procedure.as_str()) {
            let near = did_you_mean(procedure.as_str(), PROCEDURES);
            let all = PROCEDURES.join(", ");
            return Err(syntax(format!("unknown procedure '{procedure}': procedures are {all}{near}"), procedure.position));
        }
        let mut args: Vec<CallArg> = Vec::new();
        self.parenthesized(|c| {
            if c.sees_token(&Token::RParen) {
                return Ok(Vec::new());
            }
            c.list(|c| {
                let arg = c.call_arg()?;
                match &arg.name {
                    Some(name) if args.iter().any(|a| a.name.as_ref() == Some(name)) => {
                        return Err(syntax(format!("argument {name} is said twice"), name.position));
                    }
                    None if args.iter().any(|a| a.name.is_some()) => return Err(c.error("arguments with names follow the others")),
                    _ => {}
                }
                args.push(arg);
                Ok(())
            })
        })?;
        Ok(Verb::Call(Call { procedure, args }))
    }

    fn call_arg(&mut self) -> Parsed<CallArg> {
        let named = matches!(self.peek(), Some(Token::Word(_))) && matches!(self.nth(1), Some(Token::RArrow | Token::Assignment));
        let mut name = None;
        if named {
            // Any word is a name before an arrow: `table => 's'`.
            let position = self.position();
            let word = self.word(0).map(|w| w.to_lowercase());
            let text = match word {
                Some(word) => {
                    self.advance(1);
                    word
                }
                None => self.name("an argument")?.text,
            };
            self.advance(1);
            name = Some(Name { text, position });
        }
        Ok(CallArg { name, value: self.expression("a value")? })
    }
}
