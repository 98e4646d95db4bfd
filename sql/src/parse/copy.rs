//! COPY from and to the client, with PostgreSQL's options in brackets and in the older form without.

use super::cursor::{Cursor, Parsed};
use crate::{
    nearest::did_you_mean,
    statement::{Copy, CopyFormat, CopyHeader, CopyOptions, ForceColumns, Verb},
};
use datafusion::sql::sqlparser::tokenizer::Token;

const OPTIONS: [&str; 14] = [
    "format",
    "header",
    "delimiter",
    "null",
    "default",
    "quote",
    "escape",
    "force_quote",
    "force_not_null",
    "force_null",
    "encoding",
    "freeze",
    "on_error",
    "log_verbosity",
];

impl Cursor<'_> {
    /// After COPY.
    pub(super) fn copy(&mut self) -> Parsed<Verb> {
        if self.sees_token(&Token::LParen) {
            let query = self.parenthesized(|c| {
                if c.sees_one_of(&["SELECT", "WITH", "VALUES", "TABLE"]) || c.sees_token(&Token::LParen) {
                    c.query()
                } else {
                    c.expected("a query")
                }
            })?;
            self.expect("TO")?;
            self.client("STDOUT")?;
            let options = self.copy_options(false)?;
            return Ok(Verb::Copy(Copy::QueryTo { query, options }));
        }
        if matches!(self.nth(1), Some(Token::Word(_))) && !self.sees_one_of(&["STREAM FROM", "STREAM TO", "TABLE FROM", "TABLE TO"]) {
            self.eat_stream_word();
        }
        let stream = self.stream_name()?;
        let columns = if self.sees_token(&Token::LParen) { Some(self.column_names()?) } else { None };
        if self.eat("FROM") {
            self.client("STDIN")?;
            let options = self.copy_options(true)?;
            if self.sees("WHERE") {
                return self.refuse("COPY ... WHERE is not supported", "COPY into a stream of its own, then INSERT ... SELECT ... WHERE");
            }
            return Ok(Verb::Copy(Copy::From { into: stream, columns, options }));
        }
        self.expect("TO")?;
        self.client("STDOUT")?;
        let options = self.copy_options(false)?;
        Ok(Verb::Copy(Copy::To { from: stream, columns, options }))
    }

    fn client(&mut self, end: &str) -> Parsed<()> {
        if self.sees("PROGRAM") || matches!(self.peek(), Some(Token::SingleQuotedString(_) | Token::EscapedStringLiteral(_))) {
            return self
                .refuse("the server reads and writes no files for COPY", format!("write {end}; psql's \\copy opens the file for you"));
        }
        self.expect(end)
    }

    fn copy_options(&mut self, from: bool) -> Parsed<CopyOptions> {
        let at = self.clone();
        let mut options = CopyOptions::default();
        self.eat("USING");
        if self.sees("DELIMITERS") || self.sees("DELIMITER") && self.word(1).is_none() {
            self.old_options(&mut options)?;
        } else {
            self.eat("WITH");
            if self.sees_token(&Token::LParen) {
                let mut said = Vec::new();
                self.parenthesized(|c| c.list(|c| c.new_option(&mut options, &mut said)))?;
            } else {
                self.old_options(&mut options)?;
            }
        }
        check(&options, from).map_err(|message| at.error(message))?;
        Ok(options)
    }

    /// `name [value]` in brackets.
    fn new_option(&mut self, options: &mut CopyOptions, said: &mut Vec<String>) -> Parsed<()> {
        let at = self.clone();
        let Some(Token::Word(word)) = self.peek() else { return self.expected("an option of COPY") };
        let name = word.value.to_lowercase();
        self.advance(1);
        if said.contains(&name) {
            return Err(at.error(format!("option {name} is said twice")));
        }
        match name.as_str() {
            "format" => {
                let format = self.option_word("a format")?;
                options.format = match format.to_lowercase().as_str() {
                    "text" => CopyFormat::Text,
                    "csv" => CopyFormat::Csv,
                    "binary" => CopyFormat::Binary,
                    _ => {
                        let near = did_you_mean(&format, ["text", "csv", "binary"]);
                        return Err(at.error(format!("unknown format '{format}' of COPY: formats are text, csv, binary{near}")));
                    }
                };
            }
            "header" => {
                options.header = if self.eat("MATCH") {
                    CopyHeader::Match
                } else if self.option_bool()? {
                    CopyHeader::On
                } else {
                    CopyHeader::Off
                };
            }
            "delimiter" => options.delimiter = Some(self.one_char("delimiter")?),
            "null" => options.null = Some(self.text("a text")?),
            "default" => options.default = Some(self.text("a text")?),
            "quote" => options.quote = Some(self.one_char("quote")?),
            "escape" => options.escape = Some(self.one_char("escape")?),
            "force_quote" => options.force_quote = Some(self.force_columns(true)?),
            "force_not_null" => options.force_not_null = Some(self.force_columns(true)?),
            "force_null" => options.force_null = Some(self.force_columns(true)?),
            "encoding" => options.encoding = Some(self.encoding()?),
            "freeze" => {
                self.option_bool()?;
            }
            "on_error" => {
                let value = self.option_word("stop")?;
                if !value.eq_ignore_ascii_case("stop") {
                    return at.refuse(format!("ON_ERROR {value} is not supported"), "a COPY is all or nothing");
                }
            }
            "log_verbosity" => {
                self.option_word("default")?;
            }
            other => return Err(at.error(format!("unknown option '{other}' of COPY{}", did_you_mean(other, OPTIONS)))),
        }
        said.push(name);
        Ok(())
    }

    /// `BINARY`, `CSV HEADER`, `DELIMITER AS ','` ... without brackets.
    fn old_options(&mut self, options: &mut CopyOptions) -> Parsed<()> {
        loop {
            if self.eat("BINARY") {
                options.format = CopyFormat::Binary;
            } else if self.eat("CSV") {
                options.format = CopyFormat::Csv;
            } else if self.eat("HEADER") {
                options.header = CopyHeader::On;
            } else if self.eat("FREEZE") {
            } else if self.eat("DELIMITER") || self.eat("DELIMITERS") {
                self.eat("AS");
                options.delimiter = Some(self.one_char("delimiter")?);
            } else if self.eat("NULL") {
                self.eat("AS");
                options.null = Some(self.text("a text")?);
            } else if self.eat("QUOTE") {
                self.eat("AS");
                options.quote = Some(self.one_char("quote")?);
            } else if self.eat("ESCAPE") {
                self.eat("AS");
                options.escape = Some(self.one_char("escape")?);
            } else if self.eat("FORCE QUOTE") {
                options.force_quote = Some(self.force_columns(false)?);
            } else if self.eat("FORCE NOT NULL") {
                options.force_not_null = Some(self.force_columns(false)?);
            } else if self.eat("FORCE NULL") {
                options.force_null = Some(self.force_columns(false)?);
            } else if self.eat("ENCODING") {
                options.encoding = Some(self.encoding()?);
            } else if self.at_end() || self.sees("WHERE") {
                return Ok(());
            } else {
                return self.expected("an option of COPY, or WITH (option, ...)");
            }
        }
    }

    fn option_word(&mut self, what: &str) -> Parsed<String> {
        if let Some(text) = self.eat_text() {
            return Ok(text);
        }
        match self.peek() {
            Some(Token::Word(word)) => {
                self.advance(1);
                Ok(word.value.clone())
            }
            _ => self.expected(what),
        }
    }

    /// Nothing is true.
    fn option_bool(&mut self) -> Parsed<bool> {
        if self.at_end() || self.sees_token(&Token::Comma) || self.sees_token(&Token::RParen) {
            return Ok(true);
        }
        let at = self.clone();
        let value = match self.eat_number() {
            Some(number) => number,
            None => self.option_word("true or false")?,
        };
        match value.to_lowercase().as_str() {
            "true" | "on" | "1" => Ok(true),
            "false" | "off" | "0" => Ok(false),
            _ => at.expected("true or false"),
        }
    }

    fn one_char(&mut self, what: &str) -> Parsed<char> {
        let at = self.clone();
        let text = self.text("a character")?;
        match text.as_bytes() {
            [byte] if byte.is_ascii() => Ok(char::from(*byte)),
            _ => Err(at.error(format!("{what} is a single one-byte character"))),
        }
    }

    fn force_columns(&mut self, brackets: bool) -> Parsed<ForceColumns> {
        if self.eat_token(&Token::Mul) {
            return Ok(ForceColumns::All);
        }
        if brackets {
            return self.column_names().map(ForceColumns::Columns);
        }
        self.list(|c| c.name("a column")).map(ForceColumns::Columns)
    }

    fn encoding(&mut self) -> Parsed<String> {
        let at = self.clone();
        let encoding = self.option_word("an encoding")?;
        let plain: String = encoding.to_lowercase().chars().filter(char::is_ascii_alphanumeric).collect();
        if plain != "utf8" && plain != "unicode" {
            return at.refuse(format!("encoding '{encoding}' is not supported"), "Ebb speaks UTF8");
        }
        Ok("UTF8".to_owned())
    }
}

/// What PostgreSQL checks of options together.
fn check(options: &CopyOptions, from: bool) -> Result<(), String> {
    let csv = options.format == CopyFormat::Csv;
    let csv_only = [
        (options.quote.is_some(), "QUOTE"),
        (options.escape.is_some(), "ESCAPE"),
        (options.force_quote.is_some(), "FORCE_QUOTE"),
        (options.force_not_null.is_some(), "FORCE_NOT_NULL"),
        (options.force_null.is_some(), "FORCE_NULL"),
    ];
    if !csv && let Some((_, name)) = csv_only.into_iter().find(|(said, _)| *said) {
        return Err(format!("{name} belongs to FORMAT csv"));
    }
    if options.format == CopyFormat::Binary {
        let not_binary = [
            (options.header != CopyHeader::Off, "HEADER"),
            (options.delimiter.is_some(), "DELIMITER"),
            (options.null.is_some(), "NULL"),
            (options.default.is_some(), "DEFAULT"),
        ];
        if let Some((_, name)) = not_binary.into_iter().find(|(said, _)| *said) {
            return Err(format!("{name} does not belong to FORMAT binary"));
        }
    }
    let from_only = [
        (options.force_not_null.is_some(), "FORCE_NOT_NULL"),
        (options.force_null.is_some(), "FORCE_NULL"),
        (options.header == CopyHeader::Match, "HEADER MATCH"),
        (options.default.is_some(), "DEFAULT"),
    ];
    if !from && let Some((_, name)) = from_only.into_iter().find(|(said, _)| *said) {
        return Err(format!("{name} belongs to COPY FROM"));
    }
    if from && options.force_quote.is_some() {
        return Err("FORCE_QUOTE belongs to COPY TO".to_owned());
    }
    let delimiter = options.delimiter();
    if matches!(delimiter, '\n' | '\r')
        || !csv && (delimiter.is_ascii_lowercase() || delimiter.is_ascii_digit() || "\\.".contains(delimiter))
    {
        return Err(format!("the delimiter cannot be {delimiter:?}"));
    }
    if csv && (options.quote() == delimiter || matches!(options.quote(), '\n' | '\r')) {
        return Err("quote and delimiter are different characters, and no line break".to_owned());
    }
    if options.format != CopyFormat::Binary && (options.null().contains(delimiter) || options.null().contains(['\n', '\r'])) {
        return Err("the text for NULL holds neither the delimiter nor a line break".to_owned());
    }
    if options.default.as_deref() == Some(options.null()) {
        return Err("the texts for NULL and DEFAULT are different".to_owned());
    }
    Ok(())
}
