//! Text to tokens: blanks and comments go, adjacent string literals become one as in PostgreSQL, and texts that could exhaust the
//! stack are refused before any tree is built.

use super::{
    error::{ParseError, TOO_COMPLEX, syntax},
    text::Text,
};
use crate::dialect::StreamDialect;
use datafusion::sql::sqlparser::{
    keywords::Keyword,
    tokenizer::{Token, TokenWithSpan, Tokenizer, TokenizerError, Whitespace},
};

/// Nested brackets. Trees grow by a few levels for each.
const MAX_NESTING: usize = 128;
/// Operators in one list item at one level of brackets: a chain of them is a tree as deep as it is long.
const MAX_CHAIN: usize = 3000;

/// The statements' tokens; no statement is empty.
pub(super) fn statements(text: &Text) -> Result<Vec<Vec<TokenWithSpan>>, ParseError> {
    let mut all = Vec::new();
    let mut one = Vec::new();
    let mut newline = false;
    for token in tokenize(text)? {
        match token.token {
            Token::EOF => {}
            Token::Whitespace(Whitespace::Newline) => newline = true,
            Token::Whitespace(_) => {}
            Token::SemiColon => {
                if !one.is_empty() {
                    all.push(std::mem::take(&mut one));
                }
            }
            Token::SingleQuotedString(ref more) if newline => {
                newline = false;
                match one.last_mut() {
                    Some(TokenWithSpan { token: Token::SingleQuotedString(s) | Token::EscapedStringLiteral(s), span }) => {
                        s.push_str(more);
                        span.end = token.span.end;
                    }
                    _ => one.push(token),
                }
            }
            _ => {
                newline = false;
                one.push(unreserved(token));
            }
        }
    }
    if !one.is_empty() {
        all.push(one);
    }
    for statement in &all {
        check_depth(statement, text)?;
    }
    Ok(all)
}

fn tokenize(text: &Text) -> Result<Vec<TokenWithSpan>, ParseError> {
    Tokenizer::new(&StreamDialect, &text.sql)
        .tokenize_with_location()
        .map_err(|TokenizerError { message, location }| syntax(message, text.position(location)))
}

/// Words that sqlparser would take for Snowflake's table versions are only words here.
fn unreserved(mut token: TokenWithSpan) -> TokenWithSpan {
    if let Token::Word(word) = &mut token.token
        && matches!(word.keyword, Keyword::CHANGES | Keyword::BEFORE)
    {
        word.keyword = Keyword::NoKeyword;
    }
    token
}

fn check_depth(tokens: &[TokenWithSpan], text: &Text) -> Result<(), ParseError> {
    let too_deep = |token: &TokenWithSpan, message: String| {
        Err(ParseError { message, position: Some(text.position(token.span.start)), sqlstate: TOO_COMPLEX, hint: None })
    };
    let mut chains = vec![0_usize];
    for token in tokens {
        match &token.token {
            Token::LParen | Token::LBracket | Token::LBrace => {
                chains.push(0);
                if chains.len() > MAX_NESTING {
                    return too_deep(token, format!("brackets are nested more than {MAX_NESTING} deep"));
                }
            }
            Token::RParen | Token::RBracket | Token::RBrace if chains.len() > 1 => {
                chains.pop();
            }
            Token::Comma => {
                if let Some(chain) = chains.last_mut() {
                    *chain = 0;
                }
            }
            other if deepens(other) => {
                if let Some(chain) = chains.last_mut() {
                    *chain += 1;
                    if *chain > MAX_CHAIN {
                        return too_deep(
                            token,
                            format!("more than {MAX_CHAIN} operators in one chain: write IN (...) or split the statement"),
                        );
                    }
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// Whether a chain of this token makes a tree deeper. Counting too many is harmless.
fn deepens(token: &Token) -> bool {
    match token {
        Token::Word(w) => w.quote_style.is_none() && w.keyword != Keyword::NoKeyword,
        Token::Number(..)
        | Token::SingleQuotedString(_)
        | Token::EscapedStringLiteral(_)
        | Token::DollarQuotedString(_)
        | Token::Placeholder(_)
        | Token::Period => false,
        _ => true,
    }
}
