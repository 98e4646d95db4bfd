//! `*`, NATURAL and what else means all columns, in a query that names hidden ones: there they are columns as any other to the planner,
//! and must still be in nothing that does not name them.
//!
//! Each `*` over more than one relation becomes the list of these relations' own, without what is hidden and with one column for each
//! that USING makes of two; a NATURAL join becomes the USING that it stands for. What cannot be told from the text is refused.

use super::{HIDDEN, Relations, scope::Scope, stream_name};
use crate::{
    Error, Result,
    statement::{StreamName, Verb},
};
use datafusion::sql::sqlparser::ast::{
    self, ExcludeSelectItem, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentList, FunctionArguments, Ident, JoinConstraint,
    JoinOperator, ObjectName, SelectItem, SelectItemQualifiedWildcardKind, TableAlias, TableFactor, TableWithJoins, Value, VisitMut,
    VisitorMut, WildcardAdditionalOptions,
};
use ebb_storage::stream_def::StreamDef;
use std::{ops::ControlFlow, sync::Arc};

/// `stream` says what a name means that no WITH query has.
///
/// # Errors
/// Where the text does not tell which columns are meant.
pub(crate) fn hide(query: &mut ast::Query, relations: &Relations, stream: impl Fn(&StreamName) -> Option<Arc<StreamDef>>) -> Result<()> {
    match VisitMut::visit(query, &mut Hider { stream, relations, scope: Scope::default(), named: 0 }) {
        ControlFlow::Break(e) => Err(*e),
        ControlFlow::Continue(()) => Ok(()),
    }
}

struct Hider<'a, F> {
    stream: F,
    relations: &'a Relations,
    scope: Scope,
    /// Relations without a name that were given one.
    named: usize,
}

/// A relation behind FROM.
struct Seen {
    /// What its columns are qualified with.
    name: ObjectName,
    hidden: &'static [&'static str],
    /// Its other columns, where the text tells.
    columns: Option<Vec<String>>,
    /// Those that a join has made one with another's: `*` shows them once, before all others.
    merged: Vec<String>,
}

impl Seen {
    fn has(&self, column: &str) -> Option<bool> {
        match (&self.columns, self.merged.iter().any(|m| m == column)) {
            (_, true) => Some(true),
            (Some(columns), _) => Some(columns.iter().any(|c| c == column)),
            (None, _) => None,
        }
    }
}

/// Relations that are joined, and the columns that the joins merged.
#[derive(Default)]
struct Joined {
    seen: Vec<Seen>,
    merged: Vec<(String, Expr)>,
}

impl<F: Fn(&StreamName) -> Option<Arc<StreamDef>>> VisitorMut for Hider<'_, F> {
    type Break = Box<Error>;

    fn pre_visit_query(&mut self, query: &mut ast::Query) -> ControlFlow<Box<Error>> {
        self.scope.enter(query);
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, query: &mut ast::Query) -> ControlFlow<Box<Error>> {
        self.scope.leave(query);
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut ast::Select) -> ControlFlow<Box<Error>> {
        match self.select(select) {
            Ok(()) => ControlFlow::Continue(()),
            Err(e) => ControlFlow::Break(Box::new(e)),
        }
    }
}

impl<F: Fn(&StreamName) -> Option<Arc<StreamDef>>> Hider<'_, F> {
    fn select(&mut self, select: &mut ast::Select) -> Result<()> {
        let mut all = Joined::default();
        for table in &mut select.from {
            let joined = self.joined(table)?;
            all.seen.extend(joined.seen);
            all.merged.extend(joined.merged);
        }
        if all.seen.iter().all(|s| s.hidden.is_empty()) {
            return Ok(());
        }
        for item in std::mem::take(&mut select.projection) {
            match item {
                SelectItem::Wildcard(options) => match all.seen.as_slice() {
                    [one] => select.projection.push(SelectItem::Wildcard(without(options, one.hidden.iter().copied()))),
                    several => {
                        let merged = all.merged.iter().map(|(name, expr)| SelectItem::ExprWithAlias {
                            expr: expr.clone(),
                            alias: Ident::with_quote('"', name.as_str()),
                        });
                        select.projection.extend(merged);
                        for seen in several.iter().filter(|s| !s.is_merged_whole()) {
                            let left_out = seen.hidden.iter().copied().chain(seen.merged.iter().map(String::as_str));
                            let kind = SelectItemQualifiedWildcardKind::ObjectName(seen.name.clone());
                            select.projection.push(SelectItem::QualifiedWildcard(kind, without(options.clone(), left_out)));
                        }
                    }
                },
                SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), options) => {
                    let last = |n: &ObjectName| n.0.last().map(|p| p.to_string().to_lowercase());
                    let meant = all.seen.iter().find(|s| last(&s.name) == last(&name));
                    let options = without(options, meant.map_or(&[][..], |s| s.hidden).iter().copied());
                    select.projection.push(SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), options));
                }
                other => select.projection.push(other),
            }
        }
        Ok(())
    }

    fn joined(&mut self, table: &mut TableWithJoins) -> Result<Joined> {
        let mut left = self.factor(&mut table.relation)?;
        for join in &mut table.joins {
            let right = self.factor(&mut join.relation)?;
            left = join_of(left, &mut join.join_operator, right)?;
        }
        Ok(left)
    }

    fn factor(&mut self, factor: &mut TableFactor) -> Result<Joined> {
        if let TableFactor::NestedJoin { table_with_joins, alias } = factor {
            let Some(alias) = alias.take() else { return self.joined(table_with_joins) };
            // Under one name it is a query: what is hidden inside of it cannot be named through it.
            *factor = as_query(table_with_joins, alias)?;
        }
        let columns = |alias: &Option<TableAlias>| {
            let named = alias.as_ref().map(|a| a.columns.as_slice()).filter(|c| !c.is_empty());
            named.map(|c| c.iter().map(|c| folded(&c.name)).collect::<Vec<_>>())
        };
        let (name, hidden, columns) = match factor {
            TableFactor::Table { name, alias, args: None, version, .. } => {
                let parts = stream_name(name);
                let (called, hidden, own) = match version {
                    Some(version) => match self.relations.of(version) {
                        Some(found) => (found.name(), found.hidden, Some(found.visible())),
                        None => (name.clone(), &[][..], None),
                    },
                    None => match parts.filter(|p| self.scope.cte(p).is_none()).and_then(|p| (self.stream)(&p)) {
                        Some(def) => (name.clone(), HIDDEN, Some(def.columns.iter().map(|c| c.name.clone()).collect())),
                        None => (name.clone(), &[][..], None),
                    },
                };
                let columns = columns(alias).or(own);
                (alias.as_ref().map_or(called, |a| ObjectName::from(vec![a.name.clone()])), hidden, columns)
            }
            TableFactor::Table { name, alias, .. } | TableFactor::Function { name, alias, .. } => {
                let own = name.0.last().and_then(|p| p.as_ident()).map(|i| i.value.clone());
                let known = columns(alias);
                (self.named(alias, own), &[][..], known)
            }
            TableFactor::UNNEST { alias, .. } => {
                let known = columns(alias);
                (self.named(alias, Some("unnest".to_owned())), &[][..], known)
            }
            TableFactor::Derived { alias, .. } | TableFactor::TableFunction { alias, .. } => {
                let known = columns(alias);
                (self.named(alias, None), &[][..], known)
            }
            other => return Err(Error::unsupported(format!("hidden columns beside {other}: name them in a query of their own"))),
        };
        Ok(Joined { seen: vec![Seen { name, hidden, columns, merged: Vec::new() }], merged: Vec::new() })
    }

    /// What a relation is called: by its alias, which one without a name of its own is given.
    fn named(&mut self, alias: &mut Option<TableAlias>, own: Option<String>) -> ObjectName {
        let named = &mut self.named;
        let alias = alias.get_or_insert_with(|| {
            *named += 1;
            let name = own.unwrap_or_else(|| format!("unnamed_{named}"));
            TableAlias { explicit: true, name: Ident::with_quote('"', name), columns: Vec::new(), at: None }
        });
        ObjectName::from(vec![alias.name.clone()])
    }
}

fn folded(i: &Ident) -> String {
    if i.quote_style.is_some() { i.value.clone() } else { i.value.to_lowercase() }
}

impl Seen {
    fn is_merged_whole(&self) -> bool {
        self.columns.as_ref().is_some_and(|c| c.iter().all(|c| self.merged.contains(c)))
    }
}

/// `SELECT * FROM joins` as a relation.
fn as_query(joins: &TableWithJoins, alias: TableAlias) -> Result<TableFactor> {
    let statement = crate::parse::parse("SELECT * FROM x")?.pop().map(|s| s.verb);
    let Some(Verb::Query(query)) = statement else { return Err(Error::internal("a query is no query")) };
    let mut subquery = query.ast;
    if let ast::SetExpr::Select(select) = subquery.body.as_mut() {
        select.from = vec![joins.clone()];
    }
    Ok(TableFactor::Derived { lateral: false, subquery, alias: Some(alias), sample: None })
}

/// Which side's value a merged column has.
enum Side {
    Left,
    Right,
    /// The one that is there.
    Both,
}

fn join_of(mut left: Joined, operator: &mut JoinOperator, mut right: Joined) -> Result<Joined> {
    use JoinOperator::{FullOuter, Inner, Join, Left, LeftAnti, LeftOuter, LeftSemi, Right, RightAnti, RightOuter, RightSemi};
    let (side, constraint) = match operator {
        Join(c) | Inner(c) | Left(c) | LeftOuter(c) => (Side::Left, Some(c)),
        Right(c) | RightOuter(c) => (Side::Right, Some(c)),
        FullOuter(c) => (Side::Both, Some(c)),
        LeftSemi(c) | LeftAnti(c) | RightSemi(c) | RightAnti(c) => (Side::Left, Some(c)),
        _ => (Side::Left, None),
    };
    if let Some(constraint) = constraint {
        if matches!(constraint, JoinConstraint::Natural) {
            *constraint = natural(&left, &right)?;
        }
        if let JoinConstraint::Using(keys) = constraint {
            for key in keys.iter() {
                let Some(key) = key.0.last().and_then(|p| p.as_ident()).map(folded) else { continue };
                merge(&mut left, &mut right, &key, &side)?;
            }
        }
    }
    match operator {
        LeftSemi(_) | LeftAnti(_) => return Ok(left),
        RightSemi(_) | RightAnti(_) => return Ok(right),
        _ => {}
    }
    left.seen.append(&mut right.seen);
    left.merged.append(&mut right.merged);
    Ok(left)
}

/// The USING that a NATURAL join stands for.
fn natural(left: &Joined, right: &Joined) -> Result<JoinConstraint> {
    let visible = |side: &Joined| -> Result<Vec<String>> {
        let mut all = Vec::new();
        for seen in &side.seen {
            let Some(columns) = &seen.columns else {
                let message = format!("a NATURAL join with '{}' in a query that names hidden columns: write USING (...)", seen.name);
                return Err(Error::unsupported(message));
            };
            all.extend(columns.iter().cloned());
        }
        Ok(all)
    };
    let (mut keys, of_left) = (visible(right)?, visible(left)?);
    keys.retain(|k| of_left.contains(k));
    Ok(match keys.is_empty() {
        true => JoinConstraint::On(Expr::Value(Value::Boolean(true).with_empty_span())),
        false => JoinConstraint::Using(keys.into_iter().map(|k| ObjectName::from(vec![Ident::with_quote('"', k)])).collect()),
    })
}

/// Makes one column of the two that are called `key`.
fn merge(left: &mut Joined, right: &mut Joined, key: &str, side: &Side) -> Result<()> {
    let of_left = value_of(left, key)?;
    let of_right = value_of(right, key)?;
    let value = match side {
        Side::Left => of_left,
        Side::Right => of_right,
        Side::Both => coalesce(of_left, of_right),
    };
    left.merged.retain(|(name, _)| name != key);
    right.merged.retain(|(name, _)| name != key);
    left.merged.push((key.to_owned(), value));
    Ok(())
}

/// The column's value on one side of a join, where it is from then on one that is merged.
fn value_of(side: &mut Joined, key: &str) -> Result<Expr> {
    if let Some((_, value)) = side.merged.iter().find(|(name, _)| name == key) {
        return Ok(value.clone());
    }
    let known: Vec<usize> = (0..side.seen.len()).filter(|i| side.seen[*i].has(key) == Some(true)).collect();
    let open: Vec<usize> = (0..side.seen.len()).filter(|i| side.seen[*i].has(key).is_none()).collect();
    let at = match (known.as_slice(), open.as_slice()) {
        ([one], _) | ([], [one]) => *one,
        _ => {
            let message = format!("column '{key}' of USING is not one relation's in a query that names hidden columns: write ON ...");
            return Err(Error::invalid(message).with_sqlstate(crate::sqlstate::AMBIGUOUS_COLUMN));
        }
    };
    let seen = &mut side.seen[at];
    seen.merged.push(key.to_owned());
    let mut parts: Vec<Ident> = seen.name.0.iter().filter_map(|p| p.as_ident()).cloned().collect();
    parts.push(Ident::with_quote('"', key));
    Ok(Expr::CompoundIdentifier(parts))
}

fn coalesce(left: Expr, right: Expr) -> Expr {
    let arg = |e| FunctionArg::Unnamed(FunctionArgExpr::Expr(e));
    Expr::Function(Function {
        name: ObjectName::from(vec![Ident::new("coalesce")]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(FunctionArgumentList {
            duplicate_treatment: None,
            args: vec![arg(left), arg(right)],
            clauses: vec![],
        }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: vec![],
    })
}

fn without<'a>(mut options: WildcardAdditionalOptions, names: impl Iterator<Item = &'a str>) -> WildcardAdditionalOptions {
    let mut names = names.peekable();
    if names.peek().is_none() {
        return options;
    }
    let mut excluded = match options.opt_exclude.take() {
        Some(ExcludeSelectItem::Single(name)) => vec![name],
        Some(ExcludeSelectItem::Multiple(names)) => names,
        None => Vec::new(),
    };
    for name in names {
        if !excluded.iter().any(|n| n.to_string() == name) {
            excluded.push(ObjectName::from(vec![Ident::with_quote('"', name)]));
        }
    }
    options.opt_exclude = Some(ExcludeSelectItem::Multiple(excluded));
    options
}
