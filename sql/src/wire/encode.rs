//! Result rows as PostgreSQL bytes, text and binary, written column by column straight from Arrow arrays.
//!
//! `cell` says what a value is, `text` and `binary` write it, `numeric`, `time` and `nested` hold the forms that need work. A NULL is
//! length -1 in both formats. No value ever fails to encode: what has no binary form of its own is typed as text or json.

mod binary;
mod cell;
mod nested;
mod numeric;
mod text;
mod time;

use arrow::{
    array::{Array, ArrayRef, StringViewArray, StringViewBuilder},
    datatypes::Field,
    error::ArrowError,
    record_batch::RecordBatch,
};
use bytes::{BufMut, BytesMut};
use pgwire::api::results::FieldFormat;
use pgwire::messages::data::DataRow;

pub use cell::Column;
pub use numeric::{write_decimal_binary, write_decimal_text};
pub use text::write_text;
pub use time::{PG_EPOCH_DAYS, PG_EPOCH_MICROS, Zone};

/// PostgreSQL's limit too.
const ROW_BYTES_MAX: usize = (1 << 30) - 1;

/// Encodes batches of one result.
pub struct RowEncoder {
    formats: Vec<FieldFormat>,
    zone: Zone,
}

impl RowEncoder {
    /// `formats`: one a column. `zone`: the session's TimeZone, in which timestamptz is written as text.
    pub fn new(formats: Vec<FieldFormat>, zone: Zone) -> Self {
        Self { formats, zone }
    }

    /// One message a row.
    ///
    /// # Errors
    /// For a row that is too long for a message, and a value whose Arrow array contradicts its own type.
    pub fn rows(&self, batch: &RecordBatch) -> Result<Vec<DataRow>, ArrowError> {
        let columns = Column::all(batch)?;
        let mut rows = Vec::with_capacity(batch.num_rows());
        // Rows of one batch share an allocation that is split off row by row.
        let mut buffer = BytesMut::with_capacity(batch.num_rows() * columns.len() * 16);
        for row in 0..batch.num_rows() {
            for (column, format) in columns.iter().zip(&self.formats) {
                write_value(&mut buffer, column, row, *format, &self.zone);
            }
            if buffer.len() > ROW_BYTES_MAX {
                let message = format!("a row of {} bytes cannot be sent: a message has {ROW_BYTES_MAX} at the most", buffer.len());
                return Err(ArrowError::MemoryError(message));
            }
            rows.push(DataRow::new(buffer.split(), columns.len() as i16));
        }
        Ok(rows)
    }
}

/// A value with its length before it, -1 for NULL.
pub fn write_value(out: &mut BytesMut, column: &Column, row: usize, format: FieldFormat, zone: &Zone) {
    if column.is_null(row) {
        return out.put_i32(-1);
    }
    let start = out.len();
    out.put_i32(0);
    match format {
        FieldFormat::Text => text::write_text(out, column, row, zone),
        FieldFormat::Binary => binary::write_binary(out, column, row),
    }
    set_length(out, start);
}

/// Every value of a column in text form, NULLs as NULL.
///
/// # Errors
/// As [`RowEncoder::rows`].
pub fn texts(field: &Field, array: &ArrayRef, zone: &Zone) -> Result<StringViewArray, ArrowError> {
    let column = Column::new(field, array)?;
    let mut out = StringViewBuilder::with_capacity(array.len());
    let mut one = BytesMut::new();
    for row in 0..array.len() {
        if column.is_null(row) {
            out.append_null();
            continue;
        }
        one.clear();
        text::write_text(&mut one, &column, row, zone);
        out.append_value(String::from_utf8_lossy(&one));
    }
    Ok(out.finish())
}

/// Lists, maps and structs as JSON, NULLs as NULL.
pub fn json_texts(array: &ArrayRef) -> StringViewArray {
    let mut one = BytesMut::new();
    let text = |row: usize| {
        array.is_valid(row).then(|| {
            one.clear();
            nested::write_json(&mut one, array, row, &Zone::Utc);
            String::from_utf8_lossy(&one).into_owned()
        })
    };
    (0..array.len()).map(text).collect()
}

/// Fills in the length of what was written after the four bytes at `start`.
fn set_length(buffer: &mut BytesMut, start: usize) {
    let length = (buffer.len() - start - 4) as i32;
    buffer[start..start + 4].copy_from_slice(&length.to_be_bytes());
}

#[cfg(test)]
mod tests;
