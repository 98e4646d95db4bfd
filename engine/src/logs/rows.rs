//! Rows of the two logs as batches in the `row_schema` of their streams, and back.

use super::Log;
use arrow::{
    array::{ArrayRef, AsArray, Int64Array, RecordBatch, StringViewArray, TimestampMicrosecondArray},
    datatypes::{Int64Type, TimestampMicrosecondType},
};
use ebb_storage::{
    Error, Result, Timestamp,
    ids::{ColumnId, Fingerprint},
    manifest::edit::{LifecycleLogRow, PartEvent, PartLogRow},
};
use std::sync::Arc;

/// Between the names of several parts in one text.
const BETWEEN: &str = ", ";

fn times(of: impl Iterator<Item = Timestamp>) -> ArrayRef {
    Arc::new(TimestampMicrosecondArray::from_iter_values(of.map(|t| t.0)).with_timezone("UTC"))
}

fn texts<T: AsRef<str>>(of: impl Iterator<Item = T>) -> ArrayRef {
    Arc::new(StringViewArray::from_iter_values(of))
}

/// Counts beyond what an int64 holds are its largest.
fn counts(of: impl Iterator<Item = u64>) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(of.map(|n| i64::try_from(n).unwrap_or(i64::MAX))))
}

/// The stream's columns, and `_tp_time`, which is the event's time.
fn batch(log: Log, mut columns: Vec<ArrayRef>) -> Result<RecordBatch> {
    columns.push(columns[0].clone());
    Ok(RecordBatch::try_new(log.def().row_schema(), columns)?)
}

pub fn of_part_log<'a>(rows: impl Iterator<Item = &'a Arc<PartLogRow>>) -> Result<RecordBatch> {
    let rows: Vec<&PartLogRow> = rows.map(Arc::as_ref).collect();
    let r = || rows.iter().copied();
    batch(
        Log::Part,
        vec![
            times(r().map(|r| r.time)),
            texts(r().map(|r| r.event.name())),
            texts(r().map(|r| &r.database)),
            texts(r().map(|r| &r.stream)),
            texts(r().map(|r| &r.part)),
            texts(r().map(|r| r.source_parts.join(BETWEEN))),
            texts(r().map(|r| &r.partition)),
            texts(r().map(|r| &r.disk)),
            counts(r().map(|r| r.rows)),
            counts(r().map(|r| r.bytes)),
            counts(r().map(|r| r.rows_read)),
            counts(r().map(|r| r.bytes_read)),
            counts(r().map(|r| r.duration_ms)),
            texts(r().map(|r| &r.reason)),
            texts(r().map(|r| &r.error)),
        ],
    )
}

pub fn of_lifecycle_log<'a>(rows: impl Iterator<Item = &'a Arc<LifecycleLogRow>>) -> Result<RecordBatch> {
    let rows: Vec<&LifecycleLogRow> = rows.map(Arc::as_ref).collect();
    let r = || rows.iter().copied();
    let columns = |r: &LifecycleLogRow| r.columns.iter().map(ToString::to_string).collect::<Vec<_>>().join(BETWEEN);
    batch(
        Log::Lifecycle,
        vec![
            times(r().map(|r| r.time)),
            texts(r().map(|r| &r.database)),
            texts(r().map(|r| &r.stream)),
            texts(r().map(|r| &r.rule)),
            texts(r().map(|r| r.fingerprint.to_string())),
            texts(r().map(|r| &r.action)),
            texts(r().map(|r| &r.part)),
            counts(r().map(|r| r.rows_before)),
            counts(r().map(|r| r.rows_after)),
            counts(r().map(|r| r.bytes_before)),
            counts(r().map(|r| r.bytes_after)),
            texts(r().map(|r| &r.reason)),
            counts(r().map(|r| r.duration_ms)),
            texts(r().map(|r| &r.error)),
            texts(r().map(columns)),
        ],
    )
}

/// One row of a batch, column by column.
struct Row<'a> {
    batch: &'a RecordBatch,
    at: usize,
    next: usize,
}

impl Row<'_> {
    fn column(&mut self) -> Result<&ArrayRef> {
        self.next += 1;
        self.batch.columns().get(self.next - 1).ok_or_else(|| Error::corrupt("a row of a log lacks columns"))
    }
    fn time(&mut self) -> Result<Timestamp> {
        let at = self.at;
        let times = self.column()?.as_primitive_opt::<TimestampMicrosecondType>().ok_or_else(damaged)?;
        Ok(Timestamp(times.value(at)))
    }
    fn text(&mut self) -> Result<String> {
        let at = self.at;
        Ok(self.column()?.as_string_view_opt().ok_or_else(damaged)?.value(at).to_owned())
    }
    fn count(&mut self) -> Result<u64> {
        let at = self.at;
        let numbers = self.column()?.as_primitive_opt::<Int64Type>().ok_or_else(damaged)?;
        u64::try_from(numbers.value(at)).map_err(|_| damaged())
    }
    fn list(&mut self) -> Result<Vec<String>> {
        Ok(self.text()?.split(BETWEEN).filter(|t| !t.is_empty()).map(str::to_owned).collect())
    }
}

fn damaged() -> Error {
    Error::corrupt("a row of a log is not as it was written")
}

fn each<T>(batch: &RecordBatch, one: impl Fn(Row<'_>) -> Result<T>) -> Result<Vec<T>> {
    (0..batch.num_rows()).map(|at| one(Row { batch, at, next: 0 })).collect()
}

pub fn to_part_log(batch: &RecordBatch) -> Result<Vec<PartLogRow>> {
    each(batch, |mut r| {
        Ok(PartLogRow {
            time: r.time()?,
            event: r.text().and_then(|name| PartEvent::ALL.into_iter().find(|e| e.name() == name).ok_or_else(damaged))?,
            database: r.text()?,
            stream: r.text()?,
            part: r.text()?,
            source_parts: r.list()?,
            partition: r.text()?,
            disk: r.text()?,
            rows: r.count()?,
            bytes: r.count()?,
            rows_read: r.count()?,
            bytes_read: r.count()?,
            duration_ms: r.count()?,
            reason: r.text()?,
            error: r.text()?,
        })
    })
}

pub fn to_lifecycle_log(batch: &RecordBatch) -> Result<Vec<LifecycleLogRow>> {
    each(batch, |mut r| {
        Ok(LifecycleLogRow {
            time: r.time()?,
            database: r.text()?,
            stream: r.text()?,
            rule: r.text()?,
            fingerprint: Fingerprint(r.text()?.parse().map_err(|_| damaged())?),
            action: r.text()?,
            part: r.text()?,
            rows_before: r.count()?,
            rows_after: r.count()?,
            bytes_before: r.count()?,
            bytes_after: r.count()?,
            reason: r.text()?,
            duration_ms: r.count()?,
            error: r.text()?,
            columns: r.list()?.iter().map(|t| t.parse().map(ColumnId).map_err(|_| damaged())).collect::<Result<_>>()?,
        })
    })
}
