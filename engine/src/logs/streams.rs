//! The definitions of the two streams, and the few expressions that they use, which the engine evaluates itself.
//!
//! One partition a week, dropped whole when its last row is due: no log is ever rewritten for its age.

use super::Log;
use crate::{
    core::Core,
    expr::{ExprCompiler, RowExpr},
};
use arrow::{
    array::{ArrayRef, AsArray, Date32Array, RecordBatch},
    datatypes::TimestampMicrosecondType,
};
use ebb_storage::{
    Error, Result, Timestamp,
    column_type::ColumnType,
    ids::{ColumnId, Fingerprint, SchemaVersion, StreamId},
    manifest::{Edit, Manifest},
    rules::{Action, Policy, Rule},
    stream_def::{ColumnDef, SYSTEM_DATABASE, SettingValue, StreamDef},
};
use std::{collections::BTreeMap, sync::Arc};

const DAY: i64 = 86_400_000_000;
const EVENT_TIME: ColumnId = ColumnId(1);

const WEEK: &str = "to_start_of_week(event_time)";
const TIME: &str = "event_time";

#[derive(Clone, Copy)]
enum Kind {
    Time,
    Text,
    Count,
}
use Kind::{Count, Text, Time};

/// Column `n`, counted from 1, has the id `n`. Those behind the visible ones are kept and not shown.
const PART_LOG: [(&str, Kind); 15] = [
    (TIME, Time),
    ("event_type", Text),
    ("database", Text),
    ("stream", Text),
    ("part", Text),
    ("source_parts", Text),
    ("partition", Text),
    ("disk_name", Text),
    ("rows", Count),
    ("bytes", Count),
    ("rows_read", Count),
    ("bytes_read", Count),
    ("duration_ms", Count),
    ("reason", Text),
    ("error", Text),
];

const LIFECYCLE_LOG: [(&str, Kind); 15] = [
    (TIME, Time),
    ("database", Text),
    ("stream", Text),
    ("rule", Text),
    ("rule_fingerprint", Text),
    ("action", Text),
    ("part", Text),
    ("rows_before", Count),
    ("rows_after", Count),
    ("bytes_before", Count),
    ("bytes_after", Count),
    ("reason", Text),
    ("duration_ms", Count),
    ("error", Text),
    ("rule_columns", Text),
];

impl Log {
    fn columns(self) -> &'static [(&'static str, Kind)] {
        match self {
            Self::Part => &PART_LOG,
            Self::Lifecycle => &LIFECYCLE_LOG,
        }
    }

    /// How many of the stream's columns are shown.
    pub fn visible(self) -> usize {
        match self {
            Self::Part => PART_LOG.len(),
            Self::Lifecycle => LIFECYCLE_LOG.len() - 1,
        }
    }

    fn kept_days(self) -> i64 {
        match self {
            Self::Part => 30,
            Self::Lifecycle => 365,
        }
    }

    /// The stream's definition, but for its id and the time it is made.
    pub fn def(self) -> StreamDef {
        let column = |(i, (name, kind)): (usize, &(&str, Kind))| {
            let ty = match kind {
                Time => ColumnType::DateTime64(6, Some("UTC".into())),
                Text => ColumnType::String,
                Count => ColumnType::Int64,
            };
            ColumnDef::plain(i as i32 + 1, name, ty)
        };
        let when = format!("{TIME} + INTERVAL '{} days'", self.kept_days());
        StreamDef {
            id: StreamId(0),
            database: SYSTEM_DATABASE.to_owned(),
            name: self.name().to_owned(),
            columns: self.columns().iter().enumerate().map(column).collect(),
            next_column: ColumnId(self.columns().len() as i32 + 1),
            schema_version: SchemaVersion(1),
            policy_version: 1,
            partition_by: vec![WEEK.to_owned()],
            order_by: vec![TIME.to_owned()],
            primary_key: vec![TIME.to_owned()],
            series_key: Vec::new(),
            indexes: Vec::new(),
            policy: Policy {
                ttl: vec![Rule { when, action: Action::Delete { only: None }, fingerprint: Fingerprint(1) }],
                retention: Vec::new(),
            },
            settings: BTreeMap::from([("ttl_only_drop_parts".to_owned(), SettingValue::Bool(true))]),
            comment: String::new(),
            created_at: Timestamp::MIN,
        }
    }
}

/// Makes the streams where they are not there yet.
pub async fn ensure(core: &Core) -> Result<()> {
    let lack = |m: &Manifest| Log::ALL.into_iter().filter(|l| l.stream(m).is_none()).collect::<Vec<_>>();
    if lack(&core.live.read().manifest).is_empty() {
        return Ok(());
    }
    let edits = |m: &Manifest, (_, time)| {
        let mut id = m.next_stream;
        let mut edits = Vec::new();
        for log in lack(m) {
            edits.push(Edit::CreateStream(Box::new(StreamDef { id, created_at: time, ..log.def() })));
            id = id.next();
        }
        Ok(edits)
    };
    core.committer.commit_with(Vec::new(), edits, core.shows()).await?;
    Ok(())
}

/// Knows the expressions of these streams and no others.
pub struct Own;

enum Word {
    Time,
    Week,
    PlusDays(i64),
}

impl ExprCompiler for Own {
    fn compile(&self, text: &str, def: &StreamDef) -> Result<Arc<dyn RowExpr>> {
        let days = |t: &str| t.strip_prefix("event_time + INTERVAL '")?.strip_suffix(" days'")?.parse().ok();
        Ok(Arc::new(match text {
            TIME => Word::Time,
            WEEK => Word::Week,
            other => {
                let unknown = || Error::internal(format!("'{other}' is no expression of {}", def.full_name()));
                Word::PlusDays(days(other).ok_or_else(unknown)?)
            }
        }))
    }
}

impl RowExpr for Word {
    fn evaluate(&self, rows: &RecordBatch) -> Result<ArrayRef> {
        let column = rows.column_by_name(TIME).ok_or_else(|| Error::internal("rows of a log without their time"))?;
        let times = || column.as_primitive_opt::<TimestampMicrosecondType>().ok_or_else(|| Error::internal("event_time is no time"));
        Ok(match self {
            Self::Time => column.clone(),
            Self::PlusDays(n) => {
                let by = n * DAY;
                let zone = times()?.timezone().map(Arc::<str>::from);
                let later = times()?.unary::<_, TimestampMicrosecondType>(|t| t.saturating_add(by));
                Arc::new(later.with_timezone_opt(zone))
            }
            // Of Mondays; the epoch was a Thursday.
            Self::Week => {
                let monday = |t: i64| (t.div_euclid(DAY) + 3).div_euclid(7) * 7 - 3;
                Arc::new(times()?.iter().map(|t| t.and_then(|t| i32::try_from(monday(t)).ok())).collect::<Date32Array>())
            }
        })
    }
    fn columns(&self) -> &[ColumnId] {
        &[EVENT_TIME]
    }
    fn monotone_in(&self) -> Option<ColumnId> {
        Some(EVENT_TIME)
    }
}
