//! SYSTEM.

use super::cursor::{Cursor, Parsed};
use crate::{
    nearest::did_you_mean,
    statement::{Stoppable, StreamName, System, Verb, VolumeName},
};
use datafusion::sql::sqlparser::tokenizer::Token;

const COMMANDS: [&str; 10] = [
    "STOP MERGES",
    "START MERGES",
    "STOP TTL MERGES",
    "START TTL MERGES",
    "STOP MOVES",
    "START MOVES",
    "FLUSH",
    "SETTLE",
    "ADVANCE CLOCK",
    "STATUS",
];

impl Cursor<'_> {
    /// After SYSTEM.
    pub(super) fn system(&mut self) -> Parsed<Verb> {
        let system = if self.sees_one_of(&["STOP MERGES", "STOP TTL MERGES", "STOP MOVES"]) {
            self.advance(1);
            System::Stop { what: self.stoppable()?, stream: self.optional_stream()? }
        } else if self.sees_one_of(&["START MERGES", "START TTL MERGES", "START MOVES"]) {
            self.advance(1);
            System::Start { what: self.stoppable()?, stream: self.optional_stream()? }
        } else if self.eat("FLUSH") {
            System::Flush(self.optional_stream()?)
        } else if self.eat("SETTLE") {
            System::Settle(self.optional_stream()?)
        } else if self.eat("ADVANCE CLOCK") {
            self.eat("BY");
            let at = self.clone();
            let by = self.interval()?;
            if by.is_negative() {
                return Err(at.error("a clock only advances: name an interval of zero or more"));
            }
            System::AdvanceClock(by)
        } else if self.eat("STATUS") {
            System::Status
        } else {
            let words: Vec<&str> = (0..3).map_while(|n| self.word(n)).collect();
            let near = did_you_mean(&words.join(" "), COMMANDS);
            return self.expected(&format!("one of {}{near}", COMMANDS.join(", ")));
        };
        Ok(Verb::System(system))
    }

    fn stoppable(&mut self) -> Parsed<Stoppable> {
        if self.eat("TTL MERGES") {
            return Ok(Stoppable::TtlMerges);
        }
        if self.eat("MOVES") {
            return Ok(Stoppable::Moves);
        }
        self.expect("MERGES")?;
        if !self.eat("ON VOLUME") {
            return Ok(Stoppable::Merges { volume: None });
        }
        let policy = self.place_name("a storage policy")?;
        if !self.sees_token(&Token::Period) {
            return self.expected("'.' and a volume: a volume is named policy.volume");
        }
        self.advance(1);
        Ok(Stoppable::Merges { volume: Some(VolumeName { policy, volume: self.place_name("a volume")? }) })
    }

    fn optional_stream(&mut self) -> Parsed<Option<StreamName>> {
        if self.at_end() {
            return Ok(None);
        }
        if matches!(self.nth(1), Some(Token::Word(_))) {
            self.eat_stream_word();
        }
        self.stream_name().map(Some)
    }
}
