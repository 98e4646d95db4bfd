//! Lifecycle rules as data: canonical SQL texts and what they ask for. Nothing here decides or evaluates.

use crate::{
    codec::Codec,
    ids::{ColumnId, Fingerprint},
};
use serde::{Deserialize, Serialize};
use std::fmt;

/// One line of a stream's TTL clause.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rule {
    /// When: canonical SQL of a date or time expression.
    pub when: String,
    pub action: Action,
    /// The hash of the bound rule with column ids: facts about parts are kept under it.
    pub fingerprint: Fingerprint,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Action {
    /// Removes due rows, of those that `only` (canonical SQL) selects.
    Delete {
        only: Option<String>,
    },
    Recompress(Codec),
    Move(Destination),
    /// Folds due rows of one key into one.
    GroupBy {
        keys: Vec<String>,
        set: Vec<(String, String)>,
    },
    /// Puts a column's DEFAULT into its due values: a column's own TTL, in no TTL clause.
    Reset {
        column: ColumnId,
        name: String,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Destination {
    pub kind: DestinationKind,
    pub name: String,
    /// The rule is inert where the destination does not exist.
    pub if_exists: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum DestinationKind {
    Disk,
    Volume,
}

/// One line of a stream's RETENTION clause.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stage {
    Keep { after: crate::interval::Interval, keep: String },
    Drop { after: crate::interval::Interval },
    MaxAge(crate::interval::Interval),
    MaxBytes(u64),
    MaxRows(u64),
}

/// How a stream's rows grow old.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Policy {
    pub ttl: Vec<Rule>,
    pub retention: Vec<Stage>,
}

impl Action {
    /// Whether it changes due rows and leaves them there: a row that it has changed concerns it no more.
    pub fn changes_rows(&self) -> bool {
        matches!(self, Self::GroupBy { .. } | Self::Reset { .. })
    }
}

/// Canonical SQL, as SHOW CREATE STREAM and lifecycle_log print a rule; a column's with the column's name before it.
impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Action::Reset { name, .. } = &self.action {
            return write!(f, "COLUMN {name} TTL {}", self.when);
        }
        write!(f, "{}", self.when)?;
        match &self.action {
            Action::Reset { .. } => Ok(()),
            Action::Delete { only: None } => f.write_str(" DELETE"),
            Action::Delete { only: Some(only) } => write!(f, " DELETE WHERE {only}"),
            Action::Recompress(codec) => write!(f, " RECOMPRESS CODEC({codec})"),
            Action::Move(to) => {
                let kind = match to.kind {
                    DestinationKind::Disk => "DISK",
                    DestinationKind::Volume => "VOLUME",
                };
                let if_exists = if to.if_exists { " IF EXISTS" } else { "" };
                write!(f, " TO {kind}{if_exists} '{}'", to.name.replace('\'', "''"))
            }
            Action::GroupBy { keys, set } => {
                write!(f, " GROUP BY {}", keys.join(", "))?;
                for (i, (column, value)) in set.iter().enumerate() {
                    write!(f, "{} {column} = {value}", if i == 0 { " SET" } else { "," })?;
                }
                Ok(())
            }
        }
    }
}
