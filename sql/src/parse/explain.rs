//! EXPLAIN of plans and lifecycles, and PREVIEW.

use super::{
    cursor::{Cursor, Parsed},
    error::syntax,
};
use crate::{
    nearest::did_you_mean,
    statement::{AlterAction, Explain, ExplainLifecycle, Expression, Preview, Previewed, Verb},
};
use datafusion::{
    common::format::{ExplainFormat, ExplainStatementOptions},
    sql::sqlparser::tokenizer::Token,
};
use std::str::FromStr;

const FORMATS: [&str; 4] = ["indent", "tree", "pgjson", "graphviz"];

impl Cursor<'_> {
    /// After EXPLAIN.
    pub(super) fn explain(&mut self) -> Parsed<Verb> {
        if self.eat("LIFECYCLE") {
            self.expect("FOR")?;
            self.expect_stream_word()?;
            let stream = self.stream_name()?;
            return Ok(Verb::ExplainLifecycle(ExplainLifecycle { stream, at: self.at_timestamp()? }));
        }
        let options = self.explain_options()?;
        let statement = self.statement()?;
        match statement.verb {
            Verb::Query(_) | Verb::Insert(_) | Verb::Delete(_) => Ok(Verb::Explain(Explain { options, statement: Box::new(statement) })),
            _ => Err(syntax(
                "EXPLAIN shows the plan of a query, INSERT or DELETE; a stream's is EXPLAIN LIFECYCLE FOR STREAM s",
                statement.source.position(),
            )),
        }
    }

    fn explain_options(&mut self) -> Parsed<ExplainStatementOptions> {
        let at = self.clone();
        if self.sees_token(&Token::LParen)
            && !["SELECT", "WITH", "VALUES"].iter().any(|w| self.is_word(1, w))
            && self.nth(1) != Some(&Token::LParen)
        {
            let mut inside = self.clone();
            inside.advance(1);
            let len = inside.level_len() + 2;
            let options = self.sqlparser(len, |p| p.parse_utility_options())?;
            return ExplainStatementOptions::from_utility_options(&options).map_err(|e| at.error(e.strip_backtrace()));
        }
        let mut options = ExplainStatementOptions { analyze: self.eat("ANALYZE"), verbose: self.eat("VERBOSE"), ..Default::default() };
        if self.eat("FORMAT") {
            let at = self.clone();
            let name = self.name_or_text("a format")?.text;
            let unknown =
                |_| at.error(format!("unknown format '{name}': formats are {}{}", FORMATS.join(", "), did_you_mean(&name, FORMATS)));
            options.format = Some(ExplainFormat::from_str(&name).map_err(unknown)?);
        }
        Ok(options)
    }

    /// `[AT TIMESTAMP t]` at the end.
    fn at_timestamp(&mut self) -> Parsed<Option<Expression>> {
        if !self.eat("AT TIMESTAMP") {
            return Ok(None);
        }
        self.expression_within(self.level_len(), "a time").map(Some)
    }

    /// After PREVIEW.
    pub(super) fn preview(&mut self) -> Parsed<Verb> {
        // An expression would take AT for its own AT TIME ZONE.
        let len = self.find(|n, _| self.is_word(n, "AT") && self.is_word(n + 1, "TIMESTAMP")).unwrap_or_else(|| self.level_len());
        let mut inner = self.first(len);
        let of = if inner.eat("OPTIMIZE") {
            Previewed::Optimize(inner.optimize()?)
        } else if inner.sees("ALTER") {
            inner.advance(1);
            inner.expect_stream_word()?;
            let at = inner.clone();
            match inner.alter_stream()? {
                Verb::AlterStream(alter)
                    if matches!(alter.actions.as_slice(), [AlterAction::ModifyTtl(_) | AlterAction::ModifyRetention(_)]) =>
                {
                    Previewed::Alter(alter)
                }
                _ => return Err(at.error("PREVIEW shows what MODIFY TTL or MODIFY RETENTION would do, one of them at a time")),
            }
        } else {
            return self.expected("ALTER STREAM s MODIFY TTL, ALTER STREAM s MODIFY RETENTION or OPTIMIZE STREAM s");
        };
        inner.expect_end()?;
        self.advance(len);
        Ok(Verb::Preview(Preview { of, at: self.at_timestamp()? }))
    }
}
