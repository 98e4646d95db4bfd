//! What scripts and tests share: a script's form, a runner behind a trait, and the runner over the Rust API.
//!
//! A script is a list of blocks, separated by empty lines:
//! `statement ok`, `statement error <SQLSTATE> [text that the message contains]`, `statement notice <text>`, or `query` with the
//! statement on the next lines; a query's rows follow after `----`, one a line, values separated by `|`, `rowsort` after `query` sorts
//! both. `session <name>` goes on in another session, `restart` reopens the database.

use async_trait::async_trait;
use ebb::{Config, Database, Outcome, Session, wire::encode};
use ebb_storage::{Clock, Timestamp};
use futures::StreamExt;
use std::collections::BTreeMap;
use tokio_util::sync::CancellationToken;

/// What one statement answered with.
#[derive(Debug, Default)]
pub struct Answer {
    pub rows: Vec<String>,
    pub tag: String,
    pub notices: Vec<String>,
}

#[derive(Debug)]
pub struct Failure {
    pub sqlstate: String,
    pub message: String,
}

/// Runs statements somewhere.
#[async_trait(?Send)]
pub trait Runner {
    async fn run(&mut self, session: &str, sql: &str) -> Result<Answer, Failure>;
    /// Closes and opens the database again; its sessions are new ones.
    async fn restart(&mut self);
}

pub struct InProcess {
    pub dir: tempfile::TempDir,
    pub db: Database,
    clock: Clock,
    sessions: BTreeMap<String, Session>,
}

/// A simulated clock: 2026-03-01 00:00:00 UTC.
pub fn clock() -> Clock {
    Clock::simulated(Timestamp::from_secs(1_772_323_200))
}

pub async fn open(dir: &std::path::Path, clock: &Clock) -> Database {
    Database::open(Config::new(dir).with_clock(clock.clone()).with_background(false)).await.unwrap()
}

impl InProcess {
    pub async fn new() -> Self {
        let (dir, clock) = (tempfile::tempdir().unwrap(), clock());
        let db = open(dir.path(), &clock).await;
        Self { dir, db, clock, sessions: BTreeMap::new() }
    }
}

fn failure(e: ebb::Error) -> Failure {
    Failure { sqlstate: e.sqlstate().to_owned(), message: e.to_string() }
}

pub async fn answer(session: &mut Session, sql: &str) -> Result<Answer, Failure> {
    let mut last = Answer::default();
    for statement in session.parse(sql).map_err(failure)? {
        let prepared = session.prepare(statement, &[]).await.map_err(failure)?;
        let outcome = session.execute(&prepared, Vec::new(), CancellationToken::new()).await.map_err(failure)?;
        last = Answer::default();
        match outcome {
            Outcome::Rows { mut stream, tag, schema } => {
                if let Some(promised) = &prepared.result {
                    assert_eq!(promised.fields().len(), schema.fields().len(), "prepare promised other columns: {sql}");
                }
                while let Some(batch) = stream.next().await {
                    last.rows.extend(lines(&batch.map_err(|e| failure(e.into()))?));
                }
                last.tag = tag.text(last.rows.len() as u64);
            }
            Outcome::Command { tag } => last.tag = tag,
            other => panic!("{other:?} in a script: {sql}"),
        }
        last.notices = session.take_notices().into_iter().map(|n| n.message).collect();
    }
    Ok(last)
}

/// Rows as PostgreSQL's text.
pub fn lines(batch: &arrow::array::RecordBatch) -> Vec<String> {
    let columns = encode::Column::all(batch).unwrap();
    let zone = encode::Zone::named("UTC").unwrap();
    let cell = |c: &encode::Column, row: usize| {
        if c.is_null(row) {
            return "NULL".to_owned();
        }
        let mut out = bytes::BytesMut::new();
        encode::write_text(&mut out, c, row, &zone);
        String::from_utf8(out.to_vec()).unwrap()
    };
    (0..batch.num_rows()).map(|row| columns.iter().map(|c| cell(c, row)).collect::<Vec<_>>().join("|")).collect()
}

#[async_trait(?Send)]
impl Runner for InProcess {
    async fn run(&mut self, session: &str, sql: &str) -> Result<Answer, Failure> {
        let session = self.sessions.entry(session.to_owned()).or_insert_with(|| self.db.session());
        answer(session, sql).await
    }

    async fn restart(&mut self) {
        self.sessions.clear();
        self.db.close().await.unwrap();
        // The directory is free once the last holder is gone.
        let placeholder = tempfile::tempdir().unwrap();
        self.db = open(placeholder.path(), &clock()).await;
        self.db = open(self.dir.path(), &self.clock).await;
    }
}

/// Runs a script; panics name the line.
pub async fn script(name: &str, text: &str, runner: &mut dyn Runner) {
    let mut session = "main".to_owned();
    let mut lines = text.lines().enumerate().peekable();
    while let Some((at, line)) = lines.next() {
        let place = format!("{name}:{}", at + 1);
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let mut body = Vec::new();
        while let Some((_, l)) = lines.next_if(|(_, l)| !l.trim().is_empty()) {
            body.push(l);
        }
        let divider = body.iter().position(|l| *l == "----");
        let sql = body[..divider.unwrap_or(body.len())].join("\n");
        let words: Vec<&str> = line.splitn(4, ' ').collect();
        match words.as_slice() {
            ["session", name] => (*name).clone_into(&mut session),
            ["restart"] => runner.restart().await,
            ["statement", "ok"] => {
                if let Err(e) = runner.run(&session, &sql).await {
                    panic!("{place}: {} {}\n{sql}", e.sqlstate, e.message);
                }
            }
            ["statement", "notice", ..] => {
                let wanted = line.trim_start_matches("statement notice ");
                match runner.run(&session, &sql).await {
                    Ok(a) => assert!(a.notices.iter().any(|n| n.contains(wanted)), "{place}: no such notice, but {:?}\n{sql}", a.notices),
                    Err(e) => panic!("{place}: {} {}\n{sql}", e.sqlstate, e.message),
                }
            }
            ["statement", "error", state, rest @ ..] => match runner.run(&session, &sql).await {
                Ok(a) => panic!("{place}: no error but {a:?}\n{sql}"),
                Err(e) => {
                    assert_eq!(e.sqlstate, *state, "{place}: {}\n{sql}", e.message);
                    for part in rest {
                        assert!(e.message.contains(part), "{place}: '{}' does not say '{part}'\n{sql}", e.message);
                    }
                }
            },
            ["query", rest @ ..] => match runner.run(&session, &sql).await {
                Ok(mut a) => {
                    a.rows = a.rows.iter().flat_map(|r| r.split('\n').map(str::to_owned)).collect();
                    let mut wanted: Vec<&str> = divider.map_or(Vec::new(), |d| body[d + 1..].to_vec());
                    if rest.contains(&"rowsort") {
                        a.rows.sort();
                        wanted.sort_unstable();
                    }
                    assert_eq!(a.rows, wanted, "{place}\n{sql}");
                }
                Err(e) => panic!("{place}: {} {}\n{sql}", e.sqlstate, e.message),
            },
            _ => panic!("{place}: what is '{line}'?"),
        }
    }
}
