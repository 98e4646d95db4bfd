//! Names of result columns, as PostgreSQL gives them, and each name to one column only, as the planner wants it.
//!
//! A column that is not named gets the name of its function or column; a name that is there twice, or that must not be found by the
//! query's own clauses, gets an invisible ending that [`shown`] takes off again. So `SELECT k, k` and `SELECT *, k` plan, and clients
//! see the names they expect.

use crate::{Error, sqlstate};
use arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion::sql::sqlparser::ast::{
    Expr, Function, GroupByExpr, Ident, ObjectNamePart, OrderByKind, Query, Select, SelectItem, SetExpr, Value, Visit, VisitMut, Visitor,
    VisitorMut,
};
use std::{collections::HashSet, ops::ControlFlow, sync::Arc};

/// Begins an invisible ending; nobody types it.
const MARK: char = '\u{2060}';
/// Digits of an invisible number.
const DIGITS: [char; 4] = ['\u{2061}', '\u{2062}', '\u{2063}', '\u{2064}'];

/// What PostgreSQL calls a column that has no name.
pub const NAMELESS: &str = "?column?";

/// The name that is shown.
pub fn shown(name: &str) -> &str {
    name.split_once(MARK).map_or(name, |(shown, _)| shown)
}

/// A plan's text without the marks that names have in it.
pub fn visible(plan: &str) -> String {
    plan.replace(|c: char| c == MARK || DIGITS.contains(&c), "")
}

/// The schema with the names that are shown; the same one where all are.
pub fn shown_schema(schema: &SchemaRef) -> SchemaRef {
    if !schema.fields().iter().any(|f| f.name().contains(MARK)) {
        return schema.clone();
    }
    let field = |f: &Arc<Field>| if f.name().contains(MARK) { Arc::new(f.as_ref().clone().with_name(shown(f.name()))) } else { f.clone() };
    Arc::new(Schema::new_with_metadata(schema.fields().iter().map(field).collect::<Vec<_>>(), schema.metadata().clone()))
}

fn marked(name: &str, mut n: usize) -> Ident {
    let mut text = format!("{name}{MARK}");
    loop {
        text.push(DIGITS[n % DIGITS.len()]);
        n /= DIGITS.len();
        if n == 0 {
            return Ident::with_quote('"', text);
        }
    }
}

/// How far names are made unique.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Care {
    /// Where the text alone shows that a name is there twice.
    Text,
    /// Also where a column may be one of a `*` beside it.
    Wildcards,
}

/// Names the columns of every select of `query`.
///
/// # Errors
/// Where ORDER BY names a column that is there twice with different values.
pub fn label(query: &mut Query, care: Care) -> Result<(), Error> {
    let order: Vec<String> = match query.order_by.as_ref().map(|o| &o.kind) {
        Some(OrderByKind::Expressions(list)) => list.iter().filter_map(|e| bare(&e.expr)).collect(),
        _ => Vec::new(),
    };
    let mut top = vec![query.body.as_mut()];
    let mut single = true;
    while let Some(body) = top.pop() {
        match body {
            SetExpr::Select(select) => {
                if single {
                    ambiguous(select, &order)?;
                }
                items(select, Place::Top(&order), care);
            }
            SetExpr::SetOperation { left, right, .. } => {
                single = false;
                top.extend([left.as_mut(), right.as_mut()]);
            }
            SetExpr::Query(inner) => {
                let _ = inner.visit(&mut Inner { care });
            }
            _ => {}
        }
    }
    let _ = query.visit(&mut Inner { care });
    Ok(())
}

struct Inner {
    care: Care,
}

impl VisitorMut for Inner {
    type Break = ();

    /// Items of the outermost select are named by then, so only inner ones change.
    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        items(select, Place::Inner, self.care);
        ControlFlow::Continue(())
    }
}

#[derive(Clone, Copy)]
enum Place<'a> {
    /// What the client sees, ordered by these names.
    Top(&'a [String]),
    /// A subquery or CTE, whose names others use.
    Inner,
}

fn fold(i: &Ident) -> String {
    if i.quote_style.is_some() { i.value.clone() } else { i.value.to_lowercase() }
}

fn bare(e: &Expr) -> Option<String> {
    match e {
        Expr::Identifier(i) => Some(fold(i)),
        _ => None,
    }
}

fn function_name(f: &Function) -> Option<String> {
    match f.name.0.last()? {
        ObjectNamePart::Identifier(i) => Some(fold(i)),
        ObjectNamePart::Function(_) => None,
    }
}

/// The name that PostgreSQL gives to a column.
pub fn name_of(e: &Expr) -> String {
    let named = |name: &str| name.to_owned();
    match e {
        Expr::Identifier(i) => fold(i),
        Expr::CompoundIdentifier(parts) => parts.last().map(fold).unwrap_or_default(),
        Expr::Function(f) => function_name(f).unwrap_or_else(|| named(NAMELESS)),
        Expr::Cast { expr, data_type, .. } => match name_of(expr).as_str() {
            NAMELESS => data_type.to_string().split(['(', ' ']).next().map(|t| type_name(&t.to_ascii_lowercase())).unwrap_or_default(),
            name => named(name),
        },
        Expr::Collate { expr, .. } | Expr::Nested(expr) => name_of(expr),
        Expr::CompoundFieldAccess { root, .. } => name_of(root),
        Expr::Case { else_result, .. } => match else_result.as_ref().map(|e| name_of(e)) {
            Some(name) if name != NAMELESS && !matches!(else_result.as_deref(), Some(Expr::Value(_))) => name,
            _ => named("case"),
        },
        Expr::Extract { .. } => named("extract"),
        Expr::Ceil { .. } => named("ceil"),
        Expr::Floor { .. } => named("floor"),
        Expr::Substring { .. } => named("substring"),
        Expr::Trim { .. } => named("btrim"),
        Expr::Position { .. } => named("position"),
        Expr::Overlay { .. } => named("overlay"),
        Expr::AtTimeZone { .. } => named("timezone"),
        Expr::Exists { .. } => named("exists"),
        Expr::Array(_) => named("array"),
        Expr::Interval(_) => named("interval"),
        Expr::TypedString(t) => type_name(&t.data_type.to_string().to_ascii_lowercase()),
        Expr::Value(v) if matches!(v.value, Value::Boolean(_)) => named("bool"),
        Expr::Subquery(q) => match q.body.as_ref() {
            SetExpr::Select(s) => match s.projection.as_slice() {
                [SelectItem::UnnamedExpr(e)] => name_of(e),
                [SelectItem::ExprWithAlias { alias, .. }] => shown(&fold(alias)).to_owned(),
                _ => named(NAMELESS),
            },
            _ => named(NAMELESS),
        },
        _ => named(NAMELESS),
    }
}

/// PostgreSQL's own name of a type.
fn type_name(t: &str) -> String {
    match t {
        "int" | "integer" => "int4",
        "bigint" => "int8",
        "smallint" => "int2",
        "double" | "float" => "float8",
        "real" => "float4",
        "boolean" => "bool",
        "decimal" => "numeric",
        other => other,
    }
    .to_owned()
}

/// Names that the select's own clauses may mean: a column must not get one of them unasked.
fn used(select: &Select) -> HashSet<String> {
    struct Names(HashSet<String>);
    impl Visitor for Names {
        type Break = ();
        fn pre_visit_expr(&mut self, e: &Expr) -> ControlFlow<()> {
            self.0.extend(bare(e));
            ControlFlow::Continue(())
        }
    }
    let mut names = Names(HashSet::new());
    let _ = select.having.visit(&mut names);
    let _ = select.qualify.visit(&mut names);
    if let GroupByExpr::Expressions(list, _) = &select.group_by {
        let _ = list.visit(&mut names);
    }
    names.0
}

fn items(select: &mut Select, place: Place<'_>, care: Care) {
    let is_wildcard = |i: &SelectItem| matches!(i, SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..));
    let beside_wildcard = select.projection.iter().any(is_wildcard);
    let mut count = std::collections::HashMap::<String, usize>::new();
    for item in &select.projection {
        match item {
            SelectItem::UnnamedExpr(e) => *count.entry(name_of(e)).or_default() += 1,
            SelectItem::ExprWithAlias { alias, .. } => *count.entry(fold(alias)).or_default() += 1,
            _ => {}
        }
    }
    let used = used(select);
    let mut taken: HashSet<String> = HashSet::new();
    for (n, item) in select.projection.iter_mut().enumerate() {
        match item {
            SelectItem::UnnamedExpr(e) => {
                let name = name_of(e);
                let alone = count.get(&name) == Some(&1);
                let is_column = matches!(e, Expr::Identifier(_) | Expr::CompoundIdentifier(_));
                let hidden = match place {
                    Place::Top(_) if is_column => beside_wildcard || taken.contains(&name),
                    // Of two columns with one name neither is meant by it.
                    Place::Inner if is_column => !alone || beside_wildcard && care == Care::Wildcards,
                    // A name given here is found by ORDER BY, and only there it is wanted.
                    Place::Top(order) => !(alone && order.contains(&name) && matches!(e, Expr::Function(_))) || used.contains(&name),
                    Place::Inner => !alone || name == NAMELESS || used.contains(&name),
                };
                taken.insert(name.clone());
                if is_column && !hidden {
                    continue;
                }
                let alias = if hidden { marked(&name, n) } else { Ident::with_quote('"', name) };
                *item = SelectItem::ExprWithAlias { expr: e.clone(), alias };
            }
            SelectItem::ExprWithAlias { alias, .. } => {
                let name = fold(alias);
                let twice = matches!(place, Place::Inner) && count.get(&name) != Some(&1);
                if !taken.insert(name.clone()) || twice {
                    *alias = marked(&name, n);
                }
            }
            _ => {}
        }
    }
}

/// ORDER BY of a name that two columns have.
fn ambiguous(select: &Select, order: &[String]) -> Result<(), Error> {
    for name in order {
        let mut named = select.projection.iter().filter_map(|i| match i {
            SelectItem::ExprWithAlias { expr, alias } if fold(alias) == *name => Some(expr),
            SelectItem::UnnamedExpr(e) if bare(e).as_ref() == Some(name) => Some(e),
            _ => None,
        });
        let first = named.next();
        if first.is_some_and(|first| named.any(|other| other != first)) {
            return Err(Error::invalid(format!("ORDER BY \"{name}\" is ambiguous: two columns are called that"))
                .with_sqlstate(sqlstate::AMBIGUOUS_COLUMN));
        }
    }
    Ok(())
}

/// Whether the planner complains about a name that is there twice.
pub fn is_clash(e: &Error) -> bool {
    e.message().contains("unique expression names") || [sqlstate::DUPLICATE_COLUMN, sqlstate::AMBIGUOUS_COLUMN].contains(&e.sqlstate())
}

/// The planner's complaint about names, where one is there twice.
pub fn explain(e: Error) -> Error {
    let message = e.message();
    if let Some(rest) = message.split("require unique expression names but the expression \"").nth(1) {
        let name = shown(rest.split('"').next().unwrap_or_default()).to_owned();
        let name = name.rsplit(" AS ").next().unwrap_or_default().trim();
        return Error::invalid(format!("a column called {name} is there twice: give one of them another name with AS"))
            .with_sqlstate(sqlstate::DUPLICATE_COLUMN);
    }
    if let Some(name) = message.split("duplicate qualified field name ").nth(1) {
        let relation = name.rsplit_once('.').map_or(name, |(relation, _)| relation);
        return Error::invalid(format!("two relations of the query are called {relation}: give one of them another name with AS"))
            .with_sqlstate(sqlstate::DUPLICATE_ALIAS);
    }
    if message.contains(MARK) {
        let missing = message.split("No field named ").nth(1).and_then(|m| m.split(". ").next()).unwrap_or_default();
        let missing = missing.rsplit('.').next().unwrap_or_default().trim_matches('"');
        if !missing.is_empty() && message.contains(&format!("{missing}{MARK}")) {
            return Error::invalid(format!("\"{missing}\" is ambiguous: two columns are called that"))
                .with_sqlstate(sqlstate::AMBIGUOUS_COLUMN);
        }
        let plain: String = message.chars().filter(|c| *c != MARK && !DIGITS.contains(c)).collect();
        let state = e.sqlstate();
        return Error::invalid(plain).with_sqlstate(state);
    }
    e
}
