//! Times that name no zone, on their way into a column that has one: read on the clocks of the session, as in casts and comparisons.
//!
//! Guards: what a statement stores and what it finds with the same text are the same moment.

use crate::{Result, functions::in_zone};
use arrow::{
    array::{ArrayRef, StringArray},
    datatypes::DataType,
};
use datafusion::execution::SessionState;
use std::sync::Arc;

/// The zone of the session's clocks; `None` for UTC, where nothing is to be done.
pub(super) struct Clocks(Option<String>);

impl Clocks {
    pub fn of(state: &SessionState) -> Self {
        Self(state.config_options().execution.time_zone.clone().filter(|zone| zone != "UTC"))
    }

    /// Whether times of `ty` that name no zone are another moment than in UTC.
    pub fn differ(&self, ty: &DataType) -> bool {
        self.0.is_some() && matches!(ty, DataType::Timestamp(_, Some(_)))
    }

    /// `read`: what a column made of `given`, read in UTC.
    pub fn moments(&self, given: &ArrayRef, read: ArrayRef) -> Result<ArrayRef> {
        match &self.0 {
            Some(zone) if self.differ(read.data_type()) => Ok(in_zone(zone, given, &read)?),
            _ => Ok(read),
        }
    }

    /// As [`Self::moments`], of texts.
    pub fn of_texts<'a>(&self, texts: impl Iterator<Item = Option<&'a str>>, read: ArrayRef) -> Result<ArrayRef> {
        match self.differ(read.data_type()) {
            true => self.moments(&(Arc::new(texts.collect::<StringArray>()) as ArrayRef), read),
            false => Ok(read),
        }
    }
}
