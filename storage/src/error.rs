//! The one error of storage and engine: a kind that tells the caller what to do, and a message that tells a person.
//!
//! Kinds stay few on purpose. A message names the stream, part, column or value it is about and the way out.

use crate::disk::durable_fs::NotSynced;
use std::{error::Error as StdError, fmt, sync::Arc};

pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What the caller should do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// The request is wrong: correct it.
    Invalid,
    /// The thing named does not exist.
    NotFound,
    /// Something changed meanwhile, or exists already: look again, then retry or choose another name.
    Conflict,
    /// Another process took over (a newer epoch): stop writing.
    Fenced,
    /// No room: free space or wait.
    Full,
    /// Not reachable now: retry later.
    Unavailable,
    /// Stored bytes are not what was written: restore them; nothing was guessed.
    Corrupt,
    /// A defect of Ebb.
    Internal,
}

impl ErrorKind {
    pub fn name(self) -> &'static str {
        match self {
            Self::Invalid => "invalid",
            Self::NotFound => "not found",
            Self::Conflict => "conflict",
            Self::Fenced => "fenced",
            Self::Full => "full",
            Self::Unavailable => "unavailable",
            Self::Corrupt => "corrupt",
            Self::Internal => "internal",
        }
    }
}

/// Cheap to clone, so that one failed fsync can be told to every waiter.
#[derive(Clone)]
pub struct Error {
    kind: ErrorKind,
    message: String,
    source: Option<Arc<dyn StdError + Send + Sync>>,
}

impl Error {
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), source: None }
    }
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Invalid, message)
    }
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::NotFound, message)
    }
    pub fn conflict(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Conflict, message)
    }
    pub fn fenced(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Fenced, message)
    }
    pub fn full(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Full, message)
    }
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Unavailable, message)
    }
    pub fn corrupt(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Corrupt, message)
    }
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Internal, message)
    }

    /// Attaches the cause; it is printed after the message.
    pub fn with_source(mut self, source: impl StdError + Send + Sync + 'static) -> Self {
        self.source = Some(Arc::new(source));
        self
    }

    /// Puts `context: ` before the message, keeping kind and source.
    pub fn context(mut self, context: impl fmt::Display) -> Self {
        self.message = format!("{context}: {}", self.message);
        self
    }

    pub fn kind(&self) -> ErrorKind {
        self.kind
    }
    pub fn message(&self) -> &str {
        &self.message
    }
    /// Whether something was written that may not survive a loss of power. Reading it back tells nothing.
    pub fn is_unsynced(&self) -> bool {
        self.source.as_ref().is_some_and(|s| s.is::<NotSynced>())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        if let Some(source) = &self.source {
            write!(f, ": {source}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {self}", self.kind.name())
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.source.as_ref().map(|s| s.as_ref() as &(dyn StdError + 'static))
    }
}

/// Disk full is its own kind, so that admission and callers can tell it from a broken disk.
impl From<std::io::Error> for Error {
    fn from(e: std::io::Error) -> Self {
        let kind = match e.kind() {
            std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => ErrorKind::Full,
            std::io::ErrorKind::NotFound => ErrorKind::NotFound,
            std::io::ErrorKind::AlreadyExists => ErrorKind::Conflict,
            _ => ErrorKind::Unavailable,
        };
        Self::new(kind, e.to_string())
    }
}

impl From<object_store::Error> for Error {
    fn from(e: object_store::Error) -> Self {
        // A store of ours says what it has to say itself.
        if let object_store::Error::Generic { source, .. } = &e
            && let Some(own) = source.downcast_ref::<Self>()
        {
            return own.clone();
        }
        let kind = match &e {
            object_store::Error::NotFound { .. } => ErrorKind::NotFound,
            object_store::Error::AlreadyExists { .. } => ErrorKind::Conflict,
            _ if cause_of(&e, is_full).is_some() => ErrorKind::Full,
            _ => ErrorKind::Unavailable,
        };
        match cause_of(&e, |cause| cause.downcast_ref::<NotSynced>().cloned()) {
            Some(unsynced) => Self::new(kind, "a write was not made durable").with_source(unsynced),
            None => Self::new(kind, e.to_string()),
        }
    }
}

/// The first cause of `e` that `find` knows, itself among them; what an I/O error was made of is a cause too.
fn cause_of<T>(e: &(dyn StdError + 'static), find: impl Fn(&(dyn StdError + 'static)) -> Option<T>) -> Option<T> {
    let mut cause = Some(e);
    while let Some(e) = cause {
        if let Some(found) = find(e) {
            return Some(found);
        }
        let inner = e.downcast_ref::<std::io::Error>().and_then(|io| io.get_ref());
        cause = match inner {
            Some(inner) => Some(inner),
            None => e.source(),
        };
    }
    None
}

/// The operating system saying that the disk is full.
fn is_full(e: &(dyn StdError + 'static)) -> Option<()> {
    let io = e.downcast_ref::<std::io::Error>()?;
    matches!(io.kind(), std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded).then_some(())
}

impl From<parquet::errors::ParquetError> for Error {
    fn from(e: parquet::errors::ParquetError) -> Self {
        Self::corrupt(format!("parquet: {e}"))
    }
}

impl From<arrow::error::ArrowError> for Error {
    fn from(e: arrow::error::ArrowError) -> Self {
        Self::invalid(e.to_string())
    }
}
