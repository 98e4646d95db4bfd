//! COPY data in PostgreSQL's binary format, as columns.
//!
//! Guards: every error names the row; a row is as long as its client says only up to a limit; nothing is guessed: a value has the binary
//! form of its column's type.

use super::ingest::Target;
use crate::{
    Error, Result,
    types::{coerce, parse_text},
    wire::{params, types::pg_type},
};
use arrow::{
    array::{ArrayRef, AsArray},
    compute::cast,
    datatypes::DataType,
};
use datafusion::common::ScalarValue;
use ebb_storage::{
    column_type::ColumnType,
    stream_def::{ColumnDef, StreamDef},
};
use pgwire::api::Type;
use std::sync::Arc;

/// How the data begins.
pub const SIGNATURE: &[u8] = b"PGCOPY\n\xff\r\n\0";
/// Row numbers within rows; not known here.
const WITH_OIDS: u32 = 1 << 16;
/// A row or header extension longer than this is refused.
const ROW_BYTES_MAX: usize = 64 << 20;
const BAD_FORMAT: &str = "22P04";

struct Column {
    name: String,
    pg: Type,
    values: Vec<ScalarValue>,
}

pub(super) struct BinaryDecoder {
    def: Arc<StreamDef>,
    columns: Vec<Column>,
    /// An unfinished row.
    pending: Vec<u8>,
    begun: bool,
    ended: bool,
    rows: usize,
    held_bytes: usize,
    /// Rows that are no longer held.
    rows_before: u64,
}

/// Reads forward; `None` where the bytes are not there yet.
struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    fn take(&mut self, n: usize) -> Option<&'a [u8]> {
        let found = self.bytes.get(self.at..self.at.checked_add(n)?)?;
        self.at += n;
        Some(found)
    }
    fn i16(&mut self) -> Option<i16> {
        self.take(2)?.try_into().ok().map(i16::from_be_bytes)
    }
    fn i32(&mut self) -> Option<i32> {
        self.take(4)?.try_into().ok().map(i32::from_be_bytes)
    }
}

impl BinaryDecoder {
    pub fn new(target: &Target) -> Self {
        let column = |c: &super::ingest::TargetColumn| Column { name: c.field.name().clone(), pg: pg_type(&c.field), values: Vec::new() };
        Self {
            def: target.def.clone(),
            columns: target.columns.iter().map(column).collect(),
            pending: Vec::new(),
            begun: false,
            ended: false,
            rows: 0,
            held_bytes: 0,
            rows_before: 0,
        }
    }

    pub fn rows(&self) -> usize {
        self.rows
    }

    pub fn bytes(&self) -> usize {
        self.held_bytes
    }

    /// The number of a held row, from 1.
    pub fn number_of(&self, row: usize) -> u64 {
        self.rows_before + row as u64 + 1
    }

    fn error(&self, state: &'static str, why: impl std::fmt::Display) -> Error {
        Error::invalid(format!("COPY, row {}: {why}", self.number_of(self.rows))).with_sqlstate(state)
    }

    pub fn push(&mut self, bytes: &[u8]) -> Result<()> {
        self.pending.extend_from_slice(bytes);
        let data = std::mem::take(&mut self.pending);
        let mut at = 0;
        while let Some(used) = self.piece(&data[at..])? {
            at += used;
        }
        self.pending = data;
        self.pending.drain(..at);
        Ok(())
    }

    /// The bytes of the header or row that `data` begins with, taken; `None` where it has no end yet.
    fn piece(&mut self, data: &[u8]) -> Result<Option<usize>> {
        if self.ended {
            return match data.is_empty() {
                true => Ok(None),
                false => Err(self.error(BAD_FORMAT, "data follows the end")),
            };
        }
        let mut cursor = Cursor { bytes: data, at: 0 };
        if !self.begun {
            return self.header(&mut cursor);
        }
        let Some(count) = cursor.i16() else { return Ok(None) };
        if count == -1 {
            self.ended = true;
            return Ok(Some(cursor.at));
        }
        if usize::try_from(count) != Ok(self.columns.len()) {
            return Err(self.error(BAD_FORMAT, format_args!("{count} values for {} columns", self.columns.len())));
        }
        let mut fields = Vec::with_capacity(self.columns.len());
        for column in &self.columns {
            let Some(length) = cursor.i32() else { return Ok(None) };
            let length = match usize::try_from(length) {
                Ok(length) => length,
                Err(_) if length == -1 => {
                    fields.push(None);
                    continue;
                }
                Err(_) => return Err(self.error(BAD_FORMAT, format_args!("column '{}' is {length} bytes long", column.name))),
            };
            if cursor.at.saturating_add(length) > ROW_BYTES_MAX {
                return Err(self.error("54000", format_args!("the row is longer than {ROW_BYTES_MAX} bytes")));
            }
            let Some(value) = cursor.take(length) else { return Ok(None) };
            fields.push(Some(value));
        }
        let mut values = Vec::with_capacity(fields.len());
        for (column, field) in self.columns.iter().zip(fields) {
            values.push(match field {
                None => ScalarValue::Null,
                Some(bytes) => params::value(bytes, &column.pg)
                    .map_err(|bad| self.error(bad.sqlstate, format_args!("column '{}': {}", column.name, bad.message)))?,
            });
        }
        for (column, value) in self.columns.iter_mut().zip(values) {
            column.values.push(value);
        }
        self.rows += 1;
        self.held_bytes += cursor.at;
        Ok(Some(cursor.at))
    }

    /// Signature, flags, an extension that is passed over.
    fn header(&mut self, cursor: &mut Cursor<'_>) -> Result<Option<usize>> {
        let seen = cursor.bytes.len().min(SIGNATURE.len());
        if cursor.bytes[..seen] != SIGNATURE[..seen] {
            return Err(Error::invalid("COPY: the data is not in binary format").with_sqlstate(BAD_FORMAT));
        }
        let Some((flags, extension)) = cursor.take(SIGNATURE.len()).and_then(|_| Some((cursor.i32()? as u32, cursor.i32()?))) else {
            return Ok(None);
        };
        // The upper half is what a reader must know.
        if flags & WITH_OIDS != 0 || flags >> 16 != 0 {
            return Err(Error::invalid("COPY: the header asks for what is not known").with_sqlstate(BAD_FORMAT));
        }
        match usize::try_from(extension) {
            Ok(length) if length <= ROW_BYTES_MAX => {
                if cursor.take(length).is_none() {
                    return Ok(None);
                }
            }
            _ => return Err(Error::invalid("COPY: the header is damaged").with_sqlstate(BAD_FORMAT)),
        }
        self.begun = true;
        Ok(Some(cursor.at))
    }

    /// The end of the data; the mark of the end may be left out.
    pub fn finish(&mut self) -> Result<()> {
        match (self.begun, self.pending.is_empty()) {
            (false, _) => Err(Error::invalid("COPY: the data is not in binary format").with_sqlstate(BAD_FORMAT)),
            (true, false) => Err(self.error(BAD_FORMAT, "the data ends within the row")),
            (true, true) => Ok(()),
        }
    }

    /// The held rows as columns, which are let go of.
    pub fn columns(&mut self) -> Result<Vec<ArrayRef>> {
        let moment = ColumnType::DateTime64(3, Some("UTC".into()));
        let mut arrays = Vec::with_capacity(self.columns.len());
        for i in 0..self.columns.len() {
            let values = std::mem::take(&mut self.columns[i].values);
            let name = &self.columns[i].name;
            let def = self.def.column(name);
            let refused = |r: crate::types::Refused| Error::from(r.clone()).context(format_args!("COPY, row {}", self.number_of(r.row)));
            let array = match values.iter().find(|v| !v.is_null()).map(ScalarValue::data_type) {
                None => arrow::array::new_null_array(&def.map_or(&moment, |c| &c.ty).arrow(), values.len()),
                Some(ty) => {
                    let null = ScalarValue::try_from(&ty)?;
                    ScalarValue::iter_to_array(values.into_iter().map(|v| if v.is_null() { null.clone() } else { v }))?
                }
            };
            arrays.push(match (array.data_type(), def) {
                (DataType::Utf8, def) => {
                    let ty = def.map_or(&moment, |c| &c.ty);
                    parse_text(array.as_string::<i32>().iter(), ty, name).map_err(refused)?
                }
                // NULLs are refused by whoever takes the columns.
                (_, Some(def)) => coerce(&array, &ColumnDef { nullable: true, ..def.clone() }).map_err(refused)?,
                (_, None) => cast(&array, &moment.arrow())?,
            });
        }
        self.rows_before += self.rows as u64;
        (self.rows, self.held_bytes) = (0, 0);
        Ok(arrays)
    }
}
