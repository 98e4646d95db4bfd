//! Opening a data directory: lock, manifest, replay of the log, then the writers, the sweep and the background work, in this order.

use crate::expr::ExprCompiler;
use ebb_storage::{Clock, stream_def::SettingValue};
use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

/// How to open.
#[derive(Clone)]
pub struct OpenOptions {
    pub dir: PathBuf,
    pub clock: Clock,
    pub compiler: Arc<dyn ExprCompiler>,
    /// Server settings that hold for this opening only (`serve --set k=v`).
    pub settings: BTreeMap<String, SettingValue>,
    /// Whether merges, prunes and flushes run by themselves. Without, only on request (SETTLE, OPTIMIZE, FLUSH).
    pub background: bool,
}
