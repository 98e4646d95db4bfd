//! What only PostgreSQL writes, in terms that the planner knows: its own types, operators by schema, collations, session functions.

use super::{SCHEMA, asyncpg, empty, functions, shape};
use datafusion::common::ScalarValue;
use datafusion::sql::sqlparser::ast::{
    self, ArrayElemTypeDef, BinaryOperator, CastKind, DataType, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentList,
    FunctionArguments, Ident, ObjectName, ObjectNamePart, Query, Select, SelectItem, SetExpr, Value, VisitMut, VisitorMut,
};
use std::ops::ControlFlow;

/// What a statement wants beside its rows.
#[derive(Default)]
pub(crate) struct Ask {
    /// It reads the catalogue or calls its functions.
    pub catalogue: bool,
}

/// One call of `set_config`.
pub(crate) struct SetConfig {
    pub name: String,
    /// NULL is the default.
    pub value: Option<String>,
    pub local: bool,
}

/// The calls of `set_config` with arguments that are known before any row is: constants and parameters.
pub(crate) fn set_config(query: &Query, params: &[ScalarValue]) -> Vec<SetConfig> {
    fn known(e: &Expr, params: &[ScalarValue]) -> Option<ScalarValue> {
        match e {
            Expr::Nested(e) | Expr::Cast { expr: e, .. } => known(e, params),
            Expr::Value(v) => match &v.value {
                Value::Placeholder(id) => params.get(id.strip_prefix('$')?.parse::<usize>().ok()?.checked_sub(1)?).cloned(),
                Value::Boolean(b) => Some(ScalarValue::Boolean(Some(*b))),
                Value::Null => Some(ScalarValue::Null),
                Value::Number(n, _) => Some(ScalarValue::Utf8(Some(n.to_string()))),
                text => text.clone().into_string().map(|t| ScalarValue::Utf8(Some(t))),
            },
            _ => None,
        }
    }
    let mut calls = Vec::new();
    let _ = ast::visit_expressions(query, |e| {
        if let Expr::Function(f) = e
            && function_name(f).as_deref() == Some("set_config")
            && let FunctionArguments::List(list) = &f.args
            && let [FunctionArg::Unnamed(FunctionArgExpr::Expr(name)), FunctionArg::Unnamed(FunctionArgExpr::Expr(value)), rest @ ..] =
                list.args.as_slice()
            && let (Some(name), Some(value)) = (known(name, params), known(value, params))
            && let Some(Some(name)) = name.try_as_str()
        {
            let local = match rest {
                [FunctionArg::Unnamed(FunctionArgExpr::Expr(local)), ..] => known(local, params),
                _ => None,
            };
            let local = local.is_some_and(|l| l == ScalarValue::Boolean(Some(true)) || l.try_as_str() == Some(Some("true")));
            let value = (!value.is_null()).then(|| value.try_as_str().flatten().map_or_else(|| value.to_string(), str::to_owned));
            calls.push(SetConfig { name: name.to_owned(), value, local });
        }
        ControlFlow::<()>::Continue(())
    });
    calls
}

/// Session functions that are constants of the statement.
const CONSTANTS: [&str; 8] =
    ["version", "current_database", "current_catalog", "current_schema", "current_schemas", "current_user", "session_user", "current_role"];

pub(crate) fn rewrite(query: &mut Query, database: &str) -> Ask {
    if query.with.as_ref().is_some_and(|w| w.cte_tables.iter().any(|t| t.alias.name.value == asyncpg::CTE))
        && let Some(plain) = asyncpg::lookup()
    {
        *query = plain;
    }
    let mut rewriter = Rewriter { database, ask: Ask::default(), reads_catalogue: false };
    let _ = ast::visit_relations(query, |name| {
        rewriter.reads_catalogue |= empty::catalogue_table(name).is_some();
        ControlFlow::<()>::Continue(())
    });
    let _ = query.visit(&mut rewriter);
    if let SetExpr::Select(select) = query.body.as_mut() {
        // What is shown of a regclass is the name.
        for item in &mut select.projection {
            if let SelectItem::UnnamedExpr(e) | SelectItem::ExprWithAlias { expr: e, .. } = item
                && let Some(shown) = shown(e)
            {
                *e = shown;
            }
        }
    }
    rewriter.ask
}

struct Rewriter<'a> {
    database: &'a str,
    ask: Ask,
    /// Known before any expression is seen.
    reads_catalogue: bool,
}

fn text(t: &str) -> Expr {
    Expr::Value(Value::SingleQuotedString(t.to_owned()).with_empty_span())
}

fn call(name: &str, arg: Expr) -> Expr {
    Expr::Function(Function {
        name: ObjectName(vec![ObjectNamePart::Identifier(Ident::new(name))]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(FunctionArgumentList {
            duplicate_treatment: None,
            args: vec![FunctionArg::Unnamed(FunctionArgExpr::Expr(arg))],
            clauses: vec![],
        }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: vec![],
    })
}

/// `ARRAY(SELECT ...)`.
fn is_array_of_rows(f: &Function) -> bool {
    function_name(f).as_deref() == Some("array") && matches!(f.args, FunctionArguments::Subquery(_))
}

fn is_call(expr: &Expr, name: &str) -> bool {
    matches!(expr, Expr::Function(f) if function_name(f).as_deref() == Some(name))
}

/// `ebb_regclass(x)` with its name.
fn shown(expr: &Expr) -> Option<Expr> {
    let name = ["ebb_regclass", "ebb_regtype"].into_iter().find(|n| is_call(expr, n))?;
    Some(call(&format!("{name}_name"), expr.clone()))
}

/// The folded name of a call without a schema, or with the catalogue's.
fn function_name(f: &Function) -> Option<String> {
    let part = |p: &ObjectNamePart| p.as_ident().map(|i| i.value.to_ascii_lowercase());
    match f.name.0.as_slice() {
        [name] => part(name),
        [schema, name] if part(schema).as_deref() == Some(SCHEMA) => part(name),
        _ => None,
    }
}

/// The folded name of a type that sqlparser does not know, or knows as PostgreSQL's alone.
fn type_name(t: &DataType) -> Option<String> {
    match t {
        DataType::Regclass => Some("regclass".to_owned()),
        DataType::Custom(name, _) => {
            let parts: Vec<String> = name.0.iter().filter_map(|p| p.as_ident()).map(|i| i.value.to_ascii_lowercase()).collect();
            match parts.as_slice() {
                [name] => Some(name.clone()),
                [schema, name] if schema == SCHEMA => Some(name.clone()),
                _ => None,
            }
        }
        _ => None,
    }
}

/// PostgreSQL's type as one that the planner has; `qualified`: it was written with the catalogue's schema.
fn plain_type(name: &str) -> Option<DataType> {
    Some(match name {
        // The planner knows it, so that a parameter can be one.
        "oid" => return None,
        "xid" | "cid" | "regproc" | "regprocedure" | "regnamespace" | "regrole" | "regoper" => DataType::BigInt(None),
        "name" | "char" | "cstring" | "bpchar" | "varchar" | "text" => DataType::Text,
        "int4" => DataType::Integer(None),
        "int8" => DataType::BigInt(None),
        "int2" => DataType::SmallInt(None),
        "bool" => DataType::Boolean,
        "float4" => DataType::Real,
        "float8" => DataType::DoublePrecision,
        _ => return None,
    })
}

fn literals(f: &Function) -> Vec<Option<String>> {
    let FunctionArguments::List(list) = &f.args else { return Vec::new() };
    let literal = |a: &FunctionArg| match a {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Value(v))) => match &v.value {
            Value::SingleQuotedString(t) => Some(t.clone()),
            Value::Boolean(b) => Some(b.to_string()),
            _ => None,
        },
        _ => None,
    };
    list.args.iter().map(literal).collect()
}

fn first_is_null(f: &Function) -> bool {
    let FunctionArguments::List(list) = &f.args else { return false };
    matches!(list.args.first(), Some(FunctionArg::Unnamed(FunctionArgExpr::Expr(e))) if *e == empty::null())
}

impl Rewriter<'_> {
    fn function(&mut self, f: &mut Function) -> Option<Expr> {
        let name = function_name(f)?;
        if f.name.0.len() == 2 {
            f.name.0.remove(0);
        }
        if functions::is_ours(&name) {
            self.ask.catalogue = true;
            return None;
        }
        Some(match name.as_str() {
            "version" => text(&format!("PostgreSQL 16.0 (ebb {})", env!("CARGO_PKG_VERSION"))),
            "current_database" | "current_catalog" => text(self.database),
            "current_schema" => text("public"),
            "current_user" | "session_user" | "current_role" => text(super::names::OWNER_NAME),
            "current_schemas" => {
                let implied = (literals(f).first() != Some(&Some("false".to_owned()))).then_some(SCHEMA);
                Expr::Array(ast::Array { elem: implied.into_iter().chain(["public"]).map(text).collect(), named: true })
            }
            "array_to_string" if first_is_null(f) => empty::null(),
            _ => return None,
        })
    }

    fn cast(&mut self, expr: &Expr, to: &mut DataType) -> Option<Expr> {
        if let Some(shown) = shown(expr)
            && (matches!(to, DataType::Text | DataType::Varchar(_)) || type_name(to).is_some_and(|n| n == "text" || n == "varchar"))
        {
            return Some(shown);
        }
        if let DataType::Array(ArrayElemTypeDef::SquareBracket(element, _)) = to {
            if let Some(plain) = type_name(element).and_then(|n| plain_type(&n)) {
                **element = plain;
            }
            return None;
        }
        let name = type_name(to)?;
        match name.as_str() {
            "regclass" | "regtype" => {
                self.ask.catalogue = true;
                Some(call(&format!("ebb_{name}"), expr.clone()))
            }
            _ => {
                *to = plain_type(&name)?;
                None
            }
        }
    }
}

/// `x = ANY (ARRAY[..])` as `x IN (..)`.
fn any_or_all(left: &Expr, op: &BinaryOperator, right: &Expr, any: bool) -> Option<Expr> {
    let negated = match (op, any) {
        (BinaryOperator::Eq, true) => false,
        (BinaryOperator::NotEq, false) => true,
        _ => return None,
    };
    let mut right = right;
    while let Expr::Nested(inner) = right {
        right = inner;
    }
    match right {
        Expr::Array(list) => Some(Expr::InList { expr: Box::new(left.clone()), list: list.elem.clone(), negated }),
        Expr::Function(f) if function_name(f).as_deref() == Some("array") => match &f.args {
            FunctionArguments::Subquery(q) => Some(Expr::InSubquery { expr: Box::new(left.clone()), subquery: q.clone(), negated }),
            _ => None,
        },
        _ => None,
    }
}

fn operator(name: &[String]) -> Option<BinaryOperator> {
    let [schema, symbol] = name else { return None };
    if schema != SCHEMA {
        return None;
    }
    Some(match symbol.as_str() {
        "~" => BinaryOperator::PGRegexMatch,
        "~*" => BinaryOperator::PGRegexIMatch,
        "!~" => BinaryOperator::PGRegexNotMatch,
        "!~*" => BinaryOperator::PGRegexNotIMatch,
        "~~" => BinaryOperator::PGLikeMatch,
        "~~*" => BinaryOperator::PGILikeMatch,
        "!~~" => BinaryOperator::PGNotLikeMatch,
        "=" => BinaryOperator::Eq,
        "<>" => BinaryOperator::NotEq,
        "<" => BinaryOperator::Lt,
        ">" => BinaryOperator::Gt,
        "<=" => BinaryOperator::LtEq,
        ">=" => BinaryOperator::GtEq,
        "+" => BinaryOperator::Plus,
        "-" => BinaryOperator::Minus,
        "||" => BinaryOperator::StringConcat,
        _ => return None,
    })
}

/// A scalar subquery over the catalogue has one row at most; the planner wants to see that.
fn at_most_one(query: &mut Query) {
    let SetExpr::Select(select) = query.body.as_mut() else { return };
    let catalogue =
        select.from.iter().any(|t| matches!(&t.relation, ast::TableFactor::Table { name, .. } if empty::catalogue_table(name).is_some()));
    if !catalogue || empty::groups(select) || query.limit_clause.is_some() {
        return;
    }
    let [item] = select.projection.as_mut_slice() else { return };
    if empty::has_aggregate(item) {
        return;
    }
    if let SelectItem::UnnamedExpr(e) | SelectItem::ExprWithAlias { expr: e, .. } = item {
        *e = call("min", e.clone());
    }
    if let Some(selection) = select.selection.take() {
        select.selection = Some(without_outer_flag(selection));
    }
}

/// A condition on the outer row alone hides from the planner how the rows belong together; a column without a default has no row of
/// `pg_attrdef` anyway.
fn without_outer_flag(condition: Expr) -> Expr {
    let is_flag = |e: &Expr| matches!(e, Expr::CompoundIdentifier(parts) if parts.last().is_some_and(|i| i.value == "atthasdef"));
    match condition {
        Expr::BinaryOp { left, op: BinaryOperator::And, right } if is_flag(&right) => without_outer_flag(*left),
        Expr::BinaryOp { left, op: BinaryOperator::And, right } if is_flag(&left) => without_outer_flag(*right),
        Expr::BinaryOp { left, op: BinaryOperator::And, right } => Expr::BinaryOp {
            left: Box::new(without_outer_flag(*left)),
            op: BinaryOperator::And,
            right: Box::new(without_outer_flag(*right)),
        },
        other => other,
    }
}

impl VisitorMut for Rewriter<'_> {
    type Break = ();

    fn pre_visit_relation(&mut self, name: &mut ObjectName) -> ControlFlow<()> {
        if let [ObjectNamePart::Identifier(table)] = name.0.as_slice()
            && shape::columns_of(&table.value.to_ascii_lowercase()).is_some()
        {
            name.0.insert(0, ObjectNamePart::Identifier(Ident::new(SCHEMA)));
        }
        self.ask.catalogue |= empty::catalogue_table(name).is_some();
        ControlFlow::Continue(())
    }

    /// Columns that are rewritten get the names that PostgreSQL gives them.
    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        for item in &mut select.projection {
            let SelectItem::UnnamedExpr(e) = item else { continue };
            let named = match &*e {
                Expr::Function(f) => function_name(f).is_some_and(|n| functions::is_ours(&n) || CONSTANTS.contains(&n.as_str())),
                Expr::Cast { data_type, .. } => type_name(data_type).is_some(),
                Expr::Collate { .. } => true,
                _ => false,
            };
            if named {
                *item = SelectItem::ExprWithAlias { alias: Ident::with_quote('"', empty::column_name(e)), expr: e.clone() };
            }
        }
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        let mut todo = vec![query.body.as_mut()];
        let mut dropped = false;
        while let Some(body) = todo.pop() {
            match body {
                SetExpr::Select(select) => dropped |= empty::simplify(select),
                SetExpr::SetOperation { left, right, .. } => todo.extend([left.as_mut(), right.as_mut()]),
                _ => {}
            }
        }
        if dropped && matches!(query.body.as_ref(), SetExpr::Select(_)) {
            query.order_by = None;
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Some(known) = empty::value(expr) {
            *expr = known;
            return ControlFlow::Continue(());
        }
        let new = match expr {
            // Lists of options and privileges: there are none.
            Expr::Function(f) if self.reads_catalogue && is_array_of_rows(f) => Some(empty::null()),
            Expr::Function(f) => self.function(f),
            Expr::Cast { expr: inner, data_type, kind: CastKind::Cast | CastKind::DoubleColon, .. } => self.cast(inner, data_type),
            Expr::Collate { expr: inner, collation } => {
                let name = collation.0.last().and_then(|p| p.as_ident()).map(|i| i.value.to_ascii_lowercase());
                name.is_some_and(|n| ["default", "c", "posix"].contains(&n.as_str())).then(|| inner.as_ref().clone())
            }
            Expr::BinaryOp { op, .. } => {
                if let BinaryOperator::PGCustomBinaryOperator(name) = op
                    && let Some(plain) = operator(name)
                {
                    *op = plain;
                }
                None
            }
            Expr::AnyOp { left, compare_op, right, .. } => any_or_all(left, compare_op, right, true),
            Expr::AllOp { left, compare_op, right } => any_or_all(left, compare_op, right, false),
            Expr::Subquery(q) => {
                at_most_one(q);
                None
            }
            _ => None,
        };
        if let Some(new) = new {
            *expr = new;
        }
        ControlFlow::Continue(())
    }
}
