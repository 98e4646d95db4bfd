//! The one table of SQLSTATEs: what kind of failure is what five letters to a PostgreSQL client.

use ebb_storage::ErrorKind;

pub const FEATURE_NOT_SUPPORTED: &str = "0A000";
pub const PROTOCOL_VIOLATION: &str = "08P01";
pub const CHARACTER_NOT_IN_REPERTOIRE: &str = "22021";
pub const NUMERIC_OUT_OF_RANGE: &str = "22003";
pub const DIVISION_BY_ZERO: &str = "22012";
pub const INVALID_PARAMETER_VALUE: &str = "22023";
pub const INVALID_TEXT_REPRESENTATION: &str = "22P02";
pub const NOT_NULL_VIOLATION: &str = "23502";
pub const ACTIVE_SQL_TRANSACTION: &str = "25001";
pub const IN_FAILED_SQL_TRANSACTION: &str = "25P02";
pub const NO_ACTIVE_SQL_TRANSACTION: &str = "25P01";
pub const INVALID_SAVEPOINT: &str = "3B001";
pub const SYNTAX_ERROR: &str = "42601";
pub const DUPLICATE_COLUMN: &str = "42701";
pub const AMBIGUOUS_COLUMN: &str = "42702";
pub const UNDEFINED_COLUMN: &str = "42703";
pub const UNDEFINED_FUNCTION: &str = "42883";
pub const GROUPING_ERROR: &str = "42803";
pub const UNDEFINED_TABLE: &str = "42P01";
pub const INDETERMINATE_DATATYPE: &str = "42P18";
pub const UNDEFINED_PARAMETER: &str = "42P02";
pub const DUPLICATE_TABLE: &str = "42P07";
pub const DUPLICATE_OBJECT: &str = "42710";
pub const DEPENDENT_OBJECTS: &str = "2BP01";
pub const DATATYPE_MISMATCH: &str = "42804";
pub const DUPLICATE_ALIAS: &str = "42712";
pub const WRONG_OBJECT_TYPE: &str = "42809";
pub const UNDEFINED_OBJECT: &str = "42704";
pub const TOO_COMPLEX: &str = "54001";
pub const OBJECT_NOT_IN_STATE: &str = "55000";
pub const DISK_FULL: &str = "53100";
pub const OUT_OF_MEMORY: &str = "53200";
pub const QUERY_CANCELED: &str = "57014";
pub const CANNOT_CONNECT_NOW: &str = "57P03";
pub const ADMIN_SHUTDOWN: &str = "57P01";
pub const IO_ERROR: &str = "58030";
pub const INTERNAL_ERROR: &str = "XX000";
pub const DATA_CORRUPTED: &str = "XX001";

/// What a failure of storage or engine is, where nothing closer is known.
pub fn of_kind(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::Invalid => INVALID_PARAMETER_VALUE,
        ErrorKind::NotFound => UNDEFINED_OBJECT,
        ErrorKind::Conflict => OBJECT_NOT_IN_STATE,
        ErrorKind::Fenced => ADMIN_SHUTDOWN,
        ErrorKind::Full => DISK_FULL,
        ErrorKind::Unavailable => IO_ERROR,
        ErrorKind::Corrupt => DATA_CORRUPTED,
        ErrorKind::Internal => INTERNAL_ERROR,
    }
}
