//! What the parts of a stream's name mean: database, stream, branch.

use crate::{Error, Result, nearest, sqlstate, statement::StreamName};
use ebb_storage::manifest::{Manifest, StreamState};
use std::sync::Arc;

/// The beginning of names that mean branches.
pub const BRANCH_PREFIX: &str = "branch_";

/// Database and stream that `name` means where streams are made; `public` is `current`.
///
/// # Errors
/// For names of more parts, and those that are kept for branches.
pub fn split(name: &StreamName, current: &str) -> Result<(String, String)> {
    let parts: Vec<&str> = name.parts.iter().map(|p| p.as_str()).collect();
    let (database, stream) = match parts.as_slice() {
        [stream] => (current, *stream),
        [database, stream] => (*database, *stream),
        [catalog, database, stream] if *catalog == crate::provider::CATALOG => (*database, *stream),
        _ => {
            let message = format!("'{name}' is no stream's name: write database.stream");
            return Err(Error::invalid(message).with_sqlstate(sqlstate::UNDEFINED_TABLE).at(name.position()));
        }
    };
    let database = if database == crate::provider::catalog::PUBLIC { current } else { database };
    Ok((database.to_owned(), stream.to_owned()))
}

/// `name` without its branch, and the branch: `s.branch_b` means b of s, whatever databases there are.
pub fn branch_of(name: &StreamName) -> Option<(StreamName, &str)> {
    let (last, stream) = name.parts.split_last()?;
    let branch = last.as_str().strip_prefix(BRANCH_PREFIX)?;
    (!stream.is_empty()).then(|| (StreamName { parts: stream.to_vec() }, branch))
}

/// The stream that `name` means, and the branch if it names one, which may not exist.
///
/// # Errors
/// `42P01` with the nearest name.
pub fn find_on<'a, 'n>(manifest: &'a Manifest, name: &'n StreamName, current: &str) -> Result<(&'a Arc<StreamState>, Option<&'n str>)> {
    match branch_of(name) {
        Some((stream, branch)) => Ok((find(manifest, &stream, current)?, Some(branch))),
        None => Ok((find(manifest, name, current)?, None)),
    }
}

/// The stream that `name` means.
///
/// # Errors
/// `42P01` with the nearest name; `42809` for a branch.
pub fn find<'a>(manifest: &'a Manifest, name: &StreamName, current: &str) -> Result<&'a Arc<StreamState>> {
    if let Some((stream, _)) = branch_of(name) {
        let message = format!("'{name}' is a branch: this statement is about the whole stream, name {stream}");
        return Err(Error::invalid(message).with_sqlstate(sqlstate::WRONG_OBJECT_TYPE).at(name.position()));
    }
    let (database, stream) = split(name, current)?;
    let found = manifest.stream_named(&database, &stream).filter(|s| !s.def.is_internal());
    found.ok_or_else(|| match crate::system::NAMES.contains(&stream.as_str()) && database == crate::system::DATABASE {
        true => Error::invalid(format!("'{name}' is Ebb's own: it can be read as it is now, not of another time, and not changed"))
            .with_sqlstate(sqlstate::WRONG_OBJECT_TYPE)
            .at(name.position()),
        false => unknown(manifest, &database, &stream, name.position()),
    })
}

pub fn unknown(manifest: &Manifest, database: &str, stream: &str, position: usize) -> Error {
    let error = if manifest.databases.contains(database) {
        let names: Vec<&str> = manifest.user_streams().filter(|s| s.def.database == database).map(|s| s.def.name.as_str()).collect();
        Error::not_found(format!("stream '{database}.{stream}' does not exist{}", nearest::did_you_mean(stream, names)))
    } else {
        let names: Vec<&str> = manifest.databases.iter().map(String::as_str).collect();
        Error::not_found(format!("database '{database}' does not exist{}", nearest::did_you_mean(database, names)))
    };
    error.with_sqlstate(sqlstate::UNDEFINED_TABLE).at(position)
}
