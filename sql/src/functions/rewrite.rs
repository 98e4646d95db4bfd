//! Other spellings of what DataFusion has, replaced in the syntax tree before planning.
//!
//! So they are optimised like what they stand for: `if` evaluates one branch, `sum_if` is a filtered sum.

use super::scalar::pure;
use arrow::datatypes::DECIMAL128_MAX_PRECISION;
use datafusion::sql::sqlparser::ast::{
    self, CharacterLength, DataType, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentClause, FunctionArgumentList,
    FunctionArguments, Ident, ObjectName, ObjectNamePart, OrderByExpr, OrderByOptions, VisitMut, VisitorMut,
};
use datafusion::{
    common::{exec_err, plan_err},
    logical_expr::ScalarUDF,
};
use std::ops::ControlFlow;

/// Names that [`rewrite_query`] replaces.
pub fn rewritten_names() -> impl Iterator<Item = &'static str> {
    RENAMED.iter().map(|(from, _)| *from).chain(CASTS.iter().map(|(from, _)| *from)).chain(SHAPED)
}

/// The same arguments under another name.
const RENAMED: &[(&str, &str)] = &[
    ("if_null", "coalesce"),
    ("null_if", "nullif"),
    ("match", "regexp_like"),
    ("position", "strpos"),
    ("replace_all", "replace"),
    ("length_utf8", "character_length"),
    ("any", "first_value"),
    ("any_value", "first_value"),
    ("any_last", "last_value"),
    ("unique", "approx_distinct"),
    ("quantile", "approx_percentile_cont"),
    ("group_array", "array_agg"),
];

const CASTS: &[(&str, DataType)] = &[
    ("to_int8", DataType::TinyInt(None)),
    ("to_int16", DataType::SmallInt(None)),
    ("to_int32", DataType::Int(None)),
    ("to_int64", DataType::BigInt(None)),
    ("to_uint8", DataType::TinyIntUnsigned(None)),
    ("to_uint16", DataType::SmallIntUnsigned(None)),
    ("to_uint32", DataType::IntUnsigned(None)),
    ("to_uint64", DataType::BigIntUnsigned(None)),
    ("to_float32", DataType::Real),
    ("to_float64", DataType::DoublePrecision),
    ("to_bool", DataType::Boolean),
];

/// Those that change more than a name.
const SHAPED: [&str; 15] = [
    "if",
    "multi_if",
    "count_if",
    "sum_if",
    "avg_if",
    "min_if",
    "max_if",
    "arg_min",
    "arg_max",
    "unique_exact",
    "p90",
    "p95",
    "p99",
    "split_by_string",
    "median",
];

/// Stand-ins under the names that are rewritten: a call that reaches them has the wrong number of arguments.
pub fn misused() -> Vec<ScalarUDF> {
    let takes = [
        ("if", "a condition and two values"),
        ("multi_if", "conditions with their values and a last value"),
        ("count_if", "one condition"),
        ("sum_if", "a value and a condition"),
        ("avg_if", "a value and a condition"),
        ("min_if", "a value and a condition"),
        ("max_if", "a value and a condition"),
        ("arg_min", "a value and what is the least"),
        ("arg_max", "a value and what is the greatest"),
        ("unique_exact", "one value"),
        ("p90", "one value"),
        ("p95", "one value"),
        ("p99", "one value"),
        ("split_by_string", "a separator and a text"),
    ];
    let casts = CASTS.iter().map(|(name, _)| (*name, "one value"));
    let stand_in = |(name, takes): (&'static str, &'static str)| {
        let refuse = move |types: &[arrow::datatypes::DataType]| plan_err!("{name} takes {takes}, not {} arguments", types.len());
        pure(name, refuse, |_| Ok(arrow::datatypes::DataType::Null), move |_, _| exec_err!("{name} takes {takes}"))
    };
    takes.into_iter().chain(casts).map(stand_in).collect()
}

/// Rewrites every call below `query`; its columns have their names already.
pub fn rewrite_query(query: &mut ast::Query) {
    super::exists::rewrite(query);
    let _ = query.visit(&mut Rewriter);
}

pub fn rewrite_expr(expr: &mut Expr) {
    let _ = expr.visit(&mut Rewriter);
}

struct Rewriter;

impl VisitorMut for Rewriter {
    type Break = ();
    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        // sqlparser reads `position(a in b)` as its own form; `position(h, n)` stays a call.
        if let Expr::Function(f) = expr
            && let Some(new) = rewritten(f)
        {
            *expr = new;
        }
        if let Expr::Value(v) = expr
            && let ast::Value::Number(text, _) = &v.value
            && let Some(decimal) = long_number(text)
        {
            *expr = decimal;
        }
        // DataFusion would not look at the length.
        if let Expr::Cast { expr: inner, data_type, .. } = expr
            && let Some(length) = characters(data_type)
        {
            let text = Expr::Cast {
                kind: ast::CastKind::Cast,
                expr: Box::new(inner.as_ref().clone()),
                data_type: DataType::Text,
                array: false,
                format: None,
            };
            *expr = call("left", vec![text, number(&length.to_string())]);
        }
        // PostgreSQL's function of it; DataFusion would only change how the time is shown.
        if let Expr::AtTimeZone { timestamp, time_zone } = expr {
            *expr = call("timezone", vec![time_zone.as_ref().clone(), timestamp.as_ref().clone()]);
        }
        ControlFlow::Continue(())
    }
}

/// How many characters a type of texts keeps, where it says so. Blanks that PostgreSQL adds to `char(n)` count for nothing there.
fn characters(ty: &DataType) -> Option<u64> {
    use DataType::{Char, CharVarying, Character, CharacterVarying, Nvarchar, Varchar};
    match ty {
        Varchar(Some(CharacterLength::IntegerLength { length, .. }))
        | Nvarchar(Some(CharacterLength::IntegerLength { length, .. }))
        | CharVarying(Some(CharacterLength::IntegerLength { length, .. }))
        | CharacterVarying(Some(CharacterLength::IntegerLength { length, .. }))
        | Char(Some(CharacterLength::IntegerLength { length, .. }))
        | Character(Some(CharacterLength::IntegerLength { length, .. })) => Some(*length),
        Char(None) | Character(None) => Some(1),
        _ => None,
    }
}

fn call(name: &str, args: Vec<Expr>) -> Expr {
    let args = args.into_iter().map(|e| FunctionArg::Unnamed(FunctionArgExpr::Expr(e))).collect();
    Expr::Function(Function {
        name: ObjectName(vec![ObjectNamePart::Identifier(Ident::new(name))]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(FunctionArgumentList { duplicate_treatment: None, args, clauses: vec![] }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: vec![],
    })
}

/// Digits that a float keeps whatever they are.
const FLOAT_DIGITS: usize = 15;

/// A number of more digits than a float has, as the decimal that it is in PostgreSQL. Shorter ones stay floats, whose digits are theirs.
fn long_number(text: &str) -> Option<Expr> {
    let digits: String = text.chars().filter(|c| *c != '_').collect();
    let (whole, fraction) = digits.split_once('.').unwrap_or((&digits, ""));
    let whole = whole.trim_start_matches('0');
    let significant = whole.len() + if whole.is_empty() { fraction.trim_start_matches('0').len() } else { fraction.len() };
    let plain = whole.bytes().chain(fraction.bytes()).all(|b| b.is_ascii_digit());
    if !plain || significant <= FLOAT_DIGITS || fraction.is_empty() && whole.parse::<u64>().is_ok() {
        return None;
    }
    let (precision, scale) = (u64::try_from((whole.len() + fraction.len()).max(1)).ok()?, i64::try_from(fraction.len()).ok()?);
    (precision <= u64::from(DECIMAL128_MAX_PRECISION)).then(|| Expr::Cast {
        kind: ast::CastKind::Cast,
        expr: Box::new(Expr::value(ast::Value::SingleQuotedString(digits))),
        data_type: DataType::Decimal(ast::ExactNumberInfo::PrecisionAndScale(precision, scale)),
        array: false,
        format: None,
    })
}

/// The one name of a call, folded; `None` for qualified ones.
fn name_of(f: &Function) -> Option<String> {
    match f.name.0.as_slice() {
        [ObjectNamePart::Identifier(ident)] => Some(ident.value.to_ascii_lowercase()),
        _ => None,
    }
}

fn rename(f: &mut Function, to: &str) {
    f.name = ObjectName(vec![ObjectNamePart::Identifier(Ident::new(to))]);
}

/// Plain arguments; `None` where there are named ones, `*` or a subquery.
fn arguments(f: &Function) -> Option<Vec<Expr>> {
    let FunctionArguments::List(list) = &f.args else { return None };
    let plain = |a: &FunctionArg| match a {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(e)) => Some(e.clone()),
        _ => None,
    };
    list.args.iter().map(plain).collect()
}

fn set_arguments(f: &mut Function, args: Vec<Expr>, distinct: bool, order_by: Vec<OrderByExpr>) {
    let clauses = if order_by.is_empty() { vec![] } else { vec![FunctionArgumentClause::OrderBy(order_by)] };
    f.args = FunctionArguments::List(FunctionArgumentList {
        duplicate_treatment: distinct.then_some(ast::DuplicateTreatment::Distinct),
        args: args.into_iter().map(|e| FunctionArg::Unnamed(FunctionArgExpr::Expr(e))).collect(),
        clauses,
    });
}

fn number(n: &str) -> Expr {
    Expr::Value(ast::Value::Number(n.to_owned(), false).with_empty_span())
}

fn case(conditions: Vec<(Expr, Expr)>, otherwise: Expr) -> Expr {
    Expr::Case {
        case_token: ast::helpers::attached_token::AttachedToken::empty(),
        end_token: ast::helpers::attached_token::AttachedToken::empty(),
        operand: None,
        conditions: conditions.into_iter().map(|(condition, result)| ast::CaseWhen { condition, result }).collect(),
        else_result: Some(Box::new(otherwise)),
    }
}

fn rewritten(f: &Function) -> Option<Expr> {
    let name = name_of(f)?;
    let mut f = f.clone();
    if let Some((_, to)) = RENAMED.iter().find(|(from, _)| *from == name) {
        rename(&mut f, to);
        return Some(Expr::Function(f));
    }
    let args = arguments(&f)?;
    if let Some((_, to)) = CASTS.iter().find(|(from, _)| *from == name) {
        let [value] = <[Expr; 1]>::try_from(args).ok()?;
        let (kind, array, format) = (ast::CastKind::Cast, false, None);
        return Some(Expr::Cast { kind, expr: Box::new(value), data_type: to.clone(), array, format });
    }
    match (name.as_str(), args.len()) {
        ("if", 3) => {
            let [condition, yes, no] = <[Expr; 3]>::try_from(args).ok()?;
            Some(case(vec![(condition, yes)], no))
        }
        ("multi_if", n) if n >= 3 && n % 2 == 1 => {
            let mut args = args.into_iter();
            let pairs = (0..n / 2).filter_map(|_| args.next().zip(args.next())).collect();
            Some(case(pairs, args.next()?))
        }
        ("count_if", 1) => {
            let [condition] = <[Expr; 1]>::try_from(args).ok()?;
            rename(&mut f, "count");
            set_arguments(&mut f, vec![number("1")], false, vec![]);
            Some(filtered(f, condition))
        }
        ("sum_if" | "avg_if" | "min_if" | "max_if", 2) => {
            let [value, condition] = <[Expr; 2]>::try_from(args).ok()?;
            rename(&mut f, name.trim_end_matches("_if"));
            set_arguments(&mut f, vec![value], false, vec![]);
            Some(filtered(f, condition))
        }
        ("arg_min" | "arg_max", 2) => {
            let [value, by] = <[Expr; 2]>::try_from(args).ok()?;
            rename(&mut f, "first_value");
            let options = OrderByOptions { asc: Some(name == "arg_min"), nulls_first: Some(false) };
            set_arguments(&mut f, vec![value], false, vec![OrderByExpr { expr: by, options, with_fill: None }]);
            Some(Expr::Function(f))
        }
        ("unique_exact", 1) => {
            rename(&mut f, "count");
            set_arguments(&mut f, args, true, vec![]);
            Some(Expr::Function(f))
        }
        ("p90" | "p95" | "p99", 1) => {
            let [value] = <[Expr; 1]>::try_from(args).ok()?;
            rename(&mut f, "approx_percentile_cont");
            set_arguments(&mut f, vec![value, number(&format!("0.{}", &name[1..]))], false, vec![]);
            Some(Expr::Function(f))
        }
        ("split_by_string", 2) => {
            let [separator, value] = <[Expr; 2]>::try_from(args).ok()?;
            rename(&mut f, "string_to_array");
            set_arguments(&mut f, vec![value, separator], false, vec![]);
            Some(Expr::Function(f))
        }
        _ => None,
    }
}

/// With a FILTER; one that is there already holds too.
fn filtered(mut f: Function, condition: Expr) -> Expr {
    let both = match f.filter.take() {
        Some(old) => Expr::BinaryOp { left: old, op: ast::BinaryOperator::And, right: Box::new(Expr::Nested(Box::new(condition))) },
        None => condition,
    };
    f.filter = Some(Box::new(both));
    Expr::Function(f)
}
