//! A database in this process, and scripts run on it through the Rust API.

use crate::script::{Answer, Failure, Folder, Runner, Told};
use async_trait::async_trait;
use ebb::{Config, Database, Outcome, Session, wire::encode};
use ebb_storage::{Clock, Timestamp};
use futures::StreamExt;
use std::collections::BTreeMap;
use tokio_util::sync::CancellationToken;

pub struct InProcess {
    pub dir: tempfile::TempDir,
    pub db: Database,
    clock: Clock,
    sessions: BTreeMap<String, Session>,
    folder: Folder,
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
        Self { dir, db, clock, sessions: BTreeMap::new(), folder: Folder::new() }
    }
}

fn failure(e: ebb::Error) -> Failure {
    Failure {
        sqlstate: e.sqlstate().to_owned(),
        message: e.message().to_owned(),
        hint: e.hint().map(str::to_owned),
        position: e.position(),
    }
}

fn told(n: ebb::Notice) -> Told {
    Told { severity: n.severity.to_string(), sqlstate: n.sqlstate.to_owned(), message: n.message }
}

pub async fn answer(session: &mut Session, sql: &str) -> Result<Answer, Failure> {
    let answered = statements(session, sql).await;
    if answered.is_err() {
        session.give_up();
    }
    let notices = session.take_notices().into_iter().map(told).collect();
    answered.map(|a| Answer { notices, ..a }).map_err(failure)
}

async fn statements(session: &mut Session, sql: &str) -> ebb::Result<Answer> {
    let mut last = Answer::default();
    let all = session.parse(sql)?;
    let several = all.len() > 1;
    for statement in all {
        if several {
            session.join(&statement.verb).await?;
        }
        let prepared = session.prepare(statement, &[]).await?;
        let outcome = session.execute(&prepared, Vec::new(), CancellationToken::new()).await?;
        last = Answer::default();
        match outcome {
            Outcome::Rows { mut stream, tag, schema } => {
                if let Some(promised) = &prepared.result {
                    assert_eq!(promised.fields().len(), schema.fields().len(), "prepare promised other columns: {sql}");
                }
                let zone = encode::Zone::named(&session.variable("timezone").unwrap()).unwrap();
                last.columns = schema.fields().iter().map(|f| f.name().clone()).collect();
                while let Some(batch) = stream.next().await {
                    last.rows.extend(lines_in(&batch?, &zone));
                }
                last.tag = tag.text(last.rows.len() as u64);
            }
            Outcome::Command { tag } => last.tag = tag,
            other => panic!("{other:?} in a script: {sql}"),
        }
    }
    session.end_implicit().await?;
    Ok(last)
}

/// Rows as PostgreSQL's text, times in UTC.
pub fn lines(batch: &arrow::array::RecordBatch) -> Vec<String> {
    lines_in(batch, &encode::Zone::Utc)
}

fn lines_in(batch: &arrow::array::RecordBatch, zone: &encode::Zone) -> Vec<String> {
    let columns = encode::Column::all(batch).unwrap();
    let cell = |c: &encode::Column, row: usize| {
        if c.is_null(row) {
            return "NULL".to_owned();
        }
        let mut out = bytes::BytesMut::new();
        encode::write_text(&mut out, c, row, zone);
        String::from_utf8(out.to_vec()).unwrap()
    };
    (0..batch.num_rows()).map(|row| columns.iter().map(|c| cell(c, row)).collect::<Vec<_>>().join("|")).collect()
}

#[async_trait(?Send)]
impl Runner for InProcess {
    async fn run(&mut self, session: &str, sql: &str) -> Result<Answer, Failure> {
        let session = self.sessions.entry(session.to_owned()).or_insert_with(|| self.db.session());
        self.folder.heard(answer(session, &self.folder.told(sql)).await)
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
