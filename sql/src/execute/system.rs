//! SYSTEM: work on request.

use super::{command, rows};
use crate::{
    Error, Outcome, Result, RowTag, Session,
    bind::names,
    statement::{Stoppable, StreamName, System},
};
use arrow::datatypes::SchemaRef;
use ebb_engine::Stop;
use ebb_storage::ids::StreamId;

const STATUS: [&str; 2] = ["name", "value"];

pub(super) fn schema(system: &System) -> Option<SchemaRef> {
    matches!(system, System::Status).then(|| rows::texts_schema(&STATUS))
}

pub(super) async fn run(session: &mut Session, system: &System) -> Result<Outcome> {
    let engine = session.shared.engine.clone();
    match system {
        System::Stop { what: Stoppable::Merges { volume: Some(v) }, .. } => {
            engine.stop_volume(v.policy.as_str(), v.volume.as_str()).map_err(|e| Error::from(e).at(v.policy.position))?;
            Ok(command("SYSTEM STOP"))
        }
        System::Start { what: Stoppable::Merges { volume: Some(v) }, .. } => {
            engine.start_volume(v.policy.as_str(), v.volume.as_str()).map_err(|e| Error::from(e).at(v.policy.position))?;
            Ok(command("SYSTEM START"))
        }
        System::Stop { what, stream } => {
            engine.stop(stop(what), find(session, stream.as_ref())?);
            Ok(command("SYSTEM STOP"))
        }
        System::Start { what, stream } => {
            engine.start(stop(what), find(session, stream.as_ref())?);
            Ok(command("SYSTEM START"))
        }
        System::Flush(stream) => {
            engine.flush(find(session, stream.as_ref())?).await?;
            Ok(command("SYSTEM FLUSH"))
        }
        System::Settle(stream) => {
            engine.settle(find(session, stream.as_ref())?).await?;
            Ok(command("SYSTEM SETTLE"))
        }
        System::AdvanceClock(by) => {
            engine.advance_clock(*by)?;
            Ok(command("SYSTEM ADVANCE CLOCK"))
        }
        System::Status => status(&engine),
    }
}

fn status(engine: &ebb_engine::Engine) -> Result<Outcome> {
    let s = engine.status();
    let line = |name: &str, value: String| vec![Some(name.to_owned()), Some(value)];
    let lines = vec![
        line("directory", s.directory),
        line("now", s.now.to_string()),
        line("simulated_clock", s.simulated_clock.to_string()),
        line("epoch", s.epoch.to_string()),
        line("commit", s.commit.to_string()),
        line("lsn", s.lsn.to_string()),
        line("streams", s.streams.to_string()),
        line("parts", s.parts.to_string()),
        line("tail_rows", s.tail_rows.to_string()),
        line("tail_bytes", s.tail_bytes.to_string()),
        line("running_jobs", s.running_jobs.to_string()),
        line("stopped", s.stopped.join(", ")),
        line("log_error", s.log_error.unwrap_or_default()),
        line("last_error", s.last_error.unwrap_or_default()),
    ];
    rows::texts(&STATUS, &lines, RowTag::Fixed("SYSTEM STATUS"))
}

fn stop(what: &Stoppable) -> Stop {
    match what {
        Stoppable::Merges { .. } => Stop::Merges,
        Stoppable::TtlMerges => Stop::TtlMerges,
        Stoppable::Moves => Stop::Moves,
    }
}

fn find(session: &Session, name: Option<&StreamName>) -> Result<Option<StreamId>> {
    let Some(name) = name else { return Ok(None) };
    Ok(Some(names::find(&session.shared.engine.manifest(), name, session.database())?.def.id))
}
