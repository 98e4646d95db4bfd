//! CREATE STREAM as a definition: names first, then types and keys, then what is not built is refused by name.

use super::{names, rules, settings};
use crate::{
    Error, Result,
    expr::Compiler,
    sqlstate,
    statement::{Column, CreateStream, Expression, Index},
};
use arrow::datatypes::DataType;
use datafusion::logical_expr::Volatility;
use ebb_storage::{
    Timestamp,
    column_type::ColumnType,
    ids::{ColumnId, SchemaVersion, StreamId},
    manifest::Manifest,
    part::computed::keeps,
    rules::Policy,
    stream_def::{ColumnDef, ColumnDefault, DefaultKind, IndexDef, StreamDef, TP_SN, TP_TIME},
};
use std::collections::BTreeMap;

/// Columns a stream may have.
pub const COLUMNS_MAX: usize = 10_000;

/// `columns`: those written, or those of the query.
pub fn bind(create: &CreateStream, columns: &[Column], current: &str, compiler: &Compiler, manifest: &Manifest) -> Result<StreamDef> {
    let (database, name) = names::split(&create.name, current)?;
    let at = |e: Error| e.at(create.name.position());
    if name.starts_with(names::BRANCH_PREFIX) || name.starts_with("_tp_") {
        return Err(at(Error::invalid(format!("a stream cannot be called '{name}': names that begin with branch_ or _tp_ are kept"))
            .with_sqlstate("42939")));
    }
    if database == crate::system::DATABASE {
        return Err(at(Error::invalid("the database 'system' is Ebb's own").with_sqlstate("42501")));
    }
    if columns.is_empty() || columns.len() > COLUMNS_MAX {
        return Err(at(Error::invalid(format!("a stream has 1 to {COLUMNS_MAX} columns")).with_sqlstate("42P16")));
    }
    let mut def = StreamDef {
        id: StreamId::default(),
        database,
        name,
        columns: Vec::with_capacity(columns.len()),
        next_column: ColumnId(1),
        schema_version: SchemaVersion(1),
        policy_version: 1,
        partition_by: vec![format!("to_yyyymmdd({TP_TIME})")],
        order_by: vec![TP_TIME.to_owned()],
        primary_key: Vec::new(),
        series_key: Vec::new(),
        indexes: Vec::new(),
        policy: Policy::default(),
        settings: BTreeMap::new(),
        comment: create.comment.clone().unwrap_or_default(),
        created_at: Timestamp(0),
    };
    let mut unbuilt: Option<(usize, &str)> = None;
    for column in columns {
        add_column(&mut def, column)?;
    }
    check_defaults(&def, compiler)?;
    if let Some(keys) = &create.partition_by {
        def.partition_by = keys.iter().map(|k| key(k, &def, compiler, "PARTITION BY")).collect::<Result<_>>()?;
    }
    if let Some(keys) = &create.order_by {
        def.order_by = keys.iter().map(|k| key(k, &def, compiler, "ORDER BY")).collect::<Result<_>>()?;
    }
    if let Some(keys) = &create.primary_key {
        let keys: Vec<String> = keys.iter().map(|k| key(k, &def, compiler, "PRIMARY KEY")).collect::<Result<_>>()?;
        if create.order_by.is_none() {
            def.order_by = keys.clone();
        }
        if !def.order_by.starts_with(&keys) {
            let message = format!("PRIMARY KEY ({}) must be a prefix of ORDER BY ({})", keys.join(", "), def.order_by.join(", "));
            return Err(Error::invalid(message).with_sqlstate("42P16"));
        }
        def.primary_key = keys;
    } else {
        def.primary_key = def.order_by.clone();
    }
    for name in &create.series_key {
        known(&def, name.as_str(), name.position)?;
        unbuilt.get_or_insert((name.position, "SERIES KEY"));
    }
    for index in &create.indexes {
        let bound = self::index(index, &def, compiler).map_err(|e| e.at(index.name.position))?;
        def.indexes.push(bound);
    }
    settings::set(&mut def, &create.settings, true, manifest)?;
    settings::check_event_time(&def, compiler)?;
    for column in columns {
        if let Some(ttl) = &column.ttl {
            rules::column_ttl(&mut def, column.name.as_str(), ttl, compiler).map_err(|e| e.at(column.name.position))?;
        }
    }
    for stage in &create.retention {
        if let crate::statement::Stage::Keep { keep, .. } = stage {
            compiler.bind_ast(keep.ast.as_ref().clone(), &def).map_err(|e| e.context("RETENTION"))?;
        }
        unbuilt.get_or_insert((create.name.position(), "RETENTION"));
    }
    def.policy.ttl = rules::bind(&create.ttl, &def, compiler, &*settings::find_policy(manifest, Manifest::policy_name(&def))?)?;
    match unbuilt {
        Some((position, what)) => Err(Error::unsupported(format!("{what}: not built yet")).at(position)),
        None => Ok(def),
    }
}

/// An index is over a column, or over an expression of which a part keeps bounds and values.
fn index(index: &Index, def: &StreamDef, compiler: &Compiler) -> Result<IndexDef> {
    let expr = key(&index.expr, def, compiler, "INDEX")?;
    let name = index.name.as_str();
    let column = def.stored().find(|c| crate::statement::quote_name(&c.name) == expr);
    let two_values = || Error::invalid(format!("INDEX {name}: a bool has two values, which no index tells apart"));
    match column {
        Some(column) if *column.ty.plain() == ColumnType::Bool => return Err(two_values()),
        Some(_) => {}
        None => {
            let ty = compiler.bind(&expr, def)?.ty;
            if ty == DataType::Boolean {
                return Err(two_values());
            }
            if !keeps(&ty) {
                let found = crate::functions::type_name(&ty);
                let message = format!(
                    "INDEX {name}: of an expression integers, dates, times and texts are kept, and '{expr}' is a {found}: index a column \
                     that holds it (c type MATERIALIZED {expr})"
                );
                return Err(Error::unsupported(message));
            }
        }
    }
    Ok(IndexDef { name: name.to_owned(), expr, kind: index.kind.clone(), granularity: index.granularity })
}

fn known(def: &StreamDef, name: &str, position: usize) -> Result<()> {
    if def.column(name).is_some() {
        return Ok(());
    }
    let near = crate::nearest::did_you_mean(name, def.columns.iter().map(|c| c.name.as_str()));
    Err(Error::invalid(format!("column '{name}' does not exist{near}")).with_sqlstate(sqlstate::UNDEFINED_COLUMN).at(position))
}

/// The column joins `def`, unchecked but for its name.
pub fn add_column(def: &mut StreamDef, column: &Column) -> Result<()> {
    let name = column.name.as_str();
    let at = |e: Error| e.at(column.name.position);
    if name.starts_with("_tp_") {
        let what = if [TP_TIME, TP_SN].contains(&name) { "every stream has it" } else { "names that begin with _tp_ are kept" };
        return Err(at(Error::invalid(format!("a column cannot be called '{name}': {what}")).with_sqlstate("42939")));
    }
    if def.column(name).is_some() {
        return Err(at(Error::invalid(format!("column '{name}' is there twice")).with_sqlstate(sqlstate::DUPLICATE_COLUMN)));
    }
    let id = def.next_column;
    def.next_column = id.next();
    def.columns.push(ColumnDef {
        id,
        name: name.to_owned(),
        ty: column.ty.clone(),
        nullable: column.nullable,
        default: column.default.as_ref().map(|d| ColumnDefault { kind: d.kind, expr: d.expr.text.clone() }),
        codec: column.codec,
        ttl: None,
        comment: column.comment.clone().unwrap_or_default(),
        since: SchemaVersion(1),
        fill: None,
    });
    Ok(())
}

/// Defaults are functions of the row; one that is computed may not lean on another that is.
pub fn check_defaults(def: &StreamDef, compiler: &Compiler) -> Result<()> {
    for column in &def.columns {
        let Some(default) = &column.default else { continue };
        let context = |e: Error| e.context(format_args!("column '{}'", column.name));
        let bound = compiler.bind(&default.expr, def).map_err(context)?;
        let refuse = |why: String| Err(Error::invalid(format!("column '{}': {} {why}", column.name, default.expr)).with_sqlstate("42P16"));
        if bound.has_aggregate || bound.has_window || bound.has_subquery {
            return refuse("must be a function of the row".to_owned());
        }
        if bound.columns.contains(&column.id) {
            return refuse("names the column itself".to_owned());
        }
        for other in def.columns.iter().filter(|c| bound.columns.contains(&c.id)) {
            let computed_later = match default.kind {
                DefaultKind::Alias => false,
                DefaultKind::Materialized => other.default.as_ref().is_some_and(|d| d.kind != DefaultKind::Default),
                DefaultKind::Default => other.default.is_some(),
            };
            if computed_later {
                return refuse(format!("names '{}', which is computed itself", other.name));
            }
        }
        if bound.columns.contains(&ColumnId::TP_TIME) && default.kind != DefaultKind::Alias {
            return refuse(format!("names {TP_TIME}, which is computed after it"));
        }
        let ty = column.ty.arrow();
        if bound.ty != ty && !datafusion::arrow::compute::can_cast_types(&bound.ty, &ty) {
            return refuse(format!("is of type {}, which does not become {}", crate::functions::type_name(&bound.ty), column.ty));
        }
        compiler.probe(&bound, def).map_err(context)?;
        // A constant is fitted now, so that no INSERT fails for it.
        if let Some(value) = compiler.constant(&bound).map_err(context)? {
            crate::types::coerce(&value, column).map_err(Error::from).map_err(|e| e.context("DEFAULT"))?;
        }
    }
    Ok(())
}

/// A key's canonical text.
fn key(e: &Expression, def: &StreamDef, compiler: &Compiler, clause: &str) -> Result<String> {
    let bound = compiler.bind_ast(e.ast.as_ref().clone(), def).map_err(|e| e.context(clause))?;
    compiler.probe(&bound, def).map_err(|e| e.context(clause))?;
    let refuse = |why: &str| Err(Error::invalid(format!("{clause}: '{}' {why}", e.text)).with_sqlstate("42P17"));
    if bound.volatility != Volatility::Immutable {
        return refuse("is not deterministic: its value must depend on the row alone");
    }
    if bound.has_aggregate || bound.has_window || bound.has_subquery {
        return refuse("must be a function of the row");
    }
    if bound.columns.is_empty() {
        return refuse("names no column: leave it out, or write tuple()");
    }
    if bound.ty.is_nested() {
        return refuse("is an array or map, which has no order");
    }
    Ok(e.text.clone())
}
