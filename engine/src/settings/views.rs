//! Settings as the engine reads them: typed, defaults filled in.

use super::table::{Default, SETTINGS, Scope, parse_codec};
use ebb_storage::{
    codec::Codec,
    manifest::Manifest,
    refs::Keep,
    stream_def::{SettingValue, StreamDef},
};
use std::time::Duration;

/// What a stream's definition says, at the latest ALTER.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamSettings {
    pub flush_rows: u64,
    pub flush_bytes: u64,
    pub flush_after: Duration,
    pub parts_to_delay: u64,
    pub parts_to_refuse: u64,
    pub max_partitions_per_insert: usize,
    pub codec: Codec,
    pub max_parts_to_merge: usize,
    pub max_bytes_to_merge: u64,
    /// `merge_with_ttl_timeout`
    pub prune_every: Duration,
    /// `merge_with_recompression_ttl_timeout`
    pub recompress_every: Duration,
    /// `ttl_move_grace_seconds`
    pub move_grace: Duration,
    pub storage_policy: String,
    pub only_drop_parts: bool,
    pub hide_expired: bool,
    /// The `history_*` settings.
    pub keep: Keep,
}

/// How long a ref of the stream lives that does not say itself, in milliseconds; `None`: for ever.
pub fn max_ref_age_ms(def: &StreamDef) -> Option<i64> {
    match def.settings.get("history_max_ref_age_ms") {
        Some(SettingValue::Int(ms)) => Some(*ms),
        _ => None,
    }
}

impl StreamSettings {
    /// `server` gives the codec of streams that name none.
    pub fn of(def: &StreamDef, server: &ServerSettings) -> Self {
        let int = |name: &str| match def.settings.get(name) {
            Some(SettingValue::Int(i)) => u64::try_from(*i).unwrap_or(0),
            _ => default_int(Scope::Stream, name),
        };
        let flag = |name: &str| matches!(def.settings.get(name), Some(SettingValue::Bool(true)));
        let codec = match def.settings.get("default_codec") {
            Some(SettingValue::Text(t)) => parse_codec(t).unwrap_or_default(),
            _ => server.default_codec,
        };
        Self {
            flush_rows: int("flush_threshold_count"),
            flush_bytes: int("flush_threshold_bytes"),
            flush_after: Duration::from_millis(int("flush_threshold_ms")),
            parts_to_delay: int("parts_to_delay_insert"),
            parts_to_refuse: int("parts_to_throw_insert"),
            max_partitions_per_insert: usize::try_from(int("max_partitions_per_insert")).unwrap_or(usize::MAX),
            codec,
            max_parts_to_merge: usize::try_from(int("max_parts_to_merge_at_once")).unwrap_or(usize::MAX),
            max_bytes_to_merge: int("max_bytes_to_merge_at_max_space_in_pool"),
            prune_every: Duration::from_secs(int("merge_with_ttl_timeout")),
            recompress_every: Duration::from_secs(int("merge_with_recompression_ttl_timeout")),
            move_grace: Duration::from_secs(int("ttl_move_grace_seconds")),
            storage_policy: match def.settings.get("storage_policy") {
                Some(SettingValue::Text(t)) => t.clone(),
                _ => ebb_storage::disk::policy::DEFAULT.to_owned(),
            },
            only_drop_parts: flag("ttl_only_drop_parts"),
            hide_expired: flag("ttl_hide_expired"),
            keep: Keep {
                max_age_ms: i64::try_from(int("history_max_snapshot_age_ms")).unwrap_or(i64::MAX),
                min_snapshots: int("history_min_snapshots_to_keep"),
                max_ref_age_ms: max_ref_age_ms(def),
            },
        }
    }

    /// Whether the stream's own settings turn merges off.
    pub fn merges_off(&self) -> bool {
        self.max_parts_to_merge <= 1 || self.max_bytes_to_merge == 0
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerSettings {
    pub ttl_jobs_max: usize,
    pub pool_size: usize,
    /// 0: decided by the machine.
    pub memory_limit_bytes: u64,
    pub default_codec: Codec,
}

impl ServerSettings {
    pub fn of(manifest: &Manifest) -> Self {
        let int = |name: &str| match manifest.server_settings.get(name) {
            Some(SettingValue::Int(i)) => u64::try_from(*i).unwrap_or(0),
            _ => default_int(Scope::Server, name),
        };
        let codec = match manifest.server_settings.get("default_codec") {
            Some(SettingValue::Text(t)) => parse_codec(t).unwrap_or_default(),
            _ => Codec::default(),
        };
        Self {
            ttl_jobs_max: usize::try_from(int("max_number_of_merges_with_ttl_in_pool")).unwrap_or(1),
            pool_size: usize::try_from(int("background_pool_size")).unwrap_or(1),
            memory_limit_bytes: int("memory_limit_bytes"),
            default_codec: codec,
        }
    }
}

fn default_int(scope: Scope, name: &str) -> u64 {
    let setting = SETTINGS.iter().find(|s| s.scope == scope && s.name == name);
    match setting.map(|s| s.default) {
        Some(Default::Int(i)) => u64::try_from(i).unwrap_or(0),
        _ => 0,
    }
}
