//! SELECT: planned by DataFusion over the statement's cut. What DataFusion would ignore is refused before.

use crate::{
    Error, Outcome, Result, RowTag, Session,
    analyze::names as labels,
    bind::names,
    functions, pg_catalog,
    provider::naming_damage,
    relation::{self, Open, Params, Relations},
    sqlstate,
    statement::{Query, StreamName},
};
use arrow::{
    datatypes::{FieldRef, Schema, SchemaRef},
    record_batch::{RecordBatch, RecordBatchOptions},
};
use datafusion::{
    common::{ParamValues, ScalarValue},
    error::DataFusionError,
    execution::{SendableRecordBatchStream, SessionState},
    logical_expr::LogicalPlan,
    physical_plan::stream::RecordBatchStreamAdapter,
    sql::sqlparser::ast::{
        self, ExcludeSelectItem, Ident, ObjectName, SelectItem, SelectItemQualifiedWildcardKind, TableFactor, VisitMut, VisitorMut,
        WildcardAdditionalOptions,
    },
};
use ebb_storage::stream_def::{TP_SN, TP_TIME};
use futures::StreamExt;
use std::{ops::ControlFlow, sync::Arc};

pub(super) async fn run(session: &mut Session, query: &Query, params: &[ScalarValue]) -> Result<Outcome> {
    let (schema, stream) = stream(session, query, params).await?;
    Ok(Outcome::Rows { schema, stream, tag: RowTag::Select })
}

pub(crate) async fn stream(session: &mut Session, query: &Query, params: &[ScalarValue]) -> Result<(SchemaRef, SendableRecordBatchStream)> {
    let Planned { plan, mut state, .. } = plan(session, query, Some(params)).await?;
    let plan = state.optimize(&with_params(plan, params)?)?;
    crate::memory::small_batches(state.config_mut().options_mut(), &plan)?;
    let context = state.task_ctx();
    let told = plan.schema().inner().clone();
    let plan = state.query_planner().create_physical_plan(&plan, &state).await?;
    let stream = naming_damage(&plan, session.shared.workers.run(plan.clone(), context)?);
    let schema = labels::shown_schema(&declared(&stream.schema(), &told));
    if Arc::ptr_eq(&schema, &stream.schema()) {
        return Ok((schema, stream));
    }
    let of = schema.clone();
    let named = stream.map(move |batch| {
        let batch = batch?;
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        Ok(RecordBatch::try_new_with_options(of.clone(), batch.columns().to_vec(), &options)?)
    });
    Ok((schema.clone(), Box::pin(RecordBatchStreamAdapter::new(schema, named))))
}

/// `schema`, which plans make of their parts, with what the columns were declared as, which some parts do not know.
fn declared(schema: &SchemaRef, told: &SchemaRef) -> SchemaRef {
    let pairs = || schema.fields().iter().zip(told.fields());
    if schema.fields().len() != told.fields().len() || pairs().all(|(f, t)| f.metadata() == t.metadata()) {
        return schema.clone();
    }
    let field = |(f, t): (&FieldRef, &FieldRef)| match f.metadata() == t.metadata() {
        true => f.clone(),
        false => Arc::new(f.as_ref().clone().with_metadata(t.metadata().clone())),
    };
    Arc::new(Schema::new_with_metadata(pairs().map(field).collect::<Vec<_>>(), schema.metadata().clone()))
}

pub(crate) fn with_params(plan: LogicalPlan, params: &[ScalarValue]) -> Result<LogicalPlan> {
    match params {
        [] => Ok(plan),
        _ => Ok(plan.with_param_values(ParamValues::from(params.to_vec()))?),
    }
}

/// A query that DataFusion has planned.
pub(crate) struct Planned {
    pub plan: LogicalPlan,
    pub state: SessionState,
    /// Expressions outside of the plan that name parameters, and what their places take.
    pub open: Vec<(ast::Expr, FieldRef)>,
}

/// Of a query whose columns its parameters decide: what is known of these, and why the columns are not. `None` for any other.
pub(crate) async fn undecided(session: &mut Session, query: &Query) -> Result<Option<(SessionState, Open)>> {
    let cut = session.cut().await;
    let state = session.context(&cut, false);
    let open = Relations::resolve(session, &state, &cut, false, &mut query.clone(), None)?.open;
    Ok(open.columns.is_some().then_some((state, open)))
}

/// `params`: the statement's, which the cuts that it names are resolved with.
pub(crate) async fn plan(session: &mut Session, query: &Query, params: Params<'_>) -> Result<Planned> {
    let cut = session.cut().await;
    let text = query.source.text().to_ascii_lowercase();
    let hidden_columns = text.contains(TP_TIME) || text.contains(TP_SN);
    let mut query = query.clone();
    let ask = pg_catalog::rewrite(&mut query.ast, &session.database);
    for (name, value) in &ask.set {
        // Drivers set what only PostgreSQL has; the answer repeats the value either way.
        let _ = session.set_variable(name, value);
    }
    let state = session.context(&cut, hidden_columns);
    let mut state = if ask.catalogue { session.with_catalogue(state, &cut)? } else { state };
    let mut relations = Relations::resolve(session, &state, &cut, hidden_columns, &mut query, params)?;
    if hidden_columns {
        let known = |name: &ObjectName| stream_name(name).is_some_and(|n| names::find(cut.view.manifest(), &n, &session.database).is_ok());
        let _ = query.ast.visit(&mut Wildcards { is_stream: known, relations: &relations });
    }
    let open = std::mem::take(&mut relations.open);
    if let Some(why) = open.columns {
        return Err(why);
    }
    let open = open.values;
    state.register_relation_planner(relations.planner())?;
    // A second time with more care where a column may be one of a `*` too.
    let mut care = labels::Care::Text;
    loop {
        let mut named = query.clone();
        labels::label(&mut named.ast, care)?;
        functions::rewrite_query(&mut named.ast);
        match state.statement_to_plan(named.to_datafusion()).await {
            Ok(plan) => return Ok(Planned { plan, state, open }),
            Err(e) => {
                let error = explain(session, &cut, &query, e);
                if care == labels::Care::Text && labels::is_clash(&error) {
                    care = labels::Care::Wildcards;
                    continue;
                }
                return Err(labels::explain(error));
            }
        }
    }
}

/// The error with the nearest name where a stream or function was not found.
fn explain(session: &Session, cut: &crate::provider::Cut, query: &Query, e: DataFusionError) -> Error {
    let error = Error::from_datafusion(&e, query.source.whole());
    if error.sqlstate() == sqlstate::UNDEFINED_FUNCTION {
        return session.shared.compiler.explain_function(error);
    }
    if error.sqlstate() != sqlstate::UNDEFINED_TABLE {
        return error;
    }
    let mut missing = None;
    let _ = ast::visit_relations(query.ast.as_ref(), |name| {
        let Some(name) = stream_name(name) else { return ControlFlow::Continue(()) };
        match names::split(&name, &session.database) {
            Ok((database, stream))
                if error.message().contains(&stream) && cut.view.manifest().stream_named(&database, &stream).is_none() =>
            {
                missing = Some(names::unknown(cut.view.manifest(), &database, &stream, 0));
                ControlFlow::Break(())
            }
            _ => ControlFlow::Continue(()),
        }
    });
    missing.map_or(error, |m| m)
}

fn stream_name(name: &ObjectName) -> Option<StreamName> {
    let parts = name.0.iter().map(|p| {
        let ident = p.as_ident()?;
        let text = if ident.quote_style.is_some() { ident.value.clone() } else { ident.value.to_lowercase() };
        Some(text.as_str().into())
    });
    Some(StreamName { parts: parts.collect::<Option<Vec<_>>>()? })
}

/// Keeps hidden columns out of `*` where they can be named.
struct Wildcards<'a, F> {
    is_stream: F,
    relations: &'a Relations,
}

impl<F: Fn(&ObjectName) -> bool> VisitorMut for Wildcards<'_, F> {
    type Break = ();

    fn pre_visit_select(&mut self, select: &mut ast::Select) -> ControlFlow<()> {
        let mut relations: Vec<(ObjectName, Hidden)> = Vec::new();
        for table in &select.from {
            for factor in std::iter::once(&table.relation).chain(table.joins.iter().map(|j| &j.relation)) {
                let Some(relation) = self.relation(factor) else { return ControlFlow::Continue(()) };
                relations.push(relation);
            }
        }
        if relations.iter().all(|(_, hidden)| hidden.is_empty()) {
            return ControlFlow::Continue(());
        }
        let items = std::mem::take(&mut select.projection);
        for item in items {
            match item {
                SelectItem::Wildcard(options) if relations.len() == 1 => {
                    select.projection.push(SelectItem::Wildcard(without(options, relations[0].1)))
                }
                SelectItem::Wildcard(options) => {
                    for (name, hidden) in &relations {
                        let options = without(options.clone(), hidden);
                        let kind = SelectItemQualifiedWildcardKind::ObjectName(name.clone());
                        select.projection.push(SelectItem::QualifiedWildcard(kind, options));
                    }
                }
                SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), options) => {
                    let meant = relations.iter().find(|(n, _)| n.to_string().eq_ignore_ascii_case(&name.to_string()));
                    let options = without(options, meant.map_or(&[], |(_, hidden)| hidden));
                    select.projection.push(SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), options));
                }
                other => select.projection.push(other),
            }
        }
        ControlFlow::Continue(())
    }
}

/// Columns that `*` leaves out.
type Hidden = &'static [&'static str];

impl<F: Fn(&ObjectName) -> bool> Wildcards<'_, F> {
    /// How a relation is called, and what `*` leaves out of it.
    fn relation(&self, factor: &TableFactor) -> Option<(ObjectName, Hidden)> {
        let called = |alias: &Option<ast::TableAlias>| alias.as_ref().map(|a| ObjectName::from(vec![a.name.clone()]));
        match factor {
            TableFactor::Table { name, alias, version, .. } => {
                let last = name.0.last().and_then(|p| p.as_ident()).map(|i| ObjectName::from(vec![i.clone()]))?;
                let hidden = match version {
                    Some(version) => self.relations.hidden(version).unwrap_or_default(),
                    None if (self.is_stream)(name) => relation::HIDDEN,
                    None => &[],
                };
                Some((called(alias).unwrap_or(last), hidden))
            }
            TableFactor::Derived { alias, .. } => called(alias).map(|n| (n, &[][..])),
            TableFactor::NestedJoin { .. } => None,
            TableFactor::Function { alias, .. } | TableFactor::TableFunction { alias, .. } | TableFactor::UNNEST { alias, .. } => {
                called(alias).map(|n| (n, &[][..]))
            }
            _ => None,
        }
    }
}

fn without(mut options: WildcardAdditionalOptions, hidden: Hidden) -> WildcardAdditionalOptions {
    if hidden.is_empty() {
        return options;
    }
    let mut names = match options.opt_exclude.take() {
        Some(ExcludeSelectItem::Single(name)) => vec![name],
        Some(ExcludeSelectItem::Multiple(names)) => names,
        None => Vec::new(),
    };
    for hidden in hidden {
        if !names.iter().any(|n| n.to_string() == *hidden) {
            names.push(ObjectName::from(vec![Ident::new(*hidden)]));
        }
    }
    options.opt_exclude = Some(ExcludeSelectItem::Multiple(names));
    options
}
