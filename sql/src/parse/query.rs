//! Queries: sqlparser reads them; what DataFusion would drop without a word is refused, table versions are collected.
//!
//! sqlparser knows `VERSION AS OF` with plain numbers only. Whatever else stands there is handed to it inside of a call of
//! [`VERSION_CALL`] and taken out again.

use super::{
    canonical,
    cursor::{Cursor, Parsed},
    error::{ParseError, refused},
    interval,
    text::Text,
};
use crate::statement::{AsOf, Name, Position, Query, StreamName, VersionedTable};
use datafusion::sql::sqlparser::{
    ast::{
        self, DataType, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, Interval, ObjectName, Select, SetExpr, Spanned,
        TableFactor, TableVersion, Value, VisitMut, VisitorMut,
    },
    keywords::Keyword,
    tokenizer::{Span, Token, TokenWithSpan, Word},
};
use std::ops::ControlFlow;

const VERSION_CALL: &str = "__ebb_version";

/// Words that other systems have behind a table. Without AS they are no alias here.
const NO_ALIASES: [&str; 4] = ["final", "sample", "prewhere", "format"];

impl Cursor<'_> {
    /// A query that goes on to the end of this level of brackets.
    pub(super) fn query(&mut self) -> Parsed<Query> {
        let from = self.at;
        let len = self.level_len();
        let tokens = with_versions(self.first(len).rest());
        let grown = tokens.len() - len;
        let (mut ast, taken) = self.first(len).sqlparser_on(tokens, |p| p.parse_query()).map_err(misplaced_version)?;
        // A query that stops early stops behind all that was added.
        self.advance(taken.saturating_sub(grown).min(len));
        let versions = check(&mut *ast, self.text)?;
        Ok(Query { ast, source: self.source_from(from), versions })
    }
}

/// A version that stands anywhere but right behind a stream reaches sqlparser in words that nobody wrote.
fn misplaced_version(e: ParseError) -> ParseError {
    match e.message.contains("SYSTEM_TIME") {
        true => ParseError {
            message: "a version stands right behind the name of a stream, before an alias".to_owned(),
            hint: Some("write FROM s VERSION AS OF 1 AS z".to_owned()),
            ..e
        },
        false => e,
    }
}

/// `TABLE s` becomes `SELECT * FROM s`, what stands behind VERSION AS OF a call.
pub(super) fn with_versions(tokens: &[TokenWithSpan]) -> Vec<TokenWithSpan> {
    let mut out: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len() + 8);
    let mut n = 0;
    while let Some(token) = tokens.get(n) {
        let like = |new: Token| TokenWithSpan { token: new, span: token.span };
        let len = out.len();
        let taken = match len >= 3 && ["VERSION", "AS", "OF"].iter().zip(&out[len - 3..]).all(|(w, t)| is_word(&t.token, w)) {
            true => version_len(&tokens[n..]),
            false => 0,
        };
        if n == 0 && is_word(&token.token, "TABLE") {
            out.extend([Token::make_keyword("SELECT"), Token::Mul, Token::make_keyword("FROM")].map(like));
            n += 1;
        } else if taken > 0 {
            out.truncate(len - 3);
            for word in ["FOR", "SYSTEM_TIME", "AS", "OF"] {
                out.push(like(Token::make_keyword(word)));
            }
            out.push(like(Token::make_word(VERSION_CALL, None)));
            out.push(like(Token::LParen));
            out.extend_from_slice(&tokens[n..n + taken]);
            out.push(like(Token::RParen));
            n += taken;
        } else {
            out.push(at_alias(token.clone(), tokens.get(n + 1)));
            n += 1;
        }
    }
    out
}

/// How many tokens are the value behind VERSION AS OF: a constant, a parameter or brackets, and casts of it.
fn version_len(tokens: &[TokenWithSpan]) -> usize {
    let token = |n: usize| tokens.get(n).map(|t| &t.token);
    let brackets = |from: usize| {
        let mut depth = 0_usize;
        for (n, t) in tokens.iter().enumerate().skip(from) {
            match t.token {
                Token::LParen => depth += 1,
                Token::RParen if depth <= 1 => return Some(n + 1 - from),
                Token::RParen => depth -= 1,
                _ => {}
            }
        }
        None
    };
    let mut len = match token(0) {
        Some(
            Token::SingleQuotedString(_)
            | Token::EscapedStringLiteral(_)
            | Token::DollarQuotedString(_)
            | Token::UnicodeStringLiteral(_)
            | Token::Number(..)
            | Token::Placeholder(_),
        ) => 1,
        Some(Token::LParen) => brackets(0).unwrap_or(0),
        _ => 0,
    };
    while len > 0 && token(len) == Some(&Token::DoubleColon) && matches!(token(len + 1), Some(Token::Word(_))) {
        len += 2;
        if token(len) == Some(&Token::LParen) {
            len += brackets(len).unwrap_or(0);
        }
    }
    len
}

/// AT is a word of `AT TIME ZONE` only.
fn at_alias(mut token: TokenWithSpan, next: Option<&TokenWithSpan>) -> TokenWithSpan {
    if let Token::Word(word) = &mut token.token
        && word.keyword == Keyword::AT
        && !next.is_some_and(|t| is_word(&t.token, "TIME"))
    {
        word.keyword = Keyword::NoKeyword;
    }
    token
}

fn is_word(token: &Token, text: &str) -> bool {
    matches!(token, Token::Word(Word { value, quote_style: None, .. }) if value.eq_ignore_ascii_case(text))
}

/// Refuses what would be dropped, restores versions and names them all.
fn check<T: VisitMut>(tree: &mut T, text: &Text) -> Result<Vec<VersionedTable>, ParseError> {
    let mut check = Check { text, versions: Vec::new() };
    match VisitMut::visit(tree, &mut check) {
        ControlFlow::Break(e) => Err(*e),
        ControlFlow::Continue(()) => Ok(check.versions),
    }
}

/// For a condition whose subqueries are run as queries are.
pub(super) fn check_condition(expr: &mut Expr, text: &Text) -> Result<(), ParseError> {
    check(expr, text).map(|_| ())
}

/// For an expression with subqueries in a statement that has no versions of its own.
pub(super) fn check_expr(expr: &mut Expr, text: &Text) -> Result<(), ParseError> {
    match check(expr, text)?.first() {
        Some(version) => Err(refused(
            format!("{} cannot be read at a version here", version.name),
            "read it at the version with a SELECT, then name the values",
            version.position.0,
        )),
        None => Ok(()),
    }
}

struct Check<'a> {
    text: &'a Text,
    versions: Vec<VersionedTable>,
}

type Flow = ControlFlow<Box<ParseError>>;

impl Check<'_> {
    fn refuse(&self, span: Span, what: &str, way_out: &str) -> Flow {
        let position = (span.start.line > 0).then(|| self.text.position(span.start));
        ControlFlow::Break(Box::new(ParseError { position, ..refused(what, way_out, 0) }))
    }

    fn name(&self, name: &ObjectName) -> StreamName {
        let part = |ident: &Ident| Name {
            text: if ident.quote_style.is_some() { ident.value.clone() } else { ident.value.to_lowercase() },
            position: self.text.position(ident.span.start),
        };
        StreamName { parts: name.0.iter().filter_map(|p| p.as_ident()).map(part).collect() }
    }

    fn version(&mut self, name: &ObjectName, version: &mut TableVersion) -> Flow {
        if let TableVersion::ForSystemTimeAsOf(expr) = version
            && let Some(text) = version_text(expr)
        {
            *version = TableVersion::VersionAsOf(text);
        }
        let at = match version {
            TableVersion::VersionAsOf(e) => AsOf::Version(e.clone()),
            TableVersion::TimestampAsOf(e) | TableVersion::ForSystemTimeAsOf(e) => AsOf::Timestamp(e.clone()),
            TableVersion::Function(_) | TableVersion::Changes { .. } => {
                return self.refuse(name.span(), "AT, BEFORE and CHANGES are not supported", "write VERSION AS OF n or TIMESTAMP AS OF t");
            }
        };
        let name = self.name(name);
        let position = Position(name.position());
        self.versions.push(VersionedTable { name, at, position });
        ControlFlow::Continue(())
    }
}

/// The text inside of a [`VERSION_CALL`].
fn version_text(expr: &Expr) -> Option<Expr> {
    let Expr::Function(call) = expr else { return None };
    let FunctionArguments::List(list) = &call.args else { return None };
    let named = matches!(call.name.0.as_slice(), [part] if part.as_ident().is_some_and(|i| i.value == VERSION_CALL));
    match list.args.as_slice() {
        [FunctionArg::Unnamed(FunctionArgExpr::Expr(text))] if named => Some(text.clone()),
        _ => None,
    }
}

impl VisitorMut for Check<'_> {
    type Break = Box<ParseError>;

    fn pre_visit_query(&mut self, query: &mut ast::Query) -> Flow {
        if query.settings.is_some() {
            return self.refuse(query.span(), "SETTINGS is not supported in a query", "write SET name = value before it");
        }
        if query.format_clause.is_some() {
            return self.refuse(query.span(), "FORMAT is not supported in a query", "write COPY (query) TO STDOUT WITH (FORMAT csv)");
        }
        if !query.locks.is_empty() || query.for_clause.is_some() {
            return self.refuse(
                query.span(),
                "FOR UPDATE and its kin are not supported",
                "leave it out; a block reads one cut, nothing needs locks",
            );
        }
        set_expr(&query.body).map_or(ControlFlow::Continue(()), |(what, way_out)| self.refuse(query.span(), what, way_out))
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> Flow {
        let refusals = [
            (select.into.is_some(), "SELECT INTO is not supported", "write CREATE STREAM s AS SELECT ..."),
            (select.top.is_some(), "TOP is not supported", "write LIMIT n"),
            (select.prewhere.is_some(), "PREWHERE is not supported", "write WHERE; parts are pruned by it"),
            (!select.connect_by.is_empty(), "CONNECT BY is not supported", "write WITH RECURSIVE"),
            (!select.lateral_views.is_empty(), "LATERAL VIEW is not supported", "write unnest()"),
            (
                !select.cluster_by.is_empty() || !select.distribute_by.is_empty(),
                "CLUSTER BY and DISTRIBUTE BY are not supported",
                "leave them out",
            ),
            (!select.sort_by.is_empty(), "SORT BY is not supported", "write ORDER BY"),
            (select.value_table_mode.is_some(), "SELECT AS is not supported", "name the columns"),
        ];
        match refusals.into_iter().find(|(seen, ..)| *seen) {
            Some((_, what, way_out)) => self.refuse(select.span(), what, way_out),
            None => ControlFlow::Continue(()),
        }
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> Flow {
        let sampled =
            |c: &Self, at: &ObjectName| c.refuse(at.span(), "SAMPLE and TABLESAMPLE are not supported", "write WHERE random() < 0.1");
        match factor {
            TableFactor::Table { name, alias, version, sample, with_hints, partitions, index_hints, json_path, .. } => {
                if sample.is_some() {
                    return sampled(self, name);
                }
                if !with_hints.is_empty() || !partitions.is_empty() || !index_hints.is_empty() || json_path.is_some() {
                    return self.refuse(name.span(), "hints, partitions and paths behind a stream are not supported", "write a WHERE");
                }
                if let Some(alias) = alias
                    && !alias.explicit
                    && alias.name.quote_style.is_none()
                    && NO_ALIASES.iter().any(|w| alias.name.value.eq_ignore_ascii_case(w))
                {
                    let what = format!("{} is not supported behind a stream", alias.name.value.to_uppercase());
                    return self.refuse(alias.name.span, &what, "leave it out; as an alias it needs AS");
                }
                match version {
                    Some(version) => self.version(name, version),
                    None => ControlFlow::Continue(()),
                }
            }
            TableFactor::Derived { sample: Some(_), .. } => sampled(self, &ObjectName(Vec::new())),
            _ => ControlFlow::Continue(()),
        }
    }

    /// Long conditions become shallow; arrow knows no quarters and no times of day in intervals.
    fn pre_visit_expr(&mut self, expr: &mut Expr) -> Flow {
        canonical::balance(expr);
        if let Expr::Function(call) = &*expr
            && call.name.to_string().eq_ignore_ascii_case(VERSION_CALL)
        {
            return self.refuse(call.name.span(), "a version stands behind a stream only", "write FROM s VERSION AS OF 'x'");
        }
        if let Some(Ok(value)) = foreign_interval(expr) {
            let text = value.to_string();
            let text = text.trim_start_matches("INTERVAL ").trim_matches('\'').to_owned();
            *expr = Expr::Interval(interval_of(text));
        }
        ControlFlow::Continue(())
    }
}

fn interval_of(text: String) -> Interval {
    Interval {
        value: Box::new(Expr::Value(Value::SingleQuotedString(text).with_empty_span())),
        leading_field: None,
        leading_precision: None,
        last_field: None,
        fractional_seconds_precision: None,
    }
}

/// The value of a literal interval with words that arrow does not read: quarters and times of day.
fn foreign_interval(expr: &Expr) -> Option<Result<ebb_storage::interval::Interval, String>> {
    let foreign = |text: &str| text.contains(':') || text.to_lowercase().contains("quarter");
    match expr {
        Expr::Interval(i) => {
            let by_field = i.leading_field.as_ref().is_some_and(|f| foreign(&f.to_string()));
            (by_field || foreign(&i.value.to_string())).then(|| interval::of_ast(expr))?
        }
        Expr::Cast { expr, data_type: DataType::Interval { .. }, .. } => match expr.as_ref() {
            Expr::Value(v) => match &v.value {
                Value::SingleQuotedString(text) if foreign(text) => interval::of_ast(&Expr::Interval(interval_of(text.clone()))),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    }
}

/// Why a query's body is none, if so. Chains of UNION are walked, not descended into.
fn set_expr(body: &SetExpr) -> Option<(&'static str, &'static str)> {
    let mut todo = vec![body];
    while let Some(body) = todo.pop() {
        match body {
            SetExpr::SetOperation { left, right, .. } => todo.extend([left.as_ref(), right.as_ref()]),
            SetExpr::Insert(_) => return Some(("INSERT inside of a query is not supported", "write INSERT INTO s WITH ... SELECT ...")),
            SetExpr::Update(_) => return Some(("UPDATE is not supported", "DELETE the rows and INSERT them anew")),
            SetExpr::Delete(_) => return Some(("DELETE inside of a query is not supported", "write DELETE FROM s WHERE cond")),
            SetExpr::Merge(_) => return Some(("MERGE is not supported", "DELETE the rows and INSERT them anew")),
            SetExpr::Table(_) => return Some(("TABLE inside of a query is not supported", "write SELECT * FROM s")),
            SetExpr::Select(_) | SetExpr::Query(_) | SetExpr::Values(_) => {}
        }
    }
    None
}
