//! Lifecycle rules as data: canonical SQL texts and what they ask for. Nothing here decides or evaluates.

use crate::{codec::Codec, ids::Fingerprint};
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

/// Canonical SQL, as SHOW CREATE STREAM and lifecycle_log print a rule.
impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.when)?;
        match &self.action {
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
