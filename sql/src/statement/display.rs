//! Canonical SQL of every statement; it parses to an equal one.
//!
//! Queries and rows of VALUES print as they were written: sqlparser's own printing does not always read back.

use super::*;
use crate::format;
use ebb_storage::interval::Interval;
use std::fmt::{self, Display, Formatter};

/// ` word`, if `yes`.
fn flag(yes: bool, word: &str) -> String {
    if yes { format!(" {word}") } else { String::new() }
}

fn option<T: Display>(before: &str, value: Option<&T>) -> String {
    value.map_or_else(String::new, |v| format!(" {before}{v}"))
}

fn text_option(word: &str, value: Option<&String>) -> String {
    value.map_or_else(String::new, |v| format!(" {word} {}", quote_text(v)))
}

fn joined<T: Display>(items: &[T]) -> String {
    items.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

fn columns(columns: Option<&Vec<Name>>) -> String {
    columns.map_or_else(String::new, |c| format!(" ({})", joined(c)))
}

impl Display for Statement {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.verb.fmt(f)
    }
}

impl Display for Verb {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Query(v) => v.fmt(f),
            Self::Insert(v) => v.fmt(f),
            Self::Delete(v) => {
                write!(f, "DELETE FROM {}{}{}", v.from, option("AS ", v.alias.as_ref()), option("WHERE ", v.condition.as_ref()))
            }
            Self::Copy(v) => v.fmt(f),
            Self::CreateStream(v) => v.fmt(f),
            Self::AlterStream(v) => v.fmt(f),
            Self::DropStream(v) => write!(f, "DROP STREAM{} {}", flag(v.if_exists, "IF EXISTS"), joined(&v.names)),
            Self::TruncateStream(v) => write!(f, "TRUNCATE STREAM{} {}", flag(v.if_exists, "IF EXISTS"), v.name),
            Self::RenameStream(v) => write!(f, "RENAME STREAM{} {} TO {}", flag(v.if_exists, "IF EXISTS"), v.from, v.to),
            Self::DescribeStream(name) => write!(f, "DESCRIBE STREAM {name}"),
            Self::Optimize(v) => v.fmt(f),
            Self::Show(v) => v.fmt(f),
            Self::Explain(v) => v.fmt(f),
            Self::ExplainLifecycle(v) => {
                write!(f, "EXPLAIN LIFECYCLE FOR STREAM {}{}", v.stream, option("AT TIMESTAMP ", v.at.as_ref()))
            }
            Self::Preview(v) => {
                match &v.of {
                    Previewed::Alter(alter) => write!(f, "PREVIEW {alter}")?,
                    Previewed::Optimize(optimize) => write!(f, "PREVIEW {optimize}")?,
                }
                f.write_str(&option("AT TIMESTAMP ", v.at.as_ref()))
            }
            Self::System(v) => v.fmt(f),
            Self::CreateDisk(_)
            | Self::DropDisk(_)
            | Self::CreateStoragePolicy(_)
            | Self::DropStoragePolicy(_)
            | Self::CreateDatabase(_)
            | Self::DropDatabase(_)
            | Self::AlterDatabase(_)
            | Self::UseDatabase(_) => self.fmt_places(f),
            Self::Call(v) => v.fmt(f),
            Self::CreateReader(_)
            | Self::DropReader(_)
            | Self::CreateHold(_)
            | Self::ReleaseHold(_)
            | Self::CreateRollup(_)
            | Self::DropRollup(_)
            | Self::Backup(_)
            | Self::Restore(_) => self.fmt_history(f),
            _ => self.fmt_session(f),
        }
    }
}

impl Verb {
    fn fmt_places(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::CreateDisk(v) => {
                let options: Vec<String> = v.options.iter().map(|o| format!("{} = {}", o.name, o.value)).collect();
                let (replace, exists) = (flag(v.or_replace, "OR REPLACE"), flag(v.if_not_exists, "IF NOT EXISTS"));
                write!(f, "CREATE{replace} DISK{exists} {} disk({})", v.name, options.join(", "))
            }
            Self::DropDisk(v) => write!(f, "DROP DISK{} {}", flag(v.if_exists, "IF EXISTS"), v.name),
            Self::CreateStoragePolicy(v) => {
                let (replace, exists) = (flag(v.or_replace, "OR REPLACE"), flag(v.if_not_exists, "IF NOT EXISTS"));
                write!(f, "CREATE{replace} STORAGE POLICY{exists} {} AS {}", v.name, dollars(&v.body))
            }
            Self::DropStoragePolicy(v) => write!(f, "DROP STORAGE POLICY{} {}", flag(v.if_exists, "IF EXISTS"), v.name),
            Self::CreateDatabase(v) => write!(f, "CREATE DATABASE{} {}", flag(v.if_not_exists, "IF NOT EXISTS"), v.name),
            Self::DropDatabase(v) => {
                write!(f, "DROP DATABASE{} {}{}", flag(v.if_exists, "IF EXISTS"), v.name, flag(v.cascade, "CASCADE"))
            }
            Self::AlterDatabase(v) if v.retention.is_empty() => write!(f, "ALTER DATABASE {} REMOVE RETENTION", v.name),
            Self::AlterDatabase(v) => write!(f, "ALTER DATABASE {} MODIFY RETENTION {}", v.name, joined(&v.retention)),
            Self::UseDatabase(name) => write!(f, "USE {name}"),
            _ => Ok(()),
        }
    }

    fn fmt_history(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::CreateReader(v) => {
                write!(f, "CREATE READER{} {} ON {}", flag(v.if_not_exists, "IF NOT EXISTS"), v.name, v.stream)?;
                match &v.from {
                    ReaderStart::Earliest => f.write_str(" FROM EARLIEST")?,
                    ReaderStart::Latest => f.write_str(" FROM LATEST")?,
                    ReaderStart::Sn(sn) => write!(f, " FROM {sn}")?,
                }
                f.write_str(&option("MAX LAG ", v.max_lag.as_ref()))
            }
            Self::DropReader(v) => write!(f, "DROP READER{} {}", flag(v.if_exists, "IF EXISTS"), v.name),
            Self::CreateHold(v) => {
                write!(f, "CREATE HOLD{} {} ON {}", flag(v.if_not_exists, "IF NOT EXISTS"), v.name, v.stream)?;
                f.write_str(&option("WHERE ", v.condition.as_ref()))?;
                f.write_str(&text_option("REASON", v.reason.as_ref()))?;
                f.write_str(&option("UNTIL ", v.until.as_ref()))
            }
            Self::ReleaseHold(v) => write!(f, "RELEASE HOLD{} {} ON {}", flag(v.if_exists, "IF EXISTS"), v.name, v.stream),
            Self::CreateRollup(v) => {
                let exists = flag(v.if_not_exists, "IF NOT EXISTS");
                write!(f, "CREATE ROLLUP{exists} {} ON {} AS {}", v.name, v.stream, v.query)
            }
            Self::DropRollup(v) => write!(f, "DROP ROLLUP{} {} ON {}", flag(v.if_exists, "IF EXISTS"), v.name, v.stream),
            Self::Backup(v) => write!(f, "BACKUP STREAM {} TO {}{}", v.stream, v.to, flag(v.with_history, "WITH HISTORY")),
            Self::Restore(v) => {
                let (name, prune) = (option("AS ", v.as_name.as_ref()), flag(v.with_prune, "WITH PRUNE"));
                write!(f, "RESTORE STREAM {} FROM {}{name}{prune}", v.stream, v.from)
            }
            _ => Ok(()),
        }
    }

    fn fmt_session(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Begin(modes) => write!(f, "BEGIN{modes}"),
            Self::Commit => f.write_str("COMMIT"),
            Self::Rollback => f.write_str("ROLLBACK"),
            Self::Savepoint(name) => write!(f, "SAVEPOINT {name}"),
            Self::ReleaseSavepoint(name) => write!(f, "RELEASE SAVEPOINT {name}"),
            Self::RollbackTo(name) => write!(f, "ROLLBACK TO SAVEPOINT {name}"),
            Self::SetTransaction(SetTransaction { session: true, modes }) => {
                write!(f, "SET SESSION CHARACTERISTICS AS TRANSACTION{modes}")
            }
            Self::SetTransaction(SetTransaction { session: false, modes }) => write!(f, "SET TRANSACTION{modes}"),
            Self::Set(v) => {
                let scope = match v.scope {
                    SetScope::Session => "SESSION",
                    SetScope::Local => "LOCAL",
                    SetScope::Global => "GLOBAL",
                };
                write!(f, "SET {scope} {} = ", dotted(&v.name))?;
                match &v.value {
                    SetValue::Default => f.write_str("DEFAULT"),
                    SetValue::Values(values) => f.write_str(&joined(values)),
                }
            }
            Self::Reset(Reset::All) => f.write_str("RESET ALL"),
            Self::Reset(Reset::Variable(name)) => write!(f, "RESET {}", dotted(name)),
            Self::Reset(Reset::Global(name)) => write!(f, "RESET GLOBAL {}", dotted(name)),
            Self::Prepare(v) => {
                let types = if v.types.is_empty() { String::new() } else { format!(" ({})", joined(&v.types)) };
                write!(f, "PREPARE {}{types} AS {}", v.name, v.statement)
            }
            Self::Execute(v) if v.args.is_empty() => write!(f, "EXECUTE {}", v.name),
            Self::Execute(v) => write!(f, "EXECUTE {} ({})", v.name, joined(&v.args)),
            Self::Deallocate(Deallocate::All) => f.write_str("DEALLOCATE ALL"),
            Self::Deallocate(Deallocate::Name(name)) => write!(f, "DEALLOCATE {name}"),
            Self::Discard(what) => f.write_str(match what {
                Discard::All => "DISCARD ALL",
                Discard::Plans => "DISCARD PLANS",
                Discard::Sequences => "DISCARD SEQUENCES",
                Discard::Temp => "DISCARD TEMP",
            }),
            _ => Ok(()),
        }
    }
}

/// A dotted name, each part quoted where needed.
fn dotted(name: &str) -> String {
    name.split('.').map(quote_name).collect::<Vec<_>>().join(".")
}

/// In dollar quotes, or as a plain literal where those would end early.
fn dollars(body: &str) -> String {
    if body.contains('$') { quote_text(body) } else { format!("$${body}$$") }
}

impl Display for Query {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(self.source.text())
    }
}

impl Display for Insert {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "INSERT INTO {}{} ", self.into, columns(self.columns.as_ref()))?;
        match &self.rows {
            InsertRows::Values { source, .. } => f.write_str(source.text()),
            InsertRows::Query(query) => query.fmt(f),
            InsertRows::Default => f.write_str("DEFAULT VALUES"),
        }
    }
}

impl Display for Copy {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::From { into, columns: c, options } => write!(f, "COPY {into}{} FROM STDIN{options}", columns(c.as_ref())),
            Self::To { from, columns: c, options } => write!(f, "COPY {from}{} TO STDOUT{options}", columns(c.as_ref())),
            Self::QueryTo { query, options } => write!(f, "COPY ({query}) TO STDOUT{options}"),
        }
    }
}

impl Display for CopyOptions {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut options = Vec::new();
        match self.format {
            CopyFormat::Text => {}
            CopyFormat::Csv => options.push("FORMAT csv".to_owned()),
            CopyFormat::Binary => options.push("FORMAT binary".to_owned()),
        }
        match self.header {
            CopyHeader::Off => {}
            CopyHeader::On => options.push("HEADER".to_owned()),
            CopyHeader::Match => options.push("HEADER match".to_owned()),
        }
        let chars = [("DELIMITER", self.delimiter), ("QUOTE", self.quote), ("ESCAPE", self.escape)];
        options.extend(chars.iter().filter_map(|(word, c)| c.map(|c| format!("{word} {}", quote_text(&c.to_string())))));
        let texts = [("NULL", &self.null), ("DEFAULT", &self.default), ("ENCODING", &self.encoding)];
        options.extend(texts.iter().filter_map(|(word, t)| t.as_ref().map(|t| format!("{word} {}", quote_text(t)))));
        let force = [("FORCE_QUOTE", &self.force_quote), ("FORCE_NOT_NULL", &self.force_not_null), ("FORCE_NULL", &self.force_null)];
        for (word, columns) in force {
            match columns {
                None => {}
                Some(ForceColumns::All) => options.push(format!("{word} *")),
                Some(ForceColumns::Columns(names)) => options.push(format!("{word} ({})", joined(names))),
            }
        }
        if options.is_empty() { Ok(()) } else { write!(f, " WITH ({})", options.join(", ")) }
    }
}

impl Display for CreateStream {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut items: Vec<String> = self.columns.iter().map(ToString::to_string).collect();
        items.extend(self.indexes.iter().map(ToString::to_string));
        let mut clauses = Vec::new();
        let keys = [("PARTITION BY", &self.partition_by), ("ORDER BY", &self.order_by), ("PRIMARY KEY", &self.primary_key)];
        clauses.extend(keys.iter().filter_map(|(word, key)| key.as_ref().map(|key| format!("{word} {}", format::key(key)))));
        if !self.series_key.is_empty() {
            clauses.push(format!("SERIES KEY ({})", joined(&self.series_key)));
        }
        clauses.extend(format::list("TTL", self.ttl.iter().map(ToString::to_string)));
        clauses.extend(format::list("RETENTION", self.retention.iter().map(ToString::to_string)));
        clauses.extend(format::list("SETTINGS", self.settings.iter().map(ToString::to_string)));
        clauses.extend(self.comment.as_ref().map(|c| format!("COMMENT {}", quote_text(c))));
        clauses.extend(self.query.as_ref().map(|q| format!("AS {q}")));
        let head = format!("CREATE STREAM{} {}", flag(self.if_not_exists, "IF NOT EXISTS"), self.name);
        f.write_str(&format::lines(&head, &items, &clauses))
    }
}

impl Display for Column {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&format::column_text(&format::ColumnParts {
            name: &self.name.text,
            ty: Some(&self.ty),
            nullable: self.nullable.then_some(true),
            default: self.default.as_ref().map(|d| (d.kind, d.expr.text.as_str())),
            comment: self.comment.as_deref(),
            codec: self.codec.as_ref(),
            ttl: self.ttl.as_ref().map(|t| t.text.as_str()),
        }))
    }
}

impl Display for ModifyColumn {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&format::column_text(&format::ColumnParts {
            name: &self.name.text,
            ty: self.ty.as_ref(),
            nullable: self.nullable,
            default: self.default.as_ref().map(|d| (d.kind, d.expr.text.as_str())),
            comment: self.comment.as_deref(),
            codec: self.codec.as_ref(),
            ttl: self.ttl.as_ref().map(|t| t.text.as_str()),
        }))
    }
}

impl Display for Index {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&format::index_text(&self.name.text, &self.expr.text, &self.kind, self.granularity))
    }
}

impl Display for Setting {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&format::setting(&self.name.text, &self.value))
    }
}

impl Display for Rule {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.when)?;
        match &self.action {
            Action::Delete { only } => write!(f, "DELETE{}", option("WHERE ", only.as_ref())),
            Action::Recompress(codec) => write!(f, "RECOMPRESS CODEC({codec})"),
            Action::Move(to) => f.write_str(&format::destination(to)),
            Action::GroupBy { keys, set } => {
                f.write_str(&format::group_by(&joined(keys), set.iter().map(|(column, value)| format!("{column} = {value}"))))
            }
        }
    }
}

impl Display for Stage {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Keep { after, keep } => write!(f, "{after} KEEP WHERE {keep}"),
            Self::Drop { after } => write!(f, "{after} DROP"),
            Self::MaxAge(age) => write!(f, "MAX AGE {age}"),
            Self::MaxBytes(n) => write!(f, "MAX BYTES {n}"),
            Self::MaxRows(n) => write!(f, "MAX ROWS {n}"),
        }
    }
}

impl Display for AlterStream {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "ALTER STREAM{} {} {}", flag(self.if_exists, "IF EXISTS"), self.name, joined(&self.actions))
    }
}

impl Display for AlterAction {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::ModifyTtl(rules) => write!(f, "MODIFY TTL {}", joined(rules)),
            Self::RemoveTtl => f.write_str("REMOVE TTL"),
            Self::MaterializeTtl { partition } => write!(f, "MATERIALIZE TTL{}", option("IN PARTITION ", partition.as_ref())),
            Self::ModifyRetention(stages) => write!(f, "MODIFY RETENTION {}", joined(stages)),
            Self::RemoveRetention => f.write_str("REMOVE RETENTION"),
            Self::ModifySetting(settings) => write!(f, "MODIFY SETTING {}", joined(settings)),
            Self::ResetSetting(names) => write!(f, "RESET SETTING {}", joined(names)),
            Self::AddColumn { if_not_exists, column } => write!(f, "ADD COLUMN{} {column}", flag(*if_not_exists, "IF NOT EXISTS")),
            Self::DropColumn { if_exists, name } => write!(f, "DROP COLUMN{} {name}", flag(*if_exists, "IF EXISTS")),
            Self::RenameColumn { from, to } => write!(f, "RENAME COLUMN {from} TO {to}"),
            Self::ModifyColumn(column) => write!(f, "MODIFY COLUMN {column}"),
            Self::CommentColumn { name, comment } => write!(f, "COMMENT COLUMN {name} {}", quote_text(comment)),
            Self::ModifyComment(comment) => write!(f, "MODIFY COMMENT {}", quote_text(comment)),
            Self::DropPartition(partition) => write!(f, "DROP PARTITION {partition}"),
            Self::Move { what, to } => match what {
                Movable::Partition(partition) => write!(f, "MOVE PARTITION {partition} {}", format::destination(to)),
                Movable::Part(part) => write!(f, "MOVE PART {} {}", quote_text(part), format::destination(to)),
            },
            Self::CreateRef(created) => created.fmt(f),
            Self::DropRef(v) => write!(f, "DROP {}{} {}", v.kind, flag(v.if_exists, "IF EXISTS"), v.name),
        }
    }
}

impl Display for RefKind {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tag => "TAG",
            Self::Branch => "BRANCH",
        })
    }
}

impl Display for CreateRef {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mode = match self.mode {
            RefMode::Create => "CREATE",
            RefMode::CreateOrReplace => "CREATE OR REPLACE",
            RefMode::Replace => "REPLACE",
        };
        write!(f, "{mode} {}{} {}", self.kind, flag(self.if_not_exists, "IF NOT EXISTS"), self.name)?;
        f.write_str(&option("AS OF VERSION ", self.as_of.as_ref()))?;
        f.write_str(&option("RETAIN ", self.retain.as_ref()))?;
        if let Some(SnapshotRetention { min_snapshots, max_age }) = &self.snapshot_retention {
            f.write_str(" WITH SNAPSHOT RETENTION")?;
            if let Some(n) = min_snapshots {
                write!(f, " {n} SNAPSHOTS")?;
            }
            f.write_str(&option::<Interval>("", max_age.as_ref()))?;
        }
        Ok(())
    }
}

impl Display for Partition {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Id(id) => write!(f, "ID {}", quote_text(id)),
            Self::Value(values) => match values.as_slice() {
                [] => f.write_str("tuple()"),
                [one] => one.fmt(f),
                values => write!(f, "({})", joined(values)),
            },
        }
    }
}

impl Display for Optimize {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "OPTIMIZE STREAM {}{}{}", self.name, option("PARTITION ", self.partition.as_ref()), flag(self.final_, "FINAL"))?;
        match &self.deduplicate {
            None => Ok(()),
            Some(Deduplicate::All) => f.write_str(" DEDUPLICATE"),
            Some(Deduplicate::By(columns)) => write!(f, " DEDUPLICATE BY {}", joined(columns)),
        }
    }
}

impl Display for Show {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Streams { database, like } => {
                write!(f, "SHOW STREAMS{}{}", option("FROM ", database.as_ref()), text_option("LIKE", like.as_ref()))
            }
            Self::Databases { like } => write!(f, "SHOW DATABASES{}", text_option("LIKE", like.as_ref())),
            Self::CreateStream(name) => write!(f, "SHOW CREATE STREAM {name}"),
            Self::CreateDisk(name) => write!(f, "SHOW CREATE DISK {name}"),
            Self::CreateStoragePolicy(name) => write!(f, "SHOW CREATE STORAGE POLICY {name}"),
            Self::Disks => f.write_str("SHOW DISKS"),
            Self::StoragePolicies => f.write_str("SHOW STORAGE POLICIES"),
            Self::Settings { like } => write!(f, "SHOW SETTINGS{}", text_option("LIKE", like.as_ref())),
            Self::All => f.write_str("SHOW ALL"),
            Self::Variable(name) => write!(f, "SHOW {}", dotted(name)),
        }
    }
}

impl Display for Explain {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let o = &self.options;
        let mut parts = Vec::new();
        if o.analyze {
            parts.push("ANALYZE".to_owned());
        }
        if o.verbose {
            parts.push("VERBOSE".to_owned());
        }
        parts.extend(o.format.as_ref().map(|v| format!("FORMAT {v}")));
        parts.extend(o.analyze_level.as_ref().map(|v| format!("LEVEL {v}")));
        parts.extend(o.analyze_categories.as_ref().map(|v| format!("METRICS '{v}'")));
        parts.extend(o.show_statistics.map(|on| format!("COSTS {}", if on { "ON" } else { "OFF" })));
        let options = if parts.is_empty() { String::new() } else { format!(" ({})", parts.join(", ")) };
        write!(f, "EXPLAIN{options} {}", self.statement)
    }
}

impl Display for System {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stop { what, stream } => write!(f, "SYSTEM STOP {what}{}", option("", stream.as_ref())),
            Self::Start { what, stream } => write!(f, "SYSTEM START {what}{}", option("", stream.as_ref())),
            Self::Flush(stream) => write!(f, "SYSTEM FLUSH{}", option("", stream.as_ref())),
            Self::Settle(stream) => write!(f, "SYSTEM SETTLE{}", option("", stream.as_ref())),
            Self::AdvanceClock(by) => write!(f, "SYSTEM ADVANCE CLOCK {by}"),
            Self::Status => f.write_str("SYSTEM STATUS"),
        }
    }
}

impl Display for Stoppable {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Merges { volume: None } => f.write_str("MERGES"),
            Self::Merges { volume: Some(v) } => write!(f, "MERGES ON VOLUME {}.{}", v.policy, v.volume),
            Self::TtlMerges => f.write_str("TTL MERGES"),
            Self::Moves => f.write_str("MOVES"),
        }
    }
}

impl Display for BackupPlace {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Disk(name) => write!(f, "DISK {name}"),
            Self::Path(path) => f.write_str(&quote_text(path)),
        }
    }
}

impl Display for Call {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let arg = |a: &CallArg| a.name.as_ref().map_or_else(|| a.value.to_string(), |n| format!("{n} => {}", a.value));
        write!(f, "CALL {}({})", self.procedure, self.args.iter().map(arg).collect::<Vec<_>>().join(", "))
    }
}

/// With a blank before each mode.
impl Display for TransactionModes {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if let Some(isolation) = self.isolation {
            let level = match isolation {
                Isolation::ReadUncommitted => "READ UNCOMMITTED",
                Isolation::ReadCommitted => "READ COMMITTED",
                Isolation::RepeatableRead => "REPEATABLE READ",
                Isolation::Serializable => "SERIALIZABLE",
            };
            write!(f, " ISOLATION LEVEL {level}")?;
        }
        if let Some(read_only) = self.read_only {
            f.write_str(if read_only { " READ ONLY" } else { " READ WRITE" })?;
        }
        match self.deferrable {
            Some(true) => f.write_str(" DEFERRABLE"),
            Some(false) => f.write_str(" NOT DEFERRABLE"),
            None => Ok(()),
        }
    }
}
