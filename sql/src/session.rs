//! One connection: its settings, the current database among them, its transaction block, its prepared statements. Nothing of it is shared, so nothing
//! leaks from one connection to another.
//!
//! Guards: a statement reads one cut, a block reads one cut plus its own writes, and after an error a block does nothing but end.

mod block;
pub(crate) mod context;
mod lease;
mod limit;
mod prepared;
mod running;
mod variables;

pub use block::TransactionStatus;
pub(crate) use variables::Until;
pub use variables::Variables;

use crate::{
    Result,
    database::Shared,
    execute,
    outcome::{Notice, Outcome, Prepared},
    statement::{Statement, Verb},
};
use arrow::datatypes::{DataType, SchemaRef};
pub(crate) use block::Block;
use datafusion::{catalog::SchemaProvider, common::ScalarValue};
pub(crate) use limit::{Limit, Watch};
pub(crate) use prepared::ends_block;
pub(crate) use running::{Entry, Listed, Running};
use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};
use tokio_util::sync::CancellationToken;

pub struct Session {
    pub(crate) shared: Arc<Shared>,
    /// In `system.queries`.
    pub(crate) id: u64,
    /// Who connected; nobody within a program.
    pub(crate) user: String,
    pub(crate) variables: Variables,
    pub(crate) block: Option<Arc<Block>>,
    /// What PREPARE named.
    pub(crate) prepared: HashMap<String, Prepared>,
    pub(crate) notices: Vec<Notice>,
    /// What ends the statement that was run last, whose rows may be read yet.
    watch: Option<Arc<Watch>>,
    /// Cuts that it keeps readable.
    leases: lease::Leases,
    /// Schemas beside the databases.
    pub(crate) schemas: BTreeMap<String, Arc<dyn SchemaProvider>>,
}

impl Session {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self {
            id: shared.running.new_session(),
            shared,
            user: String::new(),
            variables: Variables::default(),
            block: None,
            prepared: HashMap::new(),
            notices: Vec::new(),
            watch: None,
            leases: lease::Leases::default(),
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
        self.prepare_until(statement, hints, CancellationToken::new()).await
    }

    /// [`Self::prepare`]; `cancel` and `statement_timeout` end it, as they end what is executed.
    ///
    /// # Errors
    /// As [`Self::prepare`].
    pub async fn prepare_until(&mut self, statement: Statement, hints: &[Option<DataType>], cancel: CancellationToken) -> Result<Prepared> {
        let listed = self.shared.running.begin(self, &statement.shown());
        let limit = limit::Limit::start(cancel, self.variables.statement_timeout(), listed);
        let done = limit.run(Box::pin(prepared::prepare(self, statement, hints))).await;
        self.note_failure(done)
    }

    /// [`Self::prepare`] within a statement, whose limits hold.
    pub(crate) async fn look_up(&mut self, statement: Statement, hints: &[Option<DataType>]) -> Result<Prepared> {
        prepared::prepare(self, statement, hints).await
    }

    /// The columns of its rows where only its parameters tell them.
    ///
    /// # Errors
    /// As [`Self::execute`].
    pub async fn columns(&mut self, prepared: &Prepared, params: &[ScalarValue]) -> Result<Option<SchemaRef>> {
        let done = prepared::columns(self, prepared, params).await;
        self.note_failure(done)
    }

    /// Runs a statement; `cancel` stops it, its rows too.
    ///
    /// # Errors
    /// What the statement says; `25P02` in a block that has failed.
    pub async fn execute(&mut self, prepared: &Prepared, params: Vec<ScalarValue>, cancel: CancellationToken) -> Result<Outcome> {
        let listed = self.shared.running.begin(self, &prepared.statement.shown());
        let limit = limit::Limit::start(cancel, self.variables.statement_timeout(), listed);
        // What every statement may do is one large future: on the heap, planning has the stack to itself.
        let done = limit.run(Box::pin(execute::run(self, prepared, params))).await;
        self.watch = Some(limit.watch());
        self.note_failure(done).map(|outcome| limit.over(outcome, self.block.clone()))
    }

    /// Runs the statements of a text one after the other, without parameters. Several are one transaction, as [`Self::join`] says.
    pub async fn run(&mut self, sql: &str) -> Result<Vec<Outcome>> {
        let done = self.run_all(sql).await;
        if done.is_err() {
            self.give_up();
        }
        done
    }

    async fn run_all(&mut self, sql: &str) -> Result<Vec<Outcome>> {
        let statements = self.parse(sql)?;
        let several = statements.len() > 1;
        let mut outcomes = Vec::with_capacity(statements.len());
        for statement in statements {
            if several {
                self.join(&statement.verb).await?;
            }
            let prepared = self.prepare(statement, &[]).await?;
            outcomes.push(self.execute(&prepared, Vec::new(), CancellationToken::new()).await?);
        }
        self.end_implicit().await?;
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

    /// Before a statement that is one of several of a message, or of what a client sent before a Sync: all of them are one transaction,
    /// which ends before a statement that cannot be in one.
    ///
    /// # Errors
    /// What the commit says of the statements before.
    pub async fn join(&mut self, verb: &Verb) -> Result<()> {
        let ends = execute::outside_blocks(verb).is_some();
        let own = matches!(
            verb,
            Verb::Begin(_) | Verb::Commit | Verb::Rollback | Verb::Savepoint(_) | Verb::ReleaseSavepoint(_) | Verb::RollbackTo(_)
        );
        if ends {
            return self.end_implicit().await;
        }
        if self.block.is_none() && !own {
            execute::begin_implicit(self);
        }
        Ok(())
    }

    /// Whether statements were joined and their transaction is to be ended.
    pub fn in_implicit(&self) -> bool {
        self.block.as_ref().is_some_and(|b| b.is_implicit())
    }

    /// Commits what was joined; nothing where BEGIN has made a block of it.
    ///
    /// # Errors
    /// What the commit says; nothing of it is kept then.
    pub async fn end_implicit(&mut self) -> Result<()> {
        if self.in_implicit() {
            execute::commit_block(self).await?;
        }
        Ok(())
    }

    /// After an error: what was joined is forgotten, a block has failed.
    pub fn give_up(&mut self) {
        match &self.block {
            Some(block) if block.is_implicit() => _ = execute::roll_back(self),
            Some(block) => block.fail(),
            None => {}
        }
    }

    /// What the statements since the last call had to say beside their answers.
    pub fn take_notices(&mut self) -> Vec<Notice> {
        std::mem::take(&mut self.notices)
    }

    /// Of the statement that was run last.
    pub(crate) fn take_watch(&mut self) -> Option<Arc<Watch>> {
        self.watch.take()
    }

    pub(crate) fn notice(&mut self, notice: Notice) {
        self.notices.push(notice);
    }

    pub fn database(&self) -> &str {
        self.variables.database()
    }

    pub fn transaction_status(&self) -> TransactionStatus {
        self.block.as_ref().filter(|b| !b.is_implicit()).map_or(TransactionStatus::Idle, |b| b.status())
    }

    /// The value of a session setting, for drivers that are told of it.
    pub fn variable(&self, name: &str) -> Option<String> {
        self.variables.get(name)
    }

    /// What a client says as it connects: as `SET name = value` does, and RESET goes back to it.
    ///
    /// # Errors
    /// For an unknown setting or a value it does not take.
    pub fn set_variable(&mut self, name: &str, value: &str) -> Result<()> {
        self.set_until(Until::End, name, value)
    }

    /// The database that a client connects to.
    ///
    /// # Errors
    /// Without such a database.
    pub fn connect_to(&mut self, database: &str) -> Result<()> {
        self.shared.check_database(database)?;
        self.variables.connect(database);
        Ok(())
    }

    pub(crate) fn set_until(&mut self, until: Until, name: &str, value: &str) -> Result<()> {
        let shared = self.shared.clone();
        self.variables.set(name, value, until, |database| shared.check_database(database).is_ok())
    }

    /// Who this is, as `system.queries` shows it.
    pub fn set_user(&mut self, name: &str) {
        name.clone_into(&mut self.user);
    }

    /// As `USE` does.
    ///
    /// # Errors
    /// Without such a database.
    pub fn use_database(&mut self, name: &str) -> Result<()> {
        self.shared.check_database(name)?;
        self.variables.use_database(name);
        Ok(())
    }

    /// Adds a schema that queries of this connection can name, such as pg_catalog.
    pub fn register_schema(&mut self, name: &str, schema: Arc<dyn SchemaProvider>) {
        self.schemas.insert(name.to_owned(), schema);
    }
}
