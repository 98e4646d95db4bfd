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

/// Nested brackets, CASE counted as one. Trees grow by a few levels for each.
const MAX_NESTING: usize = 128;
/// Operators in one chain: its tree is as deep as it is long, and copying a level of it takes kilobytes of stack.
const MAX_CHAIN: usize = 200;
/// Conditions joined by AND and OR in one place; their trees are balanced after parsing.
const MAX_CONDITIONS: usize = 3000;
/// Queries joined by UNION, EXCEPT, INTERSECT in one place.
const MAX_UNIONS: usize = 100;

/// What sqlparser and DataFusion find below them before they go one level deeper, else they take a new piece of stack. Their own
/// measure, 128 KiB, is less than some of their levels take in a debug build.
const STACK_LEFT_BYTES: usize = 512 * 1024;
const STACK_PIECE_BYTES: usize = 4 * 1024 * 1024;

/// The statements' tokens; no statement is empty.
pub(super) fn statements(text: &Text) -> Result<Vec<Vec<TokenWithSpan>>, ParseError> {
    recursive::set_minimum_stack_size(STACK_LEFT_BYTES);
    recursive::set_stack_allocation_size(STACK_PIECE_BYTES);
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

/// How often sqlparser may read one piece of a text. It tries and goes back: a form with a grammar of its own is read again as a plain
/// call where it fails, and what stands in brackets behind FROM or JOIN is read as a query first, then as a join, by each of the
/// brackets that open there together. Inside of each other that multiplies.
const MAX_READINGS: u32 = 256;

/// What was counted at one level of brackets.
struct Level {
    case: bool,
    /// How often it is read.
    readings: u32,
    /// The brackets that open together behind FROM or JOIN, this one the last of them; 0 for one elsewhere.
    table_brackets: u32,
    /// Behind FROM or JOIN, where a bracket or what follows a comma is a table.
    tables: bool,
    operators: usize,
    /// BETWEEN has an AND of its own, which ends no chain of them.
    betweens: usize,
    conditions: usize,
    unions: usize,
}

impl Level {
    /// Where a new item or clause begins.
    fn cleared(&self) -> Self {
        let Self { case, readings, table_brackets, tables, unions, .. } = *self;
        Self { case, readings, table_brackets, tables, unions, ..Self::default() }
    }

    /// The level that a bracket opens behind `opener`.
    fn inside(&self, opener: Option<&Token>) -> Self {
        let table = match opener {
            Some(Token::Word(word)) => word.quote_style.is_none() && matches!(word.keyword, Keyword::FROM | Keyword::JOIN),
            Some(Token::Comma) => self.tables,
            Some(Token::LParen) => self.table_brackets > 0,
            _ => false,
        };
        let together = if matches!(opener, Some(Token::LParen)) { self.table_brackets } else { 0 };
        let table_brackets = if table { together + 1 } else { 0 };
        // Of the brackets that open together the first reads what is inside once, the second once more, and so on.
        let around = self.readings / together.max(1);
        let times = if table { table_brackets } else { 1 + u32::from(opener.is_some_and(is_form)) };
        Self { readings: around.saturating_mul(times), table_brackets, tables: table, ..Self::default() }
    }
}

impl Default for Level {
    fn default() -> Self {
        Self { case: false, readings: 1, table_brackets: 0, tables: false, operators: 0, betweens: 0, conditions: 0, unions: 0 }
    }
}

/// Counts what makes trees deep. Counting too many is harmless as long as people's statements pass.
fn check_depth(tokens: &[TokenWithSpan], text: &Text) -> Result<(), ParseError> {
    let mut levels = vec![Level::default()];
    let mut before: Option<&Token> = None;
    for token in tokens {
        let Some(level) = levels.last_mut() else { break };
        let opener = before.replace(&token.token);
        match &token.token {
            Token::LParen | Token::LBracket | Token::LBrace => {
                let inside = level.inside(opener);
                levels.push(inside);
            }
            Token::RParen | Token::RBracket | Token::RBrace => while levels.len() > 1 && levels.pop().is_some_and(|l| l.case) {},
            Token::Comma => *level = level.cleared(),
            Token::Word(word) if word.quote_style.is_none() => match word.keyword {
                Keyword::CASE => {
                    let readings = level.readings;
                    levels.push(Level { case: true, readings, ..Level::default() });
                }
                Keyword::END if level.case => {
                    levels.pop();
                }
                Keyword::AND | Keyword::OR => (level.operators, level.conditions) = (0, level.conditions + 1),
                Keyword::UNION | Keyword::EXCEPT | Keyword::INTERSECT | Keyword::MINUS => level.unions += 1,
                Keyword::BETWEEN => level.betweens += 1,
                // A list of values in brackets is read as a query, then as a table.
                Keyword::VALUES if opener == Some(&Token::LParen) && level.table_brackets > 0 => {
                    *level = Level { readings: level.readings.saturating_mul(2), tables: false, ..level.cleared() };
                }
                Keyword::FROM => level.tables = true,
                keyword if ends_chain(keyword) => {
                    let tables = matches!(keyword, Keyword::JOIN | Keyword::ON | Keyword::USING) && level.tables;
                    *level = Level { tables, ..level.cleared() };
                }
                keyword if is_infix(keyword) || word.value.eq_ignore_ascii_case("isnull") => level.operators += 1,
                _ => {}
            },
            operator if is_operator(operator) => level.operators += 1,
            _ => {}
        }
        let Some(level) = levels.last() else { break };
        let message = if levels.len() > MAX_NESTING {
            format!("brackets are nested more than {MAX_NESTING} deep")
        } else if level.readings > MAX_READINGS {
            "CAST, EXTRACT, NOT (...) and their kin, or brackets that begin with brackets behind FROM and JOIN, are nested too deeply: \
             write x::type, or name the inner queries with WITH"
                .to_owned()
        } else if level.operators.max(level.betweens) > MAX_CHAIN {
            format!("more than {MAX_CHAIN} operators in one chain: put parts of it in brackets")
        } else if level.conditions > MAX_CONDITIONS {
            format!("more than {MAX_CONDITIONS} conditions joined by AND and OR: write IN (...) or join a stream of values")
        } else if level.unions > MAX_UNIONS {
            format!("more than {MAX_UNIONS} queries joined in one: put groups of them in brackets")
        } else {
            continue;
        };
        return Err(ParseError { message, position: Some(text.position(token.span.start)), sqlstate: TOO_COMPLEX, hint: None });
    }
    Ok(())
}

/// Words behind which no operator before them goes on.
fn ends_chain(keyword: Keyword) -> bool {
    use Keyword::{BY, ELSE, GROUP, HAVING, JOIN, LIMIT, ON, ORDER, SELECT, SET, THEN, USING, VALUES, WHEN, WHERE};
    matches!(keyword, BY | ELSE | GROUP | HAVING | JOIN | LIMIT | ON | ORDER | SELECT | SET | THEN | USING | VALUES | WHEN | WHERE)
}

fn is_infix(keyword: Keyword) -> bool {
    use Keyword::{AT, COLLATE, ILIKE, IN, IS, LIKE, NOT, NOTNULL, OVERLAPS, REGEXP, RLIKE, SIMILAR};
    matches!(keyword, AT | COLLATE | ILIKE | IN | IS | LIKE | NOT | NOTNULL | OVERLAPS | REGEXP | RLIKE | SIMILAR)
}

fn is_form(token: &Token) -> bool {
    use Keyword::{
        ARRAY, CAST, CEIL, CONVERT, EXISTS, EXTRACT, FLOOR, INTERVAL, MAP, NOT, OVERLAY, POSITION, SAFE_CAST, STRUCT, SUBSTR, SUBSTRING,
        TRIM, TRY_CAST, TRY_CONVERT,
    };
    let Token::Word(word) = token else { return matches!(token, Token::LBracket) };
    let forms = [
        ARRAY,
        CAST,
        CEIL,
        CONVERT,
        EXISTS,
        EXTRACT,
        FLOOR,
        INTERVAL,
        MAP,
        NOT,
        OVERLAY,
        POSITION,
        SAFE_CAST,
        STRUCT,
        SUBSTR,
        SUBSTRING,
        TRIM,
        TRY_CAST,
        TRY_CONVERT,
    ];
    word.quote_style.is_none() && forms.contains(&word.keyword)
}

fn is_operator(token: &Token) -> bool {
    !matches!(
        token,
        Token::Word(_)
            | Token::Number(..)
            | Token::SingleQuotedString(_)
            | Token::EscapedStringLiteral(_)
            | Token::UnicodeStringLiteral(_)
            | Token::DollarQuotedString(_)
            | Token::Placeholder(_)
            | Token::Period
    )
}
