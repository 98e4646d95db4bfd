//! The table of settings. Order is that of SHOW SETTINGS.

use ebb_storage::{Error, Result, stream_def::SettingValue};
use std::fmt;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    Stream,
    Server,
    Session,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Bool,
    /// Whole numbers from the first to the second.
    Int(i64, i64),
    /// A whole number in that range, or none.
    OptionalInt(i64, i64),
    Text,
    OptionalText,
    /// A codec as CODEC() prints it.
    Codec,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Default {
    Bool(bool),
    Int(i64),
    Text(&'static str),
    None,
}

pub struct Setting {
    pub name: &'static str,
    pub scope: Scope,
    pub kind: Kind,
    pub default: Default,
    /// Cannot be changed after CREATE.
    pub fixed: bool,
    pub description: &'static str,
}

const fn of(scope: Scope, name: &'static str, kind: Kind, default: Default, description: &'static str) -> Setting {
    Setting { name, scope, kind, default, fixed: false, description }
}

const fn stream(name: &'static str, kind: Kind, default: Default, description: &'static str) -> Setting {
    of(Scope::Stream, name, kind, default, description)
}

const fn server(name: &'static str, kind: Kind, default: Default, description: &'static str) -> Setting {
    of(Scope::Server, name, kind, default, description)
}

const fn session(name: &'static str, default: &'static str, description: &'static str) -> Setting {
    of(Scope::Session, name, Kind::Text, Default::Text(default), description)
}

const fn fixed(setting: Setting) -> Setting {
    Setting { fixed: true, ..setting }
}

const MAX: i64 = i64::MAX;
const COUNT: Kind = Kind::Int(1, MAX);
const AMOUNT: Kind = Kind::Int(0, MAX);
const OPTIONAL: Kind = Kind::OptionalInt(0, MAX);

pub static SETTINGS: &[Setting] = &[
    fixed(stream("event_time_column", Kind::OptionalText, Default::None, "Expression that _tp_time is computed from; fixed at CREATE")),
    stream("flush_threshold_count", COUNT, Default::Int(100_000), "Rows in the tail that start a flush"),
    stream("flush_threshold_bytes", COUNT, Default::Int(16_777_216), "Bytes in the tail that start a flush"),
    stream("flush_threshold_ms", AMOUNT, Default::Int(2000), "Age of the oldest tail row, in milliseconds, that starts a flush"),
    stream("parts_to_delay_insert", COUNT, Default::Int(1000), "Parts of one partition from which inserts are slowed"),
    stream("parts_to_throw_insert", COUNT, Default::Int(3000), "Parts of one partition from which inserts are refused"),
    stream("max_partitions_per_insert", COUNT, Default::Int(10_000), "Partitions one record may touch"),
    fixed(stream(
        "index_granularity",
        Kind::Int(1, 1 << 20),
        Default::Int(8192),
        "Kept for ported scripts: an index is of a part and its row groups; fixed at CREATE",
    )),
    stream("storage_policy", Kind::Text, Default::Text("default"), "Volumes that parts lie on"),
    stream("default_codec", Kind::Codec, Default::Text("LZ4"), "Codec of columns that have none of their own"),
    stream("max_parts_to_merge_at_once", COUNT, Default::Int(100), "Parts one merge may take; 1 turns merges off"),
    stream(
        "max_bytes_to_merge_at_max_space_in_pool",
        AMOUNT,
        Default::Int(161_061_273_600),
        "Bytes one merge may take; 0 turns merges off",
    ),
    stream("min_rows_for_wide_part", AMOUNT, Default::Int(0), "Kept for ported scripts: there is one part format"),
    stream("min_bytes_for_wide_part", AMOUNT, Default::Int(0), "Kept for ported scripts: there is one part format"),
    stream("merge_with_ttl_timeout", AMOUNT, Default::Int(14_400), "Seconds between two prunes of a partition; 0 at once"),
    stream("merge_with_recompression_ttl_timeout", AMOUNT, Default::Int(14_400), "Seconds between two recompressions of a partition"),
    stream("ttl_only_drop_parts", Kind::Bool, Default::Bool(false), "Due rows go only with their whole part"),
    stream("ttl_hide_expired", Kind::Bool, Default::Bool(false), "Due rows are not read even before they are removed"),
    stream("ttl_move_grace_seconds", AMOUNT, Default::Int(300), "How long a lone part waits for a merge partner before a move"),
    stream("retention_delete_batch_rows", COUNT, Default::Int(100_000), "Rows that a budget removes in one commit"),
    stream("retention_chunk_rows", COUNT, Default::Int(65_536), "Rows that a retention clause looks at at once"),
    stream("retention_min_partitions", AMOUNT, Default::Int(0), "Newest partitions that no rule or budget touches"),
    stream("adaptive_rollups", Kind::Bool, Default::Bool(false), "Make rollups for queries that repeat"),
    stream("history_max_snapshot_age_ms", COUNT, Default::Int(432_000_000), "Age up to which snapshots are kept, in milliseconds"),
    stream("history_min_snapshots_to_keep", COUNT, Default::Int(1), "Snapshots of main kept whatever their age"),
    stream("history_max_ref_age_ms", Kind::OptionalInt(1, MAX), Default::None, "Age up to which tags and branches live, in milliseconds"),
    stream("history_max_snapshots", COUNT, Default::Int(10_000), "Lines of the snapshot list before appends are summed up"),
    server("max_number_of_merges_with_ttl_in_pool", COUNT, Default::Int(2), "Jobs that rules ask for, running at once"),
    server("background_pool_size", Kind::Int(1, 256), Default::Int(2), "Background jobs running at once"),
    server("memory_limit_bytes", AMOUNT, Default::Int(0), "Memory that queries may use together; 0: six tenths of the machine's"),
    server("row_retention", Kind::Bool, Default::Bool(false), "Apply RETENTION ... KEEP WHERE clauses"),
    server("default_partition_retention_days", OPTIONAL, Default::None, "Age in days at which partitions go where a stream says nothing"),
    server(
        "retention_disk_pct_threshold",
        Kind::OptionalInt(1, 100),
        Default::None,
        "Use of a disk, in percent, from which oldest partitions go",
    ),
    server("default_codec", Kind::Codec, Default::Text("LZ4"), "Codec of streams that name none"),
    session("timezone", "UTC", "Zone in which moments are shown"),
    session("statement_timeout", "0", "Milliseconds a statement may run; 0 without end"),
    session("read_lease", "0", "How long a cut stays readable between statements"),
    session("application_name", "", "Name the client gives itself"),
    session("search_path", "public", "Schema of unqualified names; public is the connection's database"),
    session("client_encoding", "UTF8", "Encoding of texts on the wire: UTF8 only"),
    session("datestyle", "ISO, MDY", "Form of dates: ISO only"),
    session("intervalstyle", "postgres", "Form of intervals: postgres only"),
    session("extra_float_digits", "1", "Floats are always shown with the digits that read back to the same value"),
    session("standard_conforming_strings", "on", "Backslashes in literals are themselves"),
    session("default_transaction_isolation", "repeatable read", "A block reads one cut"),
    session("default_transaction_read_only", "off", "Accepted for drivers"),
    session("client_min_messages", "notice", "Accepted for drivers"),
    session("lock_timeout", "0", "Accepted for drivers: nothing waits for locks"),
    session("idle_in_transaction_session_timeout", "0", "Accepted for drivers"),
    session("bytea_output", "hex", "Form of bytes: hex only"),
    session("server_version", "16.0 (ebb)", "What drivers are told"),
    session("server_version_num", "160000", "What drivers are told"),
    session("server_encoding", "UTF8", "What drivers are told"),
    session("integer_datetimes", "on", "What drivers are told"),
    session("transaction_isolation", "repeatable read", "A block reads one cut"),
];

impl Setting {
    /// `value` in the setting's own type.
    pub(super) fn accept(&self, value: &SettingValue) -> Result<SettingValue> {
        let wrong = |what: &str| Error::invalid(format!("setting {} takes {what}, not {}", self.name, shown(value)));
        let none = matches!(value, SettingValue::Text(t) if t.eq_ignore_ascii_case("none") || t.is_empty());
        match self.kind {
            Kind::Bool => as_bool(value).map(SettingValue::Bool).ok_or_else(|| wrong("0 or 1")),
            Kind::OptionalInt(..) | Kind::OptionalText if none => Ok(SettingValue::Text("none".to_owned())),
            Kind::Int(min, max) | Kind::OptionalInt(min, max) => match as_int(value) {
                Some(i) if (min..=max).contains(&i) => Ok(SettingValue::Int(i)),
                _ if max == MAX => Err(wrong(&format!("a whole number from {min}"))),
                _ => Err(wrong(&format!("a whole number from {min} to {max}"))),
            },
            Kind::Text | Kind::OptionalText => Ok(SettingValue::Text(text(value))),
            Kind::Codec => parse_codec(&text(value))
                .map(|c| SettingValue::Text(c.to_string()))
                .map_err(|e| e.context(format_args!("setting {}", self.name))),
        }
    }

    /// The default as text; `None` where there is none.
    pub fn default_text(&self) -> Option<String> {
        match self.default {
            Default::Bool(b) => Some(i32::from(b).to_string()),
            Default::Int(i) => Some(i.to_string()),
            Default::Text(t) => Some(t.to_owned()),
            Default::None => None,
        }
    }
}

/// `ZSTD(3)`, `lz4`
pub fn parse_codec(text: &str) -> Result<ebb_storage::codec::Codec> {
    let text = text.trim();
    let (name, level) = match text.split_once('(') {
        None => (text, None),
        Some((name, rest)) => {
            let level = rest.trim_end().strip_suffix(')').and_then(|l| l.trim().parse().ok());
            (name.trim(), Some(level.ok_or_else(|| Error::invalid(format!("'{text}' is no codec: write ZSTD(3)")))?))
        }
    };
    ebb_storage::codec::Codec::parse(name, level)
}

fn as_bool(value: &SettingValue) -> Option<bool> {
    match value {
        SettingValue::Bool(b) => Some(*b),
        SettingValue::Int(0) => Some(false),
        SettingValue::Int(1) => Some(true),
        SettingValue::Text(t) => match t.to_ascii_lowercase().as_str() {
            "1" | "true" | "on" | "yes" => Some(true),
            "0" | "false" | "off" | "no" => Some(false),
            _ => None,
        },
        SettingValue::Int(_) => None,
    }
}

fn as_int(value: &SettingValue) -> Option<i64> {
    match value {
        SettingValue::Int(i) => Some(*i),
        SettingValue::Text(t) => t.trim().parse().ok(),
        SettingValue::Bool(_) => None,
    }
}

fn text(value: &SettingValue) -> String {
    match value {
        SettingValue::Bool(b) => b.to_string(),
        SettingValue::Int(i) => i.to_string(),
        SettingValue::Text(t) => t.clone(),
    }
}

fn shown(value: &SettingValue) -> String {
    match value {
        SettingValue::Text(t) => format!("'{t}'"),
        other => text(other),
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Stream => "stream",
            Self::Server => "server",
            Self::Session => "session",
        })
    }
}
