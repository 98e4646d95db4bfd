//! TTL rules: from words to what the engine goes by. Every name in them is checked here; what a rule is worth is told by its
//! fingerprint, which holds column ids and no texts.

use crate::{
    Error, Result,
    expr::{Bound, Compiler, fingerprint},
    functions::type_name,
    sqlstate,
    statement::{Action, Expression, Name, Rule},
};
use arrow::{compute::can_cast_types, datatypes::DataType};
use datafusion::logical_expr::Volatility;
use ebb_storage::{
    codec::Codec,
    disk::StoragePolicy,
    rules,
    stream_def::{ColumnTtl, DefaultKind, SettingValue, StreamDef},
};

/// The whole list; `policy` is the stream's.
///
/// # Errors
/// The first rule that is not allowed, with the reason.
pub fn bind(list: &[Rule], def: &StreamDef, compiler: &Compiler, policy: &StoragePolicy) -> Result<Vec<rules::Rule>> {
    let mut bound = Vec::with_capacity(list.len());
    let mut plain_delete = false;
    for rule in list {
        let at = |e: Error| e.at(rule.position.0);
        let when = time(&rule.when, def, compiler).map_err(at)?;
        let identity = compiler.identity(&when, def)?;
        match &rule.action {
            Action::Delete { only } => {
                let mut of_condition = String::new();
                match only {
                    None if plain_delete => {
                        return Err(at(Error::invalid("a stream has at most one DELETE without WHERE: add a WHERE, or leave one out")));
                    }
                    None => plain_delete = true,
                    Some(c) => of_condition = compiler.identity(&condition(c, def, compiler).map_err(at)?, def)?,
                }
                bound.push(rules::Rule {
                    when: rule.when.text.clone(),
                    action: rules::Action::Delete { only: only.as_ref().map(|e| e.text.clone()) },
                    fingerprint: fingerprint(&["delete", &identity, &of_condition]),
                });
            }
            Action::Recompress(codec) => {
                if *codec == Codec::None {
                    return Err(at(Error::invalid("RECOMPRESS CODEC(NONE) does not compress: name a codec that does")));
                }
                bound.push(rules::Rule {
                    when: rule.when.text.clone(),
                    action: rules::Action::Recompress(*codec),
                    fingerprint: fingerprint(&["recompress", &codec.to_string(), &identity]),
                });
            }
            Action::Move(to) => {
                ebb_engine::disks::destination(to, policy).map_err(|e| at(e.into()))?;
                let kind = match to.kind {
                    rules::DestinationKind::Disk => "disk",
                    rules::DestinationKind::Volume => "volume",
                };
                bound.push(rules::Rule {
                    when: rule.when.text.clone(),
                    action: rules::Action::Move(to.clone()),
                    fingerprint: fingerprint(&["move", kind, &to.name, &identity]),
                });
            }
            Action::GroupBy { keys, set } => {
                let of_folding = group_by(keys, set, def, compiler).map_err(at)?;
                bound.push(rules::Rule {
                    when: rule.when.text.clone(),
                    action: rules::Action::GroupBy {
                        keys: keys.iter().map(|k| k.text.clone()).collect(),
                        set: set.iter().map(|(column, value)| (column.as_str().to_owned(), value.text.clone())).collect(),
                    },
                    fingerprint: fingerprint(&["group by", &identity, &of_folding]),
                });
            }
        }
    }
    Ok(bound)
}

fn row_only(bound: &Bound, text: &str) -> Result<()> {
    let refuse = |why: &str| Err(Error::invalid(format!("'{text}' {why}")));
    if bound.has_aggregate {
        return refuse("has an aggregate: a rule sees one row").map_err(|e: Error| e.with_sqlstate(sqlstate::GROUPING_ERROR));
    }
    if bound.has_window {
        return refuse("has a window function: a rule sees one row");
    }
    if bound.has_subquery {
        return refuse("has a subquery: a rule sees one row");
    }
    if bound.volatility != Volatility::Immutable {
        return refuse("is not deterministic: now(), random() and their like cannot stand in a definition");
    }
    Ok(())
}

fn time(when: &Expression, def: &StreamDef, compiler: &Compiler) -> Result<Bound> {
    let bound = compiler.bind_ast(when.ast.as_ref().clone(), def).map_err(|e| e.context("TTL"))?;
    row_only(&bound, &when.text)?;
    compiler.probe(&bound, def).map_err(|e| e.context(format_args!("TTL: '{}'", when.text)))?;
    if !matches!(bound.ty, DataType::Date32 | DataType::Timestamp(..)) {
        let message = format!("TTL: '{}' is of type {}: it must be a date, datetime or datetime64", when.text, type_name(&bound.ty));
        return Err(Error::invalid(message).with_sqlstate(sqlstate::DATATYPE_MISMATCH));
    }
    if bound.columns.is_empty() {
        return Err(Error::invalid(format!("TTL: '{}' names no column: every row would be due at once", when.text)));
    }
    Ok(bound)
}

fn condition(only: &Expression, def: &StreamDef, compiler: &Compiler) -> Result<Bound> {
    let bound = compiler.bind_ast(only.ast.as_ref().clone(), def).map_err(|e| e.context("TTL WHERE"))?;
    row_only(&bound, &only.text)?;
    compiler.probe(&bound, def).map_err(|e| e.context(format_args!("TTL WHERE: '{}'", only.text)))?;
    if !matches!(bound.ty, DataType::Boolean | DataType::Null) {
        let message = format!("TTL WHERE: '{}' is of type {}: it must be true or false", only.text, type_name(&bound.ty));
        return Err(Error::invalid(message).with_sqlstate(sqlstate::DATATYPE_MISMATCH));
    }
    Ok(bound)
}

/// Keys are a prefix of the primary key, so that rows to be folded lie together; what is not a key may be an aggregate of the rows.
/// What the folding is, with column ids.
fn group_by(keys: &[Expression], set: &[(Name, Expression)], def: &StreamDef, compiler: &Compiler) -> Result<String> {
    let mut identity = String::new();
    for key in keys {
        let bound = compiler.bind_ast(key.ast.as_ref().clone(), def)?;
        identity.push_str(&compiler.identity(&bound, def)?);
        identity.push('\n');
    }
    let prefix = keys.len() <= def.primary_key.len() && keys.iter().zip(&def.primary_key).all(|(k, p)| k.text == *p);
    if !prefix {
        let message = format!("TTL GROUP BY must be a prefix of the primary key ({})", def.primary_key.join(", "));
        return Err(Error::invalid(message));
    }
    let mut seen = Vec::new();
    for (name, value) in set {
        let column = name.as_str();
        let Some(of) = def.column(column) else {
            let near = crate::nearest::did_you_mean(column, def.columns.iter().map(|c| c.name.as_str()));
            return Err(
                Error::invalid(format!("TTL SET: column '{column}' does not exist{near}")).with_sqlstate(sqlstate::UNDEFINED_COLUMN)
            );
        };
        if seen.contains(&column) {
            return Err(Error::invalid(format!("TTL SET names column '{column}' twice")));
        }
        seen.push(column);
        if of.is_alias() {
            return Err(Error::invalid(format!("TTL SET: column '{column}' is an ALIAS: it is computed on reading")));
        }
        no_key(def, column, compiler, "TTL SET")?;
        let bound = compiler.bind_ast(value.ast.as_ref().clone(), def)?;
        if !bound.has_aggregate {
            return Err(Error::invalid(format!("TTL SET {column} = {}: an aggregate is needed, such as max({column})", value.text)));
        }
        if bound.has_window || bound.has_subquery || bound.volatility != Volatility::Immutable {
            return Err(Error::invalid(format!(
                "TTL SET {column} = {}: it must depend on nothing but the rows that are folded",
                value.text
            )));
        }
        let (of_value, of_column) = (&bound.ty, &of.ty.arrow());
        // A text from something else, or the other way round, has to be asked for: who forgot an aggregate gets no row of wrong values.
        let unlike = is_text(of_value) != is_text(of_column) && *of_value != DataType::Null;
        if unlike || !can_cast_types(of_value, of_column) {
            let message = format!(
                "TTL SET {column} = {}: it is of type {}, the column is {}: write it as a value of that type",
                value.text,
                type_name(of_value),
                of.ty
            );
            return Err(Error::invalid(message).with_sqlstate(sqlstate::DATATYPE_MISMATCH));
        }
        identity.push_str(&format!("{} = {}\n", of.id, compiler.identity(&bound, def)?));
    }
    Ok(identity)
}

fn is_text(t: &DataType) -> bool {
    matches!(t, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
}

/// Where a row lies and what it is ordered by does not change while it lies there.
pub fn no_key(def: &StreamDef, column: &str, compiler: &Compiler, what: &str) -> Result<()> {
    let id = def.column(column).map(|c| c.id);
    let keys = [("PARTITION BY", &def.partition_by), ("ORDER BY", &def.order_by), ("SERIES KEY", &def.series_key)];
    for (clause, texts) in keys {
        for text in texts {
            if id.is_some_and(|id| compiler.bind(text, def).is_ok_and(|b| b.columns.contains(&id))) {
                return Err(Error::invalid(format!("{what}: column '{column}' is named by {clause} ({text}): keys do not change")));
            }
        }
    }
    let of_time = def.settings.get("event_time_column").is_some_and(|v| match v {
        SettingValue::Text(text) => id.is_some_and(|id| compiler.bind(text, def).is_ok_and(|b| b.columns.contains(&id))),
        _ => false,
    });
    match of_time {
        true => Err(Error::invalid(format!("{what}: column '{column}' is the stream's event time (setting event_time_column)"))),
        false => Ok(()),
    }
}

/// Gives a column of `def` its TTL.
///
/// # Errors
/// Where the expression is no rule's time, the column is a key, or its DEFAULT is not the same whenever it is asked.
pub fn column_ttl(def: &mut StreamDef, name: &str, ttl: &Expression, compiler: &Compiler) -> Result<()> {
    let bound = time(ttl, def, compiler).map_err(|e| e.context(format_args!("column '{name}'")))?;
    no_key(def, name, compiler, "column TTL")?;
    let identity = compiler.identity(&bound, def)?;
    let Some(column) = def.columns.iter().find(|c| c.name == name) else {
        return Err(Error::internal(format!("column '{name}' is not there")));
    };
    let refuse = |why: &str| Err(Error::invalid(format!("column TTL: column '{name}' {why}")));
    match &column.default {
        Some(d) if d.kind != DefaultKind::Default => return refuse("is computed: TTL is for columns that are stored as they came"),
        Some(d) if compiler.bind(&d.expr, def)?.volatility != Volatility::Immutable => {
            return refuse("has a DEFAULT that is not deterministic: due values would get another one at each rewrite");
        }
        _ => {}
    }
    let fingerprint = fingerprint(&["column", &column.id.to_string(), &identity]);
    if let Some(column) = def.columns.iter_mut().find(|c| c.name == name) {
        column.ttl = Some(ColumnTtl { when: ttl.text.clone(), fingerprint });
    }
    Ok(())
}
