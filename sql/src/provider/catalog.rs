//! Databases as schemas, streams as tables, all of one cut. `public` is the connection's database.

use super::table::StreamTable;
use crate::{database::Shared, system};
use arrow::array::RecordBatch;
use async_trait::async_trait;
use datafusion::{
    catalog::{CatalogProvider, SchemaProvider, TableProvider},
    error::{DataFusionError, Result},
};
use ebb_engine::{Pending, ReadView, StreamView};
use ebb_storage::{
    Timestamp,
    ids::{SchemaVersion, StreamId},
    manifest::StreamState,
    refs::{AsOf, RefKind},
};
use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    sync::Arc,
};

/// The one catalog.
pub const CATALOG: &str = "ebb";
pub const PUBLIC: &str = "public";

/// What a statement reads.
#[derive(Clone)]
pub(crate) struct Cut {
    pub view: ReadView,
    /// What the statement's own block has written.
    pub own: Arc<HashMap<StreamId, Pending>>,
    pub now: Timestamp,
}

impl Cut {
    /// The head of a branch.
    ///
    /// # Errors
    /// `NotFound` without such a branch, `Invalid` for a tag.
    pub fn branch(&self, stream: &StreamState, name: &str) -> Result<StreamView, crate::Error> {
        let view = self.view.stream_as_of(stream.def.id, &AsOf::Name(name.to_owned()), self.now)?;
        let tag = view.state.refs.get(name).is_some_and(|r| r.kind == RefKind::Tag);
        match tag {
            true => {
                let full = stream.def.full_name();
                let message = format!("'{name}' of {full} is a tag, which is read with {full} VERSION AS OF '{name}'");
                Err(crate::Error::invalid(message).with_sqlstate(crate::sqlstate::WRONG_OBJECT_TYPE))
            }
            false => Ok(view),
        }
    }

    /// The head of a branch with what the statement's own block has written to it.
    pub fn with_own(&self, view: StreamView) -> (StreamView, Vec<(SchemaVersion, RecordBatch)>) {
        match self.own.get(&view.def.id) {
            Some(own) => {
                let rows = own.of(view.cut.branch).rows;
                (self.view.with_pending(view, own), rows)
            }
            None => (view, Vec::new()),
        }
    }
}

pub(crate) struct ViewCatalog {
    pub shared: Arc<Shared>,
    pub cut: Cut,
    /// The connection's database.
    pub database: String,
    /// Whether `_tp_time` and `_tp_sn` can be named.
    pub hidden_columns: bool,
    /// Schemas that a connection brings, such as pg_catalog.
    pub extra: BTreeMap<String, Arc<dyn SchemaProvider>>,
    /// Schemas that one statement brings.
    pub brought: parking_lot::Mutex<BTreeMap<String, Arc<dyn SchemaProvider>>>,
}

impl fmt::Debug for ViewCatalog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ViewCatalog({})", self.database)
    }
}

impl CatalogProvider for ViewCatalog {
    fn schema_names(&self) -> Vec<String> {
        let databases = self.cut.view.manifest().databases.iter().cloned();
        databases.chain([PUBLIC.to_owned()]).chain(self.extra.keys().cloned()).collect()
    }

    fn schema(&self, name: &str) -> Option<Arc<dyn SchemaProvider>> {
        if let Some(extra) = self.brought.lock().get(name).or_else(|| self.extra.get(name)) {
            return Some(extra.clone());
        }
        let database = if name == PUBLIC { self.database.as_str() } else { name };
        if !self.cut.view.manifest().databases.contains(database) {
            return None;
        }
        Some(Arc::new(ViewSchema {
            shared: self.shared.clone(),
            cut: self.cut.clone(),
            database: database.to_owned(),
            hidden_columns: self.hidden_columns,
        }))
    }

    fn register_schema(&self, name: &str, schema: Arc<dyn SchemaProvider>) -> Result<Option<Arc<dyn SchemaProvider>>> {
        Ok(self.brought.lock().insert(name.to_owned(), schema))
    }
}

struct ViewSchema {
    shared: Arc<Shared>,
    cut: Cut,
    database: String,
    hidden_columns: bool,
}

impl fmt::Debug for ViewSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ViewSchema({})", self.database)
    }
}

#[async_trait]
impl SchemaProvider for ViewSchema {
    fn table_names(&self) -> Vec<String> {
        let of = self.cut.view.streams().filter(|s| s.def.database == self.database).map(|s| s.def.name.clone());
        let mut names: Vec<String> = of.collect();
        if self.database == system::DATABASE {
            names.extend(system::NAMES.iter().map(|n| (*n).to_owned()));
        }
        names.sort();
        names
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>, DataFusionError> {
        if self.database == system::DATABASE
            && let Some(table) = system::table(name, &self.shared, &self.cut)
        {
            return Ok(Some(table?));
        }
        let Some(view) = self.cut.view.stream_named(&self.database, name) else { return Ok(None) };
        let (view, own) = self.cut.with_own(view);
        Ok(Some(Arc::new(StreamTable::new(self.shared.clone(), view, own, self.hidden_columns, self.cut.now))))
    }

    fn table_exist(&self, name: &str) -> bool {
        self.cut.view.manifest().stream_named(&self.database, name).is_some()
            || self.database == system::DATABASE && system::NAMES.contains(&name)
    }
}
