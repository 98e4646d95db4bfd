//! Rows as COPY writes them: text with its escapes, CSV with its quotes, binary with its lengths.

use crate::{
    Error, Result,
    execute::copy_binary::SIGNATURE,
    statement::{CopyFormat, CopyHeader, CopyOptions, ForceColumns},
    wire::encode::{Column, Zone, write_text, write_value},
};
use arrow::{datatypes::SchemaRef, record_batch::RecordBatch};
use bytes::{BufMut, Bytes, BytesMut};
use pgwire::api::results::FieldFormat;

/// Writes the rows of one COPY TO.
pub struct CopyWriter {
    options: CopyOptions,
    zone: Zone,
    /// CSV columns that are quoted whatever they hold.
    force: Vec<bool>,
    header: Option<Vec<String>>,
    /// The signature of the binary format, until it is written: it comes with the first row.
    signature: Option<Vec<u8>>,
}

impl CopyWriter {
    pub fn new(options: CopyOptions, schema: &SchemaRef, zone: Zone) -> Self {
        let names: Vec<String> = schema.fields().iter().map(|f| f.name().clone()).collect();
        let force = names.iter().map(|name| match &options.force_quote {
            None => false,
            Some(ForceColumns::All) => true,
            Some(ForceColumns::Columns(columns)) => columns.iter().any(|c| c.to_string().trim_matches('"') == name),
        });
        let force = force.collect();
        let header = (options.header != CopyHeader::Off).then_some(names);
        // No flags, no extension.
        let signature = (options.format == CopyFormat::Binary).then(|| [SIGNATURE, &[0; 8]].concat());
        Self { options, zone, force, header, signature }
    }

    fn is_binary(&self) -> bool {
        self.options.format == CopyFormat::Binary
    }

    /// The header line, if one was asked for; before any rows.
    pub fn header(&mut self) -> Option<Bytes> {
        let names = self.header.take()?;
        let mut out = BytesMut::new();
        for (i, name) in names.iter().enumerate() {
            self.separate(&mut out, i);
            self.put_value(&mut out, name.as_bytes(), i);
        }
        out.put_u8(b'\n');
        Some(out.freeze())
    }

    /// What comes after all rows.
    pub fn footer(&mut self) -> Option<Bytes> {
        self.is_binary().then(|| [self.signature.take().unwrap_or_default(), vec![0xff, 0xff]].concat().into())
    }

    /// Each row by itself, as PostgreSQL sends them: drivers read one row of a message.
    pub fn rows(&mut self, batch: &RecordBatch) -> Result<Vec<Bytes>> {
        let columns = Column::all(batch).map_err(|e| Error::internal(e.to_string()))?;
        let mut out = BytesMut::with_capacity(batch.num_rows() * columns.len() * 12);
        let mut rows = Vec::with_capacity(batch.num_rows());
        let mut value = BytesMut::new();
        for row in 0..batch.num_rows() {
            match self.is_binary() {
                true => self.binary_row(&mut out, &columns, row),
                false => self.text_row(&mut out, &columns, row, &mut value),
            }
            rows.push(out.split().freeze());
        }
        Ok(rows)
    }

    /// The number of values, each with its length.
    fn binary_row(&mut self, out: &mut BytesMut, columns: &[Column], row: usize) {
        out.put_slice(&self.signature.take().unwrap_or_default());
        out.put_i16(columns.len() as i16);
        for column in columns {
            write_value(out, column, row, FieldFormat::Binary, &Zone::Utc);
        }
    }

    fn text_row(&self, out: &mut BytesMut, columns: &[Column], row: usize, value: &mut BytesMut) {
        for (i, column) in columns.iter().enumerate() {
            self.separate(out, i);
            if column.is_null(row) {
                out.put_slice(self.options.null().as_bytes());
                continue;
            }
            value.clear();
            write_text(value, column, row, &self.zone);
            self.put_value(out, value, i);
        }
        out.put_u8(b'\n');
    }

    fn separate(&self, out: &mut BytesMut, column: usize) {
        if column > 0 {
            put_char(out, self.options.delimiter());
        }
    }

    fn put_value(&self, out: &mut BytesMut, value: &[u8], column: usize) {
        match self.options.format {
            CopyFormat::Csv => self.put_csv(out, value, self.force.get(column).copied().unwrap_or(false)),
            _ => self.put_escaped(out, value),
        }
    }

    /// In quotes where it would be read as something else: what stands for NULL, a lone `\.`, delimiters, quotes, line ends.
    fn put_csv(&self, out: &mut BytesMut, value: &[u8], force: bool) {
        let (delimiter, quote, escape) = (byte(self.options.delimiter()), byte(self.options.quote()), byte(self.options.escape()));
        let special = |b: &u8| *b == delimiter || *b == quote || matches!(*b, b'\n' | b'\r');
        if !force && value != self.options.null().as_bytes() && value != b"\\." && !value.iter().any(special) {
            out.put_slice(value);
            return;
        }
        out.put_u8(quote);
        for b in value {
            if *b == quote || *b == escape {
                out.put_u8(escape);
            }
            out.put_u8(*b);
        }
        out.put_u8(quote);
    }

    fn put_escaped(&self, out: &mut BytesMut, value: &[u8]) {
        let delimiter = byte(self.options.delimiter());
        for b in value {
            let letter = match b {
                b'\\' => b'\\',
                b'\n' => b'n',
                b'\r' => b'r',
                b'\t' => b't',
                8 => b'b',
                11 => b'v',
                12 => b'f',
                b if *b == delimiter => delimiter,
                b => {
                    out.put_u8(*b);
                    continue;
                }
            };
            out.put_u8(b'\\');
            out.put_u8(letter);
        }
    }
}

/// The parser takes only single-byte delimiters and quotes.
fn byte(c: char) -> u8 {
    u8::try_from(u32::from(c)).unwrap_or(b',')
}

fn put_char(out: &mut BytesMut, c: char) {
    out.put_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
}

#[cfg(test)]
mod tests;
