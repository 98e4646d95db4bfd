//! Table functions about the history of one stream, and what readers read.

use super::{
    About, Open, Relation, changes, rows,
    table::{Described, Fixed},
};
use crate::{
    Error, Result,
    bind::argument::{self, Place, arrange, optional, required},
    execute::append,
    nearest, sqlstate,
    statement::StreamName,
};
use arrow::datatypes::{DataType, Schema};
use datafusion::{
    catalog::TableProvider,
    common::{ScalarValue, TableReference},
    execution::SessionState,
    sql::sqlparser::ast::{Expr, FunctionArg, FunctionArgExpr},
};
use std::sync::Arc;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Function {
    Snapshots,
    Refs,
    History,
    Parts,
    Changes,
    Read,
}

const ALL: [Function; 6] = [Function::Snapshots, Function::Refs, Function::History, Function::Parts, Function::Changes, Function::Read];

pub(super) fn named(name: &StreamName) -> Option<Function> {
    let [name] = name.parts.as_slice() else { return None };
    ALL.into_iter().find(|f| f.name() == name.as_str())
}

/// # Errors
/// `42883` with the nearest name for one that nobody has.
pub(super) fn check_known(name: &StreamName, state: &SessionState) -> Result<()> {
    let known: Vec<&str> =
        state.table_functions().keys().map(String::as_str).chain(ALL.iter().map(|f| f.name())).chain(["unnest"]).collect();
    if known.contains(&name.last()) {
        return Ok(());
    }
    let near = nearest::did_you_mean(name.last(), known);
    Err(Error::invalid(format!("there is no table function '{name}'{near}")).with_sqlstate(sqlstate::UNDEFINED_FUNCTION))
}

impl Function {
    pub fn name(self) -> &'static str {
        match self {
            Self::Snapshots => "snapshots",
            Self::Refs => "refs",
            Self::History => "history",
            Self::Parts => "parts",
            Self::Changes => "changes",
            Self::Read => "read",
        }
    }

    fn places(self) -> &'static [Place] {
        const CHANGES: &[Place] = &[required("stream"), required("from"), required("to"), optional("deletes")];
        match self {
            Self::Changes => CHANGES,
            Self::Read => const { &[required("reader")] },
            _ => const { &[required("stream")] },
        }
    }

    pub fn relation(self, about: &About, args: &[FunctionArg], open: &mut Open) -> Result<Relation> {
        let given = args.iter().map(|a| argument_of(self.name(), a)).collect::<Result<Vec<_>>>()?;
        let mut values: Vec<Option<ScalarValue>> = Vec::new();
        let mut unknown = false;
        for (place, expr) in self.places().iter().zip(arrange(self.name(), self.places(), given)?) {
            let Some(expr) = expr else {
                values.push(None);
                continue;
            };
            let value = about.value(&format!("{} of {}", place.name, self.name()), expr)?;
            if value.is_none() {
                let ty = match place.name {
                    "from" | "to" => DataType::Int64,
                    "deletes" => DataType::Boolean,
                    _ => DataType::Utf8,
                };
                open.values.push((expr.clone(), argument::plain(ty)));
                unknown = true;
            }
            values.push(value);
        }
        let provider = match (self, unknown) {
            (Self::Changes | Self::Read, true) if values.first().is_none_or(Option::is_none) => {
                open.columns.get_or_insert(changes::columns_unknown(self.name(), self.places()[0].name));
                Arc::new(Described(Arc::new(Schema::empty())))
            }
            (Self::Changes, _) => changes::changes(about, &values, unknown)?,
            (Self::Read, _) => changes::read(about, &values)?,
            (_, true) => Arc::new(Described(self.schema())),
            (_, false) => self.listing(about, &values)?,
        };
        let hidden = if matches!(self, Self::Changes | Self::Read) { changes::HIDDEN } else { &[] };
        let told: Vec<String> =
            args.iter().map(ToString::to_string).zip(&values).map(|(text, v)| v.as_ref().map_or(text, |v| format!("{v:?}"))).collect();
        let scanned = format!("{}({})", self.name(), told.join(", "));
        Ok(Relation { reference: TableReference::bare(self.name()), scanned, provider, hidden })
    }

    fn schema(self) -> arrow::datatypes::SchemaRef {
        match self {
            Self::Snapshots => rows::snapshots_schema(),
            Self::Refs => rows::refs_schema(),
            Self::History => rows::history_schema(),
            _ => crate::system::parts_schema(),
        }
    }

    fn listing(self, about: &About, values: &[Option<ScalarValue>]) -> Result<Arc<dyn TableProvider>> {
        let name = argument::text("stream", values.first().and_then(Option::as_ref).unwrap_or(&ScalarValue::Null))?;
        let state = about.stream(&append::stream_name(&name)?)?;
        let (cut, shared) = (about.cut, &about.session.shared);
        let batch = match self {
            Self::Snapshots => rows::snapshots(cut, &state)?,
            Self::Refs => rows::refs(shared, cut, &state)?,
            Self::History => rows::history(cut, &state)?,
            _ => crate::system::parts_of(shared, cut, state.def.id)?,
        };
        Ok(Arc::new(Fixed(batch)))
    }
}

/// The name and the value of an argument.
fn argument_of<'a>(call: &str, arg: &'a FunctionArg) -> Result<(Option<String>, &'a Expr)> {
    let fold = |i: &datafusion::sql::sqlparser::ast::Ident| if i.quote_style.is_some() { i.value.clone() } else { i.value.to_lowercase() };
    let (name, arg) = match arg {
        FunctionArg::Unnamed(arg) => (None, arg),
        FunctionArg::Named { name, arg, .. } => (Some(fold(name)), arg),
        FunctionArg::ExprNamed { name: Expr::Identifier(name), arg, .. } => (Some(fold(name)), arg),
        FunctionArg::ExprNamed { name, .. } => return Err(Error::invalid(format!("{call}: {name} names no argument"))),
    };
    match arg {
        FunctionArgExpr::Expr(value) => Ok((name, value)),
        _ => Err(Error::invalid(format!("{call} takes values, not {arg}"))),
    }
}
