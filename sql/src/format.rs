//! Canonical text of a stream's definition: one clause a line, only what is set, names quoted only where needed.
//!
//! What SHOW CREATE STREAM prints parses to the same definition. Definitions and parsed statements print through the same lines.

#[cfg(test)]
mod tests;

use crate::statement::{quote_name, quote_text};
use ebb_storage::{
    codec::ColumnCodec,
    column_type::ColumnType,
    rules::{Action, DestinationKind, Rule, Stage},
    stream_def::{ColumnDef, DefaultKind, IndexDef, IndexKind, SettingValue, StreamDef},
};

/// `CREATE STREAM database.name (...)` and its clauses.
pub fn create_stream(def: &StreamDef) -> String {
    let mut items: Vec<String> = def.columns.iter().map(column).collect();
    items.extend(def.indexes.iter().map(index));
    let mut clauses = vec![format!("PARTITION BY {}", key(&def.partition_by)), format!("ORDER BY {}", key(&def.order_by))];
    if !def.primary_key.is_empty() {
        clauses.push(format!("PRIMARY KEY {}", key(&def.primary_key)));
    }
    if !def.series_key.is_empty() {
        let names: Vec<String> = def.series_key.iter().map(|n| quote_name(n)).collect();
        clauses.push(format!("SERIES KEY ({})", names.join(", ")));
    }
    clauses.extend(list("TTL", def.policy.ttl.iter().map(rule)));
    clauses.extend(list("RETENTION", def.policy.retention.iter().map(stage)));
    clauses.extend(list("SETTINGS", def.settings.iter().map(|(name, value)| setting(name, value))));
    if !def.comment.is_empty() {
        clauses.push(format!("COMMENT {}", quote_text(&def.comment)));
    }
    let name = format!("{}.{}", quote_name(&def.database), quote_name(&def.name));
    lines(&format!("CREATE STREAM {name}"), &items, &clauses)
}

/// The head, the items in brackets, the clauses: one a line.
pub(crate) fn lines(head: &str, items: &[String], clauses: &[String]) -> String {
    let mut text = head.to_owned();
    if !items.is_empty() {
        text.push_str(&format!(" (\n    {}\n)", items.join(",\n    ")));
    }
    for clause in clauses {
        text.push('\n');
        text.push_str(clause);
    }
    text
}

/// `WORD a,\n    b`, or nothing.
pub(crate) fn list(word: &str, items: impl Iterator<Item = String>) -> Option<String> {
    let items: Vec<String> = items.collect();
    (!items.is_empty()).then(|| format!("{word} {}", items.join(",\n    ")))
}

/// `e`, `(e, ...)` or `tuple()`.
pub(crate) fn key<T: ToString>(exprs: &[T]) -> String {
    match exprs {
        [] => "tuple()".to_owned(),
        exprs => format!("({})", exprs.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")),
    }
}

/// One column as [`column_text`] takes it.
pub(crate) struct ColumnParts<'a> {
    pub name: &'a str,
    pub ty: Option<&'a ColumnType>,
    pub nullable: Option<bool>,
    pub default: Option<(DefaultKind, &'a str)>,
    pub comment: Option<&'a str>,
    pub codec: Option<&'a ColumnCodec>,
    pub ttl: Option<&'a str>,
}

pub(crate) fn column_text(column: &ColumnParts) -> String {
    let mut text = quote_name(column.name);
    match (column.ty, column.nullable) {
        (Some(ty), Some(true)) => text.push_str(&format!(" nullable({ty})")),
        (Some(ty), _) => text.push_str(&format!(" {ty}")),
        (None, Some(true)) => text.push_str(" NULL"),
        (None, _) => {}
    }
    if column.nullable == Some(false) {
        text.push_str(" NOT NULL");
    }
    if let Some((kind, expr)) = column.default {
        let word = match kind {
            DefaultKind::Default => "DEFAULT",
            DefaultKind::Materialized => "MATERIALIZED",
            DefaultKind::Alias => "ALIAS",
        };
        text.push_str(&format!(" {word} {expr}"));
    }
    if let Some(comment) = column.comment {
        text.push_str(&format!(" COMMENT {}", quote_text(comment)));
    }
    if let Some(codec) = column.codec {
        text.push_str(&format!(" CODEC({codec})"));
    }
    if let Some(ttl) = column.ttl {
        text.push_str(&format!(" TTL {ttl}"));
    }
    text
}

/// A definition's column: NOT NULL is what columns are, so it is not said.
fn column(def: &ColumnDef) -> String {
    column_text(&ColumnParts {
        name: &def.name,
        ty: Some(&def.ty),
        nullable: def.nullable.then_some(true),
        default: def.default.as_ref().map(|d| (d.kind, d.expr.as_str())),
        comment: (!def.comment.is_empty()).then_some(def.comment.as_str()),
        codec: def.codec.as_ref(),
        ttl: def.ttl.as_ref().map(|t| t.when.as_str()),
    })
}

fn index(def: &IndexDef) -> String {
    index_text(&def.name, &def.expr, &def.kind, def.granularity)
}

pub(crate) fn index_text(name: &str, expr: &str, kind: &IndexKind, granularity: u64) -> String {
    let kind = match kind {
        IndexKind::MinMax => "minmax".to_owned(),
        IndexKind::BloomFilter(ppm) => format!("bloom_filter({})", share(*ppm)),
        IndexKind::Set(n) => format!("set({n})"),
    };
    format!("INDEX {} {expr} TYPE {kind} GRANULARITY {granularity}", quote_name(name))
}

/// Parts per million as a decimal fraction.
fn share(ppm: u32) -> String {
    let digits = format!("{}.{:06}", ppm / 1_000_000, ppm % 1_000_000);
    digits.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// As the TTL clause has it; names that need quotes get them.
fn rule(rule: &Rule) -> String {
    let action = match &rule.action {
        // Of a column, which prints it.
        Action::Reset { .. } => return rule.to_string(),
        Action::Delete { only: None } => "DELETE".to_owned(),
        Action::Delete { only: Some(only) } => format!("DELETE WHERE {only}"),
        Action::Recompress(codec) => format!("RECOMPRESS CODEC({codec})"),
        Action::Move(to) => destination(to),
        Action::GroupBy { keys, set } => group_by(&keys.join(", "), set.iter().map(|(c, e)| format!("{} = {e}", quote_name(c)))),
    };
    format!("{} {action}", rule.when)
}

pub(crate) fn group_by(keys: &str, set: impl Iterator<Item = String>) -> String {
    let set: Vec<String> = set.collect();
    let set = if set.is_empty() { String::new() } else { format!(" SET {}", set.join(", ")) };
    format!("GROUP BY {keys}{set}")
}

pub(crate) fn destination(to: &ebb_storage::rules::Destination) -> String {
    let kind = match to.kind {
        DestinationKind::Disk => "DISK",
        DestinationKind::Volume => "VOLUME",
    };
    format!("TO {kind}{} {}", if to.if_exists { " IF EXISTS" } else { "" }, quote_text(&to.name))
}

fn stage(stage: &Stage) -> String {
    match stage {
        Stage::Keep { after, keep } => format!("{after} KEEP WHERE {keep}"),
        Stage::Drop { after } => format!("{after} DROP"),
        Stage::MaxAge(age) => format!("MAX AGE {age}"),
        Stage::MaxBytes(n) => format!("MAX BYTES {n}"),
        Stage::MaxRows(n) => format!("MAX ROWS {n}"),
    }
}

pub(crate) fn setting(name: &str, value: &SettingValue) -> String {
    let value = match value {
        SettingValue::Bool(b) => b.to_string(),
        SettingValue::Int(n) => n.to_string(),
        SettingValue::Text(t) => quote_text(t),
    };
    format!("{} = {value}", quote_name(name))
}
