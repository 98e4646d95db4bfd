//! Definitions: databases, streams, settings. Each statement is one conditional commit of the manifest; TRUNCATE is a record.

use crate::Engine;
use ebb_storage::{
    Error, Result,
    ids::{Sn, StreamId},
    stream_def::{SettingValue, StreamDef},
};
use std::sync::Arc;

impl Engine {
    pub async fn create_database(&self, name: &str, if_not_exists: bool) -> Result<()> {
        let _ = (name, if_not_exists);
        Err(Error::internal("databases are not built yet"))
    }

    /// With all its streams.
    pub async fn drop_database(&self, name: &str, if_exists: bool) -> Result<()> {
        let _ = (name, if_exists);
        Err(Error::internal("databases are not built yet"))
    }

    /// `def` as bound, but for its id, creation time and versions, which are given here.
    ///
    /// # Errors
    /// `NotFound` without the database, `Conflict` where the name is taken (with `if_not_exists` the existing stream's id).
    pub async fn create_stream(&self, def: StreamDef, if_not_exists: bool) -> Result<StreamId> {
        let _ = (def, if_not_exists);
        Err(Error::internal("streams are not built yet"))
    }

    /// Commits what `change` makes of the definition; it is asked again where another ALTER came first. Versions are raised here:
    /// `schema_version` where columns changed, `policy_version` where rules or settings did.
    pub async fn alter_stream(
        &self,
        stream: StreamId,
        change: impl FnMut(&StreamDef) -> Result<StreamDef> + Send,
    ) -> Result<Arc<StreamDef>> {
        let _ = (stream, change);
        Err(Error::internal("ALTER is not built yet"))
    }

    pub async fn rename_stream(&self, stream: StreamId, database: &str, name: &str) -> Result<()> {
        let _ = (stream, database, name);
        Err(Error::internal("RENAME is not built yet"))
    }

    pub async fn drop_stream(&self, stream: StreamId) -> Result<()> {
        let _ = stream;
        Err(Error::internal("DROP is not built yet"))
    }

    /// Removes every row of main as one record; its sn.
    pub async fn truncate(&self, stream: StreamId) -> Result<Sn> {
        let _ = stream;
        Err(Error::internal("TRUNCATE is not built yet"))
    }

    /// `None` gives the setting its default back.
    pub async fn set_server_setting(&self, name: &str, value: Option<SettingValue>) -> Result<()> {
        let _ = (name, value);
        Err(Error::internal("settings are not built yet"))
    }
}
