//! `ebb sql`: statements run one by one in a session of their own, answers printed on a [`Screen`].

use super::{
    args::Opening,
    open,
    shell::{self, Short},
    table::Table,
};
use crate::{CopyIn, Error, Outcome, Result, Session, copy::CopyWriter, wire::encode::Zone};
use bytes::Bytes;
use ebb_storage::clock::Stopwatch;
use futures::StreamExt;
use std::{
    io::{BufRead, IsTerminal, Read},
    path::PathBuf,
};
use tokio_util::sync::CancellationToken;

/// Bytes of one piece of COPY data.
const COPY_BYTES: usize = 64 << 10;

pub async fn run(opening: Opening, command: Option<String>, file: Option<PathBuf>) -> Result<()> {
    let database = open(&opening).await?;
    let mut runner = Runner::new(database.session());
    let done = match (command, file) {
        (Some(sql), _) => runner.run(&sql, &mut Piped).await,
        (None, Some(path)) => {
            let file = std::fs::File::open(&path).map_err(|e| Error::from(e).context(path.display()))?;
            runner.run_lines(&mut std::io::BufReader::new(file)).await
        }
        (None, None) if std::io::stdin().is_terminal() => shell::run(&mut runner).await,
        (None, None) => runner.run_lines(&mut std::io::BufReader::new(std::io::stdin())).await,
    };
    // What is acknowledged is durable whatever closing says.
    database.close().await.and(done)
}

/// Where the data of a COPY FROM STDIN comes from.
pub trait CopySource {
    /// The next bytes; none at the end.
    fn next(&mut self) -> Result<Bytes>;
}

/// The program's standard input.
struct Piped;

impl CopySource for Piped {
    fn next(&mut self) -> Result<Bytes> {
        let mut piece = vec![0; COPY_BYTES];
        let n = std::io::stdin().lock().read(&mut piece)?;
        piece.truncate(n);
        Ok(piece.into())
    }
}

/// A script that is read line by line, and how many were read. As data it ends at `\.`.
pub struct Lines<'a, R: BufRead> {
    reader: &'a mut R,
    read: usize,
}

impl<'a, R: BufRead> Lines<'a, R> {
    pub fn new(reader: &'a mut R) -> Self {
        Self { reader, read: 0 }
    }

    /// The next line with its end; nothing at the end of the script.
    fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        self.reader.read_line(&mut line).map_err(|e| Error::invalid(format!("line {} is not UTF-8 text: {e}", self.read + 1)))?;
        self.read += 1;
        Ok(line)
    }
}

impl<R: BufRead> CopySource for Lines<'_, R> {
    fn next(&mut self) -> Result<Bytes> {
        let mut line = Vec::new();
        self.reader.read_until(b'\n', &mut line)?;
        self.read += 1;
        let end = line.strip_suffix(b"\n").unwrap_or(&line);
        let end = end.strip_suffix(b"\r").unwrap_or(end) == b"\\.";
        Ok(if end { Bytes::new() } else { line.into() })
    }
}

/// Where answers and complaints are shown.
pub trait Screen: Send {
    /// Bytes that may be no text.
    fn say(&mut self, bytes: &[u8]);
    fn complain(&mut self, text: &str);
}

/// Standard output and standard error.
struct Terminal;

impl Screen for Terminal {
    fn say(&mut self, bytes: &[u8]) {
        super::put(bytes);
    }
    fn complain(&mut self, text: &str) {
        super::complain(text);
    }
}

pub struct Runner {
    pub session: Session,
    pub timing: bool,
    screen: Box<dyn Screen>,
}

impl Runner {
    pub fn new(session: Session) -> Self {
        Self::on(session, Box::new(Terminal))
    }

    pub fn on(session: Session, screen: Box<dyn Screen>) -> Self {
        Self { session, timing: false, screen }
    }

    fn say(&mut self, text: &str) {
        self.screen.say(text.as_bytes());
    }

    /// Statements of a text, one line after another; the first error ends it. Each statement is a transaction of its own unless the
    /// script says BEGIN, so that what came before an error stays.
    pub async fn run_lines(&mut self, reader: &mut impl BufRead) -> Result<()> {
        let mut lines = Lines::new(reader);
        let (mut text, mut first) = (String::new(), 1);
        loop {
            let mut line = lines.line()?;
            let at_end = line.is_empty();
            if text.trim().is_empty() {
                text.clear();
                first = lines.read;
                if line.trim_start().starts_with('\\') {
                    match shell::short(&line, self) {
                        Short::Done => continue,
                        Short::Quit => return Ok(()),
                        Short::Sql(sql) => line = sql,
                        Short::Unknown => {
                            return Err(Error::invalid(format!("line {first}: unknown command {}: \\? lists them", line.trim())));
                        }
                    }
                }
            }
            text.push_str(&line);
            if (at_end || shell::is_complete(&text)) && !text.trim().is_empty() {
                self.run_at(&std::mem::take(&mut text), first, &mut lines).await?;
            }
            if at_end {
                return Ok(());
            }
        }
    }

    /// # Errors
    /// After having shown where in the text it is.
    pub async fn run(&mut self, sql: &str, data: &mut dyn CopySource) -> Result<()> {
        self.run_at(sql, 1, data).await
    }

    /// `first`: the number of the text's first line.
    async fn run_at(&mut self, sql: &str, first: usize, data: &mut dyn CopySource) -> Result<()> {
        let mut begun = None;
        let done = self.try_run(sql, data, &mut begun).await;
        if let Err(e) = &done
            && let Some(place) = place(sql, first, e, begun)
        {
            self.screen.complain(&place);
        }
        done
    }

    /// `begun`: where in the text the statement begins that runs.
    async fn try_run(&mut self, sql: &str, data: &mut dyn CopySource, begun: &mut Option<usize>) -> Result<()> {
        for statement in self.session.parse(sql)? {
            *begun = Some(statement.source.position());
            let watch = Stopwatch::start();
            let cancel = CancellationToken::new();
            let on_interrupt = cancel.clone();
            let waiting = tokio::spawn(async move {
                if tokio::signal::ctrl_c().await.is_ok() {
                    on_interrupt.cancel();
                }
            });
            let done = self.answer(statement, data, cancel).await;
            waiting.abort();
            for n in self.session.take_notices() {
                self.screen.complain(&format!("{}: {}", n.severity, n.message));
            }
            done?;
            if self.timing {
                self.say(&format!("Time: {:.3} ms\n", watch.elapsed().as_secs_f64() * 1000.0));
            }
        }
        Ok(())
    }

    async fn answer(&mut self, statement: crate::statement::Statement, data: &mut dyn CopySource, cancel: CancellationToken) -> Result<()> {
        let prepared = self.session.prepare(statement, &[]).await?;
        let outcome = self.session.execute(&prepared, Vec::new(), cancel).await?;
        let zone = self.session.variable("timezone").and_then(|name| Zone::named(&name)).unwrap_or(Zone::Utc);
        match outcome {
            Outcome::Empty => {}
            Outcome::Command { tag } => self.say(&format!("{tag}\n")),
            Outcome::Rows { schema, mut stream, .. } => {
                let mut table = Table::new(&schema).in_zone(zone);
                while let Some(batch) = stream.next().await {
                    table.push_batch(&batch?).map_err(|e| Error::internal(e.to_string()))?;
                }
                self.say(&table.render());
            }
            Outcome::CopyIn(copy) => {
                let rows = feed(copy, data).await?;
                self.say(&format!("COPY {rows}\n"));
            }
            Outcome::CopyOut(mut copy) => {
                let mut writer = CopyWriter::new(copy.options, &copy.schema, zone);
                writer.header().iter().for_each(|h| self.screen.say(h));
                while let Some(batch) = copy.stream.next().await {
                    self.screen.say(&writer.rows(&batch?)?.concat());
                }
                writer.footer().iter().for_each(|f| self.screen.say(f));
            }
        }
        Ok(())
    }
}

async fn feed(mut copy: CopyIn, data: &mut dyn CopySource) -> Result<u64> {
    loop {
        let piece = data.next()?;
        if piece.is_empty() {
            return copy.finish().await;
        }
        copy.data(piece).await?;
    }
}

/// The line of the text that an error is about, with a mark below; without a place of its own that of the statement. `first`: the number
/// of the text's first line.
pub(super) fn place(sql: &str, first: usize, e: &Error, begun: Option<usize>) -> Option<String> {
    let position = e.position().or(begun)?.checked_sub(1)?;
    let before: String = sql.chars().take(position).collect();
    let number = before.matches('\n').count();
    let line = sql.lines().nth(number)?;
    let head = format!("line {}: ", first + number);
    if e.position().is_none() {
        return Some(format!("{head}{line}"));
    }
    let column = before.rsplit('\n').next().map_or(0, |l| l.chars().count());
    Some(format!("{head}{line}\n     {}^", " ".repeat(head.len() + column)))
}

#[cfg(test)]
mod tests;
