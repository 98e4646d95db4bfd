//! Relations that DataFusion does not know: streams at a cut, branches, table functions about history.
//!
//! Before a query is planned [`Relations::resolve`] finds every such table reference in it, evaluates its values with the statement's
//! parameters and leaves a number in its place; the planner hook takes the table of that number. A reference that is not resolved is
//! refused by the hook: DataFusion drops table versions, and nothing here may be answered with current data because of that.

mod changes;
mod cut;
mod function;
mod hidden;
mod rows;
mod scope;
mod table;

use crate::{
    Error, Result, Session,
    bind::{expression, names},
    parse::position_of,
    provider::Cut,
    statement::{Query, StreamName},
};
use arrow::datatypes::FieldRef;
use datafusion::{
    catalog::{TableProvider, default_table_source::provider_as_source},
    common::{ScalarValue, TableReference},
    error::DataFusionError,
    execution::SessionState,
    logical_expr::{
        LogicalPlanBuilder,
        planner::{PlannedRelation, RelationPlanner, RelationPlannerContext, RelationPlanning},
    },
    sql::sqlparser::ast::{self, Expr, Ident, ObjectName, Spanned, TableFactor, TableVersion, Value, VisitMut, VisitorMut},
};
use ebb_storage::stream_def::{TP_SN, TP_TIME};
pub(crate) use hidden::hide;
pub(crate) use rows::branch_name;
use scope::Scope;
use std::{ops::ControlFlow, sync::Arc};

/// The statement's values; `None` while it is only prepared.
pub(crate) type Params<'a> = Option<&'a [ScalarValue]>;

/// What a query's special table references mean.
#[derive(Debug, Default)]
pub(crate) struct Relations {
    found: Vec<Relation>,
    pub open: Open,
}

/// What is not known as long as a statement is only prepared.
#[derive(Debug, Default)]
pub(crate) struct Open {
    /// Expressions with parameters, and what their place takes.
    pub values: Vec<(Expr, FieldRef)>,
    /// Why the columns of a relation are not known.
    pub columns: Option<Error>,
}

#[derive(Debug)]
struct Relation {
    /// What columns are qualified with.
    reference: TableReference,
    /// What is read, in words. The optimizer takes two scans of one name for the same: no two cuts may share one.
    scanned: String,
    provider: Arc<dyn TableProvider>,
    /// Columns that `*` does not show.
    hidden: &'static [&'static str],
}

impl Relation {
    /// What its columns are qualified with, in a query.
    fn name(&self) -> ObjectName {
        ObjectName::from(self.reference.to_vec().into_iter().map(|part| Ident::with_quote('"', part)).collect::<Vec<_>>())
    }

    /// The columns that `*` shows.
    fn visible(&self) -> Vec<String> {
        let schema = self.provider.schema();
        schema.fields().iter().map(|f| f.name().clone()).filter(|n| !self.hidden.contains(&n.as_str())).collect()
    }
}

/// Begins the number of a resolved reference; nobody writes it.
const MARK: char = '\u{2060}';

/// Of streams, where they can be named.
const HIDDEN: &[&str] = &[TP_TIME, TP_SN];

impl Relations {
    /// Finds them all in `query` and puts numbers in their places.
    ///
    /// # Errors
    /// Unknown streams, refs and functions with the nearest name; cuts outside of the history; arguments of the wrong type.
    pub fn resolve(
        session: &Session,
        state: &SessionState,
        cut: &Cut,
        hidden_columns: bool,
        query: &mut Query,
        params: Params,
    ) -> Result<Self> {
        let whole = query.source.whole().to_owned();
        let mut finder = Finder {
            about: About { session, state, cut, hidden_columns, params },
            text: &whole,
            scope: Scope::default(),
            relations: Self::default(),
        };
        match VisitMut::visit(query.ast.as_mut(), &mut finder) {
            ControlFlow::Break(e) => Err(*e),
            ControlFlow::Continue(()) => Ok(finder.relations),
        }
    }

    fn of(&self, version: &TableVersion) -> Option<&Relation> {
        self.found.get(number(version)?)
    }

    /// What makes DataFusion take them.
    pub fn planner(self) -> Arc<dyn RelationPlanner> {
        Arc::new(Planner(self.found))
    }
}

/// What values and names are looked up in.
#[derive(Clone, Copy)]
struct About<'a> {
    session: &'a Session,
    state: &'a SessionState,
    cut: &'a Cut,
    hidden_columns: bool,
    params: Params<'a>,
}

impl About<'_> {
    /// The value of an argument; `None` where it needs a parameter that is not known yet.
    fn value(&self, what: &str, expr: &Expr) -> Result<Option<ScalarValue>> {
        let (mut subquery, mut parameter, mut column) = (false, false, None);
        let _ = ast::visit_expressions(expr, |e| {
            match e {
                Expr::Subquery(_) | Expr::Exists { .. } | Expr::InSubquery { .. } => subquery = true,
                Expr::Value(v) => parameter |= matches!(v.value, Value::Placeholder(_)),
                Expr::Identifier(i) => column = Some(i.to_string()),
                Expr::CompoundIdentifier(_) => column = Some(e.to_string()),
                _ => {}
            }
            ControlFlow::<()>::Continue(())
        });
        if subquery {
            return Err(Error::unsupported(format!("{what} takes a constant or a parameter: run the subquery before and give its value")));
        }
        if let Some(column) = column {
            let message = format!("{what} takes a constant or a parameter, and {column} is neither: write a text in single quotes");
            return Err(Error::invalid(message).with_sqlstate(crate::sqlstate::UNDEFINED_COLUMN));
        }
        match self.params {
            None if parameter => Ok(None),
            params => expression::constant(self.state, expr, params.unwrap_or_default()).map(Some).map_err(|e| e.context(what)),
        }
    }

    fn stream(&self, name: &StreamName) -> Result<Arc<ebb_storage::manifest::StreamState>> {
        Ok(names::find(self.cut.view.manifest(), name, self.session.database())?.clone())
    }
}

struct Finder<'a> {
    about: About<'a>,
    text: &'a str,
    scope: Scope,
    relations: Relations,
}

impl Finder<'_> {
    fn take(&mut self, factor: &mut TableFactor) -> Result<()> {
        let TableFactor::Table { name, args, version, with_ordinality, .. } = factor else { return Ok(()) };
        let Some(parts) = stream_name(name) else { return Ok(()) };
        let found = match (args.as_ref(), version.as_ref()) {
            (Some(args), None) => match function::named(&parts) {
                Some(function) if *with_ordinality => {
                    return Err(Error::unsupported(format!("WITH ORDINALITY behind {}", function.name())));
                }
                Some(function) => function.relation(&self.about, &args.args, &mut self.relations.open)?,
                None => return function::check_known(&parts, self.about.state),
            },
            (Some(_), Some(_)) => return Err(Error::unsupported(format!("a version behind {name}(...): it stands behind a stream only"))),
            (None, None) => match names::branch_of(&parts) {
                Some((stream, branch)) => cut::branch(&self.about, &parts, &stream, branch)?,
                None => return Ok(()),
            },
            (None, Some(version)) => {
                if let Some(cte) = self.scope.cte(&parts) {
                    let message = format!("'{cte}' is a WITH query here, which has no versions: name the version inside of it");
                    return Err(Error::invalid(message).with_sqlstate(crate::sqlstate::WRONG_OBJECT_TYPE));
                }
                cut::versioned(&self.about, &parts, version, &mut self.relations.open.values)?
            }
        };
        *args = None;
        let place = Value::Placeholder(format!("{MARK}{}", self.relations.found.len()));
        *version = Some(TableVersion::VersionAsOf(Expr::Value(place.into())));
        name.0.drain(..name.0.len().saturating_sub(1));
        self.relations.found.push(found);
        Ok(())
    }
}

impl VisitorMut for Finder<'_> {
    type Break = Box<Error>;

    fn pre_visit_query(&mut self, query: &mut ast::Query) -> ControlFlow<Box<Error>> {
        self.scope.enter(query);
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, query: &mut ast::Query) -> ControlFlow<Box<Error>> {
        self.scope.leave(query);
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Box<Error>> {
        let start = match factor {
            TableFactor::Table { name, .. } => name.span().start,
            _ => return ControlFlow::Continue(()),
        };
        match self.take(factor) {
            Ok(()) => ControlFlow::Continue(()),
            Err(e) => ControlFlow::Break(Box::new(match position_of(self.text, start) {
                Some(position) => e.at(position),
                None => e,
            })),
        }
    }
}

/// Of a resolved reference.
fn number(version: &TableVersion) -> Option<usize> {
    match version {
        TableVersion::VersionAsOf(Expr::Value(v)) => match &v.value {
            Value::Placeholder(n) => n.strip_prefix(MARK)?.parse().ok(),
            _ => None,
        },
        _ => None,
    }
}

fn stream_name(name: &ObjectName) -> Option<StreamName> {
    let fold = |i: &Ident| if i.quote_style.is_some() { i.value.clone() } else { i.value.to_lowercase() };
    let parts = name.0.iter().map(|p| Some(fold(p.as_ident()?).as_str().into()));
    Some(StreamName { parts: parts.collect::<Option<Vec<_>>>()? })
}

/// As the reference is written, so that columns are found by as much of the name as one likes.
fn reference(name: &StreamName) -> TableReference {
    let parts: Vec<&str> = name.parts.iter().map(|p| p.as_str()).collect();
    match parts.as_slice() {
        [.., catalog, schema, table] => TableReference::full(*catalog, *schema, *table),
        [schema, table] => TableReference::partial(*schema, *table),
        _ => TableReference::bare(name.last()),
    }
}

#[derive(Debug)]
struct Planner(Vec<Relation>);

impl RelationPlanner for Planner {
    fn plan_relation(&self, relation: TableFactor, _: &mut dyn RelationPlannerContext) -> datafusion::error::Result<RelationPlanning> {
        let TableFactor::Table { version: Some(version), alias, name, .. } = relation else {
            return Ok(RelationPlanning::Original(Box::new(relation)));
        };
        let Some(found) = number(&version).and_then(|n| self.0.get(n)) else {
            let e = Error::internal(format!("'{name}' was not resolved at its version"));
            return Err(DataFusionError::External(Box::new(e)));
        };
        let scan =
            LogicalPlanBuilder::scan(TableReference::bare(found.scanned.as_str()), provider_as_source(found.provider.clone()), None)?;
        let plan = scan.alias(found.reference.clone())?.build()?;
        Ok(RelationPlanning::Planned(Box::new(PlannedRelation::new(plan, alias))))
    }
}
