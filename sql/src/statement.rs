//! Statements as syntax: what the text says, with nothing looked up. `parse` makes them, `bind` gives them meaning.
//!
//! Every statement Ebb has is one variant of [`Verb`] with a plain struct of its own, those too that a later stage carries out.
//! Types, codecs, intervals and destinations are already storage's values, since their syntax is their meaning; names, rules and
//! expressions are not. `Display` prints canonical SQL that parses to an equal statement.

mod admin;
mod data;
mod display;
mod expression;
mod history;
mod name;
mod session;
mod source;
mod stream;

pub use admin::*;
pub use data::*;
pub use expression::{Expression, Literal};
pub use history::*;
pub(crate) use name::is_reserved;
pub use name::{Name, StreamName, quote_name, quote_text};
pub use session::*;
pub use source::Source;
use std::borrow::Cow;
pub use stream::*;

/// One statement and the text it was parsed from.
///
/// Equality is of meaning: the verb alone, never the text or its place.
#[derive(Debug, Clone)]
pub struct Statement {
    pub verb: Verb,
    /// Its own text, without the semicolon and without blanks or comments around it.
    pub source: Source,
    /// How many parameters it names: the highest `$n`.
    pub parameters: usize,
}

impl Statement {
    /// What others are shown of it: its text, without the secrets that it tells.
    pub fn shown(&self) -> Cow<'_, str> {
        match &self.verb {
            Verb::CreateDisk(disk) => Cow::Owned(Verb::CreateDisk(disk.without_secrets()).to_string()),
            Verb::Prepare(prepare) => match prepare.statement.shown() {
                Cow::Borrowed(_) => Cow::Borrowed(self.source.text()),
                Cow::Owned(inner) => Cow::Owned(format!("PREPARE {} AS {inner}", prepare.name)),
            },
            _ => Cow::Borrowed(self.source.text()),
        }
    }
}

impl PartialEq for Statement {
    fn eq(&self, other: &Self) -> bool {
        self.verb == other.verb
    }
}

/// What a statement asks for.
#[derive(Debug, Clone, PartialEq)]
pub enum Verb {
    /// SELECT, VALUES, TABLE, WITH: rows.
    Query(Query),
    Insert(Insert),
    Delete(Delete),
    Copy(Copy),

    CreateStream(Box<CreateStream>),
    AlterStream(AlterStream),
    DropStream(DropStream),
    TruncateStream(TruncateStream),
    RenameStream(RenameStream),
    DescribeStream(StreamName),
    Optimize(Optimize),

    Show(Show),
    /// EXPLAIN of a query or INSERT: DataFusion's plan.
    Explain(Explain),
    ExplainLifecycle(ExplainLifecycle),
    Preview(Preview),
    System(System),

    CreateDisk(CreateDisk),
    DropDisk(DropDisk),
    CreateStoragePolicy(CreateStoragePolicy),
    DropStoragePolicy(DropStoragePolicy),
    CreateDatabase(CreateDatabase),
    DropDatabase(DropDatabase),
    AlterDatabase(AlterDatabase),
    UseDatabase(Name),

    Call(Call),
    CreateReader(CreateReader),
    DropReader(DropReader),
    CreateHold(CreateHold),
    ReleaseHold(ReleaseHold),
    CreateRollup(CreateRollup),
    DropRollup(DropRollup),
    Backup(Backup),
    Restore(Restore),

    Begin(TransactionModes),
    Commit,
    Rollback,
    Savepoint(Name),
    ReleaseSavepoint(Name),
    RollbackTo(Name),
    SetTransaction(SetTransaction),
    Set(Set),
    Reset(Reset),
    Prepare(Prepare),
    Execute(Execute),
    Deallocate(Deallocate),
    Discard(Discard),
}
