//! Statements about the server and its places: SHOW, SYSTEM, disks, storage policies, databases.

use super::{Literal, Name, Stage, StreamName};
use ebb_storage::{disk::secret::HIDDEN, interval::Interval};

#[derive(Debug, Clone, PartialEq)]
pub enum Show {
    /// `SHOW STREAMS [FROM db] [LIKE 'p']`
    Streams {
        database: Option<Name>,
        like: Option<String>,
    },
    Databases {
        like: Option<String>,
    },
    CreateStream(StreamName),
    CreateDisk(Name),
    CreateStoragePolicy(Name),
    Disks,
    StoragePolicies,
    Settings {
        like: Option<String>,
    },
    /// `SHOW ALL`
    All,
    /// `SHOW name`: a session or server setting, dotted names included.
    Variable(String),
}

#[derive(Debug, Clone, PartialEq)]
pub enum System {
    Stop { what: Stoppable, stream: Option<StreamName> },
    Start { what: Stoppable, stream: Option<StreamName> },
    Flush(Option<StreamName>),
    Settle(Option<StreamName>),
    AdvanceClock(Interval),
    Status,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stoppable {
    /// Of all volumes, or of one of a storage policy.
    Merges {
        volume: Option<VolumeName>,
    },
    TtlMerges,
    Moves,
}

/// `policy.volume`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VolumeName {
    pub policy: Name,
    pub volume: Name,
}

#[derive(Debug, Clone, PartialEq)]
pub struct CreateDisk {
    pub or_replace: bool,
    pub if_not_exists: bool,
    pub name: Name,
    /// As written; no name twice.
    pub options: Vec<DiskOption>,
}

#[derive(Clone, PartialEq)]
pub struct DiskOption {
    pub name: Name,
    pub value: Literal,
}

/// The option whose value nobody is shown.
pub(crate) const SECRET: &str = "secret_access_key";

impl CreateDisk {
    pub fn without_secrets(&self) -> Self {
        let hidden = |o: &DiskOption| match o.name.as_str() {
            SECRET => DiskOption { name: o.name.clone(), value: Literal::Text(HIDDEN.to_owned()) },
            _ => o.clone(),
        };
        Self { options: self.options.iter().map(hidden).collect(), ..self.clone() }
    }
}

/// Without the value: it may be a secret.
impl std::fmt::Debug for DiskOption {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} = ...", self.name)
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct DropDisk {
    pub if_exists: bool,
    pub name: Name,
}

#[derive(Debug, Clone, PartialEq)]
pub struct CreateStoragePolicy {
    pub or_replace: bool,
    pub if_not_exists: bool,
    pub name: Name,
    /// YAML, as written.
    pub body: String,
}

#[derive(Debug, Clone, PartialEq)]
pub struct DropStoragePolicy {
    pub if_exists: bool,
    pub name: Name,
}

#[derive(Debug, Clone, PartialEq)]
pub struct CreateDatabase {
    pub if_not_exists: bool,
    pub name: Name,
}

#[derive(Debug, Clone, PartialEq)]
pub struct DropDatabase {
    pub if_exists: bool,
    pub cascade: bool,
    pub name: Name,
}

/// `ALTER DATABASE d {MODIFY RETENTION stage, ... | REMOVE RETENTION}`
#[derive(Debug, Clone, PartialEq)]
pub struct AlterDatabase {
    pub name: Name,
    /// The whole new list; empty removes it.
    pub retention: Vec<Stage>,
}
