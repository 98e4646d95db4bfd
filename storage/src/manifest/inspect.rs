//! Looking at the manifest's objects without opening: for `ebb check`. Writes nothing.

use crate::{
    Result,
    manifest::{commit_log::CommitLog, invariants, state::Manifest},
};
use object_store::ObjectStore;
use std::sync::Arc;

pub struct Inspection {
    /// The manifest that an opening would start from, where there is one.
    pub manifest: Option<Arc<Manifest>>,
    /// What is wrong, each naming its object.
    pub damage: Vec<String>,
}

/// # Errors
/// Only where the store itself cannot be read.
pub async fn inspect(meta: Arc<dyn ObjectStore>) -> Result<Inspection> {
    let log = CommitLog::new(meta);
    let mut damage = Vec::new();
    for no in log.checkpoint_numbers().await? {
        if let Err(e) = log.verify_checkpoint(no).await {
            damage.push(e.to_string());
        }
    }
    let manifest = match log.load().await {
        Ok(loaded) => {
            damage.extend(invariants::violations(&loaded.manifest));
            Some(Arc::new(loaded.manifest))
        }
        Err(e) => {
            damage.push(e.to_string());
            None
        }
    };
    Ok(Inspection { manifest, damage })
}
