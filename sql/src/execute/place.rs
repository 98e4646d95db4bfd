//! CREATE and DROP of disks and storage policies. What a statement says of a disk's secret is kept by the engine and printed nowhere.

use super::command;
use crate::{
    Error, ErrorKind, Notice, Outcome, Result, Session,
    bind::{disk, policy},
    sqlstate,
    statement::{CreateDisk, CreateStoragePolicy, DropDisk, DropStoragePolicy, quote_name, quote_text},
};
use ebb_engine::Existing;
use ebb_storage::disk::{DiskDef, DiskKind, StoragePolicy, policy::DEFAULT, secret::HIDDEN};

fn existing(or_replace: bool, if_not_exists: bool) -> Existing {
    match (or_replace, if_not_exists) {
        (true, _) => Existing::Replace,
        (_, true) => Existing::Keep,
        _ => Existing::Refuse,
    }
}

fn in_use(e: ebb_storage::Error) -> Error {
    match e.kind() {
        ErrorKind::Conflict => Error::from(e).with_sqlstate(sqlstate::DEPENDENT_OBJECTS),
        _ => e.into(),
    }
}

/// Tells that nothing was done, as IF NOT EXISTS wants it.
fn skipped(session: &mut Session, message: String) {
    session.notice(Notice { sqlstate: sqlstate::DUPLICATE_OBJECT, ..Notice::notice(message) });
}

pub(super) async fn create_disk(session: &mut Session, create: &CreateDisk) -> Result<Outcome> {
    let new = disk::bind(create)?;
    let engine = session.shared.engine.clone();
    let existing = existing(create.or_replace, create.if_not_exists);
    let known = engine.manifest().disk_id(&new.name).is_some();
    if known && existing == Existing::Keep {
        skipped(session, format!("disk '{}' exists already", new.name));
        return Ok(command("CREATE DISK"));
    }
    engine.create_disk(new, existing).await.map_err(|e| match e.kind() {
        ErrorKind::Conflict if known && existing == Existing::Refuse => Error::from(e).with_sqlstate(sqlstate::DUPLICATE_OBJECT),
        _ => Error::from(e).at(create.name.position),
    })?;
    Ok(command("CREATE DISK"))
}

pub(super) async fn drop_disk(session: &mut Session, drop: &DropDisk) -> Result<Outcome> {
    let (engine, name) = (session.shared.engine.clone(), drop.name.as_str());
    if drop.if_exists && engine.manifest().disk_id(name).is_none() {
        session.notice(Notice::notice(format!("disk '{name}' does not exist, skipping")));
    }
    engine.drop_disk(name, drop.if_exists).await.map_err(in_use)?;
    Ok(command("DROP DISK"))
}

pub(super) async fn create_policy(session: &mut Session, create: &CreateStoragePolicy) -> Result<Outcome> {
    let (engine, name) = (session.shared.engine.clone(), create.name.as_str());
    let new = policy::bind(name, &create.body).map_err(|e| e.at(create.name.position))?;
    let existing = existing(create.or_replace, create.if_not_exists);
    let known = engine.manifest().policy(name).is_some();
    if known && existing == Existing::Keep {
        skipped(session, format!("storage policy '{name}' exists already"));
        return Ok(command("CREATE STORAGE POLICY"));
    }
    engine.set_policy(new, existing).await.map_err(|e| match e.kind() {
        ErrorKind::Conflict if known && existing == Existing::Refuse => Error::from(e).with_sqlstate(sqlstate::DUPLICATE_OBJECT),
        _ => Error::from(e).at(create.name.position),
    })?;
    Ok(command("CREATE STORAGE POLICY"))
}

pub(super) async fn drop_policy(session: &mut Session, drop: &DropStoragePolicy) -> Result<Outcome> {
    let (engine, name) = (session.shared.engine.clone(), drop.name.as_str());
    if drop.if_exists && engine.manifest().policy(name).is_none() {
        session.notice(Notice::notice(format!("storage policy '{name}' does not exist, skipping")));
    }
    engine.drop_policy(name, drop.if_exists).await.map_err(in_use)?;
    Ok(command("DROP STORAGE POLICY"))
}

/// The statement that makes the disk, without its secret.
pub(super) fn show_disk(def: &DiskDef) -> Result<String> {
    if def.name == DEFAULT {
        return Err(Error::unsupported("the disk 'default' is the data directory: no statement makes it"));
    }
    let mut options: Vec<(&str, String)> = Vec::new();
    match &def.kind {
        DiskKind::Local { path } => {
            options.push(("type", quote_text("local")));
            options.push(("path", quote_text(&path.display().to_string())));
        }
        DiskKind::S3 { endpoint, region, access_key_id, secret_access_key, use_environment_credentials } => {
            options.push(("type", quote_text("s3")));
            options.push(("endpoint", quote_text(endpoint)));
            options.extend(region.as_ref().map(|r| ("region", quote_text(r))));
            options.extend(access_key_id.as_ref().map(|id| ("access_key_id", quote_text(id))));
            options.extend(secret_access_key.as_ref().map(|_| ("secret_access_key", quote_text(HIDDEN))));
            options.extend(use_environment_credentials.then(|| ("use_environment_credentials", "true".to_owned())));
        }
    }
    options.extend(def.capacity_bytes.map(|n| ("capacity_bytes", n.to_string())));
    if def.max_usage_pct != 100 {
        options.push(("max_usage_pct", def.max_usage_pct.to_string()));
    }
    let options: Vec<String> = options.into_iter().map(|(name, value)| format!("{name} = {value}")).collect();
    Ok(format!("CREATE DISK {} disk({})", quote_name(&def.name), options.join(", ")))
}

/// The statement that makes the policy; what every database has can only be replaced.
pub(super) fn show_policy(p: &StoragePolicy) -> String {
    let replace = if p.name == DEFAULT { " OR REPLACE" } else { "" };
    let body = policy::body(p);
    let body = if body.contains('$') { quote_text(&body) } else { format!("$$\n{body}$$") };
    format!("CREATE{replace} STORAGE POLICY {} AS {body}", quote_name(&p.name))
}
