//! Statements about rows: queries, INSERT, DELETE, COPY, EXPLAIN.

use super::{Expression, Name, Position, Source, Statement, StreamName};
use datafusion::{
    common::format::ExplainStatementOptions,
    sql::{
        parser::Statement as DfStatement,
        sqlparser::ast::{self, Expr},
    },
};

/// Rows by DataFusion. What DataFusion would drop without a word (SAMPLE, SETTINGS, FORMAT, INTO, locks) is refused by the parser;
/// table versions stand both in `ast`, in `TableFactor::Table`, and in `versions`, so that the planner cannot miss one.
#[derive(Debug, Clone)]
pub struct Query {
    pub ast: Box<ast::Query>,
    /// Its text within the statement.
    pub source: Source,
    /// Every table reference that names a version, in the order written.
    pub versions: Vec<VersionedTable>,
}

/// Of the tree alone: blanks, comments and places do not count.
impl PartialEq for Query {
    fn eq(&self, other: &Self) -> bool {
        self.ast == other.ast
    }
}

impl Query {
    /// As DataFusion's planner takes it.
    pub fn to_datafusion(&self) -> DfStatement {
        DfStatement::Statement(Box::new(ast::Statement::Query(self.ast.clone())))
    }
}

/// `FROM name {VERSION | TIMESTAMP | FOR SYSTEM_TIME} AS OF at`
#[derive(Debug, Clone, PartialEq)]
pub struct VersionedTable {
    pub name: StreamName,
    pub at: AsOf,
    pub position: Position,
}

/// Which cut of a stream a query reads. Values may be parameters.
#[derive(Debug, Clone, PartialEq)]
pub enum AsOf {
    /// A number is an sn, a text the name of a tag or branch.
    Version(Expr),
    /// Main's newest record with time at or before this; `FOR SYSTEM_TIME AS OF` too.
    Timestamp(Expr),
}

#[derive(Debug, Clone, PartialEq)]
pub struct Insert {
    /// The stream, or `s.branch_b`.
    pub into: StreamName,
    /// `None`: all visible columns in order.
    pub columns: Option<Vec<Name>>,
    pub rows: InsertRows,
}

#[derive(Debug, Clone)]
pub enum InsertRows {
    /// Rows of equally many values. `DEFAULT` as a value is [`is_default`].
    Values {
        rows: Vec<Vec<Expr>>,
        /// The text from VALUES on.
        source: Source,
    },
    Query(Query),
    /// `DEFAULT VALUES`: one row.
    Default,
}

impl PartialEq for InsertRows {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Values { rows: a, .. }, Self::Values { rows: b, .. }) => a == b,
            (Self::Query(a), Self::Query(b)) => a == b,
            (Self::Default, Self::Default) => true,
            _ => false,
        }
    }
}

/// Whether a value of VALUES is the word DEFAULT.
pub fn is_default(value: &Expr) -> bool {
    matches!(value, Expr::Identifier(i) if i.quote_style.is_none() && i.value.eq_ignore_ascii_case("default"))
}

#[derive(Debug, Clone, PartialEq)]
pub struct Delete {
    /// The stream, or `s.branch_b`.
    pub from: StreamName,
    pub alias: Option<Name>,
    /// `None`: every row.
    pub condition: Option<Expression>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Explain {
    pub options: ExplainStatementOptions,
    /// A query, INSERT or DELETE.
    pub statement: Box<Statement>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Copy {
    /// `COPY s [(cols)] FROM STDIN`
    From { into: StreamName, columns: Option<Vec<Name>>, options: CopyOptions },
    /// `COPY s [(cols)] TO STDOUT`
    To { from: StreamName, columns: Option<Vec<Name>>, options: CopyOptions },
    /// `COPY (query) TO STDOUT`
    QueryTo { query: Query, options: CopyOptions },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CopyFormat {
    #[default]
    Text,
    Csv,
    Binary,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CopyHeader {
    #[default]
    Off,
    On,
    /// FROM only: the header must name the columns.
    Match,
}

/// Options as PostgreSQL's COPY knows them, checked against each other; what was not said is `None`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CopyOptions {
    pub format: CopyFormat,
    pub header: CopyHeader,
    pub delimiter: Option<char>,
    pub null: Option<String>,
    /// FROM only: the text that stands for the column's default.
    pub default: Option<String>,
    pub quote: Option<char>,
    pub escape: Option<char>,
    pub force_quote: Option<ForceColumns>,
    pub force_not_null: Option<ForceColumns>,
    pub force_null: Option<ForceColumns>,
    pub encoding: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ForceColumns {
    All,
    Columns(Vec<Name>),
}

impl CopyOptions {
    pub fn delimiter(&self) -> char {
        self.delimiter.unwrap_or(if self.format == CopyFormat::Csv { ',' } else { '\t' })
    }
    /// What stands for NULL.
    pub fn null(&self) -> &str {
        self.null.as_deref().unwrap_or(if self.format == CopyFormat::Csv { "" } else { "\\N" })
    }
    pub fn quote(&self) -> char {
        self.quote.unwrap_or('"')
    }
    pub fn escape(&self) -> char {
        self.escape.unwrap_or_else(|| self.quote())
    }
}
