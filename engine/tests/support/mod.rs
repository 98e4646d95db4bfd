//! A database for tests: a stream of (host, ts, v), a compiler of a few words, a simulated clock.
#![allow(dead_code, clippy::unwrap_used, clippy::panic, reason = "each test binary uses a part of it, and tests may unwrap")]

use arrow::{
    array::{Array, ArrayRef, AsArray, BooleanArray, Int32Array, Int64Array, RecordBatch, StringViewArray, TimestampMicrosecondArray},
    datatypes::{DataType, Int64Type, TimestampMicrosecondType},
};
use ebb_engine::{
    AsOf, Clock, DeleteRequest, Disk, Engine, Error, InsertOptions, OpenOptions, Places, ReadView, Result, StreamView, Timestamp,
    expr::{Batches, ExprCompiler, Folder, RowExpr},
    history::{NewRef, Overrides, RefMode},
};
use ebb_storage::{
    column_type::ColumnType,
    ids::{ColumnId, DatabaseId, DiskId, Fingerprint, SchemaVersion, StreamId},
    part::{PartReader, reader::ReadOptions},
    refs::RefKind,
    rules::{Action, Policy, Rule},
    stream_def::{SettingValue, StreamDef, TP_TIME},
    testkit::{crash_store::CrashDisk, defs},
};
use object_store::ObjectStore;
use std::{collections::BTreeMap, path::Path, sync::Arc};

pub mod power;
pub mod tiered;

pub use ebb_storage::testkit::defs::column;

pub const DAY: i64 = 86_400_000_000;
pub const START: Timestamp = Timestamp(20_000 * DAY);

/// `col`, `col + N days`, `col = 'text'`, `col = N`, `month(col)`.
pub struct Words;

struct Word {
    column: String,
    id: ColumnId,
    what: What,
}

enum What {
    Value,
    PlusDays(i64),
    Is(String),
    Month,
}

impl ExprCompiler for Words {
    fn compile(&self, text: &str, def: &StreamDef) -> Result<Arc<dyn RowExpr>> {
        let text = text.trim();
        let (column, what) = if let Some(inner) = text.strip_prefix("month(").and_then(|t| t.strip_suffix(')')) {
            (inner.trim(), What::Month)
        } else if let Some((column, days)) = text.split_once(" + ") {
            let n = days.trim_end_matches(" days").parse().map_err(|_| Error::invalid(format!("days in '{text}'")))?;
            (column, What::PlusDays(n))
        } else if let Some((column, value)) = text.split_once(" = ") {
            (column, What::Is(value.trim_matches('\'').to_owned()))
        } else {
            (text, What::Value)
        };
        let id = match column {
            TP_TIME => ColumnId::TP_TIME,
            _ => def.column(column).ok_or_else(|| Error::invalid(format!("no column '{column}'")))?.id,
        };
        Ok(Arc::new(Word { column: column.to_owned(), id, what }))
    }

    fn folder(&self, _: &[String], _: &[(String, String)], _: &StreamDef) -> Result<Arc<dyn Folder>> {
        Ok(Arc::new(SumsByHost))
    }
}

/// One row for each host: v is the sum, the rest of the newest row, the sn the lowest.
struct SumsByHost;

impl Folder for SumsByHost {
    fn fold(&self, rows: Batches) -> Result<Vec<RecordBatch>> {
        let mut by_host: BTreeMap<String, (i64, i64, i64)> = BTreeMap::new();
        let mut schema = None;
        for batch in rows {
            let batch = batch?;
            schema = Some(batch.schema());
            let ints = |name: &str| batch.column_by_name(name).unwrap().as_primitive::<Int64Type>().clone();
            let times = batch.column_by_name("ts").unwrap().as_primitive::<TimestampMicrosecondType>().clone();
            let (host, v, sn) = (batch.column(0).as_string_view(), ints("v"), ints("_tp_sn"));
            for i in 0..batch.num_rows() {
                let folded = by_host.entry(host.value(i).to_owned()).or_insert((i64::MIN, 0, i64::MAX));
                *folded = (folded.0.max(times.value(i)), folded.1 + v.value(i), folded.2.min(sn.value(i)));
            }
        }
        let Some(schema) = schema else { return Ok(Vec::new()) };
        let ts = || TimestampMicrosecondArray::from_iter_values(by_host.values().map(|f| f.0));
        let columns: Vec<ArrayRef> = vec![
            Arc::new(StringViewArray::from_iter_values(by_host.keys())),
            Arc::new(ts()),
            Arc::new(Int64Array::from_iter_values(by_host.values().map(|f| f.1))),
            Arc::new(ts().with_timezone("UTC")),
            Arc::new(Int64Array::from_iter_values(by_host.values().map(|f| f.2))),
        ];
        Ok(vec![RecordBatch::try_new(schema, columns)?])
    }
}

impl RowExpr for Word {
    fn evaluate(&self, rows: &RecordBatch) -> Result<ArrayRef> {
        let column = rows.column_by_name(&self.column).ok_or_else(|| Error::invalid(format!("rows lack '{}'", self.column)))?;
        Ok(match &self.what {
            What::Value => column.clone(),
            What::PlusDays(n) => {
                let times = column.as_primitive::<TimestampMicrosecondType>();
                Arc::new(times.unary::<_, TimestampMicrosecondType>(|t| t.saturating_add(n * DAY)))
            }
            What::Is(value) => match column.data_type() {
                DataType::Int64 => {
                    let value: i64 = value.parse().map_err(|_| Error::invalid(value.clone()))?;
                    Arc::new(BooleanArray::from_iter(column.as_primitive::<Int64Type>().iter().map(|v| v.map(|v| v == value))))
                }
                _ => Arc::new(BooleanArray::from_iter(column.as_string_view().iter().map(|v| v.map(|v| v == value)))),
            },
            What::Month => {
                let times = column.as_primitive::<TimestampMicrosecondType>();
                Arc::new(Int32Array::from_iter(times.iter().map(|t| t.map(|t| (t / (30 * DAY)) as i32))))
            }
        })
    }
    fn columns(&self) -> &[ColumnId] {
        std::slice::from_ref(&self.id)
    }
    fn monotone_in(&self) -> Option<ColumnId> {
        matches!(self.what, What::Value | What::PlusDays(_)).then_some(self.id)
    }
}

pub fn delete(when: &str, only: Option<&str>, fingerprint: u64) -> Rule {
    Rule { when: when.to_owned(), action: Action::Delete { only: only.map(str::to_owned) }, fingerprint: Fingerprint(fingerprint) }
}

/// Folds rows by host, v becomes the sum.
pub fn sum_by_host(when: &str, fingerprint: u64) -> Rule {
    let action = Action::GroupBy { keys: vec!["host".to_owned()], set: vec![("v".to_owned(), "sum(v)".to_owned())] };
    Rule { when: when.to_owned(), action, fingerprint: Fingerprint(fingerprint) }
}

/// host, ts, v; one partition per 30 days of ts; sorted by host, ts.
pub fn def(name: &str, rules: Vec<Rule>) -> StreamDef {
    let columns =
        vec![column(1, "host", ColumnType::String), column(2, "ts", ColumnType::DateTime64(6, None)), column(3, "v", ColumnType::Int64)];
    let keys = vec!["host".to_owned(), "ts".to_owned()];
    StreamDef {
        partition_by: vec!["month(ts)".to_owned()],
        order_by: keys.clone(),
        primary_key: keys,
        policy: Policy { ttl: rules, retention: Vec::new() },
        ..defs::stream(name, columns)
    }
}

pub fn with(mut def: StreamDef, name: &str, value: i64) -> StreamDef {
    let value = if name.starts_with("ttl_only") { SettingValue::Bool(value != 0) } else { SettingValue::Int(value) };
    def.settings.insert(name.to_owned(), value);
    def
}

/// Rows (host, ts, v) as the stream takes them; `_tp_time` is ts.
pub fn rows(of: &[(&str, i64, i64)]) -> RecordBatch {
    let schema = def("x", Vec::new()).row_schema();
    let ts = || TimestampMicrosecondArray::from_iter_values(of.iter().map(|r| r.1));
    let columns: Vec<ArrayRef> = vec![
        Arc::new(StringViewArray::from_iter_values(of.iter().map(|r| r.0))),
        Arc::new(ts()),
        Arc::new(Int64Array::from_iter_values(of.iter().map(|r| r.2))),
        Arc::new(ts().with_timezone("UTC")),
    ];
    RecordBatch::try_new(schema, columns).unwrap()
}

pub fn v1() -> InsertOptions {
    InsertOptions { schema_version: SchemaVersion(1), ..InsertOptions::default() }
}

pub fn options(dir: &Path, clock: Clock, background: bool) -> OpenOptions {
    OpenOptions { dir: dir.to_owned(), clock, compiler: Arc::new(Words), settings: BTreeMap::new(), background }
}

pub async fn open(dir: &Path) -> Arc<Engine> {
    Engine::open(options(dir, Clock::simulated(START), false)).await.unwrap()
}

/// Over a double, with `data` as the default disk.
pub fn places(machine: &CrashDisk, data: Arc<dyn ObjectStore>) -> Places {
    let disks = vec![Disk::new(DiskId::DEFAULT, "default", data)];
    Places {
        database: DatabaseId("d".to_owned()),
        meta: machine.store("meta"),
        log: machine.log(),
        disks,
        connect: std::sync::Arc::new(ebb_storage::disk::connect::Real),
        dir: None,
    }
}

/// Opens over a double, on a clock that stands at `now`.
pub async fn open_on(machine: &CrashDisk, now: Timestamp) -> Result<Arc<Engine>> {
    Engine::open_at(options(Path::new("nowhere"), Clock::simulated(now), false), places(machine, machine.store("data"))).await
}

/// (v, sn) of all rows that main's head sees, sorted.
pub async fn read(engine: &Engine, stream: StreamId) -> Vec<(i64, i64)> {
    read_view(&engine.read(), stream).await
}

/// [`read`] of an earlier cut.
pub async fn read_view(view: &ReadView, stream: StreamId) -> Vec<(i64, i64)> {
    match view.stream(stream) {
        Some(s) => rows_of(&s).await,
        None => Vec::new(),
    }
}

/// v of all rows that an earlier state had, sorted.
pub async fn values_at(engine: &Engine, stream: StreamId, at: AsOf) -> Result<Vec<i64>> {
    let view = engine.read().stream_as_of(stream, &at, engine.now())?;
    Ok(rows_of(&view).await.into_iter().map(|(v, _)| v).collect())
}

/// A DELETE of the rows for which `condition` holds.
pub fn deleting(engine: &Engine, stream: StreamId, condition: &str) -> DeleteRequest {
    let def = engine.read().stream(stream).unwrap().def;
    DeleteRequest {
        stream,
        branch: None,
        matches: Words.compile(condition, &def).unwrap(),
        schema_version: def.schema_version,
        skip: Arc::new(|_| false),
    }
}

/// A new tag of main's head, with nothing said.
pub fn tag(name: &str) -> NewRef {
    NewRef {
        kind: RefKind::Tag,
        mode: RefMode::Create,
        if_not_exists: false,
        name: name.into(),
        as_of: None,
        retain_ms: None,
        min_snapshots: None,
        max_snapshot_age_ms: None,
    }
}

/// The same, a branch.
pub fn branch(name: &str) -> NewRef {
    NewRef { kind: RefKind::Branch, ..tag(name) }
}

/// (v, sn) of all rows of a view, sorted.
pub async fn rows_of(s: &StreamView) -> Vec<(i64, i64)> {
    let mut rows = rows_in_order(s).await;
    rows.sort_unstable();
    rows
}

/// [`rows_of`] as they come.
pub async fn rows_in_order(s: &StreamView) -> Vec<(i64, i64)> {
    let mut out = Vec::new();
    for part in &s.parts {
        let reader = PartReader::open_verified(&part.store, &part.key, &part.meta).await.unwrap();
        let mut at = 0u32;
        for batch in reader.read(&ReadOptions::default()).unwrap() {
            let batch = batch.unwrap();
            let v = batch.column_by_name("v").unwrap().as_primitive::<Int64Type>().clone();
            let sn = batch.column_by_name("_tp_sn").unwrap().as_primitive::<Int64Type>().clone();
            for i in 0..batch.num_rows() {
                let sn = part.sn_of_record.map_or(sn.value(i), |s| s.0 as i64);
                let seen = part.sns.as_ref().is_none_or(|set| set.contains(ebb_storage::ids::Sn(sn as u64)));
                if seen && part.hidden.as_ref().is_none_or(|h| !h.0.contains(at)) {
                    out.push((v.value(i), sn));
                }
                at += 1;
            }
        }
    }
    for tail in &s.tail {
        let v = tail.rows.column_by_name("v").unwrap().as_primitive::<Int64Type>().clone();
        let sns = tail.sn_column();
        let sns = sns.as_primitive::<Int64Type>();
        out.extend((0..v.len()).map(|i| (v.value(i), sns.value(i))));
    }
    out
}

/// Of the stream's past nothing can be read any more.
pub async fn forget_the_past(engine: &Engine, stream: StreamId) {
    let all = Overrides { older_than: Some(Timestamp::MAX), retain_last: Some(1), dry_run: false };
    engine.expire_snapshots(stream, all).await.unwrap();
}

/// v of all rows, sorted.
pub async fn values(engine: &Engine, stream: StreamId) -> Vec<i64> {
    read(engine, stream).await.into_iter().map(|(v, _)| v).collect()
}

pub fn parts(engine: &Engine, stream: StreamId) -> usize {
    engine.read().stream(stream).map_or(0, |s| s.parts.len())
}

/// Files of parts on the default disk.
pub fn files(dir: &Path) -> usize {
    fn walk(dir: &Path) -> usize {
        let Ok(entries) = std::fs::read_dir(dir) else { return 0 };
        entries
            .flatten()
            .map(|e| if e.path().is_dir() { walk(&e.path()) } else { usize::from(e.path().extension().is_some_and(|x| x == "parquet")) })
            .sum()
    }
    walk(dir)
}
