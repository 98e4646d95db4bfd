//! The shell: lines with history, statements over several lines, a few backslash commands.

use super::{
    complain, say,
    script::{CopySource, Runner},
};
use crate::{Error, Result};
use bytes::Bytes;
use rustyline::{DefaultEditor, error::ReadlineError};
use std::path::PathBuf;

const HELP: &str = "\
Statements end with a semicolon and may span lines. Ctrl-C stops a running one.
  \\d          streams           \\d NAME     columns of a stream
  \\timing     show run times    \\q          quit
";

/// Where lines are remembered; nowhere without a home.
/// A statement with a secret is not written down.
fn remember(editor: &mut DefaultEditor, text: &str) {
    if !text.to_ascii_lowercase().contains("secret_access_key") {
        let _ = editor.add_history_entry(text);
    }
}

fn history() -> Option<PathBuf> {
    std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".ebb_history"))
}

/// Until `\q` or the end of input. Errors are shown and the shell goes on.
pub async fn run(runner: &mut Runner) -> Result<()> {
    let fails = |e: ReadlineError| Error::invalid(format!("the terminal cannot be read: {e}"));
    let mut editor = DefaultEditor::new().map_err(fails)?;
    if let Some(path) = history() {
        // A first run has none.
        let _ = editor.load_history(&path);
    }
    say("ebb: \\? for help, \\q to quit\n");
    let mut text = String::new();
    loop {
        let prompt = if text.is_empty() { "ebb=> " } else { "ebb-> " };
        match editor.readline(prompt) {
            Ok(line) if text.is_empty() && line.trim_start().starts_with('\\') => {
                remember(&mut editor, line.trim());
                match short(&line, runner) {
                    Short::Done => {}
                    Short::Quit => break,
                    Short::Sql(sql) => show(runner, &mut editor, &sql).await,
                    Short::Unknown => complain(&format!("unknown command {}: \\? lists them", line.trim())),
                }
            }
            Ok(line) => {
                text.push_str(&line);
                text.push('\n');
                if is_complete(&text) {
                    remember(&mut editor, text.trim());
                    show(runner, &mut editor, &std::mem::take(&mut text)).await;
                }
            }
            Err(ReadlineError::Interrupted) => text.clear(),
            Err(ReadlineError::Eof) => break,
            Err(e) => return Err(fails(e)),
        }
    }
    if let Some(path) = history() {
        let _ = editor.save_history(&path);
    }
    Ok(())
}

async fn show(runner: &mut Runner, editor: &mut DefaultEditor, sql: &str) {
    if let Err(e) = runner.run(sql, &mut Typed(editor)).await {
        complain(&e.to_string());
    }
}

/// COPY data as it is typed, up to `\.`.
struct Typed<'a>(&'a mut DefaultEditor);

impl CopySource for Typed<'_> {
    fn next(&mut self) -> Result<Bytes> {
        match self.0.readline("") {
            Ok(line) if line == "\\." => Ok(Bytes::new()),
            Ok(line) => Ok(format!("{line}\n").into()),
            Err(ReadlineError::Eof) => Ok(Bytes::new()),
            Err(e) => Err(Error::cancelled(format!("COPY was given up: {e}"))),
        }
    }
}

#[derive(Debug, PartialEq)]
enum Command {
    Quit,
    Timing,
    Help,
    Sql(String),
    Unknown,
}

/// What is left to do of a backslash command.
#[derive(Debug, PartialEq)]
pub enum Short {
    Done,
    Quit,
    /// A statement, with its semicolon.
    Sql(String),
    Unknown,
}

/// Carries out a line that begins with a backslash.
pub fn short(line: &str, runner: &mut Runner) -> Short {
    match command(line.trim()) {
        Command::Quit => return Short::Quit,
        Command::Unknown => return Short::Unknown,
        Command::Sql(sql) => return Short::Sql(sql + ";"),
        Command::Help => say(HELP),
        Command::Timing => {
            runner.timing = !runner.timing;
            say(&format!("Timing is {}.\n", if runner.timing { "on" } else { "off" }));
        }
    }
    Short::Done
}

fn command(line: &str) -> Command {
    let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    match (word, rest.trim().trim_end_matches(';')) {
        ("\\q" | "\\quit", _) => Command::Quit,
        ("\\timing", _) => Command::Timing,
        ("\\?" | "\\h" | "\\help", _) => Command::Help,
        ("\\d" | "\\dt", "") => Command::Sql("SHOW STREAMS".to_owned()),
        ("\\d", name) => Command::Sql(format!("DESCRIBE {name}")),
        _ => Command::Unknown,
    }
}

/// Whether a text ends with a semicolon outside of quotes and comments.
pub fn is_complete(text: &str) -> bool {
    let mut rest = text;
    let mut ended = false;
    while let Some(c) = rest.chars().next() {
        let skip_to = |mark: &str, from: usize| rest[from..].find(mark).map(|at| from + at + mark.len());
        let next = match c {
            '\'' | '"' | '`' => skip_to(c.encode_utf8(&mut [0; 4]), 1),
            '-' if rest.starts_with("--") => {
                // A comment neither ends a statement nor reopens one.
                rest = rest.find('\n').map_or("", |at| &rest[at..]);
                continue;
            }
            '/' if rest.starts_with("/*") => {
                match skip_to("*/", 2) {
                    Some(at) => rest = &rest[at..],
                    None => return false,
                }
                continue;
            }
            '$' => match dollar_tag(rest) {
                Some(tag) => skip_to(tag, tag.len()),
                None => Some(1),
            },
            c => Some(c.len_utf8()),
        };
        let Some(next) = next else { return false };
        if !c.is_whitespace() {
            ended = c == ';';
        }
        rest = &rest[next..];
    }
    ended
}

/// `$$` or `$word$` at the start.
fn dollar_tag(text: &str) -> Option<&str> {
    let end = text[1..].find('$')? + 2;
    text[1..end - 1].chars().all(|c| c.is_alphanumeric() || c == '_').then_some(&text[..end])
}

#[cfg(test)]
mod tests;
