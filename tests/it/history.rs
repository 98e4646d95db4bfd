//! What systems with history are known to do, experiment by experiment with their numbers, and where Ebb does better.

mod ancient;
mod client;
mod survivors;

use crate::{
    script::{Failure, Runner},
    support::InProcess,
};

/// A database whose clock stands still, and one session.
pub struct Lab {
    pub inside: InProcess,
}

impl Lab {
    pub async fn new() -> Self {
        Self { inside: InProcess::new().await }
    }

    /// The rows that the last statement of `sql` answers with.
    pub async fn rows(&mut self, sql: &str) -> Vec<String> {
        match self.inside.run("main", sql).await {
            Ok(answer) => answer.rows,
            Err(e) => panic!("{e}\n{sql}"),
        }
    }

    /// The one row of them.
    pub async fn row(&mut self, sql: &str) -> String {
        let mut rows = self.rows(sql).await;
        assert_eq!(rows.len(), 1, "{sql}: {rows:?}");
        rows.remove(0)
    }

    pub async fn fails(&mut self, sql: &str) -> Failure {
        match self.inside.run("main", sql).await {
            Ok(answer) => panic!("no error but {answer:?}\n{sql}"),
            Err(e) => e,
        }
    }

    pub async fn advance(&mut self, by: &str) {
        self.rows(&format!("SYSTEM ADVANCE CLOCK INTERVAL '{by}'")).await;
    }

    /// `commits` records of a thousand rows each, numbered on from `first`; a minute passes with each.
    pub async fn commits(&mut self, into: &str, first: i64, commits: i64) {
        for n in 0..commits {
            let from = (first + n) * 1000;
            self.rows(&format!("INSERT INTO {into} SELECT value FROM generate_series({from}, {})", from + 999)).await;
            self.advance("1 minute").await;
        }
    }
}
