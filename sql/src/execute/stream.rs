//! CREATE, ALTER, DROP, TRUNCATE, RENAME of streams.

use super::{
    added, command,
    ingest::{Ingest, Target, fit},
    optimize::partition_text,
    query, refs,
};
use crate::{
    Error, Notice, Outcome, Result, Session,
    analyze::names::NAMELESS,
    bind::{alter, create_stream, expression, names},
    error::ErrorKind,
    sqlstate,
    statement::{AlterAction, AlterStream, Column, CreateStream, DropStream, Movable, RenameStream, TruncateStream},
    types::{self, of_field},
};
use arrow::datatypes::{DataType, SchemaRef};
use datafusion::common::ScalarValue;
use ebb_engine::{Created, Engine, Which};
use ebb_storage::{
    decision,
    ids::{Sn, StreamId},
    manifest::Manifest,
    stream_def::{ColumnDef, StreamDef, TP_SN, TP_TIME},
};
use futures::StreamExt;
use std::sync::Arc;

fn taken(e: ebb_storage::Error) -> Error {
    match e.kind() {
        ErrorKind::Conflict => Error::from(e).with_sqlstate(sqlstate::DUPLICATE_TABLE),
        _ => e.into(),
    }
}

pub(super) async fn create(session: &mut Session, create: &CreateStream) -> Result<Outcome> {
    let engine = session.shared.engine.clone();
    let (database, name) = names::split(&create.name, session.database())?;
    session.shared.check_database(&database)?;
    let is_there = format!("stream '{database}.{name}' exists already");
    let is_there = Notice { sqlstate: sqlstate::DUPLICATE_TABLE, ..Notice::notice(is_there) };
    if create.if_not_exists && engine.manifest().stream_named(&database, &name).is_some() {
        session.notice(is_there);
        return Ok(command("CREATE STREAM"));
    }
    let rows = match &create.query {
        Some(q) => Some(query::stream(session, q, &[]).await?),
        None => None,
    };
    let columns = match &rows {
        Some((schema, _)) if create.columns.is_empty() => columns_of(schema)?,
        _ => create.columns.clone(),
    };
    let def = create_stream::bind(create, &columns, session.database(), &session.shared.compiler, &engine.manifest())?;
    if ["min_rows_for_wide_part", "min_bytes_for_wide_part"].iter().any(|s| def.settings.contains_key(*s)) {
        session.notice(Notice::notice("Ebb has one part format: min_rows_for_wide_part and min_bytes_for_wide_part change nothing"));
    }
    let made = engine.create_stream_unless_there(def);
    // Whoever gives up while it is filled leaves nothing behind.
    let made = if rows.is_some() { decision::reopening(made).await? } else { made.await? };
    let id = match made {
        Created::New(id) => id,
        // Another came first while the query was planned.
        Created::There(_) if create.if_not_exists => {
            session.notice(is_there);
            return Ok(command("CREATE STREAM"));
        }
        Created::There(_) => return Err(Error::conflict(is_there.message).with_sqlstate(sqlstate::DUPLICATE_TABLE)),
    };
    let Some((schema, mut stream)) = rows else { return Ok(command("CREATE STREAM")) };
    let mut unfilled = Unfilled { engine: Some(engine.clone()), id };
    let filled: Result<u64> = async {
        let manifest = engine.manifest();
        let def = manifest.stream(id).ok_or_else(|| Error::conflict("the stream was dropped meanwhile"))?.def.clone();
        let target = Target::of(def, Some(schema.fields().iter().map(|f| (f.name().clone(), 0)).collect()))?;
        let cut = session.cut().await;
        let state = session.context(&cut, false);
        let mut ingest = Ingest::new(session, &state, target, cut.now)?;
        while let Some(batch) = stream.next().await {
            let batch = batch?;
            ingest.push(batch.columns(), batch.num_rows()).await?;
        }
        ingest.finish().await
    }
    .await;
    unfilled.engine = None;
    match filled {
        Ok(_) => Ok(command("CREATE STREAM")),
        Err(e) => {
            undo(&engine, id).await?;
            Err(e)
        }
    }
}

/// Drops the new stream, but where others have written to it already: their rows are theirs.
async fn undo(engine: &Engine, id: StreamId) -> Result<()> {
    match engine.read().stream(id).is_some_and(|s| s.head_sn > Sn(0)) {
        true => Ok(()),
        false => Ok(engine.drop_stream(id).await?),
    }
}

/// A new stream that goes again where its statement is given up.
struct Unfilled {
    engine: Option<Arc<Engine>>,
    id: StreamId,
}

impl Drop for Unfilled {
    fn drop(&mut self) {
        if let (Some(engine), Ok(runtime)) = (self.engine.take(), tokio::runtime::Handle::try_current()) {
            let id = self.id;
            runtime.spawn(async move { undo(&engine, id).await });
        }
    }
}

/// The columns that a query's result has, without hidden ones.
fn columns_of(schema: &SchemaRef) -> Result<Vec<Column>> {
    let visible = schema.fields().iter().filter(|f| ![TP_TIME, TP_SN].contains(&f.name().as_str()));
    let column = |(n, f): (usize, &arrow::datatypes::FieldRef)| {
        if f.name() == NAMELESS {
            let message = format!("column {} of the query has no name: give it one with AS", n + 1);
            return Err(Error::invalid(message).with_sqlstate("42611"));
        }
        Ok(Column {
            name: f.name().as_str().into(),
            ty: of_field(f).ok_or_else(|| Error::unsupported(format!("column '{}': no stream type is a {}", f.name(), f.data_type())))?,
            nullable: f.is_nullable(),
            default: None,
            comment: None,
            codec: None,
            ttl: None,
        })
    };
    visible.enumerate().map(column).collect()
}

pub(super) async fn alter(session: &mut Session, alter: &AlterStream, params: &[ScalarValue]) -> Result<Outcome> {
    let engine = session.shared.engine.clone();
    let Some(def) = found(session, &engine.manifest(), &alter.name, alter.if_exists)? else { return Ok(command("ALTER STREAM")) };
    if let Some(action) = alter.actions.iter().find(|a| is_work(a)) {
        if alter.actions.len() > 1 {
            let message = "MATERIALIZE TTL, DROP PARTITION, MOVE and those of tags and branches: each stands alone in its ALTER STREAM";
            return Err(Error::invalid(message).with_sqlstate("0A000"));
        }
        match action {
            AlterAction::CreateRef(create) => refs::create(session, &def, create, params).await?,
            AlterAction::DropRef(drop) => refs::drop(session, &def, drop).await?,
            work => self::work(session, &def, work).await?,
        }
        return Ok(command("ALTER STREAM"));
    }
    let cut = session.cut().await;
    let state = session.context(&cut, false);
    let constant = |tree: &datafusion::sql::sqlparser::ast::Expr, column: &ColumnDef| -> Result<Option<String>> {
        let value = expression::constant(&state, tree, &[])?;
        let array = types::coerce(&value.to_array()?, column)?;
        // These have no text that is read back by a cast: the expression is computed at each reading.
        if array.data_type().is_nested() || array.data_type().is_binary() {
            return Ok(None);
        }
        let text = fit(&array, &DataType::Utf8)?;
        Ok(match ScalarValue::try_from_array(&text, 0)? {
            ScalarValue::Utf8(text) => text,
            _ => None,
        })
    };
    let compiler = session.shared.compiler.clone();
    let wanted = alter::apply(&def, &alter.actions, &compiler, &engine.manifest(), &constant)?;
    let added = added::of(&wanted, &def, session)?;
    let seen = match added.is_empty() {
        true => None,
        false => Some(added::check(session, def.id, &wanted, &added, None).await?),
    };
    // The engine asks again where another ALTER came first; the last refusal is the statement's.
    let mut refused = None;
    let changed = engine
        .alter_stream(def.id, |old| {
            alter::apply(old, &alter.actions, &compiler, &engine.manifest(), &constant).map_err(|e| {
                let told = ebb_storage::Error::new(e.kind(), e.message());
                refused = Some(e);
                told
            })
        })
        .await;
    let new = match (changed, refused) {
        (Err(_), Some(e)) => return Err(e),
        (changed, _) => changed?,
    };
    // Rows that came meanwhile; all of them where the definition is another one than what was looked at.
    if let Some(seen) = seen {
        let now = added::of(&new, &def, session)?;
        let after = (now == added).then_some(seen);
        if let Err(e) = added::check(session, new.id, &new, &now, after).await {
            let undo = |d: &StreamDef| {
                let columns = d.columns.iter().filter(|c| now.iter().all(|n| n.id != c.id)).cloned().collect();
                Ok(StreamDef { columns, ..d.clone() })
            };
            engine.alter_stream(new.id, undo).await?;
            return Err(e);
        }
    }
    if alter.actions.iter().any(|a| matches!(a, AlterAction::ModifyTtl(_))) {
        note_all_due(session, new.id);
    }
    Ok(command("ALTER STREAM"))
}

/// Whether an action does something with rows or refs instead of changing what the stream is.
fn is_work(action: &AlterAction) -> bool {
    use AlterAction::{CreateRef, DropPartition, DropRef, MaterializeTtl, Move};
    matches!(action, MaterializeTtl { .. } | DropPartition(_) | Move { .. } | CreateRef(_) | DropRef(_))
}

async fn work(session: &Session, def: &StreamDef, action: &AlterAction) -> Result<()> {
    let engine = &session.shared.engine;
    match action {
        AlterAction::MaterializeTtl { partition } => {
            engine.materialize_ttl(def.id, partition.as_ref().map(partition_text).as_deref()).await?;
        }
        AlterAction::Move { what: Movable::Partition(partition), to } => {
            _ = engine.move_parts(def.id, Which::Partition(&partition_text(partition)), to).await?;
        }
        AlterAction::Move { what: Movable::Part(name), to } => _ = engine.move_parts(def.id, Which::Part(name), to).await?,
        AlterAction::DropPartition(partition) => _ = engine.drop_partition(def.id, &partition_text(partition)).await?,
        _ => return Err(Error::internal("an action that is no work")),
    }
    Ok(())
}

/// A rule that makes every row due is told of, with what it will take.
fn note_all_due(session: &mut Session, id: StreamId) {
    let engine = session.shared.engine.clone();
    let Some(view) = engine.read().stream(id) else { return };
    let now = engine.now();
    let mut rows: u64 = 0;
    let mut bytes: u64 = 0;
    for part in &view.parts {
        let alive = part.meta.rows.saturating_sub(part.hidden.as_ref().map_or(0, |h| h.len()));
        let rule = view.def.policy.ttl.iter().find(|r| matches!(r.action, ebb_storage::rules::Action::Delete { only: None }));
        let facts = rule.and_then(|r| part.meta.facts_of(r.fingerprint));
        let due = match (facts, rule) {
            (Some(f), _) => f.never == 0 && f.rows >= alive && f.latest.is_some_and(|t| t <= now),
            (None, Some(r)) => due_by_bounds(&session.shared.compiler, &view.def, part, &r.when, now),
            (None, None) => false,
        };
        if !due {
            return;
        }
        rows += alive;
        bytes += part.meta.placement.bytes;
    }
    if rows > 0 {
        session.notice(Notice::notice(format!("every row is due by this rule: {rows} rows, {bytes} bytes will be removed")));
    }
}

/// Whether the latest of the values that the part's bounds allow is due, for an expression over one column.
fn due_by_bounds(
    compiler: &crate::expr::Compiler,
    def: &StreamDef,
    part: &ebb_engine::LivePart,
    when: &str,
    now: ebb_engine::Timestamp,
) -> bool {
    use ebb_engine::expr::ExprCompiler;
    let Ok(rule) = compiler.compile(when, def) else { return false };
    let Some(column) = rule.monotone_in() else { return false };
    let schema = def.row_schema();
    let Some(field) = schema.fields().iter().find(|f| ebb_engine::upgrade::field_id(f).is_ok_and(|id| id == column)) else { return false };
    let Some(stats) = part.meta.stats_of(column).filter(|s| s.nulls == 0) else { return false };
    let Some(max) = stats.max.as_ref().and_then(|b| crate::provider::bound_value(b, field.data_type())) else { return false };
    let Ok(array) = max.to_array() else { return false };
    let one =
        arrow::array::RecordBatch::try_new(std::sync::Arc::new(arrow::datatypes::Schema::new(vec![field.as_ref().clone()])), vec![array]);
    let due = one.ok().and_then(|b| rule.evaluate(&b).ok()).and_then(|v| ebb_engine::due_values::due_values(&v).ok());
    due.is_some_and(|d| d.iter().all(|t| t.is_some_and(|t| t <= now)))
}

/// `None` where it does not exist and may not.
fn found(
    session: &mut Session,
    manifest: &Manifest,
    name: &crate::statement::StreamName,
    if_exists: bool,
) -> Result<Option<std::sync::Arc<StreamDef>>> {
    match names::find(manifest, name, session.database()) {
        Ok(state) => {
            if state.def.database == crate::system::DATABASE {
                return Err(Error::invalid("streams of the database 'system' are Ebb's own").with_sqlstate("42501"));
            }
            Ok(Some(state.def.clone()))
        }
        Err(e) if if_exists && e.kind() == ErrorKind::NotFound => {
            session.notice(Notice::notice(format!("{}, skipping", e.message())));
            Ok(None)
        }
        Err(e) => Err(e),
    }
}

pub(super) async fn drop(session: &mut Session, drop: &DropStream) -> Result<Outcome> {
    let engine = session.shared.engine.clone();
    let manifest = engine.manifest();
    let mut ids = Vec::new();
    for name in &drop.names {
        ids.extend(found(session, &manifest, name, drop.if_exists)?.map(|d| d.id));
    }
    engine.drop_streams(&ids).await?;
    Ok(command("DROP STREAM"))
}

pub(super) async fn truncate(session: &mut Session, truncate: &TruncateStream) -> Result<Outcome> {
    let engine = session.shared.engine.clone();
    if let Some(def) = found(session, &engine.manifest(), &truncate.name, truncate.if_exists)? {
        engine.truncate(def.id).await?;
    }
    Ok(command("TRUNCATE STREAM"))
}

pub(super) async fn rename(session: &mut Session, rename: &RenameStream) -> Result<Outcome> {
    let engine = session.shared.engine.clone();
    let Some(def) = found(session, &engine.manifest(), &rename.from, rename.if_exists)? else { return Ok(command("RENAME STREAM")) };
    let (database, name) = names::split(&rename.to, &def.database)?;
    if name.starts_with(names::BRANCH_PREFIX) || name.starts_with("_tp_") {
        let e = Error::invalid(format!("a stream cannot be called '{name}': names that begin with branch_ or _tp_ are kept"));
        return Err(e.with_sqlstate("42939").at(rename.to.position()));
    }
    session.shared.check_database(&database)?;
    engine.rename_stream(def.id, &database, &name).await.map_err(taken)?;
    Ok(command("RENAME STREAM"))
}
