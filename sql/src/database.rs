//! An open database, as programs hold it. Every call goes through a [`Session`], so that it means what it means on the wire.

use crate::{
    Config, Error, Result,
    expr::Compiler,
    memory::{self, Pool},
    nearest,
    outcome::{Outcome, Prepared},
    provider::FileCache,
    session::{Running, Session, context},
    workers::Workers,
};
use arrow::{array::RecordBatch, datatypes::SchemaRef};
use datafusion::execution::{SendableRecordBatchStream, SessionState};
use ebb_engine::{Engine, OpenOptions, Places};
use futures::{Stream, StreamExt};
use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};
use tokio_util::sync::CancellationToken;

/// The database that exists from the first day.
pub const DEFAULT_DATABASE: &str = "default";

/// What all sessions of a database share.
pub(crate) struct Shared {
    pub engine: Arc<Engine>,
    pub compiler: Arc<Compiler>,
    pub base: SessionState,
    pub files: FileCache,
    pub workers: Workers,
    /// The memory of all queries.
    pub pool: Pool,
    /// The statements that run.
    pub running: Running,
}

impl Shared {
    /// After a change of server settings: what follows them at once.
    pub fn follow_settings(&self) {
        self.pool.set_limit(self.engine.server_settings().memory_limit_bytes);
    }

    /// # Errors
    /// `3D000` without such a database.
    pub fn check_database(&self, name: &str) -> Result<()> {
        let manifest = self.engine.manifest();
        if manifest.databases.contains(name) {
            return Ok(());
        }
        let near = nearest::did_you_mean(name, manifest.databases.iter().map(String::as_str));
        Err(Error::not_found(format!("database '{name}' does not exist{near}")).with_sqlstate("3D000"))
    }
}

/// Cheap to clone. Dropping the last one without [`Database::close`] is like a crash, and as safe.
#[derive(Clone)]
pub struct Database {
    shared: Arc<Shared>,
}

impl Database {
    /// Opens the data directory, which is made if it is missing.
    ///
    /// # Errors
    /// `Conflict` where another process has it open, `Corrupt` where it is damaged.
    pub async fn open(config: impl Into<Config>) -> Result<Self> {
        let config = config.into();
        let places = Places::of(&config.dir).await?;
        Self::open_at(config, places).await
    }

    /// [`Self::open`] over places that the caller brings.
    ///
    /// # Errors
    /// As there.
    pub async fn open_at(config: Config, places: Places) -> Result<Self> {
        let compiler = Arc::new(Compiler::new());
        let dir = config.dir.clone();
        let options = OpenOptions {
            dir: config.dir,
            clock: config.clock,
            compiler: compiler.clone(),
            settings: config.settings,
            background: config.background,
        };
        // Without a data directory there is nowhere to write rows aside.
        let spills = places.dir.is_some();
        let engine = Engine::open_at(options, places).await?;
        let pool = Pool::new(engine.server_settings().memory_limit_bytes);
        let base = context::base(&pool, spills.then(|| memory::emptied(&dir)).transpose()?)?;
        let (files, running, workers) = (FileCache::default(), Running::default(), Workers::new()?);
        Ok(Self { shared: Arc::new(Shared { engine, compiler, base, files, workers, pool, running }) })
    }

    /// A connection of its own.
    pub fn session(&self) -> Session {
        Session::new(self.shared.clone())
    }

    pub fn engine(&self) -> &Arc<Engine> {
        &self.shared.engine
    }

    /// The rows of one statement, which must answer with rows.
    pub async fn sql(&self, sql: &str) -> Result<Rows> {
        match self.run(sql).await? {
            Some(Outcome::Rows { schema, stream, .. }) => Ok(Rows { schema, stream }),
            _ => Err(Error::invalid("the statement answers with no rows: use execute()")),
        }
    }

    /// Runs one or several statements; the answer is the last one's.
    pub async fn execute(&self, sql: &str) -> Result<Summary> {
        match self.run(sql).await? {
            None | Some(Outcome::Empty) => Ok(Summary { tag: String::new(), rows: 0 }),
            Some(Outcome::Command { tag }) => Ok(Summary { rows: count_of(&tag), tag }),
            Some(Outcome::Rows { mut stream, tag, .. }) => {
                let mut rows = 0;
                while let Some(batch) = stream.next().await {
                    rows += batch?.num_rows() as u64;
                }
                Ok(Summary { tag: tag.text(rows), rows })
            }
            Some(Outcome::CopyIn(_) | Outcome::CopyOut(_)) => {
                Err(Error::unsupported("COPY needs a session: use Session::execute, or stream(...).append()"))
            }
        }
    }

    /// A stream by name, `s` or `database.s`, to append to.
    pub fn stream(&self, name: &str) -> StreamHandle {
        StreamHandle { shared: self.shared.clone(), name: name.to_owned() }
    }

    /// Flushes what is cheap to flush, stops the background work, releases the directory.
    pub async fn close(&self) -> Result<()> {
        Ok(self.shared.engine.close().await?)
    }

    async fn run(&self, sql: &str) -> Result<Option<Outcome>> {
        let mut session = self.session();
        let mut last = None;
        for statement in session.parse(sql)? {
            if let Some(Outcome::Rows { mut stream, .. }) = last.take() {
                while let Some(batch) = stream.next().await {
                    batch?;
                }
            }
            let prepared: Prepared = session.prepare(statement, &[]).await?;
            last = Some(session.execute(&prepared, Vec::new(), CancellationToken::new()).await?);
        }
        Ok(last)
    }
}

/// The count at the end of a command tag.
fn count_of(tag: &str) -> u64 {
    tag.rsplit(' ').next().and_then(|n| n.parse().ok()).unwrap_or(0)
}

/// Rows as they come.
pub struct Rows {
    schema: SchemaRef,
    stream: SendableRecordBatchStream,
}

impl Rows {
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// All of them.
    pub async fn collect(mut self) -> Result<Vec<RecordBatch>> {
        let mut batches = Vec::new();
        while let Some(batch) = self.stream.next().await {
            batches.push(batch?);
        }
        Ok(batches)
    }
}

impl Stream for Rows {
    type Item = Result<RecordBatch>;
    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.stream.poll_next_unpin(cx).map(|b| b.map(|b| b.map_err(Error::from)))
    }
}

/// What statements did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// PostgreSQL's command tag.
    pub tag: String,
    /// Rows inserted, or answered.
    pub rows: u64,
}

/// A stream to append to. It is looked up at each append, so it may be made before its stream.
#[derive(Clone)]
pub struct StreamHandle {
    pub(crate) shared: Arc<Shared>,
    pub(crate) name: String,
}

impl StreamHandle {
    /// Appends rows, columns matched by name; what is missing takes its default. All or nothing; how many rows. Texts may be dictionaries
    /// with 32-bit keys, which is how they are written fastest.
    pub async fn append(&self, batch: RecordBatch) -> Result<u64> {
        self.append_all(futures::stream::iter([Ok(batch)])).await
    }

    /// As [`Self::append`], any number of batches in bounded memory, still all or nothing.
    pub async fn append_all(&self, batches: impl Stream<Item = Result<RecordBatch>> + Send) -> Result<u64> {
        crate::execute::append::append_all(&self.shared, &self.name, batches).await
    }
}
