//! COPY data as columns of texts: pieces are cut into records, records into values. Nothing of a piece but an unfinished record is kept.
//!
//! Guards: every error names the line on which its record begins; a record without an end is refused before it fills the memory.

use crate::{
    Error, Result, sqlstate,
    statement::{CopyFormat, CopyHeader, CopyOptions, ForceColumns},
};
use memchr::{memchr_iter, memchr2, memchr3};

/// A record longer than this is refused.
const RECORD_BYTES_MAX: usize = 64 << 20;
const BAD_FORMAT: &str = "22P04";
const BAD_ENCODING: &str = "22021";

/// The values of one column, one after the other.
#[derive(Default)]
struct Texts {
    bytes: Vec<u8>,
    /// Where each value ends, and whether it is NULL.
    ends: Vec<(usize, bool)>,
}

/// Rows that were cut into values.
#[derive(Default)]
pub(super) struct Cut {
    columns: Vec<Texts>,
    /// On which each row begins.
    lines: Vec<u64>,
    /// Of their records.
    bytes: usize,
}

/// What ends values in CSV.
#[derive(Clone, Copy)]
struct Marks {
    delimiter: u8,
    quote: u8,
    escape: u8,
}

pub(super) struct Decoder {
    csv: bool,
    marks: Marks,
    null: Vec<u8>,
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
    held: Cut,
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
            marks: Marks {
                delimiter: byte(options.delimiter(), "DELIMITER")?,
                quote: byte(options.quote(), "QUOTE")?,
                escape: byte(options.escape(), "ESCAPE")?,
            },
            null: options.null().as_bytes().to_vec(),
            header: options.header,
            force_not_null: forced(&options.force_not_null)?,
            force_null: forced(&options.force_null)?,
            held: Cut::of(names.len()),
            names,
            pending: Vec::new(),
            scan: Scan::default(),
            line: 1,
            done: false,
        })
    }

    pub fn held(&self) -> &Cut {
        &self.held
    }

    /// Lets go of the rows that are held.
    pub fn take(&mut self) -> Cut {
        let columns = self.names.len();
        std::mem::replace(&mut self.held, Cut::of(columns))
    }

    fn error(&self, why: impl std::fmt::Display) -> Error {
        error_at(self.line, BAD_FORMAT, why)
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
            return Err(error_at(self.line, "54000", format_args!("the line is longer than {RECORD_BYTES_MAX} bytes")));
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
        let Marks { quote, escape, .. } = self.marks;
        while self.scan.at < data.len() {
            if std::mem::take(&mut self.scan.escaped) {
                self.scan.at += 1;
                continue;
            }
            let rest = &data[self.scan.at..];
            let found = match self.csv {
                true => memchr3(b'\n', quote, escape, rest),
                false => memchr2(b'\n', b'\\', rest),
            };
            let Some(found) = found else {
                self.scan.at = data.len();
                return None;
            };
            let at = self.scan.at + found;
            self.scan.at = at + 1;
            match data[at] {
                b'\n' if !self.scan.quoted => return Some(at),
                b if !self.csv => self.scan.escaped = b == b'\\',
                b if self.scan.quoted && b == escape && escape != quote => self.scan.escaped = true,
                b if b == quote => self.scan.quoted = !self.scan.quoted,
                _ => {}
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
            let found = if self.csv { self.csv_values(record)? } else { self.text_values(record)? };
            self.check_count(found)?;
            self.held.lines.push(self.line);
            self.held.bytes += record.len();
        }
        self.line += 1 + memchr_iter(b'\n', record).count() as u64;
        Ok(())
    }

    fn check_count(&self, found: usize) -> Result<()> {
        let wanted = self.names.len();
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
        self.held.lines.push(self.line);
        let header = self.take();
        for (i, name) in self.names.iter().enumerate() {
            let value = header.texts(i, name)?.next().flatten().unwrap_or("");
            if name != value {
                return Err(self.error(format_args!("the header names '{value}' where column '{name}' is expected")));
            }
        }
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
                Some(b) if *b != self.marks.delimiter => {
                    at += 1;
                    continue;
                }
                Some(_) => at,
                None => record.len(),
            };
            let raw = &record[start..end];
            if let Some(column) = self.held.columns.get_mut(found) {
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
        let Marks { delimiter, quote, .. } = self.marks;
        let mut found = 0;
        let mut at = 0;
        let mut of_no_column = Texts::default();
        loop {
            let column = self.held.columns.get_mut(found).unwrap_or(&mut of_no_column);
            let start = column.bytes.len();
            let mut was_quoted = false;
            loop {
                let rest = &record[at..];
                let plain = memchr2(delimiter, quote, rest).unwrap_or(rest.len());
                column.bytes.extend_from_slice(&rest[..plain]);
                at += plain;
                if at == record.len() || record[at] == delimiter {
                    break;
                }
                was_quoted = true;
                at = self.marks.unquote(record, at + 1, &mut column.bytes);
            }
            let forced = |by: &[bool]| by.get(found).copied().unwrap_or(false);
            let may_be_null = if was_quoted { forced(&self.force_null) } else { !forced(&self.force_not_null) };
            let null = may_be_null && column.bytes[start..] == self.null;
            if null {
                column.bytes.truncate(start);
            }
            column.ends.push((column.bytes.len(), null));
            found += 1;
            if at == record.len() {
                return Ok(found);
            }
            at += 1;
        }
    }
}

impl Marks {
    /// Adds what is quoted from `at` on to `out`; where it ends, behind its quote.
    fn unquote(self, record: &[u8], mut at: usize, out: &mut Vec<u8>) -> usize {
        while let Some(plain) = memchr2(self.quote, self.escape, &record[at..]) {
            out.extend_from_slice(&record[at..at + plain]);
            at += plain;
            let next = record.get(at + 1).copied().filter(|n| *n == self.quote || *n == self.escape);
            match next {
                Some(next) if record[at] == self.escape => {
                    out.push(next);
                    at += 2;
                }
                _ if record[at] == self.quote => return at + 1,
                _ => {
                    out.push(record[at]);
                    at += 1;
                }
            }
        }
        out.extend_from_slice(&record[at..]);
        record.len()
    }
}

impl Cut {
    fn of(columns: usize) -> Self {
        Self { columns: (0..columns).map(|_| Texts::default()).collect(), ..Self::default() }
    }

    pub fn rows(&self) -> usize {
        self.lines.len()
    }
    pub fn bytes(&self) -> usize {
        self.bytes
    }
    /// The line on which a row begins.
    pub fn line_of(&self, row: usize) -> u64 {
        self.lines.get(row).copied().unwrap_or_default()
    }

    /// The values of a column, whose name is `name`.
    ///
    /// # Errors
    /// For a value that is not UTF-8.
    pub fn texts(&self, column: usize, name: &str) -> Result<impl Iterator<Item = Option<&str>>> {
        let texts = self.columns.get(column).ok_or_else(|| Error::internal("a column of a COPY is missing"))?;
        let values = || {
            texts.ends.iter().scan(0, |start, (end, null)| {
                let value = *start..*end;
                *start = *end;
                Some((value, *null))
            })
        };
        // All at once, and that no character is cut in two: the same as one by one, and far cheaper.
        let all = std::str::from_utf8(&texts.bytes).ok().filter(|all| texts.ends.iter().all(|(end, _)| all.is_char_boundary(*end)));
        let Some(all) = all else {
            for (row, (value, _)) in values().enumerate() {
                if let Err(e) = std::str::from_utf8(&texts.bytes[value]) {
                    return Err(error_at(self.line_of(row), BAD_ENCODING, format_args!("column '{name}' is not UTF-8: {e}")));
                }
            }
            return Err(Error::internal("texts that are UTF-8 one by one are not together"));
        };
        Ok(values().map(move |(value, null)| (!null).then(|| &all[value])))
    }
}

fn error_at(line: u64, state: &'static str, why: impl std::fmt::Display) -> Error {
    Error::invalid(format!("COPY, line {line}: {why}")).with_sqlstate(state)
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
