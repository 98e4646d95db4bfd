//! `CODEC(...)`: of a column, with the encoding that comes before it, or of a rule, alone.

use super::cursor::{Cursor, Parsed};
use crate::nearest::did_you_mean;
use datafusion::sql::sqlparser::tokenizer::Token;
use ebb_storage::codec::{CODEC_NAMES, Codec, ColumnCodec, PREPROCESSOR_NAMES, Preprocessor};

enum Item {
    Preprocessor(Preprocessor),
    Codec(Codec),
}

impl Cursor<'_> {
    /// After the word CODEC.
    pub(super) fn column_codec(&mut self) -> Parsed<ColumnCodec> {
        let at = self.clone();
        let items = self.parenthesized(|c| c.list(Self::codec_item))?;
        match items.as_slice() {
            [Item::Codec(codec)] => Ok(ColumnCodec { preprocessor: None, codec: *codec }),
            [Item::Preprocessor(p), Item::Codec(codec)] => Ok(ColumnCodec { preprocessor: Some(*p), codec: *codec }),
            [Item::Preprocessor(p)] => Err(at.error(format!("{p} does not compress: name a codec after it, like CODEC({p}, LZ4)"))),
            _ => Err(at.error("a column's CODEC is one codec, or one of Delta, DoubleDelta, Gorilla, T64 and then one codec")),
        }
    }

    /// After the word RECOMPRESS.
    pub(super) fn recompress_codec(&mut self) -> Parsed<Codec> {
        if !self.sees("CODEC") {
            return Err(self.error("RECOMPRESS needs its codec: write RECOMPRESS CODEC(ZSTD(17))"));
        }
        self.advance(1);
        let at = self.clone();
        let items = self.parenthesized(|c| c.list(Self::codec_item))?;
        match items.as_slice() {
            [Item::Codec(codec)] => Ok(*codec),
            [Item::Preprocessor(p), ..] => {
                Err(at.error(format!("{p} does not compress: RECOMPRESS takes one codec, like CODEC(ZSTD(17))")))
            }
            _ => Err(at.error("RECOMPRESS takes one codec, like CODEC(ZSTD(17))")),
        }
    }

    fn codec_item(&mut self) -> Parsed<Item> {
        let at = self.clone();
        let Some(name) = self.word(0) else { return self.expected("a codec, like ZSTD(3)") };
        self.advance(1);
        let level = if self.eat_token(&Token::LParen) {
            let level = self.eat_number().and_then(|n| n.parse::<i64>().ok());
            if level.is_none() {
                return self.expected("a codec's level, a whole number");
            }
            self.expect_token(&Token::RParen)?;
            level
        } else {
            None
        };
        if let Some(preprocessor) = Preprocessor::parse(name) {
            return match level {
                None => Ok(Item::Preprocessor(preprocessor)),
                Some(_) => Err(at.error(format!("{preprocessor} takes no number: the column's type says its width"))),
            };
        }
        let known = CODEC_NAMES.iter().any(|n| n.eq_ignore_ascii_case(name));
        match Codec::parse(name, level) {
            Ok(codec) => Ok(Item::Codec(codec)),
            Err(e) if known => Err(at.error(e.message())),
            Err(e) => {
                let near = did_you_mean(name, CODEC_NAMES.into_iter().chain(PREPROCESSOR_NAMES));
                Err(at.error(format!("{}{near}", e.message())))
            }
        }
    }
}
