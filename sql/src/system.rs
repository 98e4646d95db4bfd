//! The database `system`: what Ebb knows of itself, as tables. One file for each table.

use crate::{database::Shared, provider::Cut};
use datafusion::{catalog::TableProvider, error::Result};
use std::sync::Arc;

pub const DATABASE: &str = "system";

/// In the order of the alphabet.
pub const NAMES: &[&str] = &[];

/// The table of that name over `cut`.
pub(crate) fn table(name: &str, shared: &Arc<Shared>, cut: &Cut) -> Option<Result<Arc<dyn TableProvider>>> {
    let _ = (name, shared, cut);
    None
}
