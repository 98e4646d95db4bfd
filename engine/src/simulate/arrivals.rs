//! Parts as ingest would flush them: the rows of an even stream, cut by partition, with what the rules say of their first and last.
//!
//! A row is stood for by one in which every date and time column holds its event time and the others their default or zero. Rows are
//! evaluated many flushes at a time; between two looks of a flush the partition is taken to stay the same.

use super::{options::SimOptions, slice::Due, world::World};
use crate::{
    facts::{Concern, due_of},
    ingest::partition,
    stream::CompiledRule,
    upgrade,
};
use arrow::{
    array::{ArrayRef, RecordBatch, RecordBatchOptions, TimestampMicrosecondArray, TimestampNanosecondArray},
    compute::cast,
    datatypes::{DataType, Schema, TimeUnit},
};
use ebb_storage::{
    Error, Result, Timestamp,
    column_type::ColumnType,
    stream_def::{ColumnDef, TP_TIME},
};
use std::{collections::VecDeque, sync::Arc};

/// Flushes that are evaluated together.
const FLUSHES_AT_ONCE: u64 = 256;
/// Looks at the partition of a flush's rows.
const LOOKS: i64 = 24;

/// What one flush writes of one partition.
#[derive(Debug, Clone, PartialEq)]
pub struct Share {
    pub partition: Arc<str>,
    /// Event times from `began` on, before `to`.
    pub began: Timestamp,
    pub to: Timestamp,
    pub rows: u64,
    /// By rule.
    pub due: Vec<Due>,
}

pub struct Arrivals<'a> {
    world: &'a World,
    options: &'a SimOptions,
    /// Of the flushes from `next` on.
    made: VecDeque<Vec<Share>>,
    next: u64,
}

impl<'a> Arrivals<'a> {
    pub fn new(world: &'a World, options: &'a SimOptions) -> Self {
        Self { world, options, made: VecDeque::new(), next: 0 }
    }

    /// When the next flush is.
    pub fn at(&self) -> Option<Timestamp> {
        (self.next < self.options.flushes()).then(|| self.options.flush_begins(self.next + 1))
    }

    pub fn next(&mut self) -> Result<Vec<Share>> {
        if self.made.is_empty() {
            let until = self.options.flushes().min(self.next + FLUSHES_AT_ONCE);
            self.made = self.make(self.next, until)?.into();
        }
        self.next += 1;
        Ok(self.made.pop_front().unwrap_or_default())
    }

    fn make(&self, from: u64, until: u64) -> Result<Vec<Vec<Share>>> {
        let mut flushes: Vec<Vec<Share>> = (from..until).map(|n| self.whole(n)).collect();
        if !self.world.def().partition_by.is_empty() {
            self.cut(from, &mut flushes)?;
        }
        let shares = || flushes.iter().flatten();
        let times = shares().flat_map(|s| [s.began, Timestamp(s.to.0 - 1)]).collect::<Vec<_>>();
        let due = self.due(&times)?;
        for (i, share) in flushes.iter_mut().flatten().enumerate() {
            share.due = due.iter().map(|rule| rule.get(i).copied().flatten()).collect();
        }
        Ok(flushes)
    }

    fn whole(&self, n: u64) -> Vec<Share> {
        let (began, to) = (self.options.flush_begins(n), self.options.flush_begins(n + 1));
        let rows = self.options.rows_of_flush(n);
        let whole = Share { partition: partition::ALL.into(), began, to, rows, due: Vec::new() };
        if rows == 0 { Vec::new() } else { vec![whole] }
    }

    /// Cuts each flush where its rows' partition changes.
    fn cut(&self, from: u64, flushes: &mut [Vec<Share>]) -> Result<()> {
        let (at, to) = (|n| self.options.flush_begins(n).0, from + flushes.len() as u64);
        let look = |n: u64, i: i64| Timestamp(at(n) + (i128::from(at(n + 1) - at(n)) * i128::from(i) / i128::from(LOOKS)) as i64);
        let times: Vec<Timestamp> = (from..to).flat_map(|n| (0..LOOKS).map(move |i| look(n, i))).collect();
        let rows = self.rows(&times)?;
        let values = self.world.compiled.partition_values(&rows)?;
        let mut names: Vec<Option<Arc<str>>> = vec![None; times.len()];
        for share in partition::split(&values, times.len(), usize::MAX)? {
            match &share.rows {
                None => names.iter_mut().for_each(|n| *n = Some(share.partition.clone())),
                Some(rows) => rows.values().iter().for_each(|row| names[*row as usize] = Some(share.partition.clone())),
            }
        }
        for (flush, names) in flushes.iter_mut().zip(names.chunks(LOOKS as usize)) {
            let Some(whole) = flush.pop() else { continue };
            let (span, begun) = (whole.to.0 - whole.began.0, whole.began.0);
            let mut i = 0usize;
            for alike in names.chunk_by(|a, b| a == b) {
                let edge = |i: usize| begun + (i128::from(span) * i as i128 / i128::from(LOOKS)) as i64;
                let rows = |i: usize| (u128::from(whole.rows) * i as u128 / LOOKS as u128) as u64;
                let end = i + alike.len();
                let rows = rows(end) - rows(i);
                if let (Some(Some(name)), true) = (alike.first(), rows > 0) {
                    flush.push(Share {
                        partition: name.clone(),
                        began: Timestamp(edge(i)),
                        to: Timestamp(edge(end)),
                        rows,
                        due: Vec::new(),
                    });
                }
                i = end;
            }
        }
        Ok(())
    }

    /// Of each rule, for each pair of rows when the first and the last are due.
    fn due(&self, times: &[Timestamp]) -> Result<Vec<Vec<Due>>> {
        let rules = &self.world.compiled.rules;
        if rules.is_empty() || times.is_empty() {
            return Ok(vec![Vec::new(); rules.len()]);
        }
        let rows = self.rows(times)?;
        let of_rule = |rule: &CompiledRule| {
            let alone = CompiledRule { rule: rule.rule.clone(), when: rule.when.clone(), only: None, fold: None };
            // A rule that cannot be evaluated leaves its rows alone.
            let Ok(concerns) = due_of(&alone, &rows) else { return vec![None; times.len() / 2] };
            let pair = |c: &[Concern]| match c {
                [Concern::At(first), Concern::At(last)] => Some((*first, *last)),
                _ => None,
            };
            concerns.chunks(2).map(pair).collect()
        };
        Ok(rules.iter().map(of_rule).collect())
    }

    /// A row for each event time, in the stream's `row_schema`.
    fn rows(&self, times: &[Timestamp]) -> Result<RecordBatch> {
        let (def, compiler) = (self.world.def(), self.world.compiler.as_ref());
        let schema = &self.world.compiled.row_schema;
        let options = RecordBatchOptions::new().with_row_count(Some(times.len()));
        let mut columns: Vec<Option<ArrayRef>> = vec![None; schema.fields().len()];
        let stored: Vec<&ColumnDef> = def.stored().collect();
        for (at, field) in schema.fields().iter().enumerate() {
            let of = stored.get(at).copied();
            columns[at] = match of {
                Some(c) if c.ty.is_time() && !self.is_computed(c) => Some(event_times(&c.ty, times)?),
                None if field.name() == TP_TIME => Some(event_times(&ColumnType::DateTime64(6, Some("UTC".into())), times)?),
                _ => None,
            };
        }
        // A default may name columns that were made before it.
        for at in 0..columns.len() {
            let (None, Some(column)) = (&columns[at], stored.get(at)) else { continue };
            let known = schema.fields().iter().zip(&columns).filter_map(|(f, c)| Some((f.clone(), c.clone()?)));
            let (fields, arrays): (Vec<_>, Vec<_>) = known.unzip();
            let known = RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), arrays, &options)?;
            let made = upgrade::defaults(column, def, &known, compiler);
            let zero =
                || upgrade::defaults(&ColumnDef { default: None, fill: None, nullable: false, ..(*column).clone() }, def, &known, compiler);
            columns[at] = Some(made.or_else(|_| zero())?);
        }
        let columns = columns.into_iter().collect::<Option<Vec<_>>>().ok_or_else(|| Error::internal("a column of no kind"))?;
        Ok(RecordBatch::try_new_with_options(schema.clone(), columns, &options)?)
    }

    /// Whether the column's values are made of other columns.
    fn is_computed(&self, column: &ColumnDef) -> bool {
        let Some(default) = &column.default else { return false };
        let compiled = self.world.compiler.compile(&default.expr, self.world.def());
        compiled.is_ok_and(|e| !e.columns().is_empty())
    }
}

/// Event times as values of a date or time type, cut to its precision.
fn event_times(ty: &ColumnType, times: &[Timestamp]) -> Result<ArrayRef> {
    let cut = match ty.plain() {
        ColumnType::DateTime(_) => 1_000_000,
        ColumnType::DateTime64(digits, _) => 10i64.pow(6u32.saturating_sub(u32::from(*digits))),
        _ => 1,
    };
    let micros = times.iter().map(|t| t.0.div_euclid(cut) * cut);
    let wanted = ty.arrow();
    Ok(match &wanted {
        DataType::Timestamp(TimeUnit::Nanosecond, zone) => {
            Arc::new(micros.map(|t| t.checked_mul(1000)).collect::<TimestampNanosecondArray>().with_timezone_opt(zone.clone()))
        }
        DataType::Timestamp(_, zone) => Arc::new(TimestampMicrosecondArray::from_iter_values(micros).with_timezone_opt(zone.clone())),
        _ => cast(&TimestampMicrosecondArray::from_iter_values(micros), &wanted)?,
    })
}
