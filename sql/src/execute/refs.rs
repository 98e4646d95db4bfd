//! Tags and branches, as actions of ALTER STREAM.

use crate::{
    Error, Notice, Result, Session,
    bind::{argument, expression},
    sqlstate,
    statement::{self, CreateRef, DropRef, Name, RefMode},
};
use datafusion::common::ScalarValue;
use ebb_engine::history::{NewRef, RefMode as Mode};
use ebb_storage::{
    interval::Interval,
    refs::{AsOf, RefKind},
    stream_def::StreamDef,
};

fn kind(kind: statement::RefKind) -> (RefKind, &'static str) {
    match kind {
        statement::RefKind::Tag => (RefKind::Tag, "tag"),
        statement::RefKind::Branch => (RefKind::Branch, "branch"),
    }
}

/// An age of no calendar units.
pub(super) fn millis(what: &str, age: &Interval) -> Result<i64> {
    let fixed = (age.months == 0).then(|| i64::from(age.days).checked_mul(86_400_000)?.checked_add(age.micros / 1000)).flatten();
    match fixed.filter(|ms| *ms > 0) {
        Some(ms) => Ok(ms),
        None => Err(Error::invalid(format!("{what} takes minutes, hours or days, at least one millisecond, not {age}"))),
    }
}

pub(super) async fn create(session: &mut Session, def: &StreamDef, create: &CreateRef, params: &[ScalarValue]) -> Result<()> {
    let (kind, word) = kind(create.kind);
    let as_of = match &create.as_of {
        None => None,
        Some(e) => {
            let cut = session.cut_without_own();
            let value = expression::constant(&session.context(&cut, false), &e.ast, params)?;
            Some(version(&value)?)
        }
    };
    let retention = create.snapshot_retention;
    let new = NewRef {
        kind,
        mode: match create.mode {
            RefMode::Create => Mode::Create,
            RefMode::CreateOrReplace => Mode::CreateOrReplace,
            RefMode::Replace => Mode::Replace,
        },
        if_not_exists: create.if_not_exists,
        name: create.name.as_str().to_owned(),
        as_of,
        retain_ms: create.retain.as_ref().map(|age| millis("RETAIN", age)).transpose()?,
        min_snapshots: retention.and_then(|r| r.min_snapshots),
        max_snapshot_age_ms: retention.and_then(|r| r.max_age).map(|age| millis("SNAPSHOT RETENTION", &age)).transpose()?,
    };
    let made = session.shared.engine.create_ref(def.id, new).await.map_err(|e| named(e, &create.name))?;
    if made.forgotten > 0 {
        let (name, n) = (create.name.as_str(), made.forgotten);
        session.notice(Notice::notice(match n {
            1 => format!("1 record that only branch '{name}' held is gone with it: a tag at it would have kept it"),
            _ => format!("{n} records that only branch '{name}' held are gone with it: a tag at the last of them would have kept them"),
        }));
    }
    if !made.made {
        let message = format!("{word} '{}' of {} exists already", create.name.as_str(), def.full_name());
        session.notice(Notice { sqlstate: sqlstate::DUPLICATE_OBJECT, ..Notice::notice(message) });
    }
    Ok(())
}

/// `AS OF VERSION n`, or the name of a ref.
fn version(value: &ScalarValue) -> Result<AsOf> {
    match value.try_as_str() {
        Some(Some(name)) if argument::digits(value).is_none() => Ok(AsOf::Name(name.to_owned())),
        _ => argument::sn("AS OF VERSION", value).map(AsOf::Sn),
    }
}

pub(super) async fn drop(session: &mut Session, def: &StreamDef, drop: &DropRef) -> Result<()> {
    let (kind, word) = kind(drop.kind);
    let dropped =
        session.shared.engine.drop_ref(def.id, kind, drop.name.as_str(), drop.if_exists).await.map_err(|e| named(e, &drop.name))?;
    if !dropped {
        session.notice(Notice::notice(format!("{word} '{}' of {} does not exist, skipping", drop.name.as_str(), def.full_name())));
    }
    Ok(())
}

/// At the name; one that is there already has its own SQLSTATE.
pub(super) fn named(e: ebb_storage::Error, name: &Name) -> Error {
    let exists = e.kind() == crate::ErrorKind::Conflict && e.to_string().contains("exists already");
    let e = Error::from(e).at(name.position);
    if exists { e.with_sqlstate(sqlstate::DUPLICATE_OBJECT) } else { e }
}
