//! Bounds of a part's columns, kept in the manifest so that parts are pruned without being opened.

use crate::ids::ColumnId;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ColumnStats {
    pub column: ColumnId,
    pub nulls: u64,
    /// Of the values that are not NULL (and, for floats, not NaN); `None` where unknown or there is none.
    pub min: Option<Bound>,
    pub max: Option<Bound>,
    /// False where long texts were cut: `min` is then a lower bound and `max` an upper one.
    pub exact: bool,
}

/// A value of any column type. Times are in the column's own unit (days, µs, ns).
#[derive(Debug, Clone, PartialEq, PartialOrd, Serialize, Deserialize)]
pub enum Bound {
    Bool(bool),
    Int(i64),
    UInt(u64),
    Float(f64),
    Decimal(i128),
    Text(String),
    Bytes(Vec<u8>),
}
