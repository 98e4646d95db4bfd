//! Replay and inspection of the log: which records are true, and what is wrong with the files.
//!
//! A bad frame at the end of the last file is a torn tail: [`replay`] says where, and the writer that goes on cuts it off, durably,
//! before it creates the next file; a log that is refused stays as it is. A bad frame with a good one behind it, or lsns missing between files, before the first or behind the last, is corruption: refused,
//! naming file, offset and lsn.
//! In an older file nothing counts from the first lsn of a newer one on: a writer that was superseded cannot add (I7).
//!
//! [`inspect`] judges by the same code and changes nothing. Neither ever guesses what damaged bytes meant.

use super::{
    file::LogDir,
    frame::{self, FileName, HeaderProblem, Seed},
    record::Record,
};
use crate::{
    Error, Result,
    ids::{DatabaseId, Lsn},
};
use bytes::Bytes;

/// What replay found, for the writer that goes on from here.
#[derive(Debug, Clone)]
pub struct Replayed {
    /// The lsn that the next record gets.
    pub next_lsn: Lsn,
    /// The files there are, oldest first; the next opening's epoch must be above theirs.
    pub files: Vec<FileName>,
    /// Records handed over.
    pub records: u64,
    /// What a crash left at the end of the last file.
    pub torn: Option<Torn>,
}

/// The end of the last file that was never whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Torn {
    pub file: FileName,
    /// Where it begins; at 0 not even the header is whole, and the file is none.
    pub offset: u64,
    pub bytes: u64,
}

impl Torn {
    /// Cuts it off, durably. Done once more it changes nothing.
    pub fn cut_off(&self, dir: &dyn LogDir) -> Result<()> {
        let name = self.file.to_string();
        let cut = match self.offset {
            0 => match dir.remove(&name) {
                Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(()),
                removed => removed,
            },
            offset => dir.open(&name).and_then(|file| {
                file.truncate(offset)?;
                file.sync()
            }),
        };
        cut.map_err(|e| unreadable(self.file, e))
    }
}

/// Something worth telling about a log file.
#[derive(Debug, Clone)]
pub struct Finding {
    pub file: String,
    pub offset: u64,
    /// The lsn that was expected at that place.
    pub lsn: Lsn,
    pub problem: Problem,
    pub message: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Problem {
    /// The usual end of a crash; opening cuts it off.
    TornTail,
    /// Bytes of a writer that was superseded; nothing reads them.
    Superseded,
    /// Stored bytes are not what was written; opening refuses.
    Corrupt,
    /// Not a log file.
    UnknownName,
}

#[derive(Debug, Clone, Default)]
pub struct Inspection {
    pub files: Vec<FileReport>,
    pub findings: Vec<Finding>,
    pub next_lsn: Lsn,
}

#[derive(Debug, Clone)]
pub struct FileReport {
    pub name: String,
    pub bytes: u64,
    pub frames: u64,
    pub records: u64,
}

impl Inspection {
    /// Whether opening would accept this log.
    pub fn is_sound(&self) -> bool {
        self.findings.iter().all(|f| f.problem != Problem::Corrupt)
    }
}

/// Hands every record with an lsn above `applied` to `each`, in order. On an error what was handed over does not count.
pub fn replay(dir: &dyn LogDir, database: &DatabaseId, applied: Lsn, mut each: impl FnMut(Lsn, Record) -> Result<()>) -> Result<Replayed> {
    let files: Vec<_> = names(dir)?.into_iter().filter_map(|n| FileName::parse(&n)).collect();
    let mut done = Replayed { next_lsn: applied.next(), files: Vec::new(), records: 0, torn: None };
    let mut expected: Option<Lsn> = None;
    for (i, name) in files.iter().enumerate() {
        let limit = limit_of(&files, i);
        let start = expected.unwrap_or(name.first_lsn);
        // All applied, and its last record is not in question: trimming will take it.
        if let Some(limit) = limit.filter(|l| *l <= applied.next() && start == name.first_lsn && name.first_lsn <= *l) {
            expected = Some(limit);
            done.files.push(*name);
            continue;
        }
        let file = dir.open(&name.to_string()).map_err(|e| unreadable(*name, e))?;
        let bytes = Bytes::from(file.read_all().map_err(|e| unreadable(*name, e))?);
        let place = Place { name: *name, limit, applied, expected };
        let end = scan(&bytes, database, place, &mut |_, lsn, record| {
            if lsn > applied {
                done.records += 1;
                each(lsn, record)?;
            }
            Ok(())
        })?;
        match end.stop {
            Stop::Corrupt => return Err(Error::corrupt(end.message(*name))),
            Stop::Refused(e) => return Err(e),
            Stop::Torn => {
                done.torn = Some(Torn { file: *name, offset: end.offset, bytes: bytes.len() as u64 - end.offset });
                if end.offset > 0 {
                    done.files.push(*name);
                }
            }
            Stop::Clean | Stop::Superseded => done.files.push(*name),
        }
        expected = Some(end.expected);
    }
    if let Some(missing) = missing_at_the_end(files.last(), expected, applied) {
        return Err(Error::corrupt(missing));
    }
    done.next_lsn = expected.unwrap_or(applied.next());
    Ok(done)
}

/// Reads everything and reports; changes nothing.
pub fn inspect(dir: &dyn LogDir, database: &DatabaseId, applied: Lsn) -> Result<Inspection> {
    let mut report = Inspection::default();
    let mut files = Vec::new();
    for name in names(dir)? {
        match FileName::parse(&name) {
            Some(name) => files.push(name),
            None => report.findings.push(Finding {
                message: format!("{name} is not a log file"),
                file: name,
                offset: 0,
                lsn: Lsn(0),
                problem: Problem::UnknownName,
            }),
        }
    }
    let mut expected = None;
    for (i, name) in files.iter().enumerate() {
        let bytes = dir.open(&name.to_string()).and_then(|f| f.read_all()).map_err(|e| unreadable(*name, e))?;
        let bytes = Bytes::from(bytes);
        let mut file = FileReport { name: name.to_string(), bytes: bytes.len() as u64, frames: 0, records: 0 };
        let mut last_frame = None;
        let place = Place { name: *name, limit: limit_of(&files, i), applied, expected };
        let end = scan(&bytes, database, place, &mut |offset, _, _| {
            file.records += 1;
            file.frames += u64::from(last_frame.replace(offset) != Some(offset));
            Ok(())
        })?;
        let problem = match &end.stop {
            Stop::Clean => None,
            Stop::Torn => Some(Problem::TornTail),
            Stop::Superseded => Some(Problem::Superseded),
            Stop::Corrupt | Stop::Refused(_) => Some(Problem::Corrupt),
        };
        if let Some(problem) = problem {
            let message = match &end.stop {
                Stop::Refused(e) => e.to_string(),
                _ => end.message(*name),
            };
            report.findings.push(Finding { file: name.to_string(), offset: end.offset, lsn: end.expected, problem, message });
        }
        // Behind a corruption the next file's name is the best guide to what else is wrong.
        expected = (problem != Some(Problem::Corrupt)).then_some(end.expected);
        report.next_lsn = end.expected;
        report.files.push(file);
    }
    if report.files.is_empty() {
        report.next_lsn = applied.next();
    }
    let (last, ends) = (files.last(), (!files.is_empty()).then_some(report.next_lsn));
    if let Some(message) = missing_at_the_end(last, ends, applied) {
        let (file, lsn) = (last.map_or_else(|| "log/".to_owned(), ToString::to_string), report.next_lsn);
        report.findings.push(Finding { file, offset: 0, lsn, problem: Problem::Corrupt, message });
    }
    Ok(report)
}

/// What is wrong where a log that went on to `applied` ends before it: its newest files are gone.
fn missing_at_the_end(last: Option<&FileName>, ends: Option<Lsn>, applied: Lsn) -> Option<String> {
    match (last, ends) {
        (Some(last), Some(ends)) if ends < applied.next() => Some(format!(
            "the log ends with file {last} at lsn {ends}, but records up to {applied} were in it: later files are missing, restore them"
        )),
        (None, _) if applied > Lsn(0) => {
            Some(format!("the log has no files, but records up to {applied} were in it, and maybe more: restore the log files"))
        }
        _ => None,
    }
}

fn names(dir: &dyn LogDir) -> Result<Vec<String>> {
    let mut names = dir.list().map_err(|e| Error::from(e).context("the log's folder cannot be listed"))?;
    names.sort();
    Ok(names)
}

fn unreadable(name: FileName, e: std::io::Error) -> Error {
    Error::from(e).context(format!("log file {name}"))
}

/// The lowest first lsn of the files behind `i`: from there on that file says nothing.
fn limit_of(files: &[FileName], i: usize) -> Option<Lsn> {
    files[i + 1..].iter().map(|f| f.first_lsn).min()
}

/// Where a file stands in the log.
struct Place {
    name: FileName,
    limit: Option<Lsn>,
    applied: Lsn,
    /// The lsn behind the files before, if any.
    expected: Option<Lsn>,
}

enum Stop {
    Clean,
    Torn,
    Superseded,
    Corrupt,
    Refused(Error),
}

struct End {
    stop: Stop,
    offset: u64,
    expected: Lsn,
    why: String,
}

impl End {
    fn message(&self, name: FileName) -> String {
        format!("log file {name}, offset {}, lsn {}: {}", self.offset, self.expected, self.why)
    }
}

type Each<'a> = &'a mut dyn FnMut(usize, Lsn, Record) -> Result<()>;

fn scan(bytes: &Bytes, database: &DatabaseId, place: Place, each: Each<'_>) -> Result<End> {
    let Place { name, limit, applied, expected } = place;
    let seed = Seed::of(database);
    let mut lsn = expected.unwrap_or_else(|| name.first_lsn.min(applied.next()));
    let end = |stop, offset: usize, expected, why: String| Ok(End { stop, offset: offset as u64, expected, why });
    if limit.is_some_and(|l| name.first_lsn > l) {
        return end(Stop::Superseded, 0, lsn, "a newer opening had begun before".into());
    }
    // Lsns that are applied already may be missing: their rows are in parts.
    if name.first_lsn > lsn && name.first_lsn > applied.next() {
        return end(
            Stop::Corrupt,
            0,
            lsn,
            format!("records {lsn} to {} are missing before this file: restore the log files", name.first_lsn.0 - 1),
        );
    }
    if name.first_lsn < lsn {
        return end(Stop::Corrupt, 0, lsn, format!("the file begins at {} again: records would count twice", name.first_lsn));
    }
    lsn = name.first_lsn;
    let at_limit = |lsn: Lsn| limit == Some(lsn);
    let mut at = match frame::decode_file_header(bytes, name, database) {
        Ok(length) => length,
        Err(HeaderProblem::Foreign(e)) => return Ok(End { stop: Stop::Refused(e), offset: 0, expected: lsn, why: String::new() }),
        Err(HeaderProblem::Damaged) => {
            let why = "the file's header is damaged";
            return match (frame::find_after(bytes, 0, seed), limit) {
                (None, None) => end(Stop::Torn, 0, lsn, why.into()),
                (_, Some(_)) if at_limit(lsn) => end(Stop::Superseded, 0, lsn, why.into()),
                _ => end(Stop::Corrupt, 0, lsn, format!("{why}: restore the file")),
            };
        }
    };
    while at < bytes.len() {
        if at_limit(lsn) {
            return end(Stop::Superseded, at, lsn, "bytes behind the last record before a newer opening".into());
        }
        let good = frame::parse(bytes, at, seed);
        let Some((header, next)) = good else {
            return match (frame::find_after(bytes, at + 1, seed), limit) {
                (Some((offset, h)), _) => end(
                    Stop::Corrupt,
                    at,
                    lsn,
                    format!("a bad frame with a good one (lsn {}) behind it at offset {offset}: restore the file", h.first_lsn),
                ),
                (None, None) => end(Stop::Torn, at, lsn, "an incomplete frame".into()),
                (None, Some(l)) => {
                    end(Stop::Corrupt, at, lsn, format!("a bad frame, and records up to {} are missing: restore the file", l.0 - 1))
                }
            };
        };
        if header.epoch != name.epoch || header.first_lsn != lsn {
            let why = format!("found a frame of epoch {} with lsn {}, expected epoch {}", header.epoch, header.first_lsn, name.epoch);
            return end(Stop::Corrupt, at, lsn, why);
        }
        let after = lsn.0.checked_add(u64::from(header.count)).map(Lsn);
        let Some(after) = after.filter(|a| limit.is_none_or(|l| *a <= l)) else {
            return end(Stop::Corrupt, at, lsn, format!("a frame of {} records runs into the next file's", header.count));
        };
        let records = match frame::decode_records(bytes.slice(at + frame::FRAME_HEADER..next), header.count) {
            Ok(records) => records,
            Err(e) => return end(Stop::Corrupt, at, lsn, e.to_string()),
        };
        for record in records {
            each(at, lsn, record)?;
            lsn = lsn.next();
        }
        debug_assert_eq!(lsn, after);
        at = next;
    }
    match limit {
        Some(l) if lsn < l && l > applied.next() => {
            end(Stop::Corrupt, at, lsn, format!("records {lsn} to {} are missing at the end of this file: restore it", l.0 - 1))
        }
        _ => end(Stop::Clean, at, lsn, String::new()),
    }
}

#[cfg(test)]
mod tests;
