//! COPY data as columns of texts: pieces are cut into records, records into values. Nothing of a piece but an unfinished record is kept.
//!
//! Guards: every error names the line on which its record begins; a record without an end is refused before it fills the memory.

use crate::{
    Error, Result, sqlstate,
    statement::{CopyFormat, CopyHeader, CopyOptions, ForceColumns},
};

/// A record longer than this is refused.
const RECORD_BYTES_MAX: usize = 64 << 20;
const BAD_FORMAT: &str = "22P04";
const BAD_ENCODING: &str = "22021";

/// The values of one column, one after the other.
#[derive(Default)]
pub(super) struct Texts {
    bytes: Vec<u8>,
    /// Where each value ends, and whether it is NULL.
    ends: Vec<(usize, bool)>,
}

pub(super) struct Decoder {
    csv: bool,
    delimiter: u8,
    null: Vec<u8>,
    quote: u8,
    escape: u8,
    header: CopyHeader,
    names: Vec<String>,
    force_not_null: Vec<bool>,
    force_null: Vec<bool>,
    /// An unfinished record.
    pending: Vec<u8>,
    scan: Scan,
    /// Line on which the next record begins.
    line: u64,
    done: bool,
    columns: Vec<Texts>,
    lines: Vec<u64>,
    held_bytes: usize,
}

/// How far `pending` was looked at.
#[derive(Default)]
struct Scan {
    at: usize,
    quoted: bool,
    /// The next byte is itself.
    escaped: bool,
}

impl Decoder {
    pub fn new(options: &CopyOptions, names: Vec<String>) -> Result<Self> {
        if options.default.is_some() {
            return Err(Error::unsupported("COPY ... DEFAULT: leave the column out of the list instead"));
        }
        if let Some(encoding) = &options.encoding
            && !["utf8", "utf-8", "unicode"].contains(&encoding.to_ascii_lowercase().as_str())
        {
            return Err(Error::unsupported(format!("COPY reads UTF-8, not {encoding}")));
        }
        let forced = |force: &Option<ForceColumns>| -> Result<Vec<bool>> {
            match force {
                None => Ok(vec![false; names.len()]),
                Some(ForceColumns::All) => Ok(vec![true; names.len()]),
                Some(ForceColumns::Columns(columns)) => {
                    if let Some(other) = columns.iter().find(|c| !names.iter().any(|n| n == c.as_str())) {
                        let message = format!("column '{}' is not among those of the COPY", other.as_str());
                        return Err(Error::invalid(message).with_sqlstate(sqlstate::UNDEFINED_COLUMN).at(other.position));
                    }
                    Ok(names.iter().map(|n| columns.iter().any(|c| c.as_str() == n)).collect())
                }
            }
        };
        Ok(Self {
            csv: options.format == CopyFormat::Csv,
            delimiter: byte(options.delimiter(), "DELIMITER")?,
            null: options.null().as_bytes().to_vec(),
            quote: byte(options.quote(), "QUOTE")?,
            escape: byte(options.escape(), "ESCAPE")?,
            header: options.header,
            force_not_null: forced(&options.force_not_null)?,
            force_null: forced(&options.force_null)?,
            columns: names.iter().map(|_| Texts::default()).collect(),
            names,
            pending: Vec::new(),
            scan: Scan::default(),
            line: 1,
            done: false,
            lines: Vec::new(),
            held_bytes: 0,
        })
    }

    pub fn rows(&self) -> usize {
        self.lines.len()
    }
    /// Of the values that are held.
    pub fn bytes(&self) -> usize {
        self.held_bytes
    }
    /// The line on which a held row begins.
    pub fn line_of(&self, row: usize) -> u64 {
        self.lines.get(row).copied().unwrap_or(self.line)
    }

    /// The values of a column.
    ///
    /// # Errors
    /// For a value that is not UTF-8.
    pub fn texts(&self, column: usize) -> Result<Vec<Option<&str>>> {
        let Some(texts) = self.columns.get(column) else { return Ok(Vec::new()) };
        let mut start = 0;
        let mut all = Vec::with_capacity(texts.ends.len());
        for (row, (end, null)) in texts.ends.iter().enumerate() {
            let value = texts.bytes.get(start..*end).unwrap_or_default();
            start = *end;
            all.push(match null {
                true => None,
                false => Some(std::str::from_utf8(value).map_err(|e| {
                    let column = self.names.get(column).map_or("", String::as_str);
                    self.error_at(self.line_of(row), BAD_ENCODING, format_args!("column '{column}' is not UTF-8: {e}"))
                })?),
            });
        }
        Ok(all)
    }

    /// Lets go of the rows that are held.
    pub fn clear(&mut self) {
        for column in &mut self.columns {
            column.bytes.clear();
            column.ends.clear();
        }
        self.lines.clear();
        self.held_bytes = 0;
    }

    fn error_at(&self, line: u64, state: &'static str, why: impl std::fmt::Display) -> Error {
        Error::invalid(format!("COPY, line {line}: {why}")).with_sqlstate(state)
    }

    fn error(&self, why: impl std::fmt::Display) -> Error {
        self.error_at(self.line, BAD_FORMAT, why)
    }

    pub fn push(&mut self, bytes: &[u8]) -> Result<()> {
        if self.done {
            return Ok(());
        }
        self.pending.extend_from_slice(bytes);
        let data = std::mem::take(&mut self.pending);
        let mut start = 0;
        while let Some(end) = self.end_of_record(&data) {
            self.record(&data[start..end])?;
            start = end + 1;
            if self.done {
                return Ok(());
            }
        }
        if data.len() - start > RECORD_BYTES_MAX {
            return Err(self.error_at(self.line, "54000", format_args!("the line is longer than {RECORD_BYTES_MAX} bytes")));
        }
        self.scan.at -= start;
        self.pending = data;
        self.pending.drain(..start);
        Ok(())
    }

    /// The end of the data; a last line needs no line end.
    pub fn finish(&mut self) -> Result<()> {
        if self.done {
            return Ok(());
        }
        if self.scan.quoted {
            return Err(self.error("a quoted value has no end"));
        }
        let data = std::mem::take(&mut self.pending);
        if data.is_empty() {
            return Ok(());
        }
        self.record(&data)
    }

    /// Where the next line end is that ends a record.
    fn end_of_record(&mut self, data: &[u8]) -> Option<usize> {
        while let Some(b) = data.get(self.scan.at) {
            let at = self.scan.at;
            self.scan.at += 1;
            if self.scan.escaped {
                self.scan.escaped = false;
                continue;
            }
            if self.csv {
                if *b == b'\n' && !self.scan.quoted {
                    return Some(at);
                }
                if self.scan.quoted && *b == self.escape && self.escape != self.quote {
                    self.scan.escaped = true;
                } else if *b == self.quote {
                    self.scan.quoted = !self.scan.quoted;
                }
            } else if *b == b'\n' {
                return Some(at);
            } else if *b == b'\\' {
                self.scan.escaped = true;
            }
        }
        None
    }

    fn record(&mut self, record: &[u8]) -> Result<()> {
        let record = record.strip_suffix(b"\r").unwrap_or(record);
        if record == b"\\." {
            self.done = true;
            return Ok(());
        }
        let header = std::mem::replace(&mut self.header, CopyHeader::Off);
        if header != CopyHeader::Off {
            self.check_header(record, header)?;
        } else {
            let before: usize = self.columns.iter().map(|c| c.bytes.len()).sum();
            let found = if self.csv { self.csv_values(record)? } else { self.text_values(record)? };
            self.check_count(found)?;
            self.lines.push(self.line);
            self.held_bytes += self.columns.iter().map(|c| c.bytes.len()).sum::<usize>() - before;
        }
        self.line += 1 + record.iter().filter(|b| **b == b'\n').count() as u64;
        Ok(())
    }

    fn check_count(&self, found: usize) -> Result<()> {
        let wanted = self.columns.len();
        if found < wanted {
            let name = self.names.get(found).map_or("", String::as_str);
            return Err(self.error(format_args!("{found} values for {wanted} columns: '{name}' is missing")));
        }
        if found > wanted {
            return Err(self.error(format_args!("{found} values for {wanted} columns")));
        }
        Ok(())
    }

    fn check_header(&mut self, record: &[u8], header: CopyHeader) -> Result<()> {
        if header != CopyHeader::Match {
            return Ok(());
        }
        let found = if self.csv { self.csv_values(record)? } else { self.text_values(record)? };
        self.check_count(found)?;
        self.lines.push(self.line);
        for i in 0..self.columns.len() {
            let value = self.texts(i)?.first().copied().flatten().unwrap_or("").to_owned();
            if self.names[i] != value {
                return Err(self.error(format_args!("the header names '{value}' where column '{}' is expected", self.names[i])));
            }
        }
        self.clear();
        Ok(())
    }

    /// Splits a record in text format; how many values it has.
    fn text_values(&mut self, record: &[u8]) -> Result<usize> {
        let mut found = 0;
        let mut start = 0;
        let mut at = 0;
        loop {
            let end = match record.get(at) {
                Some(b'\\') => {
                    at += 2;
                    continue;
                }
                Some(b) if *b != self.delimiter => {
                    at += 1;
                    continue;
                }
                Some(_) => at,
                None => record.len(),
            };
            let raw = &record[start..end];
            if let Some(column) = self.columns.get_mut(found) {
                let null = raw == self.null;
                if !null {
                    unescape(raw, &mut column.bytes);
                }
                column.ends.push((column.bytes.len(), null));
            }
            found += 1;
            if end == record.len() {
                return Ok(found);
            }
            start = end + 1;
            at = start;
        }
    }

    /// Splits a record in CSV format; how many values it has.
    fn csv_values(&mut self, record: &[u8]) -> Result<usize> {
        let mut found = 0;
        let mut at = 0;
        loop {
            let mut value = Vec::new();
            let mut was_quoted = false;
            let mut quoted = false;
            while let Some(b) = record.get(at).copied() {
                if quoted {
                    let next = record.get(at + 1).copied();
                    if b == self.escape && next.is_some_and(|n| n == self.quote || n == self.escape) {
                        value.extend(next);
                        at += 2;
                    } else {
                        if b == self.quote {
                            quoted = false
                        } else {
                            value.push(b)
                        }
                        at += 1;
                    }
                } else if b == self.delimiter {
                    break;
                } else {
                    if b == self.quote {
                        quoted = true;
                        was_quoted = true;
                    } else {
                        value.push(b);
                    }
                    at += 1;
                }
            }
            if let Some(column) = self.columns.get_mut(found) {
                let may_be_null = !was_quoted && !self.force_not_null[found] || was_quoted && self.force_null[found];
                let null = may_be_null && value == self.null;
                if !null {
                    column.bytes.extend_from_slice(&value);
                }
                column.ends.push((column.bytes.len(), null));
            }
            found += 1;
            if at >= record.len() {
                return Ok(found);
            }
            at += 1;
        }
    }
}

fn byte(c: char, option: &str) -> Result<u8> {
    match u8::try_from(c) {
        Ok(b) if b.is_ascii() => Ok(b),
        _ => Err(Error::unsupported(format!("{option} '{c}' must be an ASCII character"))),
    }
}

/// PostgreSQL's backslash sequences.
fn unescape(raw: &[u8], out: &mut Vec<u8>) {
    let mut rest = raw;
    while let Some(at) = rest.iter().position(|b| *b == b'\\') {
        out.extend_from_slice(&rest[..at]);
        rest = &rest[at + 1..];
        let Some((first, after)) = rest.split_first() else { return };
        rest = after;
        let digits = |radix: u32, max: usize, from: &[u8]| {
            let taken = from.iter().take(max).take_while(|b| char::from(**b).is_digit(radix)).count();
            let value = from[..taken].iter().fold(0u32, |v, b| v * radix + char::from(*b).to_digit(radix).unwrap_or(0));
            (taken, value as u8)
        };
        match first {
            b'b' => out.push(8),
            b'f' => out.push(12),
            b'n' => out.push(b'\n'),
            b'r' => out.push(b'\r'),
            b't' => out.push(b'\t'),
            b'v' => out.push(11),
            b'0'..=b'7' => {
                let whole: Vec<u8> = std::iter::once(*first).chain(rest.iter().copied().take(2)).collect();
                let (taken, value) = digits(8, 3, &whole);
                out.push(value);
                rest = &rest[taken - 1..];
            }
            b'x' if rest.first().is_some_and(u8::is_ascii_hexdigit) => {
                let (taken, value) = digits(16, 2, rest);
                out.push(value);
                rest = &rest[taken..];
            }
            other => out.push(*other),
        }
    }
    out.extend_from_slice(rest);
}

#[cfg(test)]
mod tests;
