//! `system.part_log` and `system.lifecycle_log`: what happened to parts, and what rules did to rows.
//!
//! They are streams that the engine keeps, with the rows that are not in their streams yet; scanned and pruned as streams are.

use crate::{
    database::Shared,
    provider::{Cut, StreamTable},
};
use datafusion::{
    catalog::TableProvider,
    error::{DataFusionError, Result},
};
use ebb_engine::Log;
use std::sync::Arc;

pub(super) fn table(name: &str, shared: &Arc<Shared>, cut: &Cut) -> Option<Result<Arc<dyn TableProvider>>> {
    let log = Log::ALL.into_iter().find(|l| l.name() == name)?;
    Some(match cut.view.log(log) {
        Ok((view, waiting)) => {
            let own = vec![(view.def.schema_version, waiting)];
            Ok(Arc::new(StreamTable::new(shared.clone(), view, own, false, cut.now).of_first(log.visible())))
        }
        Err(e) => Err(DataFusionError::External(Box::new(e))),
    })
}
