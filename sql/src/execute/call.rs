//! CALL: procedures on a stream's history.

use super::{append, rows};
use crate::{
    Error, Outcome, Result, RowTag, Session,
    bind::{
        argument::{self, Place, arrange, optional, required},
        expression, names,
    },
    statement::Call,
    system::sheet::{self, Column, Type::*},
};
use arrow::datatypes::{DataType, SchemaRef};
use datafusion::{common::ScalarValue, sql::sqlparser::ast};
use ebb_engine::history::{Overrides, RollbackTo};
use ebb_storage::ids::StreamId;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Procedure {
    RollbackToSnapshot,
    RollbackToTimestamp,
    FastForward,
    CherryPick,
    Expire,
    AdvanceReader,
}

const CHANGED: [Column; 3] = [("previous_sn", Int), ("target_sn", Int), ("current_sn", Int)];
const EXPIRED: [Column; 5] =
    [("snapshots_removed", Int), ("refs_removed", Int), ("rows_reclaimable", Int), ("parts_removed", Int), ("bytes_freed", Int)];
const ADVANCED: [Column; 2] = [("previous_sn", Int), ("current_sn", Int)];

impl Procedure {
    fn of(call: &Call) -> Result<Self> {
        Ok(match call.procedure.as_str() {
            "rollback_to_snapshot" => Self::RollbackToSnapshot,
            "rollback_to_timestamp" => Self::RollbackToTimestamp,
            "fast_forward" => Self::FastForward,
            "cherrypick_snapshot" => Self::CherryPick,
            "expire_snapshots" => Self::Expire,
            "advance_reader" => Self::AdvanceReader,
            other => return Err(Error::internal(format!("procedure {other} was parsed and is not known"))),
        })
    }

    fn places(self) -> &'static [Place] {
        match self {
            Self::RollbackToSnapshot | Self::CherryPick => const { &[required("stream"), required("sn")] },
            Self::RollbackToTimestamp => const { &[required("stream"), required("timestamp")] },
            Self::FastForward => const { &[required("stream"), required("branch"), required("to")] },
            Self::Expire => const { &[required("stream"), optional("older_than"), optional("retain_last"), optional("dry_run")] },
            Self::AdvanceReader => const { &[required("reader"), required("sn")] },
        }
    }

    fn schema(self) -> SchemaRef {
        match self {
            Self::Expire => sheet::schema(&EXPIRED),
            Self::AdvanceReader => sheet::schema(&ADVANCED),
            _ => sheet::schema(&CHANGED),
        }
    }
}

/// The type of the value in a place.
fn type_of(place: &str) -> DataType {
    match place {
        "sn" | "retain_last" => DataType::Int64,
        "timestamp" | "older_than" => argument::moment_type(),
        "dry_run" => DataType::Boolean,
        _ => DataType::Utf8,
    }
}

/// Arguments by place; `table` is another word for stream, as in every statement.
fn arranged(call: &Call, procedure: Procedure) -> Result<Vec<Option<&ast::Expr>>> {
    let given = call.args.iter().map(|a| {
        let name = a.name.as_ref().map(|n| match n.as_str() {
            "table" => "stream".to_owned(),
            other => other.to_owned(),
        });
        (name, a.value.ast.as_ref())
    });
    arrange(call.procedure.as_str(), procedure.places(), given).map_err(|e| e.at(call.procedure.position))
}

pub(super) fn schema(call: &Call) -> Result<SchemaRef> {
    Ok(Procedure::of(call)?.schema())
}

/// Arguments with parameters in them, and the types of their places.
pub(crate) fn open(call: &Call) -> Result<Vec<(ast::Expr, DataType)>> {
    let procedure = Procedure::of(call)?;
    let places = procedure.places().iter().zip(arranged(call, procedure)?);
    Ok(places.filter_map(|(place, e)| Some((e?.clone(), type_of(place.name)))).collect())
}

struct Args<'a> {
    procedure: &'a str,
    places: &'static [Place],
    values: Vec<Option<ScalarValue>>,
}

impl Args<'_> {
    fn get<T>(&self, place: &str, read: impl Fn(&str, &ScalarValue) -> Result<T>) -> Result<Option<T>> {
        let at = self.places.iter().position(|p| p.name == place);
        match at.and_then(|at| self.values.get(at)).and_then(Option::as_ref) {
            // As if it was not said.
            Some(value) if value.is_null() && at.is_some_and(|at| !self.places[at].required) => Ok(None),
            Some(value) => read(&format!("{place} of {}", self.procedure), value).map(Some),
            None => Ok(None),
        }
    }

    fn required<T>(&self, place: &str, read: impl Fn(&str, &ScalarValue) -> Result<T>) -> Result<T> {
        self.get(place, read)?.ok_or_else(|| Error::internal(format!("{} lost its argument {place}", self.procedure)))
    }

    fn stream(&self, session: &Session) -> Result<StreamId> {
        let name = append::stream_name(&self.required("stream", argument::text)?)?;
        Ok(names::find(&session.shared.engine.manifest(), &name, session.database())?.def.id)
    }
}

pub(super) async fn run(session: &mut Session, call: &Call, params: &[ScalarValue]) -> Result<Outcome> {
    let procedure = Procedure::of(call)?;
    let cut = session.cut_without_own();
    let state = session.context(&cut, false);
    let mut values = Vec::new();
    for expr in arranged(call, procedure)? {
        values.push(expr.map(|e| expression::constant(&state, e, params)).transpose()?);
    }
    let args = Args { procedure: call.procedure.as_str(), places: procedure.places(), values };
    let engine = session.shared.engine.clone();
    let batch = match procedure {
        Procedure::Expire => {
            let overrides = Overrides {
                older_than: args.get("older_than", argument::moment)?,
                retain_last: args.get("retain_last", argument::count)?,
                dry_run: args.get("dry_run", argument::flag)?.unwrap_or(false),
            };
            let done = engine.expire_snapshots(args.stream(session)?, overrides).await?;
            let row = [done.snapshots_removed, done.refs_removed, done.rows_reclaimable, done.parts_removed, done.bytes_freed];
            sheet::batch(&EXPIRED, &[row.map(sheet::Cell::from)])?
        }
        Procedure::AdvanceReader => {
            let (name, to) = (args.required("reader", argument::text)?, args.required("sn", argument::sn)?);
            let before = engine.manifest().readers.get(&name).map(|r| r.sn.0);
            engine.advance_reader(&name, to).await?;
            sheet::batch(&ADVANCED, &[[before.into(), to.0.into()]])?
        }
        _ => {
            let stream = args.stream(session)?;
            let done = match procedure {
                Procedure::RollbackToSnapshot => engine.rollback(stream, RollbackTo::Sn(args.required("sn", argument::sn)?)).await?,
                Procedure::RollbackToTimestamp => {
                    engine.rollback(stream, RollbackTo::Time(args.required("timestamp", argument::moment)?)).await?
                }
                Procedure::FastForward => {
                    let (branch, to) = (args.required("branch", argument::text)?, args.required("to", argument::text)?);
                    engine.fast_forward(stream, &branch, &to).await?
                }
                _ => engine.cherrypick(stream, args.required("sn", argument::sn)?).await?,
            };
            sheet::batch(&CHANGED, &[[done.previous_sn.0.into(), done.target_sn.0.into(), done.current_sn.0.into()]])?
        }
    };
    Ok(rows::of(batch, RowTag::Fixed("CALL")))
}
