//! Files of one JSON object a line: what their keys hold, and their rows by the types of a stream's columns.
//!
//! Guards: values become columns by their own digits, never through a float; an error names the line. A key that a line lacks leaves its
//! column to its default, a key that is null is NULL.

use super::Part;
use crate::{
    Error, Result, sqlstate,
    types::{
        parse_text,
        text::json::{self, Kind},
    },
};
use arrow::{
    array::{ArrayRef, BooleanArray, RecordBatch, RecordBatchOptions},
    datatypes::{Field, Schema},
};
use ebb_storage::{
    column_type::ColumnType,
    stream_def::{StreamDef, TP_TIME},
};
use std::{io::BufRead, sync::Arc};

/// A longer line is refused.
const LINE_BYTES_MAX: usize = 64 << 20;
/// Of the lines that are held.
const HELD_BYTES: usize = 16 << 20;

/// Lines that hold something, with their numbers.
struct Lines<R> {
    reader: R,
    number: u64,
}

impl<R: BufRead> Lines<R> {
    fn next(&mut self) -> Result<Option<String>> {
        loop {
            let mut line = Vec::new();
            let read = std::io::Read::take(&mut self.reader, LINE_BYTES_MAX as u64 + 1).read_until(b'\n', &mut line)?;
            if read == 0 {
                return Ok(None);
            }
            self.number += 1;
            if read > LINE_BYTES_MAX {
                return Err(self.error("54000", format_args!("longer than {LINE_BYTES_MAX} bytes")));
            }
            let line = String::from_utf8(line).map_err(|e| self.error("22021", format_args!("not UTF-8: {e}")))?;
            let text = if self.number == 1 { line.trim_start_matches('\u{feff}') } else { &line };
            if !text.trim().is_empty() {
                return Ok(Some(text.trim().to_owned()));
            }
        }
    }

    fn error(&self, state: &'static str, why: impl std::fmt::Display) -> Error {
        error(self.number, state, why)
    }

    fn members<'a>(&self, line: &'a str) -> Result<Vec<(String, &'a str)>> {
        json::raw_members(line).map_err(|why| self.error("22P02", format_args!("no JSON object: {why}")))
    }
}

fn error(line: u64, state: &'static str, why: impl std::fmt::Display) -> Error {
    Error::invalid(format!("line {line}: {why}")).with_sqlstate(state)
}

/// What was seen of a key.
#[derive(Debug, Default, Clone, PartialEq)]
struct Seen {
    integers: bool,
    unsigned: bool,
    /// Integers of more digits than any integer type has.
    long: bool,
    floats: bool,
    flags: bool,
    texts: bool,
    objects: bool,
    /// What lists hold.
    lists: Option<Box<Seen>>,
}

impl Seen {
    fn add(&mut self, raw: &str) {
        match json::kind(raw) {
            Kind::Null => {}
            Kind::Flag => self.flags = true,
            Kind::Text => self.texts = true,
            Kind::Object => self.objects = true,
            Kind::List => {
                let inner = self.lists.get_or_insert_default();
                json::raw_elements(raw).iter().for_each(|e| inner.add(e));
            }
            Kind::Number if raw.contains(['.', 'e', 'E']) => self.floats = true,
            Kind::Number if raw.parse::<i64>().is_ok() => self.integers = true,
            Kind::Number if raw.parse::<u64>().is_ok() => self.unsigned = true,
            Kind::Number => self.long = true,
        }
    }

    /// The type that holds all of it.
    fn ty(&self) -> String {
        let numbers = self.integers || self.unsigned || self.long || self.floats;
        let kinds = [numbers, self.flags, self.texts, self.objects, self.lists.is_some()];
        match (kinds.iter().filter(|k| **k).count(), &self.lists) {
            (0, _) => "string".into(),
            (1, Some(inner)) if inner.objects || inner.lists.is_some() => "json".into(),
            (1, Some(inner)) => format!("array(nullable({}))", inner.ty()),
            (1, None) if self.objects => "json".into(),
            (1, None) if self.flags => "bool".into(),
            (1, None) if self.texts => "string".into(),
            (1, None) if self.floats => "float64".into(),
            (1, None) if self.long || self.unsigned && self.integers => "decimal(38, 0)".into(),
            (1, None) if self.unsigned => "uint64".into(),
            (1, None) => "int64".into(),
            _ if self.objects || self.lists.is_some() => "json".into(),
            _ => "string".into(),
        }
    }
}

/// The keys of all lines in the order in which they come, each with the type that holds its values.
pub fn keys(reader: impl BufRead) -> Result<Vec<(String, String)>> {
    let mut lines = Lines { reader, number: 0 };
    let mut keys: Vec<(String, Seen)> = Vec::new();
    while let Some(line) = lines.next()? {
        for (at, (key, raw)) in lines.members(&line)?.into_iter().enumerate() {
            // Nearly always where it was in the line before.
            let place = if keys.get(at).is_some_and(|(k, _)| *k == key) { Some(at) } else { keys.iter().position(|(k, _)| *k == key) };
            match place {
                Some(place) => keys[place].1.add(raw),
                None => {
                    let mut seen = Seen::default();
                    seen.add(raw);
                    keys.push((key, seen));
                }
            }
        }
    }
    Ok(keys.into_iter().map(|(key, seen)| (key, seen.ty())).collect())
}

struct Column {
    name: String,
    ty: ColumnType,
    nullable: bool,
    field: Arc<Field>,
    texts: Vec<Option<String>>,
    missing: Vec<bool>,
}

/// Rows in the columns of a stream.
pub(crate) struct Rows<R> {
    lines: Lines<R>,
    columns: Vec<Column>,
    rows_max: usize,
    failed: bool,
}

impl<R: BufRead> Rows<R> {
    /// `keys`: those of the file.
    ///
    /// # Errors
    /// For a key that is no column.
    pub fn new(reader: R, keys: &[(String, String)], def: &StreamDef, rows_max: usize) -> Result<Self> {
        let column = |name: &String| {
            let (ty, nullable) = match def.column(name) {
                Some(column) => (column.ty.clone(), column.nullable),
                None if name == TP_TIME => (ColumnType::DateTime64(3, Some("UTC".into())), false),
                None => {
                    let near = crate::nearest::did_you_mean(name, def.columns.iter().map(|c| c.name.as_str()));
                    let message = format!("key '{name}' is no column of {}{near}", def.full_name());
                    return Err(Error::invalid(message).with_sqlstate(sqlstate::UNDEFINED_COLUMN));
                }
            };
            let field = Arc::new(Field::new(name, ty.arrow(), true));
            Ok(Column { name: name.clone(), ty, nullable, field, texts: Vec::new(), missing: Vec::new() })
        };
        let columns = keys.iter().map(|(name, _)| column(name)).collect::<Result<Vec<_>>>()?;
        Ok(Self { lines: Lines { reader, number: 0 }, columns, rows_max, failed: false })
    }

    fn read(&mut self) -> Result<Option<Part>> {
        let mut numbers = Vec::new();
        let mut held = 0;
        while numbers.len() < self.rows_max && held < HELD_BYTES {
            let Some(line) = self.lines.next()? else { break };
            held += line.len();
            let row = numbers.len();
            for column in &mut self.columns {
                column.texts.push(None);
                column.missing.push(true);
            }
            for (at, (key, raw)) in self.lines.members(&line)?.into_iter().enumerate() {
                let place = if self.columns.get(at).is_some_and(|c| c.name == key) {
                    Some(at)
                } else {
                    self.columns.iter().position(|c| c.name == key)
                };
                let Some(place) = place else { return Err(self.lines.error("22P02", "the file has changed meanwhile")) };
                let column = &mut self.columns[place];
                let json = *column.ty.plain() == ColumnType::Json && json::kind(raw) != Kind::Null;
                column.texts[row] = if json { Some(raw.to_owned()) } else { json::value(raw) };
                column.missing[row] = false;
                if column.texts[row].is_none() && !column.nullable {
                    let message = format!("column '{}' takes no NULL: leave the key out for its default", column.name);
                    return Err(self.lines.error(sqlstate::NOT_NULL_VIOLATION, message));
                }
            }
            numbers.push(self.lines.number);
        }
        if numbers.is_empty() {
            return Ok(None);
        }
        let mut arrays: Vec<ArrayRef> = Vec::with_capacity(self.columns.len());
        let mut missing = Vec::with_capacity(self.columns.len());
        for column in &mut self.columns {
            let texts = std::mem::take(&mut column.texts);
            let array = parse_text(texts.iter().map(Option::as_deref), &column.ty, &column.name);
            let array = array.map_err(|r| error(numbers.get(r.row).copied().unwrap_or(0), r.sqlstate, &r.message))?;
            arrays.push(arrow::compute::cast(&array, column.field.data_type())?);
            let lacks = std::mem::take(&mut column.missing);
            missing.push(lacks.contains(&true).then(|| BooleanArray::from(lacks)));
        }
        let schema = Schema::new(self.columns.iter().map(|c| c.field.clone()).collect::<Vec<_>>());
        let options = RecordBatchOptions::new().with_row_count(Some(numbers.len()));
        let rows = RecordBatch::try_new_with_options(Arc::new(schema), arrays, &options)?;
        Ok(Some(Part { rows, missing }))
    }
}

impl<R: BufRead> Iterator for Rows<R> {
    type Item = Result<Part>;
    fn next(&mut self) -> Option<Result<Part>> {
        if self.failed {
            return None;
        }
        let read = self.read().transpose();
        self.failed = matches!(read, Some(Err(_)));
        read
    }
}

#[cfg(test)]
mod tests;
