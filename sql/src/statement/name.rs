//! Names as written, folded: unquoted ones are lower case. Equality is of the name, not of its place in the text.

use std::fmt;

/// A column, disk, policy, tag, ... or one part of a stream's name.
#[derive(Debug, Clone)]
pub struct Name {
    pub text: String,
    /// 1-based character offset in the parsed text; 0 where it came from no text.
    pub position: usize,
}

/// A stream as a statement names it: one to three parts. What they are (database, stream, `branch_x`) only the catalogue can say:
/// in `x.branch_b` a stream x of the current database with branch b wins over a database x.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct StreamName {
    /// Never empty.
    pub parts: Vec<Name>,
}

impl Name {
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl From<&str> for Name {
    fn from(text: &str) -> Self {
        Self { text: text.to_owned(), position: 0 }
    }
}

impl PartialEq for Name {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Name {}

impl std::hash::Hash for Name {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.text.hash(state);
    }
}

impl StreamName {
    /// The last part.
    pub fn last(&self) -> &str {
        self.parts.last().map_or("", Name::as_str)
    }

    /// 1-based character offset of its first part.
    pub fn position(&self) -> usize {
        self.parts.first().map_or(0, |p| p.position)
    }
}

impl From<&str> for StreamName {
    /// One part, whatever it contains.
    fn from(text: &str) -> Self {
        Self { parts: vec![text.into()] }
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&quote_name(&self.text))
    }
}

impl fmt::Display for StreamName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, part) in self.parts.iter().enumerate() {
            write!(f, "{}{part}", if i == 0 { "" } else { "." })?;
        }
        Ok(())
    }
}

/// Words that an expression or a clause would read as something else: PostgreSQL's reserved ones and those that end a rule.
const RESERVED: [&str; 100] = [
    "all",
    "analyse",
    "analyze",
    "and",
    "any",
    "array",
    "as",
    "asc",
    "asymmetric",
    "both",
    "case",
    "cast",
    "check",
    "collate",
    "column",
    "constraint",
    "create",
    "cross",
    "current_catalog",
    "current_date",
    "current_role",
    "current_schema",
    "current_time",
    "current_timestamp",
    "current_user",
    "default",
    "deferrable",
    "delete",
    "desc",
    "distinct",
    "do",
    "else",
    "end",
    "except",
    "exists",
    "extract",
    "false",
    "fetch",
    "for",
    "foreign",
    "from",
    "full",
    "grant",
    "group",
    "having",
    "ilike",
    "in",
    "initially",
    "inner",
    "intersect",
    "interval",
    "into",
    "is",
    "isnull",
    "join",
    "lateral",
    "leading",
    "left",
    "like",
    "limit",
    "localtime",
    "localtimestamp",
    "natural",
    "not",
    "notnull",
    "null",
    "offset",
    "on",
    "only",
    "or",
    "order",
    "outer",
    "overlaps",
    "placing",
    "primary",
    "recompress",
    "references",
    "returning",
    "right",
    "select",
    "session_user",
    "set",
    "similar",
    "some",
    "symmetric",
    "table",
    "tablesample",
    "then",
    "to",
    "trailing",
    "true",
    "union",
    "unique",
    "user",
    "using",
    "values",
    "when",
    "where",
    "window",
    "with",
];

/// `name` as SQL must write it: in double quotes only where folding or a reserved word asks for them.
pub fn quote_name(name: &str) -> String {
    let mut chars = name.chars();
    let plain = chars.next().is_some_and(|c| c.is_ascii_lowercase() || c == '_')
        && chars.all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
        && !is_reserved(name);
    if plain { name.to_owned() } else { format!("\"{}\"", name.replace('"', "\"\"")) }
}

/// Whether `name`, in lower case, is no name unless quoted.
pub(crate) fn is_reserved(name: &str) -> bool {
    RESERVED.binary_search(&name).is_ok()
}

/// `text` as a SQL string literal.
pub fn quote_text(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}
