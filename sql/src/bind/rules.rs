//! TTL rules: every name in them is checked before what is not built is refused, so that a wrong name is called wrong.

use crate::{
    Error, Result,
    expr::{Bound, Compiler, fingerprint},
    functions::type_name,
    sqlstate,
    statement::{Action, Expression, Rule},
};
use arrow::datatypes::DataType;
use datafusion::logical_expr::Volatility;
use ebb_storage::{
    codec::Codec,
    rules::{self, Destination, DestinationKind},
    stream_def::StreamDef,
};

/// The whole list.
///
/// # Errors
/// The first rule that is not allowed, with the reason.
pub fn bind(list: &[Rule], def: &StreamDef, compiler: &Compiler) -> Result<Vec<rules::Rule>> {
    let mut bound = Vec::with_capacity(list.len());
    let mut plain_delete = false;
    let mut unbuilt = None;
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
                unbuilt.get_or_insert((rule.position.0, "TTL ... RECOMPRESS"));
            }
            Action::Move(to) => {
                destination(to).map_err(at)?;
                unbuilt.get_or_insert((rule.position.0, "TTL ... TO DISK and TO VOLUME"));
            }
            Action::GroupBy { keys, set } => {
                for key in keys {
                    compiler.bind_ast(key.ast.as_ref().clone(), def).map_err(at)?;
                }
                group_by(keys, set, def, compiler).map_err(at)?;
                unbuilt.get_or_insert((rule.position.0, "TTL ... GROUP BY"));
            }
        }
    }
    match unbuilt {
        Some((position, what)) => Err(Error::unsupported(format!("{what}: not built yet")).at(position)),
        None => Ok(bound),
    }
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

fn destination(to: &Destination) -> Result<()> {
    if to.if_exists || to.name == "default" {
        return Ok(());
    }
    Err(Error::not_found(match to.kind {
        DestinationKind::Disk => format!("disk '{}' does not exist: there is 'default'", to.name),
        DestinationKind::Volume => format!("volume '{}' does not exist in the stream's policy: there is 'default'", to.name),
    }))
}

fn group_by(keys: &[Expression], set: &[(crate::statement::Name, Expression)], def: &StreamDef, compiler: &Compiler) -> Result<()> {
    let prefix = keys.len() <= def.primary_key.len() && keys.iter().zip(&def.primary_key).all(|(k, p)| k.text == *p);
    if !prefix {
        let message = format!("TTL GROUP BY must be a prefix of the primary key ({})", def.primary_key.join(", "));
        return Err(Error::invalid(message));
    }
    let mut seen = Vec::new();
    for (name, value) in set {
        let column = name.as_str();
        if def.column(column).is_none() {
            let near = crate::nearest::did_you_mean(column, def.columns.iter().map(|c| c.name.as_str()));
            return Err(
                Error::invalid(format!("TTL SET: column '{column}' does not exist{near}")).with_sqlstate(sqlstate::UNDEFINED_COLUMN)
            );
        }
        if seen.contains(&column) {
            return Err(Error::invalid(format!("TTL SET names column '{column}' twice")));
        }
        seen.push(column);
        if !compiler.bind_ast(value.ast.as_ref().clone(), def)?.has_aggregate {
            return Err(Error::invalid(format!("TTL SET {column} = {}: an aggregate is needed, such as max({column})", value.text)));
        }
    }
    Ok(())
}
