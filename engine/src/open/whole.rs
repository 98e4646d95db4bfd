//! Whether the folders of a database are of one time, looked at before an opening writes anything.
//!
//! Guards: what a manifest does not name is swept (I9), so a manifest that is gone, or older than the log, is refused. Each opening takes
//! its epoch in the manifest before it begins a file of the log (I7), and parts are written after both.

use ebb_storage::{
    Error, Result,
    ids::{DatabaseId, Epoch},
    log::{LogDir, frame::FileName},
    manifest::Manifest,
    part::key,
};
use futures::TryStreamExt;
use object_store::ObjectStore;

/// The newest opening that the log's files are of.
pub(crate) fn newest_epoch(log: &dyn LogDir) -> Result<Option<Epoch>> {
    Ok(log.list()?.iter().filter_map(|name| FileName::parse(name)).map(|file| file.epoch).max())
}

/// `newest` is the log's, `data` the disk of the data directory.
///
/// # Errors
/// `Corrupt`, saying what is to be restored.
pub(crate) async fn check(manifest: &Manifest, newest: Option<Epoch>, data: &dyn ObjectStore, database: &DatabaseId) -> Result<()> {
    let older = newest.filter(|epoch| *epoch > manifest.epoch);
    if manifest.no.0 > 0 {
        return match older {
            None => Ok(()),
            Some(newest) => Err(Error::corrupt(format!(
                "the manifest was last opened as epoch {}, but the log has files of epoch {newest}: restore meta/ and log/ of one time",
                manifest.epoch
            ))),
        };
    }
    let beside = match older {
        Some(_) => Some("the log has files".to_owned()),
        None => {
            let part = data.list(Some(&key::parts_prefix(database))).try_next().await?;
            part.map(|o| format!("there are parts ({} is one)", o.location))
        }
    };
    match beside {
        None => Ok(()),
        Some(beside) => Err(Error::corrupt(format!("meta/ has no manifest, but {beside}: restore meta/"))),
    }
}
