//! One connection: its database, its settings, its transaction block, its prepared statements. Nothing of it is shared, so nothing
//! leaks from one connection to another.
//!
//! Guards: a statement reads one cut, a block reads one cut plus its own writes, and after an error a block does nothing but end.

mod block;
pub(crate) mod context;
mod limit;
mod prepared;
mod variables;

pub use block::TransactionStatus;
pub use variables::Variables;

use crate::{
    Result,
    database::Shared,
    execute,
    outcome::{Notice, Outcome, Prepared},
    statement::Statement,
};
use arrow::datatypes::DataType;
pub(crate) use block::Block;
use datafusion::{catalog::SchemaProvider, common::ScalarValue};
use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};
use tokio_util::sync::CancellationToken;

pub struct Session {
    pub(crate) shared: Arc<Shared>,
    /// The current database.
    pub(crate) database: String,
    pub(crate) variables: Variables,
    pub(crate) block: Option<Arc<Block>>,
    /// What PREPARE named.
    pub(crate) prepared: HashMap<String, Prepared>,
    pub(crate) notices: Vec<Notice>,
    /// Schemas beside the databases.
    pub(crate) schemas: BTreeMap<String, Arc<dyn SchemaProvider>>,
}

impl Session {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self {
            shared,
            database: crate::database::DEFAULT_DATABASE.to_owned(),
            variables: Variables::default(),
            block: None,
            prepared: HashMap::new(),
            notices: Vec::new(),
            schemas: BTreeMap::new(),
        }
    }

    /// The statements of a text; none of them has run.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn parse(&self, sql: &str) -> Result<Vec<Statement>> {
        Ok(crate::parse::parse(sql)?)
    }

    /// Looks the statement's names up: parameter types (as `hints` say, else inferred) and the columns of its result.
    ///
    /// # Errors
    /// What looking up says; in a block it fails the block.
    pub async fn prepare(&mut self, statement: Statement, hints: &[Option<DataType>]) -> Result<Prepared> {
        let done = prepared::prepare(self, statement, hints).await;
        self.note_failure(done)
    }

    /// Runs a statement; `cancel` stops it, its rows too.
    ///
    /// # Errors
    /// What the statement says; `25P02` in a block that has failed.
    pub async fn execute(&mut self, prepared: &Prepared, params: Vec<ScalarValue>, cancel: CancellationToken) -> Result<Outcome> {
        let limit = limit::Limit::start(cancel, self.variables.statement_timeout());
        let done = limit.run(execute::run(self, prepared, params)).await;
        self.note_failure(done).map(|outcome| limit.over(outcome, self.block.clone()))
    }

    /// Runs the statements of a text one after the other, without parameters.
    pub async fn run(&mut self, sql: &str) -> Result<Vec<Outcome>> {
        let mut outcomes = Vec::new();
        for statement in self.parse(sql)? {
            let prepared = self.prepare(statement, &[]).await?;
            outcomes.push(self.execute(&prepared, Vec::new(), CancellationToken::new()).await?);
        }
        Ok(outcomes)
    }

    fn note_failure<T>(&self, done: Result<T>) -> Result<T> {
        if done.is_err()
            && let Some(block) = &self.block
        {
            block.fail();
        }
        done
    }

    /// What the statements since the last call had to say beside their answers.
    pub fn take_notices(&mut self) -> Vec<Notice> {
        std::mem::take(&mut self.notices)
    }

    pub(crate) fn notice(&mut self, notice: Notice) {
        self.notices.push(notice);
    }

    pub fn database(&self) -> &str {
        &self.database
    }

    pub fn transaction_status(&self) -> TransactionStatus {
        self.block.as_ref().map_or(TransactionStatus::Idle, |b| b.status())
    }

    /// The value of a session setting, for drivers that are told of it.
    pub fn variable(&self, name: &str) -> Option<String> {
        self.variables.get(name)
    }

    /// As `SET name = value` does; for what a client says as it connects.
    ///
    /// # Errors
    /// For an unknown setting or a value it does not take.
    pub fn set_variable(&mut self, name: &str, value: &str) -> Result<()> {
        self.variables.set(name, value)
    }

    /// As `USE` does.
    ///
    /// # Errors
    /// Without such a database.
    pub fn use_database(&mut self, name: &str) -> Result<()> {
        self.shared.check_database(name)?;
        self.database = name.to_owned();
        Ok(())
    }

    /// Adds a schema that queries of this connection can name, such as pg_catalog.
    pub fn register_schema(&mut self, name: &str, schema: Arc<dyn SchemaProvider>) {
        self.schemas.insert(name.to_owned(), schema);
    }
}
