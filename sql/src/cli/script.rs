//! `ebb sql`: statements run one by one in a session of their own, answers printed.

use super::{
    args::Opening,
    complain, open, say,
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

/// Lines up to `\.`, as they follow the statement in a script.
pub struct Lines<'a, R: BufRead>(pub &'a mut R);

impl<R: BufRead> CopySource for Lines<'_, R> {
    fn next(&mut self) -> Result<Bytes> {
        let mut line = Vec::new();
        self.0.read_until(b'\n', &mut line)?;
        let end = line.strip_suffix(b"\n").unwrap_or(&line);
        let end = end.strip_suffix(b"\r").unwrap_or(end) == b"\\.";
        Ok(if end { Bytes::new() } else { line.into() })
    }
}

pub struct Runner {
    pub session: Session,
    pub timing: bool,
}

impl Runner {
    pub fn new(session: Session) -> Self {
        Self { session, timing: false }
    }

    /// Statements of a text, one line after another; the first error ends it.
    pub async fn run_lines(&mut self, lines: &mut impl BufRead) -> Result<()> {
        let mut text = String::new();
        loop {
            let mut line = String::new();
            let read = lines.read_line(&mut line).map_err(|e| Error::invalid(format!("the script is not UTF-8 text: {e}")))?;
            if text.trim().is_empty() && line.trim_start().starts_with('\\') {
                match shell::short(&line, self) {
                    Short::Done => continue,
                    Short::Quit => return Ok(()),
                    Short::Sql(sql) => line = sql,
                    Short::Unknown => return Err(Error::invalid(format!("unknown command {}: \\? lists them", line.trim()))),
                }
            }
            text.push_str(&line);
            if (read == 0 || shell::is_complete(&text)) && !text.trim().is_empty() {
                self.run(&std::mem::take(&mut text), &mut Lines(lines)).await?;
            }
            if read == 0 {
                return Ok(());
            }
        }
    }

    /// # Errors
    /// After having shown where in the text it is.
    pub async fn run(&mut self, sql: &str, data: &mut dyn CopySource) -> Result<()> {
        let done = self.try_run(sql, data).await;
        if let Err(e) = &done
            && let Some(place) = place(sql, e)
        {
            complain(&place);
        }
        done
    }

    async fn try_run(&mut self, sql: &str, data: &mut dyn CopySource) -> Result<()> {
        for statement in self.session.parse(sql)? {
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
                complain(&format!("{}: {}", n.severity, n.message));
            }
            done?;
            if self.timing {
                say(&format!("Time: {:.3} ms\n", watch.elapsed().as_secs_f64() * 1000.0));
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
            Outcome::Command { tag } => say(&format!("{tag}\n")),
            Outcome::Rows { schema, mut stream, .. } => {
                let mut table = Table::new(&schema).in_zone(zone);
                while let Some(batch) = stream.next().await {
                    table.push_batch(&batch?).map_err(|e| Error::internal(e.to_string()))?;
                }
                say(&table.render());
            }
            Outcome::CopyIn(copy) => say(&format!("COPY {}\n", feed(copy, data).await?)),
            Outcome::CopyOut(mut copy) => {
                let mut writer = CopyWriter::new(copy.options, &copy.schema, zone)?;
                let print = |bytes: &[u8]| say(&String::from_utf8_lossy(bytes));
                writer.header().iter().for_each(|h| print(h));
                while let Some(batch) = copy.stream.next().await {
                    print(&writer.rows(&batch?)?);
                }
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

/// The line of the text that an error is about, with a mark below.
fn place(sql: &str, e: &Error) -> Option<String> {
    let position = e.position()?.checked_sub(1)?;
    let before: String = sql.chars().take(position).collect();
    let number = before.matches('\n').count();
    let line = sql.lines().nth(number)?;
    let column = before.rsplit('\n').next().map_or(0, |l| l.chars().count());
    let head = format!("line {}: ", number + 1);
    Some(format!("{head}{line}\n     {}^", " ".repeat(head.len() + column)))
}

#[cfg(test)]
mod tests;
