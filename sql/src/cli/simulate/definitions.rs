//! The file of a simulation: its statements, carried out where they leave nothing.
//!
//! Guards: only definitions are run; every error names file, line and statement.

use crate::{
    Config, Database, Error, Result,
    cli::{complain, script::place},
    statement::{AlterAction, Source, Statement, Verb},
};
use ebb_engine::{Clock, Places, Timestamp, simulate::World};
use std::path::Path;
use tokio_util::sync::CancellationToken;

const ALLOWED: &str = "CREATE DISK, CREATE STORAGE POLICY, CREATE STREAM, ALTER STREAM ... TTL and SETTING";
/// Characters of a statement in a message.
const SHOWN: usize = 60;

/// The streams of a file, in the order of their names, as they are defined at its end.
///
/// # Errors
/// What is wrong with the file, a statement of it that is none of the allowed ones, or what it says itself.
pub async fn worlds(file: &Path, now: Timestamp) -> Result<Vec<World>> {
    let name = file.display().to_string();
    let sql = std::fs::read_to_string(file).map_err(|e| Error::invalid(format!("{name}: {e}")))?;
    let database = Database::open_at(Config::new("").with_clock(Clock::simulated(now)).with_background(false), Places::nowhere()).await?;
    let mut session = database.session();
    let statements = session.parse(&sql).map_err(|e| {
        let start = e.position().map_or(1, |p| begin_of(&sql, p));
        named(&name, &sql, start, e)
    })?;
    for statement in statements {
        let position = statement.source.position();
        let done = async {
            allowed(&statement)?;
            let prepared = session.prepare(statement, &[]).await?;
            session.execute(&prepared, Vec::new(), CancellationToken::new()).await
        };
        done.await.map_err(|e| named(&name, &sql, position, e))?;
        for notice in session.take_notices() {
            complain(&format!("{}: {}", notice.severity, notice.message));
        }
    }
    let engine = database.engine();
    let manifest = engine.manifest();
    let mut streams: Vec<_> = manifest.user_streams().map(|s| (s.def.full_name(), s.def.id)).collect();
    streams.sort();
    if streams.is_empty() {
        return Err(Error::invalid(format!("{name}: there is no CREATE STREAM in it, and nothing to simulate")));
    }
    let worlds = streams.iter().map(|(_, id)| Ok(engine.world(*id)?)).collect::<Result<Vec<_>>>()?;
    database.close().await?;
    Ok(worlds)
}

fn allowed(statement: &Statement) -> Result<()> {
    let fits = |a: &AlterAction| {
        matches!(a, AlterAction::ModifyTtl(_) | AlterAction::RemoveTtl | AlterAction::ModifySetting(_) | AlterAction::ResetSetting(_))
    };
    let is_definition = match &statement.verb {
        Verb::CreateDisk(_) | Verb::CreateStoragePolicy(_) => true,
        Verb::CreateStream(create) => create.query.is_none(),
        Verb::AlterStream(alter) => alter.actions.iter().all(fits),
        _ => false,
    };
    match is_definition {
        true => Ok(()),
        false => Err(Error::unsupported(format!("a file to simulate holds definitions only: {ALLOWED}"))),
    }
}

/// The error with file, line and the statement's beginning before it; shows where in the line it is.
fn named(file: &str, sql: &str, position: usize, e: Error) -> Error {
    if let Some(place) = place(sql, 1, &e, None) {
        complain(&place);
    }
    let at = e.position().unwrap_or(position);
    let line = sql.chars().take(at.saturating_sub(1)).filter(|c| *c == '\n').count() + 1;
    let rest: String = sql.chars().skip(position.saturating_sub(1)).collect();
    let source = Source::from(rest.as_str());
    // What stands in parentheses may be secret.
    let head: String = source.text().split(['(', ';', '$']).next().unwrap_or("").split_whitespace().collect::<Vec<_>>().join(" ");
    let head: String = head.chars().take(SHOWN).collect();
    e.context(format_args!("{file}:{line}: {head}"))
}

/// Where the statement begins that holds a position, about: behind the last semicolon, blanks and comments.
fn begin_of(sql: &str, position: usize) -> usize {
    let before: String = sql.chars().take(position.saturating_sub(1)).collect();
    let mut begin = before.rfind(';').map_or(0, |i| i + 1);
    loop {
        let rest = &before[begin..];
        begin += rest.len() - rest.trim_start().len();
        match before[begin..].starts_with("--").then(|| before[begin..].find('\n')) {
            Some(Some(end)) => begin += end + 1,
            _ => break,
        }
    }
    before[..begin].chars().count() + 1
}
