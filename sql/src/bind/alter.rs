//! ALTER STREAM as a function from definition to definition: all actions or none.

use super::{create_stream, rules, settings};
use crate::{
    Error, Result,
    expr::Compiler,
    nearest, parse, sqlstate,
    statement::{AlterAction, Column, ModifyColumn, Name, quote_name},
};
use datafusion::{
    logical_expr::Volatility,
    sql::sqlparser::ast::{self, VisitMut, VisitorMut},
};
use ebb_storage::{
    manifest::Manifest,
    rules::Action,
    stream_def::{ColumnDef, SettingValue, StreamDef},
};
use std::ops::ControlFlow;

/// What `actions` make of `old`. `constant` evaluates a default that names no column, at the ALTER.
pub fn apply(
    old: &StreamDef,
    actions: &[AlterAction],
    compiler: &Compiler,
    manifest: &Manifest,
    constant: &dyn Fn(&ast::Expr, &ColumnDef) -> Result<Option<String>>,
) -> Result<StreamDef> {
    let mut def = old.clone();
    let mut ttl: Option<&[crate::statement::Rule]> = None;
    for action in actions {
        match action {
            AlterAction::ModifyTtl(list) => ttl = Some(list),
            AlterAction::RemoveTtl => {
                ttl = None;
                def.policy.ttl.clear();
            }
            AlterAction::ModifySetting(list) => settings::set(&mut def, list, false, manifest)?,
            AlterAction::ResetSetting(names) => settings::reset(&mut def, names)?,
            AlterAction::AddColumn { if_not_exists: true, column } if def.column(column.name.as_str()).is_some() => {}
            AlterAction::AddColumn { column, .. } => add(&mut def, column, compiler, constant)?,
            AlterAction::DropColumn { if_exists: true, name } if def.column(name.as_str()).is_none() => {}
            AlterAction::DropColumn { name, .. } => {
                let place = place(&def, name)?;
                let ttl_goes = actions.iter().any(|a| matches!(a, AlterAction::ModifyTtl(_) | AlterAction::RemoveTtl));
                named_by(&def, name.as_str(), compiler, ttl_goes).map_err(|e| e.at(name.position))?;
                if def.columns.len() == 1 {
                    return Err(Error::invalid("a stream keeps at least one column: DROP STREAM drops it whole").with_sqlstate("42P16"));
                }
                def.columns.remove(place);
            }
            AlterAction::RenameColumn { from, to } => rename(&mut def, from, to)?,
            AlterAction::CommentColumn { name, comment } => {
                let place = place(&def, name)?;
                def.columns[place].comment = comment.clone();
            }
            AlterAction::ModifyComment(comment) => def.comment = comment.clone(),
            AlterAction::ModifyColumn(change) => modify(&mut def, change, compiler)?,
            other => return Err(Error::unsupported(format!("ALTER STREAM ... {}: not built yet", word(other)))),
        }
    }
    if let Some(list) = ttl {
        def.policy.ttl = rules::bind(list, &def, compiler, &*settings::find_policy(manifest, Manifest::policy_name(&def))?)?;
    }
    create_stream::check_defaults(&def, compiler)?;
    Ok(def)
}

fn word(action: &AlterAction) -> &'static str {
    match action {
        AlterAction::ModifyRetention(_) => "MODIFY RETENTION",
        AlterAction::RemoveRetention => "REMOVE RETENTION",
        _ => "this",
    }
}

fn place(def: &StreamDef, name: &Name) -> Result<usize> {
    let found = def.columns.iter().position(|c| c.name == name.as_str());
    found.ok_or_else(|| {
        let near = nearest::did_you_mean(name.as_str(), def.columns.iter().map(|c| c.name.as_str()));
        let message = format!("column '{}' does not exist in {}{near}", name.as_str(), def.full_name());
        Error::invalid(message).with_sqlstate(sqlstate::UNDEFINED_COLUMN).at(name.position)
    })
}

fn add(
    def: &mut StreamDef,
    column: &Column,
    compiler: &Compiler,
    constant: &dyn Fn(&ast::Expr, &ColumnDef) -> Result<Option<String>>,
) -> Result<()> {
    create_stream::add_column(def, column)?;
    add_default(def, column, compiler, constant)?;
    match &column.ttl {
        Some(ttl) => rules::column_ttl(def, column.name.as_str(), ttl, compiler).map_err(|e| e.at(column.name.position)),
        None => Ok(()),
    }
}

/// What parts that lack the new column read.
fn add_default(
    def: &mut StreamDef,
    column: &Column,
    compiler: &Compiler,
    constant: &dyn Fn(&ast::Expr, &ColumnDef) -> Result<Option<String>>,
) -> Result<()> {
    let Some(default) = &column.default else { return Ok(()) };
    let bound = compiler.bind_ast(default.expr.ast.as_ref().clone(), def)?;
    let of_row = !bound.columns.is_empty() && bound.volatility == Volatility::Immutable;
    if !of_row
        && let Some(new) = def.columns.last_mut()
        && !new.is_alias()
    {
        new.fill = constant(&default.expr.ast, new)?;
    }
    Ok(())
}

fn modify(def: &mut StreamDef, change: &ModifyColumn, compiler: &Compiler) -> Result<()> {
    let name = change.name.as_str();
    let place = place(def, &change.name)?;
    let at = |e: Error| e.at(change.name.position);
    if change.default.is_some() {
        let message = format!(
            "column '{name}': parts that lack a column read its default, so it stays: MODIFY COLUMN changes type, NULL, CODEC, TTL and COMMENT"
        );
        return Err(at(Error::unsupported(message)));
    }
    let (ty, nullable) = (def.columns[place].ty.clone(), def.columns[place].nullable);
    let new = change.ty.clone().unwrap_or_else(|| ty.clone());
    // A type alone says nothing of NULL.
    let may_be_null = change.nullable.unwrap_or(nullable);
    if !ty.widens_to(&new) {
        let message = format!(
            "column '{name}' is {ty} and cannot become {new}: a column only widens; add a column and INSERT ... SELECT, or write a new stream"
        );
        return Err(at(Error::invalid(message).with_sqlstate("42846")));
    }
    if nullable && !may_be_null {
        let message = format!("column '{name}' may be NULL and cannot become NOT NULL: a column only widens");
        return Err(at(Error::invalid(message).with_sqlstate("42846")));
    }
    if (&ty, nullable) != (&new, may_be_null) {
        rules::no_key(def, name, compiler, "MODIFY COLUMN").map_err(|e| at(e.with_sqlstate("2BP01")))?;
        if def.columns[place].is_alias() {
            return Err(at(Error::invalid(format!("column '{name}' is an ALIAS: its type follows from its expression"))));
        }
    }
    let column = &mut def.columns[place];
    (column.ty, column.nullable) = (new, may_be_null);
    if let Some(codec) = change.codec {
        column.codec = Some(codec);
    }
    if let Some(comment) = &change.comment {
        column.comment = comment.clone();
    }
    match &change.ttl {
        Some(ttl) => rules::column_ttl(def, name, ttl, compiler).map_err(at),
        None => Ok(()),
    }
}

/// Every stored text with what it is.
fn texts(def: &mut StreamDef) -> Vec<(String, &mut String)> {
    let mut all: Vec<(String, &mut String)> = Vec::new();
    all.extend(def.partition_by.iter_mut().map(|t| ("PARTITION BY".to_owned(), t)));
    all.extend(def.order_by.iter_mut().map(|t| ("ORDER BY".to_owned(), t)));
    all.extend(def.primary_key.iter_mut().map(|t| ("PRIMARY KEY".to_owned(), t)));
    all.extend(def.series_key.iter_mut().map(|t| ("SERIES KEY".to_owned(), t)));
    all.extend(def.indexes.iter_mut().map(|i| (format!("INDEX {}", i.name), &mut i.expr)));
    for column in &mut def.columns {
        if let Some(default) = &mut column.default {
            all.push((format!("the expression of column '{}'", column.name), &mut default.expr));
        }
        if let Some(ttl) = &mut column.ttl {
            all.push((format!("the TTL of column '{}'", column.name), &mut ttl.when));
        }
    }
    for rule in &mut def.policy.ttl {
        all.push(("a TTL rule".to_owned(), &mut rule.when));
        match &mut rule.action {
            Action::Delete { only: Some(only) } => all.push(("a TTL rule".to_owned(), only)),
            Action::GroupBy { keys, set } => {
                let texts = keys.iter_mut().chain(set.iter_mut().flat_map(|(column, value)| [column, value]));
                all.extend(texts.map(|t| ("a TTL rule".to_owned(), t)));
            }
            _ => {}
        }
    }
    if let Some(SettingValue::Text(text)) = def.settings.get_mut("event_time_column") {
        all.push(("setting event_time_column".to_owned(), text));
    }
    all
}

fn named_by(def: &StreamDef, name: &str, compiler: &Compiler, ttl_goes: bool) -> Result<()> {
    let id = def.column(name).map(|c| c.id);
    let mut copy = def.clone();
    for (what, text) in texts(&mut copy) {
        if ttl_goes && what == "a TTL rule"
            || what == format!("the expression of column '{name}'")
            || what == format!("the TTL of column '{name}'")
        {
            continue;
        }
        let columns = compiler.bind(text, def).map(|b| b.columns).unwrap_or_default();
        if id.is_some_and(|id| columns.contains(&id)) {
            let message = format!("column '{name}' is named by {what} ({text}): it cannot be dropped before that is changed");
            return Err(Error::conflict(message).with_sqlstate("2BP01"));
        }
    }
    Ok(())
}

fn rename(def: &mut StreamDef, from: &Name, to: &Name) -> Result<()> {
    let place = place(def, from)?;
    let new = to.as_str();
    if new.starts_with("_tp_") {
        return Err(Error::invalid(format!("a column cannot be called '{new}'")).with_sqlstate("42939").at(to.position));
    }
    if def.column(new).is_some() {
        let e = Error::invalid(format!("column '{new}' exists already"));
        return Err(e.with_sqlstate(sqlstate::DUPLICATE_COLUMN).at(to.position));
    }
    for (_, text) in texts(def) {
        *text = renamed(text, from.as_str(), new)?;
    }
    def.columns[place].name = new.to_owned();
    Ok(())
}

struct Renames<'a> {
    from: &'a str,
    to: &'a str,
}

impl VisitorMut for Renames<'_> {
    type Break = ();
    fn pre_visit_expr(&mut self, e: &mut ast::Expr) -> ControlFlow<()> {
        if let ast::Expr::Identifier(i) = e
            && (i.value == self.from || i.quote_style.is_none() && i.value.to_lowercase() == self.from)
        {
            i.value = self.to.to_owned();
            i.quote_style = quote_name(self.to).starts_with('"').then_some('"');
        }
        ControlFlow::Continue(())
    }
}

fn renamed(text: &str, from: &str, to: &str) -> Result<String> {
    let mut tree = parse::parse_expression(text)?.ast;
    let _ = tree.visit(&mut Renames { from, to });
    Ok(parse::parse_expression(&tree.to_string())?.text)
}
