//! One text per expression: names folded, literal intervals as storage prints them, strings in one form of quotes.
//!
//! What cannot be printed so that it parses to the same tree is refused here, so that every stored text can be read back.

use super::interval;
use crate::{
    dialect::StreamDialect,
    statement::{Expression, quote_name},
};
use datafusion::sql::sqlparser::{
    ast::{
        BinaryOperator, DataType, Expr, Function, FunctionArg, FunctionArguments, Ident, Interval, ObjectName, ObjectNamePart, Query,
        UnaryOperator, Value, ValueWithSpan, VisitMut, VisitorMut,
    },
    parser::Parser,
};
use std::ops::ControlFlow;

type Canonical = Result<Expression, String>;

/// For stream definitions: no subqueries, no parameters in the text that is kept.
pub(super) fn definition(ast: Expr) -> Canonical {
    canonical(ast, false)
}

/// For conditions that are run once.
pub(super) fn condition(ast: Expr) -> Canonical {
    canonical(ast, true)
}

fn canonical(ast: Expr, subqueries: bool) -> Canonical {
    let mut ast = match ast {
        Expr::Nested(inner) => *inner,
        other => other,
    };
    if let ControlFlow::Break(message) = VisitMut::visit(&mut ast, &mut Fold { subqueries }) {
        return Err(message);
    }
    let text = ast.to_string();
    // sqlparser alone does not read every version that it prints.
    if subqueries && text.contains(" AS OF ") {
        return Ok(Expression { text, ast: Box::new(ast) });
    }
    match reparsed(&text) {
        Some(again) if again == ast => Ok(Expression { text, ast: Box::new(ast) }),
        _ => Err(format!("{text} does not read back as it was meant; write it with a function or a cast instead")),
    }
}

fn reparsed(text: &str) -> Option<Expr> {
    let parser = Parser::new(&StreamDialect).with_recursion_limit(super::expression::RECURSION_LIMIT);
    let mut parser = parser.try_with_sql(text).ok()?;
    let mut expr = parser.parse_expr().ok()?;
    let _ = VisitMut::visit(&mut expr, &mut Balance);
    (parser.peek_token() == datafusion::sql::sqlparser::tokenizer::Token::EOF).then_some(expr)
}

struct Fold {
    subqueries: bool,
}

impl VisitorMut for Fold {
    type Break = String;

    fn pre_visit_query(&mut self, _: &mut Query) -> ControlFlow<String> {
        if self.subqueries {
            return ControlFlow::Continue(());
        }
        ControlFlow::Break("a subquery cannot stand here: the expression sees one row of the stream and nothing else".to_owned())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<String> {
        balance(expr);
        match expr {
            Expr::Identifier(name) => fold(name),
            Expr::CompoundIdentifier(names) => names.iter_mut().for_each(fold),
            Expr::Function(function) => fold_function(function),
            Expr::Cast { data_type, .. } => fold_type(data_type),
            Expr::Interval(_) => match interval::of_ast(expr) {
                Some(Ok(value)) => *expr = interval_literal(&value.to_string()),
                Some(Err(message)) => return ControlFlow::Break(message),
                None => {}
            },
            _ => {}
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_value(&mut self, value: &mut ValueWithSpan) -> ControlFlow<String> {
        let text = match &value.value {
            Value::DollarQuotedString(s) => s.value.clone(),
            Value::SingleQuotedString(s) | Value::EscapedStringLiteral(s) | Value::UnicodeStringLiteral(s) => s.clone(),
            _ => return ControlFlow::Continue(()),
        };
        // sqlparser prints these quotes as they are, as if they were escaped already.
        let treacherous = text.contains("''") || text.contains("\\'");
        value.value = if treacherous { Value::EscapedStringLiteral(text) } else { Value::SingleQuotedString(text) };
        ControlFlow::Continue(())
    }
}

/// As storage's intervals print: `INTERVAL '3 month'`.
fn interval_literal(canonical: &str) -> Expr {
    let text = canonical.trim_start_matches("INTERVAL ").trim_matches('\'').to_owned();
    Expr::Interval(Interval {
        value: Box::new(Expr::Value(Value::SingleQuotedString(text).with_empty_span())),
        leading_field: None,
        leading_precision: None,
        last_field: None,
        fractional_seconds_precision: None,
    })
}

fn fold(name: &mut Ident) {
    match name.quote_style {
        None => name.value = name.value.to_lowercase(),
        Some(_) => name.quote_style = quote_name(&name.value).starts_with('"').then_some('"'),
    }
}

fn fold_object(name: &mut ObjectName) {
    for part in &mut name.0 {
        if let ObjectNamePart::Identifier(ident) = part {
            fold(ident);
        }
    }
}

fn fold_function(function: &mut Function) {
    fold_object(&mut function.name);
    if let FunctionArguments::List(list) = &mut function.args {
        for arg in &mut list.args {
            if let FunctionArg::Named { name, .. } = arg {
                fold(name);
            }
        }
    }
}

fn fold_type(ty: &mut DataType) {
    if let DataType::Custom(name, _) = ty {
        fold_object(name);
    }
}

/// The number of a literal with its sign.
pub(super) fn signed_number(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Value(ValueWithSpan { value: Value::Number(n, _), .. }) => Some(n.to_string().replace('_', "")),
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => match expr.as_ref() {
            Expr::Value(ValueWithSpan { value: Value::Number(n, _), .. }) => Some(format!("-{}", n.to_string().replace('_', ""))),
            _ => None,
        },
        _ => None,
    }
}

/// Chains of AND or OR longer than this are made trees as shallow as can be.
const BALANCE_FROM: usize = 32;

struct Balance;

impl VisitorMut for Balance {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        balance(expr);
        ControlFlow::Continue(())
    }
}

/// AND and OR may be grouped at will; sqlparser groups to the left, one level for each condition.
pub(super) fn balance(expr: &mut Expr) {
    let Expr::BinaryOp { op: joined @ (BinaryOperator::And | BinaryOperator::Or), .. } = &*expr else { return };
    let joined = joined.clone();
    let mut terms = 1;
    let mut spine = &*expr;
    while let Expr::BinaryOp { left, op, .. } = spine
        && *op == joined
    {
        (terms, spine) = (terms + 1, left);
    }
    if terms <= BALANCE_FROM {
        return;
    }
    let mut rest = std::mem::replace(expr, nothing());
    let mut all = Vec::with_capacity(terms);
    loop {
        match rest {
            Expr::BinaryOp { left, op, right } if op == joined => {
                all.push(*right);
                rest = *left;
            }
            first => {
                all.push(first);
                break;
            }
        }
    }
    all.reverse();
    *expr = grouped(all, &joined);
}

fn grouped(mut terms: Vec<Expr>, op: &BinaryOperator) -> Expr {
    let right = terms.split_off(terms.len() / 2);
    if terms.is_empty() {
        return right.into_iter().next().unwrap_or_else(nothing);
    }
    Expr::BinaryOp { left: Box::new(grouped(terms, op)), op: op.clone(), right: Box::new(grouped(right, op)) }
}

fn nothing() -> Expr {
    Expr::Value(Value::Null.with_empty_span())
}
