//! DataFusion for one statement: the shared functions and memory, the session's settings, the statement's cut and time.

use super::Session;
use crate::{
    Result, analyze,
    functions::{self, StatementTime},
    memory::{self, Pool, growth::Budget},
    pg_catalog,
    provider::{AnswerFromBounds, CATALOG, Cut, ViewCatalog, catalog::PUBLIC},
};
use datafusion::{
    catalog::{CatalogProviderList, MemoryCatalogProviderList},
    execution::{
        SessionState, SessionStateBuilder,
        disk_manager::{DiskManagerBuilder, DiskManagerMode},
        memory_pool::{MemoryPool, TrackConsumersPool},
        runtime_env::RuntimeEnvBuilder,
    },
    physical_optimizer::optimizer::PhysicalOptimizer,
    prelude::SessionConfig,
};
use ebb_engine::Timestamp;
use std::{num::NonZeroUsize, path::PathBuf, sync::Arc};

/// How many memory users an out-of-memory error names.
const NAMED_CONSUMERS: NonZeroUsize = NonZeroUsize::new(5).expect("five is not zero");

/// What all statements' contexts begin with. `spill`: the folder for what they write aside, if they may.
pub(crate) fn base(pool: &Pool, spill: Option<PathBuf>) -> Result<SessionState> {
    let tracked: Arc<dyn MemoryPool> = Arc::new(TrackConsumersPool::new(pool.clone(), NAMED_CONSUMERS));
    let disk = DiskManagerBuilder::default()
        .with_mode(spill.map_or(DiskManagerMode::Disabled, |folder| DiskManagerMode::Directories(vec![folder])));
    let runtime = RuntimeEnvBuilder::new().with_memory_pool(tracked.clone()).with_disk_manager_builder(disk).build_arc()?;
    runtime.register_object_store(crate::provider::store_url().as_ref(), Arc::new(object_store::memory::InMemory::new()));
    let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let mut config = SessionConfig::new()
        .with_target_partitions(cores)
        .with_information_schema(true)
        .with_create_default_catalog_and_schema(false)
        .with_default_catalog_and_schema(CATALOG, PUBLIC);
    let options = config.options_mut();
    options.optimizer.prefer_existing_sort = true;
    options.execution.parquet.reorder_filters = true;
    options.sql_parser.collect_spans = true;
    options.extensions.insert(Budget(tracked));
    let builder = SessionStateBuilder::new().with_config(config).with_runtime_env(runtime).with_default_features();
    let mut rules = PhysicalOptimizer::new().rules;
    rules.insert(0, Arc::new(AnswerFromBounds));
    rules.push(Arc::new(memory::Compacting));
    let builder = builder.with_physical_optimizer_rules(rules);
    let mut state = builder.with_type_planner(Arc::<analyze::Types>::default()).with_analyzer_rule(Arc::new(analyze::Meaning)).build();
    functions::register(&mut state)?;
    Ok(state)
}

impl Session {
    /// The cut that the next statement reads.
    pub(crate) async fn cut(&self) -> Cut {
        let engine = &self.shared.engine;
        let now = engine.now();
        let Some(block) = &self.block else { return Cut { view: engine.read(), own: Arc::default(), now } };
        Cut { view: block.view(engine), own: Arc::new(block.own_rows().await), now }
    }

    /// [`Self::cut`] for what reads no streams: without the block's own rows, of which there may be many.
    pub(crate) fn cut_without_own(&self) -> Cut {
        let engine = &self.shared.engine;
        let view = self.block.as_ref().map_or_else(|| engine.read(), |block| block.view(engine));
        Cut { view, own: Arc::default(), now: engine.now() }
    }

    /// DataFusion over `cut`.
    pub(crate) fn context(&self, cut: &Cut, hidden_columns: bool) -> SessionState {
        let catalog = ViewCatalog {
            shared: self.shared.clone(),
            cut: cut.clone(),
            database: self.database().to_owned(),
            hidden_columns,
            extra: self.schemas.clone(),
            brought: parking_lot::Mutex::default(),
        };
        let list = MemoryCatalogProviderList::new();
        list.register_catalog(CATALOG.to_owned(), Arc::new(catalog));
        self.state(cut.now, Arc::new(list))
    }

    /// `state` with PostgreSQL's catalogue of `cut` and its functions.
    pub(crate) fn with_catalogue(&self, mut state: SessionState, cut: &Cut) -> Result<SessionState> {
        let settings = self.variables.all().into_iter().map(|(name, value, _)| (name, value)).collect();
        let names = Arc::new(pg_catalog::Names::of(cut, self.database(), settings));
        pg_catalog::register(&mut state, &names)?;
        if let Some(catalog) = state.catalog_list().catalog(CATALOG) {
            catalog.register_schema(pg_catalog::SCHEMA, Arc::new(pg_catalog::PgCatalog::new(names)))?;
        }
        Ok(state)
    }

    fn state(&self, now: Timestamp, list: Arc<dyn CatalogProviderList>) -> SessionState {
        let mut config = self.shared.base.config().clone();
        let options = config.options_mut();
        options.extensions.insert(StatementTime(now));
        memory::fit(options, self.shared.pool.limit());
        options.execution.time_zone = Some(self.variables.time_zone());
        let types = analyze::Types { zone: self.variables.time_zone().into() };
        let builder = SessionStateBuilder::new_from_existing(self.shared.base.clone()).with_type_planner(Arc::new(types));
        let mut state = builder.with_config(config).with_catalog_list(list).build();
        // Expressions made outside of a plan take their options, and so the statement's time, from here.
        let options = state.config_options().clone();
        let props = state.execution_props_mut();
        props.mark_start_execution(options);
        props.query_execution_start_time = chrono::DateTime::from_timestamp_micros(now.0);
        state
    }
}
